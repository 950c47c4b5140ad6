/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: queues of what is to do. Whoever waits does it, in its own thread: the work that it waits for, what that
 * work depends on, and now and then something else that could be done, as the seed will. Unless the pace is late,
 * whoever queues something does some of what could be done as well. */
#include "internal.h"

#include <stdlib.h>
#include <unistd.h>

/* Vendors' queues are not endless either: a call that finds this much waits until half of it is done. */
enum { MOST_PENDING = 1024, MOST_CANDIDATES = 256 };

/* How many items of all streams the pace "behind" leaves undone: more than a host waits for right after it gave them,
 * fewer than a step of a training has. */
enum { BEHIND = 16 };

typedef enum item_kind { WORK, RECORD, WAIT } item_kind;

typedef struct item {
  item_kind kind;
  sim_work work;
  sim_mark *mark;    /* of RECORD and WAIT */
  sim_origin queued; /* of WORK */
  uint64_t sequence;
  struct item *next;
} item;

struct sim_stream {
  sim_object object;
  sim_device *device;
  bool non_blocking;
  bool busy; /* its first item is being done, by some thread */
  bool deleted;
  bool meets; /* see sim_stream_meets */
  int line;
  sim_past past; /* what is done before whatever is queued next */
  int pending;
  item *first, *last;
  uint64_t scan; /* the last scan that came by */
  sim_stream *next;
};

static void keep_pace(sim_stream *stream);

static uint64_t last_sequence, last_scan;
static int running;   /* items that are being done */
static sim_past host; /* what it knows to be done; one for all its threads, which tell each other */

typedef struct candidates {
  sim_stream *streams[MOST_CANDIDATES];
  size_t count;
} candidates;

/* ---------------------------------------------------------------------------------------------------------------------
 * Making and ending
 */

static void link_stream(sim_stream *stream, sim_device *device, bool non_blocking) {
  stream->device = device;
  stream->non_blocking = non_blocking;
  stream->line = sim_line_take();
  stream->next = device->streams;
  device->streams = stream;
}

static void unlink_stream(sim_stream *stream) {
  sim_stream **link = &stream->device->streams;
  while (*link && *link != stream) link = &(*link)->next;
  if (!*link) return;
  *link = stream->next;
  sim_line_return(stream->line);
  sim_past_join(&stream->device->gone, &stream->past);
  if (!stream->non_blocking) sim_past_join(&stream->device->own->past, &stream->past);
}

sim_status sim_streams_open(sim_device *device) {
  device->own = calloc(1, sizeof *device->own);
  if (!device->own) return SIM_OUT_OF_MEMORY;
  link_stream(device->own, device, false);
  return SIM_OK;
}

sim_status sim_stream_create(sim_device *device, bool non_blocking, sim_stream **stream) {
  sim_status status = sim_count(SIM_CREATION, device);
  if (status != SIM_OK) return status;
  sim_stream *made = sim_new("stream", sizeof *made, device);
  if (!made) return SIM_OUT_OF_MEMORY;
  sim_lock();
  link_stream(made, device, non_blocking);
  sim_unlock();
  *stream = made;
  return SIM_OK;
}

sim_status sim_stream_delete(sim_stream *stream) {
  sim_lock();
  stream->deleted = true;
  if (!stream->first) unlink_stream(stream);
  sim_delete(stream);
  sim_unlock();
  return SIM_OK;
}

sim_stream *sim_stream_of(sim_device *device, void *handle) {
  return handle ? sim_check_on(handle, "stream", device) : device->own;
}

