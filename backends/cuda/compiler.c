/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's run-time compiler, NVRTC. */
#include "../gpu/compiler.h"

#include "driver.h"

#include <stdio.h>

/* Newest first, each with functions of its own: GPUs of one machine may need different ones. The name of 11.3 and later
 * is that of 11.2. */
static struct version {
  int major;
  const char *name;
  gpu_compiler compiler;
} versions[] = {{.major = 13, .name = "libnvrtc.so.13"},
                {.major = 12, .name = "libnvrtc.so.12"},
                {.major = 11, .name = "libnvrtc.so.11.2"}};
#define VERSIONS (sizeof versions / sizeof versions[0])

/* NVRTC opens a second library when it compiles, and says so if it cannot. */
static void open_builtins(const gpu_compiler *nvrtc) {
  char name[64];
  snprintf(name, sizeof name, "libnvrtc-builtins.so.%d.%d", nvrtc->major, nvrtc->minor);
  gpu_library_open_beside(nvrtc->library, (const char *const[]){name, NULL});
}

/* Unless it is open: false, with the reason, if it cannot be. */
static bool open_version(const helio_host *host, struct version *version, char *reason, size_t size) {
  gpu_compiler *nvrtc = &version->compiler;
  if (nvrtc->library != NULL) return true;
  gpu_places places;
  vendor_places(host, &places);
  void *library = gpu_library_open((const char *const[]){version->name, NULL}, &places, reason, size);
  if (library == NULL) return false;
  const char *missing = gpu_compiler_bind(nvrtc, library);
  if (missing == NULL) open_builtins(nvrtc);
  if (missing != NULL) snprintf(reason, size, "this NVRTC has no %s, which that of CUDA 11.2 has", missing);
  return missing == NULL;
}

/* The highest architecture that the compiler knows up to the device's own; 0: it knows none. */
static int architecture_for(const gpu_compiler *nvrtc, const vendor_facts *facts) {
  int own = cuda_architecture(facts), count = 0, best = 0, known[256];
  if (nvrtc->call.nvrtcGetNumSupportedArchs(&count) != 0 || count <= 0 || count > 256 ||
      nvrtc->call.nvrtcGetSupportedArchs(known) != 0)
    return 0;
  for (int i = 0; i < count; i++) {
    if (known[i] <= own && known[i] > best) best = known[i];
  }
  return best;
}

/* `other` is a compiler that is there and does not know the device, or NULL; `reason` why there is none. */
static helio_status tell_missing(const helio_host *host, const vendor_facts *facts, const gpu_compiler *other,
                                 const char *reason) {
  int newest = cuda_newest_version(facts);
  if (other != NULL)
    return host->fail(
        host, HELIO_NOT_SUPPORTED,
        "kernels cannot be compiled: NVRTC %d.%d does not know %s: install that of CUDA %d as well "
        "(Debian: libnvrtc%d; conda: cuda-nvrtc; pip: nvidia-cuda-nvrtc), and say where it is by %s if the "
        "loader does not find it (%s)",
        other->major, other->minor, facts->architecture, newest, newest, vendor.parameter_libraries, other->identity);
  return host->fail(
      host, HELIO_NOT_SUPPORTED,
      "kernels cannot be compiled: there is no NVRTC of CUDA %d or older, as this driver and %s want it: "
      "install it (Debian: libnvrtc%d; conda: cuda-nvrtc; pip: nvidia-cuda-nvrtc), and say where it is by %s if "
      "the loader does not find it (%s)",
      newest, facts->architecture, newest, vendor.parameter_libraries, reason);
}

/* The newest that knows the device, and that the driver is not too old for. */
helio_status vendor_compiler_find(const helio_host *host, const vendor_facts *facts, gpu_compiler **compiler) {
  char reason[512] = "";
  const gpu_compiler *other = NULL;
  for (size_t i = 0; i < VERSIONS; i++) {
    if (versions[i].major > cuda_driver_version() / 1000) continue;
    if (!open_version(host, &versions[i], reason, sizeof reason)) continue;
    *compiler = &versions[i].compiler;
    if (architecture_for(*compiler, facts) > 0) return HELIO_OK;
    if (other == NULL) other = *compiler;
  }
  return tell_missing(host, facts, other, reason);
}

/* The device's own, as code, if the compiler knows it; else the highest that it knows below, as text that the driver
 * compiles. */
void vendor_compiler_option(const gpu_compiler *nvrtc, const vendor_facts *facts, char *option, size_t size) {
  int chosen = architecture_for(nvrtc, facts);
  snprintf(option, size, "--gpu-architecture=%s_%d", chosen == cuda_architecture(facts) ? "sm" : "compute", chosen);
}

/* Of text there is no code: its size is 0 then. */
abi_enum vendor_compiler_image_size(const gpu_compiler *nvrtc, struct rtc_program *program, size_t *bytes) {
  abi_enum result = nvrtc->call.nvrtcGetCUBINSize(program, bytes);
  return result == 0 && *bytes == 0 ? nvrtc->call.nvrtcGetPTXSize(program, bytes) : result;
}

abi_enum vendor_compiler_image(const gpu_compiler *nvrtc, struct rtc_program *program, char *image) {
  size_t bytes = 0;
  abi_enum result = nvrtc->call.nvrtcGetCUBINSize(program, &bytes);
  if (result != 0) return result;
  return bytes > 0 ? nvrtc->call.nvrtcGetCUBIN(program, image) : nvrtc->call.nvrtcGetPTX(program, image);
}
