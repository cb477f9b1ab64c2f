/* force.c - a force call of one device. */
#include "cuda/force.h"

#include "cuda/jparticles.h"

static int start(struct cuda *c, const struct targets *targets, int share, int shares,
                 struct fault *f)
{
    const int64_t blocks = cuda_all_blocks(c);
    int code = cuda_sum_clean_up(c, f);
    if (code) return code;
    c->targets = *targets;
    c->soft = 0;
    c->soft_alike = 1;
    for (int i = 0; i < (targets->on_device ? 1 : targets->ni); i++) {
        c->soft |= targets->eps2[i] > 0.0;
        c->soft_alike &= targets->eps2[i] == targets->eps2[0];
    }
    cuda_jparticles_set_blocks(c, blocks * share / shares, blocks * (share + 1) / shares);
    c->kernel = cuda_launch_config_kernel(c, targets->ni);
    c->launched = 0;
    code = cuda_iparticles_reserve(c, targets->ni, f);
    if (!code) code = cuda_results_reserve(c, targets->ni, f);
    if (targets->on_device && !targets->x)
        c->guess = 0; /* those of turn.c, which are there */
    else if (!code && targets->on_device)
        code = cuda_iparticles_load(c, f);
    if (!code && !c->nj) {
        if (targets->fill) targets->fill(targets->context, 0, targets->ni);
        c->settled = 0;
        cuda_results_clear(c);
        c->has = WANT_JERK | WANT_NEAREST;
    } else if (!code) {
        code = cuda_sum_all(c, c->guess, shares > 1 || c->rows_guess > 0, f);
    }
    return code;
}

int cuda_force_start(struct cuda *c, const struct upload *u, const struct targets *targets,
                     int share, int shares, struct fault *f)
{
    int code = cuda_device_enter(c, f);
    if (code) return code;
    code = cuda_jparticles_update(c, u, f);
    if (!code) code = start(c, targets, share, shares, f);
    cuda_device_leave(c);
    return code;
}

static int finish(struct cuda *c, unsigned want, int count, struct fault *f)
{
    int code = 0;
    c->guess = want & WANT_NEAREST;
    if ((c->has & want & WANT_NEAREST) != (want & WANT_NEAREST))
        code = cuda_sum_all(c, want, c->has_rows, f);
    /* what is there already is copied faster by many threads at the end */
    if (!code && count < c->targets.ni && cuda_results_are_there(c)) return 1;
    if (!code) code = cuda_results_wait(c, count, f);
    if (!code && !c->settled && c->any_left) {
        if (count < c->targets.ni) return 1;
        c->rows_guess = ROWS_CALLS; /* it will happen again */
        jmemory_commit(c->memory);
        code = cuda_partials_settle(c, f);
    }
    if (c->rows_guess) c->rows_guess--;
    return code;
}

int cuda_force_finish(struct cuda *c, unsigned want, int count, struct fault *f)
{
    int code = cuda_device_enter(c, f);
    if (code) return code;
    code = finish(c, want, count, f);
    cuda_device_leave(c);
    return code;
}
