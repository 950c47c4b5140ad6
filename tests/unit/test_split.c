/* SPDX-License-Identifier: Apache-2.0 */
/* How batches are cut among replicas: every sample once, in order, as balanced as can be, by weight, or as TensorFlow
 * cuts them (tests/golden/strategy); and iterating over them. */
#include "data_files.h"
#include "pipelines.h"
#include "replica_devices.h"
#include "strategy/split.h"

/* ---- what an iteration brings ---- */

enum { MOST_STEPS = 64, MOST_ROWS = 64 };

/* A replica's samples in a step follow each other, which reading them makes sure of. */
typedef struct piece {
  int64_t first, count;
} piece;

typedef struct iteration {
  int steps, replicas;
  piece at[MOST_STEPS][MOST_REPLICAS];
} iteration;

static piece piece_of(helio_tensor *tensor) {
  int64_t values[MOST_ROWS], count = helio_tensor_elements(tensor);
  assert_true(count <= MOST_ROWS && helio_tensor_type(tensor) == HELIO_INT64);
  assert_int_equal(helio_tensor_shape(tensor).rank, 1);
  assert_ok(helio_tensor_read(tensor, values, (size_t)count * sizeof values[0]));
  for (int64_t i = 1; i < count; i++) assert_int_equal(values[i], values[0] + i);
  return (piece){count ? values[0] : -1, count};
}

/* All steps that are left. */
static void read_rest(helio_strategy *strategy, helio_distributed_iterator *iterator, iteration *all) {
  *all = (iteration){.replicas = helio_num_replicas(strategy)};
  assert_made(iterator);
  for (bool more = true; more;) {
    HELIO_POOL {
      helio_values *values = helio_next_values(iterator);
      more = values != NULL;
      assert_true(!more || all->steps < MOST_STEPS);
      for (int i = 0; more && i < all->replicas; i++) {
        all->at[all->steps][i] = piece_of(helio_values_at(values, i, 0));
      }
    }
    all->steps += more;
  }
  assert_ok(helio_error_pending());
}

static void read_all_steps(helio_strategy *strategy, helio_distributed *distributed, iteration *all) {
  assert_made(distributed);
  HELIO_POOL read_rest(strategy, helio_iterate_distributed(distributed), all);
}

/* As splits.txt has it. */
static void iteration_text(const iteration *all, char *text, size_t size) {
  size_t length = 0;
  text[0] = 0;
  for (int step = 0; step < all->steps; step++) {
    for (int i = 0; i < all->replicas; i++) {
      const piece *p = &all->at[step][i];
      const char *between = i ? " " : step ? "/" : "";
      if (p->count) {
        length += (size_t)snprintf(text + length, size - length, "%s%lld-%lld", between, (long long)p->first,
                                   (long long)(p->first + p->count - 1));
      } else {
        length += (size_t)snprintf(text + length, size - length, "%s.", between);
      }
      assert_true(length < size);
    }
  }
}

static void assert_text(const iteration *all, const char *expected) {
  char text[4096];
  iteration_text(all, text, sizeof text);
  assert_string_equal(text, expected);
}

/* ---- every sample once ---- */

static helio_strategy *strategies[MOST_REPLICAS + 1];

static int start_strategies(void **state) {
  if (set_up(state)) return -1;
  test_pool = helio_pool_enter();
  start_replica_devices();
  for (int i = 1; i <= MOST_REPLICAS; i++) {
    strategies[i] = mirrored_over(i, NULL, NULL);
    if (!strategies[i]) return -1;
  }
  return 0;
}

static int end_strategies(void **state) {
  int left = leave_pool(state);
  return tear_down(state) || left ? -1 : 0;
}

#define SPLIT_TEST(function) cmocka_unit_test_setup_teardown(function, start_strategies, end_strategies)

typedef struct cut {
  int replicas, samples, size;
  bool drop;
  helio_batch_split split;
} cut;

static helio_distributed *distributed_of(const cut *c) {
  helio_dataset *dataset = helio_dataset_batch(helio_dataset_range(c->samples), c->size, .drop_remainder = c->drop);
  return helio_distribute(strategies[c->replicas], dataset, c->split);
}

