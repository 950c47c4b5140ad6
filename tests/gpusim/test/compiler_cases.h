/* SPDX-License-Identifier: Apache-2.0 */
/* What run-time compilers take and refuse. */
#ifndef COMPILER_CASES_H
#define COMPILER_CASES_H

/* Programs inside of gpusim; each ends the process with a message if an answer is wrong. */
void check_nvrtc(void);
void check_hiprtc(void);
void check_old_driver(void);
void check_no_compiler(void);
void check_compile_once(void); /* by several threads, with a cache */

/* Opens the real NVRTC of a folder, or wherever the loader finds it. The reason why not, or NULL. */
const char *real_compiler_open(const char *folder);

/* The same texts and options to the real one, with the same answers; a failed assertion of cmocka else. */
void real_compiler_check(void);

#endif
