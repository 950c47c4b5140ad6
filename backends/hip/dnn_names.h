/* SPDX-License-Identifier: Apache-2.0 */
/* MIOpen by the names of gpu/dnn.h. */
#ifndef HIP_DNN_NAMES_H
#define HIP_DNN_NAMES_H

#include "../gpu/abi/miopen.h"

#define dnn_handle miopenHandle

#define DNN_F32  MIOPEN_ABI_FLOAT
#define DNN_F64  MIOPEN_ABI_DOUBLE
#define DNN_F16  MIOPEN_ABI_HALF
#define DNN_BF16 MIOPEN_ABI_BFLOAT16

#endif