/* Sizes differ by one at most and the larger come first; or are ⌈rows ÷ replicas⌉ as long as that lasts. */
static bool sizes_are_right(const cut *c, const piece *pieces, int64_t rows) {
  int64_t share = (rows + c->replicas - 1) / c->replicas, left = rows;
  for (int i = 0; i < c->replicas; i++) {
    int64_t size = pieces[i].count;
    bool balanced = size >= rows / c->replicas && size <= share && (i == 0 || size <= pieces[i - 1].count);
    bool tensorflows = size == (left < share ? left : share);
    if (!(c->split == HELIO_SPLIT_TENSORFLOW ? tensorflows : balanced)) return false;
    left -= size;
  }
  return left == 0;
}

static void check_cut(const cut *c) {
  iteration all = {0};
  int64_t sample = 0, kept = c->drop ? c->samples / c->size * c->size : c->samples;
  HELIO_POOL {
    helio_distributed *distributed = distributed_of(c);
    read_all_steps(strategies[c->replicas], distributed, &all);
    assert_int_equal(helio_distributed_cardinality(distributed), all.steps);
  }
  assert_int_equal(all.steps, (kept + c->size - 1) / c->size);
  for (int step = 0; step < all.steps; step++) {
    int64_t rows = kept - sample < c->size ? kept - sample : c->size;
    if (!sizes_are_right(c, all.at[step], rows)) {
      fail_msg("%d samples by %d on %d replicas, step %d: wrong sizes", c->samples, c->size, c->replicas, step);
    }
    for (int i = 0; i < c->replicas; i++) {
      if (all.at[step][i].count) assert_int_equal(all.at[step][i].first, sample);
      sample += all.at[step][i].count;
    }
  }
  assert_int_equal(sample, kept);
}

static void check_all_cuts(helio_batch_split split, bool drop) {
  for (int replicas = 1; replicas <= MOST_REPLICAS; replicas++) {
    for (int size = 1; size <= 17; size++) {
      for (int samples = 0; samples <= 17; samples++) check_cut(&(cut){replicas, samples, size, drop, split});
    }
  }
}

static void each_sample_is_seen_once_in_balanced_pieces(void **state) {
  (void)state;
  check_all_cuts(HELIO_SPLIT_BALANCED, false);
}

static void each_sample_of_whole_batches_is_seen_once_in_balanced_pieces(void **state) {
  (void)state;
  check_all_cuts(HELIO_SPLIT_BALANCED, true);
}

static void each_sample_is_seen_once_in_pieces_of_tensorflow(void **state) {
  (void)state;
  check_all_cuts(HELIO_SPLIT_TENSORFLOW, false);
  check_all_cuts(HELIO_SPLIT_TENSORFLOW, true);
}

static void pieces_equal_those_of_tensorflow(void **state) {
  (void)state;
  char line[1024], kind[8], text[1024];
  int count = 0;
  FILE *file = fopen(golden_data("strategy/splits.txt"), "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    cut c = {.split = HELIO_SPLIT_TENSORFLOW};
    iteration all;
    line[strcspn(line, "\n")] = 0;
    const char *arrow = strstr(line, "=> ");
    assert_true(arrow && sscanf(line, "%d %d %d %7s", &c.replicas, &c.samples, &c.size, kind) == 4);
    assert_in_range(c.replicas, 1, MOST_REPLICAS);
    c.drop = strcmp(kind, "drop") == 0;
    HELIO_POOL read_all_steps(strategies[c.replicas], distributed_of(&c), &all);
    iteration_text(&all, text, sizeof text);
    if (strcmp(text, arrow + 3) != 0) fail_msg("%s\n  ours: %s", line, text);
    count++;
  }
  fclose(file);
  assert_int_equal(count, 5 * 18 * 9 * 2);
}

/* ---- by weight ---- */

