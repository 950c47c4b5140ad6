/* SPDX-License-Identifier: Apache-2.0 */
/* The address sanitizer sees a region as one allocation. Closing what is not in use lets it see the blocks. */
#ifndef HI_SANITIZE_H
#define HI_SANITIZE_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define HI_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HI_ADDRESS_SANITIZER 1
#endif
#endif

#ifdef HI_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
static inline void hi_poison(const void *memory, size_t bytes) {
  __asan_poison_memory_region(memory, bytes);
}
static inline void hi_unpoison(const void *memory, size_t bytes) {
  __asan_unpoison_memory_region(memory, bytes);
}
#else
static inline void hi_poison(const void *memory, size_t bytes) {
  (void)memory, (void)bytes;
}
static inline void hi_unpoison(const void *memory, size_t bytes) {
  (void)memory, (void)bytes;
}
#endif

#endif
