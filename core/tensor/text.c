/* SPDX-License-Identifier: Apache-2.0 */
/* Text of arrays in three layers: digits of a number (exact arithmetic on large naturals, because printf would bring
 * the locale in and cannot give the shortest digits), words of one element, and the layout of words in lines. */
#include "text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* numpy's default print options. */
enum { PRECISION = 8, THRESHOLD = 1000, EDGE_ITEMS = 3, LINE_WIDTH = 75 };

/* 1280 bits: the largest numbers met are 2^1024 and, for the smallest float64, 10^324 times a few bits. */
enum { NATURAL_WORDS = 40 };

/* More than any element needs: 17 digits tell every float64 from its neighbours. */
enum { MOST_DIGITS = 32, WORD_BYTES = 64 };

static const unsigned char type_bytes[] = {
#define TYPE_BYTES(name, value, text, bytes) [value] = bytes,
    HELIO_TYPE_LIST(TYPE_BYTES)
#undef TYPE_BYTES
};

typedef struct natural {
  int length;
  uint32_t word[NATURAL_WORDS];
} natural;

/* A number taken apart: magnitude = significand * 2^exponent unless it has a name. Integers are such numbers too. */
typedef struct real {
  bool negative;
  const char *name;  /* of an infinity or of not-a-number, NULL for all others */
  bool narrow_below; /* the neighbour towards zero is half as far away as the other one */
  uint64_t significand;
  int exponent;
  double magnitude;
} real;

/* How many digits are wanted; a count below 0 is no limit. */
typedef struct limits {
  bool shortest; /* stop at the digits that no other number of the type shares, else at the exact value */
  bool fraction; /* the counts are of digits after the point, else of all digits */
  int most;
  int least;
} limits;

/* digit[0] stands for digit[0] * 10^exponent. */
typedef struct decimal {
  int count;
  int exponent;
  char digit[MOST_DIGITS];
} decimal;

typedef struct word {
  int length;
  char byte[WORD_BYTES];
} word;

/* What numpy learns from all the elements that it shows before it prints the first. */
typedef struct column {
  helio_type type;
  bool scientific;
  double largest; /* of the finite magnitudes other than 0; 0 if there is none */
  double smallest;
  int left;            /* characters before the point */
  int fraction;        /* digits after the point */
  int exponent_digits; /* when scientific */
  int name_width;      /* of the longest name of an infinity or of not-a-number */
  int width;           /* of every word; 0 where words are not aligned */
} column;

typedef struct array {
  helio_type type;
  int rank;
  const int64_t *extent;
  int64_t count;
  const unsigned char *data;
  bool summarised;
} array;

typedef struct output {
  char *byte;
  size_t length;
  size_t capacity;
  size_t line_start;
  bool failed;
} output;

static void natural_set(natural *number, uint64_t value) {
  number->length = 0;
  for (; value != 0; value >>= 32) number->word[number->length++] = (uint32_t)value;
}

static void natural_multiply(natural *number, uint32_t factor) {
  uint64_t carry = 0;
  for (int i = 0; i < number->length; i++) {
    carry += (uint64_t)number->word[i] * factor;
    number->word[i] = (uint32_t)carry;
    carry >>= 32;
  }
  if (carry != 0) number->word[number->length++] = (uint32_t)carry;
}

/* A power below 1 changes nothing. */
static void natural_multiply_power(natural *number, uint32_t base, int power) {
  while (power > 0) {
    uint32_t factor = 1;
    for (; power > 0 && factor <= UINT32_MAX / base; power--) factor *= base;
    natural_multiply(number, factor);
  }
}

static int natural_compare(const natural *left, const natural *right) {
  if (left->length != right->length) return left->length < right->length ? -1 : 1;
  for (int i = left->length - 1; i >= 0; i--)
    if (left->word[i] != right->word[i]) return left->word[i] < right->word[i] ? -1 : 1;
  return 0;
}

/* other must not be larger. */
static void natural_subtract(natural *number, const natural *other) {
  uint64_t borrow = 0;
  for (int i = 0; i < number->length; i++) {
    uint64_t difference = (uint64_t)number->word[i] - (i < other->length ? other->word[i] : 0) - borrow;
    number->word[i] = (uint32_t)difference;
    borrow = difference >> 63;
  }
  while (number->length > 0 && number->word[number->length - 1] == 0) number->length--;
}