static void assert_split(int64_t rows, const double *weights, int count, const int64_t *expected) {
  int64_t sizes[HELIO_MAX_REPLICAS];
  hi_split(HELIO_SPLIT_BALANCED, rows, weights, count, sizes);
  for (int i = 0; i < count; i++) {
    if (sizes[i] == expected[i]) continue;
    fail_msg("%lld rows: piece %d is %lld instead of %lld", (long long)rows, i, (long long)sizes[i],
             (long long)expected[i]);
  }
}

static void weights_say_how_large_pieces_are(void **state) {
  (void)state;
  const double three_to_one[] = {3, 1}, as_parts[] = {0.75, 0.25}, none_for_one[] = {1, 0, 1}, thirds[] = {1, 1, 1};
  const int64_t expected[][2] = {{0, 0}, {1, 0}, {2, 0}, {2, 1}, {3, 1},  {4, 1},  {5, 1},  {5, 2},  {6, 2},
                                 {7, 2}, {8, 2}, {8, 3}, {9, 3}, {10, 3}, {11, 3}, {11, 4}, {12, 4}, {13, 4}};
  for (size_t rows = 0; rows < COUNT_OF(expected); rows++) {
    assert_split((int64_t)rows, three_to_one, 2, expected[rows]);
    assert_split((int64_t)rows, as_parts, 2, expected[rows]);
  }
  assert_split(5, none_for_one, 3, (int64_t[]){3, 0, 2});
  assert_split(1, none_for_one, 3, (int64_t[]){1, 0, 0});
  assert_split(4, thirds, 3, (int64_t[]){2, 1, 1});
  assert_split(INT64_C(1) << 40, thirds, 3, (int64_t[]){366503875926, 366503875925, 366503875925});
}

/* Whatever the weights, no piece is further than one row from its exact share, and nothing is lost. */
static void weighted_pieces_are_near_their_shares(void **state) {
  (void)state;
  uint64_t seed = 5;
  for (int i = 0; i < 20000; i++) {
    int count = 1 + (int)(next_random(&seed) % 8);
    int64_t rows = next_random(&seed) % (i % 2 ? 20 : 1000000), sizes[HELIO_MAX_REPLICAS], sum = 0;
    double weights[HELIO_MAX_REPLICAS], total = 0;
    for (int k = 0; k < count; k++) total += weights[k] = next_random(&seed) % 100 / (i % 3 ? 1.0 : 7.0) + (k == 0);
    hi_split(HELIO_SPLIT_BALANCED, rows, weights, count, sizes);
    for (int k = 0; k < count; k++) {
      double share = (double)rows * weights[k] / total, off = (double)sizes[k] - share;
      assert_true(off < 1 + 1e-9 && off > -1 - 1e-9 && sizes[k] >= 0 && (weights[k] > 0 || sizes[k] == 0));
      sum += sizes[k];
    }
    assert_int_equal(sum, rows);
  }
}

static void a_strategy_cuts_by_its_weights(void **state) {
  (void)state;
  iteration all;
  helio_strategy *strategy = mirrored_over(2, (double[]){3, 1}, NULL);
  assert_made(strategy);
  helio_dataset *dataset = helio_dataset_batch(helio_dataset_range(21), 8);
  read_all_steps(strategy, helio_distribute(strategy, dataset), &all);
  assert_text(&all, "0-5 6-7/8-13 14-15/16-19 20-20");
  read_all_steps(strategy, helio_distribute(strategy, dataset, HELIO_SPLIT_TENSORFLOW), &all);
  assert_text(&all, "0-3 4-7/8-11 12-15/16-18 19-20");
}

/* ---- what the replicas are told ---- */

typedef struct told {
  helio_replica replica;
  int64_t rows[2]; /* of each part */
  int parts;
} told;

static helio_status note_replica(void *argument, const helio_element *inputs, helio_element *outputs) {
  const helio_replica *here = helio_replica_context();
  told *mine = &((told *)argument)[here->id];
  (void)outputs;
  *mine = (told){.replica = *here, .parts = inputs->count};
  for (int i = 0; i < inputs->count; i++) mine->rows[i] = helio_tensor_shape(inputs->part[i]).extent[0];
  return HELIO_OK;
}

