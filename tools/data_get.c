/* SPDX-License-Identifier: Apache-2.0 */
/* helio data get: brings the files of a known set to the cache folder, or another one. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data.h"
#include "data/folders.h"
#include "download.h"
#include "lazy_libraries.h"
#include "output.h"

enum { FROM, TO, TIMEOUT, JSON, QUIET };

static const command_option options[] = {
    [FROM] = {"from", "URL|DIR", NULL, "take the files from here"},
    [TO] = {"to", "DIR", NULL, "put them into the folder of the set's name here"},
    [TIMEOUT] = {"timeout", "SECONDS", NULL, "give up after this long without data (default: 30)"},
    [JSON] = {"json", NULL, NULL, "print JSON"},
    [QUIET] = {"quiet", NULL, NULL, "print nothing but errors and what --json asks for"},
    {0},
};

enum { USUAL_TIMEOUT = 30, MOST_TIMEOUT = 86400 };

/* What is asked for, and what came of it so far. */
typedef struct request {
  const command_line *line;
  const char *set;
  char folder[PATH_MAX]; /* where the files go */
  hi_folders made;       /* for that */
  int64_t timeout;
  json_t *results;
} request;

/* ---------------------------------------------------------------------------------------------------------------------
 * What is printed
 */

static void report(request *self, const char *path, const char *status, const download *job) {
  char size[OUTPUT_BYTES];
  json_t *object = json_object();
  output_set(object, "name", output_text(data_base_name(path)));
  output_set(object, "path", output_text(path));
  output_set(object, "status", output_text(status));
  output_set(object, "bytes", json_integer((json_int_t)job->sum.bytes));
  output_set(object, "sha256", output_text(job->sum.sha256));
  output_set(object, "url", job->url ? output_text(job->url) : json_null());
  output_set(object, "resumed_at", json_integer((json_int_t)job->resumed));
  output_set(object, "seconds", json_real(job->seconds));
  output_append(self->results, object);
  if (self->line->values[JSON] || self->line->values[QUIET]) return;
  printf("%s: %s, %s, verified", path, status, output_bytes(size, job->sum.bytes));
  if (job->resumed) printf(", %s of it from an earlier attempt", output_bytes(size, job->resumed));
  printf("\n");
  fflush(stdout); /* the next file may take long */
}

