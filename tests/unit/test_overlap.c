/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of gradients travel while the backward pass goes on, where devices are asynchronous, and nothing else shows it:
 * the results are those of gradients that are all there before the first is summed, and a replica that fails on its way
 * leaves nobody waiting. The devices are wrapped, and tell which kernels they were handed. */
#include "wrapped.h"

enum { REPLICAS = 3, LAYERS = 4, MOST_BYTES = 4096 };

/* x · w0 · w1 · w2 · w3: each of another size, so that a sum is known by it. */
static const int64_t widths[LAYERS + 1] = {3, 5, 7, 11, 2};

typedef struct chain {
  helio_variable *list[LAYERS];
  helio_variables variables;
  helio_optimizer *optimizer;
  bool apart; /* gradients and step in two calls */
} chain;

static size_t size_of(int layer) {
  return (size_t)(widths[layer] * widths[layer + 1]);
}

static void make_chain(chain *c) {
  char name[16];
  *c = (chain){.optimizer = helio_adam(0.1)};
  assert_ok(helio_set_seed(5));
  for (int i = 0; i < LAYERS; i++) {
    snprintf(name, sizeof name, "w%d", i);
    c->list[i] = helio_variable(.shape = HELIO_SHAPE(widths[i], widths[i + 1]), .name = name);
    assert_made(c->list[i]);
  }
  c->variables = (helio_variables){LAYERS, c->list};
  assert_ok(helio_optimizer_build(c->optimizer, &c->variables));
}

static helio_status learn(void *argument, const helio_element *inputs, helio_element *outputs) {
  chain *c = argument;
  helio_tensor *loss = NULL;
  helio_tape *tape = helio_tape_new();
  (void)inputs, (void)outputs;
  HELIO_TAPE(tape) {
    helio_tensor *x = helio_fill(HELIO_SHAPE(2, widths[0]), 0.3 * (helio_replica_id() + 1));
    for (int i = 0; i < LAYERS; i++) x = helio_matmul(x, helio_value(c->list[i]));
    loss = helio_sum(x);
  }
  if (!c->apart) return helio_minimize(c->optimizer, tape, loss, &c->variables);
  return helio_apply_gradients(c->optimizer, helio_gradient(tape, loss, &c->variables), &c->variables);
}

static helio_strategy *make_strategy(void) {
  helio_strategy *strategy = mirrored_over(REPLICAS, NULL, "reduce-to-one");
  assert_made(strategy);
  return strategy;
}

/* All variables and slots, as one replica has them. */
static size_t read_all(const chain *c, int copy, char *bytes) {
  const helio_variables *lists[] = {&c->variables, helio_optimizer_variables(c->optimizer)};
  size_t length = 0;
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < lists[k]->count; i++) {
      helio_tensor *tensor = helio_variable_copy(lists[k]->at[i], copy);
      assert_made(tensor);
      size_t size = (size_t)helio_tensor_elements(tensor) * sizeof(float);
      assert_true(length + size <= MOST_BYTES);
      assert_ok(helio_tensor_read(tensor, bytes + length, size));
      length += size;
    }
  }
  return length;
}

/* ---- when buckets travel ---- */

/* The root's sums of one gradient are REPLICAS − 1 additions. */
static bool is_sum(const told *t, int layer) {
  return t->device == 0 && strcmp(t->name, "ADD") == 0 && t->elements == size_of(layer);
}

static bool is_product(const told *t) {
  return t->device == 0 && strcmp(t->name, "MATMUL") == 0;
}

static const told *last_product(void) {
  const told *last = NULL;
  for (int i = 0; i < heard.count; i++) {
    if (is_product(&heard.calls[i])) last = &heard.calls[i];
  }
  assert_non_null(last);
  return last;
}

/* From the last gradient to the first; between two of them the backward pass goes on, or they all come behind it. */
static void check_order(bool early) {
  const told *at = heard.calls, *end = heard.calls + heard.count, *last = last_product();
  for (int layer = LAYERS - 1; layer >= 0; layer--) {
    int products = 0;
    for (; at < end && !is_sum(at, layer); at++) {
      products += is_product(at);
      for (int other = 0; other < LAYERS; other++) assert_false(is_sum(at, other));
    }
    assert_int_equal(products > 0, early || layer == LAYERS - 1);
    assert_int_equal(at < last, early && layer > 0);
    for (int i = 1; i < REPLICAS; i++, at++) {
      assert_true(at < end && is_sum(at, layer));
      assert_int_equal(at->stream != last->stream, early);
    }
  }
}

static void buckets_travel_while_the_backward_pass_goes_on(void **state) {
  (void)state;
  chain c;
  setenv("HELIO_BUCKET_BYTES", "1", 1);
  start_wrapped("kernel/0:tell");
  helio_strategy *strategy = make_strategy();
  HELIO_SCOPE(strategy) make_chain(&c);
  for (int step = 0; step < 4; step++) {
    listen();
    assert_made(helio_run(strategy, learn, &c));
    check_order(on_strict() && step > 0);
  }
  c.apart = true;
  listen();
  assert_made(helio_run(strategy, learn, &c));
  const told *last = last_product();
  for (const told *at = heard.calls; at < last; at++) {
    for (int layer = 0; layer < LAYERS; layer++) assert_false(is_sum(at, layer));
  }
}

/* ---- to the bit ---- */

