/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc and the control groups. Whatever cannot be read counts as unlimited or unknown. */
#define _GNU_SOURCE
#include "machine.h"

#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define UNLIMITED UINT64_MAX

static uint64_t lesser(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* The number after `key` at the beginning of a line, or `otherwise`. An empty key takes the first line. */
static uint64_t file_number(const char *path, const char *key, uint64_t otherwise) {
  FILE *file = fopen(path, "re");
  if (file == NULL) return otherwise;
  char line[256];
  uint64_t value = otherwise;
  size_t length = strlen(key);
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, key, length) != 0) continue;
    if (sscanf(line + length, "%" SCNu64, &value) != 1) value = otherwise; /* "max" */
    break;
  }
  fclose(file);
  return value;
}

/* The text after the colon of the first line that begins with `key`. */
static void file_text(const char *path, const char *key, char *text, size_t size) {
  FILE *file = fopen(path, "re");
  if (file == NULL) return;
  char line[512];
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, key, strlen(key)) != 0) continue;
    const char *colon = strchr(line, ':');
    if (colon == NULL) continue;
    colon += 1 + strspn(colon + 1, " \t");
    snprintf(text, size, "%.*s", (int)strcspn(colon, "\n"), colon);
    break;
  }
  fclose(file);
}

/* One version of control groups: where it is mounted and how its files are called. */
typedef struct group_files {
  const char *mount, *limit, *usage, *reclaimable;
} group_files;

static const group_files version_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                      "total_inactive_file "};
static const group_files version_2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "};

/* The path of this process' memory group below the mount, and whose files to read there. */
static const group_files *find_group(char *path, size_t size) {
  const group_files *found = NULL;
  FILE *file = fopen("/proc/self/cgroup", "re");
  if (file == NULL) return NULL;
  char line[512];
  while (fgets(line, sizeof line, file) != NULL) {
    char *controllers = strchr(line, ':');
    char *below = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (below == NULL) continue;
    *below++ = '\0';
    below[strcspn(below, "\n")] = '\0';
    bool unified = controllers[1] == '\0';
    if (!unified && strcmp(controllers + 1, "memory") != 0) continue;
    if (unified && found != NULL) continue; /* a mixed system keeps memory in version 1 */
    found = unified ? &version_2 : &version_1;
    snprintf(path, size, "%s", strcmp(below, "/") == 0 ? "" : below);
  }
  fclose(file);
  return found;
}

/* The lowest limit of the group and of all groups above it, and the least that one of them has left. In a container
 * the group's own path may not be visible; then the mount itself is the group. Clean file pages count as free. */
static void group_memory(uint64_t *limit, uint64_t *left) {
  char below[400], path[600];
  *limit = *left = UNLIMITED;
  const group_files *files = find_group(below, sizeof below);
  while (files != NULL) {
    snprintf(path, sizeof path, "%s%s/%s", files->mount, below, files->limit);
    uint64_t bound = file_number(path, "", UNLIMITED);
    if (bound != UNLIMITED) {
      snprintf(path, sizeof path, "%s%s/%s", files->mount, below, files->usage);
      uint64_t used = file_number(path, "", 0);
      snprintf(path, sizeof path, "%s%s/memory.stat", files->mount, below);
      used -= lesser(used, file_number(path, files->reclaimable, 0));
      *limit = lesser(*limit, bound);
      *left = lesser(*left, bound - lesser(bound, used));
    }
    char *slash = strrchr(below, '/');
    if (slash == NULL) break;
    *slash = '\0';
  }
}

void cpu_machine_memory(uint64_t *free, uint64_t *total) {
  uint64_t limit, left;
  group_memory(&limit, &left);
  uint64_t installed = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  uint64_t available = file_number("/proc/meminfo", "MemAvailable:", installed / 1024) * 1024;
  *total = lesser(installed, limit);
  *free = lesser(lesser(available, left), *total);
}

/* Room for more processors than any machine has, so that no larger set need be tried. */
static uint32_t granted_cores(void) {
  enum { WORDS = 256 };
  cpu_set_t sets[WORDS / (sizeof(cpu_set_t) / sizeof(unsigned long))];
  if (sched_getaffinity(0, sizeof sets, sets) != 0) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
  }
  return (uint32_t)CPU_COUNT_S(sizeof sets, sets);
}

void cpu_machine_read(cpu_machine *machine) {
  memset(machine, 0, sizeof *machine);
  snprintf(machine->name, sizeof machine->name, "CPU");
  file_text("/proc/cpuinfo", "model name", machine->name, sizeof machine->name);
  file_text("/proc/cpuinfo", "vendor_id", machine->vendor, sizeof machine->vendor);
  machine->cores = granted_cores();
  uint64_t free;
  cpu_machine_memory(&free, &machine->memory);
}
