/* SPDX-License-Identifier: Apache-2.0 */
/* A part of cuDNN, which has none of its functions here. */
extern const char part_of_cudnn[];
const char part_of_cudnn[] = "its functions are in libcudnn";
