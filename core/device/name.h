/* SPDX-License-Identifier: Apache-2.0 */
/* Names of devices as people write them. */
#ifndef HI_NAME_H
#define HI_NAME_H

#include <stdbool.h>
#include <stddef.h>

enum { HI_KIND_LENGTH = 64, HI_NAME_LENGTH = 128 };

typedef struct hi_name {
  char kind[HI_KIND_LENGTH]; /* "cpu", "gpu" or a backend's name, in lower case */
  int index;
  bool physical; /* "/physical_device:GPU:0" */
  bool remote;   /* of a job, replica or task that is not this process */
} hi_name;

/* "cpu:0", "/gpu:1", "/device:GPU:1", "/job:localhost/replica:0/task:0/device:GPU:0", "/physical_device:CPU:0"; without
 * a number, 0. False: not a device's name. */
bool hi_name_parse(const char *text, hi_name *name);

/* "/job:localhost/replica:0/task:0/device:GPU:0", the kind in capitals. */
void hi_name_print(const char *kind, int index, char text[HI_NAME_LENGTH]);
void hi_name_print_physical(const char *kind, int index, char text[HI_NAME_LENGTH]);

#endif
