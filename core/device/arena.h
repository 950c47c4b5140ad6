/* SPDX-License-Identifier: Apache-2.0 */
/* A device's memory: blocks cut from regions that are taken from the device, ordered by stream.
 *
 * A freed block may be used again at once on the stream it was allocated for, because that stream runs in order; on
 * another stream only behind an event. So freeing never waits, and a steady step takes nothing from the device. */
#ifndef HI_ARENA_H
#define HI_ARENA_H

#include <helio/helio.h>
#include <helio/plugin.h>
#include <pthread.h>
#include <stdatomic.h>

typedef struct hi_arena hi_arena;
typedef struct hi_region hi_region;

/* How far a device is given up. */
typedef enum hi_loss {
  HI_IN_ORDER,
  HI_SUSPECT, /* a call of it failed: a strategy that it belongs to will lose it */
  HI_LOST,    /* it gets no more work */
  HI_HUNG,    /* nor is it touched: a call of it never came back, which may hold its locks and write to its memory */
} hi_loss;

enum { HI_HOLDER_LENGTH = 32 };

typedef struct hi_block {
  atomic_int references;
  hi_arena *arena; /* NULL when the device was closed while somebody still held the block */
  helio_place place;
  size_t bytes;     /* as cut */
  size_t requested; /* as asked for */
  hi_region *region;
  struct hi_block *before, *behind; /* neighbours in the region */
  struct hi_block *next, *previous; /* in the list of its bin while free, of all live blocks else */
  bool free;
  signed char stream;    /* the stream that orders its use; HI_NO_STREAM: any, nothing is under way */
  unsigned char used_by; /* other streams that were handed work on it, a bit each */
  atomic_uint version;   /* how often it was written since its first contents: a tape notices that it changed */
  char holder[HI_HOLDER_LENGTH];
} hi_block;

enum { HI_STREAM_COMPUTE, HI_STREAM_COPY, HI_STREAM_COLLECTIVE, HI_STREAM_COUNT, HI_NO_STREAM = -1 };

/* What an arena needs of its device. */
typedef struct hi_arena_source {
  const char *name; /* of the device, for reports */
  helio_backend_device *device;
  const helio_device_table *devices;
  const helio_memory_table *memory;
  const helio_stream_table *streams;
  helio_stream *stream[HI_STREAM_COUNT]; /* NULL: not made */
  size_t alignment;
  uint64_t limit;          /* 0: none */
  uint64_t granted;        /* all that there is, which bounds the arena where no limit does; 0: the device refuses */
  uint64_t reserve;        /* taken in one piece at the first allocation; 0: grow */
  bool synchronous;        /* the device's streams need no events */
  bool host_memory;        /* addresses can be poisoned for the address sanitizer */
  bool exact;              /* HELIO_ARENA_DEBUG */
  struct hi_device *owner; /* of which nothing is touched when it hangs; NULL: nobody asks */
} hi_arena_source;

hi_arena *hi_arena_new(const hi_arena_source *source);

/* All work on the device is done. Blocks that are still held lose their memory. */
void hi_arena_destroy(hi_arena *arena);

/* Tells the arena of a stream that was made later. */
void hi_arena_set_stream(hi_arena *arena, int index, helio_stream *stream);

/* A block with one reference, for use on `stream`; NULL with the error set. `holder` is named in the report if memory
 * runs out. bytes 0 gives a block of the least size. */
hi_block *hi_arena_allocate(hi_arena *arena, size_t bytes, int stream, const char *holder);

void hi_block_hold(hi_block *block);
void hi_block_release(hi_block *block);

/* Work on the block was handed to another stream of its device than its own. */
void hi_block_used(hi_block *block, int stream);

void hi_arena_info(hi_arena *arena, helio_memory *info);

/* In debug mode: really frees what was freed, and reports writes past the end of it. */
helio_status hi_arena_check(hi_arena *arena);

#endif
