/* SPDX-License-Identifier: Apache-2.0 */
/* Which shared memory a kernel can use. A module has that of all its kernels, which together may be more than a block
 * can have, and would take long to fill before each block. So calls are followed from the kernel on, by the relocations
 * that the linker was told to keep: those of a function are its calls and the thread-local variables, which shared
 * memory is, that it uses. */
#include "module.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

typedef struct view {
  const char *data;
  const Elf64_Shdr *sections;
  unsigned section_count;
  const Elf64_Sym *symbols;
  unsigned symbol_count;
  const char *names;
} view;

/* The headers in an ELF file are aligned, and so is the file behind the header of an image. */
static bool open_view(view *v, const void *elf) {
  const Elf64_Ehdr *header = elf;
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) return false;
  *v = (view){.data = elf, .section_count = header->e_shnum};
  v->sections = (const void *)(v->data + header->e_shoff);
  for (unsigned i = 0; i < v->section_count; i++) {
    const Elf64_Shdr *section = &v->sections[i];
    if (section->sh_type != SHT_SYMTAB) continue;
    v->symbols = (const void *)(v->data + section->sh_offset);
    v->symbol_count = (unsigned)(section->sh_size / sizeof *v->symbols);
    v->names = v->data + v->sections[section->sh_link].sh_offset;
  }
  return v->symbols != NULL;
}

static bool is_function(const Elf64_Sym *symbol) {
  return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_size > 0;
}

static bool is_variable(const Elf64_Sym *symbol) {
  return ELF64_ST_TYPE(symbol->st_info) == STT_TLS && symbol->st_size > 0;
}

/* The symbol of the function that an address is in; 0: none. */
static unsigned function_at(const view *v, Elf64_Addr address) {
  for (unsigned i = 1; i < v->symbol_count; i++) {
    const Elf64_Sym *symbol = &v->symbols[i];
    if (is_function(symbol) && address >= symbol->st_value && address < symbol->st_value + symbol->st_size) return i;
  }
  return 0;
}

/* What a relocation refers to: a variable, or a function by its name or by its place in a section. */
static unsigned target_of(const view *v, const Elf64_Rela *relocation) {
  enum { DISPLACEMENT = 4 }; /* a call is relative to what follows it */
  unsigned index = (unsigned)ELF64_R_SYM(relocation->r_info);
  const Elf64_Sym *symbol = &v->symbols[index];
  if (ELF64_ST_TYPE(symbol->st_info) == STT_TLS || is_function(symbol)) return index;
  if (ELF64_ST_TYPE(symbol->st_info) != STT_SECTION) return 0;
  return function_at(v, symbol->st_value + (Elf64_Addr)relocation->r_addend + DISPLACEMENT);
}

typedef struct use {
  unsigned from, to; /* symbols */
} use;

typedef struct use_list {
  use *uses;
  size_t count;
} use_list;

static void add_section(const view *v, const Elf64_Shdr *section, use_list *list) {
  const Elf64_Rela *relocations = (const void *)(v->data + section->sh_offset);
  size_t count = section->sh_size / sizeof *relocations;
  use *grown = realloc(list->uses, (list->count + count + 1) * sizeof *grown);
  if (!grown) return;
  list->uses = grown;
  for (size_t i = 0; i < count; i++) {
    unsigned to = target_of(v, &relocations[i]);
    if (!to) continue;
    unsigned from = function_at(v, relocations[i].r_offset);
    if (from && from != to) list->uses[list->count++] = (use){from, to};
  }
}

/* What functions use, from all relocations of instructions. */
static use_list list_uses(const view *v) {
  use_list list = {0};
  for (unsigned i = 0; i < v->section_count; i++) {
    const Elf64_Shdr *section = &v->sections[i];
    if (section->sh_type != SHT_RELA || section->sh_info == 0 || section->sh_info >= v->section_count) continue;
    if (v->sections[section->sh_info].sh_flags & SHF_EXECINSTR) add_section(v, section, &list);
  }
  return list;
}

/* Two symbols of one address are the same function under two names. */
static bool is_reached(const view *v, const bool *reached, unsigned symbol) {
  if (reached[symbol]) return true;
  for (unsigned i = 1; i < v->symbol_count; i++)
    if (reached[i] && is_function(&v->symbols[i]) && v->symbols[i].st_value == v->symbols[symbol].st_value) return true;
  return false;
}

static void follow(const view *v, const use_list *list, bool *reached) {
  for (bool is_new = true; is_new;) {
    is_new = false;
    for (size_t i = 0; i < list->count; i++) {
      if (reached[list->uses[i].to] || !is_reached(v, reached, list->uses[i].from)) continue;
      reached[list->uses[i].to] = is_new = true;
    }
  }
}

static bool mark_kernel(const view *v, const char *name, bool *reached) {
  for (unsigned i = 1; i < v->symbol_count; i++)
    if (is_function(&v->symbols[i]) && !strcmp(v->names + v->symbols[i].st_name, name)) return reached[i] = true;
  return false;
}

static sim_range *collect(const view *v, const bool *reached, size_t from, unsigned *count) {
  sim_range *ranges = calloc(v->symbol_count + 1, sizeof *ranges);
  *count = 0;
  for (unsigned i = 1; ranges && i < v->symbol_count; i++) {
    const Elf64_Sym *symbol = &v->symbols[i];
    if (!reached[i] || !is_variable(symbol) || symbol->st_value < from) continue;
    ranges[(*count)++] = (sim_range){(unsigned)symbol->st_value, (unsigned)symbol->st_size};
  }
  return ranges;
}

static size_t bytes_of(const void *elf, const char *kernel) {
  unsigned count;
  size_t bytes = 0;
  sim_range *ranges = sim_shared_reach(elf, kernel, sizeof(sim_block), &count);
  for (unsigned i = 0; ranges && i < count; i++) bytes += ranges[i].bytes;
  free(ranges);
  return bytes;
}

/* Kernels are the only functions that others can see. */
static bool is_kernel(const Elf64_Sym *symbol) {
  return is_function(symbol) && ELF64_ST_BIND(symbol->st_info) == STB_GLOBAL &&
         ELF64_ST_VISIBILITY(symbol->st_other) == STV_DEFAULT;
}

const char *sim_shared_excess(const void *elf, size_t limit, size_t *bytes) {
  view v;
  if (!open_view(&v, elf)) return NULL;
  for (unsigned i = 1; i < v.symbol_count; i++) {
    const char *name = v.names + v.symbols[i].st_name;
    if (is_kernel(&v.symbols[i]) && (*bytes = bytes_of(elf, name)) > limit) return name;
  }
  return NULL;
}

sim_range *sim_shared_reach(const void *elf, const char *kernel, size_t from, unsigned *count) {
  view v;
  if (!open_view(&v, elf)) return NULL;
  bool *reached = calloc(v.symbol_count, sizeof *reached);
  use_list list = list_uses(&v);
  sim_range *ranges = NULL;
  if (reached && list.count && mark_kernel(&v, kernel, reached)) {
    follow(&v, &list, reached);
    ranges = collect(&v, reached, from, count);
  }
  free(list.uses);
  free(reached);
  return ranges;
}
