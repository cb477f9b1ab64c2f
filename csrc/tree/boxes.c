/* boxes.c - what is made in one box, and what in several: see boxes.h. */
#include "tree/boxes.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "g6lib.h"
#include "tree/pieces.h"
#include "tree/sum.h"

void tree_boxes_free(struct tree *t)
{
    tree_pieces_free(t->pieces);
    tree_softening_free(&t->own);
    tree_build_free(t);
}

int tree_boxes_build(struct tree *t, const struct tree_input *in, const struct tree_whole *whole,
                     int threads, struct error *err)
{
    tree_pieces_free(t->pieces);
    t->pieces = NULL;
    int code = tree_build_one(t, in, whole, threads);
    const int resolved = code || !in->n || tree_pieces_is_resolved(t, in);
    if (!resolved && whole)
        return error_set(err, G6X_E_RANGE,
                         "the box of all ranks' particles does not resolve those of this tree: "
                         "some stand too close together");
    if (!resolved) code = tree_pieces_make(t, in);
    if (code)
        return error_set(err, G6X_E_MEMORY, "out of memory for a tree of %lld particles",
                         (long long)in->n);
    return 0;
}

int tree_boxes_sum(const struct tree *t, const struct tree_setting *s,
                   const struct tree_targets *targets, const struct tree_forces *out,
                   struct tree_counts *counts, struct error *err)
{
    *counts = (struct tree_counts){0};
    if (!targets->n) return 0;
    if (out->jerk && (!t->points.vx || (targets->x && !targets->v)))
        return error_set(err, G6X_E_NULL, "jerks of a tree without velocities");
    /* squares that single precision does not hold, in units of the box */
    const double most = ldexp(FLT_MAX, 2 * t->box.length);
    for (int64_t i = 0; !t->pieces && i < targets->n && t->points.n > 1; i++)
        if (targets->eps2[i] > most)
            return error_set(
                err, G6X_E_RANGE,
                "eps = %g is more than 1e18 times the size of a tree's particles: sum them "
                "directly",
                sqrt(targets->eps2[i]));
    const int own = tree_pair_term(t, s) != PAIR_FORCE;
    if ((!t->pieces ? tree_sum_one
         : own      ? tree_softening_sum
                    : tree_pieces_sum)(t, s, targets, out, counts))
        return error_set(err, G6X_E_MEMORY,
                         "out of memory for the forces of a tree on %lld targets",
                         (long long)targets->n);
    return 0;
}
