/* SPDX-License-Identifier: Apache-2.0 */
/* Which command runs next.
 *
 * Nothing runs before somebody must see it: a synchronize, a query that has been put off often enough, or a full queue.
 * A synchronize then goes one of two ways, as the seed decides. Three times in four it is lazy and runs only what the
 * awaited stream needs: a wait that the core forgot leaves the other stream's work undone, and the numbers show it.
 * Else it takes any stream of any device that could go on, in random order, which finds work that overtakes its
 * neighbours.
 */
#include "strict.h"

#include <string.h>

enum { LAZY_OF_FOUR = 3, USUAL_PLACES = 8 };

/* Commands are kept for reuse, so that a steady loop allocates nothing. */
static strict_command *spare_command(size_t place_count) {
  strict_command **link = &strict_current->spare_commands;
  while (*link != NULL && (*link)->place_capacity < place_count) link = &(*link)->next;
  strict_command *found = *link;
  if (found == NULL) return NULL;
  size_t capacity = found->place_capacity;
  *link = found->next;
  memset(found, 0, sizeof *found + capacity * sizeof found->places[0]);
  found->place_capacity = capacity;
  found->place_count = place_count;
  return found;
}

static strict_command *allocate_command(size_t place_count) {
  size_t capacity = place_count > USUAL_PLACES ? place_count : USUAL_PLACES;
  strict_command *command = strict_allocate(sizeof *command + capacity * sizeof command->places[0]);
  if (command == NULL) return NULL;
  if (capacity > strict_current->largest_command) strict_current->largest_command = capacity;
  command->place_capacity = capacity;
  command->place_count = place_count;
  return command;
}

/* Handing over work allocates nothing: a command that is large enough exists from now on, spare or in a queue. */
bool strict_command_reserve(size_t place_count) {
  size_t capacity = place_count > USUAL_PLACES ? place_count : USUAL_PLACES;
  if (strict_current->largest_command >= capacity) return true;
  strict_command *command = allocate_command(capacity);
  if (command == NULL) return false;
  command->next = strict_current->spare_commands;
  strict_current->spare_commands = command;
  return true;
}

/* Where there is no memory for more, the queues are worked off until one is spare. */
strict_command *strict_command_new(size_t place_count) {
  strict_command *command = spare_command(place_count);
  if (command == NULL) command = allocate_command(place_count);
  while (command == NULL && strict_run_any()) command = spare_command(place_count);
  return command;
}

/* The buffers that a command names must not be freed before it has run. */
static void count_users(strict_command *command, int change) {
  for (size_t i = 0; i < command->place_count; i++) {
    if (command->places[i].buffer == NULL) continue;
    strict_buffer *buffer = (strict_buffer *)strict_object_find(command->places[i].buffer, STRICT_BUFFER);
    if (buffer != NULL) buffer->queued += (uint32_t)change;
  }
}

/* The end of a command, whether it ran or was thrown away. */
void strict_command_retire(strict_command *command) {
  count_users(command, -1);
  if (command->kind == STRICT_WAIT) {
    strict_event *event = (strict_event *)strict_object_find(command->event_handle, STRICT_EVENT);
    if (event != NULL) event->queued_waits--;
  }
  if (command->point != NULL) strict_point_release(command->point);
  if (command->plan != NULL && --command->plan->queued == 0 && command->plan->freed) strict_plan_discard(command->plan);
  command->next = strict_current->spare_commands;
  strict_current->spare_commands = command;
}

void strict_commands_free(void) {
  while (strict_current->spare_commands != NULL) {
    strict_command *command = strict_current->spare_commands;
    strict_current->spare_commands = command->next;
    strict_release(command);
  }
  while (strict_current->spare_points != NULL) {
    strict_point *point = strict_current->spare_points;
    strict_current->spare_points = point->next_spare;
    strict_release(point);
  }
}

static bool runnable(const strict_stream *stream) {
  const strict_command *head = stream->head;
  return head != NULL && !(head->kind == STRICT_WAIT && !head->point->passed);
}

