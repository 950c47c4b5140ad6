/* SPDX-License-Identifier: Apache-2.0 */
/* The strict test device: what its files share. See README.md for what it does and why.
 *
 * All state of the plugin hangs on one strict_state behind one lock. A function of the ABI takes the lock with
 * strict_enter(), works, and gives it back with strict_leave(), which only then calls the host: a log sink may
 * therefore call the library again. Commands run on whichever thread asks for progress, under the lock, so nothing here
 * ever waits for another thread. */
#ifndef STRICT_H
#define STRICT_H

#include <helio/plugin.h>

enum {
  STRICT_MESSAGE = 480,       /* longest text of a failure */
  STRICT_MAX_DEVICES = 8,     /* physical ones */
  STRICT_ALIGNMENT = 256,     /* of allocations, as told to the core */
  STRICT_GUARD = 256,         /* bytes of pattern before and behind every buffer */
  STRICT_NEIGHBOUR = 64,      /* bytes looked at before and behind every argument of a kernel */
  STRICT_POISON = 0xFF,       /* NaN in all float types, -1 in integers */
  STRICT_MOST_BEHIND = 65536, /* commands that a stream may hold back */
  STRICT_MAX_SCALARS = 8,     /* of a run */
  STRICT_OPERATIONS = 128,    /* more than there are */
};

typedef struct strict_device strict_device;
typedef struct strict_stream strict_stream;
typedef struct strict_plan strict_plan;

typedef enum strict_kind {
  STRICT_DEVICE = 1,
  STRICT_BUFFER,
  STRICT_STREAM,
  STRICT_EVENT,
  STRICT_PLAN,
  STRICT_KIND_COUNT,
} strict_kind;

/* One call of the ABI under way: what it is named in messages, and what is to be told to the host at its end. */
typedef struct strict_call {
  const char *name;
  char message[STRICT_MESSAGE];   /* why it fails */
  char complaint[STRICT_MESSAGE]; /* for the log at error level, "" for none */
} strict_call;

typedef struct strict_failure {
  helio_status status; /* HELIO_OK: none */
  char message[STRICT_MESSAGE];
} strict_failure;

/* Everything that the core gets a handle of begins with this. */
typedef struct strict_object {
  strict_kind kind;
  uint32_t number; /* for messages: "buffer 7" */
  strict_device *device;
  void *handle; /* what the core holds */
  struct strict_object *next, **link;
} strict_object;

typedef struct strict_buffer {
  strict_object object;
  size_t bytes; /* exactly what was asked for */
  helio_buffer *inner;
  unsigned char *memory;       /* the first byte that the core may use; never handed out */
  uint32_t queued;             /* commands that name it and have not run */
  struct strict_buffer *older; /* in quarantine: the one freed next */
} strict_buffer;

/* A point in a stream, shared by the event, the command that will pass it, and those who wait. */
typedef struct strict_point {
  uint32_t references;
  bool passed;
  uint32_t patience;     /* queries still to be answered "not ready" before they drive the stream */
  strict_stream *stream; /* valid until passed */
  struct strict_point *next_spare;
} strict_point;

typedef struct strict_event {
  strict_object object;
  strict_point *point;   /* NULL: never recorded */
  void *stream_handle;   /* of the stream it was recorded on, which may be gone by now */
  uint32_t queued_waits; /* WAIT commands that name it and have not run */
} strict_event;

typedef enum strict_command_kind {
  STRICT_COPY_IN = 1,
  STRICT_COPY_OUT,
  STRICT_COPY,
  STRICT_FILL,
  STRICT_RECORD,
  STRICT_WAIT,
  STRICT_RUN,
} strict_command_kind;

typedef struct strict_command {
  struct strict_command *next;
  strict_command_kind kind;
  const char *name;   /* of the call that queued it */
  size_t bytes;       /* of copies; of one pattern for a fill */
  size_t count;       /* of a fill */
  const void *source; /* host memory */
  void *target;       /* host memory */
  uint64_t checksum;  /* of `source` when it was queued */
  unsigned char pattern[8];
  strict_point *point;
  void *event_handle; /* of a wait */
  strict_plan *plan;
  helio_scalar scalars[STRICT_MAX_SCALARS]; /* of a run */
  size_t scalar_count;
  size_t place_count, place_capacity;
  helio_place places[]; /* target, source; or arguments, workspace, status */
} strict_command;

struct strict_stream {
  strict_object object;
  strict_command *head, *tail;
  size_t length;
  uint64_t executed; /* commands so far, for messages */
  strict_failure failure;
  strict_stream *next; /* of all streams of the plugin */
};

/* An operation as plugin.h describes it. */
typedef struct strict_operation {
  const char *name; /* as HELIO_STRICT_REFUSE and messages have it */
  const char *inputs, *outputs;
  uint32_t types;
  uint32_t scalars;
} strict_operation;

