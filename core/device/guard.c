/* SPDX-License-Identifier: Apache-2.0 */
#include "device/guard.h"

#include "runtime/error.h"
#include "runtime/progress.h"
#include "runtime/turns.h"

static hi_device *of(helio_backend_device *device) {
  return (hi_device *)device;
}

static const hi_plugin *plugin_of(helio_backend_device *device) {
  return of(device)->physical->plugin;
}

static helio_backend_device *handle_of(helio_backend_device *device) {
  return of(device)->handle;
}

/* Behind a failure nothing is called. */
static helio_status begin(helio_backend_device *device, const char *what) {
  hi_doing(what, of(device));
  return hi_device_refuses(of(device));
}

/* What a lost device was handed before is let run out, so that what it uses can be given back. */
static helio_status begin_waiting(helio_backend_device *device, const char *what) {
  hi_doing(what, of(device));
  return hi_device_hung(of(device)) ? hi_device_refuses(of(device)) : HELIO_OK;
}

static helio_status end(helio_backend_device *device, helio_status status) {
  hi_done();
  return hi_device_suspect(of(device), status);
}

/* ---- calls that a driver may let wait for all devices: see turn_begin of helio_host ----
 * A fill may load a kernel, a copy from another device tries whether it can be reached. */

/* Who was abandoned while it waited looks at nothing any more. */
static void take_turn(void) {
  hi_turn_begin(HELIO_TURN_DRIVER);
  if (hi_progress_abandoned(hi_progress_own())) hi_turn_end(HELIO_TURN_DRIVER);
  hi_go_no_further();
}

static helio_status begin_in_turn(helio_backend_device *device, const char *what) {
  helio_status status = begin(device, what);
  if (!status) take_turn();
  return status;
}

static helio_status end_in_turn(helio_backend_device *device, helio_status status) {
  hi_turn_end(HELIO_TURN_DRIVER);
  return end(device, status);
}

/* Of a call that is to give something. */
static helio_status end_with(helio_backend_device *device, helio_status status, const void *answer) {
  if (!status && !answer) {
    hi_reason_say("the device answered with nothing");
    status = HELIO_DEVICE_FAILURE;
  }
  return end_in_turn(device, status);
}

/* What is to be given back stays where a call never came back: it may hold the plugin's locks. */
static bool keeps(helio_backend_device *device, const char *what) {
  if (hi_device_hung(of(device))) return true;
  hi_doing(what, of(device));
  take_turn();
  return false;
}

static void given_back(void) {
  hi_turn_end(HELIO_TURN_DRIVER);
  hi_done();
}

/* ---- devices ---- */

static void close_device(helio_backend_device *device) {
  if (keeps(device, "closing the device")) return;
  plugin_of(device)->devices.close(handle_of(device));
  given_back();
}

static helio_status memory_info(helio_backend_device *device, uint64_t *available, uint64_t *total) {
  helio_status status = begin(device, "asking for free memory");
  return status ? status : end(device, plugin_of(device)->devices.memory_info(handle_of(device), available, total));
}

static helio_status synchronize(helio_backend_device *device) {
  helio_status status = begin_waiting(device, "waiting for the device");
  return status ? status : end(device, plugin_of(device)->devices.synchronize(handle_of(device)));
}

static void *native_device(helio_backend_device *device) {
  return plugin_of(device)->devices.native_device(handle_of(device));
}

/* ---- memory ---- */

static helio_status allocate(helio_backend_device *device, size_t bytes, helio_buffer **buffer) {
  helio_status status = begin_in_turn(device, "taking memory");
  if (status) return status;
  *buffer = NULL;
  status = plugin_of(device)->memory.allocate(handle_of(device), bytes, buffer);
  return end_with(device, status, *buffer);
}

static helio_status free_buffer(helio_backend_device *device, helio_buffer *buffer) {
  if (keeps(device, "giving memory back")) return HELIO_OK;
  return end_in_turn(device, plugin_of(device)->memory.free(handle_of(device), buffer));
}

static helio_status copy_in(helio_backend_device *device, helio_stream *stream, helio_place target, const void *source,
                            size_t bytes) {
  helio_status status = begin(device, "copying to the device");
  if (status) return status;
  return end(device, plugin_of(device)->memory.copy_in(handle_of(device), stream, target, source, bytes));
}

static helio_status copy_out(helio_backend_device *device, helio_stream *stream, void *target, helio_place source,
                             size_t bytes) {
  helio_status status = begin(device, "copying to the host");
  if (status) return status;
  return end(device, plugin_of(device)->memory.copy_out(handle_of(device), stream, target, source, bytes));
}

static helio_status copy(helio_backend_device *device, helio_stream *stream, helio_place target, helio_place source,
                         size_t bytes) {
  helio_status status = begin(device, "copying");
  if (status) return status;
  return end(device, plugin_of(device)->memory.copy(handle_of(device), stream, target, source, bytes));
}

static helio_status fill(helio_backend_device *device, helio_stream *stream, helio_place target, const void *pattern,
                         size_t pattern_bytes, size_t count) {
  helio_status status = begin_in_turn(device, "filling");
  if (status) return status;
  const helio_memory_table *memory = &plugin_of(device)->memory;
  return end_in_turn(device, memory->fill(handle_of(device), stream, target, pattern, pattern_bytes, count));
}

/* Which of two devices a failure of both together is the fault of: the one that was copied from if it says so itself.
 */
static helio_backend_device *culprit_of(helio_backend_device *device, helio_backend_device *from) {
  uint64_t available, total;
  helio_status status = plugin_of(from)->devices.memory_info(handle_of(from), &available, &total);
  return status == HELIO_DEVICE_FAILURE ? from : device;
}

