/* SPDX-License-Identifier: Apache-2.0 */
#include "device/arena.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/arena_report.h"
#include "device/device.h"
#include "device/sanitize.h"
#include "runtime/error.h"
#include "runtime/leaks.h"
#include "runtime/log.h"
#include "runtime/machine.h"
#include "runtime/runtime.h"

enum { BIN_COUNT = 48, BIN_SEARCH = 64, MOST_SPARE = 1024 };
static const size_t first_region = (size_t)2 << 20;
static const size_t largest_step = (size_t)256 << 20; /* growth doubles what is reserved up to this */
/* Debug mode holds no more than this. Buffers cost more than their bytes: a device that gives each of them pages of its
 * own runs out of these first. */
static const size_t largest_quarantine = (size_t)1 << 30, most_quarantined = 4096;

struct hi_region {
  helio_buffer *buffer;
  size_t bytes;
  char *address; /* where the host can touch it, else NULL */
  hi_block *first;
  hi_region *next;
};

struct hi_arena {
  hi_arena_source source;
  pthread_mutex_t lock;
  hi_region *regions;
  hi_block *bins[BIN_COUNT]; /* free blocks of 2^i … 2^(i+1)−1 units of alignment */
  uint64_t filled;           /* bit i: bin i is not empty */
  hi_block *live;
  hi_block *set_aside; /* freed, but a stream may still be at work on them: not used again */
  hi_block *spare;     /* descriptions without memory: cutting and joining are too frequent for malloc */
  int spare_count;
  hi_region *quarantine; /* debug mode: freed regions, poisoned */
  size_t quarantined;    /* bytes of them */
  size_t quarantined_count;
  helio_event *events[HI_STREAM_COUNT];
  helio_memory info;
};

hi_arena *hi_arena_new(const hi_arena_source *source) {
  hi_arena *arena = calloc(1, sizeof *arena);
  if (!arena) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the arena of %s", source->name);
    return NULL;
  }
  arena->source = *source;
  arena->info.limit = source->limit;
  pthread_mutex_init(&arena->lock, NULL);
  return arena;
}

/* ---- lists ---- */

static void list_push(hi_block **list, hi_block *block) {
  block->previous = NULL;
  block->next = *list;
  if (block->next) block->next->previous = block;
  *list = block;
}

static void list_remove(hi_block **list, hi_block *block) {
  if (block->next) block->next->previous = block->previous;
  if (block->previous) {
    block->previous->next = block->next;
  } else {
    *list = block->next;
  }
}

static int bin_of(const hi_arena *arena, size_t bytes) {
  size_t units = bytes / arena->source.alignment;
  int bin = units ? 63 - __builtin_clzll(units) : 0;
  return bin < BIN_COUNT ? bin : BIN_COUNT - 1;
}

static void bin_insert(hi_arena *arena, hi_block *block) {
  int bin = bin_of(arena, block->bytes);
  block->free = true;
  list_push(&arena->bins[bin], block);
  arena->filled |= UINT64_C(1) << bin;
}

static void bin_remove(hi_arena *arena, hi_block *block) {
  int bin = bin_of(arena, block->bytes);
  list_remove(&arena->bins[bin], block);
  if (!arena->bins[bin]) arena->filled &= ~(UINT64_C(1) << bin);
  block->free = false;
}

static hi_block *description_new(hi_arena *arena) {
  hi_block *block = arena->spare;
  if (!block) return calloc(1, sizeof *block);
  arena->spare = block->next;
  arena->spare_count--;
  return block;
}

static void description_free(hi_arena *arena, hi_block *block) {
  if (!block) return;
  if (arena->spare_count == MOST_SPARE) {
    free(block);
    return;
  }
  block->next = arena->spare;
  arena->spare = block;
  arena->spare_count++;
}

/* ---- poison for the address sanitizer ---- */

static void close_to_host(const hi_block *block) {
  if (block->region->address) hi_poison(block->region->address + block->place.offset, block->bytes);
}

static void open_to_host(const hi_block *block) {
  if (block->region->address) hi_unpoison(block->region->address + block->place.offset, block->requested);
}

/* ---- a device that fails ---- */

static bool lost(const hi_arena *arena) {
  return arena->source.owner && hi_device_lost(arena->source.owner);
}

