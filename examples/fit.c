/* SPDX-License-Identifier: Apache-2.0 */
/* A whole training of a convolutional network, on MNIST: fit [EPOCHS]. `helio data get mnist` brings the images. */
#include <helio/helio.h>
#include <stdio.h>
#include <stdlib.h>

/* Bytes (n, 28, 28) become numbers from 0 to 1, (n, 28, 28, 1). */
static void prepare(helio_samples *samples, const char *name) {
  helio_array *images = helio_array_cast(samples->x, HELIO_FLOAT32, .scale = 1.0 / 255);
  samples->x = helio_array_reshape(images, HELIO_SHAPE(-1, 28, 28, 1));
  char *x = helio_shape_text(helio_array_shape(samples->x)), *y = helio_shape_text(helio_array_shape(samples->y));
  if (x && y) printf("%s Data's Shape :  %s %s\n", name, x, y);
  free(x);
  free(y);
}

static void train(int epochs, int64_t batch) {
  helio_samples training, testing;
  if (helio_load_data("mnist", &training, &testing)) return;
  prepare(&training, "Train");
  prepare(&testing, "Test");
  helio_model *model = helio_sequential({helio_conv2d(16, 3, .activation = HELIO_RELU), helio_max_pool2d(),
                                         helio_conv2d(32, 3, .activation = HELIO_RELU), helio_max_pool2d(),
                                         helio_flatten(), helio_dense(10, .activation = HELIO_SOFTMAX)},
                                        .input_shape = HELIO_SHAPE(28, 28, 1));
  if (model) puts("Network Built!");
  helio_compile(model, .optimizer = helio_adam(), .loss = helio_sparse_categorical_crossentropy(),
                .metric_names = {"accuracy"});
  helio_fit(model, .x = training.x, .y = training.y, .batch_size = batch, .epochs = epochs, .validation_x = testing.x,
            .validation_y = testing.y);
  helio_release(model);
}

int main(int count, char **arguments) {
  int epochs = count > 1 ? atoi(arguments[1]) : 10;
  train(epochs, 4096);
  if (helio_error_pending()) fprintf(stderr, "%s\n", helio_error_message());
  return helio_error_take(NULL) ? EXIT_FAILURE : EXIT_SUCCESS;
}