static helio_status copy_peer(helio_backend_device *device, helio_stream *stream, helio_place target,
                              helio_backend_device *from, helio_place source, size_t bytes) {
  helio_status status = hi_device_refuses(of(from));
  if (!status) status = begin_in_turn(device, "copying from another device");
  if (status) return status;
  const helio_memory_table *memory = &plugin_of(device)->memory;
  status = memory->copy_peer(handle_of(device), stream, target, handle_of(from), source, bytes);
  return end_in_turn(status == HELIO_DEVICE_FAILURE ? culprit_of(device, from) : device, status);
}

static helio_status host_allocate(helio_backend_device *device, size_t bytes, void **memory) {
  helio_status status = begin_in_turn(device, "taking host memory");
  if (status) return status;
  *memory = NULL;
  status = plugin_of(device)->memory.host_allocate(handle_of(device), bytes, memory);
  return end_with(device, status, *memory);
}

static void host_free(helio_backend_device *device, void *memory) {
  if (keeps(device, "giving host memory back")) return;
  plugin_of(device)->memory.host_free(handle_of(device), memory);
  given_back();
}

/* ---- streams and events ---- */

static helio_status stream_create(helio_backend_device *device, helio_stream **stream) {
  helio_status status = begin_in_turn(device, "making a stream");
  if (status) return status;
  *stream = NULL;
  status = plugin_of(device)->streams.create(handle_of(device), stream);
  return end_with(device, status, *stream);
}

static void stream_destroy(helio_backend_device *device, helio_stream *stream) {
  if (keeps(device, "ending a stream")) return;
  plugin_of(device)->streams.destroy(handle_of(device), stream);
  given_back();
}

static helio_status stream_synchronize(helio_backend_device *device, helio_stream *stream) {
  helio_status status = begin_waiting(device, "waiting for a stream");
  return status ? status : end(device, plugin_of(device)->streams.synchronize(handle_of(device), stream));
}

static helio_status event_create(helio_backend_device *device, helio_event **event) {
  helio_status status = begin_in_turn(device, "making an event");
  if (status) return status;
  *event = NULL;
  status = plugin_of(device)->streams.event_create(handle_of(device), event);
  return end_with(device, status, *event);
}

static void event_destroy(helio_backend_device *device, helio_event *event) {
  if (keeps(device, "ending an event")) return;
  plugin_of(device)->streams.event_destroy(handle_of(device), event);
  given_back();
}

static helio_status event_record(helio_backend_device *device, helio_event *event, helio_stream *stream) {
  helio_status status = begin(device, "recording an event");
  return status ? status : end(device, plugin_of(device)->streams.event_record(handle_of(device), event, stream));
}

static helio_status event_query(helio_backend_device *device, helio_event *event) {
  helio_status status = begin(device, "asking for an event");
  return status ? status : end(device, plugin_of(device)->streams.event_query(handle_of(device), event));
}

static helio_status event_synchronize(helio_backend_device *device, helio_event *event) {
  helio_status status = begin_waiting(device, "waiting for an event");
  return status ? status : end(device, plugin_of(device)->streams.event_synchronize(handle_of(device), event));
}

static helio_status wait_for(helio_backend_device *device, helio_stream *stream, helio_event *event) {
  helio_status status = begin(device, "making a stream wait");
  return status ? status : end(device, plugin_of(device)->streams.wait(handle_of(device), stream, event));
}

/* ---- kernels ---- */

static helio_backend_device *shown(hi_device *device) {
  return (helio_backend_device *)device;
}

helio_status hi_guard_plan(hi_device *device, const helio_kernel *kernel, const helio_call *call,
                           helio_plan_answer *answer) {
  helio_status status = begin_in_turn(shown(device), "planning");
  return status ? status : end_in_turn(shown(device), kernel->plan(device->handle, call, answer));
}

/* Behind begin() nothing is looked at that a program could free when it goes on without this thread. */
helio_status hi_guard_run(hi_device *device, const helio_kernel *kernel, helio_plan *plan, const helio_run *run,
                          const char *label) {
  helio_status status = begin(shown(device), label);
  return status ? status : end(shown(device), kernel->run(plan, run));
}

void hi_guard_plan_free(hi_device *device, const helio_kernel *kernel, helio_plan *plan) {
  if (keeps(shown(device), "ending a plan")) return;
  kernel->plan_free(plan);
  given_back();
}

/* ---- the tables ---- */

void hi_guard(hi_plugin *plugin) {
  plugin->shown = (hi_device_tables){
      .devices = plugin->devices, .memory = plugin->memory, .streams = plugin->streams}; /* what takes no device */
  helio_device_table *devices = &plugin->shown.devices;
  helio_memory_table *memory = &plugin->shown.memory;
  helio_stream_table *streams = &plugin->shown.streams;
  devices->close = close_device;
  devices->memory_info = memory_info;
  devices->synchronize = synchronize;
  devices->native_device = native_device;
  memory->allocate = allocate;
  memory->free = free_buffer;
  memory->copy_in = copy_in;
  memory->copy_out = copy_out;
  memory->copy = copy;
  memory->fill = fill;
  memory->copy_peer = copy_peer;
  memory->host_allocate = host_allocate;
  memory->host_free = host_free;
  streams->create = stream_create;
  streams->destroy = stream_destroy;
  streams->synchronize = stream_synchronize;
  streams->event_create = event_create;
  streams->event_destroy = event_destroy;
  streams->event_record = event_record;
  streams->event_query = event_query;
  streams->event_synchronize = event_synchronize;
  streams->wait = wait_for;
}
