/* by_row.h - mode auto, for a backend that sums all rows of a call in one mode: two of its states,
 * one for the rows as in mode grape, one for those in double (shared/fine.h). A row has the bits
 * that it has in the mode in which it is summed. In other modes only the first state is used. */
#pragma once

#include "core/backend.h"

enum { ROWS_COARSE, ROWS_FINE, ROW_KINDS };

/* The rows of one kind, in order. `row` are their numbers in the call. */
struct rows_of_kind {
    int n;
    int32_t *row;
    struct rows of;
};

struct by_row {
    const struct backend *inner;
    void *state[ROW_KINDS]; /* the second is opened when it is needed */
    struct options options; /* of open */
    int choice;
    struct upload upload; /* of the last set_j; its options and scales stay where they are */
    int sent[ROW_KINDS];  /* the state has it */

    struct targets targets;
    int first, end; /* the kinds that the call has: one, or both */
    int capacity;
    struct rows_of_kind kind[ROW_KINDS];
    /* By row, merged from those of both kinds. */
    double *sum[NSUM];
    int32_t *nearest, *index;
    struct partial_row *partial;
    struct neighbour_memory lists;
};

/* Rows that are copied at a time; they divide the rows of each request but the last. */
enum { ROWS_AT_ONCE = 256 };
/* Copies rows of a call from the caller's arrays; those behind them, or all if `from` is NULL, are
 * there already. */
void by_row_copy(struct caller_arrays *from, int first, int count);

int by_row_open(const struct backend *inner, const struct options *o, int choice, void **state,
                struct error *err);
int by_row_set_j(void *state, const struct upload *upload, struct error *err);
int by_row_submit(void *state, const struct targets *targets, struct error *err);
int by_row_collect(void *state, unsigned want, int count, struct results *results,
                   struct error *err);
int by_row_partials(void *state, const struct partial_row **rows, struct error *err);
int by_row_neighbours(void *state, int first, int count, const double *h2,
                      struct neighbour_lists *lists, struct error *err);
int64_t by_row_zero_distances(void *state);
void by_row_describe(void *state, const struct options *o, char *buffer, int length);
void by_row_close(void *state);
/* Opens the state of a kind if it is not open. */
int by_row_have(struct by_row *b, int kind, struct error *err);
/* The same, and gives it the j particles. */
int by_row_ready(struct by_row *b, int kind, struct error *err);
static inline int by_row_has_both(const struct by_row *b) { return b->end - b->first == ROW_KINDS; }

#define BY_ROW_FUNCTIONS                                                                           \
    .set_j = by_row_set_j, .submit = by_row_submit, .collect = by_row_collect,                     \
    .partials = by_row_partials, .neighbours = by_row_neighbours,                                  \
    .zero_distances = by_row_zero_distances, .describe = by_row_describe, .close = by_row_close
