/* SPDX-License-Identifier: Apache-2.0 */
/* Signals in a program that trains: they are for its own threads, disturb nothing, and a program that ends because of
 * one leaves nothing behind. */
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "replicas.h"

enum { STEPS = 30, MOST_STEPS = 20000, ROWS = 48, WIDTH = 12, CLASSES = 3 };

/* ---- a program that trains: no asserts, because it runs in children too ---- */

typedef struct program {
  helio_strategy *strategy;
  helio_model *model;
  helio_optimizer *optimizer;
  helio_loss *loss;
  helio_distributed_iterator *batches;
  void (*inside)(void); /* called by replica 0 in each step; NULL: nothing */
} program;

static helio_status halve(void *argument, helio_element *element) {
  (void)argument;
  element->part[0] = helio_mul(element->part[0], helio_fill(HELIO_SCALAR, 0.5));
  return HELIO_OK;
}

static helio_dataset *make_batches(void) {
  float x[ROWS * WIDTH];
  int32_t labels[ROWS];
  uint64_t seed = 3;
  for (int i = 0; i < ROWS * WIDTH; i++) x[i] = (float)((double)next_random(&seed) / 2147483648.0 - 0.5);
  for (int i = 0; i < ROWS; i++) labels[i] = (int32_t)(next_random(&seed) % CLASSES);
  helio_dataset *samples = helio_dataset_from_slices(helio_array_of(x, HELIO_SHAPE(ROWS, WIDTH)),
                                                     helio_array_of(labels, HELIO_SHAPE(ROWS), .type = HELIO_INT32));
  helio_dataset *shuffled = helio_dataset_repeat(helio_dataset_shuffle(samples, ROWS, .seed = 5), -1);
  return helio_dataset_map(helio_dataset_batch(shuffled, 7), halve, NULL, .parallel = 2);
}

static bool begin_program(program *p, int replicas) {
  helio_mirrored_options options = {.size = sizeof options};
  for (int i = 0; i < replicas; i++) options.devices[i] = nth_device(i);
  CHILD_CHECK(!helio_set_seed(7));
  p->strategy = helio_mirrored_with(&options);
  HELIO_SCOPE(p->strategy) {
    p->model = helio_sequential(.layers = {helio_dense(16, .activation = HELIO_TANH), helio_dense(CLASSES)},
                                .input_shape = HELIO_SHAPE(WIDTH));
    p->optimizer = helio_sgd(0.1, .momentum = 0.9);
  }
  p->loss = helio_sparse_categorical_crossentropy(.from_logits = true);
  p->batches = helio_iterate_distributed(helio_distribute(p->strategy, make_batches()));
  CHILD_CHECK(p->batches);
  return true;
}

static helio_status train_step(void *argument, const helio_element *inputs, helio_element *outputs) {
  const program *p = argument;
  helio_tensor *loss = NULL;
  helio_tape *tape = helio_tape_new();
  if (p->inside && helio_replica_id() == 0) p->inside();
  HELIO_TAPE(tape) {
    loss = helio_compute_loss(p->loss, inputs->part[1], helio_call(p->model, inputs->part[0], .training = true));
  }
  give(outputs, loss);
  return helio_minimize(p->optimizer, tape, loss, helio_trainable_variables(p->model));
}

static bool step(program *p, helio_values *batch, double *loss) {
  HELIO_POOL {
    helio_values *losses = helio_run(p->strategy, train_step, p, batch);
    CHILD_CHECK(losses);
    *loss = helio_item(helio_reduce(p->strategy, HELIO_SUM, losses));
  }
  CHILD_CHECK(!helio_error_pending());
  return true;
}

/* Until `count` losses are there or the flag is set, if there is one; says how many there are, −1 on an error. */
static int train(program *p, int count, const atomic_int *flag, double *losses) {
  int done = 0;
  for (; done < count && !(flag && atomic_load(flag)); done++) {
    bool right = false;
    HELIO_POOL {
      helio_values *batch = helio_next_values(p->batches);
      right = batch && step(p, batch, &losses[done]);
    }
    if (!right) return -1;
  }
  return done;
}

static bool end_program(program *p) {
  helio_release(p->model);
  CHILD_CHECK(!helio_shutdown());
  return true;
}

