/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapping test plugins: what their files share. See README.md for what they do. Of the wrapped plugin's objects
 * only devices, plans and communicators are wrapped in turn; buffers, streams and events are its own. */
#ifndef WRAP_H
#define WRAP_H

#include <helio/plugin.h>
#include <stdatomic.h>

#include "counts.h"

typedef enum wrap_kind { WRAP_ALLOCATION, WRAP_COPY, WRAP_KERNEL, WRAP_EVENT, WRAP_COLLECTIVE, WRAP_KINDS } wrap_kind;

enum { WRAP_MOST_DEVICES = 64 };

typedef struct wrap_rule wrap_rule;

/* The plugin inside, and the host that it sees: the real one, but for parameters, of which that knows only ours. */
typedef struct wrap_inner {
  helio_host host; /* first */
  const helio_host *real;
  const helio_plugin *plugin;
  helio_plugin_state *state; /* the plugin's */
  wrap_rule *rules;
  size_t rule_count;
} wrap_inner;

/* What a wrapping plugin wraps, and the parameters that say which, and what happens to it. */
typedef struct wrap_settings {
  bool collective; /* else a backend */
  const char *plugin;
  const char *rules;
} wrap_settings;

/* Whose calls are counted by themselves: a device, or a device's rank in a collective. */
typedef struct wrap_target {
  const wrap_inner *inner;
  uint32_t number;
  atomic_ullong calls[WRAP_KINDS];
  atomic_bool late; /* something has failed, which every wait from then on reports */
} wrap_target;

/* A call on its way to the plugin inside. */
typedef struct wrap_call {
  wrap_target *target;
  wrap_kind kind;
  const char *name;
  bool waits;      /* and so reports what failed late */
  size_t elements; /* of a kernel's first argument; bytes of others */
  int64_t rows;    /* of a kernel, which it takes time for */
  /* What it writes, if it does, and by which tables that can be spoilt. */
  helio_backend_device *device;
  const helio_memory_table *memory;
  const helio_stream_table *streams;
  helio_stream *stream; /* NULL: of none */
  helio_place place;
  void *host; /* instead of a place */
  size_t bytes;
  /* What the rules have made of it. */
  unsigned long long number; /* among those of its kind on its target */
  bool skipped;              /* it is not handed on, and seems to have gone well */
  bool failing;              /* it is to fail, behind the plugin inside if it waits */
  bool halved;               /* only half of what it is to do is done */
} wrap_call;

/* What happens before a call, and behind it if that lets it go on. Both give the status that the caller is to see. */
helio_status wrap_before(wrap_call *call);
helio_status wrap_after(const wrap_call *call, helio_status status);

/* What failed late on the target. */
helio_status wrap_late(wrap_target *target, const char *name);

void wrap_target_begin(wrap_target *target, const wrap_inner *inner, uint32_t number);

/* Says at level DEBUG how many calls there were. */
void wrap_target_end(wrap_target *target);

/* counts.c: for tests to read. */
void wrap_counts_clear(uint32_t device);
void wrap_add(const wrap_target *target, wrap_count count, unsigned long long amount);

/* rules.c: takes the rules of a text. */
helio_status wrap_rules_read(wrap_inner *inner, const char *text);

/* inner.c: the life of the plugin inside. */
helio_status wrap_inner_probe(const helio_host *real, const wrap_settings *settings, helio_probe_answer *answer);
helio_status wrap_inner_start(wrap_inner *inner, const helio_host *real, const wrap_settings *settings);
void wrap_inner_stop(wrap_inner *inner);

size_t wrap_type_bytes(uint32_t type);

/* ---- the backend ---- */

struct helio_backend_device {
  wrap_target target;
  const helio_plugin *plugin; /* inside */
  helio_backend_device *inner;
};

/* The plugin inside, for entries that are told nothing from which to find it. One is wrapped at a time. */
extern const helio_plugin *wrap_inner_plugin;

extern const helio_memory_table wrap_memory_table;
extern const helio_stream_table wrap_stream_table;
extern const helio_kernel_table wrap_kernel_table;

#endif