/* False, without the lock, if the device hangs: whoever hangs in a call of it may hold the lock. */
static bool take_lock(hi_arena *arena) {
  if (!arena->source.owner) return pthread_mutex_lock(&arena->lock) == 0;
  return hi_device_take(arena->source.owner, &arena->lock, "waiting for memory");
}

/* ---- streams ---- */

void hi_arena_set_stream(hi_arena *arena, int index, helio_stream *stream) {
  if (!take_lock(arena)) return; /* nothing of a device that hangs is used any more */
  arena->source.stream[index] = stream;
  pthread_mutex_unlock(&arena->lock);
}

/* Makes `later` wait for all that `earlier` was handed so far. */
static helio_status order_streams(hi_arena *arena, int earlier, int later) {
  const hi_arena_source *s = &arena->source;
  if (s->synchronous || earlier == later || earlier == HI_NO_STREAM || !s->stream[earlier] || !s->stream[later]) {
    return HELIO_OK;
  }
  helio_event **event = &arena->events[earlier];
  helio_status status = *event ? HELIO_OK : s->streams->event_create(s->device, event);
  if (!status) status = s->streams->event_record(s->device, *event, s->stream[earlier]);
  if (!status) status = s->streams->wait(s->device, s->stream[later], *event);
  return status;
}

/* ---- regions ---- */

/* Memory taken from the device, as one block. HELIO_OUT_OF_MEMORY, without the error set: there is none; another
 * status, with the error set: the device failed. */
static helio_status region_add(hi_arena *arena, size_t bytes, hi_block **added) {
  const hi_arena_source *s = &arena->source;
  hi_region *region = calloc(1, sizeof *region);
  hi_block *block = description_new(arena);
  helio_status status = HELIO_OUT_OF_MEMORY;
  if (region && block) status = s->memory->allocate(s->device, bytes, &region->buffer);
  if (status) {
    if (status != HELIO_OUT_OF_MEMORY) {
      hi_fail(status, "taking %zu bytes of memory on %s: %s", bytes, s->name, hi_reason(status));
    }
    free(region);
    description_free(arena, block);
    return status;
  }
  region->bytes = bytes;
  region->first = block;
  if (s->host_memory) region->address = s->memory->native_buffer(region->buffer);
  region->next = arena->regions;
  arena->regions = region;
  *block = (hi_block){
      .arena = arena, .place = {region->buffer, 0}, .bytes = bytes, .region = region, .stream = HI_NO_STREAM};
  close_to_host(block);
  arena->info.reserved += bytes;
  arena->info.taken++;
  *added = block;
  return HELIO_OK;
}

static helio_status region_free(hi_arena *arena, hi_region *region) {
  if (region->address) hi_unpoison(region->address, region->bytes);
  hi_reason_clear();
  helio_status status = arena->source.memory->free(arena->source.device, region->buffer);
  arena->info.reserved -= region->bytes;
  free(region);
  return status;
}

static uint64_t bound(const hi_arena *arena) {
  return arena->source.limit ? arena->source.limit : arena->source.granted;
}

/* Where all that there is bounds the arena, it is shared with the rest of the process. What was reserved is not
 * resident before it is written to. */
static uint64_t taken_of(const hi_arena *arena) {
  uint64_t reserved = arena->info.reserved, resident = arena->source.limit ? 0 : hi_machine_resident();
  return resident > reserved ? resident : reserved;
}

static uint64_t room(const hi_arena *arena) {
  uint64_t most = bound(arena);
  if (!most) return UINT64_MAX;
  uint64_t taken = taken_of(arena);
  return most > taken ? most - taken : 0;
}

/* Takes more memory from the device: at least `bytes`, better a generous piece, as far as limit and device allow. A
 * status as of region_add. */
static helio_status grow(hi_arena *arena, size_t bytes, hi_block **added) {
  uint64_t left = room(arena);
  if (bytes > left) return HELIO_OUT_OF_MEMORY;
  size_t unit = arena->source.alignment;
  uint64_t generous = arena->info.reserved > first_region ? arena->info.reserved : first_region;
  if (generous > largest_step) generous = largest_step;
  if (arena->source.reserve && arena->info.taken == 0) generous = arena->source.reserve;
  if (generous > left) generous = left;
  generous = generous / unit * unit;
  helio_status status = HELIO_OUT_OF_MEMORY;
  if (generous > bytes) status = region_add(arena, (size_t)generous, added);
  return status == HELIO_OUT_OF_MEMORY ? region_add(arena, bytes, added) : status;
}

