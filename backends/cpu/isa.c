/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses among the compiled vector tables by what the processor has. */
#include "vector.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
extern const cpu_vector_table cpu_vector_avx512, cpu_vector_avx2;
#endif
extern const cpu_vector_table cpu_vector_portable;

const char *cpu_isa_name(cpu_isa isa) {
  return isa == CPU_ISA_AVX512 ? "avx512" : isa == CPU_ISA_AVX2 ? "avx2" : "portable";
}

const cpu_vector_table *cpu_vector_for(cpu_isa isa) {
#if defined(__x86_64__)
  if (isa == CPU_ISA_AVX512) return &cpu_vector_avx512;
  if (isa == CPU_ISA_AVX2) return &cpu_vector_avx2;
#endif
  return isa == CPU_ISA_PORTABLE ? &cpu_vector_portable : NULL;
}

#if defined(__x86_64__)
/* __builtin_cpu_supports() does not know F16C in every compiler that we support. */
static bool has_f16c(void) {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

/* The builtins answer no where the operating system does not save the registers. */
static bool has_avx2(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

static bool has_avx512(void) {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

bool cpu_isa_usable(cpu_isa isa) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (isa == CPU_ISA_AVX512) return has_avx512();
  if (isa == CPU_ISA_AVX2) return has_avx2();
#endif
  return isa == CPU_ISA_PORTABLE;
}

bool cpu_isa_choose(const char *wanted, cpu_isa *isa) {
  bool automatic = wanted == NULL || wanted[0] == '\0' || strcmp(wanted, "auto") == 0;
  for (int each = CPU_ISA_AVX512; each >= CPU_ISA_PORTABLE; each--) {
    if (!automatic && strcmp(wanted, cpu_isa_name((cpu_isa)each)) != 0) continue;
    if (!cpu_isa_usable((cpu_isa)each)) continue;
    *isa = (cpu_isa)each;
    return true;
  }
  return false;
}
