/* SPDX-License-Identifier: Apache-2.0 */
/* HIP's run-time compiler, hipRTC: a library of its own, and until HIP 6 in the runtime as well. */
#include "../gpu/compiler.h"

#include "driver.h"

#include <stdio.h>

/* Of the runtime's own version, for all devices: another one's code need not fit it. */
helio_status vendor_compiler_find(const helio_host *host, const vendor_facts *facts, gpu_compiler **compiler) {
  static gpu_compiler hiprtc;
  (void)facts;
  *compiler = &hiprtc;
  if (hiprtc.library != NULL) return HELIO_OK;
  char name[32], error[512] = "";
  gpu_places places;
  snprintf(name, sizeof name, "libhiprtc.so.%d", hip_runtime_major());
  vendor_places(host, &places);
  void *library = gpu_library_open((const char *const[]){name, NULL}, &places, error, sizeof error);
  if (library == NULL) library = hip_runtime_library();
  const char *missing = gpu_compiler_bind(&hiprtc, library);
  if (missing == NULL) return HELIO_OK;
  return host->fail(host, HELIO_NOT_SUPPORTED,
                    "kernels cannot be compiled: there is no %s, nor has libamdhip64 %s: install ROCm's hipRTC, or "
                    "say where it is by %s (%s)",
                    name, missing, vendor.parameter_libraries, error);
}

/* Never another architecture than the device's own: hipRTC 5.2 ends the process over one that it does not know. */
void vendor_compiler_option(const gpu_compiler *compiler, const vendor_facts *facts, char *option, size_t size) {
  (void)compiler;
  snprintf(option, size, "--offload-arch=%s", facts->architecture);
}

abi_enum vendor_compiler_image_size(const gpu_compiler *compiler, struct rtc_program *program, size_t *bytes) {
  return compiler->call.hiprtcGetCodeSize(program, bytes);
}

abi_enum vendor_compiler_image(const gpu_compiler *compiler, struct rtc_program *program, char *image) {
  return compiler->call.hiprtcGetCode(program, image);
}
