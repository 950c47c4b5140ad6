/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC by the names of gpu/compiler.h. */
#ifndef CUDA_RTC_NAMES_H
#define CUDA_RTC_NAMES_H

#include "../gpu/abi/nvrtc.h"

#define RTC_TITLE              "NVRTC"
#define RTC_OPTION_CONTRACTION "--fmad=false"
#define RTC_OPTION_STANDARD    "--std=c++14"
#define RTC_OUT_OF_MEMORY      NVRTC_ABI_OUT_OF_MEMORY
#define RTC_GENERATORS         NULL /* none that is not of the same version */

#define RTC_FUNCTIONS    NVRTC_FUNCTIONS
#define rtc_program      _nvrtcProgram
#define rtc_version      nvrtcVersion
#define rtc_error_string nvrtcGetErrorString
#define rtc_create       nvrtcCreateProgram
#define rtc_compile      nvrtcCompileProgram
#define rtc_log_size     nvrtcGetProgramLogSize
#define rtc_log          nvrtcGetProgramLog
#define rtc_destroy      nvrtcDestroyProgram

#endif
