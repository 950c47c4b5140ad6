/* SPDX-License-Identifier: Apache-2.0 */
/* Devices come to be when they are first asked for, and stay. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sim_device *devices[SIM_VENDORS][SIM_MOST_DEVICES]; /* by slot */
static _Thread_local sim_device *current[SIM_VENDORS];

/* Keeps of `slots` those that a list such as "2,0" names, in its order. As the vendors do it, the list ends at the
 * first word that names none. */
static int choose(const char *list, int *slots, int count) {
  int chosen[SIM_MOST_DEVICES], kept = 0;
  while (kept < count) {
    char *end = NULL;
    long index = strtol(list, &end, 10);
    if (end == list || index < 0 || index >= count) break;
    chosen[kept++] = slots[index];
    if (*end != ',') break;
    list = end + 1;
  }
  memcpy(slots, chosen, (size_t)kept * sizeof *slots);
  return kept;
}

/* The slots that a vendor's driver shows, in the order of their numbers. */
static int visible(sim_vendor vendor, int slots[SIM_MOST_DEVICES]) {
  int count = sim_setup()->devices[vendor];
  for (int i = 0; i < count; i++) slots[i] = i;
  const char *const *lists = sim_setup()->visible, *cuda = lists[SIM_VISIBLE_CUDA];
  if (vendor == SIM_CUDA) return cuda ? choose(cuda, slots, count) : count;
  const char *rocr = lists[SIM_VISIBLE_ROCR], *hip = lists[SIM_VISIBLE_HIP];
  if (rocr) count = choose(rocr, slots, count);
  /* HIP listens to CUDA's variable when its own is not set. */
  const char *list = hip ? hip : cuda;
  return list ? choose(list, slots, count) : count;
}

int sim_device_count(sim_vendor vendor) {
  int slots[SIM_MOST_DEVICES];
  return visible(vendor, slots);
}

static void write_name(sim_device *device) {
  const char *architecture = sim_setup()->architecture[device->vendor];
  if (device->vendor == SIM_CUDA) {
    int number = atoi(architecture + strlen("sm_"));
    snprintf(device->name, sizeof device->name, "gpusim (CUDA %d.%d)", number / 10, number % 10);
  } else {
    snprintf(device->name, sizeof device->name, "gpusim (%.*s)", (int)strcspn(architecture, ":"), architecture);
  }
}

static sim_device *open_device(sim_vendor vendor, int index, int slot) {
  sim_device *device = calloc(1, sizeof *device);
  if (!device) return NULL;
  device->vendor = vendor;
  device->index = index;
  device->slot = slot;
  device->slow = sim_fault_is_slow(device);
  write_name(device);
  sim_memory_open(device);
  devices[vendor][slot] = device;
  sim_streams_open(device);
  sim_signal_arm();
  return device;
}

sim_device *sim_device_at(sim_vendor vendor, int index) {
  int slots[SIM_MOST_DEVICES];
  if (index < 0 || index >= visible(vendor, slots)) return NULL;
  sim_lock();
  sim_device *device = devices[vendor][slots[index]];
  if (!device) device = open_device(vendor, index, slots[index]);
  sim_unlock();
  return device;
}

void sim_each_device(void (*visit)(sim_device *device, void *context), void *context) {
  for (int vendor = 0; vendor < SIM_VENDORS; vendor++)
    for (int slot = 0; slot < SIM_MOST_DEVICES; slot++)
      if (devices[vendor][slot]) visit(devices[vendor][slot], context);
}

static bool is_in(const char *byte, const char *range, size_t bytes) {
  return byte >= range && byte < range + bytes;
}

sim_device *sim_device_of(const void *address) {
  sim_device *found = NULL;
  sim_lock();
  for (int vendor = 0; vendor < SIM_VENDORS && !found; vendor++) {
    for (int slot = 0; slot < SIM_MOST_DEVICES && !found; slot++) {
      sim_device *device = devices[vendor][slot];
      if (!device) continue;
      if (is_in(address, device->range, device->range_bytes) ||
          is_in(address, device->range + device->offset, device->range_bytes))
        found = device;
    }
  }
  sim_unlock();
  return found;
}

sim_vendor sim_device_vendor(const sim_device *device) {
  return device->vendor;
}
int sim_device_index(const sim_device *device) {
  return device->index;
}
int sim_device_slot(const sim_device *device) {
  return device->slot;
}
const char *sim_device_name(const sim_device *device) {
  return device->name;
}
int sim_device_warp(const sim_device *device) {
  return sim_setup()->warp[device->vendor];
}

sim_device *sim_current(sim_vendor vendor) {
  return current[vendor];
}
void sim_set_current(sim_vendor vendor, sim_device *device) {
  current[vendor] = device;
}

sim_status sim_device_health(const sim_device *device) {
  sim_lock();
  sim_status status = device->health;
  sim_unlock();
  return status;
}

void sim_device_lose(sim_device *device, sim_status status) {
  sim_lock();
  if (device->health == SIM_OK) {
    device->health = status;
    sim_streams_abandon(device);
    sim_transfers_drop(device);
    sim_changed();
  }
  sim_unlock();
}

sim_status sim_enable_peer(sim_device *device, sim_device *peer) {
  if (device == peer || device->vendor != peer->vendor) return SIM_INVALID_DEVICE;
  if (!sim_setup()->peer) return SIM_PEER_UNSUPPORTED;
  sim_lock();
  sim_status status = device->peers[peer->slot] ? SIM_PEER_ENABLED : SIM_OK;
  device->peers[peer->slot] = true;
  sim_unlock();
  return status;
}

void sim_forget_peers(sim_device *device) {
  sim_lock();
  for (int slot = 0; slot < SIM_MOST_DEVICES; slot++) {
    device->peers[slot] = false;
    if (devices[device->vendor][slot]) devices[device->vendor][slot]->peers[device->slot] = false;
  }
  sim_unlock();
}

bool sim_can_reach(const sim_device *device, const sim_device *peer) {
  if (device == peer) return true;
  if (device->vendor != peer->vendor) return false;
  sim_lock();
  bool reachable = device->peers[peer->slot];
  sim_unlock();
  return reachable;
}
