/* SPDX-License-Identifier: Apache-2.0 */
/* Cursors: what an iterator of each kind of dataset is. A tree of them, as the datasets; the root belongs to the
 * iterator, and everything runs by asking the root for its next item.
 *
 * An iteration is known by three numbers, from which all its elements follow: for each shuffle the number of the
 * iteration that it counted when the tree was opened (its birth), an epoch that changes each time a repeat begins anew,
 * and how many elements have come. So a position is the births and a number, and nothing needs to be saved on the way.
 */
#ifndef HI_CURSOR_H
#define HI_CURSOR_H

#include "data/crew.h"
#include "data/table.h"

typedef struct hi_cursor hi_cursor;

typedef struct hi_cursor_class {
  /* A new epoch, from its first element. */
  bool (*begin)(hi_cursor *cursor, uint64_t epoch);
  /* NULL at the end. Only of cursors without a table. */
  bool (*next)(hi_cursor *cursor, hi_item **item);
  /* The numbers of the next elements in the table: fewer than `most` only at the end. −1: failed. */
  int64_t (*indices)(hi_cursor *cursor, int64_t *to, int64_t most);
  /* Leaves out elements: how many there were. −1: failed. NULL: they are read and dropped. */
  int64_t (*skip)(hi_cursor *cursor, int64_t count);
  /* Frees what it has, but not itself nor its input. NULL: nothing. */
  void (*close)(hi_cursor *cursor);
} hi_cursor_class;

/* First in what each kind has besides. */
struct hi_cursor {
  const hi_cursor_class *class;
  const hi_table *table; /* NULL: elements have no numbers */
  hi_scene *scene;
  hi_cursor *input; /* the one before, which ends with it; NULL: there is none, or there are several */
  bool ended;       /* until it begins anew */
};

/* What a tree is opened with. */
typedef struct hi_opening {
  hi_scene *scene;
  bool land;       /* what comes out is wanted on the device: a thread that works ahead takes it there */
  bool given;      /* births are those of a position, or of a cache; else they are counted */
  bool frozen;     /* of a cache: nobody's count goes on from them */
  int64_t *births; /* of all cursors of the tree that have one, in the order in which they are opened */
  int count, room, at;
} hi_opening;

/* The birth of a cursor whose dataset counts with `counter`. False with the error set. */
bool hi_opening_birth(hi_opening *opening, atomic_int_least64_t *counter, int64_t *birth);

bool hi_opening_add(hi_opening *opening, int64_t birth); /* one that is known */

/* Makes a cursor of `bytes`, which its kind begins with hi_cursor; NULL with the error set. */
void *hi_cursor_new(size_t bytes, const hi_cursor_class *class, const hi_opening *opening);

/* The only ways to call a cursor. Its first call is to begin. */
bool hi_cursor_begin(hi_cursor *cursor, uint64_t epoch);
bool hi_cursor_next(hi_cursor *cursor, hi_item **item);
int64_t hi_cursor_indices(hi_cursor *cursor, int64_t *to, int64_t most);
int64_t hi_cursor_skip(hi_cursor *cursor, int64_t count);
void hi_cursor_close(hi_cursor *cursor); /* and frees it; NULL: nothing */

/* Leaves out elements by reading them: for a `skip` that has already read ahead. */
int64_t hi_cursor_read_past(hi_cursor *cursor, int64_t count);

/* a × b, or INT64_MAX: neither is negative. */
int64_t hi_times(int64_t a, int64_t b);

#endif
