/* SPDX-License-Identifier: Apache-2.0 */
#include "tensile.h"

#include "../gpu/library.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder as rocBLAS finds it: told by its variable, else the first of these that there is. Some distributions have
 * taught theirs other places, so that one which is not found here is no proof. */
static bool find_folder(void *library, char *folder, size_t size) {
  static const char *const places[] = {"/../../Tensile/library", "/library", "/../rocblas/library", "/rocblas/library"};
  const char *told = getenv("ROCBLAS_TENSILE_LIBPATH");
  if (told != NULL) {
    snprintf(folder, size, "%s", told);
    return true;
  }
  char path[PATH_MAX];
  gpu_library_path(library, path, sizeof path);
  const char *slash = strrchr(path, '/');
  for (size_t i = 0; slash != NULL && i < sizeof places / sizeof places[0]; i++) {
    snprintf(folder, size, "%.*s%s", (int)(slash - path), path, places[i]);
    if (access(folder, R_OK | X_OK) == 0) return true;
  }
  return false;
}

/* "TensileLibrary_lazy_gfx90a.dat" and "TensileLibrary_gfx90a.yaml" tell what there is for one architecture,
 * "TensileLibrary.dat" for all whose code lies beside it. */
static bool has_files(const char *folder, const char *processor) {
  bool index = false, code = false, merged = false;
  DIR *list = opendir(folder);
  if (list == NULL) return false;
  size_t length = strlen(processor);
  for (struct dirent *one = readdir(list); one != NULL; one = readdir(list)) {
    const char *name = one->d_name, *found = strstr(name, processor);
    bool of_it = found != NULL && strchr("._-", found[length]) != NULL; /* gfx90a1 would be another one */
    bool tells = strncmp(name, "TensileLibrary", strlen("TensileLibrary")) == 0;
    code = code || of_it;
    index = index || (of_it && tells);
    merged = merged || strcmp(name, "TensileLibrary.dat") == 0 || strcmp(name, "TensileLibrary.yaml") == 0;
  }
  closedir(list);
  return index || (merged && code);
}

bool hip_tensile_serves(void *library, const char *architecture, char *reason, size_t size) {
  char folder[PATH_MAX], inner[PATH_MAX + 64], processor[64];
  snprintf(processor, sizeof processor, "%.*s", (int)strcspn(architecture, ":"), architecture);
  if (!find_folder(library, folder, sizeof folder)) return true;
  snprintf(inner, sizeof inner, "%s/%s", folder, processor); /* newer ones have a folder for each */
  if (has_files(access(inner, R_OK | X_OK) == 0 ? inner : folder, processor)) return true;
  snprintf(reason, size, "it has no TensileLibrary file for %s in %s, and would end the process", processor, folder);
  return false;
}
