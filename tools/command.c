/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <errno.h>
#include <float.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/nearest.h"
#include "runtime/printable.h"

enum {
  FIRST_OPTION = 256, /* above every character, so that getopt's answer tells long options from short ones */
  MAX_NAMES = 64,     /* of commands or values to choose a suggestion from */
  WORD = 64,
};

/* What was typed may have sequences that a terminal obeys. */
static void message(const char *path, const char *format, va_list arguments) {
  char *text = NULL;
  fflush(stdout); /* so that the message comes after what was printed where both go to one place */
  if (vasprintf(&text, format, arguments) < 0) text = NULL;
  for (char *line = text, *end; line; line = end) {
    end = strchr(line, '\n');
    if (end) *end = '\0';
    hi_make_printable(line);
    if (end) *end++ = '\n';
  }
  fprintf(stderr, "%s: %s\n", path, text ? text : strerror(ENOMEM));
  free(text);
}

bool command_ends_in(const char *text, const char *ending) {
  size_t length = strlen(text), end = strlen(ending);
  return length >= end && strcasecmp(text + length - end, ending) == 0;
}

bool command_is_folder(const char *name) {
  struct stat about;
  return stat(name, &about) == 0 && S_ISDIR(about.st_mode);
}

bool command_is_word(const char *text) {
  return access(text, F_OK) != 0 && !strpbrk(text, "./");
}

int command_usage_error(const char *path, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  message(path, format, arguments);
  va_end(arguments);
  return EXIT_USAGE;
}

int command_failure(const char *path, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  message(path, format, arguments);
  va_end(arguments);
  return EXIT_FAILURE;
}

void command_tell(const char *path, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  message(path, format, arguments);
  va_end(arguments);
}

int command_library_failure(const char *path) {
  helio_error error = {.message = ""};
  helio_status status = helio_error_take(&error);
  if (!status) status = HELIO_OUT_OF_MEMORY;
  return command_failure(path, "%s", error.message[0] ? error.message : helio_status_text(status));
}

void command_set_log_level(helio_log_level level) {
  if (!getenv("HELIO_LOG")) helio_set_log_level(level);
}

int command_unknown(const char *path, const char *kind, const char *word, const char *const *names, int count,
                    const char *otherwise) {
  const char *nearest = hi_nearest(word, names, count);
  if (nearest) return command_usage_error(path, "unknown %s '%s'; did you mean '%s'?", kind, word, nearest);
  if (otherwise) return command_usage_error(path, "unknown %s '%s'; %s", kind, word, otherwise);
  return command_usage_error(path, "unknown %s '%s'; see '%s --help'", kind, word, path);
}

int command_integer(const command_line *line, const command_option *options, int option, int64_t least, int64_t most,
                    int64_t *number) {
  const char *text = line->values[option];
  char *end = NULL;
  if (!text) return EXIT_SUCCESS;
  errno = 0;
  long long found = strtoll(text, &end, 10);
  if (end == text || *end || errno || found < least || found > most) {
    return command_usage_error(line->path, "--%s takes a number from %lld to %lld, not '%s'", options[option].name,
                               (long long)least, (long long)most, text);
  }
  *number = found;
  return EXIT_SUCCESS;
}

