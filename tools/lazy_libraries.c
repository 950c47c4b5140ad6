/* SPDX-License-Identifier: Apache-2.0 */
#include "lazy_libraries.h"

#include <dlfcn.h>
#include <openssl/opensslv.h>
#include <stdio.h>
#include <string.h>

lazy_functions lazy;

typedef struct symbol {
  const char *name;
  void *to; /* the pointer to be filled in */
} symbol;

#define LAZY_SYMBOL(name) {#name, &lazy.name},
static const symbol curl_symbols[] = {LAZY_CURL_LIST(LAZY_SYMBOL){NULL, NULL}};
static const symbol crypto_symbols[] = {LAZY_CRYPTO_LIST(LAZY_SYMBOL){NULL, NULL}};

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

/* The versions whose headers this was compiled with. */
static const char *const curl_files[] = {"libcurl.so.4", "libcurl-gnutls.so.4", NULL};
static const char *const crypto_files[] = {"libcrypto.so." TEXT(OPENSSL_SHLIB_VERSION), NULL};

static bool open_one(const char *const *files, const symbol *symbols, char *message, size_t size) {
  void *library = NULL;
  for (int i = 0; files[i] && !library; i++) library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(message, size, "%s cannot be opened: %s", files[0], dlerror());
    return false;
  }
  for (; symbols->name; symbols++) {
    void *found = dlsym(library, symbols->name);
    if (!found) {
      snprintf(message, size, "%s is too old: it has no %s", files[0], symbols->name);
      return false;
    }
    memcpy(symbols->to, &found, sizeof found); /* C knows no conversion from data to functions; POSIX has this one */
  }
  return true;
}

bool lazy_open(char *message, size_t size) {
  static bool opened;
  if (!opened) {
    opened = open_one(crypto_files, crypto_symbols, message, size) && open_one(curl_files, curl_symbols, message, size);
  }
  return opened;
}
