/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned host memory: the host may use it, but not while a copy from it or into it is pending. A copy that reads takes
 * a sum of the bytes when it is queued and compares it when it is done; one that writes fills the bytes with 0xFF and
 * looks whether they still are so. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, PAGE = SIM_PAGE };

typedef struct pinned {
  const sim_device *device; /* in whose context it was made */
  char *address;
  size_t bytes;
  char *begin, *end; /* its pages; there is one that nobody can touch on either side */
  bool live;
  sim_origin made, freed;
  sim_transfer *transfers;
  struct pinned *next;
} pinned;

struct sim_transfer {
  pinned *owner;
  char *address;
  size_t bytes;
  bool writes;
  bool checked; /* false: another pending copy touches the same bytes, so that nothing can be said */
  uint64_t sum;
  const char *call;
  sim_transfer *next;
};

static pinned *all; /* freed ones too */

static pinned *find(const void *address) {
  const char *byte = address;
  for (pinned *one = all; one; one = one->next)
    if (byte >= one->begin - PAGE && byte < one->end + PAGE) return one;
  return NULL;
}

sim_status sim_pinned_allocate(sim_device *device, size_t bytes, void **address) {
  sim_status status = sim_count(SIM_ALLOCATION, device);
  if (status != SIM_OK) return status;
  if (bytes == 0) return SIM_INVALID_VALUE;
  size_t size = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, pages = (size + PAGE - 1) / PAGE * PAGE;
  pinned *made = calloc(1, sizeof *made);
  if (!made) return SIM_OUT_OF_MEMORY;
  char *room = mmap(NULL, pages + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED || mprotect(room + PAGE, pages, PROT_READ | PROT_WRITE)) {
    free(made);
    return SIM_OUT_OF_MEMORY;
  }
  made->device = device;
  made->begin = room + PAGE;
  made->end = made->begin + pages;
  made->address = made->end - size;
  made->bytes = bytes;
  made->live = true;
  memset(made->begin, SIM_CANARY, pages);
  memset(made->address, SIM_FRESH, bytes);
  sim_remember_origin(&made->made);
  sim_lock();
  made->next = all;
  all = made;
  sim_unlock();
  *address = made->address;
  return SIM_OK;
}

static void close_pinned(pinned *one) {
  if (!sim_is_filled(one->begin, one->address, SIM_CANARY) ||
      !sim_is_filled(one->address + one->bytes, one->end, SIM_CANARY))
    sim_violation("out of bounds", "something wrote beyond the ends of pinned memory of %zu bytes (made by %s)",
                  one->bytes, one->made.call);
  one->live = false;
  sim_remember_origin(&one->freed);
  /* The addresses stay taken, so that a later use is seen for what it is. */
  madvise(one->begin, (size_t)(one->end - one->begin), MADV_DONTNEED);
  mprotect(one->begin, (size_t)(one->end - one->begin), PROT_NONE);
}

static sim_status free_pinned(void *address) {
  pinned *one = find(address);
  if (!one || one->address != (char *)address) {
    sim_violation("not pinned memory", "%p was never allocated as pinned memory", address);
    return SIM_INVALID_VALUE;
  }
  if (!one->live) {
    sim_violation("double free", "pinned memory of %zu bytes, freed by %s, is freed once more", one->bytes,
                  one->freed.call);
    return SIM_INVALID_VALUE;
  }
  if (one->transfers) {
    sim_violation("pinned memory in use", "pinned memory of %zu bytes is freed while a copy %s it is pending (%s)",
                  one->bytes, one->transfers->writes ? "into" : "from", one->transfers->call);
    return SIM_INVALID_VALUE; /* it stays, for the copy's sake */
  }
  close_pinned(one);
  return SIM_OK;
}

sim_status sim_pinned_free(void *address) {
  sim_lock();
  sim_status status = free_pinned(address);
  sim_unlock();
  return status;
}

