/* SPDX-License-Identifier: Apache-2.0 */
/* A collective that bears the name of one for graphics cards and refuses every set of devices, in the words that users
 * of such a one know. */
#include <helio/plugin.h>
#include <string.h>

struct helio_plugin_state {
  const helio_host *host;
};

static helio_status probe(const helio_host *host, helio_probe_answer *answer) {
  (void)host;
  strcpy(answer->reason, "for tests of refusals");
  return HELIO_OK;
}

static helio_status init(const helio_host *host, helio_plugin_state **state) {
  helio_plugin_state *made = host->allocate(host, sizeof *made);
  if (made == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for the plugin's state");
  made->host = host;
  *state = made;
  return HELIO_OK;
}

static void finish(helio_plugin_state *state) {
  state->host->release(state->host, state);
}

static helio_status offer(helio_plugin_state *state, const helio_member *const *members, size_t count,
                          helio_collective_offer *answer) {
  const helio_host *host = state->host;
  const char *reason = "it serves nobody";
  (void)answer;
  for (size_t i = 1; i < count; i++) {
    if (members[i]->physical_id != members[0]->physical_id) continue;
    reason = "NCCL is not supported when using virtual GPUs, falling back to reduction to one device";
  }
  for (size_t i = 0; i < count; i++) {
    if (members[i]->description->device_class == HELIO_CLASS_GPU) continue;
    reason = "There are non-GPU devices in the strategy, not using nccl allreduce.";
  }
  return host->fail(host, HELIO_NOT_SUPPORTED, "%s", reason);
}

/* What follows is never called. */

static helio_status new_id(helio_plugin_state *state, void *id) {
  (void)state, (void)id;
  return HELIO_NOT_SUPPORTED;
}

static helio_status create(helio_plugin_state *state, const helio_communicator_options *options,
                           helio_communicator **communicator) {
  (void)state, (void)options, (void)communicator;
  return HELIO_NOT_SUPPORTED;
}

static void end_group(helio_communicator *communicator) {
  (void)communicator;
}

static helio_status poll_group(helio_communicator *communicator) {
  (void)communicator;
  return HELIO_NOT_SUPPORTED;
}

static helio_status call(helio_communicator *communicator, const helio_collective_call *what) {
  (void)communicator, (void)what;
  return HELIO_NOT_SUPPORTED;
}

static const helio_collective_table table = {
    .size = sizeof(helio_collective_table),
    .offer = offer,
    .new_id = new_id,
    .create = create,
    .destroy = end_group,
    .abort = end_group,
    .poll = poll_group,
    .all_reduce = call,
    .broadcast = call,
};

const helio_plugin helio_plugin_entry = {
    .size = sizeof(helio_plugin),
    .magic = HELIO_PLUGIN_MAGIC,
    .abi_major = HELIO_ABI_MAJOR,
    .abi_minor = HELIO_ABI_MINOR,
    .name = "nccl",
    .version = "0.1.0",
    .description = "a collective for tests that refuses",
    .probe = probe,
    .init = init,
    .finish = finish,
    .collective = &table,
};
