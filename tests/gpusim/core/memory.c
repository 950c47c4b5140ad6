/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory. Each device has two ranges of addresses: those that are handed out lie where nobody can read or write,
 * and at a fixed distance from each lies its twin, where the bytes are. Of the twins only the pages of live allocations
 * are open: there is a page that is not behind each, the end of an allocation is as close to it as the vendors'
 * alignment of 256 bytes allows, and what is left between is filled with a canary. Addresses are never used again.
 *
 * A wait for the device looks at the canaries of what was handed to it since the last, not at all that there are: its
 * price is that of the work. What wrote elsewhere is found when that allocation is freed, at the latest at the end. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256, PAGE = SIM_PAGE };

static size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

void sim_memory_open(sim_device *device) {
  device->range = sim_pages_reserve(&device->range_bytes);
  if (!device->range) sim_refuse_setting("there is no room for the addresses of %s", device->name);
  device->offset = (ptrdiff_t)device->range_bytes;
  device->next = device->range + PAGE; /* a guard before the first */
}

/* The last allocation that begins at or before an address; NULL: none. */
static sim_allocation *find(const sim_device *device, const char *address) {
  size_t low = 0, high = device->allocation_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (device->allocations[middle]->begin <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? device->allocations[low - 1] : NULL;
}

static bool remember(sim_device *device, sim_allocation *allocation) {
  if (device->allocation_count == device->allocation_room) {
    size_t room = device->allocation_room ? 2 * device->allocation_room : 64;
    sim_allocation **wider = realloc(device->allocations, room * sizeof *wider);
    if (!wider) return false;
    device->allocations = wider;
    device->allocation_room = room;
  }
  device->allocations[device->allocation_count++] = allocation;
  return true;
}

/* What is left of the first page and of the last. */
static void fill_canary(const sim_device *device, const sim_allocation *allocation) {
  char *first = allocation->address + device->offset, *last = first + allocation->bytes;
  sim_canary_fill(allocation->begin + device->offset, first, allocation->canary);
  sim_canary_fill(last, allocation->end + device->offset, allocation->canary);
}

static bool open_pages(const sim_device *device, const sim_allocation *allocation) {
  if (!sim_pages_open(allocation->begin + device->offset, (size_t)(allocation->end - allocation->begin))) return false;
  fill_canary(device, allocation);
  return true;
}

static sim_status place(sim_device *device, size_t bytes, void **address) {
  size_t size = round_up(bytes, ALIGNMENT), pages = round_up(size, PAGE);
  if (size > sim_setup()->memory - device->counters.memory_used) return SIM_OUT_OF_MEMORY;
  if (pages + PAGE > (size_t)(device->range + device->range_bytes - device->next)) {
    fprintf(stderr, "gpusim: the addresses of %s %d, none of which is used twice, are at an end\n", device->name,
            device->index);
    return SIM_OUT_OF_MEMORY;
  }
  sim_allocation *made = calloc(1, sizeof *made);
  if (!made) return SIM_OUT_OF_MEMORY;
  made->begin = device->next;
  made->end = made->begin + pages;
  made->address = made->end - size;
  made->bytes = bytes;
  made->live = true;
  made->canary = sim_canary_key();
  sim_remember_origin(&made->made);
  if (!open_pages(device, made) || !remember(device, made)) {
    free(made);
    return SIM_OUT_OF_MEMORY;
  }
  device->next = made->end + PAGE;
  sim_counters *counters = &device->counters;
  counters->memory_used += size;
  if (counters->memory_used > counters->memory_peak) counters->memory_peak = counters->memory_used;
  *address = made->address;
  return SIM_OK;
}

sim_status sim_allocate(sim_device *device, size_t bytes, void **address) {
  sim_status status = sim_count(SIM_ALLOCATION, device);
  if (status != SIM_OK) return status;
  if (bytes == 0) return SIM_INVALID_VALUE;
  if (bytes > sim_setup()->memory) return SIM_OUT_OF_MEMORY;
  sim_lock();
  status = place(device, bytes, address);
  sim_unlock();
  return status;
}

static void check_canary(const sim_device *device, sim_allocation *allocation) {
  const char *begin = allocation->begin + device->offset, *end = allocation->end + device->offset;
  const char *first = allocation->address + device->offset, *last = first + allocation->bytes;
  bool before = sim_canary_is_whole(begin, first, allocation->canary);
  bool behind = sim_canary_is_whole(last, end, allocation->canary);
  if (before && behind) return;
  char text[256];
  sim_violation("out of bounds", "something wrote %s %s", before ? "behind the end of" : "before the beginning of",
                sim_describe(allocation->address, text, sizeof text));
  fill_canary(device, allocation); /* told once */
}

void sim_memory_check_touched(sim_device *device) {
  sim_lock();
  while (device->touched) {
    sim_allocation *allocation = device->touched;
    device->touched = allocation->next_touched;
    allocation->is_touched = false;
    if (allocation->live) check_canary(device, allocation);
  }
  sim_unlock();
}

static void note_touched(sim_device *device, sim_allocation *allocation) {
  if (allocation->is_touched) return;
  allocation->is_touched = true;
  allocation->next_touched = device->touched;
  device->touched = allocation;
}

static void close_allocation(sim_device *device, sim_allocation *allocation) {
  sim_order_forget(allocation->address, allocation->address + allocation->bytes);
  sim_pages_close(allocation->begin + device->offset, (size_t)(allocation->end - allocation->begin));
  allocation->live = false;
  sim_remember_origin(&allocation->freed);
  device->counters.memory_used -= round_up(allocation->bytes, ALIGNMENT);
}

/* The allocation that begins at an address, on any device of the vendor; NULL after a violation. */
static sim_allocation *find_to_free(const sim_device *device, void *address) {
  char text[256];
  sim_device *owner = sim_device_of(address);
  if (!owner || !sim_is_device_address(address)) {
    sim_violation("not device memory", "%p was never allocated on a device", address);
    return NULL;
  }
  if (owner->vendor != device->vendor) {
    sim_violation("wrong device", "%s is freed on %s %d", sim_describe(address, text, sizeof text), device->name,
                  device->index);
    return NULL;
  }
  sim_allocation *allocation = find(owner, address);
  if (!allocation || allocation->address != (char *)address) {
    sim_violation("free of no allocation", "%s is freed", sim_describe(address, text, sizeof text));
    return NULL;
  }
  if (!allocation->live) {
    sim_violation("double free", "%s is freed once more", sim_describe(address, text, sizeof text));
    return NULL;
  }
  return allocation;
}

sim_status sim_free(sim_device *device, void *address) {
  sim_lock();
  sim_allocation *allocation = find_to_free(device, address);
  sim_device *owner = sim_device_of(address);
  if (allocation) sim_counters_add_amid(owner);
  sim_unlock();
  if (!allocation) return SIM_INVALID_VALUE;
  sim_status status = sim_device_drain(owner);
  if (status != SIM_OK) return status;
  sim_lock();
  if (allocation->live) {
    check_canary(owner, allocation);
    close_allocation(owner, allocation);
  }
  sim_unlock();
  return SIM_OK;
}

void sim_memory_tell_leaks(sim_device *device) {
  for (size_t i = 0; i < device->allocation_count; i++) {
    sim_allocation *left = device->allocations[i];
    if (!left->live) continue;
    check_canary(device, left);
    if (device->health == SIM_OK)
      sim_violation_of(&left->made, "made in", "leak", "%zu bytes of device memory of %s %d were never freed",
                       left->bytes, device->name, device->index);
    close_allocation(device, left);
  }
}

void sim_memory_info(sim_device *device, size_t *free_bytes, size_t *total) {
  sim_lock();
  *total = sim_setup()->memory;
  *free_bytes = *total - device->counters.memory_used;
  sim_unlock();
}

bool sim_is_device_address(const void *address) {
  const sim_device *device = sim_device_of(address);
  return device && (const char *)address < device->range + device->range_bytes;
}

/* What is wrong with `bytes` bytes at an address of the device's range; NULL: nothing. */
static const char *judge(const sim_device *device, const char *address, size_t bytes) {
  const sim_allocation *allocation = find(device, address);
  if (!allocation || address < allocation->address || address > allocation->address + allocation->bytes)
    return "out of bounds";
  if (!allocation->live) return "use after free";
  return bytes > (size_t)(allocation->address + allocation->bytes - address) ? "out of bounds" : NULL;
}

void *sim_twin(sim_device *device, const void *address, size_t bytes, const char *what) {
  char text[256];
  sim_lock();
  sim_device *owner = sim_device_of(address);
  void *twin = NULL;
  const char *wrong;
  if (!owner || !sim_is_device_address(address)) {
    sim_violation("not device memory", "%s is %p, which no device handed out", what, address);
  } else if (!sim_can_reach(device, owner)) {
    sim_violation("wrong device", "%s is %s, which %s %d cannot reach", what, sim_describe(address, text, sizeof text),
                  device->name, device->index);
  } else if ((wrong = judge(owner, address, bytes))) {
    sim_violation(wrong, "%s, %zu bytes, is %s", what, bytes, sim_describe(address, text, sizeof text));
  } else {
    note_touched(owner, find(owner, address));
    twin = (char *)(uintptr_t)address + owner->offset;
  }
  sim_unlock();
  return twin;
}

size_t sim_bytes_behind(const void *address) {
  size_t bytes = 0;
  sim_lock();
  if (sim_is_device_address(address)) {
    const sim_allocation *allocation = find(sim_device_of(address), address);
    if (allocation && !judge(sim_device_of(address), address, 0))
      bytes = (size_t)(allocation->address + allocation->bytes - (const char *)address);
  }
  sim_unlock();
  return bytes;
}

char *sim_describe(const void *address, char *text, size_t size) {
  sim_device *device = sim_device_of(address);
  if (!device) return sim_describe_host(address, text, size);
  const char *byte = address;
  if (byte >= device->range + device->range_bytes) byte -= device->offset;
  sim_lock();
  const sim_allocation *allocation = find(device, byte);
  if (!allocation)
    snprintf(text, size, "%p of %s %d, before all that it handed out", address, device->name, device->index);
  else
    snprintf(text, size, "byte %td of %zu bytes (made by %s%s%s) of %s %d", byte - allocation->address,
             allocation->bytes, allocation->made.call, allocation->live ? "" : ", freed by ",
             allocation->live ? "" : allocation->freed.call, device->name, device->index);
  sim_unlock();
  return text;
}
