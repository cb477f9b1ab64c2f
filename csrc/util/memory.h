/* memory.h - the only allocation of the library. */
#ifndef GRAPE6_MEMORY_H
#define GRAPE6_MEMORY_H

#include <stddef.h>

/* Zeroed memory aligned to a cache line, or NULL; large pieces lie on huge pages where the
 * system has them. */
void *memory_zeroed(size_t bytes);
/* Grows a piece (NULL: a new one) to more bytes, the new ones zero; NULL if there is no
 * room, the old piece being as it was. Large pieces move without being copied. */
void *memory_grown(void *p, size_t bytes);
void memory_free(void *p);

#ifdef GRAPE6_FAULT_INJECTION
/* Test builds: the n-th allocation from now fails, once (0: none). Returns how many were left
 * to the last one set, 0 if it has failed. */
long memory_fail_at(long n);
#endif

#endif
