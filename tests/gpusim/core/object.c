/* SPDX-License-Identifier: Apache-2.0 */
/* Every handle that was ever given is remembered, and its memory never used again, so that a handle can be told from a
 * number, a live one from a deleted one, and what was forgotten from what was ended. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
  sim_object *object;
  sim_origin made, ended;
} entry;

/* A hash table with open addressing, its size a power of two. */
static entry **table;
static size_t room, count;

static size_t slot_of(const void *handle) {
  uint64_t hash = (uint64_t)(uintptr_t)handle * 0x9E3779B97F4A7C15u;
  size_t slot = (size_t)(hash >> 32) & (room - 1);
  while (table[slot] && table[slot]->object != handle) slot = (slot + 1) & (room - 1);
  return slot;
}

static bool grow(void) {
  size_t old_room = room;
  entry **old = table;
  entry **wider = calloc(old_room ? 2 * old_room : 256, sizeof *wider);
  if (!wider) return false;
  table = wider;
  room = old_room ? 2 * old_room : 256;
  for (size_t i = 0; i < old_room; i++)
    if (old[i]) table[slot_of(old[i]->object)] = old[i];
  free(old);
  return true;
}

static entry *find(const void *handle) {
  return room ? table[slot_of(handle)] : NULL;
}

void *sim_new(const char *kind, size_t size, sim_device *device) {
  sim_object *object = calloc(1, size);
  entry *made = calloc(1, sizeof *made);
  sim_lock();
  if (!object || !made || (2 * count >= room && !grow())) {
    sim_unlock();
    free(object);
    free(made);
    return NULL;
  }
  *object = (sim_object){.kind = kind, .device = device, .live = true};
  made->object = object;
  sim_remember_origin(&made->made);
  table[slot_of(object)] = made;
  count++;
  sim_unlock();
  return object;
}

static void *check(const void *handle, const char *kind, const sim_device *device) {
  entry *found = find(handle);
  if (!handle) {
    sim_violation("invalid handle", "NULL is given for a %s", kind);
  } else if (sim_is_device_address(handle)) {
    sim_violation("invalid handle", "the address %p of device memory is given for a %s", handle, kind);
  } else if (!found) {
    sim_violation("invalid handle", "%p is no %s: nothing was ever made there", handle, kind);
  } else if (strcmp(found->object->kind, kind) != 0) {
    sim_violation("invalid handle", "%p is no %s but a %s", handle, kind, found->object->kind);
  } else if (!found->object->live) {
    sim_violation("use after delete", "the %s %p was made by %s and deleted by %s", kind, handle, found->made.call,
                  found->ended.call);
  } else if (device && found->object->device != device) {
    const sim_device *owner = found->object->device;
    sim_violation("wrong device", "the %s %p belongs to %s %d, not to %s %d", kind, handle,
                  owner ? owner->name : "no device", owner ? owner->index : 0, device->name, device->index);
  } else {
    return found->object;
  }
  return NULL;
}

void *sim_check_on(const void *handle, const char *kind, const sim_device *device) {
  sim_lock();
  void *object = check(handle, kind, device);
  sim_unlock();
  return object;
}

void *sim_check_of(const void *handle, const char *kind, sim_vendor vendor) {
  sim_object *object = sim_check(handle, kind);
  if (!object || !object->device || object->device->vendor == vendor) return object;
  sim_violation("wrong device", "the %s %p belongs to %s %d, another vendor's", kind, handle, object->device->name,
                object->device->index);
  return NULL;
}

void *sim_check(const void *handle, const char *kind) {
  return sim_check_on(handle, kind, NULL);
}

void sim_delete(void *object) {
  if (!object) return;
  sim_lock();
  entry *found = find(object);
  if (found && found->object->live) {
    found->object->live = false;
    sim_remember_origin(&found->ended);
  }
  sim_unlock();
}

/* What a lost device had cannot be deleted any more. */
static void tell_object(entry *left) {
  sim_device *device = left->object->device;
  left->object->live = false;
  if (device && device->health != SIM_OK) return;
  char owner[96] = "";
  if (device) snprintf(owner, sizeof owner, " of %s %d", device->name, device->index);
  sim_violation_of(&left->made, "made in", "leak", "a %s%s was never deleted", left->object->kind, owner);
}

static void tell_memory(sim_device *device, void *context) {
  (void)context;
  sim_memory_tell_leaks(device);
}

void sim_tell_leaks(sim_device *device) {
  sim_lock();
  for (size_t i = 0; i < room; i++)
    if (table[i] && table[i]->object->live && (!device || table[i]->object->device == device)) tell_object(table[i]);
  if (device)
    tell_memory(device, NULL);
  else
    sim_each_device(tell_memory, NULL);
  if (!device) sim_pinned_tell_leaks();
  sim_unlock();
}
