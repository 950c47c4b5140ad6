/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapping test backend: what its files share. See README.md for what it does. Of the wrapped plugin's objects only
 * devices and plans are wrapped in turn; buffers, streams and events are its own. */
#ifndef WRAP_H
#define WRAP_H

#include <helio/plugin.h>
#include <stdatomic.h>

typedef enum wrap_kind { WRAP_ALLOCATION, WRAP_COPY, WRAP_KERNEL, WRAP_EVENT, WRAP_KINDS } wrap_kind;

/* The plugin inside, and the host that it sees: the real one, but for parameters, of which that knows only ours. */
typedef struct wrap_inner {
  helio_host host; /* first */
  const helio_host *real;
  const helio_plugin *plugin;
} wrap_inner;

typedef struct wrap_rule wrap_rule;

struct helio_plugin_state {
  wrap_inner inner;
  helio_plugin_state *inner_state;
  wrap_rule *rules;
  size_t rule_count;
};

struct helio_backend_device {
  helio_plugin_state *state;
  helio_backend_device *inner;
  uint32_t number;
  atomic_ullong calls[WRAP_KINDS];
};

/* A call on its way to the plugin inside. */
typedef struct wrap_call {
  helio_backend_device *device;
  wrap_kind kind;
  const char *name;
  const helio_stream *stream; /* NULL: of none */
  size_t elements;            /* of a kernel's first argument */
  int64_t rows;               /* of a kernel, which it takes time for */
  unsigned long long number;  /* among those of its kind on its device */
} wrap_call;

/* What happens before a call, and behind it if that lets it go on. Both give the status that the caller is to see. */
helio_status wrap_before(wrap_call *call);
helio_status wrap_after(const wrap_call *call, helio_status status);

/* rules.c */
helio_status wrap_rules_read(helio_plugin_state *state, const char *text);

/* inner.c: opens the plugin inside; it is not started yet. */
helio_status wrap_inner_open(wrap_inner *inner, const helio_host *real);

/* The tables of the plugin inside, for entries that are told nothing from which to find it. One is wrapped at a time.
 */
extern const helio_plugin *wrap_inner_plugin;

extern const helio_device_table wrap_device_table;
extern const helio_memory_table wrap_memory_table;
extern const helio_stream_table wrap_stream_table;
extern const helio_kernel_table wrap_kernel_table;

#endif