/* The four numbers behind digits, all multiplied by the same: the magnitude that is left is value / scale, and it may
 * move by below / scale and above / scale until it is halfway to the next number of its type. */
typedef struct division {
  natural value;
  natural scale;
  natural below;
  natural above;
} division;

static void division_multiply(division *parts, uint32_t base, int power) {
  natural_multiply_power(&parts->value, base, power);
  natural_multiply_power(&parts->below, base, power);
  natural_multiply_power(&parts->above, base, power);
}

/* Scales so that value / scale is between 1 and 10; returns the power of ten taken out. */
static int division_start(division *parts, const real *number) {
  natural_set(&parts->value, number->significand);
  natural_multiply(&parts->value, 4);
  natural_set(&parts->below, number->narrow_below ? 1 : 2);
  natural_set(&parts->above, 2);
  natural_set(&parts->scale, 4);
  int bits = 0;
  while (bits < 63 && number->significand >> (bits + 1) != 0) bits++;
  /* 78913 / 2^18 is log10(2) closely enough for every float64; the 400 keeps the division from rounding up. */
  int power = ((bits + number->exponent) * 78913 + 400 * 262144) / 262144 - 400;
  division_multiply(parts, 2, number->exponent);
  division_multiply(parts, 10, -power);
  natural_multiply_power(&parts->scale, 2, -number->exponent);
  natural_multiply_power(&parts->scale, 10, power);
  natural next = parts->scale;
  natural_multiply(&next, 10);
  if (natural_compare(&parts->value, &next) < 0) return power;
  parts->scale = next;
  return power + 1;
}

static char division_next_digit(division *parts) {
  char digit = '0';
  for (; natural_compare(&parts->value, &parts->scale) >= 0; digit++) natural_subtract(&parts->value, &parts->scale);
  return digit;
}

static void decimal_round_up(decimal *digits) {
  while (digits->count > 0 && digits->digit[digits->count - 1] == '9') digits->count--;
  if (digits->count == 0) {
    digits->digit[digits->count++] = '0';
    digits->exponent++;
  }
  digits->digit[digits->count - 1]++;
}

/* Steele and White's digits as numpy cuts them: where the number can go to the digit below and to the one above, it
 * goes to the nearer one, from halfway to the even one. Zeros at the end are left out. */
static decimal decimal_of_real(const real *number, limits wanted) {
  decimal digits = {.count = 1, .digit = "0"};
  if (number->significand == 0) return digits;
  division parts;
  int exponent = digits.exponent = division_start(&parts, number);
  int first = wanted.fraction ? 0 : exponent + 1;
  int last = wanted.most < 0 ? exponent + 1 - MOST_DIGITS : first - wanted.most;
  int enough = wanted.least < 0 ? exponent : first - wanted.least;
  bool even = number->significand % 2 == 0, low = false, high = false;
  for (digits.count = 0;; exponent--) {
    digits.digit[digits.count++] = division_next_digit(&parts);
    if (wanted.shortest) {
      natural rest = parts.scale;
      natural_subtract(&rest, &parts.value);
      low = natural_compare(&parts.value, &parts.below) < (even ? 1 : 0);
      high = natural_compare(&rest, &parts.above) < (even ? 1 : 0);
    }
    bool done = wanted.shortest ? (low || high) && exponent <= enough : parts.value.length == 0;
    if (done || exponent <= last || digits.count == MOST_DIGITS) break;
    division_multiply(&parts, 10, 1);
  }
  bool up = high;
  if (low == high) {
    natural_multiply(&parts.value, 2);
    int side = natural_compare(&parts.value, &parts.scale);
    up = side > 0 || (side == 0 && digits.digit[digits.count - 1] % 2 != '0' % 2);
  }
  if (up) decimal_round_up(&digits);
  while (digits.digit[digits.count - 1] == '0') digits.count--;
  return digits;
}

static real real_of_bits(uint64_t bits, int fraction_bits, int exponent_bits) {
  uint64_t fraction = bits & ((UINT64_C(1) << fraction_bits) - 1);
  int field_limit = (1 << exponent_bits) - 1;
  int field = (int)(bits >> fraction_bits) & field_limit;
  real number = {.negative = bits >> (fraction_bits + exponent_bits) & 1};
  if (field == field_limit) number.name = fraction != 0 ? "nan" : number.negative ? "-inf" : "inf";
  number.narrow_below = fraction == 0 && field > 1;
  number.significand = field == 0 ? fraction : fraction | UINT64_C(1) << fraction_bits;
  number.exponent = (field == 0 ? 1 : field) - field_limit / 2 - fraction_bits;
  number.magnitude = number.name != NULL ? 0 : ldexp((double)number.significand, number.exponent);
  return number;
}

