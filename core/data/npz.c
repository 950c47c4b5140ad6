/* SPDX-License-Identifier: Apache-2.0 */
/* numpy's .npz: a ZIP archive whose members are .npy files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/pickle.h"
#include "data/readers.h"
#include "data/zip.h"
#include "runtime/error.h"

static const char suffix[] = ".npy";

/* numpy calls the array "x" that is in the member "x.npy". The text is the caller's. NULL with the error set. */
static char *member_name(const char *name) {
  char *whole = NULL;
  if (!name) {
    hi_fail(HELIO_INVALID_ARGUMENT, "name is NULL");
  } else if (asprintf(&whole, "%s%s", name, suffix) < 0) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of an array");
    whole = NULL;
  }
  return whole;
}

/* Length of the name without the suffix; 0: it is not an array. */
static size_t stem_length(const char *name) {
  size_t length = strlen(name), end = sizeof suffix - 1;
  return length > end && strcmp(name + length - end, suffix) == 0 ? length - end : 0;
}

static void fail_absent(const hi_zip *zip, const char *name) {
  char names[400] = "";
  size_t length = 0;
  for (int i = 0; i < zip->count && length < sizeof names; i++) {
    size_t stem = stem_length(zip->members[i].name);
    if (stem) {
      length += (size_t)snprintf(names + length, sizeof names - length, "%s%.*s", length ? ", " : "",
                                 stem < 60 ? (int)stem : 60, zip->members[i].name);
    }
  }
  hi_file_fail(zip->file, HELIO_INVALID_ARGUMENT, zip->directory, "there is no array \"%.100s\"; there %s%s", name,
               *names ? "are: " : "is none at all", names);
}

static hi_file *open_member(hi_file *file, const char *name) {
  hi_zip zip = {.file = NULL};
  hi_file *member = NULL;
  char *whole = member_name(name);
  if (!whole) return NULL;
  if (!hi_zip_open(&zip, file)) {
    const hi_zip_member *found = hi_zip_find(&zip, whole);
    if (found) {
      member = hi_zip_unpack(&zip, found);
    } else if (!helio_error_pending()) {
      fail_absent(&zip, name);
    }
  }
  hi_zip_close(&zip);
  free(whole);
  return member;
}

helio_array *hi_read_npz(hi_file *file, const char *name) {
  hi_file *member = open_member(file, name);
  helio_array *array = member ? hi_read_npy(member) : NULL;
  hi_drop(member);
  return array;
}

static helio_sequences *read_objects(const hi_file *file) {
  hi_npy npy;
  if (hi_npy_header(file, &npy)) return NULL;
  if (!npy.objects || npy.layout.shape.rank != 1) {
    char text[HI_SHAPE_TEXT];
    hi_file_fail(file, HELIO_BAD_DATA, 0, "this is an array of type %s and shape %s, not of lists in one axis",
                 npy.objects ? "object" : helio_type_name(npy.layout.type), hi_shape_text(&npy.layout.shape, text));
    return NULL;
  }
  return hi_unpickle(file, npy.layout.offset, npy.layout.shape.extent[0]);
}

helio_sequences *hi_read_npz_sequences(hi_file *file, const char *name) {
  hi_file *member = open_member(file, name);
  helio_sequences *sequences = member ? read_objects(member) : NULL;
  hi_drop(member);
  return sequences;
}

char **hi_npz_names(hi_file *file) {
  hi_zip zip = {.file = NULL};
  char **list = NULL;
  if (!hi_zip_open(&zip, file)) {
    const char **names = malloc(((size_t)zip.count + 1) * sizeof *names);
    int count = 0;
    for (int i = 0; i < zip.count && names; i++) {
      size_t length = stem_length(zip.members[i].name);
      zip.members[i].name[length] = 0;
      if (length) names[count++] = zip.members[i].name;
    }
    if (names) {
      list = hi_list_of(names, count);
    } else {
      hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for the names of its arrays", file->name);
    }
    free(names);
  }
  hi_zip_close(&zip);
  return list;
}

/* ---- by path ---- */

helio_array *helio_read_npz(const char *path, const char *name) {
  hi_file *file = hi_enter_unstarted(__func__) ? NULL : hi_file_open(path);
  helio_array *array = file ? hi_read_npz(file, name) : NULL;
  hi_drop(file);
  return array;
}

helio_sequences *helio_read_npz_sequences(const char *path, const char *name) {
  hi_file *file = hi_enter_unstarted(__func__) ? NULL : hi_file_open(path);
  helio_sequences *sequences = file ? hi_read_npz_sequences(file, name) : NULL;
  hi_drop(file);
  return sequences;
}

char **helio_npz_names(const char *path) {
  hi_file *file = hi_enter_unstarted(__func__) ? NULL : hi_file_open(path);
  char **names = file ? hi_npz_names(file) : NULL;
  hi_drop(file);
  return names;
}
