/* SPDX-License-Identifier: Apache-2.0 */
/* The arena under 100,000 random steps, compared with a model, and under several threads. */
#include "fake_device.h"

enum { STEPS = 100000, SLOTS = 200 };

typedef struct model {
  hi_block *blocks[SLOTS];
  uint64_t in_use, peak;
  uint64_t live;
} model;

static void check_apart(const model *m, const hi_block *block) {
  for (int i = 0; i < SLOTS; i++) {
    const hi_block *other = m->blocks[i];
    if (!other || other == block || other->place.buffer != block->place.buffer) continue;
    bool apart = other->place.offset + other->bytes <= block->place.offset ||
                 block->place.offset + block->bytes <= other->place.offset;
    if (!apart)
      fail_msg("blocks %zu+%zu and %zu+%zu overlap", other->place.offset, other->bytes, block->place.offset,
               block->bytes);
  }
}

static void check_statistics(hi_arena *arena, const model *m, uint64_t limit) {
  helio_memory info = info_of(arena);
  assert_int_equal(info.in_use, m->in_use);
  assert_int_equal(info.peak, m->peak);
  assert_int_equal(info.allocations, m->live);
  assert_int_equal(info.reserved, fake.used);
  assert_true(info.reserved <= limit);
  assert_true(info.in_use + info.largest_free <= info.reserved);
}

static size_t random_size(uint64_t *seed) {
  unsigned bits = next_random(seed) % 20;
  return next_random(seed) % (UINT32_C(2) << bits);
}

static void random_step(hi_arena *arena, model *m, uint64_t *seed, int stream_count) {
  hi_block **slot = &m->blocks[next_random(seed) % SLOTS];
  if (*slot) {
    if (next_random(seed) % 4 == 0) hi_block_used(*slot, (int)(next_random(seed) % (uint32_t)stream_count));
    m->in_use -= (*slot)->bytes;
    m->live--;
    hi_block_release(*slot);
    *slot = NULL;
    return;
  }
  *slot = hi_arena_allocate(arena, random_size(seed), (int)(next_random(seed) % (uint32_t)stream_count), "random");
  if (!*slot) {
    assert_int_equal(helio_error_take(NULL), HELIO_OUT_OF_MEMORY);
    return;
  }
  check_apart(m, *slot);
  assert_true((*slot)->place.offset + (*slot)->bytes <= (*slot)->place.buffer->bytes);
  m->in_use += (*slot)->bytes;
  m->live++;
  if (m->in_use > m->peak) m->peak = m->in_use;
}

/* Every region can be had again in one piece, without taking more. */
static void check_all_joined(hi_arena *arena) {
  hi_block *blocks[100];
  uint64_t sizes[100] = {0}, taken = info_of(arena).taken;
  int count = 0;
  for (const helio_buffer *b = fake.buffers; b; b = b->next) {
    assert_true(count < 100);
    int at = count++;
    for (; at > 0 && sizes[at - 1] < b->bytes; at--) sizes[at] = sizes[at - 1];
    sizes[at] = b->bytes; /* the largest first */
  }
  assert_int_equal(info_of(arena).largest_free, sizes[0]);
  for (int i = 0; i < count; i++) blocks[i] = get(arena, sizes[i], HI_STREAM_COMPUTE);
  assert_int_equal(info_of(arena).taken, taken);
  assert_int_equal(info_of(arena).in_use, info_of(arena).reserved);
  for (int i = 0; i < count; i++) hi_block_release(blocks[i]);
}

static void run_random(hi_arena_source source, int stream_count, uint64_t seed) {
  model m = {0};
  hi_arena *arena = make(source);
  for (int step = 0; step < STEPS; step++) {
    random_step(arena, &m, &seed, stream_count);
    if (step % 16 == 0) check_statistics(arena, &m, source.limit);
    fake.count = 0;
  }
  for (int i = 0; i < SLOTS; i++) hi_block_release(m.blocks[i]);
  if (stream_count > 1 && !source.synchronous) { /* blocks of several streams join once the device is at rest */
    assert_null(hi_arena_allocate(arena, SIZE_MAX, HI_STREAM_COMPUTE, "test"));
    assert_int_equal(helio_error_take(NULL), HELIO_OUT_OF_MEMORY);
  }
  check_all_joined(arena);
  hi_arena_destroy(arena);
}

static void test_random_steps_on_one_stream(void **state) {
  hi_arena_source source = usual();
  (void)state;
  source.limit = 64 * MIB;
  run_random(source, 1, 11);
}

static void test_random_steps_on_three_streams(void **state) {
  hi_arena_source source = usual();
  (void)state;
  source.limit = 9 * MIB; /* tight: often full, often joined */
  run_random(source, 3, 12);
}

static void test_random_steps_on_a_synchronous_device(void **state) {
  hi_arena_source source = usual();
  (void)state;
  source.limit = 9 * MIB;
  source.synchronous = true;
  run_random(source, 3, 13);
}

static void test_random_steps_with_a_failing_device(void **state) {
  hi_arena_source source = usual();
  model m = {0};
  uint64_t seed = 14;
  (void)state;
  source.limit = 64 * MIB;
  hi_arena *arena = make(source);
  for (int step = 0; step < STEPS / 4; step++) {
    fake.capacity = fake.used + next_random(&seed) % MIB;
    random_step(arena, &m, &seed, 3);
    if (step % 16 == 0) check_statistics(arena, &m, source.limit);
    fake.count = 0;
  }
  for (int i = 0; i < SLOTS; i++) hi_block_release(m.blocks[i]);
  hi_arena_destroy(arena);
}

/* ---- several threads ---- */

static void *worker(void *argument) {
  hi_arena *arena = argument;
  hi_block *blocks[16] = {NULL};
  uint64_t seed = (uint64_t)(uintptr_t)blocks;
  for (int i = 0; i < 5000; i++) {
    hi_block **slot = &blocks[next_random(&seed) % 16];
    if (*slot) hi_block_used(*slot, HI_STREAM_COPY);
    hi_block_release(*slot);
    *slot = hi_arena_allocate(arena, next_random(&seed) % 5000, HI_STREAM_COMPUTE, "worker");
  }
  for (int i = 0; i < 16; i++) hi_block_release(blocks[i]);
  return NULL;
}

static void test_four_threads(void **state) {
  hi_arena_source source = usual();
  pthread_t threads[4];
  (void)state;
  source.synchronous = true;
  hi_arena *arena = make(source);
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, worker, arena), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  assert_int_equal(info_of(arena).in_use, 0);
  assert_int_equal(info_of(arena).allocations, 0);
  check_all_joined(arena);
  hi_arena_destroy(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ARENA_TEST(test_random_steps_on_one_stream),
      ARENA_TEST(test_random_steps_on_three_streams),
      ARENA_TEST(test_random_steps_on_a_synchronous_device),
      ARENA_TEST(test_random_steps_with_a_failing_device),
      ARENA_TEST(test_four_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
