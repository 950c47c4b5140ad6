/* SPDX-License-Identifier: Apache-2.0 */
#include "strategy/meeting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/clock.h"
#include "runtime/error.h"

/* All meetings of the process. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static hi_meeting *all;
static uint64_t last_number;

/* Those that a rank could not join, the latest. */
enum { REFUSALS = 8 };
static unsigned char refused[REFUSALS][HELIO_COLLECTIVE_ID_SIZE];
static unsigned refusals;

void hi_meeting_new_id(void *id) {
  pthread_mutex_lock(&all_lock);
  uint64_t number = ++last_number;
  pthread_mutex_unlock(&all_lock);
  memset(id, 0, HELIO_COLLECTIVE_ID_SIZE);
  snprintf(id, HELIO_COLLECTIVE_ID_SIZE, "helio meeting %llu", (unsigned long long)number);
}

/* ---- failing: the first failure is that of all ranks, for good ---- */

/* The lock is held in all of these. */
static helio_status tell(const hi_meeting *meeting) {
  hi_reason_say("%s", meeting->message);
  return meeting->status;
}

static void end_all_waits(hi_meeting *meeting, helio_status status, const char *message) {
  if (!meeting->status) {
    meeting->status = status;
    snprintf(meeting->message, sizeof meeting->message, "%s", message);
  }
  pthread_cond_broadcast(&meeting->changed);
}

static helio_status break_up(hi_meeting *meeting, helio_status status, const char *message) {
  end_all_waits(meeting, status, message);
  return tell(meeting);
}

/* "ranks 1, 3" of those that have not come. */
static void list_missing(const hi_meeting *meeting, bool joining, char *text, size_t size) {
  size_t length = 0;
  int count = 0;
  for (uint32_t i = 0; i < meeting->rank_count && length < size; i++) {
    if (joining ? meeting->ranks[i].member != NULL : meeting->ranks[i].arrived) continue;
    length += (size_t)snprintf(text + length, size - length, "%s%u", count++ ? ", " : "", i);
  }
}

static helio_status time_is_up(hi_meeting *meeting, bool joining) {
  char missing[200] = "", message[600];
  list_missing(meeting, joining, missing, sizeof missing);
  if (meeting->running) {
    snprintf(message, sizeof message, "the device of the sum has not finished within %.3g s",
             meeting->timeout_ms / 1000.0);
  } else {
    snprintf(message, sizeof message, "of %u ranks these did not come%s within %.3g s: %s", meeting->rank_count,
             joining ? " to join the group" : "", meeting->timeout_ms / 1000.0, missing);
  }
  return break_up(meeting, HELIO_TIMED_OUT, message);
}

/* ---- waiting ---- */

/* Waits for a change, or a moment; false: `left`, in milliseconds, is used up. Only time in which this thread could run
 * counts: whoever was stopped with the whole process has not waited. */
static bool wait_on(hi_meeting *meeting, int64_t *left) {
  enum { SLICE = 100 };
  if (meeting->timeout_ms == 0) return pthread_cond_wait(&meeting->changed, &meeting->lock) == 0;
  if (*left <= 0) return false;
  double begin = hi_seconds();
  struct timespec end = hi_in_milliseconds(CLOCK_MONOTONIC, *left < SLICE ? (long)*left : SLICE);
  pthread_cond_timedwait(&meeting->changed, &meeting->lock, &end);
  int64_t spent = (int64_t)((hi_seconds() - begin) * 1000) + 1;
  *left -= spent < 2 * SLICE ? spent : 2 * SLICE;
  return true;
}

/* ---- joining and leaving ---- */

static void meeting_free(hi_meeting *meeting) {
  for (uint32_t i = 0; i < meeting->rank_count; i++) free(meeting->ranks[i].counts);
  pthread_cond_destroy(&meeting->changed);
  pthread_mutex_destroy(&meeting->lock);
  free(meeting);
}

static hi_meeting *meeting_new(const helio_communicator_options *options) {
  uint32_t count = options->rank_count;
  hi_meeting *meeting = calloc(1, sizeof *meeting + count * sizeof meeting->ranks[0]);
  if (!meeting) return NULL;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&meeting->lock, NULL);
  pthread_cond_init(&meeting->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  memcpy(meeting->id, options->id, sizeof meeting->id);
  meeting->rank_count = count;
  meeting->timeout_ms = options->timeout_ms;
  for (uint32_t i = 0; i < count; i++) {
    meeting->ranks[i].counts = calloc(count, sizeof(size_t));
    if (meeting->ranks[i].counts) continue;
    meeting_free(meeting);
    return NULL;
  }
  return meeting;
}

/* The lock of all is held. */
static hi_meeting *find(const void *id) {
  hi_meeting *meeting = all;
  while (meeting && memcmp(meeting->id, id, sizeof meeting->id) != 0) meeting = meeting->next;
  return meeting;
}

static bool is_refused(const void *id) {
  for (unsigned i = 0; i < REFUSALS && i < refusals; i++) {
    if (memcmp(refused[i], id, sizeof refused[i]) == 0) return true;
  }
  return false;
}