/* ---- blocks ---- */

/* Joins a free block with its neighbour behind it. */
static void absorb(hi_arena *arena, hi_block *block, hi_block *behind) {
  bin_remove(arena, behind);
  if (block->stream == HI_NO_STREAM) block->stream = behind->stream;
  block->bytes += behind->bytes;
  block->behind = behind->behind;
  if (block->behind) block->behind->before = block;
  description_free(arena, behind);
}

static bool joinable(const hi_block *a, const hi_block *b) {
  return a && b && a->free && b->free &&
         (a->stream == b->stream || a->stream == HI_NO_STREAM || b->stream == HI_NO_STREAM);
}

static void give_back(hi_arena *arena, hi_block *block) {
  bin_insert(arena, block);
  hi_block *before = block->before;
  if (joinable(block, block->behind)) {
    bin_remove(arena, block);
    absorb(arena, block, block->behind);
    bin_insert(arena, block);
  }
  if (joinable(before, block)) {
    bin_remove(arena, before);
    absorb(arena, before, block);
    bin_insert(arena, before);
  }
}

/* Cuts off what is not needed. If there is no memory for the description of the rest, the block stays large. */
static void cut(hi_arena *arena, hi_block *block, size_t bytes) {
  if (block->bytes - bytes < arena->source.alignment) return;
  hi_block *rest = description_new(arena);
  if (!rest) return;
  *rest = (hi_block){.arena = arena,
                     .place = {block->place.buffer, block->place.offset + bytes},
                     .bytes = block->bytes - bytes,
                     .region = block->region,
                     .before = block,
                     .behind = block->behind,
                     .stream = block->stream};
  if (rest->behind) rest->behind->before = rest;
  block->behind = rest;
  block->bytes = bytes;
  bin_insert(arena, rest);
}

/* The smallest of the first `most` free blocks of a bin that fit and are ordered by `stream`; any stream if it is
 * HI_NO_STREAM. */
static hi_block *search(hi_arena *arena, size_t bytes, int stream, int most) {
  uint64_t candidates = arena->filled & (UINT64_MAX << bin_of(arena, bytes));
  while (candidates) {
    int bin = __builtin_ctzll(candidates), looked = 0;
    hi_block *best = NULL;
    for (hi_block *b = arena->bins[bin]; b && looked < most; b = b->next, looked++) {
      bool ours = stream == HI_NO_STREAM || b->stream == stream || b->stream == HI_NO_STREAM;
      if (ours && b->bytes >= bytes && (!best || b->bytes < best->bytes)) best = b;
      if (best && best->bytes == bytes) break;
    }
    if (best) return best;
    candidates &= candidates - 1;
  }
  return NULL;
}

/* When nothing fits: waits for the device, after which streams no longer matter, and joins all that is free. */
static helio_status join_everything(hi_arena *arena) {
  hi_reason_clear();
  helio_status status = arena->source.devices->synchronize(arena->source.device);
  if (status) return hi_fail(status, "%s failed: %s", arena->source.name, hi_reason(status));
  for (hi_region *region = arena->regions; region; region = region->next) {
    for (hi_block *b = region->first; b; b = b->behind) {
      if (b->free) b->stream = HI_NO_STREAM;
    }
    for (hi_block *b = region->first; b;) {
      if (!joinable(b, b->behind)) {
        b = b->behind;
        continue;
      }
      bin_remove(arena, b);
      absorb(arena, b, b->behind);
      bin_insert(arena, b);
    }
  }
  return HELIO_OK;
}

/* In order of cost: what this stream freed; more memory; what another stream freed, behind an event; all that is free
 * once the device has come to rest. The first search must be quick; the others, before memory is said to have run out,
 * leave nothing unseen. */
static hi_block *find(hi_arena *arena, size_t bytes, int stream) {
  hi_block *block = search(arena, bytes, stream, BIN_SEARCH);
  if (block) return block;
  helio_status status = grow(arena, bytes, &block);
  if (!status) bin_insert(arena, block);
  if (status != HELIO_OUT_OF_MEMORY) return block; /* or the device failed */
  block = search(arena, bytes, HI_NO_STREAM, INT_MAX);
  if (block && order_streams(arena, block->stream, stream)) block = NULL;
  if (!block && !join_everything(arena)) block = search(arena, bytes, HI_NO_STREAM, INT_MAX);
  return block;
}

