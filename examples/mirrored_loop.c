/* SPDX-License-Identifier: Apache-2.0 */
/* Training on all devices at once with a loop written by hand, as TensorFlow's tutorial "Custom training with
 * tf.distribute.Strategy" does it:
 *
 *   mirrored_loop [mnist | fashion-mnist [EPOCHS [SAMPLES]]]
 *
 * With fashion-mnist the step is that of the other tutorial: each replica divides by the size of the global batch and
 * returns a value of shape (1), and the sum is taken over that axis. Both ways give the same loss.
 *
 * HELIO_LOGICAL_DEVICES="cpu:0=2" makes two devices of the CPU. */
#include <helio/helio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, CLASSES = 10 };

typedef struct trainer {
  helio_model *model;
  helio_optimizer *optimizer;
  helio_loss *loss; /* of each sample: the step says how they are averaged */
  helio_metric *train_accuracy, *test_accuracy, *test_loss;
  bool by_hand; /* the other tutorial's step */
} trainer;

static helio_model *make_model(void) {
  helio_regularizer weak = {.l2 = 1e-5};
  return helio_sequential(
      {helio_conv2d(32, 3, .activation = HELIO_RELU, .kernel_regularizer = weak), helio_max_pool2d(),
       helio_conv2d(64, 3, .activation = HELIO_RELU, .kernel_regularizer = weak), helio_max_pool2d(), helio_flatten(),
       helio_dense(64, .activation = HELIO_RELU, .kernel_regularizer = weak),
       helio_dense(CLASSES, .kernel_regularizer = weak)},
      .input_shape = HELIO_SHAPE(28, 28, 1));
}

/* ---- the data: images stay bytes until they are on their device ---- */

static helio_status scale(void *unused, helio_element *batch) {
  helio_tensor *images = helio_cast(batch->part[0], HELIO_FLOAT32);
  (void)unused;
  batch->part[0] = helio_expand_dims(helio_mul(images, helio_fill(HELIO_SCALAR, 1.0 / 255)), -1);
  return helio_error_pending();
}

static helio_dataset *batches_of(const helio_samples *samples, int64_t most, bool shuffle) {
  helio_dataset *dataset = helio_dataset_take(helio_dataset_from_slices(samples->x, samples->y), most);
  if (shuffle) dataset = helio_dataset_shuffle(dataset, 60000, .seed = 1);
  return helio_dataset_batch(dataset, BATCH);
}

/* ---- the steps: what each replica does with its part of a batch ---- */

static helio_tensor *average(const trainer *t, helio_tensor *losses) {
  if (!t->by_hand) {
    helio_tensor *weights = helio_scale_regularization_loss(helio_regularization_loss(t->model));
    return helio_add(helio_compute_average_loss(losses), weights);
  }
  const helio_replica *replica = helio_replica_context();
  helio_tensor *sum = helio_mul(helio_sum(losses), helio_fill(HELIO_SCALAR, 1.0 / (double)replica->global_rows));
  helio_tensor *part = helio_fill(HELIO_SCALAR, 1.0 / replica->count);
  return helio_add(sum, helio_mul(helio_regularization_loss(t->model), part));
}

static helio_status train_step(void *argument, const helio_element *batch, helio_element *result) {
  trainer *t = argument;
  helio_element scaled = *batch;
  helio_tape *tape = helio_tape_new();
  helio_tensor *predictions = NULL, *loss = NULL;
  scale(NULL, &scaled);
  HELIO_TAPE(tape) {
    predictions = helio_call(t->model, scaled.part[0], .training = true);
    loss = average(t, helio_compute_loss(t->loss, scaled.part[1], predictions));
  }
  helio_minimize(t->optimizer, tape, loss, helio_trainable_variables(t->model));
  helio_metric_update(t->train_accuracy, scaled.part[1], predictions);
  result->count = 1;
  result->part[0] = t->by_hand ? helio_expand_dims(loss, 0) : loss;
  return helio_error_pending();
}

