/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the core share and faces do not see. */
#ifndef SIM_INTERNAL_H
#define SIM_INTERNAL_H

#include "sim.h"

enum { SIM_MOST_DEVICES = 16, SIM_FRAMES = 16 };

/* The page, and what fresh memory is filled with. */
enum { SIM_PAGE = 4096, SIM_FRESH = 0xFF };

/* ---------------------------------------------------------------------------------------------------------------------
 * Settings and reports
 */

/* For a setting that cannot be: tells it and ends the process with status 2. */
void sim_refuse_setting(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The name that is most like what was given, of names that are not long; some may be NULL. */
const char *sim_nearest(const char *given, const char *const *names, size_t count);

/* Who made something or ended it: the vendor's call, and where it was called from. */
typedef struct sim_origin {
  const char *call;
  int depth;
  void *frames[SIM_FRAMES];
} sim_origin;

void sim_remember_origin(sim_origin *origin);
const char *sim_current_call(void); /* never NULL */

/* Until it is called with NULL this thread does work that was queued there: whoever waits for it is not to blame. */
void sim_work_for(const sim_origin *queued);

bool sim_write_all(int file, const char *data, size_t bytes);

/* sim_violation about another place than where we are now: "made in" for leaks, "after" a call and not in it. */
void sim_violation_of(const sim_origin *origin, const char *where, const char *kind, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---------------------------------------------------------------------------------------------------------------------
 * What is ordered behind what
 */

/* Each stream has a line. When there are more streams some share one: they are taken for ordered then. */
enum { SIM_LINES = 64 };

/* Of each line the last item that is done before something else begins. */
typedef struct sim_past {
  uint64_t last[SIM_LINES];
} sim_past;

/* All under the mutex. */
void sim_past_join(sim_past *past, const sim_past *other);
bool sim_past_has(const sim_past *past, int line, uint64_t sequence);
int sim_line_take(void); /* one that no stream has, if there is one */
void sim_line_return(int line);

/* An item of a stream, which comes behind `past`, uses memory: a violation if it should wait for something. */
void sim_order_note(const sim_access *access, sim_stream *stream, uint64_t sequence, const sim_past *past);
void sim_order_forget(const char *begin, const char *end); /* memory that is freed: a violation if it is in use */

/* ---------------------------------------------------------------------------------------------------------------------
 * Devices and their memory
 */

/* The last that a device handed out is the last here: addresses only grow, and none is used twice. */
typedef struct sim_allocation {
  char *address; /* handed out */
  size_t bytes;
  char *begin, *end; /* its pages, without the guard behind them */
  bool live;
  uint64_t canary;
  bool is_touched; /* was handed to work since the device was last waited for: it is in the device's list then */
  struct sim_allocation *next_touched;
  sim_origin made, freed;
} sim_allocation;

struct sim_device {
  sim_vendor vendor;
  int index, slot;
  char name[64];
  sim_status health;
  sim_status late; /* a failure that is told when something waits; SIM_OK: none */
  bool slow;
  bool peers[SIM_MOST_DEVICES];

  char *range; /* what is handed out lies in range … range + range_bytes */
  size_t range_bytes;
  ptrdiff_t offset; /* from an address to its twin */
  char *next;       /* the first page that was never used */
  sim_allocation **allocations;
  size_t allocation_count, allocation_room;
  sim_allocation *touched;

  sim_stream *own;     /* the vendor's NULL stream */
  sim_stream *streams; /* all, its own and deleted ones that still have something to do among them */
  sim_past gone;       /* what deleted streams had, which is done */
  sim_counters counters;
};

/* Calls `visit` for each device that was ever asked for. Under the mutex. */
void sim_each_device(void (*visit)(sim_device *device, void *context), void *context);

/* Twice as many addresses as *bytes then says, which nobody can use; NULL: there is no room. */
char *sim_pages_reserve(size_t *bytes);
bool sim_pages_open(char *begin, size_t bytes); /* can be read and written then, and are full of SIM_FRESH */
void sim_pages_close(char *begin, size_t bytes);
size_t sim_machine_bytes(void); /* of memory; SIZE_MAX: unknown */
bool sim_is_filled(const char *begin, const char *end, int value);

/* What the room around an allocation, which nobody may write, is filled with: different for each key. */
uint64_t sim_canary_key(void);
void sim_canary_fill(char *begin, char *end, uint64_t key);
bool sim_canary_is_whole(const char *begin, const char *end, uint64_t key);

void sim_memory_open(sim_device *device);
void sim_memory_tell_leaks(sim_device *device);
/* A violation for each canary that was overwritten, of what was handed to work since the last time. */
void sim_memory_check_touched(sim_device *device);
void sim_pinned_tell_leaks(void);

/* For reports: "byte 260 of 256 bytes (made by cuMemAlloc_v2) of gpusim (CUDA 8.0) 0". `address` is one that was handed
 * out, or its twin, or pinned. Written into `text`, which is returned. */
char *sim_describe(const void *address, char *text, size_t size);

/* Sums of different contents differ, but for one case in very many. */
uint64_t sim_sum(const void *data, size_t bytes);

/* Whether two stretches of memory have a byte in common. */
bool sim_overlap(const void *one, size_t one_bytes, const void *other, size_t other_bytes);

char *sim_describe_host(const void *address, char *text, size_t size);
bool sim_is_near_pinned(const void *address); /* in pinned memory, live or freed, or in the guards around it */
bool sim_was_pinned(const void *address);     /* in pinned memory that was freed */

/* The device in whose range, or in the twin of whose range, an address is; NULL: none. */
sim_device *sim_device_of(const void *address);

/* A copy from or into pinned memory that the host does not know to be done. */
typedef struct sim_transfer sim_transfer;
sim_transfer *sim_transfer_begin(void *address, size_t bytes, bool writes);             /* NULL: no memory for it */
void sim_transfer_place(sim_transfer *transfer, sim_stream *stream, uint64_t sequence); /* under the mutex */
/* When it is done: where to read the bytes, or to write them. What did the host do in between? */
void *sim_transfer_open(sim_transfer *transfer);
void sim_transfer_end(sim_transfer *transfer);     /* it was done, or never will be */
void sim_transfers_settle(void);                   /* what the host knows to be done is over. Under the mutex. */
void sim_transfers_drop(const sim_device *device); /* which is lost. Under the mutex. */

/* sim_queue_with for a copy. */
sim_status sim_queue_copy(sim_stream *stream, const sim_work *work, const sim_access *accesses, size_t count,
                          sim_transfer *transfer);

/* ---------------------------------------------------------------------------------------------------------------------
 * Streams
 */

/* The moment at which an event was recorded. Whoever waits for it holds it, whatever becomes of the event. */
typedef struct sim_mark {
  int holders;
  bool done;
  double time; /* when it was done, in milliseconds */
  sim_stream *stream;
  uint64_t sequence;
  sim_past past; /* what is done when it is, itself included */
} sim_mark;

sim_device *sim_stream_device(const sim_stream *stream);
int sim_stream_line(const sim_stream *stream);
sim_past sim_stream_past(sim_stream *stream);    /* what is known to be done once all is that it has now */
bool sim_stream_meets(const sim_stream *stream); /* had work that waits for other streams by means of its own */

const sim_past *sim_host_past(void);       /* what the host knows to be done. Under the mutex. */
void sim_host_learn(const sim_past *done); /* the host has waited, or asked and was told: this is done */
sim_status sim_streams_open(sim_device *device);
void sim_streams_end(void);                   /* does all that can be done now, at the end of the process */
void sim_streams_abandon(sim_device *device); /* what a lost device had to do is never done. Under the mutex. */
void sim_mark_release(sim_mark *mark);
sim_mark *sim_queue_mark(sim_stream *stream); /* held once for the caller */
void sim_queue_wait(sim_stream *stream, sim_mark *mark);
sim_status sim_settle(
    sim_device *device); /* its health, once a failure that was to be told late is. Under the mutex. */

/* Does all of a stream up to a sequence number, and what that depends on. */
sim_status sim_wait_for(sim_stream *stream, uint64_t sequence);
sim_status sim_await(sim_stream *stream, uint64_t sequence); /* for the host, whose wait is counted if it is one */
/* Does a little of that, or nothing, as the seed will: SIM_NOT_READY, which is counted, or SIM_OK. */
sim_status sim_poll_for(sim_stream *stream, uint64_t sequence);

/* Releases the mutex however often this thread holds it, and takes it as often again. */
int sim_unlock_fully(void);
void sim_lock_again(int held);
void sim_sleep(void);       /* until sim_changed or for a second; under the mutex, which is released meanwhile */
uint64_t sim_changes(void); /* how many there were */
double sim_clock(void);     /* milliseconds */

/* ---------------------------------------------------------------------------------------------------------------------
 * Faults
 */

/* Asked by the handler of SIGSEGV before anything else, in the thread and on the alternate stack of the fault: was the
 * access made by a kernel? Then it tells the violation (with kernel, block, thread and allocation) and does not return
 * but leaves the kernel (sim_runner_leave). Returns if the fault is none of its own. Set by trap.c. */
extern void (*sim_fault_hook)(void *address, void *context);

/* Makes sure that faults of this thread come to our handler, on a stack of their own. Done before work is run; a thread
 * that execute.c starts does it first of all. */
void sim_signal_arm(void);

void sim_faults_read(const char *list); /* GPUSIM_FAULT, before anything else; refuses what it does not understand */
bool sim_fault_is_slow(const sim_device *device);
bool sim_fault_is_captured(void);
bool sim_capture_forbids(void); /* this thread to ask for something, or to wait */
const char *sim_occasion_name(sim_occasion occasion);
void sim_counters_add(sim_occasion occasion, sim_device *device); /* under the mutex */
void sim_counters_add_amid(sim_device *device);                   /* memory of it is given back; under the mutex */
void sim_counters_write(void);                                    /* into the file that the settings name */

#endif
