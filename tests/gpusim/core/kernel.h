/* SPDX-License-Identifier: Apache-2.0 */
/* What a compiled kernel and the emulator that runs it say to each other. This text stands in front of every kernel
 * text and is a part of the core as well: valid in C and in C++, and without any #include, as kernel text must be. */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

enum { SIM_KERNEL_VERSION = 1 };

/* The most that one launch may have with any vendor: see limits.c for each. */
enum {
  SIM_THREADS_PER_BLOCK = 1024,
  SIM_SHARED_PER_BLOCK = 64 * 1024,
  SIM_ARGUMENT_BYTES = 4096,
};

/* What is stored in one is nothing else to the compiler, so that it can keep other values in registers. */
#ifdef __cplusplus
typedef bool sim_flag;
#else
typedef _Bool sim_flag;
#endif

typedef struct sim_index {
  unsigned x, y, z;
} sim_index;

/* A thread of a block: where it is, and its number, counted along x, y and z in this order. */
typedef struct sim_position {
  sim_index index;
  unsigned number;
} sim_position;

/* A place in the kernel text. Each operation that threads do together has one of its own. */
typedef struct sim_text_place {
  const char *operation; /* "__syncthreads" */
  unsigned line;
} sim_text_place;

typedef enum sim_gather {
  SIM_GATHER_NOTHING, /* the lanes only wait for each other */
  SIM_GATHER_SHUFFLE, /* each is given the value of the lane it names */
  SIM_GATHER_VOTE,    /* each is given one bit of every lane */
} sim_gather;

/* What a lane of a warp says and is told. */
typedef struct sim_lane {
  const sim_text_place *place;
  sim_gather gather;
  unsigned long long mask;  /* the lanes that must take part; 0: those that get there, which is HIP's rule */
  unsigned long long value; /* in: what others may ask for, or 0 and 1; out: what it is told */
  unsigned long long took_part;
  unsigned source; /* the lane that a shuffle reads */
} sim_lane;

typedef struct sim_block sim_block;

/* What a kernel asks of the emulator. */
typedef struct sim_services {
  /* Returns when every thread of the block has come to the same place; tells how many of them voted. */
  unsigned (*barrier)(sim_block *block, const sim_text_place *place, int vote);
  void (*warp)(sim_block *block, sim_lane *lane);
  /* A mistake that the kernel itself has noticed. Does not return. */
  void (*mistake)(sim_block *block, const char *kind, const char *what, unsigned line);
} sim_services;

/* The block that a thread of the host runs, in thread-local memory of the module, beside the module's shared memory. */
struct sim_block {
  sim_position thread; /* that is running */
  sim_index block, block_size, grid_size;
  unsigned warp;        /* lanes of one */
  unsigned next, count; /* the first thread that has not begun, in the order that they do, and how many there are */
  const sim_position *order; /* of the threads */
  sim_flag *ended;           /* by number */
  unsigned char *dynamic;    /* shared memory whose size the launch told */
  const sim_services *services;
  void *runner;
};

typedef enum sim_argument_kind {
  SIM_ARGUMENT_VALUE,
  SIM_ARGUMENT_POINTER,
  SIM_ARGUMENT_WORDS, /* a struct or an integer that may have pointers in it */
} sim_argument_kind;

typedef struct sim_argument {
  unsigned offset, size;
  sim_argument_kind kind;
} sim_argument;

typedef struct sim_entry {
  const char *name;     /* in the text; the symbol may be another one */
  const void *function; /* the kernel itself, by whose symbol it is found */
  /* Runs thread after thread until none is left that has not begun. */
  void (*run)(const unsigned char *arguments);
  const sim_argument *arguments;
  unsigned argument_count, argument_bytes;
  unsigned thread_limit; /* of __launch_bounds__; 0: none */
} sim_entry;

/* The only symbol of ours that a module exports, called sim_kernels. */
typedef struct sim_kernel_table {
  unsigned version, block_bytes;
  sim_block *(*block)(void); /* of the thread that calls */
  const sim_entry *entries;
  unsigned count;
} sim_kernel_table;

#endif
