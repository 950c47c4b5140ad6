/* SPDX-License-Identifier: Apache-2.0 */
/* Pickles of lists of integers, as each protocol and each numpy writes them; and all others, which are refused. */
#include "data/pickle.h"
#include "data_files.h"

/* ---- what numpy writes ---- */

static int32_t many_of(int64_t index, int64_t *length) {
  *length = index % 3;
  return (int32_t)index;
}

static void check_few(const helio_sequences *few) {
  int32_t thousand[1001];
  for (int i = 0; i < 1001; i++) thousand[i] = i;
  assert_int_equal(helio_sequences_count(few), 6);
  assert_sequence(few, 0, NULL, 0);
  assert_sequence(few, 1, (int32_t[]){1}, 1);
  assert_sequence(few, 2, (int32_t[]){255, 256, 65535, 65536}, 4);
  assert_sequence(few, 3, thousand, 1001);
  assert_sequence(few, 4, (int32_t[]){-1, INT32_MIN, INT32_MAX}, 3);
  assert_sequence(few, 5, NULL, 0);
}

static void test_all_protocols(void **state) {
  (void)state;
  static const char *const kinds[] = {"2", "3", "4", "5", "old"};
  const char *path = golden_data("pickles.npz");
  char name[20];
  for (size_t i = 0; i < COUNT_OF(kinds); i++) {
    snprintf(name, sizeof name, "few %s", kinds[i]);
    helio_sequences *few = helio_read_npz_sequences(path, name);
    assert_made(few);
    check_few(few);
    snprintf(name, sizeof name, "many %s", kinds[i]);
    helio_sequences *many = helio_read_npz_sequences(path, name);
    assert_made(many);
    assert_int_equal(helio_sequences_count(many), 1003);
    for (int64_t j = 0; j < 1003; j++) {
      int64_t length;
      int32_t value = many_of(j, &length);
      assert_sequence(many, j, (int32_t[]){value, value}, length);
    }
    snprintf(name, sizeof name, "none %s", kinds[i]);
    helio_sequences *none = helio_read_npz_sequences(path, name);
    assert_made(none);
    assert_int_equal(helio_sequences_count(none), 0);
  }
}

static void test_refused_arrays(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"numpy integers", "the pickle asks for numpy._core.multiarray.scalar; only numpy's constructors of arrays are"},
      {"floats", "BINFLOAT (0x47) is not accepted in a pickle of lists of integers"},
      {"texts", "an element of a list is neither an integer nor a list"},
      {"flags", "an element of a list is neither an integer nor a list"},
      {"long", "an integer does not fit into 32 bits"},
      {"deep", "an element of a list is neither an integer nor a list in the array's own"},
      {"tuples", "neither an integer nor a list"},
      {"integers", "an element of the array is an integer, not a list"},
      {"dicts", "EMPTY_DICT (0x7D) is not accepted"},
      {"twice", "a list is in the array twice, in itself or in another order"},
      {"square", "this is an array of type object and shape (2, 2), not of lists in one axis"},
      {"codecs", "the pickle asks for _codecs.encode"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    assert_null(helio_read_npz_sequences(golden_data("refused.npz"), cases[i][0]));
    expect_error(HELIO_BAD_DATA, cases[i][1]);
  }
}

/* ---- what nobody should write ---- */

/* The beginning and the end of a pickle of protocol 4 with lists between them, and no memo. */
#define TEXT(length, text)         "\x8c" length text
#define GLOBAL(a, module, b, name) TEXT(a, module) TEXT(b, name) "\x93"
#define ARRAY                                                                                                          \
  GLOBAL("\25", "numpy.core.multiarray", "\14", "_reconstruct")                                                        \
  GLOBAL("\5", "numpy", "\7", "ndarray")                                                                               \
  "K\0\x85"                                                                                                            \
  "C\1b\x87R"
#define OBJECTS                                                                                                        \
  GLOBAL("\5", "numpy", "\5", "dtype") TEXT("\2", "O8") "\x89\x88\x87R(K\3" TEXT("\1", "|") "NNNK\0K\0K?tb"
