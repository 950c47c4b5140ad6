/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/machine.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int affinity(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1; /* more than 1024 cores: be modest */
  int count = CPU_COUNT(&set);
  return count > 0 ? count : 1;
}

static int cores_of(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return 0;
  long long cores = (quota - 1) / period + 1;
  return cores < INT_MAX ? (int)cores : INT_MAX;
}

static int smaller(int a, int b) {
  return a == 0 || (b != 0 && b < a) ? b : a;
}

static int read_v2(const char *folder) {
  char path[1400];
  long long quota = 0, period = 0;
  snprintf(path, sizeof path, "%s/cpu.max", folder);
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  int fields = fscanf(file, "%lld %lld", &quota, &period); /* "max 100000" reads no number: no quota */
  fclose(file);
  return fields == 2 ? cores_of(quota, period) : 0;
}

static long long read_number(const char *folder, const char *name) {
  char path[1400];
  long long number = 0;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  if (fscanf(file, "%lld", &number) != 1) number = 0;
  fclose(file);
  return number;
}

static int read_v1(const char *folder) {
  return cores_of(read_number(folder, "cpu.cfs_quota_us"), read_number(folder, "cpu.cfs_period_us"));
}

/* A group is bound by its own quota and by those of all groups above it. */
static int least_up_the_tree(const char *mount, char *group, int (*read)(const char *)) {
  int least = 0;
  for (;;) {
    char folder[1300];
    snprintf(folder, sizeof folder, "%s%s", mount, group);
    least = smaller(least, read(folder));
    char *slash = strrchr(group, '/');
    if (!slash || !*group) return least;
    *slash = 0;
  }
}

static bool names_controller(const char *list, const char *controller) {
  size_t length = strlen(controller);
  for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
    if (strncmp(at, controller, length) == 0 && (at[length] == 0 || at[length] == ',')) return true;
  }
  return false;
}

int hi_machine_quota(const char *root) {
  char line[1200], path[600], mount[600];
  int least = 0;
  snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  while (fgets(line, sizeof line, file)) { /* "0::/user.slice" (version 2) or "4:cpu,cpuacct:/group" (version 1) */
    line[strcspn(line, "\n")] = 0;
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) continue;
    *group++ = 0;
    if (controllers[1] == 0) {
      snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root);
      least = smaller(least, least_up_the_tree(mount, group, read_v2));
    } else if (names_controller(controllers + 1, "cpu")) {
      snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/cpu", root);
      least = smaller(least, least_up_the_tree(mount, group, read_v1));
    }
  }
  fclose(file);
  return least;
}

int hi_machine_cores(void) {
  return smaller(affinity(), hi_machine_quota(""));
}

uint64_t hi_machine_resident(void) {
  unsigned long long resident = 0, of_files = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  if (!file) return 0;
  bool read = fscanf(file, "%*u %llu %llu", &resident, &of_files) == 2 && resident > of_files;
  fclose(file);
  return read ? (resident - of_files) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}
