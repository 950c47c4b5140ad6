/* SPDX-License-Identifier: Apache-2.0 */
/* The arena, and copies from the host, on a device made up here, which writes down every call and runs out of memory
 * when told to. */
#include "device/copy.h"
#include "device/guard.h"
#include "device/sanitize.h"
#include "fake_device.h"
#include "runtime/machine.h"

/* ---- one stream ---- */

static void test_alignment(void **state) {
  static const size_t alignments[] = {64, 128, 256, 4096};
  static const size_t sizes[] = {0, 1, 63, 64, 65, 100, 255, 256, 257, 4095, 4096, 5000, 100000};
  (void)state;
  for (size_t i = 0; i < COUNT_OF(alignments); i++) {
    hi_arena_source source = usual();
    hi_block *blocks[COUNT_OF(sizes)];
    source.alignment = alignments[i];
    hi_arena *arena = make(source);
    for (size_t j = 0; j < COUNT_OF(sizes); j++) {
      size_t requested = sizes[j] ? sizes[j] : 1;
      blocks[j] = get(arena, sizes[j], HI_STREAM_COMPUTE);
      assert_int_equal(blocks[j]->place.offset % alignments[i], 0);
      assert_int_equal(blocks[j]->bytes, (requested + alignments[i] - 1) / alignments[i] * alignments[i]);
      assert_int_equal(blocks[j]->requested, requested);
    }
    for (size_t j = 0; j < COUNT_OF(sizes); j++) hi_block_release(blocks[j]);
    hi_arena_destroy(arena);
  }
}

/* In whatever order four neighbours are freed, the whole is one piece again. */
static void test_coalescing(void **state) {
  (void)state;
  for (int order = 0; order < 24; order++) {
    hi_block *blocks[4];
    int left[4] = {0, 1, 2, 3}, rest = order;
    hi_arena *arena = make(usual());
    for (int i = 0; i < 4; i++) blocks[i] = get(arena, 1000, HI_STREAM_COMPUTE);
    for (int count = 4; count > 0; count--) {
      int pick = rest % count;
      rest /= count;
      hi_block_release(blocks[left[pick]]);
      left[pick] = left[count - 1];
    }
    assert_int_equal(info_of(arena).largest_free, 2 * MIB);
    hi_block *whole = get(arena, 2 * MIB, HI_STREAM_COMPUTE);
    assert_int_equal(calls_of(ALLOCATE), order + 1); /* one for each arena */
    hi_block_release(whole);
    hi_arena_destroy(arena);
  }
}

static void test_the_tightest_fit_is_taken(void **state) {
  hi_block *large, *small, *walls[2];
  (void)state;
  hi_arena *arena = make(usual());
  large = get(arena, 7 * 64, HI_STREAM_COMPUTE);
  walls[0] = get(arena, 64, HI_STREAM_COMPUTE);
  small = get(arena, 5 * 64, HI_STREAM_COMPUTE);
  walls[1] = get(arena, 64, HI_STREAM_COMPUTE);
  size_t offset = small->place.offset;
  hi_block_release(large);
  hi_block_release(small);
  hi_block *fitting = get(arena, 5 * 64, HI_STREAM_COMPUTE);
  assert_int_equal(fitting->place.offset, offset);
  hi_block_release(fitting);
  hi_block_release(walls[0]);
  hi_block_release(walls[1]);
  hi_arena_destroy(arena);
}

/* A bin may hold many blocks that are too small before the one that is not. */
static void test_a_fit_behind_many_others(void **state) {
  enum { MANY = 100 };
  hi_arena_source source = usual();
  hi_block *small[MANY], *walls[MANY + 1];
  (void)state;
  source.limit = 2 * MIB;
  hi_arena *arena = make(source);
  hi_block *large = get(arena, 7 * 64, HI_STREAM_COMPUTE);
  walls[MANY] = get(arena, 64, HI_STREAM_COMPUTE);
  for (int i = 0; i < MANY; i++) {
    small[i] = get(arena, 5 * 64, HI_STREAM_COMPUTE);
    walls[i] = get(arena, 64, HI_STREAM_COMPUTE);
  }
  hi_block *rest = get(arena, info_of(arena).largest_free, HI_STREAM_COMPUTE);
  hi_block_release(large); /* the first freed stands last in the bin */
  for (int i = 0; i < MANY; i++) hi_block_release(small[i]);
  hi_block *again = get(arena, 7 * 64, HI_STREAM_COMPUTE);
  assert_int_equal(again->place.offset, 0);
  hi_block_release(again);
  hi_block_release(rest);
  for (int i = 0; i <= MANY; i++) hi_block_release(walls[i]);
  hi_arena_destroy(arena);
}

static void test_reuse_on_the_same_stream(void **state) {
  (void)state;
  for (int stream = 0; stream < HI_STREAM_COUNT; stream++) {
    hi_arena *arena = make(usual());
    hi_block *first = get(arena, 5000, stream);
    helio_place place = first->place;
    hi_block_release(first);
    for (int i = 0; i < 100; i++) {
      hi_block *again = get(arena, 5000, stream);
      assert_ptr_equal(again->place.buffer, place.buffer);
      assert_int_equal(again->place.offset, place.offset);
      hi_block_release(again);
    }
    assert_int_equal(info_of(arena).taken, 1);
    hi_arena_destroy(arena);
  }
  assert_int_equal(calls_of(RECORD) + calls_of(WAIT) + calls_of(SYNCHRONIZE), 0);
}

