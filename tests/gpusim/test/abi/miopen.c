/* SPDX-License-Identifier: Apache-2.0 */
#include "abi.h"

#ifdef WITH_MIOPEN_HEADER
/* Newer headers of MIOpen are C++ in one place: a struct is named without the word. */
struct miopenTensorArgument_t;
typedef struct miopenTensorArgument_t miopenTensorArgument_t;
#include <miopen/miopen.h>
#include <miopen/version.h>

#include "../../../../backends/gpu/abi/miopen.h"

SAME_SIZE(miopen_abi_solution, miopenConvSolution_t)
SAME_OFFSET(miopen_abi_solution, time, miopenConvSolution_t, time)
SAME_OFFSET(miopen_abi_solution, workspace, miopenConvSolution_t, workspace_size)
SAME_OFFSET(miopen_abi_solution, id, miopenConvSolution_t, solution_id)
SAME_OFFSET(miopen_abi_solution, algorithm, miopenConvSolution_t, algorithm)
SAME_SIZE(miopen_abi_performance, miopenConvAlgoPerf_t)
SAME_OFFSET(miopen_abi_performance, algorithm, miopenConvAlgoPerf_t, fwd_algo)
SAME_OFFSET(miopen_abi_performance, time, miopenConvAlgoPerf_t, time)
SAME_OFFSET(miopen_abi_performance, memory, miopenConvAlgoPerf_t, memory)

/* The vendor's structs have no tags, so the lists are compared with the vendor's names in them. */
#define miopen_abi_solution    miopenConvSolution_t
#define miopen_abi_performance miopenConvAlgoPerf_t
MIOPEN_FUNCTIONS(SAME_FUNCTION)

SAME_VALUE(MIOPEN_ABI_NOT_INITIALIZED, miopenStatusNotInitialized)
SAME_VALUE(MIOPEN_ABI_INVALID_VALUE, miopenStatusInvalidValue)
SAME_VALUE(MIOPEN_ABI_BAD_PARM, miopenStatusBadParm)
SAME_VALUE(MIOPEN_ABI_ALLOC_FAILED, miopenStatusAllocFailed)
SAME_VALUE(MIOPEN_ABI_INTERNAL_ERROR, miopenStatusInternalError)
SAME_VALUE(MIOPEN_ABI_NOT_IMPLEMENTED, miopenStatusNotImplemented)
SAME_VALUE(MIOPEN_ABI_UNKNOWN_ERROR, miopenStatusUnknownError)
SAME_VALUE(MIOPEN_ABI_UNSUPPORTED, miopenStatusUnsupportedOp)
SAME_VALUE(MIOPEN_ABI_HALF, miopenHalf)
SAME_VALUE(MIOPEN_ABI_FLOAT, miopenFloat)
SAME_VALUE(MIOPEN_ABI_INT32, miopenInt32)
SAME_VALUE(MIOPEN_ABI_INT8, miopenInt8)
SAME_VALUE(MIOPEN_ABI_BFLOAT16, miopenBFloat16)
SAME_VALUE(MIOPEN_ABI_DOUBLE, miopenDouble)
SAME_VALUE(MIOPEN_ABI_NCHW, miopenTensorNCHW)
SAME_VALUE(MIOPEN_ABI_NHWC, miopenTensorNHWC)
SAME_VALUE(MIOPEN_ABI_CROSS_CORRELATION, miopenConvolution)
SAME_VALUE(MIOPEN_ABI_TRANSPOSE, miopenTranspose)
SAME_VALUE(MIOPEN_ABI_ATTRIBUTE_ALTERNATIVE_HALF, MIOPEN_CONVOLUTION_ATTRIB_FP16_ALT_IMPL)
SAME_VALUE(MIOPEN_ABI_ATTRIBUTE_DETERMINISTIC, MIOPEN_CONVOLUTION_ATTRIB_DETERMINISTIC)
SAME_VALUE(MIOPEN_ABI_POOLING_MAX, miopenPoolingMax)
SAME_VALUE(MIOPEN_ABI_POOLING_AVERAGE, miopenPoolingAverage)
SAME_VALUE(MIOPEN_ABI_POOLING_AVERAGE_WITH_PADDING, miopenPoolingAverageInclusive)
SAME_VALUE(MIOPEN_ABI_INDEX_UINT8, miopenIndexUint8)
SAME_VALUE(MIOPEN_ABI_INDEX_UINT16, miopenIndexUint16)
SAME_VALUE(MIOPEN_ABI_INDEX_UINT32, miopenIndexUint32)
SAME_VALUE(MIOPEN_ABI_INDEX_UINT64, miopenIndexUint64)
SAME_VALUE(MIOPEN_ABI_SOFTMAX_FAST, MIOPEN_SOFTMAX_FAST)
SAME_VALUE(MIOPEN_ABI_SOFTMAX_ACCURATE, MIOPEN_SOFTMAX_ACCURATE)
SAME_VALUE(MIOPEN_ABI_SOFTMAX_LOG, MIOPEN_SOFTMAX_LOG)
SAME_VALUE(MIOPEN_ABI_SOFTMAX_INSTANCE, MIOPEN_SOFTMAX_MODE_INSTANCE)
SAME_VALUE(MIOPEN_ABI_SOFTMAX_CHANNEL, MIOPEN_SOFTMAX_MODE_CHANNEL)
SAME_VALUE(MIOPEN_ABI_GEMM, miopenConvolutionAlgoGEMM)
SAME_VALUE(MIOPEN_ABI_DIRECT, miopenConvolutionAlgoDirect)
SAME_VALUE(MIOPEN_ABI_FFT, miopenConvolutionAlgoFFT)
SAME_VALUE(MIOPEN_ABI_WINOGRAD, miopenConvolutionAlgoWinograd)
SAME_VALUE(MIOPEN_ABI_IMPLICIT_GEMM, miopenConvolutionAlgoImplicitGEMM)

const abi_check miopen_check = {"MIOpen",
                                .version = {MIOPEN_VERSION_MAJOR, MIOPEN_VERSION_MINOR, MIOPEN_VERSION_PATCH}};
#else
const abi_check miopen_check = {"MIOpen", .absent = "configure found no miopen/miopen.h of ROCm"};
#endif