static real real_of_integer(int64_t value) {
  uint64_t significand = value < 0 ? UINT64_C(0) - (uint64_t)value : (uint64_t)value;
  return (real){.negative = value < 0, .significand = significand, .magnitude = (double)significand};
}

static real real_load(helio_type type, const unsigned char *element) {
  uint16_t half = 0;
  uint32_t single = 0;
  uint64_t wide = 0;
  if (type_bytes[type] == sizeof half) memcpy(&half, element, sizeof half);
  if (type_bytes[type] == sizeof single) memcpy(&single, element, sizeof single);
  if (type_bytes[type] == sizeof wide) memcpy(&wide, element, sizeof wide);
  if (type == HELIO_FLOAT32) return real_of_bits(single, 23, 8);
  if (type == HELIO_FLOAT64) return real_of_bits(wide, 52, 11);
  if (type == HELIO_FLOAT16) return real_of_bits(half, 10, 5);
  if (type == HELIO_BFLOAT16) return real_of_bits(half, 7, 8);
  if (type == HELIO_INT32) return real_of_integer((int32_t)single);
  if (type == HELIO_INT64) return real_of_integer((int64_t)wide);
  return real_of_integer(*element);
}

/* How many digits there are before a point that follows 10^unit, and how many after it. */
static int decimal_whole(const decimal *digits, int unit) {
  return digits->exponent < unit ? 1 : digits->exponent - unit + 1;
}

static int decimal_fraction(const decimal *digits, int unit) {
  int fraction = digits->count - 1 - (digits->exponent - unit);
  return fraction < 0 ? 0 : fraction;
}

static void word_fill(word *text, char byte, int times) {
  for (; times > 0 && text->length < WORD_BYTES; times--) text->byte[text->length++] = byte;
}

static void word_append(word *text, const char *bytes) {
  for (; *bytes != '\0'; bytes++) word_fill(text, *bytes, 1);
}

/* The digits at 10^high down to 10^low. */
static void word_digits(word *text, const decimal *digits, int high, int low) {
  for (int power = high; power >= low; power--) {
    int index = digits->exponent - power;
    word_fill(text, index < 0 || index >= digits->count ? '0' : digits->digit[index], 1);
  }
}

/* The digits with the last of the whole ones at 10^unit. */
static void word_number(word *text, bool negative, const decimal *digits, int unit, int fraction,
                        const char *end_if_whole) {
  word_append(text, negative ? "-" : "");
  word_digits(text, digits, unit + decimal_whole(digits, unit) - 1, unit);
  word_append(text, fraction > 0 ? "." : end_if_whole);
  word_digits(text, digits, unit - 1, unit - fraction);
}

static void word_exponent(word *text, int exponent, int least_digits) {
  int size = abs(exponent);
  word_append(text, exponent < 0 ? "e-" : "e+");
  if (least_digits > 2 || size >= 100) word_fill(text, (char)('0' + size / 100), 1);
  word_fill(text, (char)('0' + size / 10 % 10), 1);
  word_fill(text, (char)('0' + size % 10), 1);
}

static bool has_point(helio_type type) {
  return type == HELIO_FLOAT16 || type == HELIO_FLOAT32 || type == HELIO_FLOAT64;
}

/* From where on whole numbers are shown with an exponent, since numpy 2.3: where a type with few digits can no longer
 * tell them apart. Older numpy takes the value of float64 for every type. */
static double largest_positional(helio_type type, double of_float64) {
  return type == HELIO_FLOAT16 ? 1e3 : type == HELIO_FLOAT32 ? 1e6 : of_float64;
}

/* A number by itself. An array of rank 0 shows like a Python scalar: all its digits, and another border to the
 * scientific notation. ml_dtypes shows a bfloat16 as printf's %g does, more digits than it has, and numpy does not
 * align those even in an array. */
