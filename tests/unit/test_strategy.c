/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, steps and meetings. Which context allows what is as TensorFlow 2.21 has it. */
#include <time.h>

#include "replicas.h"

/* ---- contexts ---- */

static bool is_outside(void) {
  const helio_replica *replica = helio_replica_context();
  return replica && replica->strategy == helio_strategy_current() && replica->count == 1 && replica->id == 0 &&
         helio_replica_id() == 0 && !helio_in_cross_replica_context() &&
         strcmp(helio_strategy_name(replica->strategy), "DefaultStrategy") == 0;
}

static bool is_across(const helio_strategy *strategy) {
  return helio_strategy_current() == strategy && !helio_replica_context() && helio_in_cross_replica_context();
}

static void *look_from_another_thread(void *outside) {
  *(bool *)outside = is_outside();
  return NULL;
}

static int leave_by_return(helio_strategy *strategy) {
  HELIO_SCOPE(strategy) {
    HELIO_SCOPE(strategy) return is_across(strategy);
  }
  return -1;
}

static void a_scope_is_the_cross_replica_context_of_its_thread(void **state) {
  (void)state;
  pthread_t thread;
  bool other_is_outside = false;
  helio_strategy *two = mirror(2), *one = helio_one_device(nth_device(1)), *none = helio_strategy_current();
  assert_true(is_outside());
  HELIO_SCOPE(two) {
    assert_true(is_across(two));
    assert_int_equal(pthread_create(&thread, NULL, look_from_another_thread, &other_is_outside), 0);
    pthread_join(thread, NULL);
    assert_true(other_is_outside);
    assert_int_equal(helio_replica_id(), -1);
    expect_error(HELIO_WRONG_STATE, "Need to be inside `helio_run()`");
    HELIO_SCOPE(two) {
      assert_true(is_across(two));
    }
    assert_true(is_across(two));
    HELIO_SCOPE(one) {
      assert_int_equal(helio_error_pending(), HELIO_WRONG_STATE);
    }
    expect_error(HELIO_WRONG_STATE, "Mixing different helio_strategy objects: <MirroredStrategy at ");
    HELIO_SCOPE(none) {
      assert_int_equal(helio_error_pending(), HELIO_WRONG_STATE);
    }
    expect_error(HELIO_WRONG_STATE, "Must not nest helio_strategy scopes");
    assert_true(is_across(two));
    break;
  }
  assert_true(is_outside());
  HELIO_SCOPE(none) {
    assert_true(is_outside());
  }
  assert_int_equal(leave_by_return(two), 1);
  assert_true(is_outside());
  HELIO_SCOPE(one) {
    assert_string_equal(helio_tensor_device(FLOATS(1)), nth_device_in_full(1));
  }
}

/* ---- what a step sees ---- */

static helio_status look_around(void *argument, const helio_element *inputs, helio_element *outputs) {
  helio_strategy *strategy = argument;
  const helio_replica *here = helio_replica_context();
  bool right = here && helio_strategy_current() == strategy && !helio_in_cross_replica_context() &&
               inputs->count == 0 && here->strategy == strategy && here->id == helio_replica_id() &&
               here->count == helio_num_replicas(strategy) && here->first_row == -1 && here->global_rows == -1 &&
               strcmp(here->device, helio_strategy_device(strategy, here->id)) == 0;
  give(outputs, number(here->id));
  right = right && strcmp(helio_tensor_device(outputs->part[0]), here->device) == 0;
  return give(outputs, number(right));
}

static void each_replica_knows_itself_and_its_device(void **state) {
  (void)state;
  helio_strategy *strategies[] = {mirror(5), mirror(2), helio_one_device(nth_device(1)), helio_strategy_current()};
  for (size_t i = 0; i < COUNT_OF(strategies); i++) {
    helio_values *found = helio_run(strategies[i], look_around, strategies[i]);
    assert_made(found);
    for (int k = 0; k < helio_num_replicas(strategies[i]); k++) {
      expect_numbers(helio_values_at(found, k, 0), k);
      expect_numbers(helio_values_at(found, k, 1), 1);
    }
    HELIO_SCOPE(strategies[i]) {
      assert_made(helio_run(strategies[i], look_around, strategies[i]));
    }
  }
}