static void assert_told(helio_strategy *strategy, helio_values *values, const int64_t *sizes) {
  told all[MOST_REPLICAS];
  int64_t first = 0, rows = 0;
  int count = helio_num_replicas(strategy);
  assert_made(helio_run(strategy, note_replica, all, values));
  for (int i = 0; i < count; i++) rows += sizes[i];
  for (int i = 0; i < count; i++) {
    assert_int_equal(all[i].parts, helio_values_parts(values));
    for (int part = 0; part < all[i].parts; part++) assert_int_equal(all[i].rows[part], sizes[i]);
    assert_int_equal(all[i].replica.first_row, first);
    assert_int_equal(all[i].replica.global_rows, rows);
    assert_int_equal(all[i].replica.count, count);
    assert_string_equal(all[i].replica.device, helio_strategy_device(strategy, i));
    first += sizes[i];
  }
}

static void replicas_know_where_their_rows_stand(void **state) {
  (void)state;
  const int64_t sizes[][3] = {{3, 2, 2}, {3, 2, 2}, {1, 1, 0}};
  helio_strategy *strategy = strategies[3];
  helio_distributed_iterator *iterator =
      helio_iterate_distributed(helio_distribute(strategy, helio_dataset_batch(sliced_dataset(16), 7)));
  for (int step = 0; step < 3; step++) {
    helio_values *values = helio_next_values(iterator);
    assert_made(values);
    assert_told(strategy, values, sizes[step]);
    helio_values *labels = helio_values_part(values, 1);
    assert_told(strategy, labels, sizes[step]);
    assert_told(strategy, helio_values_join((helio_values *[]){labels, helio_values_part(values, 0)}, 2), sizes[step]);
  }
  assert_null(helio_next_values(iterator));
  assert_ok(helio_error_pending());
}

/* Each piece is on its replica's device, and an empty one has the shape and type of the others. */
static void empty_batches_have_the_shape_of_full_ones(void **state) {
  (void)state;
  helio_strategy *strategy = strategies[5];
  for (int split = HELIO_SPLIT_BALANCED; split <= HELIO_SPLIT_TENSORFLOW; split++) {
    helio_distributed *distributed =
        helio_distribute(strategy, helio_dataset_batch(sliced_dataset(2), 7), (helio_batch_split)split);
    helio_values *values = helio_next_values(helio_iterate_distributed(distributed));
    assert_made(values);
    for (int i = 0; i < 5; i++) {
      helio_tensor *x = helio_values_at(values, i, 0), *y = helio_values_at(values, i, 1);
      assert_string_equal(helio_tensor_device(x), helio_strategy_device(strategy, i));
      assert_int_equal(helio_tensor_type(x), HELIO_INT64);
      assert_int_equal(helio_tensor_shape(x).rank, 3);
      assert_int_equal(helio_tensor_shape(x).extent[0], i < 2);
      assert_int_equal(helio_tensor_shape(x).extent[1], 2);
      assert_int_equal(helio_tensor_shape(x).extent[2], 3);
      assert_int_equal(helio_tensor_shape(y).extent[0], i < 2);
    }
  }
}

static void a_batch_of_no_rows_reaches_all(void **state) {
  (void)state;
  helio_array *none = helio_array_of((int64_t[]){0}, HELIO_SHAPE(0, 3), .type = HELIO_INT64);
  for (int replicas = 1; replicas <= MOST_REPLICAS; replicas++) {
    for (int split = HELIO_SPLIT_BALANCED; split <= HELIO_SPLIT_TENSORFLOW; split++) {
      helio_dataset *dataset = helio_dataset_from_tensors(none);
      helio_distributed_iterator *iterator = helio_iterate_distributed(
          helio_distribute(strategies[replicas], dataset, (helio_batch_split)split, HELIO_NONE));
      helio_values *values = helio_next_values(iterator);
      assert_made(values);
      assert_told(strategies[replicas], values, (int64_t[MOST_REPLICAS]){0});
      assert_null(helio_next_values(iterator));
    }
  }
}