static void test_references(void **state) {
  (void)state;
  hi_arena *arena = make(usual());
  hi_block *block = get(arena, 100, HI_STREAM_COMPUTE);
  hi_block_hold(block);
  hi_block_hold(block);
  hi_block_release(block);
  hi_block_release(block);
  assert_int_equal(info_of(arena).allocations, 1);
  hi_block_release(block);
  assert_int_equal(info_of(arena).allocations, 0);
  hi_block_release(NULL);
  hi_arena_destroy(arena);
  hi_arena_destroy(NULL);
}

/* ---- several streams ---- */

/* An event recorded on `earlier` and then waited for by `later`, from call `at` on. */
static void check_order(int at, int earlier, int later) {
  assert_true(at + 1 < fake.count);
  const call *record = &fake.calls[at], *wait = &fake.calls[at + 1];
  assert_int_equal(record->kind, RECORD);
  assert_int_equal(record->stream, earlier);
  assert_int_equal(wait->kind, WAIT);
  assert_int_equal(wait->stream, later);
  assert_ptr_equal(wait->event, record->event);
}

/* Where there is room, another stream gets new memory rather than an event. */
static void test_another_stream_prefers_new_memory(void **state) {
  (void)state;
  hi_arena *arena = make(usual());
  hi_block *first = get(arena, 2 * MIB, HI_STREAM_COMPUTE);
  helio_buffer *buffer = first->place.buffer;
  hi_block_release(first);
  hi_block *second = get(arena, 2 * MIB, HI_STREAM_COPY);
  assert_ptr_not_equal(second->place.buffer, buffer);
  assert_int_equal(calls_of(RECORD), 0);
  hi_block_release(second);
  hi_arena_destroy(arena);
}

static void test_another_stream_waits_behind_an_event(void **state) {
  hi_arena_source source = usual();
  (void)state;
  source.limit = 2 * MIB;
  hi_arena *arena = make(source);
  hi_block_release(get(arena, 2 * MIB, HI_STREAM_COMPUTE));
  int before = fake.count;
  hi_block *second = get(arena, MIB, HI_STREAM_COPY);
  assert_int_equal(fake.calls[before].kind, CREATE);
  check_order(before + 1, HI_STREAM_COMPUTE, HI_STREAM_COPY);
  assert_int_equal(fake.count, before + 3);
  /* The rest still belongs to the first stream: it needs nothing there, an event elsewhere, which is made once. */
  hi_block *rest = get(arena, MIB / 2, HI_STREAM_COMPUTE);
  assert_int_equal(fake.count, before + 3);
  hi_block *third = get(arena, MIB / 2, HI_STREAM_COLLECTIVE);
  check_order(before + 3, HI_STREAM_COMPUTE, HI_STREAM_COLLECTIVE);
  assert_int_equal(fake.count, before + 5);
  hi_block_release(second);
  hi_block_release(rest);
  hi_block_release(third);
  hi_arena_destroy(arena);
  assert_int_equal(calls_of(SYNCHRONIZE), 0);
}

/* Memory that no stream has used yet needs no order. */
static void test_fresh_memory_needs_no_event(void **state) {
  hi_arena_source source = usual();
  hi_block *blocks[3];
  (void)state;
  source.limit = 2 * MIB;
  hi_arena *arena = make(source);
  for (int i = 0; i < 3; i++) blocks[i] = get(arena, MIB / 2, i);
  assert_int_equal(calls_of(RECORD) + calls_of(WAIT), 0);
  for (int i = 0; i < 3; i++) hi_block_release(blocks[i]);
  hi_arena_destroy(arena);
}

/* Other streams that were handed work on a block: its own stream waits for each of them when it is freed. */
static void test_used_by_other_streams(void **state) {
  (void)state;
  hi_arena *arena = make(usual());
  hi_block *block = get(arena, 100, HI_STREAM_COMPUTE);
  hi_block_used(block, HI_STREAM_COMPUTE); /* its own: nothing to do */
  hi_block_used(block, HI_STREAM_COLLECTIVE);
  hi_block_used(block, HI_STREAM_COPY);
  hi_block_used(block, HI_STREAM_COPY);
  int before = fake.count;
  hi_block_release(block);
  assert_int_equal(fake.count, before + 6);
  assert_int_equal(fake.calls[before].kind, CREATE);
  check_order(before + 1, HI_STREAM_COPY, HI_STREAM_COMPUTE);
  assert_int_equal(fake.calls[before + 3].kind, CREATE);
  check_order(before + 4, HI_STREAM_COLLECTIVE, HI_STREAM_COMPUTE);
  /* The next holder of the same memory starts with a clean slate. */
  block = get(arena, 100, HI_STREAM_COMPUTE);
  hi_block_release(block);
  assert_int_equal(fake.count, before + 6);
  hi_arena_destroy(arena);
}

static void test_synchronous_devices_need_no_events(void **state) {
  hi_arena_source source = usual();
  (void)state;
  source.synchronous = true;
  source.limit = 2 * MIB;
  hi_arena *arena = make(source);
  for (int i = 0; i < 9; i++) {
    hi_block *block = get(arena, 2 * MIB, i % 3);
    hi_block_used(block, (i + 1) % 3);
    hi_block_release(block);
  }
  assert_int_equal(fake.count, 1); /* the allocation */
  hi_arena_destroy(arena);
}