static helio_status give_argument(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)inputs;
  return give(outputs, argument);
}

static helio_status give_nothing(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)argument, (void)inputs, (void)outputs;
  return HELIO_OK;
}

static helio_status give_as_many_as_its_id(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)argument, (void)inputs;
  for (int i = 0; i < helio_replica_id(); i++) give(outputs, number(i));
  return HELIO_OK;
}

static void what_a_step_returns(void **state) {
  (void)state;
  int count = 0;
  helio_strategy *two = mirror(2);
  helio_values *ids = helio_run(two, look_around, two), *same = helio_run(two, give_argument, number(2));
  helio_values *nothing = helio_run(two, give_nothing);
  helio_tensor *const *list = helio_local_results(two, helio_values_part(ids, 0), &count);
  assert_int_equal(count, 2);
  expect_numbers(list[0], 0);
  expect_numbers(list[1], 1);
  list = helio_local_results(two, same, &count);
  assert_int_equal(count, 1); /* one value of all, not two that are equal */
  expect_numbers(list[0], 2);
  assert_made(nothing);
  assert_int_equal(helio_values_parts(nothing), 0);
  assert_null(helio_run(two, give_as_many_as_its_id));
  expect_error(HELIO_INVALID_ARGUMENT, "replica 0 gave 0 outputs and replica 1 gave 1");
  assert_null(helio_run(two, NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "the step is NULL");
}

/* ---- what a step is given ---- */

static helio_status sums_and_places(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)argument;
  for (int i = 0; i < inputs->count; i++) give(outputs, helio_sum(inputs->part[i]));
  give(outputs, number((double)helio_replica_context()->first_row));
  return give(outputs, number((double)helio_replica_context()->global_rows));
}

static helio_status twice(void *argument, helio_element *element) {
  (void)argument;
  element->part[1] = helio_add(element->part[0], element->part[0]);
  element->count = 2;
  return HELIO_OK;
}

/* An element of a distributed dataset, taken apart outside, exchanged and given together with others. */
static void each_replica_gets_its_own_part_of_the_inputs(void **state) {
  (void)state;
  helio_strategy *two = mirror(2);
  helio_dataset *dataset = helio_dataset_batch(helio_dataset_map(helio_dataset_range(5), twice, NULL), 5);
  helio_values *batch = helio_next_values(helio_iterate_distributed(helio_distribute(two, dataset)));
  assert_made(batch);
  assert_int_equal(helio_values_parts(batch), 2);
  helio_values *own = helio_values_of(two, (helio_tensor *[]){number(10), number(20)}, 2);
  helio_values *parts[] = {helio_values_part(batch, 1), own, helio_values_part(batch, 0),
                           helio_values_same(two, FLOATS(1, 2))};
  helio_values *found = helio_run(two, sums_and_places, NULL, helio_values_join(parts, 4));
  assert_made(found);
  static const double expected[2][6] = {{6, 10, 3, 3, 0, 5}, {14, 20, 7, 3, 3, 5}};
  for (int replica = 0; replica < 2; replica++) {
    for (int part = 0; part < 6; part++) expect_numbers(helio_values_at(found, replica, part), expected[replica][part]);
  }
  assert_null(helio_run(mirror(3), sums_and_places, NULL, batch));
  expect_error(HELIO_INVALID_ARGUMENT, "another strategy's");
  assert_null(helio_values_at(batch, 2, 0));
  expect_error(HELIO_INVALID_ARGUMENT, "there is no part 0 of replica 2");
  assert_null(helio_values_part(batch, 2));
  expect_error(HELIO_INVALID_ARGUMENT, "there is no part 2");
}

/* ---- at the same time ---- */

static helio_status wait_for_the_other(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)inputs, (void)outputs;
  pthread_barrier_wait(argument);
  return HELIO_OK;
}

/* One after another they would wait for ever. */
static void replicas_run_at_the_same_time(void **state) {
  (void)state;
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, NULL, 2);
  assert_made(helio_run(mirror(2), wait_for_the_other, &barrier));
  pthread_barrier_destroy(&barrier);
}

typedef struct attempt {
  helio_strategy *strategy;
  pthread_barrier_t begun, ends;
  bool succeeded;
} attempt;

