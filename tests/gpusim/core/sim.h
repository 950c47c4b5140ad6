/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator behind the vendors' faces: devices whose memory the host cannot touch, streams whose work is done as
 * late as the rules allow, kernels of many threads, and a watch over all of it.
 *
 * A face is a shared object with a vendor's soname. Its functions have the vendor's names, check what only that vendor
 * asks for, and call this. Everything that real hardware would punish, or worse forgive, is a violation: it is told
 * with the call that made it, and makes the process end with the status SIM_EXIT. What the vendor documents as an error
 * that a program may meet and handle (out of memory, no device) is a status and no violation.
 *
 * One mutex guards the state of devices, streams, events and objects. It is not held while work of a stream is done. */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_EXPORT __attribute__((visibility("default")))

enum { SIM_EXIT = 86 }; /* the status of a process in which there was a violation */

/* Numbers that CUDA's driver and HIP share. */
typedef enum sim_status {
  SIM_OK = 0,
  SIM_INVALID_VALUE = 1,
  SIM_OUT_OF_MEMORY = 2,
  SIM_NOT_INITIALIZED = 3,
  SIM_STUB = 34,
  SIM_NO_DEVICE = 100,
  SIM_INVALID_DEVICE = 101,
  SIM_INVALID_IMAGE = 200,
  SIM_INVALID_CONTEXT = 201,
  SIM_NO_BINARY = 209,
  SIM_PEER_UNSUPPORTED = 217,
  SIM_INVALID_HANDLE = 400,
  SIM_NOT_FOUND = 500,
  SIM_NOT_READY = 600,
  SIM_ILLEGAL_ADDRESS = 700,
  SIM_LAUNCH_RESOURCES = 701,
  SIM_PEER_ENABLED = 704,
  SIM_LAUNCH_FAILED = 719,
  SIM_NOT_SUPPORTED = 801,
  SIM_CAPTURE_UNSUPPORTED = 900,
  SIM_UNKNOWN = 999,
} sim_status;

/* ---------------------------------------------------------------------------------------------------------------------
 * Settings, read once from the environment; tests/gpusim/run sets them from its options
 */

typedef enum sim_vendor { SIM_CUDA, SIM_HIP, SIM_VENDORS } sim_vendor;
typedef enum sim_order { SIM_UP, SIM_DOWN, SIM_SHUFFLED } sim_order;

/* When a device does what it was given. LATE: when something waits for it, which shows a missing wait. BEHIND: a little
 * after the host, as a real device does: what was given a while ago is done, what was given just now is not. RANDOM: as
 * the seed will, some of it at once. */
typedef enum sim_pace { SIM_LATE, SIM_BEHIND, SIM_RANDOM } sim_pace;

typedef enum sim_visibility { SIM_VISIBLE_CUDA, SIM_VISIBLE_HIP, SIM_VISIBLE_ROCR, SIM_VISIBLE } sim_visibility;

typedef struct sim_settings {
  int devices[SIM_VENDORS];              /* GPUSIM_CUDA, GPUSIM_HIP: 1 and 0 */
  size_t memory;                         /* GPUSIM_MEMORY, of each device: 2G */
  int warp[SIM_VENDORS];                 /* GPUSIM_WARP: 32 for CUDA, 64 for HIP */
  const char *architecture[SIM_VENDORS]; /* GPUSIM_ARCHITECTURE: sm_80 and gfx90a:sramecc+:xnack- */
  int driver;                            /* GPUSIM_DRIVER: 13000 */
  int collectives;                       /* GPUSIM_NCCL: 22809, the version that NCCL and RCCL tell */
  bool peer;                             /* GPUSIM_PEER: 1; whether devices of a vendor may reach each other's memory */
  int integrated;                   /* GPUSIM_INTEGRATED: the device of each vendor that is part of a processor; −1 */
  uint64_t seed;                    /* GPUSIM_SEED: 1 */
  sim_order order;                  /* GPUSIM_ORDER: up, down or shuffled, of the threads of a block */
  sim_pace pace;                    /* GPUSIM_PACE: late, behind or random; drawn by the seed, late for seed 1 */
  const char *visible[SIM_VISIBLE]; /* the vendors' own variables; NULL: not set */
  const char *fault;                /* GPUSIM_FAULT, see faults below; "" */
  int patience;         /* GPUSIM_PATIENCE: 60; seconds without progress after which a wait is "waits for ever" */
  bool leaks;           /* GPUSIM_LEAKS: 1; whether what is left when the process ends is told */
  const char *cache;    /* GPUSIM_CACHE, a folder for compiled kernel text; NULL: none */
  const char *report;   /* GPUSIM_REPORT, a file that violations are appended to; NULL: standard error */
  const char *counters; /* GPUSIM_COUNTERS, a file that the counters are written to at the end; NULL: none */
} sim_settings;

