/* SPDX-License-Identifier: Apache-2.0 */
/* In which context a thread is: outside of all scopes, in a scope, in a replica, and where replicas meet. */
#include <helio/helio.h>
#include <stdio.h>
#include <stdlib.h>

static void say(const char *where) {
  const helio_replica *replica = helio_replica_context();
  printf("%s: %s of %d, %s%s\n", where, helio_strategy_name(helio_strategy_current()),
         helio_num_replicas(helio_strategy_current()), replica ? "in a replica" : "in no replica",
         helio_in_cross_replica_context() ? ", across replicas" : "");
}

/* Once for all replicas: what each has brought, and the sum of it. */
static helio_values *meet(helio_strategy *strategy, void *unused, helio_values *brought) {
  (void)unused;
  say("where replicas meet");
  return helio_values_same(strategy, helio_reduce(strategy, HELIO_SUM, brought));
}

/* Each replica brings its number and one. */
static helio_status step(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)argument, (void)inputs;
  helio_element mine = {1, {helio_fill(HELIO_SCALAR, helio_replica_id() + 1)}};
  return helio_merge_call(meet, NULL, &mine, outputs);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0); /* lines of the log stand between ours */
  helio_set_logical_devices("cpu:0", NULL, 2);
  say("outside");
  helio_strategy *strategy = helio_mirrored(.devices = {"cpu:0", "cpu:1"});
  HELIO_SCOPE(strategy) {
    say("in the scope");
    helio_variable *v = helio_variable(helio_fill(HELIO_SCALAR, 1), .name = "v");
    for (int i = 0; i < helio_variable_copies(v); i++) {
      helio_tensor *copy = helio_variable_copy(v, i);
      printf("%s on %s\n", helio_tensor_name(copy), helio_tensor_device(copy));
    }
  }
  helio_values *sums = helio_run(strategy, step);
  for (int i = 0; i < helio_num_replicas(strategy) && sums; i++) {
    printf("replica %d got %g\n", i, helio_item(helio_values_at(sums, i, 0)));
  }

  helio_error error;
  if (helio_error_take(&error) == HELIO_OK) return EXIT_SUCCESS;
  fprintf(stderr, "%s: %s\n", error.where, error.message);
  return EXIT_FAILURE;
}