/* Streams are made when they are needed; one that is not there has no work to wait for. */
static void test_streams_that_are_made_later(void **state) {
  hi_arena_source source = usual();
  (void)state;
  source.limit = 2 * MIB;
  source.stream[HI_STREAM_COPY] = NULL;
  hi_arena *arena = make(source);
  hi_block *block = get(arena, 2 * MIB, HI_STREAM_COMPUTE);
  hi_block_used(block, HI_STREAM_COPY);
  hi_block_release(block);
  assert_int_equal(calls_of(RECORD), 0);
  hi_arena_set_stream(arena, HI_STREAM_COPY, &streams[HI_STREAM_COPY]);
  block = get(arena, 2 * MIB, HI_STREAM_COPY);
  assert_int_equal(calls_of(RECORD), 1);
  hi_block_release(block);
  hi_arena_destroy(arena);
}

/* Neighbours of two streams do not join by themselves; where nothing else helps, the device is waited for. */
static void test_joining_across_streams_waits_for_the_device(void **state) {
  hi_arena_source source = usual();
  (void)state;
  source.limit = 2 * MIB;
  hi_arena *arena = make(source);
  hi_block *a = get(arena, MIB, HI_STREAM_COMPUTE), *b = get(arena, MIB, HI_STREAM_COPY);
  hi_block_release(a);
  hi_block_release(b);
  assert_int_equal(info_of(arena).largest_free, MIB);
  hi_block *whole = get(arena, 2 * MIB, HI_STREAM_COLLECTIVE);
  assert_int_equal(calls_of(SYNCHRONIZE), 1);
  assert_int_equal(whole->place.offset, 0);
  hi_block_release(whole);
  hi_arena_destroy(arena);
}

/* An event that cannot be had is no reason to hand out memory too early: the device is waited for instead. */
static void test_events_that_fail(void **state) {
  static const call_kind kinds[] = {CREATE, RECORD, WAIT};
  (void)state;
  for (size_t i = 0; i < COUNT_OF(kinds); i++) {
    hi_arena_source source = usual();
    source.limit = 2 * MIB;
    hi_arena *arena = make(source);
    hi_block_release(get(arena, 2 * MIB, HI_STREAM_COMPUTE));
    fake.failing = kinds[i];
    hi_block *block = get(arena, 2 * MIB, HI_STREAM_COPY);
    fake.failing = 0;
    assert_int_equal(calls_of(SYNCHRONIZE), i + 1);
    hi_block_release(block);
    hi_arena_destroy(arena);
  }
}

static void test_a_device_that_has_failed(void **state) {
  hi_arena_source source = usual();
  (void)state;
  source.limit = 2 * MIB;
  hi_arena *arena = make(source);
  hi_block *block = get(arena, 2 * MIB, HI_STREAM_COMPUTE);
  fake.failing = SYNCHRONIZE;
  assert_null(hi_arena_allocate(arena, MIB, HI_STREAM_COMPUTE, "test"));
  expect_error(HELIO_DEVICE_FAILURE, "/device:TEST:0 failed: told to fail");
  fake.failing = 0;
  hi_block_release(block);
  hi_arena_destroy(arena);
}

/* Where the order of streams cannot be had, what was freed is not handed out again: another stream may be at work on
 * it.
 */
static void test_a_release_that_cannot_be_ordered(void **state) {
  (void)state;
  for (int exact = 0; exact < 2; exact++) {
    hi_arena_source source = usual();
    source.exact = exact;
    hi_arena *arena = make(source);
    hi_block *block = get(arena, 1000, HI_STREAM_COMPUTE), *neighbour = get(arena, 1000, HI_STREAM_COMPUTE);
    helio_place place = block->place;
    hi_block_used(block, HI_STREAM_COPY);
    fake.failing = RECORD;
    hi_block_release(block);
    fake.failing = 0;
    hi_block_release(neighbour); /* does not join with it */
    assert_logged("ERROR:helio:/device:TEST:0: cannot order its streams", "told to fail");
    hi_block *next = get(arena, 1000, HI_STREAM_COMPUTE);
    assert_false(next->place.buffer == place.buffer && next->place.offset == place.offset);
    hi_block_release(next);
    assert_int_equal(info_of(arena).allocations, 0);
    assert_ok(hi_arena_check(arena));
    hi_arena_destroy(arena);
  }
}

/* ---- taking memory from the device ---- */

/* A failure that is not want of memory ends the call: nothing is tried again, nothing is handed out. */
static void test_the_device_fails_to_allocate(void **state) {
  (void)state;
  for (int exact = 0; exact < 2; exact++) {
    hi_arena_source source = usual();
    source.exact = exact;
    hi_arena *arena = make(source);
    int before = fake.count;
    fake.failing = ALLOCATE;
    fake.once = true;
    assert_null(hi_arena_allocate(arena, 1000, HI_STREAM_COMPUTE, "test"));
    expect_error(HELIO_DEVICE_FAILURE, "of memory on /device:TEST:0: told to fail");
    assert_int_equal(fake.count, before + 1);
    hi_block *block = get(arena, 1000, HI_STREAM_COMPUTE);
    hi_block_release(block);
    hi_arena_destroy(arena);
  }
}

/* What is asked of an arena, and what it then takes from the device. */
static const struct {
  uint64_t asked, taken;
} steps[] = {
    {64, 2 * MIB},          {2 * MIB, 2 * MIB},          {2 * MIB, 4 * MIB}, {4 * MIB, 8 * MIB},
    {8 * MIB, 16 * MIB},    {20 * MIB, 32 * MIB},        {GIB, GIB},         {250 * MIB, 256 * MIB},
    {257 * MIB, 257 * MIB}, {9 * GIB + 1, 9 * GIB + 64},
};

