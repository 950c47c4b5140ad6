/* SPDX-License-Identifier: Apache-2.0 */
/* What this backend is called. */
#define VENDOR_PLUGIN      "cuda"
#define VENDOR_TITLE       "CUDA"
#define VENDOR_VENDOR      "NVIDIA"
#define VENDOR_DESCRIPTION "GPUs of NVIDIA, by CUDA"
#define VENDOR_PARAMETER   "HELIO_CUDA_"
#define VENDOR_FOLDERS     "$CUDA_PATH/lib64 and /usr/local/cuda/lib64"
#define VENDOR_DNN         "cuDNN"
