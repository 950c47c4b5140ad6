/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices there are: physical ones as found, logical ones as configured. */
#ifndef HI_TOPOLOGY_H
#define HI_TOPOLOGY_H

#include "device/device.h"

helio_status hi_topology_start(void);
void hi_topology_finish(void);

/* All logical devices in order of preference. There is always one at least. */
hi_device *const *hi_devices(int *count);

/* Where things are that asked for no device: the first that is not lost. */
hi_device *hi_device_first(void);

/* The machine's own: the first CPU that is not lost. */
hi_device *hi_device_host(void);

/* Cores that the process was granted when the library started. */
int hi_topology_cores(void);

/* Differs whenever hi_devices() does. */
unsigned hi_topology_version(void);

/* The logical device of that name; NULL if there is none. Does not set the error. */
hi_device *hi_device_find(const hi_name *name);

/* The same, for a name as written; NULL with the error set. */
hi_device *hi_device_named(const char *name);

/* Sets the error for a name that is no device of this process; returns the status. */
helio_status hi_device_unknown(const hi_name *name, bool soft_placement);

/* What was configured for a device. */
typedef struct hi_device_settings {
  bool growth;
  uint64_t limit;   /* 0: none */
  int sharers;      /* logical devices of the same physical one that are not open, this one included */
  uint32_t threads; /* 0: not a CPU */
  uint32_t spin_us;
} hi_device_settings;

/* Called when a device is opened: from now on the settings that concern it cannot change. Fails for a device that was
 * replaced when the settings changed. */
helio_status hi_topology_first_use(hi_device *device, hi_device_settings *settings);

/* Opening it failed after all. */
void hi_topology_no_use(hi_device *device);

/* ---- for configure.c ---- */

/* Between these two the settings of physical devices may be read and written. */
void hi_topology_lock(void);
void hi_topology_unlock(void);

hi_physical *const *hi_physicals(int *count);
hi_physical *hi_physical_find(const hi_name *name);

/* Is it an accelerator that is a part of the processor? */
bool hi_physical_integrated(const hi_physical *physical);

/* Was any device (of this class, 0: of any) used? */
bool hi_topology_used(uint32_t device_class);

/* Takes these physical devices for the visible ones; the host's own is added if it is not among them. */
helio_status hi_topology_show(hi_physical *const *visible, int count);

/* Settings as they are now, to go back to when a change comes to nothing; NULL with the error set. Either of the other
 * two ends them. */
typedef struct hi_saved hi_saved;
hi_saved *hi_topology_save(void);
void hi_topology_restore(hi_saved *saved);
void hi_topology_forget(hi_saved *saved);

/* Makes the logical devices anew after settings have changed. */
helio_status hi_topology_rebuild(void);

void hi_topology_set_fraction(double fraction);

/* Applies HELIO_VISIBLE_DEVICES, HELIO_LOGICAL_DEVICES and the settings of memory (configure.c). */
helio_status hi_configure_from_environment(void);

#endif
