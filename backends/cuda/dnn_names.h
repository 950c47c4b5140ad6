/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN by the names of gpu/dnn.h. */
#ifndef CUDA_DNN_NAMES_H
#define CUDA_DNN_NAMES_H

#include "../gpu/abi/cudnn.h"

#define dnn_handle cudnnContext

#define DNN_F32  CUDNN_ABI_FLOAT
#define DNN_F64  CUDNN_ABI_DOUBLE
#define DNN_F16  CUDNN_ABI_HALF
#define DNN_BF16 CUDNN_ABI_BFLOAT16

#endif