/* ---- a dataset for each replica ---- */

typedef struct lengths {
  int64_t samples[MOST_REPLICAS];
  int size;
  int calls;
} lengths;

static helio_dataset *dataset_of_replica(void *argument, int replica, int replicas) {
  lengths *l = argument;
  (void)replicas;
  l->calls++;
  return helio_dataset_batch(
      helio_dataset_skip(helio_dataset_range(100 * replica + l->samples[replica]), 100 * replica), l->size);
}

static void each_replica_may_have_a_dataset_of_its_own(void **state) {
  (void)state;
  static const struct {
    int replicas;
    lengths lengths;
    int64_t cardinality;
    const char *expected;
  } cases[] = {
      {1, {{5}, 2, 0}, 3, "0-1/2-3/4-4"},
      {2, {{4, 4}, 2, 0}, 2, "0-1 100-101/2-3 102-103"},
      {2, {{5, 2}, 2, 0}, 3, "0-1 100-101/2-3 ./4-4 ."},
      {3, {{1, 5, 3}, 2, 0}, 3, "0-0 100-101 200-201/. 102-103 202-202/. 104-104 ."},
      {3, {{0, 3, 0}, 2, 0}, 2, ". 100-101 ./. 102-102 ."},
      {3, {{0, 0, 0}, 2, 0}, 0, ""},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    iteration all;
    lengths l = cases[i].lengths;
    helio_strategy *strategy = strategies[cases[i].replicas];
    helio_distributed *distributed = helio_distribute_from_function(strategy, dataset_of_replica, &l);
    assert_made(distributed);
    assert_int_equal(l.calls, cases[i].replicas);
    assert_int_equal(helio_distributed_cardinality(distributed), cases[i].cardinality);
    for (int epoch = 0; epoch < 2; epoch++) {
      read_all_steps(strategy, distributed, &all);
      assert_text(&all, cases[i].expected);
    }
  }
}

static void rows_of_own_datasets_are_counted_in_the_order_of_replicas(void **state) {
  (void)state;
  lengths l = {{1, 5, 3}, 2, 0};
  helio_strategy *strategy = strategies[3];
  helio_distributed_iterator *iterator =
      helio_iterate_distributed(helio_distribute_from_function(strategy, dataset_of_replica, &l));
  const int64_t sizes[][3] = {{1, 2, 2}, {0, 2, 1}, {0, 1, 0}};
  for (int i = 0; i < 3; i++) assert_told(strategy, helio_next_values(iterator), sizes[i]);
  assert_null(helio_next_values(iterator));
}

static helio_dataset *no_dataset(void *argument, int replica, int replicas) {
  (void)argument, (void)replicas;
  return replica == 1 ? NULL : helio_dataset_batch(helio_dataset_range(3), 2);
}

static helio_dataset *dataset_of_other_parts(void *argument, int replica, int replicas) {
  (void)argument, (void)replicas;
  return helio_dataset_batch(replica ? sliced_dataset(4) : helio_dataset_range(4), 2);
}

