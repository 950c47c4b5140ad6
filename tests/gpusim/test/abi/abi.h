/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations of the vendors' functions against the vendors' own headers, where configure found them. All of it is
 * decided by the compiler: a difference is an error that names the function or the value.
 *
 * The vendor's header comes first, then ours; ours is named by its path, because some have the same name. */
#ifndef ABI_CHECK_H
#define ABI_CHECK_H

/* What a file of this folder compared, or why it did not. */
typedef struct abi_check {
  const char *library;
  const char *absent; /* NULL: it was compared with … */
  int version[3];     /* … this version of the library's header */
} abi_check;

extern const abi_check cuda_driver_check, nvrtc_check, cublas_check, cudnn_check, nccl_check;
extern const abi_check hip_check, hiprtc_check, rocblas_check, miopen_check, rccl_check;

/* How many of the functions that we declare are in none of the stand-ins of this folder; each is printed. */
int functions_missing(const char *folder);

/* What a vendor calls deprecated we compare all the same. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define SAME_FUNCTION(result, name, arguments)                                                                         \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&name), result(*) arguments), #name " is declared "           \
                                                                                             "otherwise");

#define SAME_VALUE(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #ours " is not " #theirs);

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #ours " and " #theirs " differ in size");

#define SAME_OFFSET(ours, our_member, theirs, their_member)                                                            \
  _Static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member),                                         \
                 #our_member " is not where " #their_member " is");

#endif