/* ---- signals and who gets them ---- */

static atomic_int handled, strays, asked_to_stop;
static pid_t main_thread;
static pthread_t main_id;

/* Not instrumented: where a handler was, the thread sanitizer of gcc 12 left the thread with all signals blocked in one
 * of some twenty trainings. */
__attribute__((no_sanitize("thread"))) static void handle(int signal) {
  if (syscall(SYS_gettid) != main_thread) atomic_fetch_add(&strays, 1);
  if (signal == SIGINT) atomic_store(&asked_to_stop, 1);
  atomic_fetch_add(&handled, 1);
}

/* Without SA_RESTART, so that what is interrupted says so. */
static void set_handlers(void (*handler)(int)) {
  struct sigaction action = {.sa_handler = handler};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
  handled = strays = asked_to_stop = 0;
}

typedef struct sender {
  pthread_t thread;
  uint64_t seed;
  int most_us; /* between two signals */
  int count;   /* of signals; 0: until the end */
  atomic_bool over;
} sender;

/* By turns for the process, so that the system chooses among the threads that take it, and for the main thread. */
static void *send_signals(void *argument) {
  sender *s = argument;
  for (int i = 0; !atomic_load(&s->over) && (s->count == 0 || i < s->count); i++) {
    usleep(next_random(&s->seed) % (unsigned)s->most_us);
    int signal = next_random(&s->seed) % 2 ? SIGINT : SIGUSR1;
    if (s->count > 0) signal = SIGINT;
    if (next_random(&s->seed) % 4) {
      kill(getpid(), signal);
    } else {
      pthread_kill(main_id, signal);
    }
  }
  return NULL;
}

/* The sender is the only thread of the program that takes none. */
static void start_sending(sender *s) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failure = pthread_create(&s->thread, NULL, send_signals, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  assert_int_equal(failure, 0);
}

static void stop_sending(sender *s) {
  atomic_store(&s->over, true);
  pthread_join(s->thread, NULL);
}

/* ---- what is left behind ---- */

static int shared_memory_of(pid_t process) {
  char number[24];
  int count = 0;
  DIR *folder = opendir("/dev/shm");
  if (!folder) return 0;
  snprintf(number, sizeof number, "%d", (int)process);
  for (struct dirent *entry; (entry = readdir(folder));) count += strstr(entry->d_name, number) != NULL;
  closedir(folder);
  return count;
}

typedef struct traces {
  int threads, files;
  char before[PATH_MAX], temporary[64], working[64];
} traces;

/* From here on the working folder and that for temporary files are empty ones. */
static void begin_watching(traces *t) {
  assert_non_null(getcwd(t->before, sizeof t->before));
  make_folder(t->temporary);
  make_folder(t->working);
  setenv("TMPDIR", t->temporary, 1);
  assert_int_equal(chdir(t->working), 0);
  t->threads = thread_count(-1);
  t->files = open_files();
}

static void expect_no_traces(const traces *t) {
  assert_int_equal(thread_count(t->threads), t->threads);
  assert_int_equal(open_files(), t->files);
  assert_int_equal(entries_of(t->temporary), 2);
  assert_int_equal(entries_of(t->working), 2);
  assert_int_equal(shared_memory_of(getpid()), 0);
  assert_not_logged("still held");
}

static void end_watching(const traces *t) {
  assert_int_equal(chdir(t->before), 0);
  unsetenv("TMPDIR");
  remove_folder(t->temporary);
  remove_folder(t->working);
}

static void *do_nothing(void *argument) {
  return argument;
}

/* The CPUs have workers too. The thread sanitizer starts a thread of its own with a program's first, so it comes now.
 */
static int set_up_signals(void **state) {
  pthread_t first;
  if (set_up(state) || pthread_create(&first, NULL, do_nothing, NULL)) return -1;
  pthread_join(first, NULL);
  choose_devices("collectives/local/.libs");
  setenv("HELIO_NUM_THREADS", "8", 1);
  main_thread = (pid_t)syscall(SYS_gettid);
  main_id = pthread_self();
  return 0;
}

static int tear_down_signals(void **state) {
  set_handlers(SIG_DFL);
  return tear_down(state);
}

#define SIGNAL_TEST(function) cmocka_unit_test_setup_teardown(function, set_up_signals, tear_down_signals)

