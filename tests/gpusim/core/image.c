/* SPDX-License-Identifier: Apache-2.0 */
/* What a compiler hands over and a module is loaded from: a header of ours with an ELF file of the host behind it. For
 * an architecture that is of no device it is a text in the manner of PTX, which says what PTX says at its beginning. */
#define _GNU_SOURCE
#include "compile.h"
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static const char magic[16] = "gpusim kernels\n";
static const char text_start[] = "//\n// Made by gpusim, for gpusim alone.\n//\n\n";
static const char data_start[] = "// gpusim: ";

/* What CUDA 13.0 writes, and the driver that reads it first: text of a newer language is refused by an older driver,
 * and code of a device is promised to run only with drivers of the compiler's major version or newer ("minor version
 * compatibility"). */
enum { TEXT_VERSION = 9, TEXT_DRIVER = 13000 };

/* Numbers of CUDA's driver that HIP does not have. */
enum { UNSUPPORTED_PTX = 222, INVALID_PTX = 218 };

sim_image *sim_image_make(sim_vendor vendor, const sim_target *target, const void *elf, size_t bytes) {
  sim_image *image = calloc(1, sizeof *image + bytes);
  if (!image) return NULL;
  memcpy(image->magic, magic, sizeof magic);
  image->vendor = vendor;
  image->is_virtual = target->is_virtual;
  memcpy(image->architecture, target->architecture, sizeof image->architecture);
  image->bytes = bytes;
  memcpy(image + 1, elf, bytes);
  image->sum = sim_sum(image + 1, bytes);
  image->head = sim_sum(image, offsetof(sim_image, head));
  return image;
}

bool sim_image_has_head(const sim_image *image) {
  return !memcmp(image->magic, magic, sizeof magic) && image->head == sim_sum(image, offsetof(sim_image, head));
}

bool sim_image_is_whole(const sim_image *image) {
  return image->sum == sim_sum(image + 1, image->bytes);
}

size_t sim_image_bytes(const sim_image *image) {
  return sizeof *image + image->bytes;
}

char *sim_image_to_text(const sim_image *image, size_t *bytes) {
  size_t size = sim_image_bytes(image), length = 2 * size + 256;
  char *text = malloc(length);
  if (!text) return NULL;
  const char *architecture = strchr(image->architecture, '_');
  int at = snprintf(text, length, "%s.version %d.0\n.target sm%s\n.address_size 64\n\n%s", text_start, TEXT_VERSION,
                    architecture ? architecture : "", data_start);
  const unsigned char *data = (const unsigned char *)image;
  for (size_t i = 0; i < size; i++, at += 2) {
    text[at] = "0123456789abcdef"[data[i] >> 4];
    text[at + 1] = "0123456789abcdef"[data[i] & 15];
  }
  text[at++] = '\n';
  text[at++] = 0;
  *bytes = (size_t)at;
  return text;
}

static int digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads what a program gives without saying how much there is, and does not fall over its end. */
static bool peek(void *to, const void *from, size_t bytes) {
  struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)from, bytes};
  ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
  if (got < 0 && errno != EFAULT) memcpy(to, from, bytes); /* not allowed here */
  return got < 0 ? errno != EFAULT : (size_t)got == bytes;
}

/* A text of a program, in memory of malloc; NULL: it has no end that could be read. */
static char *peek_text(const char *from) {
  char *text = NULL;
  size_t length = 0;
  for (;;) {
    size_t piece = SIM_PAGE - (uintptr_t)(from + length) % SIM_PAGE;
    char *longer = realloc(text, length + piece);
    if (longer) text = longer;
    if (!longer || !peek(text + length, from + length, piece)) break;
    if (memchr(text + length, 0, piece)) return text;
    length += piece;
  }
  free(text);
  return NULL;
}

/* The image in a text of ours; NULL if there is none. */
static sim_image *from_text(const char *from) {
  char *text = peek_text(from);
  const char *data = text ? strstr(text, data_start) : NULL;
  data = data ? data + sizeof data_start - 1 : "";
  size_t size = strspn(data, "0123456789abcdef") / 2;
  unsigned char *image = size >= sizeof(sim_image) ? malloc(size) : NULL;
  for (size_t i = 0; image && i < size; i++)
    image[i] = (unsigned char)(digit(data[2 * i]) << 4 | digit(data[2 * i + 1]));
  free(text);
  if (image && sim_image_has_head((sim_image *)image) && sim_image_bytes((sim_image *)image) == size)
    return (sim_image *)image;
  free(image);
  return NULL;
}

static sim_image *from_code(const void *from) {
  sim_image head;
  if (!peek(&head, from, sizeof head) || !sim_image_has_head(&head)) return NULL;
  sim_image *image = malloc(sim_image_bytes(&head));
  if (image && peek(image, from, sim_image_bytes(&head))) return image;
  free(image);
  return NULL;
}

/* "sm_90a" -> 90 and a. */
static int architecture_number(const char *name, char *suffix) {
  char *end;
  const char *digits = strchr(name, '_');
  int number = (int)strtol(digits ? digits + 1 : name, &end, 10);
  *suffix = *end;
  return number;
}

/* Code of a device runs on those of its generation that are not older; a text is translated for anything not older. */
static bool cuda_fits(const sim_image *image, const char *device) {
  char image_suffix, device_suffix;
  int made_for = architecture_number(image->architecture, &image_suffix);
  int number = architecture_number(device, &device_suffix);
  if (image_suffix && (made_for != number || image_suffix != device_suffix)) return false;
  if (image->is_virtual) return made_for <= number;
  return made_for / 10 == number / 10 && made_for <= number;
}

/* The same processor, and of the features that the image asks for none that the device has otherwise. */
static bool hip_fits(const sim_image *image, const char *device) {
  size_t length = strcspn(image->architecture, ":");
  if (length != strcspn(device, ":") || strncmp(image->architecture, device, length) != 0) return false;
  for (const char *feature = strchr(image->architecture, ':'); feature; feature = strchr(feature + 1, ':')) {
    char name[32];
    size_t whole = strcspn(feature + 1, ":") + 1;
    snprintf(name, sizeof name, "%.*s", (int)whole - 1, feature);
    const char *own = strstr(device, name);
    if (own && strncmp(own, feature, whole) != 0) return false;
  }
  return true;
}

sim_image *sim_image_read(sim_device *device, const void *data, sim_status *status) {
  char start[2];
  sim_vendor vendor = sim_device_vendor(device);
  bool is_text = vendor == SIM_CUDA && peek(start, data, sizeof start) && !memcmp(start, text_start, sizeof start);
  *status = is_text ? (sim_status)INVALID_PTX : SIM_INVALID_IMAGE;
  if (vendor == SIM_CUDA && sim_setup()->driver < TEXT_DRIVER) {
    if (is_text) *status = (sim_status)UNSUPPORTED_PTX;
    return NULL;
  }
  sim_image *image = is_text ? from_text(data) : from_code(data);
  if (!image) return NULL;
  const char *own = sim_setup()->architecture[vendor];
  if (image->vendor == (uint32_t)vendor && sim_image_is_whole(image))
    *status = (vendor == SIM_CUDA ? cuda_fits(image, own) : hip_fits(image, own)) ? SIM_OK : SIM_NO_BINARY;
  if (*status == SIM_OK) return image;
  free(image);
  return NULL;
}
