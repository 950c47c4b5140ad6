/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of text files: quotes, types, line ends, and errors that name line and column. */
#include <locale.h>
#include <math.h>

#include "data_files.h"

static helio_csv *read_with(const char *text, helio_read_csv_options options) {
  hi_file *file = hi_file_copy("t.csv", text, strlen(text));
  assert_made(file);
  helio_csv *csv = hi_read_csv(file, &options);
  hi_drop(file);
  return csv;
}

#define READ(...)          READ_AS(__VA_ARGS__, .size = sizeof(helio_read_csv_options))
#define READ_AS(text, ...) read_with(text, (helio_read_csv_options){__VA_ARGS__})

static void test_header_and_types(void **state) {
  (void)state;
  helio_csv *csv =
      READ("id,price,name,mixed\n1,1.5,Anna,1\n-2,,\"Bo, \"\"B\"\"\",x\n9223372036854775807, 2e3 ,C\303\251,\n");
  assert_made(csv);
  assert_int_equal(helio_csv_columns(csv), 4);
  assert_int_equal(helio_csv_rows(csv), 3);
  assert_string_equal(helio_csv_name(csv, 1), "price");
  static const helio_type types[] = {HELIO_INT64, HELIO_FLOAT32, (helio_type)0, (helio_type)0};
  for (int i = 0; i < 4; i++) assert_int_equal(helio_csv_type(csv, i), types[i]);
  helio_array *id = helio_csv_column(csv, "id"), *price = helio_csv_column(csv, "price");
  assert_made(id ? price : NULL);
  assert_true(hi_shape_equal(&id->shape, &HELIO_SHAPE(3)));
  assert_true(((const int64_t *)id->data)[1] == -2 && ((const int64_t *)id->data)[2] == INT64_MAX);
  const float *prices = price->data;
  assert_true(prices[0] == 1.5f && isnan(prices[1]) && prices[2] == 2000);
  assert_string_equal(helio_csv_text(csv, 1, 2), "Bo, \"B\"");
  assert_string_equal(helio_csv_text(csv, 2, 1), " 2e3 ");
  assert_null(helio_csv_text(csv, 3, 0));
  assert_null(helio_csv_text(csv, 0, 4));
  assert_null(helio_csv_name(csv, -1));
}

static void test_table_of_python(void **state) {
  (void)state;
  helio_csv *csv = helio_read_csv(golden_data("table.csv"));
  assert_made(csv);
  helio_array *price = helio_csv_column(csv, "price");
  assert_made(price);
  const float *prices = helio_array_data(price);
  assert_true(prices[0] == 1.5f && isnan(prices[1]) && isinf(prices[2]) && prices[3] == 0.002f);
  static const char *const names[] = {"Anna", "Bo, \"B\"", "two\nlines", ""};
  for (int i = 0; i < 4; i++) assert_string_equal(helio_csv_text(csv, i, 2), names[i]);
  assert_int_equal(helio_csv_type(csv, 0), HELIO_INT64);
  assert_int_equal(helio_csv_rows(csv), 4);
}

/* Columns of one name are told apart by their number. */
static void test_columns_by_number(void **state) {
  (void)state;
  helio_csv *csv = READ("a,a\n1,x\n3,y\n");
  assert_made(csv);
  helio_array *first = helio_csv_column_at(csv, 0);
  assert_made(first);
  assert_int_equal(((const int64_t *)helio_array_data(first))[1], 3);
  assert_null(helio_csv_column(csv, "a"));
  expect_error(HELIO_INVALID_ARGUMENT, "both called");
  assert_null(helio_csv_column_at(csv, 1));
  expect_error(HELIO_INVALID_ARGUMENT, "column 2 (a) is text");
  assert_null(helio_csv_column_at(csv, 2));
  expect_error(HELIO_INVALID_ARGUMENT, "there is no column 2");
}

/* One cell that is wrong is named: nobody finds it among thousands. */
static void test_cell_that_is_no_number(void **state) {
  (void)state;
  helio_csv *csv = READ("a,b\n1.5,\n2,\n0x3,\n4,\n");
  assert_made(csv);
  assert_null(helio_csv_column(csv, "a"));
  expect_error(HELIO_INVALID_ARGUMENT, "t.csv: column 1 (a) is text, not numbers: line 4 has \"0x3\"");
  assert_null(helio_csv_column(csv, "b"));
  expect_error(HELIO_INVALID_ARGUMENT, "t.csv: column 2 (b) is empty");
}

