/* SPDX-License-Identifier: Apache-2.0 */
/* The part of ZIP that .npz files need: members that are stored or deflated, also with ZIP64; neither encrypted nor
 * split over disks. */
#ifndef HI_ZIP_H
#define HI_ZIP_H

#include "data/file.h"

typedef struct hi_zip_member {
  char *name;
  uint64_t entry;  /* of its entry in the directory: where errors point to */
  uint64_t header; /* of what stands before its data */
  uint64_t packed, size;
  uint32_t crc;
  uint32_t flags, method;
} hi_zip_member;

typedef struct hi_zip {
  hi_file *file;
  uint64_t directory; /* where the list of members begins, and so where their data end */
  hi_zip_member *members;
  int count;
} hi_zip;

/* Reads the list of members. `zip` is zero; it is to be closed whatever comes of it. */
helio_status hi_zip_open(hi_zip *zip, hi_file *file);
void hi_zip_close(hi_zip *zip);

/* NULL without an error if there is none of that name; with one if there are two. */
const hi_zip_member *hi_zip_find(const hi_zip *zip, const char *name);

/* The member's bytes, which are those of the archive where they are only stored. Checks their sum. NULL with the error
 * set; the reference is the caller's. */
hi_file *hi_zip_unpack(const hi_zip *zip, const hi_zip_member *member);

#endif