/* Its group of devices fails and would be made anew for another step, but not under its feet. */
static helio_status begin_and_end(void *argument, const helio_element *inputs, helio_element *outputs) {
  attempt *a = argument;
  (void)inputs, (void)outputs;
  helio_all_reduce(HELIO_SUM, helio_fill(HELIO_SHAPE(2), 1, .type = HELIO_BOOL));
  bool failed = helio_error_take(NULL);
  pthread_barrier_wait(&a->begun);
  pthread_barrier_wait(&a->ends);
  helio_all_reduce(HELIO_SUM, number(1));
  return helio_error_take(NULL) && failed ? HELIO_OK : HELIO_BAD_DATA;
}

static void *run_from_a_thread(void *argument) {
  attempt *a = argument;
  a->succeeded = helio_run(a->strategy, begin_and_end, a);
  helio_error_take(NULL);
  return NULL;
}

static void a_strategy_does_one_step_at_a_time(void **state) {
  (void)state;
  pthread_t thread;
  helio_error error;
  helio_strategy *two = mirror(2), *other = helio_mirrored(.devices = {nth_device(2), nth_device(3)});
  attempt a = {.strategy = two};
  pthread_barrier_init(&a.begun, NULL, 3); /* both replicas and this thread */
  pthread_barrier_init(&a.ends, NULL, 3);
  assert_int_equal(pthread_create(&thread, NULL, run_from_a_thread, &a), 0);
  pthread_barrier_wait(&a.begun);
  bool twice_at_once = helio_run(two, give_nothing);
  helio_error_take(&error);
  bool other_runs = helio_run(other, give_nothing);
  pthread_barrier_wait(&a.ends);
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&a.begun);
  pthread_barrier_destroy(&a.ends);
  assert_false(twice_at_once);
  assert_int_equal(error.status, HELIO_WRONG_STATE);
  assert_non_null(strstr(error.message, "helio_run() is under way on this strategy"));
  assert_true(other_runs);
  assert_true(a.succeeded);
  assert_made(helio_run(two, give_nothing));
}

/* ---- what a step may not do ---- */

typedef struct attempted {
  helio_strategy *own, *other;
  helio_distributed_iterator *batches;
} attempted;

static helio_status run_inside(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)inputs, (void)outputs;
  return helio_run(((attempted *)argument)->own, give_nothing) ? HELIO_OK : helio_error_pending();
}

static helio_status run_other_inside(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)inputs, (void)outputs;
  return helio_run(((attempted *)argument)->other, give_nothing) ? HELIO_OK : helio_error_pending();
}

static helio_status scope_inside(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)inputs, (void)outputs;
  HELIO_SCOPE(((attempted *)argument)->own) {}
  return HELIO_OK;
}

static helio_status reduce_inside(void *argument, const helio_element *inputs, helio_element *outputs) {
  const attempted *a = argument;
  (void)inputs;
  return give(outputs, helio_reduce(a->own, HELIO_SUM, helio_values_same(a->own, number(1))));
}

static helio_status next_inside(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)inputs, (void)outputs;
  return helio_next_values(((attempted *)argument)->batches) ? HELIO_OK : helio_error_pending();
}

static void what_is_for_the_cross_replica_context(void **state) {
  (void)state;
  static const char *const method = "Method requires being in cross-replica context, use helio_merge_call()";
  const struct {
    helio_step step;
    const char *message;
  } cases[] = {{run_inside, method},
               {scope_inside, method},
               {reduce_inside, method},
               {run_other_inside, "Mixing different helio_strategy objects"},
               {next_inside, "helio_next_values() should be called from outside of the step"}};
  attempted a = {.own = mirror(2), .other = helio_one_device(nth_device(2))};
  helio_dataset *dataset = helio_dataset_batch(helio_dataset_range(4), 2);
  assert_made(a.batches = helio_iterate_distributed(helio_distribute(a.own, dataset)));
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    assert_null(helio_run(a.own, cases[i].step, &a));
    expect_error(HELIO_WRONG_STATE, cases[i].message);
  }
  HELIO_SCOPE(a.other) {
    assert_null(helio_run(a.own, give_nothing));
  }
  expect_error(HELIO_WRONG_STATE, "Mixing different helio_strategy objects: <OneDeviceStrategy at ");
}

