/* subsystems.c - see hermite.h. */
#include <string.h>

#include "session/hermite.h"
#include "steps/groups.h"
#include "util/fpenv.h"

/* The groups that the arrays were made with, or NULL. */
static struct groups *groups_in(const struct session *s, const struct g6x_hermite *h)
{
    const struct hermite_state state = hermite_state_of(h);
    if (!s->groups || s->groups->n != h->n || !groups_fit(s->groups, &state)) return NULL;
    s->groups->field = h->field;
    return s->groups;
}

int session_subsystems_begin(struct session *s, const struct g6x_hermite *h,
                             struct g6x_hermite *with)
{
    *with = *h;
    if (!h->subsystems || !groups_in(s, h)) {
        groups_free(s->groups);
        s->groups = NULL;
    }
    if (!h->subsystems || !h->n) return 0;
    if (!h->nearest) return error_set(&s->error, G6X_E_NULL, "subsystems: null pointer: nearest");
    if (!s->groups) s->groups = groups_new(h->n, h->mass);
    if (!s->groups) return error_set(&s->error, G6X_E_MEMORY, "subsystems: there is no memory");
    s->groups->own = h->mass;
    s->groups->threads = options_threads(s->options.threads);
    s->groups->field = h->field;
    s->groups->work = hermite_work_of(h);
    with->mass = s->groups->mass;
    return 0;
}

int session_subsystems_pull(struct session *s, const struct g6x_hermite *h, int ni, double time)
{
    const struct hermite_state state = hermite_state_of(h);
    const struct groups_block block = {ni,    h->address, h->nearest, time,  h->xi,
                                       h->vi, h->acc,     h->jerk,    h->pot};
    FPENV_HERE;
    if (!groups_in(s, h)) return 0;
    if (groups_reserve(s->groups, h->n)) /* a look does not go by lists of what is near */
        return error_set(&s->error, G6X_E_MEMORY, "subsystems: there is no memory");
    groups_look(s->groups, 1);
    groups_pull(s->groups, &state, &block);
    groups_look(s->groups, 0);
    return 0;
}

int session_subsystems_unfold(struct session *s, const struct g6x_hermite *h, double time,
                              double (*x)[3], double (*v)[3], double (*acc)[3], double (*jerk)[3])
{
    const struct hermite_state state = hermite_state_of(h);
    FPENV_HERE;
    if (!groups_in(s, h)) return 0;
    groups_look(s->groups, 1);
    groups_unfold(s->groups, &state, time, x, v, acc, jerk);
    groups_look(s->groups, 0);
    return 0;
}

int session_subsystems_list(struct session *s, const struct g6x_hermite *h, int carrier[],
                            double (*elements)[6])
{
    const struct groups *g = groups_in(s, h);
    FPENV_HERE;
    for (int p = 0; p < h->n; p++) {
        const struct group *q = g ? groups_of(g, p) : NULL;
        carrier[p] = q ? q->who[0] : p;
        for (int k = 0; elements && k < 6; k++) elements[p][k] = NAN;
        if (!elements || !q || q->who[0] != p) continue;
        const struct few_body *f = &q->then;
        double least = 1.0;
        for (int i = 0; i + 1 < q->n; i++) least = fmin(least, q->now.chain.slow[i]);
        const double found[6] = {q->parts.a,
                                 q->parts.e,
                                 1.0 / least,
                                 f->met,
                                 q->who[f->met_pair[0]],
                                 q->who[f->met_pair[1]]};
        memcpy(elements[p], found, sizeof found);
    }
    return g ? g->count : 0;
}

int session_subsystems_get(struct session *s, const struct g6x_hermite *h, int most, double state[])
{
    const struct groups *g = groups_in(s, h);
    const int64_t size = g ? groups_state_size(g) : 0;
    if (size && size <= most) groups_save(g, state);
    return (int)size;
}

int session_subsystems_put(struct session *s, const struct g6x_hermite *h, int count,
                           const double state[])
{
    if (!count && groups_in(s, h) && !s->groups->count) return 0;
    groups_free(s->groups);
    s->groups = NULL;
    if (!count) return 0;
    FPENV_HERE;
    struct groups *g = groups_new(h->n, h->mass);
    const struct hermite_state arrays = hermite_state_of(h);
    int code = g ? groups_restore(g, count, state) : G6X_E_MEMORY;
    if (!code && !groups_fit(g, &arrays)) code = G6X_E_ARGUMENT;
    if (!code) {
        g->rounds = 0;
        s->groups = g;
        return 0;
    }
    groups_free(g);
    return error_set(&s->error, code,
                     code == G6X_E_MEMORY ? "subsystems: there is no memory"
                                          : "subsystems: the state is none of these particles");
}
