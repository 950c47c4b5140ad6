/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled kernels. A text is compiled for one architecture and one type of elements when the first of its kernels is
 * asked for; all cards of that architecture share the image, each loads it as a module of its own. */
#include "cache.h"
#include "compiler.h"
#include "physical.h"
#include "text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* What a text was compiled to. */
typedef struct image {
  struct image *next;
  const char *text; /* its name: one of gpu_texts */
  uint32_t type;
  char architecture[sizeof((vendor_facts *)0)->architecture];
  vendor_image code;
} image;

struct gpu_images {
  const helio_host *host;
  pthread_mutex_t lock; /* held while one compiles: others that want the same wait for it */
  image *first;
  unsigned compiled; /* texts, and the seconds that took */
  uint32_t types;    /* bits of those that texts were compiled for */
  double seconds, told;
};

struct gpu_module {
  gpu_module *next;
  const char *text;
  uint32_t type;
  vendor_module *native;
};

helio_status gpu_images_create(const helio_host *host, gpu_images **images) {
  gpu_images *made = host->allocate(host, sizeof *made);
  if (made == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for the plugin's state");
  *made = (gpu_images){.host = host};
  pthread_mutex_init(&made->lock, NULL);
  *images = made;
  return HELIO_OK;
}

void gpu_images_destroy(gpu_images *images) {
  if (images == NULL) return;
  const helio_host *host = images->host;
  for (image *one = images->first, *next; one != NULL; one = next) {
    next = one->next;
    host->release(host, one->code.data);
    host->release(host, one);
  }
  pthread_mutex_destroy(&images->lock);
  host->release(host, images);
}

void gpu_modules_unload(helio_plugin_state *state, gpu_physical *physical, bool lost) {
  for (gpu_module *module = physical->modules, *next; module != NULL; module = next) {
    next = module->next;
    if (!lost) vendor_module_unload(module->native);
    state->host->release(state->host, module);
  }
  physical->modules = NULL;
}

static const gpu_text *find_text(const char *name) {
  for (const gpu_text *text = gpu_texts; text->name != NULL; text++) {
    if (strcmp(text->name, name) == 0) return text;
  }
  return NULL;
}

/* The prelude and the text, each with its own numbers of lines in errors. From host->allocate. */
static char *whole_text(const helio_host *host, const gpu_text *text) {
  static const char format[] = "#line 1 \"prelude.cu\"\n%s#line 1 \"%s.cu\"\n%s";
  const gpu_text *prelude = find_text("prelude");
  size_t size = sizeof format + strlen(prelude->text) + strlen(text->name) + strlen(text->text);
  char *whole = host->allocate(host, size);
  if (whole == NULL) {
    host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for the kernel text %s", text->name);
    return NULL;
  }
  snprintf(whole, size, format, prelude->text, text->name, text->text);
  return whole;
}

/* One text for one architecture and type. */
typedef struct job {
  const vendor_facts *facts;
  const gpu_compiler *compiler;
  const gpu_text *text;
  uint32_t type;
  char define_type[32], define_bad_data[32];
  const char *defines[3];
} job;

static void job_init(job *work, const vendor_facts *facts, const gpu_compiler *compiler, const gpu_text *text,
                     uint32_t type) {
  *work = (job){.facts = facts, .compiler = compiler, .text = text, .type = type};
  snprintf(work->define_type, sizeof work->define_type, "-DTYPE=%u", type);
  snprintf(work->define_bad_data, sizeof work->define_bad_data, "-DBAD_DATA=%d", HELIO_BAD_DATA);
  work->defines[0] = work->define_type;
  work->defines[1] = work->define_bad_data;
}

/* All that the image depends on; the compiler's identity has its options. */
static void job_key(const job *work, const char *whole, char *key, size_t size) {
  size_t bytes = strlen(whole);
  snprintf(key, size, "%s %s %s %s\ntext %zu %016llx\n%s\n", work->text->name, work->defines[0], work->defines[1],
           work->facts->architecture, bytes, (unsigned long long)gpu_cache_hash(whole, bytes),
           work->compiler->identity);
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* How many there may be, if the types that were seen are all: one of each text but the prelude for each type. Most
 * programs need less. */
static unsigned most_to_compile(const gpu_images *images) {
  unsigned texts = 0, types = (unsigned)__builtin_popcount(images->types);
  while (gpu_texts[texts + 1].name != NULL) texts++;
  return texts * (types == 0 ? 1 : types);
}

/* Who waits for seconds wants to know what for, how much is to come at the most, and whether it will be so next time.
 */
static void tell_progress(gpu_images *images, const vendor_facts *facts) {
  const helio_host *host = images->host;
  if (images->seconds < 1 || images->seconds < images->told * 2) return;
  char folder[PATH_MAX];
  gpu_cache_folder(host, folder, sizeof folder);
  images->told = images->seconds;
  host->log(host, HELIO_LOG_INFO, "compiling kernels for %s: %u/%u at the most, %.1f s so far; %s%s",
            facts->architecture, images->compiled, most_to_compile(images), images->seconds,
            folder[0] == '\0' ? "they are not kept" : "they are kept in ", folder);
}

static helio_status compile_text(gpu_images *images, const job *work, const char *whole, vendor_image *code) {
  char key[sizeof work->compiler->identity + 1024], name[64], file[64];
  job_key(work, whole, key, sizeof key);
  snprintf(file, sizeof file, "%s-%s-%u", vendor.plugin, work->text->name, work->type);
  if (gpu_cache_read(images->host, file, key, code)) return HELIO_OK;
  snprintf(name, sizeof name, "%s.cu", work->text->name);
  images->host->log(images->host, HELIO_LOG_DEBUG, "compiling %s with %s for %s", name, work->define_type,
                    work->facts->architecture);
  double begin = seconds_now();
  helio_status status = gpu_compile(images->host, work->compiler, work->facts, name, whole, work->defines, code);
  if (status != HELIO_OK) return status;
  images->seconds += seconds_now() - begin;
  images->compiled++;
  if (work->type != 0) images->types |= HELIO_TYPE_BIT(work->type);
  tell_progress(images, work->facts);
  gpu_cache_write(images->host, file, key, code);
  return HELIO_OK;
}

static helio_status compile(gpu_images *images, const vendor_facts *facts, const gpu_text *text, uint32_t type,
                            vendor_image *code) {
  const gpu_compiler *compiler;
  helio_status status = gpu_compiler_find(images->host, facts, &compiler);
  if (status != HELIO_OK) return status;
  char *whole = whole_text(images->host, text);
  if (whole == NULL) return HELIO_OUT_OF_MEMORY;
  job work;
  job_init(&work, facts, compiler, text, type);
  status = compile_text(images, &work, whole, code);
  images->host->release(images->host, whole);
  return status;
}

/* The images' lock is held. */
static helio_status image_find(gpu_images *images, const vendor_facts *facts, const gpu_text *text, uint32_t type,
                               const image **result) {
  const helio_host *host = images->host;
  for (image *one = images->first; one != NULL; one = one->next) {
    if (one->text != text->name || one->type != type || strcmp(one->architecture, facts->architecture) != 0) continue;
    *result = one;
    return HELIO_OK;
  }
  image *made = host->allocate(host, sizeof *made);
  if (made == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a compiled kernel");
  *made = (image){.next = images->first, .text = text->name, .type = type};
  snprintf(made->architecture, sizeof made->architecture, "%s", facts->architecture);
  helio_status status = compile(images, facts, text, type, &made->code);
  if (status != HELIO_OK) {
    host->release(host, made);
    return status;
  }
  images->first = made;
  *result = made;
  return HELIO_OK;
}

/* The card's lock is held, and it is current. */
static helio_status module_find(helio_backend_device *device, const gpu_text *text, uint32_t type,
                                gpu_module **result) {
  const helio_host *host = device->host;
  for (gpu_module *module = device->physical->modules; module != NULL; module = module->next) {
    if (module->text != text->name || module->type != type) continue;
    *result = module;
    return HELIO_OK;
  }
  gpu_images *images = device->state->images;
  const image *code = NULL;
  pthread_mutex_lock(&images->lock);
  helio_status status = image_find(images, device->facts, text, type, &code);
  pthread_mutex_unlock(&images->lock);
  if (status != HELIO_OK) return status;
  gpu_module *module = host->allocate(host, sizeof *module);
  if (module == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a compiled kernel");
  *module = (gpu_module){.next = device->physical->modules, .text = text->name, .type = type};
  vendor_result answer = vendor_module_load(code->code.data, &module->native);
  if (answer != 0) {
    host->release(host, module);
    return gpu_fail(device, answer, "loading compiled kernels");
  }
  device->physical->modules = module;
  *result = module;
  return HELIO_OK;
}

helio_status gpu_kernel_find(helio_backend_device *device, const char *text, uint32_t type, const char *name,
                             vendor_function **function) {
  const helio_host *host = device->host;
  const gpu_text *known = find_text(text);
  if (known == NULL) return host->fail(host, HELIO_NOT_SUPPORTED, "there is no kernel text %s", text);
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  gpu_module *module = NULL;
  pthread_mutex_lock(&device->physical->lock);
  status = module_find(device, known, type, &module);
  pthread_mutex_unlock(&device->physical->lock);
  if (status != HELIO_OK) return status;
  vendor_result result = vendor_module_function(module->native, name, function);
  return result == 0 ? HELIO_OK : gpu_fail(device, result, name);
}
