/* Forces and jerks of a tree on its own particles or on targets. Reads a head, then masses,
 * positions and velocities of the sources and, if there are targets, their positions, velocities
 * and places among the sources; writes acc, jerk and pot. The target of no place is none. With
 * `refuse` all is done again with each allocation refused in turn. */
#include <stdio.h>
#include <stdlib.h>

#include "util/memory.h"
#include "tree/tree.h"

struct head {
    int64_t n, targets; /* targets < 0: the particles themselves */
    int32_t method, order, isa, threads, jerk, refuse;
    double theta, eps2;
};

static void *take(size_t count, size_t size)
{
    void *p = malloc(count * size + 1);
    if (!p || fread(p, size, count, stdin) != count) exit(2);
    return p;
}

/* What is asked for, of a tree that was built once without velocities before: what is not there is
 * not to be left over, nor asked for. */
static int forces(const struct head *h, const struct tree_input *in, const struct tree_input *on,
                  const int32_t *self, const double *eps2, const struct tree_forces *out)
{
    struct tree t = {0};
    struct fault f = {.quiet = 1};
    const struct tree_setting s = {h->method, h->order, h->theta, 0.0, h->isa};
    struct tree_input still = *in;
    int code = tree_build(&t, in, h->threads, &f);
    still.v = NULL;
    if (!code) code = tree_build(&t, &still, h->threads, &f);
    if (!code && h->jerk) {
        code = tree_sum(&t, &s, NULL, NULL, eps2, NULL, out, NULL, &f);
        code = code == G6X_E_NULL ? tree_build(&t, in, h->threads, &f) : 1;
    }
    if (!code) code = tree_sum(&t, &s, on, self, eps2, NULL, out, NULL, &f);
    tree_build_free(&t);
    return code;
}

int main(void)
{
    struct head *h = take(1, sizeof *h);
    const int own = h->targets < 0;
    const size_t n = (size_t)h->n, sums = own ? n : (size_t)h->targets, most = sums > n ? sums : n;
    struct tree_input in = {.n = h->n}, on = {.n = h->targets};
    int32_t *self = NULL;
    in.m = take(n, sizeof *in.m);
    in.x = take(n, sizeof *in.x);
    in.v = take(n, sizeof *in.v);
    if (!own) {
        on.x = take(sums, sizeof *on.x);
        on.v = take(sums, sizeof *on.v);
        self = take(sums, sizeof *self);
    }
    double (*acc)[3] = calloc(sums + 1, sizeof *acc), (*jerk)[3] = calloc(sums + 1, sizeof *jerk);
    double *pot = calloc(sums + 1, sizeof *pot), *eps2 = calloc(most + 1, sizeof *eps2);
    for (size_t k = 0; k < most; k++) eps2[k] = h->eps2;
    const struct tree_forces out = {acc, pot, h->jerk ? jerk : NULL};
    int code = forces(h, &in, own ? NULL : &on, self, eps2, &out);
    for (long k = 1; h->refuse && !code; k++) {
        memory_fail_at(k);
        code = forces(h, &in, own ? NULL : &on, self, eps2, &out);
        if (memory_fail_at(0)) break;
        code = code == G6X_E_MEMORY ? 0 : 3;
    }
    fwrite(acc, sizeof *acc, sums, stdout);
    fwrite(jerk, sizeof *jerk, sums, stdout);
    fwrite(pot, sizeof *pot, sums, stdout);
    void *all[] = {h,    (void *)in.m, (void *)in.x, (void *)in.v, (void *)on.x, (void *)on.v,
                   self, acc,          jerk,         pot,          eps2};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) free(all[k]);
    return code;
}