#define BEGIN       "\x80\4" ARRAY "(K\1K\1\x85" OBJECTS "\x89]"
#define END         "tb."
#define BYTES(text) text, sizeof(text) - 1

static helio_sequences *unpickle(const char *bytes, size_t size) {
  hi_file *file = hi_file_copy("x", bytes, size);
  assert_made(file);
  helio_sequences *sequences = hi_unpickle(file, 0, 1);
  hi_drop(file);
  return sequences;
}

static void test_smallest_pickle(void **state) {
  (void)state;
  helio_sequences *one = unpickle(BYTES(BEGIN "]K\7aa" END));
  assert_made(one);
  assert_sequence(one, 0, (int32_t[]){7}, 1);
}

static const struct {
  const char *bytes;
  size_t size;
  const char *part;
} hostile[] = {
    /* those that call functions */
    {BYTES("\x80\4" GLOBAL("\2", "os", "\6", "system") TEXT("\4", "true") "\x85R."),
     "x, byte 14: the pickle asks for os.sys"},
    {BYTES("\x80\2"
           "cos\nsystem\n(X\4\0\0\0truetR."),
     "x, byte 2: the pickle asks for os.system; only numpy's constructors of arrays are accepted"},
    {BYTES("\x80\2"
           "cbuiltins\neval\n"),
     "builtins.eval"},
    {BYTES("\x80\2"
           "cnumpy\nload\n"),
     "numpy.load"},
    {BYTES("\x80\2(S'true'\nios\nsystem\n."), "STRING (0x53) is not accepted"},
    {BYTES("\x80\2(ios\nsystem\n."), "INST (0x69) is not accepted"},
    {BYTES("\x80\2)\x81."), "NEWOBJ (0x81) is not accepted"},
    {BYTES("\x80\2\x82\1."), "EXT1 (0x82) is not accepted"},
    {BYTES("\x80\2NQ."), "BINPERSID (0x51) is not accepted"},
    {BYTES("\x80\5\x97."), "NEXT_BUFFER (0x97) is not accepted"},
    {BYTES("\x80\4\xff"), "an unknown instruction (0xFF) is not accepted"},
    {BYTES("\x80\4" GLOBAL("\5", "numpy", "\7", "ndarray") ")R."), "something is called in another way"},
    {BYTES("\x80\4" GLOBAL("\5", "numpy", "\5", "dtype") TEXT("\2", "i8") "\x89\x88\x87R."), "not one of objects"},
    {BYTES("\x80\4" ARRAY ARRAY), "there is a second array"},
    {BYTES("\x80\4" ARRAY "Nb."), "this is not what an array of lists is made of"},
    {BYTES("\x80\4]Nb."), "this is not what an array of lists is made of"},
    /* the machine */
    {BYTES(""), "x, byte 0: the pickle ends inside an instruction"},
    {BYTES("\x80\1."), "this is not a pickle of protocol 2, 3, 4 or 5"},
    {BYTES("(lp0\n."), "this is not a pickle of protocol"},
    {BYTES("\x80\4"), "the pickle ends inside an instruction"},
    {BYTES("\x80\4\x80\4."), "the protocol is named twice"},
    {BYTES("\x80\4."), "the stack is empty"},
    {BYTES("\x80\4N."), "the result is not an array"},
    {BYTES("\x80\4\x85."), "the stack is empty"},
    {BYTES("\x80\4(\x86."), "the stack is empty"},
    {BYTES("\x80\4N\x86."), "the stack is empty"},
    {BYTES("\x80\4t."), "there is no mark on the stack"},
    {BYTES("\x80\4\x94."), "the stack is empty"},
    {BYTES("\x80\4(q\0."), "the stack is empty"},
    {BYTES("\x80\4h\0."), "nothing of this number is remembered"},
    {BYTES("\x80\4Nr\xff\xff\xff\xffj\xff\xff\xff\xff"), "nothing of this number is remembered"},
    {BYTES("\x80\4R"), "the stack is empty"},
    {BYTES("\x80\4NR"), "the stack is empty"},
    {BYTES("\x80\4\x93"), "the stack is empty"},
    {BYTES("\x80\4NN\x93"), "the name of a global is not text"},
    {BYTES("\x80\4"
           "cnumpy"),
     "the name of a global does not end"},
    {BYTES("\x80\4X\xff\xff\xff\xffx"), "the pickle ends inside an instruction"},
    {BYTES("\x80\4\x95\xff\xff\xff\xff\xff\xff\xff\xff."), "a frame goes beyond the end"},
    {BYTES("\x80\4\x8a\xff."), "the pickle ends inside an instruction"},
    {BYTES("\x80\4\x8a\x09xxxxxxxxx."), "an integer does not fit into 32 bits"},
    /* lists */
    {BYTES(BEGIN "]K\7a" END), "this is not what an array of lists is made of"},
    {BYTES(BEGIN "]K\7aa]a" END), "the array should have 1 lists; it says that it has 1, and there are 2"},
    {BYTES(BEGIN END), "the array should have 1 lists; it says that it has 1, and there are 0"},
    {BYTES(BEGIN "]K\7aa" END "."), "something follows the end of the pickle"},
    {BYTES(BEGIN "K\7a" END), "an element of the array is an integer, not a list"},
    {BYTES(BEGIN "(]]K\1ah\0K\1a"), "nothing of this number is remembered"},
    {BYTES(BEGIN "(]\x94]K\1ah\0K\1a"), "a list grows after another has begun"},
    {BYTES(BEGIN "\x94h\0a"), "in itself"},
    {BYTES(BEGIN "]\x8a\5\0\0\0\0\1a"), "an integer does not fit into 32 bits"},
    {BYTES("\x80\4K\1K\1a"), "there is no list to append to"},
    {BYTES("\x80\4(K\1e"), "there is no list to append to"},
    {BYTES("\x80\4" ARRAY "(K\1)" OBJECTS "\x89]tb."), "the array has not one axis"},
    {BYTES("\x80\4" ARRAY "(K\1J\xff\xff\xff\xff\x85" OBJECTS "\x89]tb."), "the array has a negative extent"},
    {BYTES(BEGIN "]ab"), "this is not what an array of lists is made of"},
};