SIM_EXPORT const sim_settings *sim_setup(void);

/* ---------------------------------------------------------------------------------------------------------------------
 * Violations
 */

/* The vendor's call that this thread is in, for reports: SIM_CALL("cuMemAlloc_v2"); is the first statement of each. */
SIM_EXPORT void sim_call(const char *name);
#define SIM_CALL() sim_call(__func__)

/* Told with the call, its cause, and a backtrace. `kind` is a few words that tests look for: "use after free". */
SIM_EXPORT void sim_violation(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* SIM_NOT_INITIALIZED, after a violation, in a process that was forked by one that had opened devices. */
SIM_EXPORT sim_status sim_after_fork(void);

/* ---------------------------------------------------------------------------------------------------------------------
 * Devices and contexts
 */

typedef struct sim_device sim_device;

SIM_EXPORT int sim_device_count(sim_vendor vendor); /* those that the vendor's variables leave visible */
SIM_EXPORT sim_device *sim_device_at(sim_vendor vendor, int index); /* NULL: there is none such */
SIM_EXPORT sim_vendor sim_device_vendor(const sim_device *device);
SIM_EXPORT int sim_device_index(const sim_device *device);
SIM_EXPORT int sim_device_slot(const sim_device *device);         /* of the machine, whatever is visible: its PCI bus */
SIM_EXPORT const char *sim_device_name(const sim_device *device); /* "gpusim (CUDA 8.0)", "gpusim (gfx90a)" */
SIM_EXPORT int sim_device_warp(const sim_device *device);

/* What a launch may have: faces tell it, launches and compilers keep to it. */
typedef struct sim_limits {
  unsigned threads[3], blocks[3]; /* in each dimension */
  unsigned threads_per_block, shared_per_block;
  uint64_t work_items; /* blocks times threads in a dimension */
} sim_limits;

SIM_EXPORT const sim_limits *sim_limits_of(sim_vendor vendor);

/* The device whose context is current in this thread; NULL: none. Faces set it, each for its vendor. */
SIM_EXPORT sim_device *sim_current(sim_vendor vendor);
SIM_EXPORT void sim_set_current(sim_vendor vendor, sim_device *device);

/* The error that a lost device answers every call with; SIM_OK: it is well. A face asks before it does anything. */
SIM_EXPORT sim_status sim_device_health(const sim_device *device);
SIM_EXPORT void sim_device_lose(sim_device *device, sim_status status);

/* ---------------------------------------------------------------------------------------------------------------------
 * Objects: everything that a program is given a handle of. What was deleted is remembered, so that its use is known for
 * what it is; what is left at the end is a leak.
 */

typedef struct sim_object {
  const char *kind;   /* "stream", "cudnnTensorDescriptor" */
  sim_device *device; /* NULL: belongs to none */
  bool live;
} sim_object;

SIM_EXPORT void *sim_new(const char *kind, size_t size,
                         sim_device *device);                     /* zeroed; its first member is a sim_object */
SIM_EXPORT void *sim_check(const void *handle, const char *kind); /* NULL after a violation: no such object is live */
SIM_EXPORT void *sim_check_on(const void *handle, const char *kind, const sim_device *device); /* and of this device */
SIM_EXPORT void *sim_check_of(const void *handle, const char *kind, sim_vendor vendor); /* of any of its devices */
SIM_EXPORT void sim_delete(void *object);

/* What a context that ends must not leave behind. Tells each thing that is left of the device as a leak and forgets it;
 * NULL: of all devices, and what belongs to none. Done for NULL when the process ends. */
SIM_EXPORT void sim_tell_leaks(sim_device *device);

/* ---------------------------------------------------------------------------------------------------------------------
 * Memory. Addresses that are handed out lie where nobody can read or write; each has a twin that the emulator can.
 */

SIM_EXPORT sim_status sim_allocate(sim_device *device, size_t bytes, void **address);
SIM_EXPORT sim_status sim_free(sim_device *device,
                               void *address); /* of any of the vendor's devices, after all that that one has to do */
SIM_EXPORT void sim_memory_info(sim_device *device, size_t *free_bytes, size_t *total);

SIM_EXPORT sim_status sim_pinned_allocate(sim_device *device, size_t bytes, void **address); /* in its context */
SIM_EXPORT sim_status sim_pinned_free(void *address);
SIM_EXPORT bool sim_is_pinned(const void *address, size_t bytes);

/* Is this an address that some device handed out, live or not? */
SIM_EXPORT bool sim_is_device_address(const void *address);

/* The twin of `bytes` bytes at an address that the device handed out, or a peer that it may reach. NULL after a
 * violation that names `what`: not device memory, of another device, freed, beyond the end of its allocation. Asked
 * when work is handed over, and again when it is done, because memory may be freed in between. */
SIM_EXPORT void *sim_twin(sim_device *device, const void *address, size_t bytes, const char *what);

/* The bytes from an address to the end of its allocation; 0: not in a live one. */
SIM_EXPORT size_t sim_bytes_behind(const void *address);

/* A device may reach the memory of another. Copies between two go through the host if it may not. */
SIM_EXPORT sim_status sim_enable_peer(sim_device *device, sim_device *peer);
SIM_EXPORT void sim_forget_peers(sim_device *device); /* its context ended: neither way any more */
SIM_EXPORT bool sim_can_reach(const sim_device *device, const sim_device *peer);

/* ---------------------------------------------------------------------------------------------------------------------
 * Streams and events. Work is done in the order of its stream, when something waits for it, or before that if the pace
 * has it so; which stream goes first, and whether one that nobody waits for goes along, is drawn by the seed.
 */

typedef struct sim_stream sim_stream;
typedef struct sim_event sim_event;

typedef struct sim_work {
  const char *name; /* of the call or the kernel, for reports; lives as long as the work */
  void *argument;   /* owned by the work */
  /* Does it, in any thread, the mutex not held. A status other than SIM_OK loses the device. */
  sim_status (*run)(void *argument);
  /* (optional) Whether it can be done now, under the mutex; default: always. A collective waits for its other ranks. */
  bool (*is_ready)(void *argument);
  void (*release)(void *argument); /* (optional) default: free; also when it was never done */
} sim_work;

/* Memory that work reads or writes, every byte of it: judged when it is queued, see order.c. */
typedef struct sim_access {
  const char *what; /* for reports: "the source" */
  const void *address;
  size_t bytes;
  bool written;
  bool is_scratch; /* a workspace, whose content nobody wants */
} sim_access;

/* A vendor's NULL stream is the device's own, which waits for all of its blocking streams and is waited for by them. */
SIM_EXPORT sim_status sim_stream_create(sim_device *device, bool non_blocking, sim_stream **stream);
SIM_EXPORT sim_status sim_stream_delete(sim_stream *stream); /* what it has to do is done in its time */
SIM_EXPORT sim_stream *sim_stream_of(sim_device *device,
                                     void *handle); /* NULL after a violation; handle NULL: its own */
SIM_EXPORT sim_status sim_queue(sim_stream *stream, const sim_work *work);
/* The same for work whose memory is known: a violation if work of another stream is not ordered before it. */
SIM_EXPORT sim_status sim_queue_with(sim_stream *stream, const sim_work *work, const sim_access *accesses,
                                     size_t count);
SIM_EXPORT sim_status sim_stream_wait(sim_stream *stream, sim_event *event); /* what follows waits for the event */
SIM_EXPORT sim_status sim_stream_finish(sim_stream *stream); /* the host waits: counted, unless it is done */
SIM_EXPORT sim_status sim_stream_query(sim_stream *stream);  /* SIM_NOT_READY now and then, by the seed: counted */
SIM_EXPORT sim_status sim_device_finish(sim_device *device);
/* The same as a part of another call: a wait that is counted but does not fail on demand. */
SIM_EXPORT sim_status sim_device_drain(sim_device *device);

SIM_EXPORT sim_status sim_event_create(sim_device *device, bool timed, sim_event **event);
SIM_EXPORT sim_status sim_event_delete(sim_event *event);
SIM_EXPORT sim_status sim_event_record(sim_event *event, sim_stream *stream);
SIM_EXPORT sim_status sim_event_finish(sim_event *event); /* an event that was never recorded is done */
SIM_EXPORT sim_status sim_event_query(sim_event *event);
SIM_EXPORT sim_status sim_event_elapsed(float *milliseconds, sim_event *from, sim_event *to);

/* Wakes those who wait for work that was not ready: something has changed that is_ready looks at. Under the mutex or
 * not. */
SIM_EXPORT void sim_changed(void);
SIM_EXPORT void sim_lock(void); /* recursive */
SIM_EXPORT void sim_unlock(void);

/* Whether work that was queued with an access to this byte, of memory or of an object, may not be done yet for all that
 * the host knows. */
SIM_EXPORT bool sim_is_pending(const void *address);

/* Copies, all asynchronous. From pageable memory the source is read at once; into it the host waits. Pinned memory is
 * read when the copy is done, and filled with 0xFF until then. */
SIM_EXPORT sim_status sim_copy_in(sim_stream *stream, void *to, const void *from, size_t bytes);
SIM_EXPORT sim_status sim_copy_out(sim_stream *stream, void *to, const void *from, size_t bytes);
SIM_EXPORT sim_status sim_copy_within(sim_stream *stream, void *to, const void *from, size_t bytes);
SIM_EXPORT sim_status sim_copy_peer(sim_stream *stream, sim_device *to_device, void *to, sim_device *from_device,
                                    const void *from, size_t bytes);
SIM_EXPORT sim_status sim_fill(sim_stream *stream, void *to, uint32_t value, size_t element, size_t count);

/* ---------------------------------------------------------------------------------------------------------------------
 * Kernels
 */

typedef struct sim_module sim_module;
typedef struct sim_kernel sim_kernel;

/* What a compiler made: an ELF file behind a header of ours, which tells its size, or a text in the manner of PTX. */
SIM_EXPORT sim_status sim_module_load(sim_device *device, const void *image, sim_module **module);
SIM_EXPORT sim_status sim_module_unload(sim_module *module);
SIM_EXPORT sim_status sim_module_kernel(sim_module *module, const char *name, sim_kernel **kernel);

typedef struct sim_grid {
  unsigned blocks[3], threads[3], shared; /* shared: bytes of dynamic shared memory */
} sim_grid;

/* Arguments are copied at once; pointers among them are checked now and when it is done. */
SIM_EXPORT sim_status sim_launch(sim_kernel *kernel, const sim_grid *grid, void **arguments, sim_stream *stream);

/* Compiles kernel text by the host's compiler for an architecture of the vendor: an image for sim_module_load in memory
 * of malloc, or NULL, with what the compiler said in `log` (malloc, never NULL). */
SIM_EXPORT void *sim_compile(sim_vendor vendor, const char *text, const char *const *options, int option_count,
                             size_t *bytes, char **log);

/* ---------------------------------------------------------------------------------------------------------------------
 * Faults and counters
 */

/* What can fail on demand. GPUSIM_FAULT is a list: "launch:17@1" makes the 17th launch on device 1 fail (without @ that
 * of any), "lost:copy:3" loses the device at its third copy, "allocation:5+" fails from the fifth on,
 * "launch:17=700" with that number of the vendor's; "compile" lets
 * every compilation fail, "slow@1" makes a device slow, "late" tells failures only when something waits, "capture" is
 * another thread that captures a stream all the time. */
typedef enum sim_occasion {
  SIM_ALLOCATION,
  SIM_LAUNCH,
  SIM_COPY,
  SIM_LIBRARY,
  SIM_COLLECTIVE,
  SIM_COMPILATION,
  SIM_CREATION,  /* of a stream, an event, a module or a library's handle */
  SIM_HOST_WAIT, /* for something that was not done yet */
  SIM_POLL,      /* a question whose answer is that it is not done yet */
  SIM_JOIN,      /* the making of a rank's communicator */
  SIM_CONNECT,   /* what its first call makes: buffers, ways to its peers */
  SIM_OCCASIONS
} sim_occasion;

/* Counts the occasion and answers whether it must fail: SIM_OK, or the vendor's number for it. Each face calls it once
 * for each library call that does work on the device (SIM_LIBRARY, SIM_COLLECTIVE) and for each handle of a library
 * (SIM_CREATION); the core for the others. */
SIM_EXPORT sim_status sim_count(sim_occasion occasion, sim_device *device);

/* Swaps how this thread stands to captures of other threads: a number that both vendors share. */
SIM_EXPORT sim_status sim_capture_mode_exchange(unsigned *mode);

typedef struct sim_counters {
  uint64_t occasions[SIM_OCCASIONS];
  uint64_t bytes_in, bytes_out, bytes_within, bytes_between; /* copied: to the device, from it, on it, between two */
  uint64_t memory_used, memory_peak;                         /* of the device, in bytes */
  uint64_t amid_collectives; /* memory, streams, events and modules that were asked for, or memory given back, while
                                some ranks of a collective had been handed over and others not: there a driver may wait
                                for devices that wait for the others */
} sim_counters;

/* A collective more, or one less, that only some of its ranks were handed. Under the mutex. */
SIM_EXPORT void sim_count_amid(int change);
SIM_EXPORT void sim_counters_read(const sim_device *device, sim_counters *counters); /* NULL: of all devices */

/* Numbers that differ little give numbers that differ much (the last steps of splitmix64). */
SIM_EXPORT uint64_t sim_mix(uint64_t value);

/* A number below `bound`, drawn by the seed. */
SIM_EXPORT uint64_t sim_random(uint64_t bound);

#endif