/* ---- meetings ---- */

typedef struct merging {
  int calls;
  int times[3]; /* that each replica merges */
  bool across;
  helio_status returned;
  bool nothing;
} merging;

/* Each gets what all brought, times ten and its own place behind. */
static helio_values *weigh(helio_strategy *strategy, void *argument, helio_values *inputs) {
  merging *m = argument;
  helio_tensor *results[3];
  m->calls++;
  m->across = is_across(strategy);
  if (m->nothing) return NULL;
  if (m->returned) helio_reshape(FLOATS(1, 2), HELIO_SHAPE(3));
  helio_tensor *sum = helio_reduce(strategy, HELIO_SUM, inputs);
  int count = helio_num_replicas(strategy);
  for (int i = 0; i < count; i++) results[i] = helio_add(helio_mul(sum, number(10)), number(i));
  return helio_values_of(strategy, results, count);
}

static helio_status merge(void *argument, const helio_element *inputs, helio_element *outputs) {
  merging *m = argument;
  helio_status status = HELIO_OK;
  (void)inputs;
  int id = helio_replica_id();
  for (int i = 0; i < m->times[id] && !status; i++) {
    helio_element mine = {.count = 1, .part = {number(id + 1)}};
    status = helio_merge_call(weigh, m, &mine, outputs);
  }
  return status;
}

static void replicas_meet_once_across(void **state) {
  (void)state;
  helio_strategy *three = mirror(3);
  merging m = {.times = {2, 2, 2}};
  expect_each(helio_run(three, merge, &m), 60, 61, 62);
  assert_int_equal(m.calls, 2);
  assert_true(m.across);
  m = (merging){.times = {1, 1, 1}, .nothing = true};
  assert_int_equal(helio_values_parts(helio_run(three, merge, &m)), 0);
  assert_int_equal(m.calls, 1);
  m = (merging){.times = {1, 1, 1}, .returned = HELIO_INVALID_ARGUMENT};
  assert_null(helio_run(three, merge, &m));
  expect_error(HELIO_INVALID_ARGUMENT, "replica 0: ");

  static const int unequal[][3] = {{2, 1, 1}, {1, 2, 1}, {0, 0, 1}, {1, 1, 0}};
  for (size_t i = 0; i < COUNT_OF(unequal); i++) {
    m = (merging){.times = {unequal[i][0], unequal[i][1], unequal[i][2]}};
    assert_null(helio_run(three, merge, &m));
    expect_error(HELIO_WRONG_STATE, "Some replicas made a different number of helio_merge_call() calls.");
  }
  m = (merging){.times = {1, 1, 1}};
  expect_each(helio_run(three, merge, &m), 60, 61, 62);

  /* a thread outside of all meets nobody, but in the cross-replica context as well */
  helio_element outputs = {0};
  m = (merging){.across = false};
  assert_ok(helio_merge_call(weigh, &m, &(helio_element){.count = 1, .part = {number(7)}}, &outputs));
  expect_numbers(outputs.part[0], 70);
  assert_true(m.across);
  HELIO_SCOPE(three) {
    assert_int_equal(helio_merge_call(weigh, &m, NULL, NULL), HELIO_WRONG_STATE);
  }
  expect_error(HELIO_WRONG_STATE, "Need to be inside `helio_run()`");
}

/* ---- failures ---- */

/* A replica in the mask fails, before the others meet. */
static helio_status fail_by_mask(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)inputs;
  int mask = *(int *)argument, id = helio_replica_id();
  if (mask >> id & 1) helio_reshape(FLOATS(1, 2, 3), HELIO_SHAPE(4));
  helio_tensor *sum = helio_all_reduce(HELIO_SUM, number(1));
  return give(outputs, helio_all_reduce(HELIO_SUM, sum));
}

static helio_status fail_without_a_word(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)argument, (void)inputs, (void)outputs;
  return helio_replica_id() == 1 ? HELIO_BAD_DATA : HELIO_OK;
}

