/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/plans.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device/guard.h"
#include "runtime/environment.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

enum { BUCKETS = 1024, KEY_ON_STACK = 160 };

struct hi_plan {
  hi_range range;         /* of the values that the kernel accepts */
  hi_plan *next;          /* in its bucket */
  hi_plan *newer, *older; /* in order of use */
  atomic_int users;       /* calls that are under way */
  helio_status status;    /* HELIO_OK or HELIO_NOT_SUPPORTED, both worth remembering */
  const helio_kernel *kernel;
  helio_plan *prepared;
  size_t workspace;
  char *reason; /* of a refusal */
  uint64_t hash;
  size_t words;
  int64_t key[];
};

typedef struct plan_cache {
  pthread_mutex_t lock;
  hi_device *device;
  hi_plan *buckets[BUCKETS];
  hi_plan *newest, *oldest;
  int count;
} plan_cache;

/* Liberties that kernels may take: the same from the library's start to its end, so no key needs them. */
static uint32_t allowed(void) {
  return (hi_environment_number(HI_ALLOW_NONDETERMINISTIC) ? HELIO_ALLOWED_NONDETERMINISTIC : 0u) |
         (hi_environment_number(HI_ALLOW_TF32) ? HELIO_ALLOWED_REDUCED_PRECISION : 0u);
}

/* ---- keys ---- */

typedef struct key {
  int64_t *words;
  size_t count;
  int64_t on_stack[KEY_ON_STACK];
} key;

static void key_add(key *k, helio_type type, const helio_shape *shape) {
  k->words[k->count++] = (int64_t)type << 8 | shape->rank;
  memcpy(&k->words[k->count], shape->extent, (size_t)shape->rank * sizeof shape->extent[0]);
  k->count += (size_t)shape->rank;
}

static bool key_make(key *k, const hi_call *call) {
  size_t arguments = (size_t)(call->input_count + hi_row_outputs(call->row));
  size_t most = 1 + arguments * (HELIO_MAX_RANK + 1) + sizeof call->attributes / sizeof(int64_t);
  k->words = most <= KEY_ON_STACK ? k->on_stack : malloc(most * sizeof(int64_t));
  k->count = 0;
  if (!k->words) return false;
  k->words[k->count++] = (int64_t)call->row->operation << 32 | call->input_count;
  for (int i = 0; i < call->input_count; i++) {
    const helio_tensor *input = call->inputs[i];
    if (input) {
      key_add(k, input->type, &input->shape);
    } else {
      k->words[k->count++] = 0; /* absent: no type is 0 */
    }
  }
  for (int i = 0; call->row->outputs[i]; i++) {
    if (call->no_outputs >> i & 1) {
      k->words[k->count++] = 0;
    } else {
      key_add(k, call->outputs[i].type, &call->outputs[i].shape);
    }
  }
  memcpy(&k->words[k->count], &call->attributes, call->attributes.size);
  k->count += call->attributes.size / sizeof(int64_t); /* ABI structs are whole words long */
  return true;
}

static void key_end(key *k) {
  if (k->words != k->on_stack) free(k->words);
}

static uint64_t hash_of(const key *k) {
  uint64_t hash = 0x9E3779B97F4A7C15u;
  for (size_t i = 0; i < k->count; i++) {
    hash = (hash ^ (uint64_t)k->words[i]) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  }
  return hash;
}

/* ---- order of use ---- */

static void unlink_order(plan_cache *cache, hi_plan *plan) {
  *(plan->newer ? &plan->newer->older : &cache->newest) = plan->older;
  *(plan->older ? &plan->older->newer : &cache->oldest) = plan->newer;
}

static void link_newest(plan_cache *cache, hi_plan *plan) {
  plan->newer = NULL;
  plan->older = cache->newest;
  *(cache->newest ? &cache->newest->newer : &cache->oldest) = plan;
  cache->newest = plan;
}

static void plan_free(hi_device *device, hi_plan *plan) {
  if (plan->prepared) hi_guard_plan_free(device, plan->kernel, plan->prepared);
  free(plan->reason);
  free(plan);
}

/* Makes room for one more: the quarter that was used longest ago goes, so that waiting for the device is rare. Waiting
 * comes after the plans were taken out, where no call finds them any more: before it, one that is under way could hand
 * its run over and be done between the waiting and the freeing. */