/* ---- threads of the library take no signals ---- */

enum { MOST_THREADS = 64 };

typedef struct seen_thread {
  int id;
  char name[32];
  unsigned long long blocked;
} seen_thread;

static struct {
  seen_thread at[MOST_THREADS];
  int count;
} threads;

static void look_once(const char *id, seen_thread *t) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/self/task/%.20s/status", id);
  *t = (seen_thread){.id = atoi(id)};
  FILE *file = fopen(path, "r");
  if (!file) return;
  while (fgets(line, sizeof line, file)) {
    sscanf(line, "Name: %31s", t->name);
    sscanf(line, "SigBlk: %llx", &t->blocked);
  }
  fclose(file);
}

/* The C library blocks everything while a thread begins, which on a busy machine takes its time. */
static void look_at_thread(const char *id, seen_thread *t) {
  look_once(id, t);
  for (int i = 0; i < 5000 && t->blocked >> (SIGSEGV - 1) & 1; i++) {
    usleep(1000);
    look_once(id, t);
  }
}

static void look_at_threads(void) {
  DIR *folder = opendir("/proc/self/task");
  threads.count = 0;
  if (!folder) return;
  for (struct dirent *entry; (entry = readdir(folder)) && threads.count < MOST_THREADS;) {
    if (entry->d_name[0] != '.') look_at_thread(entry->d_name, &threads.at[threads.count++]);
  }
  closedir(folder);
}

static int threads_named(const char *begin) {
  int count = 0;
  for (int i = 0; i < threads.count; i++) count += strncmp(threads.at[i].name, begin, strlen(begin)) == 0;
  return count;
}

/* A thread raises these by itself; the first two nobody can block, and those between 31 and SIGRTMIN are the C
 * library's.
 */