/* Those who wait are told by the meeting, those who come later find its id. */
helio_status hi_meeting_refuse(const helio_communicator_options *options, helio_status status) {
  char message[60];
  snprintf(message, sizeof message, "rank %u could not join the group", options->rank);
  pthread_mutex_lock(&all_lock);
  hi_meeting *meeting = find(options->id);
  if (meeting) {
    pthread_mutex_lock(&meeting->lock);
    end_all_waits(meeting, HELIO_ABORTED, message);
    pthread_mutex_unlock(&meeting->lock);
  }
  memcpy(refused[refusals++ % REFUSALS], options->id, sizeof refused[0]);
  pthread_mutex_unlock(&all_lock);
  return status;
}

/* The meeting with this id, made by whoever comes first. Holds a reference. */
static helio_status enter(const helio_communicator_options *options, hi_meeting **result) {
  pthread_mutex_lock(&all_lock);
  hi_meeting *meeting = find(options->id);
  bool too_late = is_refused(options->id);
  if (!meeting && !too_late && (meeting = meeting_new(options))) {
    meeting->next = all;
    all = meeting;
  }
  if (meeting) meeting->references++;
  pthread_mutex_unlock(&all_lock);
  *result = meeting;
  if (meeting) return HELIO_OK;
  if (too_late) {
    hi_reason_say("another rank could not join the group");
    return HELIO_ABORTED;
  }
  hi_reason_say("no memory for a group of %u ranks", options->rank_count);
  return HELIO_OUT_OF_MEMORY;
}

static void drop(hi_meeting *meeting) {
  pthread_mutex_lock(&all_lock);
  bool last = --meeting->references == 0;
  if (last) {
    hi_meeting **link = &all;
    while (*link != meeting) link = &(*link)->next;
    *link = meeting->next;
  }
  pthread_mutex_unlock(&all_lock);
  if (last) meeting_free(meeting);
}

/* The lock is held. */
static helio_status take_seat(hi_meeting *meeting, const helio_communicator_options *options, helio_event *event) {
  hi_meeting_rank *seat = &meeting->ranks[options->rank];
  if (meeting->status) return tell(meeting);
  if (meeting->rank_count != options->rank_count || seat->member || meeting->joined == meeting->rank_count) {
    hi_reason_say("rank %u of %u joins a group of %u ranks%s", options->rank, options->rank_count, meeting->rank_count,
                  meeting->rank_count == options->rank_count ? " that has such a rank already" : "");
    return HELIO_INVALID_ARGUMENT;
  }
  seat->member = options->member;
  seat->event = event;
  meeting->joined++;
  pthread_cond_broadcast(&meeting->changed);
  int64_t left = meeting->timeout_ms;
  bool in_time = true;
  while (!meeting->status && meeting->joined < meeting->rank_count) {
    if (!in_time) time_is_up(meeting, true);
    in_time = meeting->status || wait_on(meeting, &left);
  }
  if (!meeting->status) return HELIO_OK;
  seat->member = NULL;
  return tell(meeting);
}

helio_status hi_meeting_join(const helio_communicator_options *options, helio_event *event, hi_meeting **result) {
  hi_meeting *meeting;
  if (options->rank >= options->rank_count) {
    hi_reason_say("there is no rank %u in a group of %u", options->rank, options->rank_count);
    return HELIO_INVALID_ARGUMENT;
  }
  helio_status status = enter(options, &meeting);
  if (status) return hi_meeting_refuse(options, status);
  pthread_mutex_lock(&meeting->lock);
  status = take_seat(meeting, options, event);
  pthread_mutex_unlock(&meeting->lock);
  if (status) {
    drop(meeting);
  } else {
    *result = meeting;
  }
  return status;
}

void hi_meeting_leave(hi_meeting *meeting, uint32_t rank) {
  pthread_mutex_lock(&meeting->lock);
  int64_t left = meeting->timeout_ms;
  while (meeting->running && wait_on(meeting, &left)) continue; /* only after an abort */
  for (uint32_t i = 0; i < meeting->rank_count; i++) {
    const hi_meeting_rank *other = &meeting->ranks[i];
    /* Its calls may have been on several of its streams. */
    if (other->member && other->call.stream) other->member->devices->synchronize(other->member->device);
  }
  meeting->ranks[rank].member = NULL;
  pthread_mutex_unlock(&meeting->lock);
  drop(meeting);
}

void hi_meeting_abort(hi_meeting *meeting, uint32_t rank) {
  char message[60];
  snprintf(message, sizeof message, "rank %u has aborted the group", rank);
  pthread_mutex_lock(&meeting->lock);
  break_up(meeting, HELIO_ABORTED, message);
  pthread_mutex_unlock(&meeting->lock);
}

helio_status hi_meeting_poll(hi_meeting *meeting) {
  pthread_mutex_lock(&meeting->lock);
  helio_status status = meeting->status ? tell(meeting) : HELIO_OK;
  pthread_mutex_unlock(&meeting->lock);
  return status;
}

/* ---- calls ---- */