/* A failure is kept on the stream; what comes behind it still runs, as it would on a real device. */
static void execute_head(strict_stream *stream) {
  strict_command *command = stream->head;
  strict_failure failure = {.status = HELIO_OK};
  stream->head = command->next;
  if (stream->head == NULL) stream->tail = NULL;
  stream->length--;
  stream->executed++;
  switch (command->kind) {
  case STRICT_RECORD:
    command->point->passed = true;
    break;
  case STRICT_WAIT:
    break;
  case STRICT_RUN:
    strict_execute_run(stream, command, &failure);
    break;
  default:
    strict_execute_copy(command, &failure);
    break;
  }
  if (failure.status != HELIO_OK) {
    strict_remember(&stream->failure, failure.status, "late, from command %llu of stream %u: %s",
                    (unsigned long long)stream->executed, stream->object.number, failure.message);
  }
  strict_command_retire(command);
}

/* The stream whose next command brings `wanted` on: itself, or the one that it waits for. */
static strict_stream *needed_by(strict_stream *wanted) {
  strict_stream *stream = wanted;
  for (uint32_t steps = 0; steps <= strict_current->numbers[STRICT_STREAM]; steps++) {
    if (stream->head == NULL) return NULL;
    if (runnable(stream)) return stream;
    stream = stream->head->point->stream;
  }
  return NULL;
}

static strict_stream *any_runnable(void) {
  uint64_t count = 0;
  for (strict_stream *stream = strict_current->streams; stream != NULL; stream = stream->next) {
    count += runnable(stream);
  }
  if (count == 0) return NULL;
  uint64_t chosen = strict_random(count);
  for (strict_stream *stream = strict_current->streams; stream != NULL; stream = stream->next) {
    if (runnable(stream) && chosen-- == 0) return stream;
  }
  return NULL;
}

bool strict_run_any(void) {
  strict_stream *stream = any_runnable();
  if (stream != NULL) execute_head(stream);
  return stream != NULL;
}

/* Runs one command. False: none can run that would ever let `wanted` go on. */
bool strict_progress(strict_stream *wanted, bool lazy) {
  strict_stream *stream = needed_by(wanted);
  if (stream != NULL && !lazy) stream = any_runnable();
  if (stream == NULL) return false;
  execute_head(stream);
  return true;
}

void strict_enqueue(strict_stream *stream, strict_command *command) {
  count_users(command, 1);
  command->next = NULL;
  if (stream->tail != NULL) {
    stream->tail->next = command;
  } else {
    stream->head = command;
  }
  stream->tail = command;
  stream->length++;
  while (stream->length > strict_current->settings.behind && strict_progress(stream, true)) continue;
}

static bool choose_lazy(void) {
  return strict_random(4) < LAZY_OF_FOUR;
}

static helio_status deadlock(strict_call *call, const strict_stream *stream) {
  return strict_fail(call, HELIO_DEVICE_FAILURE,
                     "deadlock: stream %u has %zu commands and waits for an event that nothing queued can pass",
                     stream->object.number, stream->length);
}

helio_status strict_drain_stream(strict_call *call, strict_stream *stream) {
  bool lazy = choose_lazy();
  while (stream->head != NULL) {
    if (!strict_progress(stream, lazy)) return deadlock(call, stream);
  }
  return HELIO_OK;
}

static strict_stream *busy_stream(const strict_device *device) {
  strict_stream *stream = strict_current->streams;
  while (stream != NULL && (stream->object.device != device || stream->head == NULL)) stream = stream->next;
  return stream;
}

helio_status strict_drain_device(strict_call *call, strict_device *device) {
  bool lazy = choose_lazy();
  for (strict_stream *stream; (stream = busy_stream(device)) != NULL;) {
    if (!strict_progress(stream, lazy)) return deadlock(call, stream);
  }
  return HELIO_OK;
}

helio_status strict_drain_point(strict_call *call, strict_point *point) {
  bool lazy = choose_lazy();
  while (!point->passed) {
    if (!strict_progress(point->stream, lazy)) return deadlock(call, point->stream);
  }
  return HELIO_OK;
}
