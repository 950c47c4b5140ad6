/* SPDX-License-Identifier: Apache-2.0 */
/* The run-time compiler. NVRTC and hipRTC have the same functions under other names: rtc_names.h of each vendor's
 * folder gives them the names that compiler.c uses, and compiler.c of that folder says which library it is and what
 * differs. */
#ifndef GPU_COMPILER_H
#define GPU_COMPILER_H

#include "library.h"
#include "rtc_names.h"
#include "vendor.h"

#include <limits.h>

/* A compiler that was opened, or is to be. */
typedef struct gpu_compiler {
  void *library; /* NULL: not yet */
  struct gpu_compiler_calls {
    RTC_FUNCTIONS(GPU_POINTER)
  } call;
  int major, minor;                  /* its version */
  char identity[2 * PATH_MAX + 192]; /* whatever tells one from another: version, files, options */
} gpu_compiler;

/* --- compiler.c of backends/gpu --- */

/* The compiler for such a device, opened when first asked for: HELIO_NOT_SUPPORTED, with what is missing told, if there
 * is none. Its identity is part of the cache's key. */
helio_status gpu_compiler_find(const helio_host *host, const vendor_facts *facts, const gpu_compiler **compiler);

/* `defines` are options "-DNAME=value", the last one NULL. */
helio_status gpu_compile(const helio_host *host, const gpu_compiler *compiler, const vendor_facts *facts,
                         const char *name, const char *text, const char *const *defines, vendor_image *image);

/* For the vendor: makes a compiler of a library that was opened. The name of a function that it lacks, else NULL. */
const char *gpu_compiler_bind(gpu_compiler *compiler, void *library);

/* --- compiler.c of each vendor --- */

/* As gpu_compiler_find, which calls it under a lock. */
helio_status vendor_compiler_find(const helio_host *host, const vendor_facts *facts, gpu_compiler **compiler);

/* The option that names the architecture to compile for. */
void vendor_compiler_option(const gpu_compiler *compiler, const vendor_facts *facts, char *option, size_t size);

/* What a program was compiled to: how long it is, and its bytes. */
abi_enum vendor_compiler_image_size(const gpu_compiler *compiler, struct rtc_program *program, size_t *bytes);
abi_enum vendor_compiler_image(const gpu_compiler *compiler, struct rtc_program *program, char *image);

#endif