static void what_a_function_gives_is_checked(void **state) {
  (void)state;
  assert_null(helio_distribute_from_function(strategies[3], no_dataset, NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "NULL");
  assert_null(helio_distribute_from_function(strategies[3], NULL, NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "the function is NULL");
  helio_distributed_iterator *iterator =
      helio_iterate_distributed(helio_distribute_from_function(strategies[3], dataset_of_other_parts, NULL));
  assert_null(helio_next_values(iterator));
  expect_error(HELIO_INVALID_ARGUMENT, "the elements of replica 1 have 2 parts, those of replica 0 have 1");
}

/* ---- pipelines, prefetching and positions ---- */

static const char *const endings[] = {"batch 4",
                                      "batch 4, prefetch 2",
                                      "batch 4, prefetch -1",
                                      "batch 4, map",
                                      "batch 4, map_parallel 2",
                                      "batch 4, cache",
                                      "batch 4, map, prefetch 1",
                                      "batch 4, map, cache, prefetch 2",
                                      "map, batch 4",
                                      "cache, batch 4, repeat 2",
                                      "map, cache, batch 4, repeat 2",
                                      "batch 4, repeat 2",
                                      "batch 4, take 2",
                                      "batch 4, skip 1",
                                      "shuffle 5 3, batch 4, cache, repeat 2",
                                      "batch 4, shard 2 1",
                                      "padded 4",
                                      "padded_drop 4"};

/* The replicas' pieces, put together again, are the batches that one iterator brings. */
static char *joined_text(helio_strategy *strategy, helio_distributed_iterator *iterator) {
  char *text = NULL, one[ELEMENT_TEXT];
  size_t bytes;
  int count = 0;
  FILE *out = open_memstream(&text, &bytes);
  for (bool more = true; more; count++) {
    HELIO_POOL {
      helio_values *values = helio_next_values(iterator);
      helio_element element = {.count = helio_values_parts(values)};
      more = values != NULL;
      for (int i = 0; i < element.count; i++) {
        element.part[i] = helio_gather(strategy, helio_values_part(values, i), 0);
        assert_made(element.part[i]);
      }
      if (more) element_text(&element, one);
      if (more) fprintf(out, "%s%s", count ? " " : "", one);
    }
  }
  assert_ok(helio_error_pending());
  fclose(out);
  return text;
}

static void assert_same_batches(const char *pipeline, int replicas, int prefetch) {
  HELIO_POOL {
    helio_dataset *dataset = build_pipeline(pipeline);
    helio_strategy *strategy = strategies[replicas];
    for (int epoch = 0; epoch < 2; epoch++) {
      HELIO_POOL {
        helio_dataset *plain = strstr(pipeline, "shuffle") ? build_pipeline(pipeline) : dataset;
        if (plain != dataset && epoch) free(rest_text(helio_iterate(plain), LIMIT));
        char *expected = rest_text(helio_iterate(plain), LIMIT);
        helio_distributed *distributed = helio_distribute(strategy, dataset, .prefetch = prefetch);
        char *text = joined_text(strategy, helio_iterate_distributed(distributed));
        if (strcmp(text, expected) != 0) fail_msg("%s:\n  expected %s\n  found    %s", pipeline, expected, text);
        free(text);
        free(expected);
      }
    }
  }
}

static void datasets_may_end_in_anything(void **state) {
  (void)state;
  const int replicas[] = {1, 3, 5}, prefetch[] = {HELIO_NONE, 0, 1, 7};
  const char *const sources[] = {"range 11", "gen 11", "slices 11"};
  for (size_t i = 0; i < COUNT_OF(endings); i++) {
    for (size_t k = 0; k < COUNT_OF(sources); k++) {
      char pipeline[200];
      snprintf(pipeline, sizeof pipeline, "%s, %s", sources[k], endings[i]);
      assert_same_batches(pipeline, replicas[(i + k) % 3], prefetch[(i / 2 + k) % 4]);
    }
  }
}

/* A position is that of the dataset: another number of replicas goes on with it. */
static void check_position(const char *pipeline, int replicas, int stop, int others) {
  HELIO_POOL {
    helio_dataset *dataset = build_pipeline(pipeline);
    helio_distributed_iterator *iterator =
        helio_iterate_distributed(helio_distribute(strategies[replicas], dataset, .prefetch = stop % 2 ? 0 : 3));
    for (int i = 0; i < stop; i++) assert_made(helio_next_values(iterator));
    char *position = helio_distributed_position(iterator);
    assert_made(position);
    char *expected = joined_text(strategies[replicas], iterator);
    helio_distributed_iterator *other = helio_iterate_distributed(
        helio_distribute(strategies[others], build_pipeline(pipeline), .prefetch = HELIO_NONE));
    assert_made(helio_next_values(other));
    assert_ok(helio_distributed_restore(other, position));
    char *text = joined_text(strategies[others], other);
    if (strcmp(text, expected) != 0) {
      fail_msg("%s, %d steps on %d, then on %d replicas:\n  expected %s\n  found    %s", pipeline, stop, replicas,
               others, expected, text);
    }
    free(text);
    free(expected);
    free(position);
  }
}

static void a_position_holds_for_any_number_of_replicas(void **state) {
  (void)state;
  const char *const pipelines[] = {"range 23, shuffle 23 5, batch 4", "gen 23, shuffle 7 5, batch 4, repeat 2",
                                   "slices 23, shuffle 23 5, batch 4, map, prefetch 2",
                                   "range 23, shuffle 23 5, batch 4, cache, repeat 2"};
  for (size_t i = 0; i < COUNT_OF(pipelines); i++) {
    for (int stop = 0; stop <= 5; stop += 1 + (int)i % 2) {
      check_position(pipelines[i], 1 + stop % 5, stop, 1 + (stop + 2) % 5);
      check_position(pipelines[i], 3, stop, 3);
    }
  }
}

static void a_position_holds_for_own_datasets(void **state) {
  (void)state;
  helio_strategy *strategy = strategies[3];
  for (int stop = 0; stop <= 4; stop++) {
    iteration expected, found;
    lengths l = {{1, 7, 3}, 2, 0};
    helio_distributed_iterator *iterator =
        helio_iterate_distributed(helio_distribute_from_function(strategy, dataset_of_replica, &l));
    for (int i = 0; i < stop; i++) assert_made(helio_next_values(iterator));
    char *position = helio_distributed_position(iterator);
    read_rest(strategy, iterator, &expected);
    assert_int_equal(expected.steps, 4 - stop);
    helio_distributed_iterator *other =
        helio_iterate_distributed(helio_distribute_from_function(strategy, dataset_of_replica, &l));
    assert_ok(helio_distributed_restore(other, position));
    read_rest(strategy, other, &found);
    assert_memory_equal(&found, &expected, sizeof found);
    free(position);
  }
}

static void a_position_of_another_dataset_is_refused(void **state) {
  (void)state;
  helio_distributed_iterator *one =
      helio_iterate_distributed(helio_distribute(strategies[2], helio_dataset_batch(helio_dataset_range(9), 2)));
  helio_distributed_iterator *other =
      helio_iterate_distributed(helio_distribute(strategies[2], helio_dataset_batch(helio_dataset_range(9), 3)));
  assert_made(helio_next_values(one));
  char *position = helio_distributed_position(one);
  assert_made(position);
  assert_int_equal(helio_distributed_restore(other, position), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "made in another way");
  iteration all;
  read_rest(strategies[2], other, &all);
  assert_text(&all, "0-1 2-2/3-4 5-5/6-7 8-8");
  free(position);
}

/* ---- what is refused ---- */

static void an_unbatched_dataset_cannot_be_cut(void **state) {
  (void)state;
  for (int prefetch = HELIO_NONE; prefetch <= 1; prefetch++) {
    helio_distributed *distributed = helio_distribute(strategies[3], helio_dataset_range(6), .prefetch = prefetch);
    helio_distributed_iterator *iterator = helio_iterate_distributed(distributed);
    for (int i = 0; i < 2; i++) {
      assert_null(helio_next_values(iterator));
      expect_error(HELIO_INVALID_ARGUMENT, "Call helio_dataset_batch() on the dataset in order to be able to split it "
                                           "across 3 replicas: ");
    }
  }
}

static helio_status take_next(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)inputs, (void)outputs;
  helio_next_values(argument);
  return helio_error_pending();
}

static void a_step_does_not_take_its_batch(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 2; replicas++) {
    iteration all;
    helio_strategy *strategy = strategies[replicas];
    helio_distributed_iterator *iterator =
        helio_iterate_distributed(helio_distribute(strategy, helio_dataset_batch(helio_dataset_range(3), 2)));
    assert_null(helio_run(strategy, take_next, iterator));
    expect_error(HELIO_WRONG_STATE, "helio_next_values() should be called from outside of the step");
    read_rest(strategy, iterator, &all); /* nothing was taken */
    assert_int_equal(all.steps, 2);
  }
}