static void test_growth(void **state) {
  hi_block *blocks[COUNT_OF(steps)];
  uint64_t reserved = 0;
  (void)state;
  hi_arena *arena = make(usual());
  assert_int_equal(fake.count, 0); /* nothing before the first allocation */
  for (size_t i = 0; i < COUNT_OF(steps); i++) {
    blocks[i] = get(arena, steps[i].asked, HI_STREAM_COMPUTE);
    reserved += steps[i].taken;
    if (info_of(arena).reserved != reserved) {
      fail_msg("step %zu: %llu reserved, not %llu", i, (unsigned long long)info_of(arena).reserved,
               (unsigned long long)reserved);
    }
    assert_int_equal(info_of(arena).taken, i + 1);
  }
  for (size_t i = 0; i < COUNT_OF(steps); i++) hi_block_release(blocks[i]);
  helio_memory info = info_of(arena);
  assert_int_equal(info.reserved, reserved); /* nothing goes back */
  assert_int_equal(info.in_use, 0);
  assert_int_equal(info.largest_free, 9 * GIB + 64);
  assert_int_equal(calls_of(FREE), 0);
  hi_arena_destroy(arena);
  assert_int_equal(calls_of(FREE), COUNT_OF(steps));
}

static void test_limit(void **state) {
  hi_arena_source source = usual();
  (void)state;
  source.limit = 5 * MIB + 100; /* not a multiple of the alignment */
  hi_arena *arena = make(source);
  hi_block *a = get(arena, 2 * MIB, HI_STREAM_COMPUTE), *b = get(arena, 2 * MIB, HI_STREAM_COMPUTE);
  hi_block *c = get(arena, 100, HI_STREAM_COMPUTE); /* the last region is as large as the limit leaves */
  helio_memory info = info_of(arena);
  assert_int_equal(info.reserved, 5 * MIB + 64);
  assert_int_equal(info.limit, 5 * MIB + 100);
  assert_null(hi_arena_allocate(arena, MIB, HI_STREAM_COMPUTE, "test"));
  expect_error(HELIO_OUT_OF_MEMORY, "limit 5.0 MiB");
  assert_null(hi_arena_allocate(arena, SIZE_MAX, HI_STREAM_COMPUTE, "test"));
  expect_error(HELIO_OUT_OF_MEMORY, "16.0 EiB");
  hi_block_release(b);
  b = get(arena, MIB, HI_STREAM_COMPUTE); /* what was freed serves */
  hi_block_release(a);
  hi_block_release(b);
  hi_block_release(c);
  hi_arena_destroy(arena);
}

/* Without a limit all memory that there is bounds the arena and the rest of the process together; with one, that bounds
 * the arena, also if it is above. */
static void test_all_memory(void **state) {
  hi_arena_source source = usual();
  (void)state;
  source.granted = hi_machine_resident() + 144 * MIB;
  hi_arena *arena = make(source);
  assert_int_equal(info_of(arena).limit, 0);
  assert_null(hi_arena_allocate(arena, source.granted, HI_STREAM_COMPUTE, "test"));
  expect_error(HELIO_OUT_OF_MEMORY, "test asked for ");
  hi_block_release(get(arena, 100 * MIB, HI_STREAM_COMPUTE));
  hi_arena_destroy(arena);
  char *elsewhere = malloc(64 * MIB);
  assert_non_null(elsewhere);
  memset(elsewhere, 1, 64 * MIB);
  arena = make(source);
  assert_null(hi_arena_allocate(arena, 100 * MIB, HI_STREAM_COMPUTE, "test"));
  double held; /* by the rest of the process, of which the block above is a part */
  helio_error error;
  assert_int_equal(helio_error_take(&error), HELIO_OUT_OF_MEMORY);
  assert_non_null(strstr(error.message, "test asked for 100.0 MiB; limit "));
  const char *rest = strstr(error.message, " for the whole process, which holds ");
  assert_non_null(rest);
  assert_int_equal(sscanf(rest, " for the whole process, which holds %lf MiB elsewhere, in use 0 bytes", &held), 1);
  assert_true(held >= 64);
  assert_null(strstr(error.message, "HELIO_MEMORY_LIMIT")); /* none was set */
  free(elsewhere);
  hi_arena_destroy(arena);
  source.limit = source.granted + 2 * MIB;
  arena = make(source);
  hi_block_release(get(arena, source.limit - MIB, HI_STREAM_COMPUTE));
  hi_arena_destroy(arena);
}

static void test_reserve(void **state) {
  hi_arena_source source = usual();
  (void)state;
  source.reserve = source.limit = 100 * MIB;
  hi_arena *arena = make(source);
  assert_int_equal(info_of(arena).reserved, 0); /* not before it is used */
  hi_block *block = get(arena, 64, HI_STREAM_COMPUTE);
  helio_memory info = info_of(arena);
  assert_int_equal(info.reserved, 100 * MIB);
  assert_int_equal(info.taken, 1);
  assert_int_equal(info.largest_free, 100 * MIB - 64);
  hi_block *rest = get(arena, 100 * MIB - 64, HI_STREAM_COMPUTE);
  assert_int_equal(info_of(arena).taken, 1);
  hi_block_release(block);
  hi_block_release(rest);
  hi_arena_destroy(arena);
}

/* The device has less than it seemed: what is needed is taken all the same. */
static void test_the_device_refuses_generous_pieces(void **state) {
  hi_arena_source source = usual();
  (void)state;
  source.reserve = 100 * MIB;
  fake.largest_allowed = MIB;
  hi_arena *arena = make(source);
  hi_block *a = get(arena, 1000, HI_STREAM_COMPUTE), *b = get(arena, 2000, HI_STREAM_COMPUTE);
  assert_int_equal(info_of(arena).reserved, 1024 + 2048);
  assert_int_equal(info_of(arena).taken, 2);
  hi_block_release(a);
  hi_block_release(b);
  hi_arena_destroy(arena);
}

