/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, checking and starting plugins. */
#ifndef HI_PLUGINS_H
#define HI_PLUGINS_H

#include <helio/helio.h>
#include <helio/plugin.h>
#include <stdatomic.h>

/* One more than there are, so that the enums, which count from 1, are indices. */
#define HI_ONE(...) +1
enum { HI_OPERATION_COUNT = 1 HELIO_OPERATION_LIST(HI_ONE), HI_TYPE_COUNT = 1 HELIO_TYPE_LIST(HI_ONE) };
#undef HI_ONE

typedef struct hi_device_tables {
  helio_device_table devices;
  helio_memory_table memory;
  helio_stream_table streams;
} hi_device_tables;

/* A plugin as the core uses it: copies of its tables in which every optional entry is filled, so that callers never
 * test for NULL. */
typedef struct hi_plugin {
  helio_host host; /* first: a host function finds its plugin by the host's address */
  helio_plugin_report report;
  void *library;
  helio_plugin entry;
  helio_device_table devices;
  helio_memory_table memory;
  helio_stream_table streams;
  hi_device_tables shown; /* what everybody but device/guard.c calls its devices by */
  helio_collective_table collective;
  helio_kernel *kernels;
  size_t kernel_count;
  const helio_kernel *kernel_of[HI_OPERATION_COUNT][HI_TYPE_COUNT]; /* by operation and type of the first input */
  bool is_host;                                                     /* the machine's own CPU */
  bool unprobed;                                                    /* nobody asked for it */
  bool started;                                                     /* init succeeded and finish is due */
  bool no_memory;                                                   /* was the reason for which it is not used */
  atomic_bool stuck; /* a thread hangs in it: it is never finished, nor is its memory freed */
  helio_plugin_state *state;
} hi_plugin;

/* What the host table offers that lies in layers above this one. */
typedef struct hi_host_services {
  helio_status (*copy)(const helio_host *host, const helio_member *to, helio_stream *stream, helio_place target,
                       const helio_member *from, helio_place source, size_t bytes);
  helio_status (*accumulate)(const helio_host *host, const helio_member *member, const helio_accumulation *what);
} hi_host_services;

/* Finds all plugins, probes them and starts those that HELIO_BACKEND chooses. */
helio_status hi_plugins_start(const hi_host_services *services);
void hi_plugins_finish(void);

/* Opens, probes, starts and ends one plugin. */
helio_status hi_plugin_inspect(const char *path, const hi_host_services *services, helio_plugin_report *report);

/* The started backends in order of preference as HELIO_BACKEND names them; with `auto`, in order of search. */
hi_plugin *const *hi_backends(int *count);

/* The started collectives, in order of search. */
hi_plugin *const *hi_collectives(int *count);

/* Did HELIO_BACKEND give an order? Else accelerators go first. */
bool hi_backends_ordered(void);

/* Fills the host's own functions (host.c). */
void hi_host_fill(helio_host *host, const hi_host_services *services);

/* Copies what a plugin has of a struct into one of our own and leaves the rest zero. `least` is the end of its last
 * required field. NULL if that is in order, else what is wrong. */
const char *hi_struct_read(void *to, size_t known, size_t least, const void *from);

/* Copies and checks all tables of a plugin; false with report.reason and status filled (tables.c). */
bool hi_plugin_read_tables(hi_plugin *plugin, const helio_plugin *entry);

/* Files that may be plugins, in order of search, each once (search.c). One allocation, NULL if out of memory. */
char **hi_plugin_search(const char *plugin_path, int *count);

#endif