static bool is_blockable(int signal) {
  static const int not [] = {SIGKILL, SIGSTOP, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
  for (size_t i = 0; i < COUNT_OF(not ); i++) {
    if (signal == not [i]) return false;
  }
  return signal <= 31 || signal >= SIGRTMIN;
}

static void expect_all_blocked(const seen_thread *t) {
  for (int signal = 1; signal <= SIGRTMAX; signal++) {
    bool is = t->blocked >> (signal - 1) & 1, ought = is_blockable(signal);
    if (is != ought) fail_msg("%s (%d) %s signal %d", t->name, t->id, is ? "blocks" : "takes", signal);
  }
}

static const seen_thread *find_thread(const seen_thread *list, int count, int id) {
  for (int i = 0; i < count; i++) {
    if (list[i].id == id) return &list[i];
  }
  return NULL;
}

/* What stood before keeps its own mask. */
static void threads_of_the_library_take_no_signals(void **state) {
  (void)state;
  double losses[2];
  seen_thread before[MOST_THREADS];
  program p = {.inside = look_at_threads};
  look_at_threads();
  int count = threads.count;
  memcpy(before, threads.at, sizeof before);
  assert_true(begin_program(&p, 3));
  assert_int_equal(train(&p, 2, NULL, losses), 2);
  assert_true(threads.count > count && threads.count < MOST_THREADS);
  for (int i = 0; i < threads.count; i++) {
    const seen_thread *own = find_thread(before, count, threads.at[i].id);
    if (!own) expect_all_blocked(&threads.at[i]);
    if (own && own->id == getpid())
      assert_int_equal(threads.at[i].blocked, own->blocked); /* others are a sanitizer's */
  }
  assert_int_equal(threads_named("helio-rep"), 3);
  assert_int_equal(threads_named("helio-data"), 3);                  /* the prefetch and two of the map */
  if (!on_strict()) assert_int_equal(threads_named("helio-cpu"), 3); /* eight for five CPUs: two, two, two, one, one */
  assert_true(end_program(&p));
}

/* ---- a handler of the program ---- */

static void train_quietly(int replicas, int count, double *losses) {
  program p = {0};
  assert_true(begin_program(&p, replicas));
  assert_int_equal(train(&p, count, NULL, losses), count);
  assert_true(end_program(&p));
}

/* The replicas' threads take no signal, so it finds the one that waits in helio_run(). */
static void wait_until_handled(int count) {
  for (int i = 0; i < 100000 && atomic_load(&handled) < count; i++) usleep(100);
}

static void wait_for_the_next(void) {
  wait_until_handled(atomic_load(&handled) + 1);
}

/* From before the start until behind the end, and in each step, however quick the steps and slow the sender. */
static void signals_change_nothing(void **state) {
  (void)state;
  traces t;
  double quiet[STEPS], noisy[STEPS];
  begin_watching(&t);
  for (int replicas = 2; replicas <= 3; replicas++) {
    program p = {.inside = wait_for_the_next};
    sender s = {.seed = (uint64_t)replicas, .most_us = 400};
    train_quietly(replicas, STEPS, quiet);
    set_handlers(handle);
    start_sending(&s);
    bool begun = begin_program(&p, replicas);
    int done = begun ? train(&p, STEPS, NULL, noisy) : 0;
    bool ended = end_program(&p);
    stop_sending(&s);
    assert_true(begun && ended);
    assert_true(handled >= STEPS);
    assert_int_equal(strays, 0);
    assert_int_equal(done, STEPS);
    assert_memory_equal(quiet, noisy, sizeof quiet);
    expect_no_traces(&t);
  }
  end_watching(&t);
}

static void a_program_ends_when_it_is_asked_to(void **state) {
  (void)state;
  enum { ROUNDS = 8 };
  static double losses[MOST_STEPS];
  double quiet[STEPS];
  traces t;
  begin_watching(&t);
  for (int round = 0; round < ROUNDS; round++) {
    int replicas = 2 + round % 2;
    program p = {0};
    sender s = {.seed = (uint64_t)round, .most_us = 20000, .count = 1};
    train_quietly(replicas, STEPS, quiet);
    set_handlers(handle);
    bool begun = begin_program(&p, replicas);
    start_sending(&s);
    int done = begun ? train(&p, MOST_STEPS, &asked_to_stop, losses) : 0;
    bool ended = end_program(&p);
    stop_sending(&s);
    assert_true(begun && ended);
    assert_true(done >= 0 && done < MOST_STEPS);
    assert_int_equal(handled, 1);
    assert_int_equal(strays, 0);
    assert_memory_equal(quiet, losses, (size_t)(done < STEPS ? done : STEPS) * sizeof quiet[0]);
    expect_no_traces(&t);
  }
  end_watching(&t);
}

static void interrupt_and_wait(void) {
  kill(getpid(), SIGINT);
  wait_until_handled(1);
}

static void a_handler_runs_in_mid_step(void **state) {
  (void)state;
  for (int replicas = 2; replicas <= 3; replicas++) {
    traces t;
    program p = {.inside = interrupt_and_wait};
    double loss = 0, quiet;
    begin_watching(&t);
    train_quietly(replicas, 1, &quiet);
    set_handlers(handle);
    assert_true(begin_program(&p, replicas));
    assert_int_equal(train(&p, 1, NULL, &loss), 1);
    assert_int_equal(handled, 1);
    assert_int_equal(strays, 0);
    assert_true(loss == quiet);
    assert_true(end_program(&p));
    expect_no_traces(&t);
    end_watching(&t);
  }
}

/* ---- the end while a step is under way ---- */

static pthread_barrier_t begun, may_go_on;

static void stay_in_the_step(void) {
  pthread_barrier_wait(&begun);
  pthread_barrier_wait(&may_go_on);
}

typedef struct training {
  program program;
  double loss;
  int done;
} training;

static void *train_in_a_thread(void *argument) {
  training *t = argument;
  t->done = train(&t->program, 1, NULL, &t->loss);
  return NULL;
}

static void the_end_in_another_threads_step_is_an_error(void **state) {
  (void)state;
  pthread_t thread;
  helio_error error;
  training t = {.program.inside = stay_in_the_step};
  pthread_barrier_init(&begun, NULL, 2);
  pthread_barrier_init(&may_go_on, NULL, 2);
  assert_true(begin_program(&t.program, 2));
  assert_int_equal(pthread_create(&thread, NULL, train_in_a_thread, &t), 0);
  pthread_barrier_wait(&begun);
  helio_status status = helio_shutdown();
  helio_error_take(&error);
  pthread_barrier_wait(&may_go_on);
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&begun);
  pthread_barrier_destroy(&may_go_on);
  assert_int_equal(status, HELIO_WRONG_STATE);
  assert_non_null(strstr(error.message, "a step is under way in another thread"));
  assert_string_equal(error.where, "helio_shutdown");
  assert_int_equal(t.done, 1);
  t.program.inside = NULL;
  assert_int_equal(train(&t.program, 1, NULL, &t.loss), 1); /* nothing was ended */
  assert_true(end_program(&t.program));
}