/* What a plan knows of an argument, of its workspace, or of its status word. */
typedef struct strict_region {
  size_t bytes;     /* 0: absent or without elements; its place must be { NULL, 0 } */
  size_t alignment; /* of its offset */
  bool written;
} strict_region;

struct strict_plan {
  strict_object object;
  uint32_t operation;
  uint32_t argument_count;
  const helio_kernel *inner_kernel;
  helio_plan *inner;
  uint32_t queued; /* runs that have not been executed */
  bool freed;      /* by the core, while runs were queued */
  uint32_t region_count;
  strict_region *regions; /* arguments, workspace, status */
  helio_place *inner_places;
  unsigned char *neighbours; /* 2 × STRICT_NEIGHBOUR bytes for each region, saved before a kernel runs */
  uint64_t *checksums;       /* of what each region held then */
};

struct strict_device {
  strict_object object;
  uint32_t physical;
  helio_backend_device *inner;
  helio_stream *inner_stream;
  strict_object *objects; /* all that was made on it and not released */
  strict_device *next;
};

/* The plugin whose kernels and memory this one uses. */
typedef struct strict_inner_host {
  helio_host table; /* first: the inner plugin sees only this */
  const helio_host *real;
  const helio_plugin *plugin;
} strict_inner_host;

typedef struct strict_inner {
  void *library;
  const helio_plugin *plugin;
  helio_plugin_state *state;
  strict_inner_host host;
} strict_inner;

typedef enum strict_plant {
  STRICT_PLANT_NONE,
  STRICT_PLANT_OVERRUN,
  STRICT_PLANT_LATE_ERROR,
  STRICT_PLANT_BAD_DATA,
} strict_plant;

typedef struct strict_settings {
  uint64_t seed, memory;
  uint32_t devices;
  size_t behind; /* commands that a stream holds back before it must run one */
  bool peer;
  strict_plant plant;
  bool refused[STRICT_OPERATIONS]; /* by operation */
  char inner_path[4096];
} strict_settings;

typedef struct strict_slot {
  strict_object *object; /* NULL: free */
  uint16_t scramble, generation;
  uint8_t last_kind;
} strict_slot;

typedef struct strict_handles {
  char *base; /* a reservation without access */
  strict_slot *slots;
  size_t count, capacity, cursor;
} strict_handles;

typedef struct strict_state {
  const helio_host *host;
  strict_settings settings;
  strict_handles handles;
  strict_inner inner;
  uint64_t random;
  uint32_t numbers[STRICT_KIND_COUNT]; /* last number given to an object of each kind */
  strict_device *devices;
  strict_stream *streams;
  strict_command *spare_commands;
  size_t largest_command; /* places of the largest there is */
  strict_point *spare_points;
  size_t points, events; /* there are */
  strict_buffer *quarantine_oldest, **quarantine_newest;
  size_t quarantine_bytes;
  uint64_t used[STRICT_MAX_DEVICES]; /* bytes of live buffers on each physical device */
  strict_failure violation;          /* of a call that has no result; told by the next synchronize */
  bool planted;                      /* the one planted mistake has been made */
} strict_state;

/* The one state, NULL before init and after finish; guarded by the lock. */
extern strict_state *strict_current;

/* call.c: the lock, and what is told to the host */
void strict_enter(strict_call *call, const char *name);
helio_status strict_leave(strict_call *call, helio_status status);
helio_status strict_fail(strict_call *call, helio_status status, const char *format, ...) HELIO_PRINTF(3, 4);
void strict_complain(strict_call *call, const char *format, ...) HELIO_PRINTF(2, 3);
void strict_violation(strict_call *call, const char *format, ...) HELIO_PRINTF(2, 3);
void strict_remember(strict_failure *failure, helio_status status, const char *format, ...) HELIO_PRINTF(3, 4);
helio_status strict_take_failure(strict_call *call, strict_failure *failure);
void *strict_allocate(size_t bytes); /* zeroed */
void strict_release(void *memory);
uint64_t strict_random(uint64_t below);

/* handle.c: what the core holds instead of addresses */
helio_status strict_handles_open(strict_call *call);
void strict_handles_close(void);
helio_status strict_object_add(strict_call *call, strict_object *object, strict_kind kind, strict_device *device);
void strict_object_remove(strict_object *object);
strict_object *strict_object_find(const void *handle, strict_kind kind);
helio_status strict_object_get(strict_call *call, const void *handle, strict_kind kind, strict_object **object);
helio_status strict_device_get(strict_call *call, const void *handle, strict_device **device);
helio_status strict_object_of(strict_call *call, const strict_device *device, const void *handle, strict_kind kind,
                              strict_object **object);