static void word_scalar(word *text, helio_type type, const real *number) {
  bool brain = type == HELIO_BFLOAT16;
  decimal digits = decimal_of_real(number, (limits){.shortest = !brain, .most = brain ? 6 : -1, .least = -1});
  bool scientific = brain && (digits.exponent < -4 || digits.exponent >= 6);
  if (has_point(type) && number->magnitude != 0)
    scientific = number->magnitude >= largest_positional(type, 1e16) || number->magnitude < 1e-4;
  int unit = scientific ? digits.exponent : 0;
  word_number(text, number->negative, &digits, unit, decimal_fraction(&digits, unit),
              has_point(type) && !scientific ? ".0" : "");
  if (scientific) word_exponent(text, digits.exponent, 2);
}

static void grow(int *length, int candidate) {
  if (candidate > *length) *length = candidate;
}

static void column_see_range(column *shown, const unsigned char *element) {
  real number = real_load(shown->type, element);
  if (number.name != NULL) {
    grow(&shown->name_width, (int)strlen(number.name));
    return;
  }
  if (number.magnitude == 0) return;
  if (shown->largest == 0 || number.magnitude > shown->largest) shown->largest = number.magnitude;
  if (shown->smallest == 0 || number.magnitude < shown->smallest) shown->smallest = number.magnitude;
}

/* numpy compares in the element type, so its constants and the quotient are rounded to it first. */
static bool column_is_scientific(const column *shown) {
  if (!has_point(shown->type) || shown->largest == 0) return false;
  if (shown->largest >= largest_positional(shown->type, 1e8)) return true;
  if (shown->type == HELIO_FLOAT64) return shown->smallest < 1e-4 || shown->largest / shown->smallest > 1000;
  float quotient = (float)shown->largest / (float)shown->smallest;
  if (shown->type == HELIO_FLOAT32) return (float)shown->smallest < 1e-4f || quotient > 1000.0f;
  /* No float16 lies between 1e-4 and what that is in float16, and from 1000 the next float16 is 1000.5. */
  return shown->smallest < 1e-4 || quotient > 1000.25f;
}

static void column_see_width(column *shown, const unsigned char *element) {
  real number = real_load(shown->type, element);
  if (number.name != NULL) return;
  limits wanted = {
      .shortest = true, .fraction = !shown->scientific, .most = PRECISION + shown->scientific, .least = -1};
  decimal digits = decimal_of_real(&number, wanted);
  int unit = shown->scientific ? digits.exponent : 0;
  grow(&shown->left, decimal_whole(&digits, unit) + number.negative);
  grow(&shown->fraction, decimal_fraction(&digits, unit));
  grow(&shown->exponent_digits, abs(digits.exponent) >= 100 ? 3 : 2);
}

/* The next index along an axis that is shown. */
static int64_t next_shown(const array *source, int axis, int64_t index) {
  int64_t extent = source->extent[axis];
  bool cut = source->summarised && extent > 2 * EDGE_ITEMS && index == EDGE_ITEMS - 1;
  return cut ? extent - EDGE_ITEMS : index + 1;
}

typedef void see_element(column *shown, const unsigned char *element);

/* Every element that is shown, of the count elements from first on that lie below an axis. */
static void visit(const array *source, int axis, int64_t first, int64_t count, see_element *see, column *shown) {
  if (axis == source->rank) {
    see(shown, source->data + (size_t)first * type_bytes[source->type]);
    return;
  }
  int64_t step = count / source->extent[axis];
  for (int64_t i = 0; i < source->extent[axis]; i = next_shown(source, axis, i))
    visit(source, axis + 1, first + i * step, step, see, shown);
}

static column column_measure(const array *source) {
  column shown = {.type = source->type};
  if (source->rank == 0 || source->type == HELIO_BOOL || source->type == HELIO_BFLOAT16) return shown;
  visit(source, 0, 0, source->count, column_see_range, &shown);
  shown.scientific = column_is_scientific(&shown);
  visit(source, 0, 0, source->count, column_see_width, &shown);
  /* An exponent has a letter and a sign too. */
  int right = has_point(shown.type) + shown.fraction + (shown.scientific ? 2 + shown.exponent_digits : 0);
  grow(&shown.left, shown.name_width - right);
  shown.width = shown.left + right;
  return shown;
}

