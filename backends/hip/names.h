/* SPDX-License-Identifier: Apache-2.0 */
/* What this backend is called. */
#include "../gpu/library.h"

#define VENDOR_PLUGIN      "hip"
#define VENDOR_TITLE       "HIP"
#define VENDOR_VENDOR      "AMD"
#define VENDOR_DESCRIPTION "GPUs of AMD, by HIP"
#define VENDOR_PARAMETER   "HELIO_HIP_"
#define VENDOR_FOLDERS     GPU_HIP_FOLDERS
#define VENDOR_DNN         "MIOpen"
