/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU backend as a plugin: its settings, how it starts and ends, and the one symbol it exports. */
#include "cpu.h"

#include <stdio.h>
#include <string.h>

#ifndef CPU_VERSION
#define CPU_VERSION "0.1.0"
#endif

static const helio_parameter parameter_isa = {
    .size = sizeof(helio_parameter),
    .name = "HELIO_CPU_ISA",
    .kind = HELIO_PARAMETER_CHOICE,
    .default_value = "auto",
    .choices = "auto|avx512|avx2|portable",
    .help = "Instruction set of the CPU kernels; auto takes the best that the processor has.",
};

static const helio_parameter parameter_blas = {
    .size = sizeof(helio_parameter),
    .name = "HELIO_CPU_BLAS",
    .kind = HELIO_PARAMETER_TEXT,
    .default_value = "",
    .help = "Path of the OpenBLAS (pthread flavour) to open for matrix products; empty searches for one, none uses "
            "Heliostat's own slower code.",
};

static const helio_parameter *const parameters[] = {&parameter_isa, &parameter_blas, NULL};

static helio_status choose_isa(const helio_host *host, cpu_isa *isa, bool *forced) {
  const char *wanted = host->parameter(host, "HELIO_CPU_ISA");
  if (!cpu_isa_choose(wanted, isa)) {
    cpu_isa best;
    cpu_isa_choose("auto", &best);
    return host->fail(host, HELIO_NOT_SUPPORTED, "HELIO_CPU_ISA=%s: this processor does not have it; it has %s%s",
                      wanted, cpu_isa_name(best),
                      best == CPU_ISA_AVX512 ? ", avx2 and portable"
                      : best == CPU_ISA_AVX2 ? " and portable"
                                             : " only");
  }
  *forced = wanted != NULL && strcmp(wanted, cpu_isa_name(*isa)) == 0;
  return HELIO_OK;
}

static helio_status probe(const helio_host *host, helio_probe_answer *answer) {
  cpu_isa isa;
  bool forced;
  helio_status status = choose_isa(host, &isa, &forced);
  if (status != HELIO_OK) return status;
  if (answer->size < sizeof *answer)
    return host->fail(host, HELIO_ABI_MISMATCH, "the probe's answer has %zu bytes, not %zu", answer->size,
                      sizeof *answer);
  answer->devices = 1;
  answer->is_host = 1;
  snprintf(answer->reason, sizeof answer->reason, "the host's processor, with %s kernels", cpu_isa_name(isa));
  return HELIO_OK;
}

/* The facts that `helio devices` shows besides the description. */
static void write_properties(helio_plugin_state *state, cpu_isa isa) {
  const cpu_blas *blas = &state->blas;
  size_t width = sizeof state->property_text[0];
  size_t count = 0;
  snprintf(state->property_text[count++], width, "isa=%s", cpu_isa_name(isa));
  if (blas->sgemm == NULL) {
    snprintf(state->property_text[count++], width, "blas=none");
  } else {
    snprintf(state->property_text[count++], width, "blas=%s", blas->version);
    snprintf(state->property_text[count++], width, "blas_core=%s", blas->core);
    snprintf(state->property_text[count++], width, "blas_library=%s", blas->library);
  }
  for (size_t i = 0; i < count; i++) state->properties[i] = state->property_text[i];
}

static helio_status init(const helio_host *host, helio_plugin_state **result) {
  cpu_isa isa;
  bool forced;
  helio_status status = choose_isa(host, &isa, &forced);
  if (status != HELIO_OK) return status;
  helio_plugin_state *state = host->allocate(host, sizeof *state);
  if (state == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for the plugin's state");
  memset(state, 0, sizeof *state);
  state->host = host;
  state->vector = cpu_vector_for(isa);
  cpu_machine_read(&state->machine);
  status = cpu_blas_open(host, isa, forced, state->machine.vendor, &state->blas);
  if (status != HELIO_OK) {
    host->release(host, state);
    return status;
  }
#if defined(__x86_64__)
  snprintf(state->architecture, sizeof state->architecture, "x86-64 %s", cpu_isa_name(isa));
#else
  snprintf(state->architecture, sizeof state->architecture, "%s", cpu_isa_name(isa));
#endif
  write_properties(state, isa);
  *result = state;
  return HELIO_OK;
}

static void finish(helio_plugin_state *state) {
  if (state == NULL) return;
  cpu_blas_close(&state->blas);
  state->host->release(state->host, state);
}

const helio_plugin helio_plugin_entry = {
    .size = sizeof(helio_plugin),
    .magic = HELIO_PLUGIN_MAGIC,
    .abi_major = HELIO_ABI_MAJOR,
    .abi_minor = HELIO_ABI_MINOR,
    .name = "cpu",
    .version = CPU_VERSION,
    .description = "the host's processor",
    .probe = probe,
    .init = init,
    .finish = finish,
    .devices = &cpu_device_table,
    .memory = &cpu_memory_table,
    .streams = &cpu_stream_table,
    .kernels = &cpu_kernel_table,
    .parameters = parameters,
};