static void the_lowest_replicas_error_moves_to_the_caller(void **state) {
  (void)state;
  static const char *const names[] = {"replica 0: ", "replica 1: ", "replica 2: "};
  helio_strategy *three = mirror(3);
  for (int mask = 1; mask < 8; mask++) {
    int lowest = mask & 1 ? 0 : mask & 2 ? 1 : 2;
    assert_null(helio_run(three, fail_by_mask, &mask));
    expect_error(HELIO_INVALID_ARGUMENT, names[lowest]);
    expect_each(helio_run(three, fail_by_mask, &(int){0}), 9, 9, 9);
  }
  assert_null(helio_run(three, fail_without_a_word));
  expect_error(HELIO_BAD_DATA, "replica 1: the step returned HELIO_BAD_DATA");
}

static helio_status sum_unlike(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)argument, (void)inputs;
  return give(outputs, helio_all_reduce(HELIO_SUM, helio_fill(HELIO_SHAPE(1 + helio_replica_id()), 1)));
}

static helio_status sum_bools(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)argument, (void)inputs;
  return give(outputs, helio_all_reduce(HELIO_SUM, helio_fill(HELIO_SHAPE(2), 1, .type = HELIO_BOOL)));
}

static void sums_that_cannot_be_formed(void **state) {
  (void)state;
  helio_strategy *two = mirror(2);
  assert_null(helio_run(two, sum_unlike));
  expect_error(HELIO_INVALID_ARGUMENT, "replica 0 has float32 (1,) and replica 1 float32 (2,)");
  assert_null(helio_run(two, sum_bools));
  expect_error(HELIO_INVALID_ARGUMENT, "");
  expect_each(helio_run(two, fail_by_mask, &(int){0}), 4, 4);
}

/* ---- sums inside ---- */

static helio_status sums_and_gradients(void *argument, const helio_element *inputs, helio_element *outputs) {
  helio_reduce_op op = *(helio_reduce_op *)argument;
  int id = helio_replica_id();
  helio_tensor *x = FLOATS(1 + id, 10 + id), *loss = NULL;
  helio_tape *tape = helio_tape_new();
  (void)inputs;
  HELIO_TAPE(tape) {
    helio_tape_watch(tape, x);
    helio_tensor *joined = helio_all_reduce(op, helio_square(x));
    give(outputs, joined);
    loss = helio_mul(helio_sum(joined), number(1 + 2 * id)); /* the replicas' losses weigh 1 and 3 */
  }
  helio_gradients *gradients = helio_gradient(tape, loss, .tensors = &x, .tensor_count = 1);
  return gradients ? give(outputs, helio_gradients_at(gradients, 0)) : helio_error_pending();
}

/* The gradient of replica i is 2x times the sum of the weights of all losses, which all depend on its x. */
static void sums_have_gradients(void **state) {
  (void)state;
  helio_strategy *two = mirror(2);
  helio_values *sums = helio_run(two, sums_and_gradients, &(helio_reduce_op){HELIO_SUM});
  assert_made(sums);
  helio_values *means = helio_run(two, sums_and_gradients, &(helio_reduce_op){HELIO_MEAN});
  assert_made(means);
  for (int i = 0; i < 2; i++) {
    expect_numbers(helio_values_at(sums, i, 0), 5, 221);
    expect_numbers(helio_values_at(means, i, 0), 2.5, 110.5);
    expect_numbers(helio_values_at(sums, i, 1), 2 * (1 + i) * 4, 2 * (10 + i) * 4);
    expect_numbers(helio_values_at(means, i, 1), 2 * (1 + i) * 2, 2 * (10 + i) * 2);
  }
  expect_numbers(helio_all_reduce(HELIO_MEAN, FLOATS(3)), 3); /* outside of all there is one replica */
}

/* The sum of what both brought, and the gradient of its square. */
static helio_values *sum_and_slope(helio_strategy *strategy, void *argument, helio_values *inputs) {
  helio_tape *tape = helio_tape_new();
  helio_tensor *sum = helio_add(helio_values_at(inputs, 0, 0), helio_values_at(inputs, 1, 0)), *square = NULL;
  (void)argument;
  HELIO_TAPE(tape) {
    helio_tape_watch(tape, sum);
    square = helio_square(sum);
  }
  helio_gradients *gradients = helio_gradient(tape, square, .tensors = &sum, .tensor_count = 1);
  return gradients ? helio_values_same(strategy, helio_add(sum, helio_gradients_at(gradients, 0))) : NULL;
}

