/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the two plugins that are made of this folder: names, and how a device is made current. */
#ifndef NCCL_NAMES_H
#define NCCL_NAMES_H

#include "../../backends/gpu/library.h"

#ifdef PLUGIN_FOR_HIP

#define NCCL_ABI_STREAM  ihipStream_t
#define PLUGIN_NAME      "rccl"
#define PLUGIN_TITLE     "RCCL"
#define PLUGIN_API       "hip" /* the devices' native handles */
#define PLUGIN_DEVICES   "HIP"
#define PLUGIN_PARAMETER "HELIO_RCCL_LIBRARIES"
#define PLUGIN_LIBRARY   "librccl.so.1"
#define PLUGIN_FOLDERS   GPU_HIP_FOLDERS
#define PLUGIN_INSTALL   "install RCCL of ROCm (package rccl)"
#define DRIVER_NAMES     GPU_HIP_DRIVERS
#define DRIVER_INSTALL   "install ROCm's HIP runtime (package hip-runtime-amd)"

#else

#define PLUGIN_NAME      "nccl"
#define PLUGIN_TITLE     "NCCL"
#define PLUGIN_API       "cuda"
#define PLUGIN_DEVICES   "CUDA"
#define PLUGIN_PARAMETER "HELIO_NCCL_LIBRARIES"
#define PLUGIN_LIBRARY   "libnccl.so.2"
#define PLUGIN_FOLDERS   GPU_CUDA_FOLDERS
#define PLUGIN_INSTALL   "install NCCL 2 (package libnccl2)"
#define DRIVER_NAMES     GPU_CUDA_DRIVERS
#define DRIVER_INSTALL   "install NVIDIA's driver"

#endif
#endif