/* Once for all and for a while: an error, nothing leaks, and the next call works. */
static void test_the_device_runs_out(void **state) {
  (void)state;
  hi_arena *arena = make(usual());
  fake.capacity = 0;
  for (int i = 0; i < 3; i++) {
    assert_null(hi_arena_allocate(arena, 1000, HI_STREAM_COMPUTE, "test"));
    expect_error(HELIO_OUT_OF_MEMORY, "out of memory on /device:TEST:0: test asked for 1000 bytes; limit none");
  }
  helio_memory info = info_of(arena);
  assert_int_equal(info.in_use + info.reserved + info.taken + info.allocations, 0);
  fake.capacity = 3 * MIB;
  hi_block *a = get(arena, 1000, HI_STREAM_COMPUTE), *b = get(arena, 2 * MIB - 1024, HI_STREAM_COMPUTE);
  assert_null(hi_arena_allocate(arena, 2 * MIB, HI_STREAM_COMPUTE, "test"));
  expect_error(HELIO_OUT_OF_MEMORY, "reserved 2.0 MiB");
  hi_block *c = get(arena, MIB, HI_STREAM_COMPUTE); /* exactly the rest */
  hi_block_release(a);
  hi_block_release(b);
  hi_block_release(c);
  hi_arena_destroy(arena);
}

/* ---- the report ---- */

static void test_the_report_of_out_of_memory(void **state) {
  static const struct {
    const char *holder;
    size_t bytes;
  } holders[] = {{"MatMul", 1 * MIB}, {"Add", 5 * MIB},  {"MatMul", 6 * MIB}, {"Relu", 64},
                 {"Sum", 3 * MIB},    {"Cast", 2 * MIB}, {"Fill", 1 * MIB}};
  hi_arena_source source = usual();
  hi_block *blocks[COUNT_OF(holders)];
  helio_error error;
  (void)state;
  source.limit = 20 * MIB;
  source.reserve = 20 * MIB;
  hi_arena *arena = make(source);
  for (size_t i = 0; i < COUNT_OF(holders); i++) {
    blocks[i] = hi_arena_allocate(arena, holders[i].bytes, HI_STREAM_COMPUTE, holders[i].holder);
    assert_made(blocks[i]);
  }
  assert_null(hi_arena_allocate(arena, 3 * MIB / 2 + 3 * MIB, HI_STREAM_COMPUTE, "Concat"));
  assert_int_equal(helio_error_take(&error), HELIO_OUT_OF_MEMORY);
  assert_string_equal(
      error.message,
      "out of memory on /device:TEST:0: Concat asked for 4.5 MiB; limit 20.0 MiB, in use 18.0 MiB, "
      "reserved 20.0 MiB, largest free piece 2.0 MiB; largest holders: MatMul 7.0 MiB in 2, Add 5.0 MiB "
      "in 1, Sum 3.0 MiB in 1, Cast 2.0 MiB in 1, Fill 1.0 MiB in 1. Use smaller batches or a smaller model, or raise "
      "the limit (HELIO_MEMORY_LIMIT, HELIO_MEMORY_FRACTION, HELIO_LOGICAL_DEVICES)");
  for (size_t i = 0; i < COUNT_OF(holders); i++) hi_block_release(blocks[i]);
  assert_null(hi_arena_allocate(arena, GIB, HI_STREAM_COMPUTE, "Concat"));
  expect_error(HELIO_OUT_OF_MEMORY, "largest free piece 20.0 MiB; largest holders: none.");
  hi_arena_destroy(arena);
}

/* Names that do not fit are cut; hundreds of holders are no trouble. */
static void test_the_report_of_many_holders(void **state) {
  enum { MANY = 300 };
  hi_arena_source source = usual();
  static hi_block *blocks[MANY];
  (void)state;
  source.limit = 2 * MIB;
  hi_arena *arena = make(source);
  for (int i = 0; i < MANY; i++) {
    char holder[100];
    snprintf(holder, sizeof holder, "%03d-a-name-that-is-longer-than-there-is-room-for-in-a-block", i);
    blocks[i] = hi_arena_allocate(arena, 64, HI_STREAM_COMPUTE, holder);
    assert_made(blocks[i]);
    assert_int_equal(strlen(blocks[i]->holder), HI_HOLDER_LENGTH - 1);
  }
  assert_null(hi_arena_allocate(arena, 2 * MIB, HI_STREAM_COMPUTE, "test"));
  expect_error(HELIO_OUT_OF_MEMORY, "in use 18.8 KiB");
  for (int i = 0; i < MANY; i++) hi_block_release(blocks[i]);
  hi_arena_destroy(arena);
}

/* ---- the end ---- */

static void test_blocks_outlive_their_arena(void **state) {
  (void)state;
  for (int exact = 0; exact < 2; exact++) {
    hi_arena_source source = usual();
    hi_block *blocks[10];
    source.exact = exact;
    hi_arena *arena = make(source);
    for (int i = 0; i < 10; i++) blocks[i] = get(arena, 1000, i % 3);
    for (int i = 0; i < 10; i += 3) hi_block_release(blocks[i]);
    hi_block_hold(blocks[1]);
    hi_arena_destroy(arena);
    assert_int_equal(fake.used, 0); /* the device has it all back */
    for (int i = 0; i < 10; i++) {
      if (i % 3 == 0) continue;
      assert_null(blocks[i]->arena);
      assert_null(blocks[i]->place.buffer);
      hi_block_used(blocks[i], HI_STREAM_COPY);
      hi_block_release(blocks[i]);
    }
    hi_block_release(blocks[1]);
  }
}