const char *strict_kind_name(strict_kind kind);

/* device.c */
extern const helio_device_table strict_device_table;
void strict_device_close(strict_call *call, strict_device *device);

/* memory.c: buffers, their guards, the quarantine */
extern const helio_memory_table strict_memory_table;
helio_status strict_buffer_allocate(helio_backend_device *device, size_t bytes, helio_buffer **buffer);
helio_status strict_buffer_free(helio_backend_device *device, helio_buffer *buffer);
helio_status strict_buffer_retire(strict_call *call, strict_buffer *buffer);
helio_status strict_place_check(strict_call *call, const strict_device *device, helio_place place, size_t bytes,
                                const char *role);
unsigned char *strict_place_address(helio_place place, size_t bytes, strict_failure *failure, const char *role);
void strict_guards_make(void); /* before there are buffers */
bool strict_guard_broken(const strict_buffer *buffer, int64_t *where);
void strict_quarantine_empty(strict_call *call);

/* copy.c: commands of the memory table */
helio_status strict_copy_in(helio_backend_device *device, helio_stream *stream, helio_place target, const void *source,
                            size_t bytes);
helio_status strict_copy_out(helio_backend_device *device, helio_stream *stream, void *target, helio_place source,
                             size_t bytes);
helio_status strict_copy(helio_backend_device *device, helio_stream *stream, helio_place target, helio_place source,
                         size_t bytes);
helio_status strict_fill(helio_backend_device *device, helio_stream *stream, helio_place target, const void *pattern,
                         size_t pattern_bytes, size_t count);
helio_status strict_copy_peer(helio_backend_device *device, helio_stream *stream, helio_place target,
                              helio_backend_device *from, helio_place source, size_t bytes);
void strict_execute_copy(strict_command *command, strict_failure *failure);
uint64_t strict_checksum(const void *memory, size_t bytes);

/* stream.c: streams and events */
extern const helio_stream_table strict_stream_table;
void strict_stream_discard(strict_call *call, strict_stream *stream);
void strict_event_discard(strict_event *event);
void strict_point_release(strict_point *point);

/* schedule.c: which command runs next */
strict_command *strict_command_new(size_t place_count);
bool strict_command_reserve(size_t place_count);
bool strict_run_any(void); /* one command of any stream; false: none can run */
void strict_command_retire(strict_command *command);
void strict_commands_free(void);
void strict_enqueue(strict_stream *stream, strict_command *command);
bool strict_progress(strict_stream *wanted, bool lazy);
helio_status strict_drain_stream(strict_call *call, strict_stream *stream);
helio_status strict_drain_device(strict_call *call, strict_device *device);
helio_status strict_drain_point(strict_call *call, strict_point *point);

/* operations.c: what is known of them */
extern const helio_kernel_table strict_kernel_table;
const strict_operation *strict_operation_of(uint32_t operation);
const char *strict_operation_name(uint32_t operation);
uint32_t strict_operation_by_name(const char *name, size_t length);
char strict_operation_letter(const strict_operation *operation, uint32_t input_count, uint32_t index);
bool strict_operation_takes(const strict_operation *operation, uint32_t input_count, uint32_t output_count);
bool strict_operation_in_place(uint32_t operation);

/* kernel.c: plans and runs; execute.c: running them; check.c: what is looked at around a kernel */
helio_status strict_kernel_plan(helio_backend_device *device, const helio_call *planned, helio_plan_answer *answer);
helio_status strict_kernel_run(helio_plan *plan, const helio_run *run);
void strict_kernel_plan_free(helio_plan *plan);
void strict_plan_discard(strict_plan *plan);
void strict_execute_run(strict_stream *stream, strict_command *command, strict_failure *failure);
helio_status strict_run_check(strict_call *call, const strict_plan *plan, const helio_place *places);
helio_status strict_call_check(strict_call *call, const helio_call *planned);
void strict_neighbours_save(strict_plan *plan, const strict_command *command);
void strict_neighbours_compare(strict_plan *plan, const strict_command *command, strict_failure *failure);
void strict_inputs_save(strict_plan *plan, const strict_command *command);
void strict_inputs_compare(const strict_plan *plan, const strict_command *command, strict_failure *failure);

/* inner.c */
helio_status strict_inner_open(strict_call *call, const char *path);
void strict_inner_close(void);
helio_status strict_inner_fail(strict_call *call, helio_status status, const char *doing);
void strict_inner_message(char *text, size_t size);
const helio_kernel *strict_inner_kernel(uint32_t operation);

/* settings.c */
extern const helio_parameter *const strict_parameters[];
helio_status strict_settings_read(const helio_host *host, strict_call *call, strict_settings *settings);

#endif
