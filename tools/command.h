/* SPDX-License-Identifier: Apache-2.0 */
/* How a subcommand of `helio` describes itself. One table of commands, each with one table of options, serves parsing,
 * --help, suggestions for mistyped names, completion by shells and the check of the manual page. A new subcommand is a
 * file with one `command` at its end, a line in the list below and a line in its parent's table. */
#ifndef COMMAND_H
#define COMMAND_H

#include <helio/helio.h>

enum {
  EXIT_USAGE = 2,           /* the command line is wrong; EXIT_FAILURE: what it asks for cannot be done */
  COMMAND_MAX_OPTIONS = 40, /* of one command */
};

typedef struct command_option {
  const char *name;     /* without its dashes */
  const char *argument; /* what its value is called in help; NULL: it takes none */
  const char *choices;  /* "cpu|gpu": the only values there are; NULL: not a fixed set */
  const char *help;     /* a few words */
} command_option;

typedef struct command command;

/* A command line that was understood. */
typedef struct command_line {
  char path[80];                           /* "helio bench ops", for messages */
  const char *values[COMMAND_MAX_OPTIONS]; /* as the options; NULL: not given; "" for one that takes no value */
  char **operands;                         /* what follows the options */
  int operand_count;
} command_line;

struct command {
  const char *name;
  const char *summary;               /* one line, for the list of commands */
  const char *description;           /* what --help says beyond that; NULL: nothing */
  const char *operands;              /* what they are called in help, "FILE..." if many may be; NULL: there are none */
  const char *operand_words;         /* "mnist|reuters": some that a shell may offer; NULL: none are known beforehand */
  const char *missing;               /* what is said where none is given; NULL: it need not be */
  const command_option *options;     /* the last one has no name; NULL: none but --help */
  const command *const *subcommands; /* the last one NULL; NULL: it has none */

  /* The exit status. A command with subcommands is run only if an option was given. */
  int (*run)(const command_line *line);
};

extern const command command_root;
extern const command command_bench;
extern const command command_bench_collectives;
extern const command command_bench_data;
extern const command command_bench_training;
extern const command command_completion;
extern const command command_data;
extern const command command_devices;
extern const command command_env;
extern const command command_eval;
extern const command command_help;
extern const command command_ops;
extern const command command_plugins;
extern const command command_predict;
extern const command command_summary;
extern const command command_train;

/* Understands the arguments that follow a command's name and runs it. `path` is the command's full name. */
int command_run(const command *self, const char *path, int argument_count, char **arguments);

/* The subcommand of this name, or NULL after a message with the nearest one. */
const command *command_find(const command *parent, const char *path, const char *name);

void command_print_help(const command *self, const char *path);

/* Is it the ending of a name of a file, in small letters or capitals? */
bool command_ends_in(const char *text, const char *ending);
bool command_is_folder(const char *name);
bool command_is_word(const char *text); /* that is no file and does not look like one */

/* Each writes "PATH: message" to standard error and returns the exit status that belongs to it. */
int command_usage_error(const char *path, const char *format, ...) HELIO_PRINTF(2, 3);
int command_failure(const char *path, const char *format, ...) HELIO_PRINTF(2, 3);

/* The same for what is no failure; a warning says so: "warning: …". */
void command_tell(const char *path, const char *format, ...) HELIO_PRINTF(2, 3);

/* An option's number, if it was given: *number is not touched otherwise. The exit status. An integer is from `least` to
 * `most`, a real number above 0, also as float32. */
int command_integer(const command_line *line, const command_option *options, int option, int64_t least, int64_t most,
                    int64_t *number);
int command_real(const command_line *line, const command_option *options, int option, double *number);

/* The library's pending error, which is taken; where there is none, it was this command that had no memory. */
int command_library_failure(const char *path);

/* What the library tells, unless the environment says it (HELIO_LOG). */
void command_set_log_level(helio_log_level level);

/* "unknown KIND 'WORD'; did you mean 'NAME'?", or, where no name is near, "…; OTHERWISE", which is how to learn them,
 * NULL: by --help. EXIT_USAGE. */
int command_unknown(const char *path, const char *kind, const char *word, const char *const *names, int count,
                    const char *otherwise);

#endif
