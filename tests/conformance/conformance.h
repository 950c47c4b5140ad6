/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the conformance program share. An example is one call of an operation with its data; a family knows
 * how to make examples for an operation and what plugin.h says their results are. All arithmetic of references is in
 * double; nothing here calls the library's conversions or a plugin's kernels. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <helio/helio.h>

#include "device/device.h"
#include "ops/table.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

/* A helio_shape as an initializer. */
/* clang-format off */
#define SHAPE(...) {(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}}
#define NO_AXES    {0, {0}}
/* clang-format on */

enum { MOST_INPUTS = 33, MOST_RESULTS = 4 };

/* ---- array.c: values in double, all of them values of the type ---- */

typedef struct array {
  helio_type type;
  helio_shape shape;
  int64_t elements;
  double *values; /* NULL: absent. Among expected integers NaN says that any value will do */
} array;

int64_t shape_elements(const helio_shape *shape);
bool shape_same(const helio_shape *a, const helio_shape *b);
const char *shape_words(const helio_shape *shape, char words[200]);
bool is_float(helio_type type);

/* What a value becomes in a type: integers towards zero, to the nearest end of the range, NaN to 0. */
double as_type(helio_type type, double value);

array array_new(helio_type type, const helio_shape *shape); /* zeros */
array array_random(helio_type type, const helio_shape *shape, double low, double high);
array array_copy(const array *a);
void array_free(array *a);
void array_encode(const array *a, void *data);
void array_decode(array *a, const void *data);

/* The error that results of a type may have by the norm below. */
double tolerance_of(helio_type type, bool long_sum);

/* max|a−b| / max|b| of what was computed and what was expected; a NaN or an infinity of one side alone is an infinite
 * error. `at` receives where the largest difference is. */
double array_error(const array *seen, const array *expected, int64_t *at);

/* The program's own generator: the same numbers on every machine. */
void random_seed(const char *name);
uint64_t random_word(void);
double random_between(double low, double high);

/* Element `at` of `shape` as an index into `of`, which broadcasts to it. */
int64_t broadcast_index(const helio_shape *of, const helio_shape *shape, int64_t at);

/* ---- families ---- */

typedef struct family family;

typedef struct example {
  const family *family;
  helio_type type;
  array inputs[MOST_INPUTS];
  void *bytes[MOST_INPUTS]; /* of the inputs as tensors have them, made when the example is checked */
  int input_count;
  hi_attributes attributes;
  helio_scalar scalars[HI_MAX_SCALARS];
  bool keep_dims;
  helio_shape wanted;
  helio_type wanted_type;
  double tolerance; /* instead of the type's; 0: the type's */
  bool long_sum;    /* thousands of terms */
  bool once;        /* large: leave out what is done with small ones besides */
} example;

struct family {
  helio_operation operation;
  void (*examples)(const family *f, helio_type type); /* calls check_example() for each */

  /* Fills the outputs or, where inputs are written, those inputs by their number. */
  void (*reference)(const example *e, array *results);

  /* For the two above. */
  double low, high; /* of random floats; both 0: −1 … 1 */
  union {
    double (*one)(double x, const example *e);
    double (*two)(double a, double b, const example *e);
    void (*sum)(const double *x, int64_t count, double *result);
  } is;
};

/* The lists end with operation 0. */
extern const family elementwise_families[], movement_families[], reduce_families[], window_families[],
    network_families[], random_families[], update_families[];

const family *family_of(helio_operation operation);

/* ---- example.c: making examples ---- */

example example_new(const family *f, helio_type type);

/* Adds an input of random values: floats in the family's range, integers −50 … 50, bool. */
void add_input(example *e, helio_type type, helio_shape shape);
void add_between(example *e, helio_type type, helio_shape shape, double low, double high);
void add_values(example *e, helio_type type, helio_shape shape, const double *values); /* cut to the type */
void add_indices(example *e, helio_type type, int64_t count, int64_t below);
void add_absent(example *e);
void example_free(example *e);

/* The shape with all axes but the last as one; rows and columns. */
void rows_of(const helio_shape *shape, int64_t *rows, int64_t *columns);

/* Odd shapes: one, primes, nothing, no axis, all axes; and one that is large enough for threads. */
extern const helio_shape odd_shapes[];
extern const int odd_shape_count;
helio_shape large_shape(helio_type type);

double activate(uint32_t activation, double x);

/* ---- check.c ---- */

/* Runs the example in all ways that must give the same, compares, and frees it. */
void check_example(example *e);

/* The example has a value that its operation must report; `value` is it. Frees it. */
void check_bad_data(example *e, int64_t value);

/* For examples whose results obey a law rather than a reference: the first output, decoded. False: it was not made. */
bool run_for_result(example *e, array *result);

/* ---- gradient.c ---- */

/* The row's gradient against finite differences, for all its recipes. */
void check_gradient(const hi_row *row);

/* One call whose gradient is checked. */
typedef struct recipe {
  helio_operation operation;
  int input_count;
  helio_shape inputs[MOST_INPUTS]; /* rank −1: absent */
  double low, high;                /* of floating inputs; both 0: −2 … 2 */
  uint32_t constant;               /* bit i: input i is an index or has no gradient */
  int64_t below;                   /* of indices, which constant inputs are with it; else constants are floats */
  hi_attributes attributes;
  double scalars[HI_MAX_SCALARS];
  uint32_t integer_scalars; /* bit i: scalar i is one */
  bool keep_dims;
  helio_shape wanted;
  helio_type wanted_type;
} recipe;

extern const recipe recipes[];
extern const int recipe_count;

/* ---- main.c: the run ---- */

typedef struct session {
  hi_device *device;
  bool is_host;                    /* the plugin is the one for what no other has a kernel for: it may refuse nothing */
  bool lengthy;                    /* --long */
  int examples, refused, failures; /* of the test under way */
  char reason[600];                /* of the last refusal */
} session;

extern session run;

/* A line under the test's name; the test has failed. */
void failed(const char *format, ...) HELIO_PRINTF(1, 2);

/* What an example is, for messages. */
const char *example_words(const example *e, char words[1000]);

#endif