static void results_are_those_of_two_calls(void **state) {
  static const char *const sizes[] = {"1", "200", "1G"};
  (void)state;
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    chain chains[2];
    char bytes[2][MOST_BYTES];
    setenv("HELIO_BUCKET_BYTES", sizes[i], 1);
    start_wrapped("");
    helio_strategy *strategy = make_strategy();
    for (int apart = 0; apart < 2; apart++) {
      HELIO_SCOPE(strategy) make_chain(&chains[apart]);
      chains[apart].apart = apart;
      for (int step = 0; step < 5; step++) assert_made(helio_run(strategy, learn, &chains[apart]));
    }
    for (int copy = 0; copy < REPLICAS; copy++) {
      size_t length = read_all(&chains[0], copy, bytes[0]);
      assert_int_equal(read_all(&chains[1], copy, bytes[1]), length);
      assert_memory_equal(bytes[0], bytes[1], length);
    }
    assert_ok(helio_shutdown());
  }
}

/* ---- a replica that fails on its way ---- */

/* The kernels that replica 1's device is handed in the second step, up to the first that writes a variable. */
static void find_kernels(unsigned long long *first, unsigned long long *last) {
  chain c;
  start_wrapped("kernel/1:tell");
  helio_strategy *strategy = make_strategy();
  HELIO_SCOPE(strategy) make_chain(&c);
  assert_made(helio_run(strategy, learn, &c));
  listen();
  assert_made(helio_run(strategy, learn, &c));
  assert_true(heard.count > 0);
  *first = heard.calls[0].number;
  for (int i = 0; i < heard.count && strcmp(heard.calls[i].name, "ADAM_UPDATE") != 0; i++) {
    *last = heard.calls[i].number;
  }
  assert_ok(helio_shutdown());
}

static void check_failure_at(unsigned long long kernel) {
  char rules[60], before[MOST_BYTES], after[MOST_BYTES];
  chain c;
  snprintf(rules, sizeof rules, "kernel@%llu/1:fail", kernel);
  start_wrapped(rules);
  helio_strategy *strategy = make_strategy();
  HELIO_SCOPE(strategy) make_chain(&c);
  assert_made(helio_run(strategy, learn, &c));
  size_t length = read_all(&c, 0, before);
  assert_null(helio_run(strategy, learn, &c));
  expect_error(HELIO_REPLICA_LOST, "a rule lets");
  assert_int_equal(helio_num_replicas(strategy), REPLICAS - 1);
  for (int copy = 0; copy < REPLICAS - 1; copy++) {
    read_all(&c, copy, after);
    assert_memory_equal(before, after, length);
  }
  assert_made(helio_run(strategy, learn, &c));
  assert_int_equal(helio_optimizer_iterations(c.optimizer), 2);
  read_all(&c, 0, before);
  for (int copy = 1; copy < REPLICAS - 1; copy++) {
    read_all(&c, copy, after);
    assert_memory_equal(before, after, length);
  }
  assert_ok(helio_shutdown());
}

static void a_kernel_that_fails_leaves_nobody_waiting(void **state) {
  (void)state;
  unsigned long long first = 0, last = 0;
  setenv("HELIO_TIMEOUT", "20", 1);
  setenv("HELIO_BUCKET_BYTES", "200", 1);
  find_kernels(&first, &last);
  assert_true(last - first + 1 >= 3 * LAYERS - 1); /* a product forward, and back two but for the first layer */
  for (unsigned long long kernel = first; kernel <= last; kernel++) HELIO_POOL check_failure_at(kernel);
}

/* ---- the rules themselves ---- */

static void rules_choose_calls(void **state) {
  static const struct {
    const char *rules;
    int device;
    unsigned long long first, last; /* heard of it; 0: to the end */
  } cases[] = {{"kernel@3/1:tell", 1, 3, 3}, {" kernel @ 3 + / 2 : tell ; copy@1000000:tell", 2, 3, 0}};
  (void)state;
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    chain c;
    start_wrapped(cases[i].rules);
    helio_strategy *strategy = make_strategy();
    HELIO_SCOPE(strategy) make_chain(&c);
    listen();
    assert_made(helio_run(strategy, learn, &c));
    assert_true(heard.count > 0);
    for (int k = 0; k < heard.count; k++) {
      assert_int_equal(heard.calls[k].device, cases[i].device);
      assert_int_equal(heard.calls[k].number, cases[i].first + (unsigned)k);
    }
    assert_int_equal(heard.count == 1, cases[i].last == cases[i].first);
    assert_ok(helio_shutdown());
  }
}

static void what_is_no_rule_is_refused(void **state) {
  static const char *const rules[] = {"kernel",       "kernel:",       "kernel:dance", "colonel:tell",
                                      "kernel@:tell", "kernel/x:tell", "kernel:time=", "kernel:tell copy:tell"};
  (void)state;
  for (size_t i = 0; i < COUNT_OF(rules); i++) {
    wrap_devices(rules[i]);
    assert_int_equal(helio_init(), HELIO_NO_DEVICE);
    expect_error(HELIO_NO_DEVICE, "this is no rule");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(buckets_travel_while_the_backward_pass_goes_on),
      TEST(results_are_those_of_two_calls),
      TEST(a_kernel_that_fails_leaves_nobody_waiting),
      TEST(rules_choose_calls),
      TEST(what_is_no_rule_is_refused),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