static int finish(request *self) {
  if (self->line->values[JSON]) {
    json_t *object = json_object();
    output_set(object, "name", output_text(self->set));
    output_set(object, "files", json_incref(self->results));
    output_json(object);
  }
  return EXIT_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Is it there already?
 */

static bool verify_path(const char *set, const char *path, download *job) {
  const data_file *expected = data_file_named(set, data_base_name(path));
  *job = (download){.path = path};
  return expected && checksum_is_good(path, expected, &job->sum);
}

/* Whether all files of the set are found where the library looks, and are right. */
static bool is_found(request *self) {
  helio_error ignored;
  char **files = helio_data_files(self->set, NULL);
  int count = files ? data_count(files) : 0;
  download *jobs = calloc((size_t)count + 1, sizeof *jobs);
  bool good = files && jobs;
  if (!files) helio_error_take(&ignored);
  for (int i = 0; good && i < count; i++) good = verify_path(self->set, files[i], &jobs[i]);
  for (int i = 0; good && i < count; i++) report(self, files[i], "already there", &jobs[i]);
  free(jobs);
  free(files);
  return good;
}

/* What was got is of use only if it is what programs find. */
static void warn_of_others(const request *self) {
  helio_error ignored;
  char **files = helio_data_files(self->set, NULL);
  size_t length = strlen(self->folder);
  bool same = files && strncmp(files[0], self->folder, length) == 0 && files[0][length] == '/';
  if (!files) helio_error_take(&ignored);
  bool wanted = !same && !self->line->values[QUIET];
  if (wanted && self->line->values[TO]) {
    command_tell(self->line->path, "HELIO_DATA_DIR=%s makes programs find it", self->line->values[TO]);
  } else if (wanted && files) {
    command_tell(self->line->path, "warning: programs find %s first", files[0]);
  }
  free(files);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Getting
 */

static bool exists(const char *folder, const char *name) {
  char path[PATH_MAX];
  return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && access(path, F_OK) == 0;
}

/* Is the file in the folder? `found` is the name that it has there, where it may lie unpacked. */
static bool find_file(const char *folder, const char *name, char found[NAME_MAX]) {
  snprintf(found, NAME_MAX, "%s", name);
  if (exists(folder, found)) return true;
  if (!command_ends_in(name, ".gz")) return false;
  found[strlen(name) - strlen(".gz")] = '\0';
  return exists(folder, found);
}

/* One file. `local` is the folder that the URL stands for, where files may lie unpacked; NULL: it is none. */
static download_status get_file(request *self, const char *url, const char *local, download *job) {
  char name[NAME_MAX], path[PATH_MAX], whole_url[2 * PATH_MAX];
  if (!local || !find_file(local, job->expected->name, name)) {
    snprintf(name, sizeof name, "%s", job->expected->name);
  }
  bool slash = *url && url[strlen(url) - 1] == '/';
  if (snprintf(path, sizeof path, "%s/%s", self->folder, name) >= (int)sizeof path ||
      snprintf(whole_url, sizeof whole_url, "%s%s%s", url, slash ? "" : "/", name) >= (int)sizeof whole_url) {
    snprintf(job->message, sizeof job->message, "%s: the path or address is too long", name);
    return DOWNLOAD_FAILED;
  }
  job->url = whole_url;
  job->path = path;
  download_status status = download_run(job);
  if (status == DOWNLOAD_ALREADY_THERE) job->url = NULL;
  if (status == DOWNLOAD_ALREADY_THERE) report(self, path, "already there", job);
  if (status == DOWNLOAD_DONE) report(self, path, local ? "copied" : "downloaded", job);
  return status;
}

/* All files of a source. DOWNLOAD_ABSENT only if the first is not there: then another form may be. */
static download_status get_files(request *self, const data_source *source, const char *url, const char *local,
                                 char message[DOWNLOAD_MESSAGE]) {
  for (int i = 0; i < source->count; i++) {
    download job = {
        .expected = &source->files[i], .timeout = self->timeout, .show_progress = !self->line->values[QUIET]};
    download_status status = get_file(self, url, local, &job);
    if (status == DOWNLOAD_DONE || status == DOWNLOAD_ALREADY_THERE) continue;
    snprintf(message, DOWNLOAD_MESSAGE, "%s", job.message);
    return i == 0 ? status : DOWNLOAD_FAILED;
  }
  return DOWNLOAD_DONE;
}

static int get_from_url(request *self, const char *url) {
  char message[DOWNLOAD_MESSAGE], first[DOWNLOAD_MESSAGE] = "";
  const data_source *source;
  download_status status = DOWNLOAD_ABSENT;
  for (int number = 0; status == DOWNLOAD_ABSENT && (source = data_source_of(self->set, number)); number++) {
    status = get_files(self, source, url ? url : source->url, NULL, message);
    if (number == 0) memcpy(first, message, sizeof first);
    if (!url) break; /* the place where it is known to be */
  }
  if (status == DOWNLOAD_DONE) return EXIT_SUCCESS;
  return command_failure(self->line->path, "%s", status == DOWNLOAD_ABSENT ? first : message);
}

/* In the folder of the set's name, or in the folder itself, in whichever form is there. */
static const data_source *find_form(const request *self, char folder[PATH_MAX]) {
  const data_source *source;
  size_t length = strlen(folder);
  snprintf(folder + length, PATH_MAX - length, "/%s", self->set);
  for (int place = 0; place < 2; place++) {
    if (place == 1) folder[length] = '\0';
    for (int number = 0; (source = data_source_of(self->set, number)); number++) {
      char name[NAME_MAX];
      if (find_file(folder, source->files[0].name, name)) return source;
    }
  }
  return NULL;
}

/* The absolute path; false with errno if it is not a folder. */
static bool resolve_folder(const char *given, char folder[PATH_MAX]) {
  struct stat about;
  if (!realpath(given, folder) || stat(folder, &about) != 0) return false;
  if (S_ISDIR(about.st_mode)) return true;
  errno = ENOTDIR;
  return false;
}

static int get_from_folder(request *self, const char *given) {
  char folder[PATH_MAX], message[DOWNLOAD_MESSAGE];
  if (!resolve_folder(given, folder)) {
    return command_failure(self->line->path, "cannot read the folder %s: %s", given, strerror(errno));
  }
  const data_source *source = find_form(self, folder);
  if (!source) {
    source = data_source_of(self->set, 0);
    return command_failure(self->line->path, "neither %s nor %s/%s has the files of %s, such as %s", given, given,
                           self->set, self->set, source->files[0].name);
  }
  char *url = download_folder_url(folder);
  if (!url) return command_failure(self->line->path, "out of memory");
  download_status status = get_files(self, source, url, folder, message);
  free(url);
  return status == DOWNLOAD_DONE ? EXIT_SUCCESS : command_failure(self->line->path, "%s", message);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The command
 */

static int check_places(const command_line *line) {
  const char *from = line->values[FROM];
  if (!from || !strstr(from, "://")) return EXIT_SUCCESS;
  if (strncmp(from, "http://", 7) == 0 || strncmp(from, "https://", 8) == 0 || strncmp(from, "file://", 7) == 0) {
    return EXIT_SUCCESS;
  }
  return command_usage_error(line->path, "--from takes http://, https://, file:// or a folder, not '%s'", from);
}

/* Where the files go, which is made. Others need not look into a cache: 0700, as XDG has it. */
static int make_target(request *self) {
  const char *to = self->line->values[TO];
  char *cache = helio_data_cache();
  if (!cache) return command_library_failure(self->line->path);
  int length = snprintf(self->folder, sizeof self->folder, "%s/%s", to ? to : cache, self->set);
  bool homeless = !to && !*cache;
  free(cache);
  if (homeless) {
    return command_failure(self->line->path, "there is no cache folder, because neither XDG_CACHE_HOME nor HOME is an "
                                             "absolute path; --to DIR names another one");
  }
  if (length >= (int)sizeof self->folder) {
    return command_failure(self->line->path, "cannot make the folder %s: %s", self->folder, strerror(ENAMETOOLONG));
  }
  if (hi_folders_make(&self->made, self->folder, to ? 0777 : 0700) == HELIO_OK) return EXIT_SUCCESS;
  return command_failure(self->line->path, "%s", self->made.problem);
}

static int get(request *self) {
  const char *from = self->line->values[FROM];
  if (!from && !self->line->values[TO] && is_found(self)) return finish(self);
  int status = make_target(self);
  if (status != EXIT_SUCCESS) return status;
  bool is_folder = from && !strstr(from, "://");
  status = is_folder ? get_from_folder(self, from) : get_from_url(self, from);
  if (status != EXIT_SUCCESS) hi_folders_remove_empty(self->folder, self->made.made);
  if (status != EXIT_SUCCESS) return status;
  warn_of_others(self);
  return finish(self);
}

static int run_get(const command_line *line) {
  request self = {.line = line, .timeout = USUAL_TIMEOUT};
  char message[DOWNLOAD_MESSAGE];
  self.set = line->operands[0];
  int status = data_check_name(line->path, "set of data", self.set);
  if (status == EXIT_SUCCESS) status = command_integer(line, options, TIMEOUT, 1, MOST_TIMEOUT, &self.timeout);
  if (status == EXIT_SUCCESS) status = check_places(line);
  if (status != EXIT_SUCCESS) return status;
  if (!data_source_of(self.set, 0)) return command_failure(line->path, "no source of %s is known", self.set);
  if (!lazy_open(message, sizeof message)) return command_failure(line->path, "%s", message);
  self.results = json_array();
  status = get(&self);
  json_decref(self.results);
  return status;
}

const command command_data_get = {
    .name = "get",
    .summary = "Downloads a known data set to the cache folder",
    .description =
        "Downloads missing files, continues where an earlier attempt ended, and keeps a file only if its\n"
        "SHA-256 is right. --from takes another place that has the same files: http://, https://, file:// or\n"
        "a folder.",
    .operands = "NAME",
    .operand_words = DATA_WORDS,
    .missing = "which set of data? 'helio data list' lists them",
    .options = options,
    .run = run_get,
};
