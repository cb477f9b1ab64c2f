/* memory.h - the only allocation of the library. */
#pragma once

#include <stddef.h>

/* Zeroed memory aligned to a cache line, or NULL; large pieces lie on huge pages where the
 * system has them. */
void *memory_zeroed(size_t bytes);
/* Grows a piece (NULL: a new one) to more bytes, the new ones zero; NULL if there is no
 * capacity, the old piece being as it was. Large pieces move without being copied. */
void *memory_grown(void *p, size_t bytes);
void memory_free(void *p);

/* Several arrays, up to one without a pointer: where the pointer to each is, and its bytes. */
struct memory_array {
    void *pointer;
    size_t bytes;
};
#define MEMORY_ARRAY(p, n) {&(p), (size_t)(n) * sizeof *(p)}
/* Grows each by itself, so that what there was is intact whichever fails. 0 or G6X_E_MEMORY. */
int memory_grow_all(const struct memory_array *array);
/* Frees all; their pointers become NULL. */
void memory_free_all(const struct memory_array *array);

#ifdef GRAPE6_FAULT_INJECTION
/* Test builds: the n-th allocation from now fails, once (0: none). Returns how many were left
 * to the last one set, 0 if it has failed. */
long memory_fail_at(long n);
#endif
