/* SPDX-License-Identifier: Apache-2.0 */
/* What this backend is called. */
#define VENDOR_PLUGIN      "hip"
#define VENDOR_TITLE       "HIP"
#define VENDOR_VENDOR      "AMD"
#define VENDOR_DESCRIPTION "GPUs of AMD, by HIP"
#define VENDOR_PARAMETER   "HELIO_HIP_"
#define VENDOR_FOLDERS     "$ROCM_PATH/lib and /opt/rocm/lib"
#define VENDOR_DNN         "MIOpen"
