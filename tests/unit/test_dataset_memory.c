/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines in which one allocation after the other fails: each time the error says so, and nothing is left over. The
 * linker hands the core's allocations to the functions below. */
#include <stdatomic.h>

#include "pipelines.h"

static atomic_long until_failure = -1; /* allocations that still succeed; negative: all do */

static bool fails(void) {
  if (atomic_load_explicit(&until_failure, memory_order_relaxed) < 0) return false;
  return atomic_fetch_sub(&until_failure, 1) == 0;
}

/* Only one allocation fails: what was waiting for it must not be all that is tried. */
#define WRAPPED(result, name, parameters, arguments)                                                                   \
  result __real_##name parameters;                                                                                     \
  result __wrap_##name parameters;                                                                                     \
  result __wrap_##name parameters {                                                                                    \
    return fails() ? NULL : __real_##name arguments;                                                                   \
  }
WRAPPED(void *, malloc, (size_t bytes), (bytes))
WRAPPED(void *, calloc, (size_t count, size_t bytes), (count, bytes))
WRAPPED(void *, realloc, (void *memory, size_t bytes), (memory, bytes))
WRAPPED(void *, aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes))

static const char *const pipelines[] = {
    "range 9, shuffle 9 1, repeat 2, batch 4",          "slices 9, slices 5, zip 2, batch 4, cache, repeat 2",
    "slices 9, slices 5, concat, shuffle 4 1, batch 4", "range 9, map, shuffle 4 1, batch 4, prefetch 2",
    "range 9, map_parallel 2, cache, repeat 2",
};

/* Whole iterations and a restored one; false, with the error taken, if something failed. */
static bool run_through(helio_dataset *dataset) {
  bool well = true;
  HELIO_POOL {
    helio_iterator *iterator = helio_iterate(dataset);
    helio_element element;
    int count = 0;
    while (count < 3 && helio_next(iterator, &element)) count++;
    char *position = iterator ? helio_iterator_position(iterator) : NULL;
    helio_iterator *other = helio_iterate(dataset);
    if (position && other) helio_iterator_restore(other, position);
    while (!helio_error_pending() && helio_next(other, &element)) count++;
    free(position);
    helio_status status = helio_error_take(NULL);
    well = !status;
    if (status && status != HELIO_OUT_OF_MEMORY) fail_msg("status %s", helio_status_name(status));
  }
  return well;
}

static void check_pipeline(const char *pipeline) {
  int failures = 0;
  HELIO_POOL {
    helio_dataset *dataset = build_pipeline(pipeline);
    assert_true(run_through(dataset));
  }
  for (long n = 0;; n++) {
    bool well = false, reached = false;
    HELIO_POOL {
      helio_dataset *dataset = build_pipeline(pipeline);
      atomic_store(&until_failure, n);
      well = run_through(dataset);
      reached = atomic_exchange(&until_failure, -1) < 0;
      failures += !well;
      assert_true(run_through(dataset)); /* and it works again */
    }
    if (!reached) {
      assert_true(well);
      break;
    }
    assert_true(n < 100000);
  }
  if (failures < 10) fail_msg("%s: %d allocations failed", pipeline, failures);
}

static void a_failing_allocation_is_an_error_and_no_more(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(pipelines); i++) check_pipeline(pipelines[i]);
}

static void making_datasets_may_fail(void **state) {
  (void)state;
  for (long n = 0;; n++) {
    bool reached = false;
    HELIO_POOL {
      helio_dataset *range = helio_dataset_range(9), *both[] = {range, range};
      atomic_store(&until_failure, n);
      helio_dataset *last = helio_dataset_prefetch(
          helio_dataset_cache(helio_dataset_map(
              helio_dataset_padded_batch(
                  helio_dataset_shuffle(
                      helio_dataset_repeat(
                          helio_dataset_shard(
                              helio_dataset_concatenate(helio_dataset_zip(both, 2), helio_dataset_zip(both, 2)), 2, 1),
                          2),
                      5),
                  3),
              twice_and_one)),
          2);
      reached = atomic_exchange(&until_failure, -1) < 0;
      assert_int_equal(last == NULL, reached);
      if (reached) expect_error(HELIO_OUT_OF_MEMORY, "no memory");
    }
    if (!reached) {
      assert_true(n > 10); /* so many datasets */
      break;
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      POOL_TEST(a_failing_allocation_is_an_error_and_no_more),
      POOL_TEST(making_datasets_may_fail),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, start_afresh, start_afresh);
}
