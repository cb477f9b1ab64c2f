/* field_time.h - a caller's field (struct g6x_field) at one time. */
#pragma once

#include "shared/field.h"

struct g6x_field;

/* What is wrong with a field, or NULL. */
const char *field_time_wrong(const struct g6x_field *f);
/* The field at `time`, none for NULL; 0, or -1 if the orbit of its frame does not reach there. */
int field_time_at(const struct g6x_field *f, double time, struct field *to);
