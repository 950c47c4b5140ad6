/* SPDX-License-Identifier: Apache-2.0 */
/* Values of replicas and how they are joined. The numbers are TensorFlow 2.21's, run on logical CPUs. */
#include "replicas.h"

static helio_values *first_batch(helio_strategy *strategy, helio_dataset *dataset) {
  helio_distributed_iterator *batches = helio_iterate_distributed(helio_distribute(strategy, dataset));
  helio_values *batch = helio_next_values(batches);
  assert_made(batch);
  return batch;
}

static void reduce_joins_element_by_element_or_along_axes(void **state) {
  (void)state;
  helio_strategy *two = mirror(2);
  helio_values *eight = first_batch(two, helio_dataset_batch(helio_dataset_range(8), 8));
  expect_numbers(helio_reduce(two, HELIO_SUM, eight), 4, 6, 8, 10);
  expect_numbers(helio_reduce(two, HELIO_SUM, eight, HELIO_AXES(0)), 28);
  expect_numbers(helio_reduce(two, HELIO_MEAN, eight), 2, 3, 4, 5);
  expect_numbers(helio_reduce(two, HELIO_MEAN, eight, HELIO_AXES(0)), 3.5);
  assert_int_equal(helio_tensor_type(helio_reduce(two, HELIO_SUM, eight)), HELIO_INT64);
  assert_int_equal(helio_tensor_type(helio_reduce(two, HELIO_MEAN, eight)), HELIO_FLOAT64);

  helio_values *uneven = helio_values_of(two, (helio_tensor *[]){FLOATS(5, 6), FLOATS(7)}, 2);
  expect_numbers(helio_reduce(two, HELIO_MEAN, uneven, HELIO_AXES(0)), 6);
  assert_null(helio_reduce(two, HELIO_SUM, uneven));
  expect_error(HELIO_INVALID_ARGUMENT, "shapes (2,) and (1,) differ");

  helio_tensor *low = helio_reshape(FLOATS(1, 2, 3, 4), HELIO_SHAPE(2, 2));
  helio_tensor *high = helio_reshape(FLOATS(5, 6, 7, 8), HELIO_SHAPE(2, 2));
  helio_values *squares = helio_values_of(two, (helio_tensor *[]){low, high}, 2);
  expect_numbers(helio_reduce(two, HELIO_MEAN, squares, HELIO_AXES(-1)), 3.5, 5.5);
  expect_numbers(helio_reduce(two, HELIO_MEAN, squares, HELIO_AXES(0, 1)), 4.5);

  /* four rows and two: divided by six, not by eight */
  helio_values *six = helio_values_of(two, (helio_tensor *[]){FLOATS(1, 1, 1, 1), FLOATS(4, 4)}, 2);
  expect_numbers(helio_reduce(two, HELIO_MEAN, six, HELIO_AXES(0)), 2);
}

/* Where operations run, whatever devices the replicas have. */
static void reduce_leaves_its_result_where_operations_run(void **state) {
  (void)state;
  helio_strategy *two = mirror(2);
  helio_values *values = helio_values_of(two, (helio_tensor *[]){FLOATS(1), FLOATS(2)}, 2);
  assert_string_equal(helio_tensor_device(helio_reduce(two, HELIO_SUM, values)), nth_device_in_full(0));
  HELIO_DEVICE(nth_device(3)) {
    assert_string_equal(helio_tensor_device(helio_reduce(two, HELIO_SUM, values)), nth_device_in_full(3));
    assert_string_equal(helio_tensor_device(helio_gather(two, values, 0)), nth_device_in_full(3));
  }
}