static helio_status evict(plan_cache *cache) {
  hi_device *device = cache->device;
  helio_status status = HELIO_OK;
  hi_plan *leaving = NULL, *plan = cache->oldest;
  for (int left = HI_MOST_PLANS / 4; plan && left > 0; left--) {
    hi_plan *newer = plan->newer;
    if (atomic_load(&plan->users) == 0) {
      hi_plan **link = &cache->buckets[plan->hash % BUCKETS];
      while (*link != plan) link = &(*link)->next;
      *link = plan->next;
      unlink_order(cache, plan);
      plan->next = leaving;
      leaving = plan;
      cache->count--;
    }
    plan = newer;
  }
  if (leaving && !device->synchronous) {
    hi_reason_clear();
    status = device->member.devices->synchronize(device->member.device);
    if (status) hi_device_failed(device, status, "waiting");
  }
  while (leaving) {
    plan = leaving;
    leaving = plan->next;
    plan_free(device, plan);
  }
  return status;
}

static void cache_free(void *object) {
  plan_cache *cache = object;
  while (cache->newest) {
    hi_plan *plan = cache->newest;
    unlink_order(cache, plan);
    plan_free(cache->device, plan);
  }
  pthread_mutex_destroy(&cache->lock);
  free(cache);
}

static plan_cache *cache_of(hi_device *device) {
  plan_cache *cache = __atomic_load_n((plan_cache **)&device->plans, __ATOMIC_ACQUIRE);
  if (cache) return cache;
  if (hi_device_lock(device)) {
    hi_device_failed(device, HELIO_DEVICE_FAILURE, "planning");
    return NULL;
  }
  cache = device->plans;
  if (!cache && (cache = calloc(1, sizeof *cache))) {
    pthread_mutex_init(&cache->lock, NULL);
    cache->device = device;
    device->plans_free = cache_free;
    __atomic_store_n((plan_cache **)&device->plans, cache, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&device->lock);
  if (!cache) hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the plans of %s", device->name);
  return cache;
}

/* ---- planning ---- */

static void describe(helio_argument *argument, helio_type type, const helio_shape *shape) {
  *argument = (helio_argument){.size = sizeof *argument, .type = type, .rank = (uint32_t)shape->rank};
  memcpy(argument->extent, shape->extent, (size_t)shape->rank * sizeof shape->extent[0]);
}

static helio_status ask_kernel(hi_device *device, const hi_call *call, hi_plan *plan) {
  int output_count = hi_row_outputs(call->row);
  size_t count = (size_t)(call->input_count + output_count);
  helio_argument *described = calloc(count, sizeof *described);
  const helio_argument **arguments = calloc(count, sizeof *arguments);
  helio_status status = HELIO_OUT_OF_MEMORY;
  if (described && arguments) {
    for (int i = 0; i < call->input_count; i++) {
      if (!call->inputs[i]) continue;
      describe(&described[i], call->inputs[i]->type, &call->inputs[i]->shape);
      arguments[i] = &described[i];
    }
    for (int i = 0; i < output_count; i++) {
      int at = call->input_count + i;
      if (call->no_outputs >> i & 1) continue;
      describe(&described[at], call->outputs[i].type, &call->outputs[i].shape);
      arguments[at] = &described[at];
    }
    helio_call abi_call = {.size = sizeof abi_call,
                           .operation = (uint32_t)call->row->operation,
                           .input_count = (uint32_t)call->input_count,
                           .output_count = (uint32_t)output_count,
                           .allowed = allowed(),
                           .arguments = arguments,
                           .attributes = call->attributes.size ? &call->attributes : NULL};
    helio_plan_answer result = {.size = sizeof result};
    status = hi_guard_plan(device, plan->kernel, &abi_call, &result);
    if (!status) {
      plan->prepared = result.plan;
      plan->workspace = result.workspace;
    }
  }
  free(described);
  free(arguments);
  return status;
}

static helio_type type_of(const hi_call *call) {
  return call->input_count ? call->inputs[0]->type : call->outputs[0].type;
}

helio_status hi_plan_possible(const hi_device *device, const hi_call *call) {
  helio_type type = type_of(call);
  if (device->physical->plugin->kernel_of[call->row->operation][type]) return HELIO_OK;
  hi_reason_say("%s has no kernel for %s in %s", device->info.backend, call->row->info.label, helio_type_name(type));
  return HELIO_NOT_SUPPORTED;
}

static hi_plan *plan_new(hi_device *device, const hi_call *call, const key *k, uint64_t hash) {
  hi_plan *plan = calloc(1, sizeof *plan + k->count * sizeof(int64_t));
  if (!plan) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a plan on %s", device->name);
    return NULL;
  }
  plan->kernel = device->physical->plugin->kernel_of[call->row->operation][type_of(call)];
  plan->hash = hash;
  plan->words = k->count;
  plan->range = hi_call_range(call);
  memcpy(plan->key, k->words, k->count * sizeof(int64_t));
  hi_reason_clear();
  plan->status = ask_kernel(device, call, plan);
  if (plan->status == HELIO_NOT_SUPPORTED) plan->reason = strdup(hi_reason(HELIO_NOT_SUPPORTED));
  if (plan->status == HELIO_OK || plan->status == HELIO_NOT_SUPPORTED) return plan;
  hi_device_failed(device, plan->status, call->row->info.label);
  plan_free(device, plan);
  return NULL;
}

