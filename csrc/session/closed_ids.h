/* closed_ids.h - the cluster ids that were closed since the last open: calls on them are refused,
 * and do not open them again. 16 bytes an id; the caller holds the registry's lock. */
#pragma once

#include <stdint.h>

/* Allocates memory for so many ids, so that to add them cannot fail; 0 or G6X_E_MEMORY. */
int session_closed_ids_reserve(int64_t ids);
void session_closed_ids_add(int64_t id);
int session_closed_ids_has(int64_t id);
/* How many there are. */
int64_t session_closed_ids_count(void);
void session_closed_ids_clear(void);
