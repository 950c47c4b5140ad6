/* SPDX-License-Identifier: Apache-2.0 */
/* Using several devices without a strategy, as in TensorFlow's guide "Use a GPU": one product on each device, their sum
 * on the CPU. Without a GPU two logical CPU devices do the same. */
#include <helio/helio.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_DEVICES = 64 };

static const helio_device *const *find_devices(int *count) {
  const helio_device *const *devices = helio_logical_devices("GPU", count);
  if (!devices || *count > 0) return devices;
  devices = helio_logical_devices("CPU", count);
  if (!devices || *count > 1) return devices;
  helio_set_logical_devices("cpu:0", NULL, 2);
  return helio_logical_devices("CPU", count);
}

int main(void) {
  helio_set_log_placement(true);
  int count = 0;
  const helio_device *const *devices = find_devices(&count);

  /* Replicate your computation on multiple devices */
  helio_tensor *c[MAX_DEVICES] = {NULL}, *sum = NULL;
  if (count > MAX_DEVICES) count = MAX_DEVICES;
  for (int i = 0; devices && i < count; i++) {
    HELIO_DEVICE(devices[i]->name) {
      helio_tensor *a = helio_constant((float[]){1, 2, 3, 4, 5, 6}, HELIO_SHAPE(2, 3));
      helio_tensor *b = helio_constant((float[]){1, 2, 3, 4, 5, 6}, HELIO_SHAPE(3, 2));
      c[i] = helio_matmul(a, b);
    }
  }
  HELIO_DEVICE("/CPU:0") {
    sum = helio_add_n(c, count);
  }
  helio_print(sum);

  helio_error error;
  if (helio_error_take(&error) == HELIO_OK) return EXIT_SUCCESS;
  fprintf(stderr, "%s\n", error.message);
  return EXIT_FAILURE;
}
