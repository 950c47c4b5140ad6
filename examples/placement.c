/* SPDX-License-Identifier: Apache-2.0 */
/* Where operations run: the programs of TensorFlow's guide "Use a GPU", in C.
 *
 *   placement                                logging device placement
 *   placement --pinned                       manual device placement: the constants are made on the CPU
 *   placement /device:GPU:2                  a single device of several; an error if it does not exist
 *   placement --soft /device:GPU:2           the same, but another device will do
 */
#include <helio/helio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static helio_tensor *constant_a(void) {
  return helio_constant((float[]){1, 2, 3, 4, 5, 6}, HELIO_SHAPE(2, 3), .name = "a");
}

static helio_tensor *constant_b(void) {
  return helio_constant((float[]){1, 2, 3, 4, 5, 6}, HELIO_SHAPE(3, 2), .name = "b");
}

static void log_placement(void) {
  /* Create some tensors */
  helio_tensor *a = constant_a();
  helio_tensor *b = constant_b();
  helio_tensor *c = helio_matmul(a, b);
  helio_print(c);
}

static void pin_constants(void) {
  helio_tensor *a = NULL, *b = NULL;
  /* Place tensors on the CPU */
  HELIO_DEVICE("/CPU:0") {
    a = constant_a();
    b = constant_b();
  }
  /* Run on the GPU, if there is one */
  helio_tensor *c = helio_matmul(a, b);
  helio_print(c);
}

static void use_device(const char *device) {
  HELIO_DEVICE(device) {
    helio_tensor *a = constant_a();
    helio_tensor *b = constant_b();
    helio_tensor *c = helio_matmul(a, b);
    helio_print(c);
  }
}

int main(int argument_count, char **arguments) {
  helio_set_log_placement(true);
  if (argument_count == 1) {
    log_placement();
  } else if (argument_count == 2 && strcmp(arguments[1], "--pinned") == 0) {
    pin_constants();
  } else if (argument_count == 3 && strcmp(arguments[1], "--soft") == 0) {
    helio_set_soft_placement(true);
    use_device(arguments[2]);
  } else if (argument_count == 2 && arguments[1][0] != '-') {
    use_device(arguments[1]);
  } else {
    fprintf(stderr, "Usage: placement [--pinned | [--soft] DEVICE]\n");
    return 2;
  }

  /* A call that fails leaves its error pending and those after it do nothing, so one look at the end is enough. */
  helio_error error;
  if (helio_error_take(&error) == HELIO_OK) return EXIT_SUCCESS;
  fprintf(stderr, "%s\n", error.message);
  return EXIT_FAILURE;
}
