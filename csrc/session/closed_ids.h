/* closed_ids.h - the cluster ids closed since the last open. Calls on them are errors and do not
 * open them again. 16 bytes per id; the caller holds the registry's lock. */
#pragma once

#include <stdint.h>

/* Reserves capacity for `ids` ids, so that adding them cannot fail. 0 or G6X_E_MEMORY. */
int session_closed_ids_reserve(int64_t ids);
void session_closed_ids_add(int64_t id);
int session_closed_ids_has(int64_t id);
/* How many there are. */
int64_t session_closed_ids_count(void);
void session_closed_ids_clear(void);
