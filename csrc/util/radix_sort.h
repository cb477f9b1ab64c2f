/* radix_sort.h - a stable sort of 63-bit keys on several threads. */
#pragma once

#include <stdint.h>

/* Sorts keys, ascending, with their numbers. Equal keys keep their order. 0 or G6X_E_MEMORY. */
int radix_sort(int64_t n, uint64_t *key, int32_t *number, int threads);