static uint64_t largest_free(const hi_arena *arena) {
  uint64_t largest = 0;
  for (int bin = BIN_COUNT - 1; bin >= 0 && !largest; bin--) {
    for (hi_block *b = arena->bins[bin]; b; b = b->next) {
      if (b->bytes > largest) largest = b->bytes;
    }
  }
  return largest;
}

static void out_of_memory(hi_arena *arena, size_t bytes, const char *holder) {
  helio_memory info = arena->info;
  info.largest_free = largest_free(arena);
  hi_report_out_of_memory(&arena->source, bytes, holder, &info, taken_of(arena) - info.reserved, arena->live);
}

/* Debug mode: really frees what was set aside; the device notices here what was written past the end. */
static helio_status drain_quarantine(hi_arena *arena) {
  helio_status result = HELIO_OK;
  hi_reason_clear();
  if (arena->quarantine) result = arena->source.devices->synchronize(arena->source.device);
  if (result) hi_fail(result, "%s failed: %s", arena->source.name, hi_reason(result));
  while (arena->quarantine) {
    hi_region *region = arena->quarantine;
    arena->quarantine = region->next;
    helio_status status = region_free(arena, region);
    if (status && !result) {
      result = hi_fail(status, "memory of %s was damaged: %s", arena->source.name, hi_reason(status));
    }
  }
  arena->quarantined = 0;
  arena->quarantined_count = 0;
  return result;
}

static hi_block *allocate_exactly(hi_arena *arena, size_t bytes) {
  hi_block *block = NULL;
  helio_status status = bytes <= room(arena) ? region_add(arena, bytes, &block) : HELIO_OUT_OF_MEMORY;
  if (status != HELIO_OUT_OF_MEMORY || drain_quarantine(arena)) return block;
  if (bytes <= room(arena)) region_add(arena, bytes, &block);
  return block;
}

static hi_block *allocate_locked(hi_arena *arena, size_t bytes, int stream) {
  if (arena->source.exact) return allocate_exactly(arena, bytes);
  size_t unit = arena->source.alignment;
  size_t rounded = bytes > SIZE_MAX - unit ? SIZE_MAX / unit * unit : (bytes + unit - 1) / unit * unit;
  hi_block *block = find(arena, rounded, stream);
  if (!block) return NULL;
  bin_remove(arena, block);
  cut(arena, block, rounded);
  return block;
}

hi_block *hi_arena_allocate(hi_arena *arena, size_t bytes, int stream, const char *holder) {
  if (bytes == 0) bytes = 1;
  hi_reason_clear();
  if (!take_lock(arena)) {
    hi_fail(HELIO_DEVICE_FAILURE, "no memory can be had on %s, which hangs", arena->source.name);
    return NULL;
  }
  hi_block *block = allocate_locked(arena, bytes, stream);
  if (block) {
    block->requested = bytes;
    block->stream = (signed char)stream;
    block->used_by = 0;
    atomic_init(&block->references, 1);
    atomic_init(&block->version, 0);
    size_t length = strnlen(holder, sizeof block->holder - 1);
    memcpy(block->holder, holder, length);
    block->holder[length] = 0;
    list_push(&arena->live, block);
    open_to_host(block);
    arena->info.in_use += block->bytes;
    arena->info.allocations++;
    if (arena->info.in_use > arena->info.peak) arena->info.peak = arena->info.in_use;
  } else {
    out_of_memory(arena, bytes, holder);
  }
  pthread_mutex_unlock(&arena->lock);
  return block;
}

/* Debug mode: poison in the order of the stream, then set aside. */
static void quarantine(hi_arena *arena, hi_block *block) {
  static const unsigned char poison = 0xFF;
  const hi_arena_source *s = &arena->source;
  hi_region **link = &arena->regions, *region = block->region;
  helio_status status =
      s->memory->fill(s->device, s->stream[(int)block->stream], block->place, &poison, 1, block->bytes);
  if (status && !lost(arena)) hi_log(HELIO_LOG_ERROR, "%s: cannot poison freed memory: %s", s->name, hi_reason(status));
  while (*link != region) link = &(*link)->next;
  *link = region->next;
  region->next = arena->quarantine;
  arena->quarantine = region;
  arena->quarantined += region->bytes;
  arena->quarantined_count++;
  if (region->address) hi_poison(region->address, region->bytes);
  description_free(arena, block);
  if (arena->quarantined > largest_quarantine || arena->quarantined_count > most_quarantined) drain_quarantine(arena);
}

