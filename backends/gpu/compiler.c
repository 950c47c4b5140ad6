/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#define GPU_TABLE struct gpu_compiler_calls
static const gpu_symbol symbols[] = {RTC_FUNCTIONS(GPU_SYMBOL)};

#define OPTIONS_LIMIT 16

/* Which file a library is, and whether it is still the same; "" of none. */
static void identify_library(void *library, char *text, size_t size) {
  char path[PATH_MAX];
  struct stat file = {0};
  text[0] = '\0';
  if (library == NULL) return;
  gpu_library_path(library, path, sizeof path);
  if (stat(path, &file) != 0) file = (struct stat){0};
  snprintf(text, size, "%s %lld %lld ", path, (long long)file.st_size, (long long)file.st_mtime);
}

static void identify(gpu_compiler *compiler) {
  static const char *const generators[] = {RTC_GENERATORS, NULL};
  char file[PATH_MAX + 48], generator[PATH_MAX + 48];
  compiler->call.rtc_version(&compiler->major, &compiler->minor);
  identify_library(compiler->library, file, sizeof file);
  identify_library(gpu_library_opened(generators), generator, sizeof generator);
  snprintf(compiler->identity, sizeof compiler->identity,
           RTC_TITLE " %d.%d %s%s" RTC_OPTION_CONTRACTION " " RTC_OPTION_STANDARD, compiler->major, compiler->minor,
           file, generator);
}

const char *gpu_compiler_bind(gpu_compiler *compiler, void *library) {
  const char *missing = gpu_library_bind(library, symbols, sizeof symbols / sizeof symbols[0], &compiler->call);
  if (missing != NULL) return missing;
  compiler->library = library;
  identify(compiler);
  return NULL;
}

helio_status gpu_compiler_find(const helio_host *host, const vendor_facts *facts, const gpu_compiler **compiler) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  gpu_compiler *found = NULL;
  pthread_mutex_lock(&lock);
  helio_status status = vendor_compiler_find(host, facts, &found);
  pthread_mutex_unlock(&lock);
  if (status == HELIO_OK) *compiler = found;
  return status;
}

/* That a text is not compiled says nothing about the device. */
static helio_status meaning_of(abi_enum result) {
  return result == RTC_OUT_OF_MEMORY ? HELIO_OUT_OF_MEMORY : HELIO_NOT_SUPPORTED;
}

static helio_status no_image(const helio_host *host, const gpu_compiler *compiler, abi_enum result) {
  return host->fail(host, meaning_of(result), RTC_TITLE " compiled, but gives no image: %s",
                    compiler->call.rtc_error_string(result));
}

static helio_status read_image(const helio_host *host, const gpu_compiler *compiler, struct rtc_program *program,
                               vendor_image *image) {
  size_t bytes = 0;
  abi_enum result = vendor_compiler_image_size(compiler, program, &bytes);
  if (result != 0 || bytes == 0) return no_image(host, compiler, result);
  char *data = host->allocate(host, bytes);
  if (data == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a compiled kernel");
  result = vendor_compiler_image(compiler, program, data);
  if (result != 0) {
    host->release(host, data);
    return no_image(host, compiler, result);
  }
  *image = (vendor_image){data, bytes};
  return HELIO_OK;
}

static helio_status tell_log(const helio_host *host, const gpu_compiler *compiler, struct rtc_program *program,
                             const char *name, const char *option, abi_enum result) {
  size_t bytes = 0;
  char *log = NULL;
  if (compiler->call.rtc_log_size(program, &bytes) == 0 && bytes > 1) log = host->allocate(host, bytes);
  bool told = log != NULL && compiler->call.rtc_log(program, log) == 0;
  helio_status status = host->fail(host, meaning_of(result), RTC_TITLE " does not compile %s with %s: %s%s%s", name,
                                   option, compiler->call.rtc_error_string(result), told ? ": " : "", told ? log : "");
  if (log != NULL) host->release(host, log);
  return status;
}

helio_status gpu_compile(const helio_host *host, const gpu_compiler *compiler, const vendor_facts *facts,
                         const char *name, const char *text, const char *const *defines, vendor_image *image) {
  char architecture[sizeof facts->architecture + 32];
  vendor_compiler_option(compiler, facts, architecture, sizeof architecture);
  const char *options[OPTIONS_LIMIT] = {architecture, RTC_OPTION_CONTRACTION, RTC_OPTION_STANDARD};
  int count = 3;
  for (; *defines != NULL && count < OPTIONS_LIMIT; defines++) options[count++] = *defines;
  struct rtc_program *program;
  abi_enum result = compiler->call.rtc_create(&program, text, name, 0, NULL, NULL);
  if (result != 0)
    return host->fail(host, meaning_of(result), RTC_TITLE " does not take %s: %s", name,
                      compiler->call.rtc_error_string(result));
  result = compiler->call.rtc_compile(program, count, options);
  helio_status status = result == 0 ? read_image(host, compiler, program, image)
                                    : tell_log(host, compiler, program, name, architecture, result);
  compiler->call.rtc_destroy(&program);
  return status;
}