static hi_plan *lookup(plan_cache *cache, const key *k, uint64_t hash) {
  for (hi_plan *plan = cache->buckets[hash % BUCKETS]; plan; plan = plan->next) {
    if (plan->hash == hash && plan->words == k->count && memcmp(plan->key, k->words, k->count * sizeof(int64_t)) == 0) {
      return plan;
    }
  }
  return NULL;
}

static hi_plan *find_or_make(plan_cache *cache, const hi_call *call, const key *k) {
  uint64_t hash = hash_of(k);
  hi_plan *plan = lookup(cache, k, hash);
  if (plan) {
    if (plan == cache->newest) return plan;
    unlink_order(cache, plan);
  } else {
    if (cache->count >= HI_MOST_PLANS && evict(cache)) return NULL;
    plan = plan_new(cache->device, call, k, hash);
    if (!plan) return NULL;
    plan->next = cache->buckets[hash % BUCKETS];
    cache->buckets[hash % BUCKETS] = plan;
    cache->count++;
  }
  link_newest(cache, plan);
  return plan;
}

helio_status hi_plan_get(hi_device *device, const hi_call *call, hi_plan **result) {
  key k;
  plan_cache *cache = cache_of(device);
  if (!cache) return helio_error_pending();
  if (!key_make(&k, call)) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a plan on %s", device->name);
  if (!hi_device_take(device, &cache->lock, "planning")) {
    key_end(&k);
    return hi_device_failed(device, hi_device_refuses(device), "planning");
  }
  hi_plan *plan = find_or_make(cache, call, &k);
  helio_status status = plan ? plan->status : helio_error_pending();
  if (plan && !status) atomic_fetch_add_explicit(&plan->users, 1, memory_order_relaxed);
  if (plan && status) hi_reason_say("%s", plan->reason ? plan->reason : "not supported");
  pthread_mutex_unlock(&cache->lock);
  key_end(&k);
  if (!status) *result = plan;
  return status;
}

void hi_plan_release(hi_plan *plan) {
  atomic_fetch_sub_explicit(&plan->users, 1, memory_order_release);
}

/* A kernel that may meet bad data tells of it in the word of its caller. */
static helio_status run_with_word(const hi_plan *plan, hi_device *device, int stream, helio_run *run,
                                  const char *label) {
  int word = hi_status_take(device, stream, &plan->range);
  run->status.offset += (size_t)word * sizeof(helio_status_word);
  helio_status status = hi_guard_run(device, plan->kernel, plan->prepared, run, label);
  hi_status_return(device, word);
  return status;
}

helio_status hi_plan_workspace(const hi_plan *plan, hi_device *device, int stream, hi_block **workspace) {
  *workspace = NULL;
  if (plan->workspace == 0) return HELIO_OK;
  *workspace = hi_arena_allocate(device->arena, plan->workspace, stream, "workspace");
  return *workspace ? HELIO_OK : helio_error_pending();
}

helio_status hi_plan_run_in(const hi_block *workspace, const hi_plan *plan, hi_device *device, int stream,
                            const hi_call *call, const helio_place *places) {
  helio_run run = {.size = sizeof run,
                   .stream = device->streams[stream],
                   .places = places,
                   .place_size = sizeof *places,
                   .status = device->status->place,
                   .scalars = call->scalars,
                   .scalar_count = (size_t)call->row->scalars};
  if (workspace) run.workspace = workspace->place;
  hi_reason_clear();
  const char *label = call->row->info.label;
  bool may_report = plan->range.operation != NULL;
  helio_status status = may_report ? run_with_word(plan, device, stream, &run, label)
                                   : hi_guard_run(device, plan->kernel, plan->prepared, &run, label);
  return status ? hi_device_failed(device, status, label) : HELIO_OK;
}

helio_status hi_plan_run(const hi_plan *plan, hi_device *device, int stream, const hi_call *call,
                         const helio_place *places) {
  hi_block *workspace;
  helio_status status = hi_plan_workspace(plan, device, stream, &workspace);
  if (!status) status = hi_plan_run_in(workspace, plan, device, stream, call, places);
  hi_block_release(workspace);
  return status;
}

int hi_plan_count(hi_device *device) {
  plan_cache *cache = cache_of(device);
  if (!cache) return 0;
  pthread_mutex_lock(&cache->lock);
  int count = cache->count;
  pthread_mutex_unlock(&cache->lock);
  return count;
}