int command_real(const command_line *line, const command_option *options, int option, double *number) {
  const char *text = line->values[option];
  char *end = NULL;
  if (!text) return EXIT_SUCCESS;
  double found = strtod(text, &end);
  if (end == text || *end || !isfinite(found) || found <= 0) {
    return command_usage_error(line->path, "--%s takes a number above 0, not '%s'", options[option].name, text);
  }
  if (found < (double)FLT_MIN || found > (double)FLT_MAX) {
    return command_usage_error(line->path, "--%s takes a number from %.2g to %.2g, as float32 holds, not '%s'",
                               options[option].name, (double)FLT_MIN, (double)FLT_MAX, text);
  }
  *number = found;
  return EXIT_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Help
 */

static int count_options(const command *self) {
  int count = 0;
  while (self->options && self->options[count].name) count++;
  return count;
}

/* Many options would fill more than a line, and are listed below anyway. */
static void print_usage(const command *self, const char *path) {
  enum { FEW_OPTIONS = 8 };
  bool few = count_options(self) <= FEW_OPTIONS;
  printf("Usage: %s%s", path, few ? "" : " [OPTION...]");
  for (int i = 0; few && i < count_options(self); i++) {
    const command_option *option = &self->options[i];
    if (option->argument) {
      printf(" [--%s %s]", option->name, option->argument);
    } else {
      printf(" [--%s]", option->name);
    }
  }
  if (self->subcommands) printf(" COMMAND");
  if (self->operands) printf(" %s", self->operands);
  printf("\n");
}

/* "--batch COUNT", written to `text`. How long that is. */
static int name_option(const command_option *option, char text[WORD]) {
  return snprintf(text, WORD, "--%s%s%s", option->name, option->argument ? " " : "",
                  option->argument ? option->argument : "");
}

static int option_width(const command *self) {
  int width = 22;
  for (int i = 0; i < count_options(self); i++) {
    char text[WORD];
    int length = name_option(&self->options[i], text);
    if (length > width) width = length;
  }
  return width;
}

static void print_option(const command_option *option, int width) {
  char left[WORD];
  name_option(option, left);
  printf("  %-*s %s", width, left, option->help);
  if (option->choices) printf(" (%s)", option->choices);
  printf("\n");
}

void command_print_help(const command *self, const char *path) {
  print_usage(self, path);
  printf("\n%s.\n", self->summary);
  if (self->description) printf("%s\n", self->description);
  if (self->subcommands) {
    printf("\nCommands:\n");
    for (int i = 0; self->subcommands[i]; i++) {
      printf("  %-11s %s\n", self->subcommands[i]->name, self->subcommands[i]->summary);
    }
  }
  printf("\nOptions:\n");
  int width = option_width(self);
  for (int i = 0; i < count_options(self); i++) print_option(&self->options[i], width);
  printf("  %-*s %s\n", width, "-h, --help", "print this help and exit");
  if (self->subcommands) printf("\n'%s COMMAND --help' tells more about a command.\n", path);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Parsing
 */

/* The argument in which getopt met the unknown short option `letter`; people write -json when they mean --json. */
static const char *short_word(int argument_count, char **arguments, int letter) {
  for (int i = 1; i < argument_count; i++) {
    if (arguments[i][0] == '-' && arguments[i][1] != '-' && strchr(arguments[i], letter)) return arguments[i];
  }
  return "-";
}

/* The options that `word` is the beginning of, and how many: getopt takes a beginning for the whole if there is one. */
static int list_begun(const char *word, const char *const *names, int count, char *text, size_t size) {
  const char *bare = word + strspn(word, "-");
  size_t length = 0;
  int found = 0;
  for (int i = 0; i < count && *bare && length < size; i++) {
    if (strncmp(names[i], bare, strlen(bare)) != 0) continue;
    length += (size_t)snprintf(text + length, size - length, "%s--%s", found++ ? ", " : "", names[i]);
  }
  return found;
}

static int unknown_option(const command *self, const char *path, const char *written) {
  char word[WORD];
  snprintf(word, sizeof word, "%.*s", (int)strcspn(written, "="), written);
  const char *names[COMMAND_MAX_OPTIONS + 1];
  int count = count_options(self);
  for (int i = 0; i < count; i++) names[i] = self->options[i].name;
  names[count++] = "help";
  char meant[400];
  if (list_begun(word, names, count, meant, sizeof meant) > 1) {
    return command_usage_error(path, "option '%s' may be %s", word, meant);
  }
  const char *nearest = hi_nearest(word + strspn(word, "-"), names, count);
  if (nearest) return command_usage_error(path, "unknown option '%s'; did you mean '--%s'?", word, nearest);
  return command_usage_error(path, "unknown option '%s'; see '%s --help'", word, path);
}

/* Is the value one of the choices? If not, says so. */
static int check_choice(const char *path, const command_option *option, const char *value) {
  if (!option->choices) return EXIT_SUCCESS;
  char copy[400], *rest = copy, *name, kind[WORD], list[sizeof copy + WORD];
  const char *names[MAX_NAMES];
  int count = 0;
  snprintf(copy, sizeof copy, "%s", option->choices);
  while (rest && count < MAX_NAMES) {
    name = rest;
    rest = strchr(rest, '|');
    if (rest) *rest++ = '\0';
    if (strcmp(name, value) == 0) return EXIT_SUCCESS;
    names[count++] = name;
  }
  snprintf(kind, sizeof kind, "value of --%s", option->name);
  snprintf(list, sizeof list, "there is %s", option->choices);
  return command_unknown(path, kind, value, names, count, list);
}

/* What getopt needs: our options, then --help. */
static void fill_long_options(const command *self, struct option *table) {
  int count = count_options(self);
  for (int i = 0; i < count; i++) {
    table[i] = (struct option){self->options[i].name, self->options[i].argument ? required_argument : no_argument, NULL,
                               FIRST_OPTION + i};
  }
  table[count] = (struct option){"help", no_argument, NULL, 'h'};
  table[count + 1] = (struct option){0};
}

static int bad_option(const command *self, const char *path, int answer, int argument_count, char **arguments) {
  if (optopt >= FIRST_OPTION) {
    const char *name = self->options[optopt - FIRST_OPTION].name;
    return command_usage_error(path, answer == ':' ? "--%s needs a value" : "--%s takes no value", name);
  }
  if (optopt == 'h') return command_usage_error(path, "--help takes no value");
  return unknown_option(self, path, optopt ? short_word(argument_count, arguments, optopt) : arguments[optind - 1]);
}

/* Fills the line. 0: go on; 1: help was asked for and printed; EXIT_USAGE: wrong, and said so. */
enum { GO_ON = 0, HELP_PRINTED = 1 };

static int parse(const command *self, command_line *line, int argument_count, char **arguments) {
  struct option table[COMMAND_MAX_OPTIONS + 2];
  fill_long_options(self, table);
  /* What follows the name of a subcommand is for the subcommand: with '+' getopt stops there. */
  const char *short_options = self->subcommands ? "+:h" : ":h";
  int answer;
  unsetenv("POSIXLY_CORRECT"); /* with it getopt would take what follows a recipe for more of them */
  opterr = 0;
  optind = 0; /* begins anew: each level of commands parses its own part */
  while ((answer = getopt_long(argument_count, arguments, short_options, table, NULL)) != -1) {
    if (answer == 'h') {
      command_print_help(self, line->path);
      return HELP_PRINTED;
    }
    if (answer < FIRST_OPTION) return bad_option(self, line->path, answer, argument_count, arguments);
    const command_option *option = &self->options[answer - FIRST_OPTION];
    line->values[answer - FIRST_OPTION] = optarg ? optarg : "";
    if (optarg && !*optarg) return command_usage_error(line->path, "--%s needs a value", option->name);
    if (optarg && check_choice(line->path, option, optarg) != EXIT_SUCCESS) return EXIT_USAGE;
  }
  line->operands = arguments + optind;
  line->operand_count = argument_count - optind;
  return GO_ON;
}

const command *command_find(const command *parent, const char *path, const char *name) {
  const char *names[MAX_NAMES];
  int count = 0;
  for (; parent->subcommands && parent->subcommands[count]; count++) {
    if (strcmp(parent->subcommands[count]->name, name) == 0) return parent->subcommands[count];
    names[count] = parent->subcommands[count]->name;
  }
  command_unknown(path, "command", name, names, count, NULL);
  return NULL;
}

static bool has_options(const command *self, const command_line *line) {
  for (int i = 0; i < count_options(self); i++) {
    if (line->values[i]) return true;
  }
  return false;
}

static int run_subcommand(const command *self, const command_line *line) {
  const command *chosen = command_find(self, line->path, line->operands[0]);
  char path[sizeof line->path + WORD];
  if (!chosen) return EXIT_USAGE;
  snprintf(path, sizeof path, "%s %s", line->path, chosen->name);
  return command_run(chosen, path, line->operand_count, line->operands);
}

static int check_operands(const command *self, const command_line *line) {
  const char *name = self->operands ? self->operands + strspn(self->operands, "[") : "";
  if (line->operand_count == 0 && self->missing) return command_usage_error(line->path, "%s", self->missing);
  if (line->operand_count > 0 && !self->operands) {
    return command_usage_error(line->path, "takes no argument, but there is '%s'", line->operands[0]);
  }
  if (line->operand_count < 2 || strstr(name, "...")) return EXIT_SUCCESS;
  return command_usage_error(line->path, "one %.*s at a time; there is '%s' too", (int)strcspn(name, "]"), name,
                             line->operands[1]);
}

int command_run(const command *self, const char *path, int argument_count, char **arguments) {
  command_line line = {.operands = NULL};
  snprintf(line.path, sizeof line.path, "%s", path);
  int answer = parse(self, &line, argument_count, arguments);
  if (answer == HELP_PRINTED) return EXIT_SUCCESS;
  if (answer != GO_ON) return answer;
  if (self->run && self->subcommands && has_options(self, &line)) return self->run(&line);
  if (self->subcommands && line.operand_count == 0) {
    return command_usage_error(path, "which command? '%s --help' lists them", path);
  }
  if (self->subcommands) return run_subcommand(self, &line);
  int status = check_operands(self, &line);
  return status ? status : self->run(&line);
}
