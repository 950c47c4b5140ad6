/* SPDX-License-Identifier: Apache-2.0 */
/* What this backend is called. */
#include "../gpu/library.h"

#define VENDOR_PLUGIN      "cuda"
#define VENDOR_TITLE       "CUDA"
#define VENDOR_VENDOR      "NVIDIA"
#define VENDOR_DESCRIPTION "GPUs of NVIDIA, by CUDA"
#define VENDOR_PARAMETER   "HELIO_CUDA_"
#define VENDOR_FOLDERS     GPU_CUDA_FOLDERS
#define VENDOR_DNN         "cuDNN"