static helio_status merge_on_tape(void *argument, const helio_element *inputs, helio_element *outputs) {
  helio_tensor *x = number(3), *y = NULL;
  helio_element merged = {0};
  helio_tape *tape = helio_tape_new();
  (void)argument, (void)inputs;
  HELIO_TAPE(tape) {
    helio_tape_watch(tape, x);
    helio_merge_call(sum_and_slope, NULL, &(helio_element){.count = 1, .part = {x}}, &merged);
    y = merged.count ? helio_mul(x, merged.part[0]) : NULL;
  }
  helio_gradients *gradients = y ? helio_gradient(tape, y, .tensors = &x, .tensor_count = 1) : NULL;
  return gradients ? give(outputs, helio_gradients_at(gradients, 0)) : helio_error_pending();
}

/* What is merged is a constant to the replicas' tapes, whichever thread did it, and may have tapes of its own: both
 * bring 3, so it is 6 + 12, and the gradient of x × 18 is 18. */
static void merging_is_on_no_replicas_tape(void **state) {
  (void)state;
  helio_strategy *two = mirror(2);
  for (int i = 0; i < 10; i++) expect_each(helio_run(two, merge_on_tape), 18, 18);
}

/* ---- threads ---- */

static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int threads_named(const char *start) {
  char path[300], name[64];
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
    FILE *file = fopen(path, "r");
    if (!file) continue;
    if (fgets(name, sizeof name, file)) count += strncmp(name, start, strlen(start)) == 0;
    fclose(file);
  }
  if (tasks) closedir(tasks);
  return count;
}

/* One that was joined may stand in /proc a moment longer. */
static int replica_threads(int expected) {
  int count = -1;
  for (int i = 0; i < 5000 && count != expected; i++) {
    if (count >= 0) usleep(1000);
    count = threads_named("helio-rep");
  }
  return count;
}

/* A thread of the strategy cannot wait for its own end. */
static helio_status shut_down_inside(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)argument, (void)inputs, (void)outputs;
  return helio_replica_id() == 1 ? helio_shutdown() : HELIO_OK;
}

static helio_values *give_back(helio_strategy *strategy, void *argument, helio_values *inputs) {
  (void)strategy, (void)argument;
  return inputs;
}

static helio_values *give_none(helio_strategy *strategy, void *argument, helio_values *inputs) {
  (void)strategy, (void)argument, (void)inputs;
  return NULL;
}

static helio_status merge_by_another(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)argument, (void)inputs;
  return helio_merge_call(helio_replica_id() ? give_back : give_none, NULL, NULL, outputs);
}

static helio_status double_it(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)argument;
  give(outputs, helio_add(inputs->part[0], inputs->part[0]));
  return helio_error_pending();
}

static helio_values *add_one(helio_strategy *strategy, void *argument, helio_values *inputs) {
  (void)strategy, (void)inputs;
  helio_assign_add(argument, number(1));
  return NULL;
}

static helio_status add_and_fail(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)inputs;
  helio_status status = helio_merge_call(add_one, argument, NULL, outputs);
  return status ? status : HELIO_BAD_DATA;
}

/* A step that fails has written nothing, by whatever way. */
static void what_is_written_across_replicas_is_undone(void **state) {
  (void)state;
  helio_strategy *strategies[] = {helio_one_device(nth_device(0)), mirror(1), mirror(2)};
  for (size_t i = 0; i < COUNT_OF(strategies); i++) {
    helio_variable *variable = NULL;
    HELIO_SCOPE(strategies[i]) variable = helio_variable(number(3), .name = "v");
    assert_made(variable);
    assert_null(helio_run(strategies[i], add_and_fail, variable));
    expect_error(HELIO_BAD_DATA, "the step returned HELIO_BAD_DATA");
    assert_true(helio_item(helio_value(variable)) == 3);
  }
}