static void wrong_arguments_are_refused(void **state) {
  (void)state;
  helio_dataset *dataset = helio_dataset_batch(helio_dataset_range(3), 2);
  assert_null(helio_distribute(NULL, dataset));
  expect_error(HELIO_INVALID_ARGUMENT, "the strategy is NULL");
  assert_null(helio_distribute(strategies[2], NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "dataset is NULL");
  assert_null(helio_distribute(strategies[2], dataset, (helio_batch_split)3));
  expect_error(HELIO_INVALID_ARGUMENT, "3 is not a split");
  assert_null(helio_distribute(strategies[2], dataset, .prefetch = -2));
  expect_error(HELIO_INVALID_ARGUMENT, "prefetch is -2");
  assert_null(helio_iterate_distributed(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "the distributed dataset is NULL");
  assert_null(helio_next_values(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "the iterator is NULL");
  assert_int_equal(helio_distributed_cardinality(NULL), HELIO_UNKNOWN);
  expect_error(HELIO_INVALID_ARGUMENT, "the distributed dataset is NULL");
  assert_null(mirrored_over(2, (double[]){3, -1}, NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "weight 1 is -1");
}

/* A dataset may be infinite, and an iterator that is left in the middle ends its threads. */
static void an_endless_dataset_is_distributed(void **state) {
  (void)state;
  int threads = thread_count(-1);
  HELIO_POOL {
    helio_dataset *dataset = helio_dataset_batch(helio_dataset_repeat(helio_dataset_range(4), -1), 3);
    helio_distributed *distributed = helio_distribute(strategies[2], dataset);
    assert_int_equal(helio_distributed_cardinality(distributed), HELIO_INFINITE);
    helio_distributed_iterator *iterator = helio_iterate_distributed(distributed);
    for (int i = 0; i < 50; i++) {
      HELIO_POOL assert_made(helio_next_values(iterator));
    }
  }
  assert_int_equal(thread_count(threads), threads);
}

/* Strategies of one device, the default one among them, cut nothing. */
static void one_replica_gets_all(void **state) {
  (void)state;
  helio_strategy *all_of_one[] = {helio_strategy_current(), helio_one_device(device_name())};
  for (int i = 0; i < 2; i++) {
    iteration all;
    assert_made(all_of_one[i]);
    helio_dataset *dataset = helio_dataset_batch(helio_dataset_range(7), 3);
    read_all_steps(all_of_one[i], helio_distribute(all_of_one[i], dataset), &all);
    assert_text(&all, "0-2/3-5/6-6");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SPLIT_TEST(each_sample_is_seen_once_in_balanced_pieces),
      SPLIT_TEST(each_sample_of_whole_batches_is_seen_once_in_balanced_pieces),
      SPLIT_TEST(each_sample_is_seen_once_in_pieces_of_tensorflow),
      SPLIT_TEST(pieces_equal_those_of_tensorflow),
      SPLIT_TEST(weights_say_how_large_pieces_are),
      SPLIT_TEST(weighted_pieces_are_near_their_shares),
      SPLIT_TEST(a_strategy_cuts_by_its_weights),
      SPLIT_TEST(replicas_know_where_their_rows_stand),
      SPLIT_TEST(empty_batches_have_the_shape_of_full_ones),
      SPLIT_TEST(a_batch_of_no_rows_reaches_all),
      SPLIT_TEST(each_replica_may_have_a_dataset_of_its_own),
      SPLIT_TEST(rows_of_own_datasets_are_counted_in_the_order_of_replicas),
      SPLIT_TEST(what_a_function_gives_is_checked),
      SPLIT_TEST(datasets_may_end_in_anything),
      SPLIT_TEST(a_position_holds_for_any_number_of_replicas),
      SPLIT_TEST(a_position_holds_for_own_datasets),
      SPLIT_TEST(a_position_of_another_dataset_is_refused),
      SPLIT_TEST(an_unbatched_dataset_cannot_be_cut),
      SPLIT_TEST(a_step_does_not_take_its_batch),
      SPLIT_TEST(wrong_arguments_are_refused),
      SPLIT_TEST(an_endless_dataset_is_distributed),
      SPLIT_TEST(one_replica_gets_all),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