/* ---- no handler: the process ends at once ---- */

typedef enum phase { STARTING = 1, READING, STEPPING, ENDING, PHASES } phase;
static const char *const phase_names[] = {"", "starting", "reading", "stepping", "ending"};

typedef struct victim {
  atomic_int phase; /* in memory that parent and child share */
  int replicas;
} victim;

/* Goes through all phases again and again. */
static bool live(void *argument) {
  victim *v = argument;
  setpgid(0, 0);
  for (;;) {
    program p = {0};
    double loss;
    atomic_store(&v->phase, STARTING);
    CHILD_CHECK(begin_program(&p, v->replicas));
    for (int i = 0; i < 3; i++) {
      HELIO_POOL {
        atomic_store(&v->phase, READING);
        helio_values *batch = helio_next_values(p.batches);
        CHILD_CHECK(batch);
        atomic_store(&v->phase, STEPPING);
        CHILD_CHECK(step(&p, batch, &loss));
      }
    }
    atomic_store(&v->phase, ENDING);
    CHILD_CHECK(end_program(&p));
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static pid_t give_birth(victim *v) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    _exit(live(v) ? 0 : 1);
  }
  assert_true(child > 0);
  return child;
}

/* Kills it in the phase, a random moment in; it may have gone on to the next by then. */
static int interrupt_in(pid_t child, victim *v, phase wanted, unsigned wait_us, int *how) {
  double begin = now(), most = 10;
  while (atomic_load(&v->phase) != (int)wanted && now() - begin < 60) sched_yield();
  usleep(wait_us);
  begin = now();
  if (kill(child, SIGINT)) return -1;
  pid_t ended = 0;
  while (!ended && now() - begin < most) {
    ended = waitpid(child, how, WNOHANG);
    if (!ended) usleep(200);
  }
  if (ended == child) return 0;
  kill(child, SIGKILL);
  waitpid(child, how, 0);
  return -1;
}

static void without_a_handler_the_process_ends_at_once(void **state) {
  (void)state;
  enum { ROUNDS = 4 };
  traces t;
  uint64_t seed = 17;
  victim *v = mmap(NULL, sizeof *v, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(v != MAP_FAILED);
  begin_watching(&t);
  for (int round = 0; round < ROUNDS * (PHASES - 1); round++) {
    phase wanted = (phase)(1 + round % (PHASES - 1));
    int how = 0;
    *v = (victim){.replicas = 2 + round / (PHASES - 1) % 2};
    pid_t child = give_birth(v);
    if (interrupt_in(child, v, wanted, next_random(&seed) % 1000, &how)) {
      fail_msg("%s: it did not end within the time", phase_names[wanted]);
    }
    if (!WIFSIGNALED(how) || WTERMSIG(how) != SIGINT) fail_msg("%s: wait status %#x", phase_names[wanted], how);
    assert_int_equal(kill(-child, 0), -1); /* nobody is left of its group */
    assert_int_equal(errno, ESRCH);
    assert_int_equal(shared_memory_of(child), 0);
    expect_no_traces(&t);
  }
  end_watching(&t);
  munmap(v, sizeof *v);
}

int main(void) {
  signal(SIGINT, SIG_DFL); /* a shell ignores it for what it runs beside itself, and what is ignored stays so */
  remember_environment();
  const struct CMUnitTest tests[] = {
      SIGNAL_TEST(threads_of_the_library_take_no_signals),      SIGNAL_TEST(signals_change_nothing),
      SIGNAL_TEST(a_program_ends_when_it_is_asked_to),          SIGNAL_TEST(a_handler_runs_in_mid_step),
      SIGNAL_TEST(the_end_in_another_threads_step_is_an_error), SIGNAL_TEST(without_a_handler_the_process_ends_at_once),
  };
  return cmocka_run_group_tests_name("signals", tests, NULL, NULL);
}
