/* SPDX-License-Identifier: Apache-2.0 */
/* What the core holds instead of addresses.
 *
 * A handle is an odd address inside a reservation that nobody may read or write. Reading through it, or through it plus
 * an offset, ends the program there and then. Each handle has a page of its own and lies at a scrambled place in it, so
 * a handle plus an offset is not some other object's handle either but an error that names the call. A number is used
 * again only when a million others have been, and then with another scramble. */
#include "strict.h"

#include <string.h>
#include <sys/mman.h>

enum { HANDLE_SPACING = 4096, HANDLE_LIMIT = 1 << 20, FIRST_CAPACITY = 1024 };

static size_t reservation_bytes(void) {
  return (size_t)HANDLE_LIMIT * HANDLE_SPACING;
}

helio_status strict_handles_open(strict_call *call) {
  strict_handles *handles = &strict_current->handles;
  void *base = mmap(NULL, reservation_bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return strict_fail(call, HELIO_OUT_OF_MEMORY, "cannot reserve %zu bytes of addresses for handles",
                       reservation_bytes());
  }
  handles->base = base;
  return HELIO_OK;
}

void strict_handles_close(void) {
  strict_handles *handles = &strict_current->handles;
  if (handles->base != NULL) munmap(handles->base, reservation_bytes());
  strict_release(handles->slots);
  *handles = (strict_handles){0};
}

static bool grow_slots(strict_handles *handles) {
  size_t capacity = handles->capacity == 0 ? FIRST_CAPACITY : handles->capacity * 2;
  if (capacity > HANDLE_LIMIT) return false;
  strict_slot *slots = strict_allocate(capacity * sizeof *slots);
  if (slots == NULL) return false;
  if (handles->count != 0) memcpy(slots, handles->slots, handles->count * sizeof *slots);
  strict_release(handles->slots);
  handles->slots = slots;
  handles->capacity = capacity;
  return true;
}

/* An unused slot; free ones are taken again only when the whole range has been used. */
static strict_slot *new_slot(strict_handles *handles) {
  if (handles->count < HANDLE_LIMIT) {
    if (handles->count == handles->capacity && !grow_slots(handles)) return NULL;
    return &handles->slots[handles->count++];
  }
  for (size_t tried = 0; tried < HANDLE_LIMIT; tried++) {
    strict_slot *slot = &handles->slots[handles->cursor++ % HANDLE_LIMIT];
    if (slot->object == NULL) return slot;
  }
  return NULL;
}

/* Odd, below the spacing, and different for neighbours and for generations of the same slot. */
static uint16_t scramble(size_t index, uint16_t generation) {
  uint64_t x = (index + 1) * UINT64_C(0x9E3779B97F4A7C15) + generation * UINT64_C(0xD1B54A32D192ED03);
  x = (x ^ (x >> 29)) * UINT64_C(0xBF58476D1CE4E5B9);
  return (uint16_t)((x >> 40) % (HANDLE_SPACING / 2) * 2 + 1);
}

helio_status strict_object_add(strict_call *call, strict_object *object, strict_kind kind, strict_device *device) {
  strict_handles *handles = &strict_current->handles;
  strict_slot *slot = new_slot(handles);
  if (slot == NULL) {
    return strict_fail(call, HELIO_OUT_OF_MEMORY, "no memory for the handle of a %s", strict_kind_name(kind));
  }
  size_t index = (size_t)(slot - handles->slots);
  slot->generation++;
  slot->scramble = scramble(index, slot->generation);
  slot->object = object;
  slot->last_kind = (uint8_t)kind;
  object->kind = kind;
  object->number = ++strict_current->numbers[kind];
  object->device = device;
  object->handle = handles->base + index * HANDLE_SPACING + slot->scramble;
  if (device != NULL) {
    object->next = device->objects;
    object->link = &device->objects;
    if (object->next != NULL) object->next->link = &object->next;
    device->objects = object;
  }
  return HELIO_OK;
}

static strict_slot *find_slot(const void *handle) {
  if (strict_current == NULL) return NULL;
  strict_handles *handles = &strict_current->handles;
  uintptr_t offset = (uintptr_t)handle - (uintptr_t)handles->base;
  if ((uintptr_t)handle < (uintptr_t)handles->base || offset / HANDLE_SPACING >= handles->count) return NULL;
  strict_slot *slot = &handles->slots[offset / HANDLE_SPACING];
  return slot->scramble == offset % HANDLE_SPACING ? slot : NULL;
}

/* Takes the handle back; the record itself is its owner's. */
void strict_object_remove(strict_object *object) {
  strict_slot *slot = find_slot(object->handle);
  if (slot != NULL && slot->object == object) slot->object = NULL;
  if (object->link == NULL) return;
  *object->link = object->next;
  if (object->next != NULL) object->next->link = object->link;
  object->link = NULL;
}

strict_object *strict_object_find(const void *handle, strict_kind kind) {
  strict_slot *slot = find_slot(handle);
  return slot != NULL && slot->object != NULL && slot->object->kind == kind ? slot->object : NULL;
}

helio_status strict_object_get(strict_call *call, const void *handle, strict_kind kind, strict_object **object) {
  const char *wanted = strict_kind_name(kind);
  strict_slot *slot = find_slot(handle);
  if (handle == NULL) return strict_fail(call, HELIO_INVALID_ARGUMENT, "the %s is NULL", wanted);
  if (slot == NULL) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "%p is no %s of this plugin (an offset added to a handle?)",
                       handle, wanted);
  }
  if (slot->object == NULL) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "%p is a %s that was released already", handle,
                       strict_kind_name(slot->last_kind));
  }
  if (slot->object->kind != kind) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "%p is a %s where a %s is wanted", handle,
                       strict_kind_name(slot->object->kind), wanted);
  }
  *object = slot->object;
  return HELIO_OK;
}

helio_status strict_device_get(strict_call *call, const void *handle, strict_device **device) {
  strict_object *object = NULL;
  helio_status status = strict_object_get(call, handle, STRICT_DEVICE, &object);
  if (status == HELIO_OK) *device = (strict_device *)object;
  return status;
}

/* An object that must belong to `device`. */
helio_status strict_object_of(strict_call *call, const strict_device *device, const void *handle, strict_kind kind,
                              strict_object **object) {
  strict_object *found = NULL;
  helio_status status = strict_object_get(call, handle, kind, &found);
  if (status != HELIO_OK) return status;
  if (found->device != device) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "%s %u belongs to device %u, not to device %u",
                       strict_kind_name(kind), found->number, found->device->object.number, device->object.number);
  }
  *object = found;
  return HELIO_OK;
}

const char *strict_kind_name(strict_kind kind) {
  static const char *const names[STRICT_KIND_COUNT] = {"nothing", "device", "buffer", "stream", "event", "plan"};
  return kind < STRICT_KIND_COUNT ? names[kind] : names[0];
}
