/* SPDX-License-Identifier: Apache-2.0 */
/* hipRTC by the names of gpu/compiler.h. */
#ifndef HIP_RTC_NAMES_H
#define HIP_RTC_NAMES_H

#include "../gpu/abi/hiprtc.h"

#define RTC_TITLE              "hipRTC"
#define RTC_OPTION_CONTRACTION "-ffp-contract=off"
#define RTC_OPTION_STANDARD    "-std=c++14"
#define RTC_OUT_OF_MEMORY      HIPRTC_ABI_OUT_OF_MEMORY

/* The compiler proper, which HIP opens when it starts and which may be updated by itself. */
#define RTC_GENERATORS "libamd_comgr.so.4", "libamd_comgr.so.3", "libamd_comgr.so.2"

#define RTC_FUNCTIONS    HIPRTC_FUNCTIONS
#define rtc_program      _hiprtcProgram
#define rtc_version      hiprtcVersion
#define rtc_error_string hiprtcGetErrorString
#define rtc_create       hiprtcCreateProgram
#define rtc_compile      hiprtcCompileProgram
#define rtc_log_size     hiprtcGetProgramLogSize
#define rtc_log          hiprtcGetProgramLog
#define rtc_destroy      hiprtcDestroyProgram

#endif