bool sim_is_pinned(const void *address, size_t bytes) {
  sim_lock();
  const pinned *one = find(address);
  const char *byte = address;
  bool inside = one && one->live && byte >= one->address && byte <= one->address + one->bytes &&
                bytes <= (size_t)(one->address + one->bytes - byte);
  sim_unlock();
  return inside;
}

/* Sums of different contents differ, but for one case in very many. */
static uint64_t sum_of(const char *address, size_t bytes) {
  uint64_t sum = 0x9E3779B97F4A7C15u, word;
  for (; bytes >= sizeof word; address += sizeof word, bytes -= sizeof word) {
    memcpy(&word, address, sizeof word);
    sum = (sum ^ word) * 0xD6E8FEB86659FD93u;
    sum ^= sum >> 32;
  }
  word = 0;
  memcpy(&word, address, bytes);
  return (sum ^ word) * 0xD6E8FEB86659FD93u;
}

/* Two pending copies that read the same bytes do not disturb each other. */
static bool is_disturbed(const sim_transfer *transfer) {
  for (const sim_transfer *other = transfer->owner->transfers; other; other = other->next)
    if (sim_overlap(transfer->address, transfer->bytes, other->address, other->bytes) &&
        (transfer->writes || other->writes))
      return true;
  return false;
}

sim_transfer *sim_transfer_begin(void *address, size_t bytes, bool writes) {
  sim_transfer *transfer = calloc(1, sizeof *transfer);
  if (!transfer) return NULL;
  sim_lock();
  *transfer = (sim_transfer){
      .owner = find(address), .address = address, .bytes = bytes, .writes = writes, .call = sim_current_call()};
  transfer->checked = !is_disturbed(transfer);
  if (transfer->checked && writes) memset(address, SIM_FRESH, bytes);
  if (transfer->checked && !writes) transfer->sum = sum_of(address, bytes);
  transfer->next = transfer->owner->transfers;
  transfer->owner->transfers = transfer;
  sim_unlock();
  return transfer;
}

void sim_transfer_check(sim_transfer *transfer) {
  if (!transfer->checked) return;
  bool same = transfer->writes ? sim_is_filled(transfer->address, transfer->address + transfer->bytes, SIM_FRESH)
                               : transfer->sum == sum_of(transfer->address, transfer->bytes);
  if (!same)
    sim_violation("pinned memory in use",
                  "%zu bytes of pinned memory were changed by the host while a copy %s them was pending (%s)",
                  transfer->bytes, transfer->writes ? "into" : "from", transfer->call);
}

void sim_transfer_end(sim_transfer *transfer) {
  if (!transfer) return;
  sim_lock();
  sim_transfer **link = &transfer->owner->transfers;
  while (*link != transfer) link = &(*link)->next;
  *link = transfer->next;
  sim_unlock();
  free(transfer);
}

/* A lost device does not take back pinned memory that was made in its context either. */
void sim_pinned_tell_leaks(void) {
  for (pinned *one = all; one; one = one->next) {
    if (!one->live || one->device->health != SIM_OK) continue;
    one->live = false;
    sim_violation_of(&one->made, "made in", "leak", "%zu bytes of pinned memory were never freed", one->bytes);
  }
}

char *sim_describe_host(const void *address, char *text, size_t size) {
  sim_lock();
  const pinned *one = find(address);
  if (!one)
    snprintf(text, size, "%p, host memory that gpusim knows nothing of", address);
  else
    snprintf(text, size, "byte %td of %zu bytes of pinned memory (made by %s%s%s)",
             (const char *)address - one->address, one->bytes, one->made.call, one->live ? "" : ", freed by ",
             one->live ? "" : one->freed.call);
  sim_unlock();
  return text;
}

bool sim_is_near_pinned(const void *address) {
  sim_lock();
  bool near = find(address) != NULL;
  sim_unlock();
  return near;
}

bool sim_was_pinned(const void *address) {
  const char *byte = address;
  sim_lock();
  const pinned *one = find(address);
  bool was = one && !one->live && byte >= one->address && byte < one->address + one->bytes;
  sim_unlock();
  return was;
}
