/* SPDX-License-Identifier: Apache-2.0 */
/* The environment, read once at start from one typed table. Nothing else in the core calls getenv, but data/places.c
 * for XDG_CACHE_HOME and HOME. */
#ifndef HI_ENVIRONMENT_H
#define HI_ENVIRONMENT_H

#include <helio/helio.h>
#include <helio/plugin.h>

/* Symbol, kind, default, choices, the most that an INTEGER or SECONDS may be, help. */
#define HI_SETTING_LIST(X)                                                                                             \
  X(BACKEND, TEXT, "auto", "", 0,                                                                                      \
    "Backends in order of preference, separated by commas. A plain name must be usable, one with ? may be absent; "    \
    "auto: every one that is usable, accelerators first. The CPU is always loaded, as host")                           \
  X(PLUGIN_PATH, TEXT, "", "", 0,                                                                                      \
    "Folders or files searched for plugins before the installed ones, separated by colons")                            \
  X(VISIBLE_DEVICES, TEXT, "all", "", 0,                                                                               \
    "Physical devices to use, in this order, such as gpu:1,gpu:0; empty: the CPU alone")                               \
  X(LOGICAL_DEVICES, TEXT, "", "", 0,                                                                                  \
    "Physical devices to cut into logical ones, by number or by memory limits: gpu:0=1024M,1024M;cpu:0=2")             \
  X(MEMORY_GROWTH, FLAG, "1", "", 0,                                                                                   \
    "1: take device memory as it is needed; 0: take nearly all that is free at first use, in one piece")               \
  X(MEMORY_FRACTION, FRACTION, "1", "", 0, "The part of each physical device's memory that may be taken")              \
  X(MEMORY_LIMIT, SIZE, "0", "", 0,                                                                                    \
    "The most that each logical device may take, such as 512M or 2G; 0: all that it has, or 7/8 of the "               \
    "host's memory that the process is granted")                                                                       \
  X(SOFT_PLACEMENT, FLAG, "0", "", 0,                                                                                  \
    "1: an operation whose device or kernel does not exist runs elsewhere; 0: it is an error")                         \
  X(STRICT_PLACEMENT, FLAG, "0", "", 0,                                                                                \
    "1: an operation that would run elsewhere than asked or preferred is an error")                                    \
  X(LOG_PLACEMENT, FLAG, "0", "", 0, "1: say for each operation on which device it runs")                              \
  X(LOG, CHOICE, "info", "debug|info|warning|error|off", 0, "The least level of log lines that are shown")             \
  X(NUM_THREADS, INTEGER, "0", "", 4096,                                                                               \
    "CPU threads for the whole process, shared among logical CPU devices; 0: the cores granted to it")                 \
  X(COLLECTIVE, TEXT, "auto", "", 0,                                                                                   \
    "The collective that sums between devices, such as reduce-to-one; auto: the one made for them. It must serve "     \
    "them")                                                                                                            \
  X(TIMEOUT, SECONDS, "300", "", 1000000,                                                                              \
    "Seconds without a sign of life for which a replica, or a device of a group, is waited for; 0: without end")       \
  X(CHECK_REPLICAS, FLAG, "0", "", 0,                                                                                  \
    "1: compare sums of gradients, and what a step wrote, between the replicas and name the one that differs; slow")   \
  X(BUCKET_BYTES, SIZE, "4M", "", 0,                                                                                   \
    "Gradients are packed up to this size, such as 512K or 25M, before they are summed between devices")               \
  X(ORDERED_REDUCE, FLAG, "0", "", 0,                                                                                  \
    "1: sums between devices are formed in the order of replicas: equal to the bit for all collectives")               \
  X(SPIN_US, INTEGER, "50", "", 1000000, "Microseconds that a waiting thread spins before it sleeps")                  \
  X(SEED, INTEGER, "0", "", UINT64_MAX, "Seed of random numbers; 0: a fixed one")                                      \
  X(ALLOW_NONDETERMINISTIC, FLAG, "0", "", 0,                                                                          \
    "1: kernels may be faster and give other last bits from one run to the next; 0: the same each time")               \
  X(ALLOW_TF32, FLAG, "0", "", 0,                                                                                      \
    "1: products and convolutions of float32 may round what they multiply to a shorter format such as TF32")           \
  X(DATA_DIR, TEXT, "", "", 0, "Folder that is searched for known sets of data before the cache folder and Debian's")  \
  X(ARENA_DEBUG, FLAG, "0", "", 0,                                                                                     \
    "1: every block of device memory is a buffer of its own of exact size, poisoned when freed, not reused")

typedef enum hi_setting {
#define HI_SETTING_ENUM(symbol, kind, value, choices, most, help) HI_##symbol,
  HI_SETTING_LIST(HI_SETTING_ENUM)
#undef HI_SETTING_ENUM
      HI_SETTING_COUNT
} hi_setting;

/* Reads all settings of the core. An invalid value is an error that names it. */
helio_status hi_environment_start(void);
void hi_environment_finish(void);

/* The core's settings. Flags and integers, sizes in bytes and seconds in milliseconds are read by …_number. */
const char *hi_environment_name(hi_setting setting); /* "HELIO_LOG" */
const char *hi_environment_text(hi_setting setting);
uint64_t hi_environment_number(hi_setting setting);
double hi_environment_fraction(hi_setting setting);
bool hi_environment_set(hi_setting setting);

/* Adds a plugin's parameters. On failure `reason` says what is wrong with them or their values and nothing is added. */
helio_status hi_environment_add(const char *owner, const helio_parameter *const *parameters, char *reason, size_t size);
const char *hi_environment_parameter(const char *owner, const char *name);

/* Warns of variables that begin with HELIO_ and mean nothing, with the nearest name. Called when plugins are loaded. */
void hi_environment_warn_unknown(void);

/* Parses "512M", "2G", "1024K", "100". `need_suffix`: a bare number is not a size. */
bool hi_parse_size(const char *text, size_t length, bool need_suffix, uint64_t *bytes);
bool hi_parse_number(const char *text, size_t length, uint64_t *number);

#endif