typedef struct forking {
  hi_arena *arena;
  hi_block *block;
} forking;

static void *hold_the_lock(void *argument) {
  return hi_arena_allocate(((forking *)argument)->arena, 4 * MIB, HI_STREAM_COMPUTE, "test");
}

static bool release_in_the_child(void *argument) {
  alarm(20);
  hi_block_release(((forking *)argument)->block);
  return true;
}

/* The child of a started library has no thread that would ever unlock the arena. */
static void test_a_release_after_a_fork(void **state) {
  pthread_barrier_t gate;
  pthread_t thread;
  void *other = NULL;
  (void)state;
  restore_environment();
  assert_ok(helio_init());
  forking f = {.arena = make(usual())};
  f.block = get(f.arena, 1000, HI_STREAM_COMPUTE);
  pthread_barrier_init(&gate, NULL, 2);
  fake.gate = &gate;
  assert_int_equal(pthread_create(&thread, NULL, hold_the_lock, &f), 0);
  pthread_barrier_wait(&gate); /* it is in the device's allocation, under the lock */
  int result = run_in_child(release_in_the_child, &f);
  pthread_barrier_wait(&gate);
  pthread_join(thread, &other);
  pthread_barrier_destroy(&gate);
  hi_block_release(other);
  hi_block_release(f.block);
  hi_arena_destroy(f.arena);
  assert_int_equal(result, 0);
  assert_ok(helio_shutdown());
}

static void test_damage_is_reported_at_the_end(void **state) {
  (void)state;
  hi_arena *arena = make(usual());
  hi_block *block = get(arena, 1000, HI_STREAM_COMPUTE);
  block->place.buffer->damaged = true;
  hi_block_release(block);
  hi_arena_destroy(arena);
  assert_logged("ERROR:helio:memory of /device:TEST:0 was damaged", "the byte behind the end has changed");
}

/* ---- debug mode ---- */

static void test_exact_buffers(void **state) {
  static const size_t sizes[] = {1, 3, 64, 65, 1000, 2 * MIB, 2 * MIB + 1};
  hi_arena_source source = usual();
  hi_block *blocks[COUNT_OF(sizes)];
  uint64_t sum = 0;
  (void)state;
  source.exact = true;
  hi_arena *arena = make(source);
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    blocks[i] = get(arena, sizes[i], HI_STREAM_COMPUTE);
    assert_int_equal(blocks[i]->place.offset, 0);
    assert_int_equal(blocks[i]->place.buffer->bytes, sizes[i]);
    sum += sizes[i];
    assert_int_equal(info_of(arena).reserved, sum);
    assert_int_equal(info_of(arena).in_use, sum);
    assert_int_equal(info_of(arena).largest_free, 0);
  }
  for (size_t i = 0; i < COUNT_OF(sizes); i++) hi_block_release(blocks[i]);
  assert_int_equal(info_of(arena).in_use, 0);
  hi_arena_destroy(arena);
}

static void test_freed_buffers_are_poisoned_and_not_reused(void **state) {
  hi_arena_source source = usual();
  helio_buffer *buffers[5];
  (void)state;
  source.exact = true;
  fake.with_memory = true;
  hi_arena *arena = make(source);
  for (int i = 0; i < 5; i++) {
    hi_block *block = get(arena, 100, HI_STREAM_COPY);
    buffers[i] = block->place.buffer;
    memset(buffers[i]->memory, 1, 100);
    for (int j = 0; j < i; j++) assert_ptr_not_equal(buffers[i], buffers[j]);
    hi_block_release(block);
    const call *fill = &fake.calls[fake.count - 1];
    assert_int_equal(fill->kind, FILL);
    assert_int_equal(fill->stream, HI_STREAM_COPY); /* in the order of the block's stream */
    assert_int_equal(fill->bytes, 100);
    for (int at = 0; at < 100; at++) assert_int_equal(buffers[i]->memory[at], 0xFF);
  }
  assert_int_equal(calls_of(FREE), 0);
  assert_int_equal(info_of(arena).reserved, 500);
  assert_ok(hi_arena_check(arena));
  assert_int_equal(calls_of(FREE), 5);
  assert_int_equal(info_of(arena).reserved, 0);
  hi_arena_destroy(arena);
}

/* The poison comes after all work on the block, also that of other streams. */
static void test_poison_waits_for_other_streams(void **state) {
  hi_arena_source source = usual();
  (void)state;
  source.exact = true;
  hi_arena *arena = make(source);
  hi_block *block = get(arena, 100, HI_STREAM_COMPUTE);
  hi_block_used(block, HI_STREAM_COLLECTIVE);
  int before = fake.count;
  hi_block_release(block);
  assert_int_equal(fake.calls[before].kind, CREATE);
  check_order(before + 1, HI_STREAM_COLLECTIVE, HI_STREAM_COMPUTE);
  assert_int_equal(fake.calls[before + 3].kind, FILL);
  assert_int_equal(fake.calls[before + 3].stream, HI_STREAM_COMPUTE);
  hi_arena_destroy(arena);
}