static void test_columns_that_are_not_there(void **state) {
  (void)state;
  helio_csv *csv = READ("a,b,a\n1,x,2\n");
  assert_made(csv);
  assert_null(helio_csv_column(csv, "b"));
  expect_error(HELIO_INVALID_ARGUMENT, "t.csv: column 2 (b) is text, not numbers");
  assert_null(helio_csv_column(csv, "c"));
  expect_error(HELIO_INVALID_ARGUMENT, "t.csv: no column is called \"c\"");
  assert_null(helio_csv_column(csv, "a"));
  expect_error(HELIO_INVALID_ARGUMENT, "t.csv: columns 1 and 3 are both called \"a\"");
  assert_null(helio_csv_column(csv, NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "name is NULL");
  assert_null(helio_csv_column(NULL, "a"));
  expect_error(HELIO_INVALID_ARGUMENT, "csv is NULL");
  assert_int_equal(helio_csv_rows(NULL), 0);
}

static void test_line_ends(void **state) {
  (void)state;
  static const char *const texts[] = {"1;2\n3;4\n", "1;2\r\n3;4\r\n", "1;2\n3;4", "\xEF\xBB\xBF\n\r\n1;2\n\n\n3;4\n\n",
                                      "\"1\";\"2\"\r\n\"3\";\"4\""};
  for (size_t i = 0; i < COUNT_OF(texts); i++) {
    helio_csv *csv = READ(texts[i], .separator = ';', .no_header = true);
    assert_made(csv);
    assert_int_equal(helio_csv_rows(csv), 2);
    helio_array *column = helio_csv_column(csv, "1");
    assert_made(column);
    assert_true(((const int64_t *)column->data)[0] == 2 && ((const int64_t *)column->data)[1] == 4);
  }
  helio_csv *csv = READ("\"a\nb\",\"c\r\nd\"\n,\n", .no_header = true);
  assert_made(csv);
  assert_string_equal(helio_csv_text(csv, 0, 0), "a\nb");
  assert_string_equal(helio_csv_text(csv, 0, 1), "c\r\nd");
  assert_string_equal(helio_csv_text(csv, 1, 1), "");
}

static void test_files_with_nothing_in_them(void **state) {
  (void)state;
  helio_csv *csv = READ("a,b\n");
  assert_made(csv);
  assert_int_equal(helio_csv_rows(csv), 0);
  assert_int_equal(helio_csv_columns(csv), 2);
  assert_null(helio_csv_column(csv, "a"));
  expect_error(HELIO_BAD_DATA, "t.csv: there are no rows in it but the line of names");
  csv = READ("", .no_header = true);
  assert_made(csv);
  assert_int_equal(helio_csv_rows(csv), 0);
  assert_int_equal(helio_csv_columns(csv), 0);
  assert_null(READ("\n\n"));
  expect_error(HELIO_BAD_DATA, "t.csv, line 1: there is no header: the file is empty");
}

static void test_types_that_are_given(void **state) {
  (void)state;
  static const helio_type types[] = {HELIO_UINT8, HELIO_INT32, HELIO_FLOAT64, HELIO_BOOL, HELIO_FLOAT16, (helio_type)0};
  static const char text[] = "a,b,c,d,e,f\n255,-2147483648,-inf,TRUE,0.1,x\n 0 ,+7,NaN,0,,y\n";
  helio_csv *csv = READ(text, .types = types, .type_count = 6);
  assert_made(csv);
  static const double expected[][2] = {{255, 0}, {INT32_MIN, 7}, {-INFINITY, NAN}, {1, 0}, {0.0999755859375, NAN}};
  for (int i = 0; i < 5; i++) {
    helio_array *column = helio_csv_column(csv, (char[]){(char)('a' + i), 0});
    assert_made(column);
    assert_int_equal(column->type, types[i]);
    for (int j = 0; j < 2; j++) {
      double found = hi_type_decode(types[i], (const char *)column->data + (size_t)j * helio_type_bytes(types[i]));
      assert_true(found == expected[i][j] || (isnan(found) && isnan(expected[i][j])));
    }
  }
  assert_null(READ(text, .types = types, .type_count = 5));
  expect_error(HELIO_INVALID_ARGUMENT, "t.csv has 6 columns, but 5 types are given");
}

static void test_cells_of_another_type(void **state) {
  (void)state;
  static const struct {
    helio_type type;
    const char *cell, *part;
  } cases[] = {
      {HELIO_UINT8, "256", "t.csv, line 3, column 1 (a): \"256\" is not of type uint8"},
      {HELIO_UINT8, "-1", "is not of type uint8"},
      {HELIO_UINT8, "", "\"\" is not of type uint8"},
      {HELIO_INT32, "2147483648", "is not of type int32"},
      {HELIO_INT64, "9223372036854775808", "is not of type int64"},
      {HELIO_INT64, "1.0", "is not of type int64"},
      {HELIO_INT64, "1 2", "is not of type int64"},
      {HELIO_BOOL, "2", "is not of type bool"},
      {HELIO_BOOL, "truest", "is not of type bool"},
      {HELIO_FLOAT32, "0x10", "is not of type float32"},
      {HELIO_FLOAT32, "1e", "is not of type float32"},
      {HELIO_FLOAT32, "1,5", "\"1,5\" is not of type float32"},
      {HELIO_FLOAT32, "\x1b[2J", "\"?[2J\" is not of type float32"},
      {(helio_type)99, "1", "99, for column 1, is not a type"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    char text[100];
    snprintf(text, sizeof text, "a\n1\n\"%s\"\n", cases[i].cell);
    assert_null(READ(text, .types = &cases[i].type, .type_count = 1));
    expect_error(cases[i].type == (helio_type)99 ? HELIO_INVALID_ARGUMENT : HELIO_BAD_DATA, cases[i].part);
  }
}

static void test_wrong_text(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"a,b\n1,2\n3\n", "t.csv, line 3: the row has 1 cells, the first one has 2"},
      {"a,b\n1,2,3\n", "t.csv, line 2: the row has 3 cells, the first one has 2"},
      {"a,b\n1,x\"y\n", "t.csv, line 2, column 2: a quote stands inside a cell that does not begin with one"},
      {"a,b\n1,\"x\ny\"z\n", "t.csv, line 3, column 2: something follows the quote that ends the cell"},
      {"a,b\n1,2\n3,\"x\ny\n", "t.csv, line 3, column 2: the quote that begins here does not end"},
      {"a,b\r1,2\r", "t.csv, line 1, column 2: a carriage return has no line feed behind it"},
      {"\"", "t.csv, line 1, column 1: the quote that begins here does not end"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    assert_null(READ(cases[i][0]));
    expect_error(HELIO_BAD_DATA, cases[i][1]);
  }
  hi_file *file = hi_file_copy("t.csv", "a\n1\0\n", 5);
  assert_null(hi_read_csv(file, &(helio_read_csv_options){.no_header = true}));
  expect_error(HELIO_BAD_DATA, "t.csv, line 2, column 1: a byte is 0");
  hi_drop(file);
  assert_null(READ("a\n", .separator = '"'));
  expect_error(HELIO_INVALID_ARGUMENT, "a quote or line end cannot separate cells");
}

static void test_file_by_path(void **state) {
  (void)state;
  char folder[64], path[100];
  make_folder(folder);
  write_file(folder, "t.csv", "a\tb\n1\t2\n");
  snprintf(path, sizeof path, "%s/t.csv", folder);
  helio_csv *csv = helio_read_csv(path, .separator = '\t');
  assert_made(csv);
  assert_made(helio_csv_column(csv, "b"));
  remove_folder(folder);
}

/* A comma that the user's language has for a point changes nothing. */
static void test_points_in_any_locale(void **state) {
  (void)state;
  if (!setlocale(LC_NUMERIC, "de_DE.UTF-8")) SKIP("the locale de_DE.UTF-8 is not installed");
  helio_csv *csv = READ("a\n1.5\n");
  setlocale(LC_NUMERIC, "C");
  assert_made(csv);
  assert_true(*(const float *)helio_array_data(helio_csv_column(csv, "a")) == 1.5f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      POOL_TEST(test_header_and_types),
      POOL_TEST(test_table_of_python),
      POOL_TEST(test_columns_by_number),
      POOL_TEST(test_cell_that_is_no_number),
      POOL_TEST(test_columns_that_are_not_there),
      POOL_TEST(test_line_ends),
      POOL_TEST(test_files_with_nothing_in_them),
      POOL_TEST(test_types_that_are_given),
      POOL_TEST(test_cells_of_another_type),
      POOL_TEST(test_wrong_text),
      POOL_TEST(test_file_by_path),
      POOL_TEST(test_points_in_any_locale),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
