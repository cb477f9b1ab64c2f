/* force.c - a force call of one device. */
#include "cuda/force.h"

#include "cuda/jparticles.h"

static int start(struct cuda *c, const struct targets *targets, int share, int shares,
                 struct error *err)
{
    const int64_t blocks = cuda_all_blocks(c);
    int code = cuda_sum_clean_up(c, err);
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
    code = cuda_iparticles_reserve(c, targets->ni, err);
    if (!code) code = cuda_results_reserve(c, targets->ni, err);
    if (targets->on_device && !targets->x)
        c->guess = 0; /* kernel turn has stored the i particles */
    else if (!code && targets->on_device)
        code = cuda_iparticles_load(c, err);
    if (!code && !c->nj) {
        if (targets->fill) targets->fill(targets->context, 0, targets->ni);
        c->settled = 0;
        cuda_results_clear(c);
        c->has = WANT_JERK | WANT_NEAREST;
    } else if (!code) {
        code = cuda_sum_all(c, c->guess, shares > 1 || c->rows_guess > 0, err);
    }
    return code;
}

int cuda_force_start(struct cuda *c, const struct upload *u, const struct targets *targets,
                     int share, int shares, struct error *err)
{
    int code = cuda_device_enter(c, err);
    if (code) return code;
    code = cuda_jparticles_update(c, u, err);
    if (!code) code = start(c, targets, share, shares, err);
    cuda_device_leave(c);
    return code;
}

static int finish(struct cuda *c, unsigned want, int count, struct error *err)
{
    int code = 0;
    c->guess = want & WANT_NEAREST;
    if ((c->has & want & WANT_NEAREST) != (want & WANT_NEAREST))
        code = cuda_sum_all(c, want, c->has_rows, err);
    /* complete results are copied faster at the end, by many threads */
    if (!code && count < c->targets.ni && cuda_results_are_there(c)) return 1;
    if (!code) code = cuda_results_wait(c, count, err);
    if (!code && !c->settled && c->any_left) {
        if (count < c->targets.ni) return 1;
        c->rows_guess = ROWS_CALLS; /* the next calls are likely to need them too */
        jmemory_commit(c->memory);
        code = cuda_partials_settle(c, err);
    }
    if (c->rows_guess) c->rows_guess--;
    return code;
}

int cuda_force_finish(struct cuda *c, unsigned want, int count, struct error *err)
{
    int code = cuda_device_enter(c, err);
    if (code) return code;
    code = finish(c, want, count, err);
    cuda_device_leave(c);
    return code;
}