static void test_damage_is_reported_by_the_check(void **state) {
  hi_arena_source source = usual();
  hi_block *blocks[3];
  (void)state;
  source.exact = true;
  hi_arena *arena = make(source);
  for (int i = 0; i < 3; i++) blocks[i] = get(arena, 100, HI_STREAM_COMPUTE);
  blocks[1]->place.buffer->damaged = true;
  for (int i = 0; i < 3; i++) hi_block_release(blocks[i]);
  assert_int_equal(hi_arena_check(arena), HELIO_DEVICE_FAILURE);
  expect_error(HELIO_DEVICE_FAILURE, "memory of /device:TEST:0 was damaged: the byte behind the end has changed");
  assert_int_equal(fake.used, 0);
  assert_ok(hi_arena_check(arena)); /* told once */
  hi_arena_destroy(arena);
}

/* A failure of the device at the check is an error with a message like any other. */
static void test_a_check_that_fails(void **state) {
  hi_arena_source source = usual();
  (void)state;
  source.exact = true;
  hi_arena *arena = make(source);
  hi_block_release(get(arena, 100, HI_STREAM_COMPUTE));
  fake.failing = SYNCHRONIZE;
  assert_int_equal(hi_arena_check(arena), HELIO_DEVICE_FAILURE);
  expect_error(HELIO_DEVICE_FAILURE, "/device:TEST:0 failed: told to fail");
  fake.failing = 0;
  hi_arena_destroy(arena);
}

/* What is set aside gives way before memory runs out, and when it grows past all measure. */
static void test_what_is_set_aside_gives_way(void **state) {
  hi_arena_source source = usual();
  (void)state;
  source.exact = true;
  source.limit = 10 * MIB;
  hi_arena *arena = make(source);
  for (int i = 0; i < 25; i++) hi_block_release(get(arena, MIB, HI_STREAM_COMPUTE));
  assert_in_range(info_of(arena).reserved, MIB, 10 * MIB);
  assert_null(hi_arena_allocate(arena, 10 * MIB + 1, HI_STREAM_COMPUTE, "test"));
  expect_error(HELIO_OUT_OF_MEMORY, "limit 10.0 MiB");
  hi_arena_destroy(arena);
  source.limit = 0;
  arena = make(source);
  for (int i = 0; i < 50; i++) hi_block_release(get(arena, 100 * MIB, HI_STREAM_COMPUTE));
  assert_in_range(info_of(arena).reserved, 0, 2 * GIB);
  hi_arena_destroy(arena);
}

/* ---- copies from the host ---- */

static char numbers[17 << 20];

static hi_device device_for_copies(hi_physical *physical) {
  return (hi_device){.member = {.device = &fake, .memory = &memory_table, .streams = &stream_table},
                     .name = "/device:TEST:0",
                     .physical = physical,
                     .lock = PTHREAD_MUTEX_INITIALIZER,
                     .streams = {&streams[HI_STREAM_COMPUTE]}};
}

static helio_status copy_in(hi_device *device, size_t bytes) {
  return hi_copy_in(device, (helio_place){NULL, 0}, numbers, bytes);
}

static void test_staging_is_used_again(void **state) {
  hi_device device = device_for_copies(NULL);
  (void)state;
  for (int i = 0; i < 10; i++) assert_ok(copy_in(&device, 1000));
  assert_int_equal(fake.live_pieces, 1);
  fake.behind = true; /* not before the device has read it */
  assert_ok(copy_in(&device, 1000));
  assert_int_equal(fake.live_pieces, 2);
  assert_int_equal(calls_of(STREAM_SYNCHRONIZE), 0);
  hi_copy_finish(&device);
}

/* Large ones are not copied twice; many do not add up when the device is behind, nor lie idle when it is not. */
static void test_staging_is_bounded(void **state) {
  hi_device device = device_for_copies(NULL);
  (void)state;
  assert_ok(copy_in(&device, sizeof numbers));
  assert_int_equal(calls_of(HOST_ALLOCATE), 0);
  assert_int_equal(calls_of(STREAM_SYNCHRONIZE), 1);
  for (int i = 0; i < 20; i++) {
    fake.behind = true;
    assert_ok(copy_in(&device, 10 * MIB));
    assert_true(fake.live_bytes <= 64 * MIB);
  }
  fake.behind = false;
  for (size_t bytes = 16 * MIB; bytes >= 4096; bytes /= 8) {
    for (int i = 0; i < 8; i++) {
      fake.behind = i < 7;
      assert_ok(copy_in(&device, bytes));
      assert_true(fake.live_bytes <= 64 * MIB);
    }
  }
  hi_copy_finish(&device);
}