static void test_hostile_pickles(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(hostile); i++) {
    assert_null(unpickle(hostile[i].bytes, hostile[i].size));
    expect_error(HELIO_BAD_DATA, hostile[i].part);
  }
}

/* A pickle is a program, but it cannot make the machine take more memory than its lists need. */
static void test_pickles_that_fill_memory(void **state) {
  (void)state;
  static const struct {
    const char *unit, *part;
  } cases[] = {
      {"(", "the stack grows higher"},     {"N", "the stack grows higher"},
      {"]", "the stack grows higher"},     {"N\x85", "there are more tuples than numpy's pickles have"},
      {"N\x94", "the stack grows higher"}, {"]\x94\x94\x94\x94\x94\x94\x94\x94", "the stack grows higher"},
  };
  enum { LARGE = 1 << 20 };
  char *bytes = malloc(LARGE);
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    memcpy(bytes, "\x80\4", 2);
    for (size_t j = 2; j < LARGE; j++) bytes[j] = cases[i].unit[(j - 2) % strlen(cases[i].unit)];
    long before = resident_kib();
    assert_null(unpickle(bytes, LARGE));
    expect_error(HELIO_BAD_DATA, cases[i].part);
    if (!SANITIZED) assert_in_range(resident_kib() - before + 1024, 0, 4096);
  }
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      POOL_TEST(test_all_protocols),   POOL_TEST(test_refused_arrays),           POOL_TEST(test_smallest_pickle),
      POOL_TEST(test_hostile_pickles), POOL_TEST(test_pickles_that_fill_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
