/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and sums of archives are those of Keras' load_data(). Those of IDX files are the ones that TensorFlow
 * Datasets has for the files as they were first published; Debian and others pack them anew, so they are known by what
 * is inside as well. */
#include "data_sources.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define KERAS_URL "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"

static const data_file mnist[] = {
    {"mnist.npz", 11490434, "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1", 0, NULL},
};

static const data_file mnist_idx[] = {
    {"train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
     47040016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
    {"train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 60008,
     "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
    {"t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", 7840016,
     "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
    {"t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 10008,
     "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"},
};

static const data_file fashion_mnist[] = {
    {"train-images-idx3-ubyte.gz", 26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
     47040016, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
    {"train-labels-idx1-ubyte.gz", 29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845", 60008,
     "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
    {"t10k-images-idx3-ubyte.gz", 4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073", 7840016,
     "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
    {"t10k-labels-idx1-ubyte.gz", 5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5", 10008,
     "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"},
};

static const data_file reuters[] = {
    {"reuters.npz", 2110848, "d6586e694ee56d7a4e65172e12b3e987c03096cb01eab99753921ef915959916", 0, NULL},
};

static const data_file imdb[] = {
    {"imdb.npz", 17464789, "69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f", 0, NULL},
};

#define FILES(list) list, (int)(sizeof(list) / sizeof((list)[0]))

static const data_source sources[] = {
    {"mnist", "npz", KERAS_URL, FILES(mnist)},
    {"mnist", "idx", "https://storage.googleapis.com/cvdf-datasets/mnist/", FILES(mnist_idx)},
    {"fashion-mnist", "idx", KERAS_URL, FILES(fashion_mnist)},
    {"reuters", "npz", KERAS_URL, FILES(reuters)},
    {"imdb", "npz", KERAS_URL, FILES(imdb)},
};

const data_source *data_source_of(const char *set, int number) {
  for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
    if (strcmp(sources[i].set, set) == 0 && number-- == 0) return &sources[i];
  }
  return NULL;
}

static bool same_but_gz(const char *packed, const char *name) {
  size_t length = strlen(name);
  return strncmp(packed, name, length) == 0 && (!packed[length] || strcmp(packed + length, ".gz") == 0);
}

const data_file *data_file_named(const char *set, const char *name) {
  const data_source *source;
  for (int number = 0; (source = data_source_of(set, number)); number++) {
    for (int i = 0; i < source->count; i++) {
      if (same_but_gz(source->files[i].name, name)) return &source->files[i];
    }
  }
  return NULL;
}

const char *data_base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}
