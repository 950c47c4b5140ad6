/* SPDX-License-Identifier: Apache-2.0 */
/* helio completion SHELL: what makes a shell complete command lines of helio, written from the tables that parse them.
 *
 * The three programs do the same. They go through the words before the cursor as long as these name commands; the last
 * one, with its parents, is the command. If the word before is an option that takes a value, its values are offered,
 * else the command's own commands, words or files, and its options where a word begins with '-' or there is nothing
 * else. `helio help` is passed over, so that the same commands are offered behind it, and nothing else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

typedef void (*visitor)(const command *self, const char *path);

/* Calls it with every command but `help`. */
static void visit(const command *self, const char *path, visitor function) {
  char below[200];
  if (self == &command_help) return;
  function(self, path);
  for (int i = 0; self->subcommands && self->subcommands[i]; i++) {
    snprintf(below, sizeof below, "%s %s", path, self->subcommands[i]->name);
    visit(self->subcommands[i], below, function);
  }
}

static void visit_all(visitor function) {
  visit(&command_root, command_root.name, function);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * What stands in a place
 */

typedef enum place { NOTHING_KNOWN, FILES, FOLDERS, SAVED_MODELS } place;

/* Told by what help calls it. */
static place place_of(const char *name) {
  if (name && strstr(name, "FILE")) return FILES;
  return name && strstr(name, "DIR") ? FOLDERS : NOTHING_KNOWN;
}

static place place_of_operands(const command *self) {
  return self == &command_eval || self == &command_predict ? SAVED_MODELS : place_of(self->operands);
}

/* What a shell may offer for the option. A loss has other names, too, and there may be other collectives, so that they
 * are no choices: these are the ones that a message lists, and those that come with helio. */
static const char *words_of(const command_option *option) {
  static const char losses[] =
      "mean_squared_error|mean_absolute_error|huber_loss|binary_crossentropy|"
      "categorical_crossentropy|sparse_categorical_crossentropy|kl_divergence|cosine_similarity";
  if (strcmp(option->name, "collective") == 0) return "auto|local|nccl|rccl|reduce-to-one|ring";
  return strcmp(option->name, "loss") == 0 ? losses : option->choices;
}

/* "a|b|c" as "a b c". */
static void print_choices(const char *choices) {
  for (; choices && *choices; choices++) putchar(*choices == '|' ? ' ' : *choices);
}

/* A text in single quotes, in which shells differ: `quote` stands for a quote, `backslash` for a backslash. */
static void print_quoted(const char *text, const char *quote, const char *backslash) {
  for (putchar('\''); *text; text++) {
    if (*text == '\'') {
      fputs(quote, stdout);
    } else if (*text == '\\') {
      fputs(backslash, stdout);
    } else {
      putchar(*text);
    }
  }
  putchar('\'');
}

/* ---------------------------------------------------------------------------------------------------------------------
 * bash, and what it shares with zsh
 */

/* Words that name commands lead on. */
static void print_step(const command *self, const char *path) {
  if (self != &command_root) printf("      '%s') command='%s' ;;\n", path, path);
}

static void print_walk(void) {
  printf("    case \"$command $word\" in\n");
  visit_all(print_step);
  printf("    esac\n");
}

static void bash_values(const command *self, const char *path) {
  static const char *const actions[] = {"", "files=f ", "files=d "};
  for (const command_option *option = self->options; option && option->name; option++) {
    if (!option->argument) continue;
    printf("    '%s --%s') ", path, option->name);
    if (words_of(option)) {
      printf("values='");
      print_choices(words_of(option));
      printf("' ;;\n");
    } else {
      printf("%s;;\n", actions[place_of(option->argument)]);
    }
  }
}

static void bash_words(const command *self, const char *path) {
  static const char *const files[] = {"", "          files=f\n", "          files=d\n", "          files=m\n"};
  printf("        '%s')\n          options='--help", path);
  for (const command_option *option = self->options; option && option->name; option++) printf(" --%s", option->name);
  printf("'\n          commands='");
  for (int i = 0; self->subcommands && self->subcommands[i]; i++) printf(" %s", self->subcommands[i]->name);
  printf("'\n          words='");
  print_choices(self->operand_words);
  printf("'\n%s          ;;\n", files[place_of_operands(self)]);
}

static void print_bash(void) {
  printf("# Completion of helio for bash, written by 'helio completion bash'.\n"
         "_helio() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "  local command=helio word values='' options='' commands='' words='' files=''\n"
         "  # --option=value comes in three words.\n"
         "  if [[ $current == '=' ]]; then\n"
         "    current=''\n"
         "  elif [[ $previous == '=' ]]; then\n"
         "    previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "  fi\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n");
  print_walk();
  printf("  done\n  case \"$command $previous\" in\n");
  visit_all(bash_values);
  printf("    *)\n      case $command in\n");
  visit_all(bash_words);
  printf("      esac\n"
         "      values=\"$commands $words\"\n"
         "      if [[ $current == -* || -z $commands$words$files ]]; then values=$options files=''; fi\n"
         "      ;;\n"
         "  esac\n"
         "  if [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} == help ]]; then values=$commands files=''; fi\n"
         "  mapfile -t COMPREPLY < <(\n"
         "    compgen -W \"$values\" -- \"$current\"\n"
         "    if [[ $files == m ]]; then\n"
         "      compgen -f -X '!*.safetensors' -- \"$current\"\n"
         "      compgen -d -- \"$current\"\n"
         "    elif [[ -n $files ]]; then\n"
         "      compgen -\"$files\" -- \"$current\"\n"
         "    fi\n"
         "  )\n"
         "  if [[ -n $files ]]; then compopt -o filenames 2>/dev/null; fi\n"
         "} &&\n"
         "  complete -F _helio helio\n");
}

/* ---------------------------------------------------------------------------------------------------------------------
 * zsh
 */

static void zsh_quote(const char *name, const char *help) {
  char text[400];
  snprintf(text, sizeof text, "%s:%s", name, help);
  printf(" ");
  print_quoted(text, "'\\''", "\\\\");
}

static void zsh_values(const command *self, const char *path) {
  static const char *const actions[] = {"_message value", "_files", "_files -/"};
  for (const command_option *option = self->options; option && option->name; option++) {
    if (!option->argument) continue;
    printf("    '%s --%s') ", path, option->name);
    if (words_of(option)) {
      printf("compadd -- ");
      print_choices(words_of(option));
    } else {
      printf("%s", actions[place_of(option->argument)]);
    }
    printf("; return ;;\n");
  }
}

static void zsh_words(const command *self, const char *path) {
  char name[100];
  printf("    '%s')\n      options=(", path);
  for (const command_option *option = self->options; option && option->name; option++) {
    snprintf(name, sizeof name, "--%s", option->name);
    zsh_quote(name, option->help);
  }
  zsh_quote("--help", "print help and exit");
  printf(")\n      choices=(");
  for (int i = 0; self->subcommands && self->subcommands[i]; i++) {
    zsh_quote(self->subcommands[i]->name, self->subcommands[i]->summary);
  }
  printf(")\n");
  if (self->operand_words) {
    printf("      operands=(");
    print_choices(self->operand_words);
    printf(")\n");
  }
  place files = place_of_operands(self);
  printf("%s%s      ;;\n", files ? "      files=yes\n" : "",
         files == SAVED_MODELS ? "      pattern=(-g '*.safetensors')\n" : "");
}

static void print_zsh(void) {
  printf("#compdef helio\n"
         "# Completion of helio for zsh, written by 'helio completion zsh'.\n"
         "_helio() {\n"
         "  local command=helio word previous=${words[CURRENT-1]} files=''\n"
         "  local -a options choices operands pattern\n"
         "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n");
  print_walk();
  printf("  done\n"
         "  if [[ $PREFIX == --*=* ]]; then\n"
         "    previous=${PREFIX%%%%=*}\n"
         "    compset -P '*='\n"
         "  fi\n"
         "  case \"$command $previous\" in\n");
  visit_all(zsh_values);
  printf("  esac\n  case $command in\n");
  visit_all(zsh_words);
  printf("  esac\n"
         "  if (( CURRENT > 2 )) && [[ $words[2] == help ]]; then\n"
         "    options=() operands=() files=''\n"
         "  fi\n"
         "  choices+=($operands)\n"
         "  if [[ $PREFIX == -* || -z $files && $#choices -eq 0 ]]; then\n"
         "    _describe -o option options\n"
         "    return\n"
         "  fi\n"
         "  if [[ -n $files ]]; then _files \"${pattern[@]}\"; fi\n"
         "  if (( $#choices )); then _describe word choices; fi\n"
         "}\n"
         "if [[ ${funcstack[1]} == _helio ]]; then _helio \"$@\"; else compdef _helio helio; fi\n");
}

/* ---------------------------------------------------------------------------------------------------------------------
 * fish
 */

/* Commands are offered behind `helio help` as well, all else where the command is run. */
static void fish_begin(const char *where, const char *path) {
  printf("complete -c helio -n '__helio_%s %s' ", where, path);
}

static void fish_help(const char *help) {
  printf("-d ");
  print_quoted(help, "\\'", "\\\\");
  printf("\n");
}

static void fish_option(const command_option *option, const char *path) {
  static const char *const actions[] = {"-x ", "-rF ", "-xa '(__fish_complete_directories)' "};
  fish_begin("runs", path);
  printf("-l %s ", option->name);
  if (words_of(option)) {
    printf("-xa '");
    print_choices(words_of(option));
    printf("' ");
  } else if (option->argument) {
    printf("%s", actions[place_of(option->argument)]);
  }
  fish_help(option->help);
}

static void fish_words(const command *self, const char *path) {
  for (const command_option *option = self->options; option && option->name; option++) fish_option(option, path);
  for (int i = 0; self->subcommands && self->subcommands[i]; i++) {
    fish_begin("at", path);
    printf("-a %s ", self->subcommands[i]->name);
    fish_help(self->subcommands[i]->summary);
  }
  if (self->operand_words) {
    fish_begin("runs", path);
    printf("-a '");
    print_choices(self->operand_words);
    printf("'\n");
  }
  if (place_of_operands(self)) { /* fish, which cannot leave files out, offers all of them */
    fish_begin("runs", path);
    printf("-F\n");
  }
}

static void fish_name(const command *self, const char *path) {
  if (self != &command_root) printf(" '%s'", path);
}

static void print_fish(void) {
  printf("# Completion of helio for fish, written by 'helio completion fish'.\n"
         "function __helio_at\n"
         "  set -l path helio\n"
         "  set -l known");
  visit_all(fish_name);
  printf("\n"
         "  for word in (commandline -opc)[2..-1]\n"
         "    if contains -- \"$path $word\" $known\n"
         "      set path \"$path $word\"\n"
         "    end\n"
         "  end\n"
         "  test \"$path\" = \"$argv\"\n"
         "end\n"
         "function __helio_runs\n"
         "  set -l words (commandline -opc)\n"
         "  test \"$words[2]\" != help; and __helio_at $argv\n"
         "end\n"
         "complete -c helio -f\n"
         "complete -c helio -s h -l help -d 'print help and exit'\n");
  visit_all(fish_words);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The command
 */

static const struct {
  const char *name;
  void (*print)(void);
} shells[] = {{"bash", print_bash}, {"fish", print_fish}, {"zsh", print_zsh}};

enum { SHELLS = sizeof shells / sizeof shells[0] };

static int run_completion(const command_line *line) {
  const char *names[SHELLS];
  for (int i = 0; i < SHELLS; i++) {
    names[i] = shells[i].name;
    if (strcmp(names[i], line->operands[0]) != 0) continue;
    shells[i].print();
    return EXIT_SUCCESS;
  }
  return command_unknown(line->path, "shell", line->operands[0], names, SHELLS, NULL);
}

const command command_completion = {
    .name = "completion",
    .summary = "Prints a script that makes a shell complete helio's command lines",
    .description =
        "SHELL is bash, fish or zsh. 'make install' puts all three where these shells look for them; without\n"
        "that, bash takes it from: source <(helio completion bash)",
    .operands = "SHELL",
    .operand_words = "bash|fish|zsh",
    .missing = "which shell? One of bash, fish and zsh",
    .run = run_completion,
};