static void word_aligned(word *text, const column *shown, const real *number) {
  limits wanted = {.shortest = true, .fraction = true, .most = PRECISION, .least = 0};
  if (shown->scientific) wanted = (limits){.shortest = true, .most = shown->fraction + 1, .least = shown->fraction + 1};
  decimal digits = decimal_of_real(number, wanted);
  int unit = shown->scientific ? digits.exponent : 0;
  int fraction = shown->scientific ? shown->fraction : decimal_fraction(&digits, 0);
  word_fill(text, ' ', shown->left - decimal_whole(&digits, unit) - number->negative);
  word_number(text, number->negative, &digits, unit, fraction, has_point(shown->type) ? "." : "");
  word_fill(text, ' ', shown->fraction - fraction);
  if (shown->scientific) word_exponent(text, digits.exponent, shown->exponent_digits);
}

static word element_word(const array *source, const column *shown, int64_t index) {
  word text = {0};
  const unsigned char *element = source->data + (size_t)index * type_bytes[source->type];
  real number = real_load(source->type, element);
  if (source->type == HELIO_BOOL) {
    word_append(&text, *element == 0 ? "False" : source->rank == 0 ? "True" : " True");
  } else if (number.name != NULL) {
    word_fill(&text, ' ', shown->width - (int)strlen(number.name));
    word_append(&text, number.name);
  } else if (source->rank == 0 || source->type == HELIO_BFLOAT16) {
    word_scalar(&text, source->type, &number);
  } else {
    word_aligned(&text, shown, &number);
  }
  return text;
}

/* After a failure nothing more is put, and the caller finds out at the end. */
static void put(output *out, const char *bytes, size_t length) {
  if (out->failed) return;
  if (out->capacity - out->length < length) {
    size_t capacity = 2 * out->capacity + length + 64;
    char *larger = realloc(out->byte, capacity);
    out->failed = larger == NULL;
    if (out->failed) return;
    out->byte = larger;
    out->capacity = capacity;
  }
  memcpy(out->byte + out->length, bytes, length);
  out->length += length;
}

static void put_lines(output *out, int newlines, int indent) {
  for (; newlines > 0; newlines--) put(out, "\n", 1);
  out->line_start = out->length;
  for (; indent > 0; indent--) put(out, " ", 1);
}

/* Wraps before a word that would not leave room for all the closing brackets. No word is so long that it would not fit
 * behind the indent. */
static void put_word(output *out, int rank, const char *bytes, int length) {
  size_t used = out->length - out->line_start;
  if (used + (size_t)length > (size_t)(LINE_WIDTH - rank)) {
    while (out->length > 0 && out->byte[out->length - 1] == ' ') out->length--;
    put_lines(out, 1, rank);
  }
  put(out, bytes, (size_t)length);
}

/* Words of a row have a space between them, rows and larger blocks ever more line ends. */
static void put_gap(output *out, const array *source, int axis) {
  int newlines = source->rank - axis - 1;
  if (newlines == 0) put(out, " ", 1);
  if (newlines > 0) put_lines(out, newlines, axis + 1);
}

static void put_axis(output *out, const array *source, const column *shown, int axis, int64_t first, int64_t count) {
  if (axis == source->rank) {
    word text = element_word(source, shown, first);
    put_word(out, source->rank, text.byte, text.length);
    return;
  }
  int64_t step = count / source->extent[axis];
  put(out, "[", 1);
  for (int64_t i = 0, expected = 0; i < source->extent[axis]; expected = i + 1, i = next_shown(source, axis, i)) {
    if (i > 0) put_gap(out, source, axis);
    if (i != expected) {
      put_word(out, source->rank, "...", 3);
      put_gap(out, source, axis);
    }
    put_axis(out, source, shown, axis + 1, first + i * step, step);
  }
  put(out, "]", 1);
}

char *hi_array_text(helio_type type, int rank, const int64_t *extent, const void *data) {
  array source = {.type = type, .rank = rank, .extent = extent, .count = 1, .data = data};
  bool empty = false;
  for (int i = 0; i < rank; i++) empty = empty || extent[i] == 0;
  for (int i = 0; i < rank && !empty; i++) source.count *= extent[i];
  source.summarised = source.count > THRESHOLD;
  output out = {0};
  if (empty) {
    put(&out, "[]", 2);
  } else {
    column shown = column_measure(&source);
    put_axis(&out, &source, &shown, 0, 0, source.count);
  }
  put(&out, "", 1);
  if (!out.failed) return out.byte;
  free(out.byte);
  return NULL;
}
