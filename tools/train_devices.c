/* SPDX-License-Identifier: Apache-2.0 */
#include "train_devices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "command.h"

static const char mirrored[] = "mirrored", one_device[] = "one-device";

typedef struct names {
  const char *at[HELIO_MAX_REPLICAS];
  int count;
} names;

/* Cuts the text, which is changed, at its commas. False if there are too many parts, or an empty one. */
static bool cut(char *text, names *n) {
  for (char *rest = text; rest;) {
    if (n->count == HELIO_MAX_REPLICAS) return false;
    n->at[n->count++] = rest;
    rest = strchr(rest, ',');
    if (rest) *rest++ = '\0';
    if (!*n->at[n->count - 1]) return false;
  }
  return true;
}

static int read_weights(const char *text, double *weights, const char *path) {
  int count = 0;
  for (const char *at = text; *at; count++) {
    char *end;
    double weight = strtod(at, &end);
    bool good = end != at && (!*end || (*end == ',' && end[1])) && isfinite(weight) && weight > 0;
    if (!good || count == HELIO_MAX_REPLICAS) {
      return command_usage_error(path, "--weights takes a number above 0 for each device, as 3,1, not '%s'", text);
    }
    weights[count] = weight;
    at = *end ? end + 1 : end;
  }
  return EXIT_SUCCESS;
}

/* The same words as in the environment, which the library reads when it starts. Of that variable it complains by its
 * name, in whose place stands the option, and of other ones as well, which the option must not be blamed for. */
static int start(const device_options *o, const char *path) {
  static const char variable[] = "HELIO_LOGICAL_DEVICES: ";
  helio_error error = {.message = ""};
  if (o->logical && setenv("HELIO_LOGICAL_DEVICES", o->logical, 1) != 0) {
    return command_failure(path, "out of memory");
  }
  if (helio_init() == HELIO_OK) return EXIT_SUCCESS;
  helio_error_take(&error);
  bool by_option = o->logical && strncmp(error.message, variable, strlen(variable)) == 0;
  if (!by_option) return command_failure(path, "%s", error.message);
  return command_failure(path, "--logical %s: %s", o->logical, error.message + strlen(variable));
}

/* The devices that helio_mirrored() would take of itself: all of the preferred kind. */
static int preferred_count(void) {
  int count = 0;
  const helio_device *const *list = helio_logical_devices(NULL, &count);
  if (list && count > 0) helio_logical_devices(list[0]->type, &count);
  return count;
}

static bool asks_for_mirrored(const device_options *o, const names *n) {
  if (o->strategy) return strcmp(o->strategy, mirrored) == 0;
  return n->count > 1 || o->weights || o->collective || (n->count == 0 && preferred_count() > 1);
}

static int check_one_device(const device_options *o, const names *n, const char *path) {
  const char *option = o->weights ? "--weights" : o->collective ? "--collective" : n->count > 1 ? "--devices" : NULL;
  if (!option) return EXIT_SUCCESS;
  return command_usage_error(path, "%s is for several devices, but --strategy is %s; leave one of them out", option,
                             one_device);
}

/* Shares are for as many devices as are named, or as there are. */
static int check_weights(const device_options *o, const names *n, const double *weights, const char *path) {
  int devices = n->count ? n->count : preferred_count(), given = 0;
  while (given < HELIO_MAX_REPLICAS && weights[given] > 0) given++;
  if (given == 0 || given == devices) return EXIT_SUCCESS;
  if (devices == 1) {
    return command_usage_error(path,
                               "--weights %s is for several devices, but there is one: --devices names more of them, "
                               "or --logical cuts one, as cpu:0=2",
                               o->weights);
  }
  return command_usage_error(path, "--weights %s: %d given for %d devices; give one for each", o->weights, given,
                             devices);
}

static const char *preferred(void) {
  int count = 0;
  const helio_device *const *list = helio_logical_devices(NULL, &count);
  return list && count > 0 ? list[0]->name : NULL;
}

/* Is there any device of the kind of this name, which is gpu:1 or ends in device:GPU:1? */
static bool has_kind(const char *name) {
  int count = 0;
  const helio_device *const *list = helio_logical_devices(NULL, &count);
  const char *last = strrchr(name, '/'), *kind = last ? last + 1 : name;
  if (strncasecmp(kind, "device:", strlen("device:")) == 0) kind += strlen("device:");
  size_t length = strcspn(kind, ":");
  for (int i = 0; i < count; i++) {
    const char *type = list[i]->type, *backend = list[i]->backend;
    if (strncasecmp(kind, type, length) == 0 && !type[length]) return true;
    if (strncasecmp(kind, backend, length) == 0 && !backend[length]) return true;
  }
  return false;
}

/* More devices can be cut from one that there is, but none of a kind that is absent. */
static int refuse(const names *n, const char *path) {
  helio_error error = {.message = ""};
  bool absent = helio_error_take(&error) == HELIO_NO_DEVICE, may_cut = n->count > 0;
  for (int i = 0; i < n->count; i++) may_cut = may_cut && has_kind(n->at[i]);
  if (!absent) return command_failure(path, "%s", error.message);
  return command_failure(path, "%s 'helio devices' lists those that there are; %s", error.message,
                         may_cut
                             ? "HELIO_LOGICAL_DEVICES, or --logical of 'helio train', makes several of one, as cpu:0=2"
                             : "'helio plugins' says why there are no others");
}

static int choose(const device_options *o, const names *n, const char *path, helio_strategy **strategy) {
  helio_mirrored_options options = {.size = sizeof options, .collective = o->collective};
  bool one = o->strategy && strcmp(o->strategy, one_device) == 0;
  int status = one ? check_one_device(o, n, path) : EXIT_SUCCESS;
  if (status == EXIT_SUCCESS && o->weights) status = read_weights(o->weights, options.weights, path);
  if (status == EXIT_SUCCESS) status = start(o, path);
  if (status == EXIT_SUCCESS) status = check_weights(o, n, options.weights, path);
  if (status != EXIT_SUCCESS) return status;
  bool several = asks_for_mirrored(o, n);
  for (int i = 0; i < n->count; i++) options.devices[i] = n->at[i];
  *strategy = several ? helio_mirrored_with(&options) : helio_one_device(n->count ? n->at[0] : preferred());
  return *strategy ? EXIT_SUCCESS : refuse(n, path);
}

int devices_choose_one(const char *device, const char *path, helio_strategy **strategy) {
  if (helio_init() != HELIO_OK) return command_library_failure(path);
  names n = {.at = {device}, .count = device ? 1 : 0};
  *strategy = helio_one_device(device ? device : preferred());
  return *strategy ? EXIT_SUCCESS : refuse(&n, path);
}

int devices_choose(const device_options *o, const char *path, helio_strategy **strategy) {
  names n = {.count = 0};
  char *text = o->devices ? strdup(o->devices) : NULL;
  if (o->devices && !text) return command_failure(path, "out of memory");
  if (text && !cut(text, &n)) {
    free(text);
    return command_usage_error(path, "--devices takes up to %d names, as cpu:0,cpu:1, not '%s'", HELIO_MAX_REPLICAS,
                               o->devices);
  }
  int status = choose(o, &n, path, strategy);
  free(text);
  return status;
}

const char *devices_kind(const helio_strategy *strategy) {
  return strcmp(helio_strategy_name(strategy), "OneDeviceStrategy") == 0 ? one_device : mirrored;
}