static helio_status test_step(void *argument, const helio_element *batch, helio_element *nothing) {
  trainer *t = argument;
  helio_element scaled = *batch;
  (void)nothing;
  scale(NULL, &scaled);
  helio_tensor *predictions = helio_call(t->model, scaled.part[0]);
  helio_metric_update(t->test_loss, helio_compute_loss(t->loss, scaled.part[1], predictions));
  return helio_metric_update(t->test_accuracy, scaled.part[1], predictions);
}

/* ---- the loop ---- */

static double train_epoch(trainer *t, helio_strategy *strategy, helio_distributed *data) {
  double total = 0;
  int batches = 0;
  HELIO_POOL {
    helio_distributed_iterator *iterator = helio_iterate_distributed(data);
    for (bool more = true; more; batches += more) {
      HELIO_POOL {
        helio_values *batch = helio_next_values(iterator);
        helio_values *losses = batch ? helio_run(strategy, train_step, t, batch) : NULL;
        more = losses != NULL;
        if (!more) break;
        helio_axes axes = t->by_hand ? HELIO_AXES(0) : (helio_axes){0};
        total += helio_item(helio_reduce(strategy, HELIO_SUM, losses, axes));
      }
    }
  }
  return batches ? total / batches : 0;
}

static void test_epoch(trainer *t, helio_strategy *strategy, helio_distributed *data) {
  HELIO_POOL {
    helio_distributed_iterator *iterator = helio_iterate_distributed(data);
    for (bool more = true; more;) {
      HELIO_POOL {
        helio_values *batch = helio_next_values(iterator);
        more = batch && helio_run(strategy, test_step, t, batch);
      }
    }
  }
}

static double percent(helio_metric *metric) {
  return 100 * helio_item(helio_metric_result(metric));
}

static void train(trainer *t, const char *name, int epochs, int64_t most) {
  helio_samples training, testing;
  if (helio_load_data(name, &training, &testing)) return;
  helio_strategy *strategy = helio_mirrored();
  printf("Number of devices: %d\n", helio_num_replicas(strategy));
  HELIO_SCOPE(strategy) {
    t->model = make_model();
    t->optimizer = helio_adam();
    t->loss = helio_sparse_categorical_crossentropy(.from_logits = true, .reduction = HELIO_LOSS_NONE);
    t->train_accuracy = helio_sparse_categorical_accuracy(.name = "train_accuracy");
    t->test_accuracy = helio_sparse_categorical_accuracy(.name = "test_accuracy");
    t->test_loss = helio_metric_mean(.name = "test_loss");
  }
  helio_distributed *train_data = helio_distribute(strategy, batches_of(&training, most, true));
  helio_distributed *test_data = helio_distribute(strategy, batches_of(&testing, most, false));
  for (int epoch = 1; epoch <= epochs && !helio_error_pending(); epoch++) {
    double loss = train_epoch(t, strategy, train_data);
    test_epoch(t, strategy, test_data);
    if (helio_error_pending()) break;
    printf("Epoch %d, Loss: %.6f, Accuracy: %.2f, Test Loss: %.6f, Test Accuracy: %.2f\n", epoch, loss,
           percent(t->train_accuracy), helio_item(helio_metric_result(t->test_loss)), percent(t->test_accuracy));
    helio_metric_reset(t->test_loss);
    helio_metric_reset(t->train_accuracy);
    helio_metric_reset(t->test_accuracy);
  }
}

int main(int count, char **arguments) {
  const char *name = count > 1 ? arguments[1] : "mnist";
  trainer t = {.by_hand = strcmp(name, "fashion-mnist") == 0};
  train(&t, name, count > 2 ? atoi(arguments[2]) : 10, count > 3 ? atoll(arguments[3]) : -1);
  helio_release(t.model);

  helio_error error;
  if (helio_error_take(&error) == HELIO_OK) return EXIT_SUCCESS;
  fprintf(stderr, "%s: %s\n", error.where, error.message);
  return EXIT_FAILURE;
}
