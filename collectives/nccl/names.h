/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the two plugins that are made of this folder: names, and how a device is made current. */
#ifndef NCCL_NAMES_H
#define NCCL_NAMES_H

#ifdef PLUGIN_FOR_HIP

#define NCCL_ABI_STREAM  ihipStream_t
#define PLUGIN_NAME      "rccl"
#define PLUGIN_TITLE     "RCCL"
#define PLUGIN_API       "hip" /* the devices' native handles */
#define PLUGIN_DEVICES   "HIP"
#define PLUGIN_PARAMETER "HELIO_RCCL_LIBRARIES"
#define PLUGIN_LIBRARY   "librccl.so.1"
#define PLUGIN_FOLDERS   "/opt/rocm/lib"
#define PLUGIN_INSTALL   "install RCCL of ROCm (package rccl)"
#define DRIVER_NAMES     "libamdhip64.so.9", "libamdhip64.so.8", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"
#define DRIVER_INSTALL   "install ROCm's HIP runtime (package hip-runtime-amd)"

#else

#define PLUGIN_NAME      "nccl"
#define PLUGIN_TITLE     "NCCL"
#define PLUGIN_API       "cuda"
#define PLUGIN_DEVICES   "CUDA"
#define PLUGIN_PARAMETER "HELIO_NCCL_LIBRARIES"
#define PLUGIN_LIBRARY   "libnccl.so.2"
#define PLUGIN_FOLDERS   "/usr/local/cuda/lib64"
#define PLUGIN_INSTALL   "install NCCL 2 (package libnccl2)"
#define DRIVER_NAMES     "libcuda.so.1"
#define DRIVER_INSTALL   "install NVIDIA's driver"

#endif
#endif
