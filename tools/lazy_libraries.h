/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl and libcrypto, opened by the one command that needs them. Linked, they and the thirty libraries behind them
 * made the start of every command three times as slow (`helio devices`: 16 ms of work, not 5). */
#ifndef LAZY_LIBRARIES_H
#define LAZY_LIBRARIES_H

#define CURL_DISABLE_TYPECHECK /* its macros call functions by their names */
#include <curl/curl.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>

#define LAZY_CURL_LIST(X)                                                                                              \
  X(curl_global_init)                                                                                                  \
  X(curl_easy_init)                                                                                                    \
  X(curl_easy_setopt)                                                                                                  \
  X(curl_easy_perform)                                                                                                 \
  X(curl_easy_getinfo)                                                                                                 \
  X(curl_easy_header)                                                                                                  \
  X(curl_easy_strerror)                                                                                                \
  X(curl_easy_cleanup)

#define LAZY_CRYPTO_LIST(X)                                                                                            \
  X(EVP_sha256)                                                                                                        \
  X(EVP_MD_CTX_new)                                                                                                    \
  X(EVP_MD_CTX_free)                                                                                                   \
  X(EVP_DigestInit_ex)                                                                                                 \
  X(EVP_DigestUpdate)                                                                                                  \
  X(EVP_DigestFinal_ex)

/* The functions, by their names. */
typedef struct lazy_functions {
#define LAZY_FIELD(name) __typeof__(name) *name;
  LAZY_CURL_LIST(LAZY_FIELD) LAZY_CRYPTO_LIST(LAZY_FIELD)
#undef LAZY_FIELD
} lazy_functions;

extern lazy_functions lazy;

/* Fills them in, once. False with a message if a library is not there or lacks something. */
bool lazy_open(char *message, size_t size);

#endif