static void what_reduce_refuses(void **state) {
  (void)state;
  helio_strategy *two = mirror(2);
  helio_values *plain = helio_values_same(two, number(3)), *row = helio_values_same(two, FLOATS(1, 2, 3));
  helio_values *rows = helio_values_of(two, (helio_tensor *[]){FLOATS(1, 2), FLOATS(3, 4)}, 2);
  expect_numbers(helio_reduce(two, HELIO_MEAN, plain), 3);
  assert_null(helio_reduce(two, HELIO_SUM, plain));
  expect_error(HELIO_INVALID_ARGUMENT, "A non-DistributedValues value Tensor(3.0");
  assert_null(helio_reduce(two, HELIO_SUM, plain));
  expect_error(HELIO_INVALID_ARGUMENT, "cannot be reduced with the given reduce op HELIO_SUM.");
  /* along an axis each replica has summed the value for itself */
  expect_numbers(helio_reduce(two, HELIO_SUM, row, HELIO_AXES(0)), 12);
  expect_numbers(helio_reduce(two, HELIO_MEAN, row, HELIO_AXES(0)), 2);

  assert_null(helio_reduce(two, HELIO_SUM, rows, HELIO_AXES(1)));
  expect_error(HELIO_INVALID_ARGUMENT, "`axis` = 1 out of range for `value` with rank 1");
  assert_null(helio_reduce(two, HELIO_SUM, rows, HELIO_AXES(-2)));
  expect_error(HELIO_INVALID_ARGUMENT, "`axis` = -2 out of range for `value` with rank 1");
  assert_null(helio_reduce(two, (helio_reduce_op)3, rows));
  expect_error(HELIO_INVALID_ARGUMENT, "3 is not a valid ReduceOp");
  assert_null(helio_reduce(two, HELIO_SUM, NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "the values are NULL");
  assert_null(helio_reduce(mirror(3), HELIO_SUM, rows));
  expect_error(HELIO_INVALID_ARGUMENT, "another strategy's");
  assert_null(helio_reduce(two, HELIO_SUM, helio_values_join((helio_values *[]){rows, row}, 2)));
  expect_error(HELIO_INVALID_ARGUMENT, "helio_values_part()");
  assert_null(helio_values_of(two, (helio_tensor *[]){FLOATS(1)}, 1));
  expect_error(HELIO_INVALID_ARGUMENT, "there are 2 replicas, and 1 values are given");
}

static void gather_puts_one_behind_the_other(void **state) {
  (void)state;
  helio_strategy *two = mirror(2);
  helio_tensor *first = helio_reshape(FLOATS(1, 2), HELIO_SHAPE(1, 2));
  helio_tensor *second = helio_reshape(FLOATS(3, 4), HELIO_SHAPE(1, 2));
  helio_values *rows = helio_values_of(two, (helio_tensor *[]){first, second}, 2);
  helio_tensor *along[2] = {helio_gather(two, rows, 0), helio_gather(two, rows, 1)};
  expect_numbers(along[0], 1, 2, 3, 4);
  expect_numbers(along[1], 1, 2, 3, 4);
  assert_int_equal(helio_tensor_shape(along[0]).extent[0], 2);
  assert_int_equal(helio_tensor_shape(along[1]).extent[1], 4);
  expect_numbers(helio_gather(two, helio_values_of(two, (helio_tensor *[]){FLOATS(1, 2), FLOATS(3)}, 2), 0), 1, 2, 3);
  expect_numbers(helio_gather(two, helio_values_same(two, FLOATS(1, 2, 3)), 0), 1, 2, 3);
  assert_null(helio_gather(two, helio_values_of(two, (helio_tensor *[]){number(1), number(2)}, 2), 0));
  expect_error(HELIO_INVALID_ARGUMENT, "axis 0 is out of range for the shape ()");
}

static void one_replica_is_joined_with_nothing(void **state) {
  (void)state;
  helio_strategy *strategies[] = {helio_one_device(nth_device(1)), mirror(1), helio_strategy_current()};
  for (size_t i = 0; i < COUNT_OF(strategies); i++) {
    helio_values *values = helio_values_of(strategies[i], (helio_tensor *[]){FLOATS(1, 2, 6)}, 1);
    expect_numbers(helio_reduce(strategies[i], HELIO_SUM, values), 1, 2, 6);
    expect_numbers(helio_reduce(strategies[i], HELIO_MEAN, values, HELIO_AXES(0)), 3);
    expect_numbers(helio_gather(strategies[i], values, 0), 1, 2, 6);
    assert_string_equal(helio_strategy_collective(strategies[i]), "");
  }
  assert_not_logged("Reduce to");
}

/* ---- losses ---- */

typedef struct losses {
  int64_t size; /* given as global batch size */
  bool weighted;
} losses;

static helio_status average(void *argument, const helio_element *inputs, helio_element *outputs) {
  const losses *l = argument;
  helio_tensor *own = inputs->count ? helio_cast(inputs->part[0], HELIO_FLOAT32) : FLOATS(1, 2, 3);
  helio_tensor *weights = l->weighted ? FLOATS(0, 1, 2) : NULL;
  return give(outputs, helio_compute_average_loss(own, l->size, weights));
}

static helio_status scale(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)argument, (void)inputs;
  return give(outputs, helio_scale_regularization_loss(FLOATS(1, 2, 3)));
}

static void losses_of_replicas_add_up_to_that_of_the_batch(void **state) {
  (void)state;
  helio_strategy *two = mirror(2);
  expect_each(helio_run(two, average, &(losses){6, false}), 1, 1);
  expect_each(helio_run(two, average, &(losses){0, false}), 1, 1);
  expect_each(helio_run(two, average, &(losses){12, true}), 8 / 12., 8 / 12.);
  expect_each(helio_run(two, average, &(losses){HELIO_INTEGER_ZERO, false}), 0, 0);
  expect_each(helio_run(two, scale, NULL), 3, 3);
  /* the samples 0, 1 and 2 of a batch of three: the replicas know how many there are in all */
  helio_values *batch = first_batch(two, helio_dataset_batch(helio_dataset_range(3), 3));
  expect_each(helio_run(two, average, &(losses){0, false}, batch), 1 / 3., 2 / 3.);

  assert_null(helio_run(two, average, &(losses){-2, false}));
  expect_error(HELIO_INVALID_ARGUMENT, "global_batch_size must be non-negative");
  HELIO_SCOPE(two) {
    assert_null(helio_compute_average_loss(FLOATS(1)));
  }
  expect_error(HELIO_WRONG_STATE, "You are calling `helio_compute_average_loss` in cross replica context, while it was "
                                  "expected to be called in replica context.");
  HELIO_SCOPE(two) {
    assert_null(helio_scale_regularization_loss(FLOATS(1)));
  }
  expect_error(HELIO_WRONG_STATE, "`helio_scale_regularization_loss` in cross replica context");
  expect_numbers(helio_compute_average_loss(FLOATS(1, 2, 3)), 2); /* the default strategy's replica */
}

int main(void) {
  remember_environment();
  const struct CMUnitTest tests[] = {
      REPLICA_TEST(reduce_joins_element_by_element_or_along_axes),
      REPLICA_TEST(reduce_leaves_its_result_where_operations_run),
      REPLICA_TEST(what_reduce_refuses),
      REPLICA_TEST(gather_puts_one_behind_the_other),
      REPLICA_TEST(one_replica_is_joined_with_nothing),
      REPLICA_TEST(losses_of_replicas_add_up_to_that_of_the_batch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