static void test_staging_that_fails(void **state) {
  static const struct {
    call_kind failing;
    const char *part;
  } rows[] = {
      {HOST_ALLOCATE, "preparing to copy 1000 bytes to /device:TEST:0: told to fail"},
      {CREATE, "preparing to copy 1000 bytes to /device:TEST:0: told to fail"},
      {QUERY, "preparing to copy 1000 bytes to /device:TEST:0: told to fail"},
      {COPY_IN, "copying to the device on /device:TEST:0: told to fail"},
      {RECORD, "copying to the device on /device:TEST:0: told to fail"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    hi_device device = device_for_copies(NULL);
    if (rows[i].failing == QUERY) assert_ok(copy_in(&device, 1000)); /* else there is nothing to ask for */
    int waited = calls_of(STREAM_SYNCHRONIZE);
    fake.failing = rows[i].failing;
    assert_int_equal(copy_in(&device, 1000), HELIO_DEVICE_FAILURE);
    expect_error(HELIO_DEVICE_FAILURE, rows[i].part);
    /* A copy is under way that no event tells of. */
    assert_int_equal(calls_of(STREAM_SYNCHRONIZE) - waited, rows[i].failing == RECORD);
    fake.failing = 0;
    assert_ok(copy_in(&device, 1000));
    hi_copy_finish(&device);
  }
}

/* A plugin's thread has nobody who would take a pending error: it becomes the plugin's reason. */
static void test_the_host_copy_leaves_no_error(void **state) {
  hi_plugin plugins[2] = {{.library = NULL}};
  hi_physical physicals[2] = {{.plugin = &plugins[0]}, {.plugin = &plugins[1]}};
  hi_device to = device_for_copies(&physicals[0]), from = device_for_copies(&physicals[1]);
  helio_place nowhere = {NULL, 0};
  (void)state;
  fake.failing = STREAM_CREATE;
  assert_int_equal(hi_host_copy(NULL, &to.member, &streams[HI_STREAM_COLLECTIVE], nowhere, &from.member, nowhere, 8),
                   HELIO_DEVICE_FAILURE);
  assert_int_equal(helio_error_pending(), HELIO_OK);
  assert_string_equal(hi_reason(HELIO_DEVICE_FAILURE), "making a stream on /device:TEST:0: told to fail");
}

/* The end of a device waits for it once, and says once that it failed. */
static void test_the_end_of_a_device(void **state) {
  hi_plugin plugin = {.devices = device_table, .memory = memory_table, .streams = stream_table};
  hi_physical physical = {.plugin = &plugin};
  (void)state;
  restore_environment();
  assert_ok(helio_init()); /* no device without settings */
  hi_guard(&plugin);
  hi_device *device = hi_device_new(&physical, 0);
  assert_non_null(device);
  device->handle = &fake;
  device->member.device = (helio_backend_device *)device;
  fake.failing = SYNCHRONIZE;
  hi_device_rest(device);
  hi_device_free(device);
  assert_int_equal(calls_of(SYNCHRONIZE), 1);
  assert_int_equal(lines_with("ERROR:helio:", "failed at its end: told to fail"), 1);
  assert_ok(helio_shutdown());
}

/* ---- the address sanitizer ---- */

#ifdef HI_ADDRESS_SANITIZER
static bool is_closed(const hi_block *block, size_t at) {
  return __asan_address_is_poisoned(block->place.buffer->memory + block->place.offset + at);
}

static void test_gaps_are_closed(void **state) {
  hi_arena_source source = usual();
  (void)state;
  source.host_memory = true;
  fake.with_memory = true;
  hi_arena *arena = make(source);
  hi_block *a = get(arena, 100, HI_STREAM_COMPUTE), *b = get(arena, 200, HI_STREAM_COMPUTE);
  assert_false(is_closed(a, 0) || is_closed(a, 99) || is_closed(b, 0) || is_closed(b, 199));
  assert_true(is_closed(a, 100) && is_closed(a, 127) && is_closed(b, 200));
  hi_block_hold(b);
  unsigned char *freed = a->place.buffer->memory + a->place.offset;
  hi_block_release(a);
  assert_true(__asan_address_is_poisoned(freed));
  assert_false(is_closed(b, 0));
  hi_block_release(b);
  hi_block_release(b);
  hi_arena_destroy(arena);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      ARENA_TEST(test_alignment),
      ARENA_TEST(test_coalescing),
      ARENA_TEST(test_the_tightest_fit_is_taken),
      ARENA_TEST(test_a_fit_behind_many_others),
      ARENA_TEST(test_reuse_on_the_same_stream),
      ARENA_TEST(test_references),
      ARENA_TEST(test_another_stream_prefers_new_memory),
      ARENA_TEST(test_another_stream_waits_behind_an_event),
      ARENA_TEST(test_fresh_memory_needs_no_event),
      ARENA_TEST(test_used_by_other_streams),
      ARENA_TEST(test_synchronous_devices_need_no_events),
      ARENA_TEST(test_streams_that_are_made_later),
      ARENA_TEST(test_joining_across_streams_waits_for_the_device),
      ARENA_TEST(test_events_that_fail),
      ARENA_TEST(test_a_device_that_has_failed),
      ARENA_TEST(test_a_release_that_cannot_be_ordered),
      ARENA_TEST(test_the_device_fails_to_allocate),
      ARENA_TEST(test_growth),
      ARENA_TEST(test_limit),
      TEST(test_all_memory),
      ARENA_TEST(test_reserve),
      ARENA_TEST(test_the_device_refuses_generous_pieces),
      ARENA_TEST(test_the_device_runs_out),
      ARENA_TEST(test_the_report_of_out_of_memory),
      ARENA_TEST(test_the_report_of_many_holders),
      ARENA_TEST(test_blocks_outlive_their_arena),
      ARENA_TEST(test_a_release_after_a_fork),
      ARENA_TEST(test_damage_is_reported_at_the_end),
      ARENA_TEST(test_exact_buffers),
      ARENA_TEST(test_freed_buffers_are_poisoned_and_not_reused),
      ARENA_TEST(test_poison_waits_for_other_streams),
      ARENA_TEST(test_damage_is_reported_by_the_check),
      ARENA_TEST(test_a_check_that_fails),
      ARENA_TEST(test_what_is_set_aside_gives_way),
      ARENA_TEST(test_staging_is_used_again),
      ARENA_TEST(test_staging_is_bounded),
      ARENA_TEST(test_staging_that_fails),
      ARENA_TEST(test_the_host_copy_leaves_no_error),
      ARENA_TEST(test_the_end_of_a_device),
#ifdef HI_ADDRESS_SANITIZER
      ARENA_TEST(test_gaps_are_closed),
#endif
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