static void post(hi_meeting *meeting, uint32_t rank, hi_meeting_kind kind, const helio_collective_call *call) {
  hi_meeting_rank *seat = &meeting->ranks[rank];
  bool parts = kind == HI_MEETING_ALL_GATHER || kind == HI_MEETING_REDUCE_SCATTER;
  bool moves = kind == HI_MEETING_ALL_GATHER || kind == HI_MEETING_BROADCAST;
  bool rooted = kind == HI_MEETING_REDUCE || kind == HI_MEETING_BROADCAST;
  seat->kind = kind;
  seat->call = *call;
  seat->call.counts = seat->counts;
  for (uint32_t i = 0; i < meeting->rank_count; i++) seat->counts[i] = parts ? call->counts[i] : call->count;
  if (moves) seat->call.reduction = 0; /* what does not matter must not differ */
  if (!rooted) seat->call.root = 0;
  seat->arrived = true;
  meeting->arrived++;
}

static void describe(const hi_meeting *meeting, uint32_t rank, char *text, size_t size) {
  static const char *const kinds[] = {"", "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter"};
  static const char *const reductions[] = {"", ", sum", ", max", ", min"};
  const hi_meeting_rank *seat = &meeting->ranks[rank];
  size_t all_elements = 0;
  for (uint32_t i = 0; i < meeting->rank_count; i++) all_elements += seat->counts[i];
  bool parts = seat->kind >= HI_MEETING_ALL_GATHER;
  int length = snprintf(text, size, "%s of %zu %s%s", kinds[seat->kind], parts ? all_elements : seat->call.count,
                        helio_type_name((helio_type)seat->call.type), reductions[seat->call.reduction & 3]);
  bool rooted = seat->kind == HI_MEETING_REDUCE || seat->kind == HI_MEETING_BROADCAST;
  if (rooted) snprintf(text + length, size - (size_t)length, ", root %u", seat->call.root);
}

/* All ranks ask for what rank 0 asks for. */
static helio_status compare(hi_meeting *meeting) {
  const hi_meeting_rank *first = &meeting->ranks[0];
  for (uint32_t i = 1; i < meeting->rank_count; i++) {
    const hi_meeting_rank *other = &meeting->ranks[i];
    if (other->kind == first->kind && other->call.type == first->call.type &&
        other->call.reduction == first->call.reduction && other->call.root == first->call.root &&
        memcmp(other->counts, first->counts, meeting->rank_count * sizeof(size_t)) == 0) {
      continue;
    }
    char mine[120], theirs[120], message[400];
    describe(meeting, 0, mine, sizeof mine);
    describe(meeting, i, theirs, sizeof theirs);
    snprintf(message, sizeof message,
             "the ranks' calls differ: rank 0 makes %s; rank %u %s%s; every rank must make the same calls in the same "
             "order",
             mine, i, theirs, strcmp(mine, theirs) == 0 ? " with other counts of the ranks" : "");
    return break_up(meeting, HELIO_INVALID_ARGUMENT, message);
  }
  return HELIO_OK;
}

/* The last to come does the work; the lock is not held meanwhile, so that an abort can be said. */
static helio_status lead(hi_meeting *meeting, helio_status (*work)(hi_meeting *meeting)) {
  helio_status status = compare(meeting);
  if (status) return status;
  meeting->running = true;
  pthread_mutex_unlock(&meeting->lock);
  hi_reason_clear();
  status = work(meeting);
  pthread_mutex_lock(&meeting->lock);
  meeting->running = false;
  for (uint32_t i = 0; i < meeting->rank_count; i++) meeting->ranks[i].arrived = false;
  meeting->arrived = 0;
  meeting->calls++;
  /* Whose device failed is known by its mark: it need not be a device of the rank that does the work. */
  if (status) return break_up(meeting, status == HELIO_DEVICE_FAILURE ? HELIO_ABORTED : status, hi_reason(status));
  pthread_cond_broadcast(&meeting->changed);
  return meeting->status ? tell(meeting) : HELIO_OK;
}

/* While the work is under way it may touch this rank's memory: an abort ends it at its next step. */
static helio_status follow(hi_meeting *meeting) {
  unsigned calls = meeting->calls;
  int64_t left = meeting->timeout_ms;
  bool in_time = true;
  while (meeting->calls == calls && (!meeting->status || meeting->running)) {
    if (!in_time) return time_is_up(meeting, false);
    in_time = wait_on(meeting, &left);
  }
  return meeting->status ? tell(meeting) : HELIO_OK;
}

helio_status hi_meeting_call(hi_meeting *meeting, uint32_t rank, hi_meeting_kind kind,
                             const helio_collective_call *call, helio_status (*work)(hi_meeting *meeting)) {
  pthread_mutex_lock(&meeting->lock);
  helio_status status = meeting->status ? tell(meeting) : HELIO_OK;
  if (!status) {
    post(meeting, rank, kind, call);
    status = meeting->arrived == meeting->rank_count ? lead(meeting, work) : follow(meeting);
  }
  pthread_mutex_unlock(&meeting->lock);
  return status;
}