sim_device *sim_stream_device(const sim_stream *stream) {
  return stream->device;
}
int sim_stream_line(const sim_stream *stream) {
  return stream->line;
}
bool sim_stream_meets(const sim_stream *stream) {
  return stream->meets;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Items
 */

void sim_mark_release(sim_mark *mark) {
  if (!mark) return;
  sim_lock();
  bool last = --mark->holders == 0;
  sim_unlock();
  if (last) free(mark);
}

static void release_item(item *done) {
  if (done->kind == WORK && done->work.release)
    done->work.release(done->work.argument);
  else if (done->kind == WORK)
    free(done->work.argument);
  if (done->kind == RECORD) {
    done->mark->done = true;
    done->mark->time = sim_clock();
  }
  sim_mark_release(done->mark);
  free(done);
}

/* Adds what the streams have that this one waits for without being told. */
static void join_neighbours(sim_stream *stream, sim_past *past) {
  const sim_stream *own = stream->device->own;
  if (stream->non_blocking) return;
  sim_past_join(past, &own->past);
  for (const sim_stream *other = stream->device->streams; other && stream == own; other = other->next)
    if (!other->non_blocking) sim_past_join(past, &other->past);
}

static void append(sim_stream *stream, item *added) {
  added->sequence = ++last_sequence;
  sim_past_join(&stream->past, &host);
  join_neighbours(stream, &stream->past);
  if (added->kind == WAIT) sim_past_join(&stream->past, &added->mark->past);
  stream->past.last[stream->line] = added->sequence;
  if (stream->last)
    stream->last->next = added;
  else
    stream->first = added;
  stream->last = added;
  stream->pending++;
}

static item *pop(sim_stream *stream) {
  item *popped = stream->first;
  stream->first = popped->next;
  if (!stream->first) stream->last = NULL;
  stream->pending--;
  if (!stream->first && stream->deleted) unlink_stream(stream);
  return popped;
}

/* Under the mutex. */
static void append_work(sim_stream *stream, item *added, const sim_access *accesses, size_t count,
                        sim_transfer *transfer) {
  append(stream, added);
  if (added->work.is_ready) stream->meets = true;
  for (size_t i = 0; i < count; i++) sim_order_note(&accesses[i], stream, added->sequence, &stream->past);
  if (transfer) sim_transfer_place(transfer, stream, added->sequence);
}

sim_status sim_queue_copy(sim_stream *stream, const sim_work *work, const sim_access *accesses, size_t count,
                          sim_transfer *transfer) {
  item *added = calloc(1, sizeof *added);
  if (!added) abort(); /* the emulator itself has no memory: nothing can be shown any more */
  *added = (item){.kind = WORK, .work = *work};
  sim_remember_origin(&added->queued);
  sim_lock();
  sim_status status = stream->device->health;
  if (status == SIM_OK)
    append_work(stream, added, accesses, count, transfer);
  else
    release_item(added);
  bool full = stream->pending > MOST_PENDING;
  uint64_t half = last_sequence - MOST_PENDING / 2;
  sim_unlock();
  if (full) return sim_wait_for(stream, half);
  keep_pace(stream); /* a failure in it is told by the next call, as real ones are */
  return status;
}

sim_status sim_queue_with(sim_stream *stream, const sim_work *work, const sim_access *accesses, size_t count) {
  return sim_queue_copy(stream, work, accesses, count, NULL);
}

sim_status sim_queue(sim_stream *stream, const sim_work *work) {
  return sim_queue_with(stream, work, NULL, 0);
}

sim_mark *sim_queue_mark(sim_stream *stream) {
  item *added = calloc(1, sizeof *added);
  sim_mark *mark = calloc(1, sizeof *mark);
  if (!added || !mark) abort();
  sim_lock();
  *added = (item){.kind = RECORD, .mark = mark};
  append(stream, added);
  *mark = (sim_mark){.holders = 2, .stream = stream, .sequence = added->sequence, .past = stream->past};
  sim_unlock();
  keep_pace(stream);
  return mark;
}

void sim_queue_wait(sim_stream *stream, sim_mark *mark) {
  item *added = calloc(1, sizeof *added);
  if (!added) abort();
  sim_lock();
  *added = (item){.kind = WAIT, .mark = mark};
  mark->holders++;
  append(stream, added);
  sim_unlock();
  keep_pace(stream);
}

void sim_streams_abandon(sim_device *device) {
  sim_stream *next;
  for (sim_stream *stream = device->streams; stream; stream = next) {
    next = stream->next;
    item *kept = stream->busy ? stream->first : NULL; /* whoever does it takes it off */
    item *rest = kept ? kept->next : stream->first;
    stream->first = stream->last = kept;
    stream->pending = kept ? 1 : 0;
    if (kept) kept->next = NULL;
    while (rest) {
      item *following = rest->next;
      release_item(rest);
      rest = following;
    }
    if (!kept && stream->deleted) unlink_stream(stream);
  }
}

/* ---------------------------------------------------------------------------------------------------------------------
 * What can be done now
 */

static bool has_before(const sim_stream *stream, uint64_t sequence) {
  return stream->first && stream->first->sequence < sequence;
}

static void collect(sim_stream *stream, candidates *found);

/* The device's own stream waits for all that its blocking streams were given before, and they for it. */
static bool is_held_by_neighbours(sim_stream *stream, candidates *found) {
  sim_stream *own = stream->device->own;
  uint64_t sequence = stream->first->sequence;
  bool held = false;
  if (stream->non_blocking) return false;
  if (stream != own) {
    if (!has_before(own, sequence)) return false;
    collect(own, found);
    return true;
  }
  for (sim_stream *other = own->device->streams; other; other = other->next) {
    if (other == own || other->non_blocking || !has_before(other, sequence)) continue;
    collect(other, found);
    held = true;
  }
  return held;
}

/* Adds the stream if its first item can be done, else those that must go on before it can. */
static void collect(sim_stream *stream, candidates *found) {
  if (stream->scan == last_scan || !stream->first || stream->busy) return;
  stream->scan = last_scan;
  const item *head = stream->first;
  bool held = is_held_by_neighbours(stream, found);
  if (head->kind == WAIT && !head->mark->done) {
    collect(head->mark->stream, found);
    held = true;
  }
  if (held) return;
  if (head->kind == WORK && head->work.is_ready && !head->work.is_ready(head->work.argument)) return;
  if (found->count < MOST_CANDIDATES) found->streams[found->count++] = stream;
}

static void collect_device(sim_device *device, void *context) {
  for (sim_stream *stream = device->streams; stream; stream = stream->next) collect(stream, context);
}

/* What a wait does first. Each shows another kind of missing wait between kernels, of which nobody can tell what they
 * touch: ONLY_NEEDED what others should have written before, OTHERS_FIRST what they should not have overwritten yet. */
typedef enum manner { ONLY_NEEDED, MIXED, OTHERS_FIRST, MANNERS } manner;

static sim_stream *draw(const candidates *found) {
  return found->count ? found->streams[sim_random(found->count)] : NULL;
}

/* A stream whose first item can be done, and must be before this one's. NULL: none. */
static sim_stream *choose_needed(sim_stream *needed) {
  candidates found;
  found.count = 0;
  last_scan++;
  collect(needed, &found);
  return draw(&found);
}

/* A stream whose first item can be done: one that the wait needs, or another. NULL: none. */
static sim_stream *choose(sim_stream *needed, manner how) {
  candidates found, others;
  found.count = others.count = 0;
  last_scan++;
  collect(needed, &found);
  if (how == OTHERS_FIRST) sim_each_device(collect_device, &others); /* but for those that were found */
  if (others.count) found = others;
  if (found.count == 0 || (how == MIXED && sim_random(4) == 0)) {
    found.count = 0;
    last_scan++;
    sim_each_device(collect_device, &found);
  }
  return draw(&found);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Doing it
 */

static sim_status run_work(const sim_stream *stream, const item *head) {
  const sim_work *work = &head->work;
  const char *call = sim_current_call();
  int held = sim_unlock_fully();
  sim_signal_arm();
  sim_call(work->name);
  if (stream->device->slow) usleep(2000);
  sim_work_for(&head->queued);
  sim_status status = work->run(work->argument);
  sim_work_for(NULL);
  sim_call(call);
  sim_lock_again(held);
  return status;
}

/* The stream's first item. Under the mutex, which is released while it works. */
static void do_first(sim_stream *stream) {
  item *head = stream->first;
  sim_device *device = stream->device;
  sim_status status = SIM_OK;
  if (head->kind == WORK && device->late != SIM_OK) {
    status = device->late;
  } else if (head->kind == WORK) {
    stream->busy = true;
    running++;
    status = run_work(stream, head);
    running--;
    stream->busy = false;
  }
  release_item(pop(stream));
  if (status != SIM_OK) sim_device_lose(device, status);
  sim_changed();
}

static bool is_reached(const sim_stream *stream, uint64_t sequence) {
  return !stream->first || stream->first->sequence > sequence;
}

/* What the device was given a while ago, and what that depends on. */
static sim_stream *choose_old(const sim_device *device) {
  candidates found;
  found.count = 0;
  last_scan++;
  for (sim_stream *stream = device->streams; stream; stream = stream->next)
    if (has_before(stream, last_sequence - BEHIND + 1)) collect(stream, &found);
  return draw(&found);
}

/* Nothing, a few items, or all that can be done. */
static uint64_t draw_burst(void) {
  if (sim_random(2)) return 0;
  return sim_random(4) ? 1 + sim_random(4) : MOST_PENDING;
}

/* Something was queued, and the device may have worked meanwhile. A failure that is to be told late waits. */
static void keep_pace(sim_stream *stream) {
  const sim_device *device = stream->device;
  sim_pace pace = sim_setup()->pace;
  if (pace == SIM_LATE || device->slow) return;
  sim_lock();
  uint64_t burst = pace == SIM_BEHIND ? MOST_PENDING : draw_burst();
  if (pace == SIM_BEHIND && last_sequence <= BEHIND) burst = 0;
  while (burst-- > 0 && device->late == SIM_OK) {
    sim_stream *chosen = pace == SIM_BEHIND ? choose_old(device) : choose(stream, MIXED);
    if (!chosen || chosen->device->late != SIM_OK) break;
    do_first(chosen);
  }
  sim_unlock();
}

/* Whether too long nothing has happened: the device is lost then, because a real one would hang for ever. */
static bool is_hanging(sim_stream *stream, uint64_t seen, double *since) {
  double now = sim_clock();
  if (seen != sim_changes() || running) *since = now;
  if (now - *since < 1e3 * sim_setup()->patience) return false;
  sim_violation("waits for ever", "nothing happened for %d s; the next on the stream is %s of %s %d",
                sim_setup()->patience, stream->first->kind == WORK ? stream->first->work.name : "a wait for an event",
                stream->device->name, stream->device->index);
  sim_device_lose(stream->device, SIM_LAUNCH_FAILED);
  return true;
}

sim_status sim_wait_for(sim_stream *stream, uint64_t sequence) {
  double since = sim_clock();
  manner how = (manner)sim_random(MANNERS);
  sim_lock();
  while (!is_reached(stream, sequence)) {
    uint64_t seen = sim_changes();
    sim_stream *chosen = choose(stream, how);
    if (chosen) {
      do_first(chosen);
      since = sim_clock();
      continue;
    }
    if (seen != sim_changes()) continue; /* is_ready did something */
    sim_sleep();
    if (is_hanging(stream, seen, &since)) break;
  }
  sim_status status = sim_settle(stream->device);
  sim_unlock();
  return status;
}

/* A device that keeps up has done what it was given so long ago. Here it is done by threads of the program, which the
 * system may have kept from it: that is no wait that a program would be to blame for, nor anything that it would find
 * undone. */
static bool is_long_ago(const sim_stream *stream, uint64_t sequence) {
  return sim_setup()->pace == SIM_BEHIND && !stream->device->slow && sequence + BEHIND <= last_sequence;
}

/* What is still missing of it, but for what depends on calls that were not made yet. */
static void catch_up(sim_stream *stream, uint64_t sequence) {
  while (!is_reached(stream, sequence) && stream->device->late == SIM_OK) {
    sim_stream *chosen = choose_needed(stream);
    if (!chosen && !running) return;
    if (chosen)
      do_first(chosen);
    else
      sim_sleep();
  }
}

sim_status sim_poll_for(sim_stream *stream, uint64_t sequence) {
  sim_lock();
  if (is_long_ago(stream, sequence)) catch_up(stream, sequence);
  if (!is_reached(stream, sequence) && sim_random(stream->device->slow ? 8 : 2) == 0) {
    sim_stream *chosen = choose(stream, MIXED);
    if (chosen) do_first(chosen);
  }
  sim_status status = stream->device->health;
  if (status == SIM_OK && is_reached(stream, sequence)) {
    status = sim_settle(stream->device);
  } else if (status == SIM_OK) {
    status = sim_count(SIM_POLL, stream->device);
    if (status == SIM_OK) status = SIM_NOT_READY;
  }
  sim_unlock();
  return status;
}

/* The device's health, once a failure that was to be told late is. */
sim_status sim_settle(sim_device *device) {
  if (device->late != SIM_OK) sim_device_lose(device, device->late);
  return device->health;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The host's waits
 */

sim_status sim_await(sim_stream *stream, uint64_t sequence) {
  sim_lock();
  bool reached = is_reached(stream, sequence) || is_long_ago(stream, sequence);
  sim_unlock();
  sim_status status = reached ? SIM_OK : sim_count(SIM_HOST_WAIT, stream->device);
  return status == SIM_OK ? sim_wait_for(stream, sequence) : status;
}

const sim_past *sim_host_past(void) {
  return &host;
}

void sim_host_learn(const sim_past *done) {
  sim_lock();
  sim_past_join(&host, done);
  sim_transfers_settle();
  sim_unlock();
}

sim_past sim_stream_past(sim_stream *stream) {
  sim_lock();
  sim_past past = stream->past;
  join_neighbours(stream, &past); /* who waits for the NULL stream waits for those that it waits for */
  sim_unlock();
  return past;
}

sim_status sim_stream_finish(sim_stream *stream) {
  if (sim_capture_forbids()) return SIM_CAPTURE_UNSUPPORTED;
  sim_lock();
  uint64_t sequence = last_sequence;
  sim_past past = sim_stream_past(stream);
  sim_unlock();
  sim_status status = sim_await(stream, sequence);
  if (status == SIM_OK) sim_host_learn(&past);
  return status;
}

sim_status sim_stream_query(sim_stream *stream) {
  if (sim_capture_forbids()) return SIM_CAPTURE_UNSUPPORTED;
  sim_lock();
  uint64_t sequence = last_sequence;
  sim_past past = sim_stream_past(stream);
  sim_unlock();
  sim_status status = sim_poll_for(stream, sequence);
  if (status == SIM_OK) sim_host_learn(&past);
  return status;
}

static sim_stream *unfinished(const sim_device *device, uint64_t sequence) {
  for (sim_stream *stream = device->streams; stream; stream = stream->next)
    if (!is_reached(stream, sequence)) return stream;
  return NULL;
}

static bool is_idle(const sim_device *device) {
  sim_lock();
  bool idle = !unfinished(device, last_sequence);
  sim_unlock();
  return idle;
}

static sim_past past_of_device(const sim_device *device) {
  sim_past past = device->gone;
  for (const sim_stream *stream = device->streams; stream; stream = stream->next) sim_past_join(&past, &stream->past);
  return past;
}

static sim_status finish(sim_device *device) {
  sim_lock();
  uint64_t sequence = last_sequence;
  sim_past past = past_of_device(device);
  sim_stream *stream;
  while (device->health == SIM_OK && (stream = unfinished(device, sequence))) sim_wait_for(stream, sequence);
  sim_status status = sim_settle(device);
  sim_unlock();
  if (status != SIM_OK) return status;
  sim_host_learn(&past);
  sim_memory_check_touched(device);
  return SIM_OK;
}

/* Of which one stream is captured, whoever asks. */
sim_status sim_device_finish(sim_device *device) {
  if (sim_fault_is_captured()) return SIM_CAPTURE_UNSUPPORTED;
  sim_status status = is_idle(device) ? SIM_OK : sim_count(SIM_HOST_WAIT, device);
  return status == SIM_OK ? finish(device) : status;
}

sim_status sim_device_drain(sim_device *device) {
  sim_lock();
  if (device->health == SIM_OK && !is_idle(device)) sim_counters_add(SIM_HOST_WAIT, device);
  sim_unlock();
  return finish(device);
}

/* What waits for another rank, or for a lost device, will never be done. */
void sim_streams_end(void) {
  sim_lock();
  for (;;) {
    candidates found;
    found.count = 0;
    last_scan++;
    sim_each_device(collect_device, &found);
    if (found.count == 0) break;
    do_first(found.streams[sim_random(found.count)]);
  }
  sim_unlock();
}