/* The end of the data, which a loop forgot to look at, is a run without inputs. */
static void steps_that_are_not_alike_or_have_no_inputs(void **state) {
  helio_strategy *two = mirror(2);
  (void)state;
  assert_null(helio_run(two, merge_by_another));
  expect_error(HELIO_WRONG_STATE, "replica 0 and replica 1 called helio_merge_call() with different functions");
  assert_null(helio_run(two, double_it, NULL, NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "is NULL");
}

static void the_library_does_not_end_inside_a_step(void **state) {
  (void)state;
  helio_strategy *two = mirror(2);
  assert_null(helio_run(two, shut_down_inside));
  expect_error(HELIO_WRONG_STATE, "replica 1: a step is under way, and this is called inside it");
  assert_made(helio_run(two, give_nothing));
}

static void nothing_is_made_in_a_scope_that_has_outlived_the_library(void **state) {
  (void)state;
  leaks_are_meant = true;
  HELIO_SCOPE(mirror(2)) {
    assert_ok(helio_shutdown());
    assert_null(helio_variable(helio_fill(HELIO_SCALAR, 1), .name = "v"));
    expect_error(HELIO_WRONG_STATE, "v: the strategy was made before helio_shutdown()");
  }
}

static void threads_live_as_long_as_their_strategy(void **state) {
  (void)state;
  helio_strategy *two = NULL;
  HELIO_POOL {
    two = helio_keep(mirror(2));
    mirror(3);
    assert_made(helio_run(two, give_nothing));
    assert_int_equal(replica_threads(5), 5);
  }
  assert_int_equal(replica_threads(2), 2);
  helio_one_device(nth_device(0));
  mirror(1);
  assert_int_equal(replica_threads(2), 2);

  usleep(20000); /* past all spinning */
  double used = 1;
  for (int i = 0; i < 5 && used > 0.003; i++) { /* now and then something else is counted as ours */
    double before = cpu_seconds();
    usleep(300000);
    used = cpu_seconds() - before;
  }
  if (used > 0.003) fail_msg("an idle strategy used %.1f ms of 300", used * 1e3);

  helio_values *values = helio_keep(helio_run(two, look_around, two));
  leaks_are_meant = true;
  assert_ok(helio_shutdown());
  assert_int_equal(replica_threads(0), 0);
  assert_null(helio_run(two, give_nothing));
  expect_error(HELIO_WRONG_STATE, "the strategy was made before helio_shutdown()");
  HELIO_SCOPE(two) {
    assert_int_equal(helio_error_pending(), HELIO_WRONG_STATE);
  }
  expect_error(HELIO_WRONG_STATE, "the strategy was made before helio_shutdown()");
  assert_null(helio_reduce(two, HELIO_SUM, values));
  expect_error(HELIO_WRONG_STATE, "the strategy was made before helio_shutdown()");
  assert_int_equal(helio_num_replicas(two), 0);
  helio_release(values);
  helio_release(two);
  assert_made(helio_run(mirror(2), give_nothing));
}

int main(void) {
  remember_environment();
  const struct CMUnitTest tests[] = {
      REPLICA_TEST(a_scope_is_the_cross_replica_context_of_its_thread),
      REPLICA_TEST(each_replica_knows_itself_and_its_device),
      REPLICA_TEST(what_a_step_returns),
      REPLICA_TEST(each_replica_gets_its_own_part_of_the_inputs),
      REPLICA_TEST(replicas_run_at_the_same_time),
      REPLICA_TEST(a_strategy_does_one_step_at_a_time),
      REPLICA_TEST(what_is_for_the_cross_replica_context),
      REPLICA_TEST(replicas_meet_once_across),
      REPLICA_TEST(the_lowest_replicas_error_moves_to_the_caller),
      REPLICA_TEST(sums_that_cannot_be_formed),
      REPLICA_TEST(sums_have_gradients),
      REPLICA_TEST(merging_is_on_no_replicas_tape),
      REPLICA_TEST(steps_that_are_not_alike_or_have_no_inputs),
      REPLICA_TEST(what_is_written_across_replicas_is_undone),
      REPLICA_TEST(the_library_does_not_end_inside_a_step),
      REPLICA_TEST(nothing_is_made_in_a_scope_that_has_outlived_the_library),
      REPLICA_TEST(threads_live_as_long_as_their_strategy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
