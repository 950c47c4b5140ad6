/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned host memory: the host may use it, but not while a copy from it or into it is pending: see transfer.c. */
#include "pinned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, PAGE = SIM_PAGE };

static sim_pinned **all; /* freed ones too, in the order of their addresses */
static size_t count, room;

/* How many begin at or before an address, their guard included. */
static size_t rank(const char *address) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (all[middle]->begin - PAGE <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

sim_pinned *sim_pinned_find(const void *address) {
  size_t before = rank(address);
  return before && (const char *)address < all[before - 1]->end + PAGE ? all[before - 1] : NULL;
}

static bool remember(sim_pinned *made) {
  if (count == room) {
    size_t more = room ? 2 * room : 64;
    sim_pinned **wider = realloc(all, more * sizeof *wider);
    if (!wider) return false;
    all = wider;
    room = more;
  }
  size_t at = rank(made->begin);
  memmove(all + at + 1, all + at, (count - at) * sizeof *all);
  all[at] = made;
  count++;
  return true;
}

/* Fresh pages, with one on either side that nobody can touch. */
static bool open_pages(sim_pinned *made, size_t pages) {
  char *guarded = mmap(NULL, pages + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (guarded == MAP_FAILED) return false;
  made->begin = guarded + PAGE;
  made->end = made->begin + pages;
  if (sim_pages_open(made->begin, pages)) return true;
  munmap(guarded, pages + 2 * PAGE);
  return false;
}

static sim_status make(sim_device *device, size_t bytes, sim_pinned **result) {
  size_t size = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, pages = (size + PAGE - 1) / PAGE * PAGE;
  sim_pinned *made = calloc(1, sizeof *made);
  if (!made || !open_pages(made, pages) || !remember(made)) {
    free(made);
    return SIM_OUT_OF_MEMORY;
  }
  made->device = device;
  made->address = made->end - size;
  made->bytes = bytes;
  made->live = true;
  made->canary = sim_canary_key();
  sim_canary_fill(made->begin, made->address, made->canary);
  sim_canary_fill(made->address + bytes, made->end, made->canary);
  sim_remember_origin(&made->made);
  *result = made;
  return SIM_OK;
}

sim_status sim_pinned_allocate(sim_device *device, size_t bytes, void **address) {
  sim_status status = sim_count(SIM_ALLOCATION, device);
  if (status != SIM_OK) return status;
  if (bytes == 0) return SIM_INVALID_VALUE;
  if (bytes >= sim_machine_bytes()) return SIM_OUT_OF_MEMORY; /* nobody can pin more than there is */
  sim_pinned *made;
  sim_lock();
  status = make(device, bytes, &made);
  sim_unlock();
  if (status == SIM_OK) *address = made->address;
  return status;
}

static void close_pinned(sim_pinned *one) {
  if (!sim_canary_is_whole(one->begin, one->address, one->canary) ||
      !sim_canary_is_whole(one->address + one->bytes, one->end, one->canary))
    sim_violation("out of bounds", "something wrote beyond the ends of pinned memory of %zu bytes (made by %s)",
                  one->bytes, one->made.call);
  sim_order_forget(one->address, one->address + one->bytes);
  one->live = false;
  sim_remember_origin(&one->freed);
  /* The addresses stay taken, so that a later use is seen for what it is. */
  sim_pages_close(one->begin, (size_t)(one->end - one->begin));
}

static sim_status free_pinned(void *address) {
  sim_pinned *one = sim_pinned_find(address);
  if (!one || one->address != (char *)address) {
    sim_violation("not pinned memory", "%p was never allocated as pinned memory", address);
    return SIM_INVALID_VALUE;
  }
  if (!one->live) {
    sim_violation("double free", "pinned memory of %zu bytes, freed by %s, is freed once more", one->bytes,
                  one->freed.call);
    return SIM_INVALID_VALUE;
  }
  if (sim_transfers_tell(one)) return SIM_INVALID_VALUE; /* it stays, for the copy's sake */
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
  const sim_pinned *one = sim_pinned_find(address);
  const char *byte = address;
  bool inside = one && one->live && byte >= one->address && byte <= one->address + one->bytes &&
                bytes <= (size_t)(one->address + one->bytes - byte);
  sim_unlock();
  return inside;
}

/* A lost device does not take back pinned memory that was made in its context either. */
void sim_pinned_tell_leaks(void) {
  for (size_t i = 0; i < count; i++) {
    sim_pinned *one = all[i];
    if (!one->live || one->device->health != SIM_OK) continue;
    one->live = false;
    sim_violation_of(&one->made, "made in", "leak", "%zu bytes of pinned memory were never freed", one->bytes);
  }
}

char *sim_describe_host(const void *address, char *text, size_t size) {
  sim_lock();
  const sim_pinned *one = sim_pinned_find(address);
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
  bool near = sim_pinned_find(address) != NULL;
  sim_unlock();
  return near;
}

bool sim_was_pinned(const void *address) {
  const char *byte = address;
  sim_lock();
  const sim_pinned *one = sim_pinned_find(address);
  bool was = one && !one->live && byte >= one->address && byte < one->address + one->bytes;
  sim_unlock();
  return was;
}
