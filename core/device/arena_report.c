/* SPDX-License-Identifier: Apache-2.0 */
#include "device/arena_report.h"

#include <stdio.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/leaks.h"

enum { SHOWN = 5, TRACKED = 64 };

typedef struct holding {
  const char *holder;
  uint64_t bytes;
  int blocks;
} holding;

const char *hi_bytes_text(uint64_t bytes, char *text) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  double value = (double)bytes;
  while (value >= 1024 && unit < 6) {
    value /= 1024;
    unit++;
  }
  snprintf(text, 24, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return text;
}

/* Sums live blocks by holder. Holders past the table's end are left out: the report is about the large ones, and the
 * newest blocks come first. */
static int sum_holders(holding *holdings, const hi_block *live) {
  int count = 0;
  for (const hi_block *block = live; block; block = block->next) {
    int at = 0;
    while (at < count && strcmp(holdings[at].holder, block->holder) != 0) at++;
    if (at == TRACKED) continue;
    if (at == count) holdings[count++] = (holding){block->holder, 0, 0};
    holdings[at].bytes += block->bytes;
    holdings[at].blocks++;
  }
  return count;
}

static void list_holders(const hi_block *live, char *text, size_t size) {
  holding holdings[TRACKED];
  char amount[24];
  int count = sum_holders(holdings, live);
  size_t length = 0;
  for (int shown = 0; shown < SHOWN && shown < count && length < size; shown++) {
    int largest = 0;
    for (int i = 1; i < count; i++) {
      if (holdings[i].bytes > holdings[largest].bytes) largest = i;
    }
    holding *h = &holdings[largest];
    length += (size_t)snprintf(text + length, size - length, "%s%s %s in %d", shown ? ", " : "", h->holder,
                               hi_bytes_text(h->bytes, amount), h->blocks);
    h->bytes = 0;
  }
  if (!count) snprintf(text, size, "none");
}

void hi_report_held(const char *device, const helio_memory *info, const hi_block *live) {
  char amount[24], holders[500];
  if (!live) return;
  list_holders(live, holders, sizeof holders);
  hi_bytes_text(info->in_use, amount);
  hi_leak_say("%s of %s in %llu pieces; largest holders: %s", amount, device, (unsigned long long)info->allocations,
              holders);
}

/* The limit that was set, or what the process is granted, of which the rest of it takes a part. */
static void tell_limit(const hi_arena_source *source, uint64_t elsewhere, char text[100]) {
  char bound[24], others[24];
  hi_bytes_text(source->limit ? source->limit : source->granted, bound);
  if (source->limit) {
    snprintf(text, 100, "%s", bound);
  } else if (source->granted) {
    snprintf(text, 100, "%s for the whole process, which holds %s elsewhere", bound, hi_bytes_text(elsewhere, others));
  } else {
    snprintf(text, 100, "none");
  }
}

void hi_report_out_of_memory(const hi_arena_source *source, size_t bytes, const char *holder, const helio_memory *info,
                             uint64_t elsewhere, const hi_block *live) {
  char asked[24], limit[100], in_use[24], reserved[24], largest[24], holders[500];
  tell_limit(source, elsewhere, limit);
  list_holders(live, holders, sizeof holders);
  hi_fail(HELIO_OUT_OF_MEMORY,
          "out of memory on %s: %s asked for %s; limit %s, in use %s, reserved %s, largest free piece %s; largest "
          "holders: %s. Use smaller batches or a smaller model%s",
          source->name, holder, hi_bytes_text(bytes, asked), limit, hi_bytes_text(info->in_use, in_use),
          hi_bytes_text(info->reserved, reserved), hi_bytes_text(info->largest_free, largest), holders,
          source->limit ? ", or raise the limit (HELIO_MEMORY_LIMIT, HELIO_MEMORY_FRACTION, HELIO_LOGICAL_DEVICES)"
                        : "");
}