/* Makes the block's own stream wait for the others that were handed work on it. */
static helio_status order_users(hi_arena *arena, const hi_block *block) {
  helio_status status = HELIO_OK;
  hi_reason_clear();
  for (int stream = 0; stream < HI_STREAM_COUNT && !status; stream++) {
    if (block->used_by >> stream & 1) status = order_streams(arena, stream, block->stream);
  }
  return status;
}

static void free_block(hi_arena *arena, hi_block *block) {
  if (!take_lock(arena)) return; /* its memory is left alone */
  list_remove(&arena->live, block);
  arena->info.in_use -= block->bytes;
  arena->info.allocations--;
  helio_status status = order_users(arena, block);
  if (status) {
    if (!lost(arena))
      hi_log(HELIO_LOG_ERROR, "%s: cannot order its streams, so %zu bytes are not used again: %s", arena->source.name,
             block->bytes, hi_reason(status));
    list_push(&arena->set_aside, block);
  } else if (arena->source.exact) {
    quarantine(arena, block);
  } else {
    if (arena->source.synchronous) block->stream = HI_NO_STREAM;
    close_to_host(block);
    give_back(arena, block);
  }
  pthread_mutex_unlock(&arena->lock);
}

void hi_block_hold(hi_block *block) {
  atomic_fetch_add_explicit(&block->references, 1, memory_order_relaxed);
}

void hi_block_release(hi_block *block) {
  if (!block || atomic_fetch_sub_explicit(&block->references, 1, memory_order_acq_rel) > 1) return;
  if (hi_runtime_forked()) return; /* another thread of the parent may have held the arena's lock: rather leak */
  if (block->arena) {
    free_block(block->arena, block);
  } else {
    free(block); /* its device was closed before */
  }
}

void hi_block_used(hi_block *block, int stream) {
  if (block->stream == stream || !block->arena || !take_lock(block->arena)) return;
  block->used_by |= (unsigned char)(1u << stream);
  pthread_mutex_unlock(&block->arena->lock);
}

void hi_arena_info(hi_arena *arena, helio_memory *info) {
  *info = (helio_memory){0};
  if (!take_lock(arena)) return;
  *info = arena->info;
  info->largest_free = largest_free(arena);
  pthread_mutex_unlock(&arena->lock);
}

helio_status hi_arena_check(hi_arena *arena) {
  if (!take_lock(arena)) return HELIO_OK;
  helio_status status = drain_quarantine(arena);
  pthread_mutex_unlock(&arena->lock);
  return status;
}

/* Live blocks outlive the arena as shells, so that whoever holds them can still release them. */
static void orphan(hi_arena *arena) {
  for (hi_block *block = arena->live, *next; block; block = next) {
    next = block->next;
    block->arena = NULL;
    block->place = (helio_place){NULL, 0};
  }
}

static void free_list(hi_block *list) {
  for (hi_block *block = list, *next; block; block = next) {
    next = block->next;
    free(block);
  }
}

void hi_arena_destroy(hi_arena *arena) {
  if (!arena) return;
  hi_arena_check(arena);
  if (hi_leaks_are_in_memory()) hi_report_held(arena->source.name, &arena->info, arena->live);
  for (int i = 0; i < HI_STREAM_COUNT; i++) {
    if (arena->events[i]) arena->source.streams->event_destroy(arena->source.device, arena->events[i]);
  }
  while (arena->regions) {
    hi_region *region = arena->regions;
    arena->regions = region->next;
    for (hi_block *block = region->first, *behind; block && !arena->source.exact; block = behind) {
      behind = block->behind;
      if (block->free) free(block);
    }
    helio_status status = region_free(arena, region);
    if (status) hi_log(HELIO_LOG_ERROR, "memory of %s was damaged: %s", arena->source.name, hi_reason(status));
  }
  orphan(arena);
  free_list(arena->set_aside);
  free_list(arena->spare);
  pthread_mutex_destroy(&arena->lock);
  free(arena);
}
