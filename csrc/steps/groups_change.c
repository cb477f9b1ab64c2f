/* groups_change.c - groups are made, take others in, and part: see groups.h. */
#include <string.h>

#include "steps/groups.h"
#include "util/memory.h"

/* Bodies with places and velocities from a centre, and how that moves. */
struct bodies {
    int n, who[CHAIN_MOST];
    double m[CHAIN_MOST], x[CHAIN_MOST][3], v[CHAIN_MOST][3];
    double centre[4][3]; /* place, velocity, acceleration, jerk */
};

/* What a change is made in. */
struct change {
    struct groups *g;
    const struct hermite_state *s;
    const struct hermite_rule *rule;
    const struct groups_block *block;
};

static double *state_of(const struct hermite_state *s, int p, int order)
{
    return order == 0 ? s->x[p] : order == 1 ? s->v[p] : order == 2 ? s->a[p] : s->j[p];
}

/* A first step. */
static double step_of(const struct hermite_rule *rule, const struct hermite_state *s, int p)
{
    const double j = hermite_norm(s->j[p]);
    const double wanted = j > 0.0 ? rule->eta / 8.0 * hermite_norm(s->a[p]) / j : rule->dt_max;
    double dt = rule->dt_max;
    while ((dt > wanted || fmod(s->t[p], dt) != 0.0) && dt > rule->dt_min) dt *= 0.5;
    return dt;
}

static void remove_group(struct groups *g, int number)
{
    struct group *q = g->group[number];
    for (int i = 1; i < q->n && g->work.work; i++) /* done on the group, per mass: of each body */
        g->work.work[q->who[i]] = g->work.work[q->who[0]];
    for (int i = 0; i < q->n; i++) g->of[q->who[i]] = -1, g->mass[q->who[i]] = g->own[q->who[i]];
    memory_free(q->near);
    memory_free(q);
    g->group[number] = g->group[--g->count];
    if (number == g->count) return;
    q = g->group[number];
    for (int i = 0; i < q->n; i++) g->of[q->who[i]] = number;
    groups_note(g, number);
}

/* Puts a body into its order. */
static void insert(struct bodies *all, int who, double m, const double x[3], const double v[3])
{
    int i = all->n++;
    for (; i > 0 && all->who[i - 1] > who; i--) {
        all->who[i] = all->who[i - 1], all->m[i] = all->m[i - 1];
        memcpy(all->x[i], all->x[i - 1], sizeof *all->x);
        memcpy(all->v[i], all->v[i - 1], sizeof *all->v);
    }
    all->who[i] = who, all->m[i] = m;
    memcpy(all->x[i], x, sizeof *all->x), memcpy(all->v[i], v, sizeof *all->v);
}

/* Adds what p stands for, whose centre is at x, v. */
static void add_bodies(const struct groups *g, struct bodies *all, int p, const double x[3],
                       const double v[3])
{
    const struct group *q = groups_of(g, p);
    double at[CHAIN_MOST][3] = {{0.0}}, speed[CHAIN_MOST][3] = {{0.0}};
    if (q) few_body_read(&q->now, at, speed);
    for (int i = 0; i < (q ? q->n : 1); i++) {
        const int who = q ? q->who[i] : p;
        for (int k = 0; k < 3; k++) at[i][k] += x[k], speed[i][k] += v[k];
        insert(all, who, g->own[who], at[i], speed[i]);
    }
}

/* Whether no two are at one place, where they would have no orbit. */
static int are_apart(const struct bodies *all)
{
    for (int i = 0; i < all->n; i++)
        for (int j = 0; j < i; j++) {
            double d[3];
            for (int k = 0; k < 3; k++) d[k] = all->x[i][k] - all->x[j][k];
            if (!(kepler_dot(d, d) > 0.0)) return 0;
        }
    return 1;
}

/* The power of the field on a body, and its rate. */
static double power_on(const struct groups *g, double time, const double x[3], const double v[3],
                       const double acc[3], double *rate)
{
    double a[3] = {0.0, 0.0, 0.0}, j[3] = {0.0, 0.0, 0.0};
    struct field field;
    if (groups_field_at(g, time, &field)) field_add(&field, x, v, a, j);
    return hermite_power(a, j, v, acc, rate);
}

/* The work on some bodies is that on their centre. */
static void join_work(const struct change *c, const struct bodies *all)
{
    const struct hermite_work *w = &c->g->work;
    const int p = all->who[0];
    double mass = 0.0, sum = 0.0;
    if (!w->work) return;
    for (int i = 0; i < all->n; i++) mass += all->m[i], sum += all->m[i] * w->work[all->who[i]];
    if (mass > 0.0) w->work[p] = sum / mass;
    w->power[p] =
        power_on(c->g, c->s->t[p], all->centre[0], all->centre[1], all->centre[2], &w->rate[p]);
}

/* Lets one particle move with a centre. */
static void carry(const struct change *c, int p, double time, const double centre[4][3])
{
    c->s->t[p] = time;
    for (int order = 0; order < 4; order++)
        memcpy(state_of(c->s, p, order), centre[order], sizeof *centre);
    c->s->dt[p] = step_of(c->rule, c->s, p);
    c->g->changed[p] = 1;
}

/* The perturbation of a group's parts at a distance. */
static double perturbation(const struct group *q, double distance)
{
    return q->tide * distance * distance * distance;
}

/* Whether the parts of a group only meet: they are not bound, or two would not come back. */
static int only_meets(const struct group *q)
{
    const struct group_parts *p = &q->parts;
    return p->a <= 0.0 || (q->n == 2 && perturbation(q, p->size) > GROUPS_TORN);
}

/* Whether a group's parts, at the end of its step, do not belong together any more. */
static int is_over(const struct group *q)
{
    const struct group_parts *p = &q->parts;
    if (perturbation(q, p->r) > GROUPS_TORN) return 1;
    if (p->inner > GROUPS_FORM) return 0;
    if (only_meets(q)) return p->rv > 0.0 && perturbation(q, p->r) > GROUPS_PARTED;
    return q->n > 2 && perturbation(q, p->size) > GROUPS_BREAK;
}

/* Evaluations of the forces inside a group, in a step: 10 ms and more, in which nobody can stop. */
enum { MOST_PULLS = 20000, PULLS_OF_ORBIT = 50 };

/* At least as many evaluations as the first step of a group takes, if no pair is slowed down. */
static double pulls_ahead(const struct group *q, double dt)
{
    const struct chain *c = &q->now.chain;
    const struct chain_view at = chain_view_of(q->n, (double *)q->now.at);
    double most = 0.0, a, e;
    for (int i = 0; i + 1 < q->n && q->n > 2; i++) {
        const double both = c->m[i] + c->m[i + 1];
        kepler_elements(both, at.x[i], at.v[i], &a, &e);
        if (both > 0.0 && a > 0.0) most = fmax(most, sqrt(both / a) / a);
    }
    return PULLS_OF_ORBIT * most / KEPLER_TWO_PI * dt;
}

/* Parts that only meet shall not be gone before a step's end, and no step shall take long. */
static void shorten(const struct change *c, const struct group *q, double pulls)
{
    double *dt = &c->s->dt[q->who[0]];
    while (pulls > MOST_PULLS && *dt > c->rule->dt_min) pulls *= 0.5, *dt *= 0.5;
    if (!only_meets(q)) return;
    while (*dt * q->parts.speed > q->parts.r && *dt > c->rule->dt_min) *dt *= 0.5;
}

/* Whether there is memory for two more groups. */
static int can_make(struct groups *g)
{
    for (int k = 0; k < 2; k++)
        if (!g->spare[k]) g->spare[k] = memory_zeroed(sizeof **g->spare);
    return g->spare[0] && g->spare[1] && !groups_reserve(g, g->count + 2);
}

/* Makes a group of bodies, or lets one move by itself. */
static void make(const struct change *c, const struct bodies *all, double time)
{
    struct groups *g = c->g;
    const struct few_setting set = {.tolerance = FEW_TOLERANCE};
    if (all->n == 1) {
        carry(c, all->who[0], time, all->centre);
        join_work(c, all);
        return;
    }
    struct group **spare = &g->spare[g->spare[0] ? 0 : 1], *new = *spare;
    *spare = NULL;
    new->n = all->n;
    memcpy(new->who, all->who, sizeof new->who);
    for (int i = 0; i < all->n; i++) new->mass += all->m[i];
    g->heaviest = fmax(g->heaviest, new->mass);
    if (few_body_begin(&new->now, &set, all->n, all->m, CONST3(all->x), CONST3(all->v)))
        g->failed++;
    groups_find_parts(new);
    new->seen_at = new->end = NAN, new->then.met = INFINITY;
    for (int i = 0; i < all->n; i++) {
        const int p = all->who[i];
        g->of[p] = g->count, g->mass[p] = 0.0;
        c->s->t[p] = GROUPS_NEVER, c->s->dt[p] = GROUPS_NEVER * 0x1p-10;
        c->g->changed[p] = 1;
    }
    g->group[g->count++] = new;
    groups_note(g, g->count - 1);
    g->mass[all->who[0]] = new->mass;
    carry(c, all->who[0], time, all->centre);
    join_work(c, all);
    shorten(c, new, pulls_ahead(new, c->s->dt[all->who[0]]));
}

/* Bodies of one part of a group, about their own centre, which is added to `centre`. */
static void part_of(const struct groups *g, const struct group *q, int first, int end,
                    struct bodies *all)
{
    double x[CHAIN_MOST][3], v[CHAIN_MOST][3], mean[2][3] = {{0.0}}, mass = 0.0;
    few_body_read(&q->now, x, v);
    for (int i = first; i < end; i++) mass += q->now.chain.m[i];
    for (int i = first; i < end; i++)
        for (int k = 0; k < 3; k++) {
            const double part = mass > 0.0 ? q->now.chain.m[i] / mass : 1.0 / (end - first);
            mean[0][k] += part * x[q->now.who[i]][k], mean[1][k] += part * v[q->now.who[i]][k];
        }
    for (int i = first; i < end; i++) {
        const int k = q->now.who[i];
        double at[3], speed[3];
        for (int c = 0; c < 3; c++) at[c] = x[k][c] - mean[0][c], speed[c] = v[k][c] - mean[1][c];
        insert(all, q->who[k], g->own[q->who[k]], at, speed);
    }
    for (int order = 0; order < 2; order++)
        for (int k = 0; k < 3; k++) all->centre[order][k] += mean[order][k];
}

/* The force on the centre of some bodies. */
static void find_derivatives(const struct change *c, struct bodies *all, double time)
{
    double mass = 0.0;
    for (int k = 0; k < 3; k++) all->centre[2][k] = all->centre[3][k] = 0.0;
    for (int i = 0; i < all->n; i++) mass += all->m[i], c->g->mass[all->who[i]] = 0.0;
    for (int i = 0; i < all->n; i++) {
        const double part = mass > 0.0 ? all->m[i] / mass : 1.0 / all->n;
        const int who = all->who[i];
        double acc[3], jerk[3];
        groups_pull_all(c->g, c->s, who, time, c->s->x[who], c->s->v[who], acc, jerk);
        for (int k = 0; k < 3; k++)
            all->centre[2][k] += part * acc[k], all->centre[3][k] += part * jerk[k];
    }
    for (int i = 0; i < all->n; i++) c->g->mass[all->who[i]] = all->m[i];
}

/* Lets each of some parts, which are in no group, move from now on. Forces of rows are not used:
 * what two have on each other may hide in their rounding what moves both. */
static void settle(const struct change *c, struct bodies parts[], int count, double time)
{
    for (int k = 0; k < count; k++)
        for (int i = 0; i < parts[k].n; i++) { /* alone for a moment, so that each feels others */
            const int who = parts[k].who[i];
            c->s->t[who] = time;
            for (int d = 0; d < 3; d++) {
                c->s->x[who][d] = parts[k].centre[0][d] + parts[k].x[i][d];
                c->s->v[who][d] = parts[k].centre[1][d] + parts[k].v[i][d];
                c->s->a[who][d] = c->s->j[who][d] = 0.0;
            }
        }
    for (int k = 0; k < count; k++) find_derivatives(c, &parts[k], time);
    for (int k = 0; k < count; k++) make(c, &parts[k], time);
    for (int k = 0; k < c->g->count; k++) groups_note(c->g, k); /* something may be heavier */
    for (int k = 0; k < count; k++)
        for (int i = 0; i < parts[k].n; i++) groups_list(c->g, c->s, parts[k].who[i], time);
}

/* Brings a body that is in the midst of its step to a time, as the block would. */
static void bring(const struct change *c, int p, double time)
{
    const struct hermite_state *s = c->s;
    double x[3], v[3], acc[3], jerk[3], a2[3], a3[3];
    const double dt = time - s->t[p];
    if (dt == 0.0) return;
    hermite_predict_one(s, p, time, x, v);
    groups_pull_all(c->g, s, p, time, x, v, acc, jerk);
    hermite_add_orders(dt, s->a[p], s->j[p], acc, jerk, x, v, a2, a3);
    const struct hermite_work *w = &c->g->work;
    if (w->work) {
        double rate, power = power_on(c->g, time, x, v, acc, &rate);
        w->work[p] += hermite_step_work(w, p, dt, power, rate);
        w->power[p] = power, w->rate[p] = rate;
    }
    memcpy(s->x[p], x, sizeof x), memcpy(s->v[p], v, sizeof v);
    memcpy(s->a[p], acc, sizeof acc), memcpy(s->j[p], jerk, sizeof jerk);
    s->t[p] = time, s->dt[p] = step_of(c->rule, s, p);
    c->g->changed[p] = 1; /* whether or not it joins */
}

/* Makes one group of what some stand for, the first of which is a row of the block. */
static void join(const struct change *c, int count, const int who[])
{
    struct groups *g = c->g;
    const double time = c->s->t[who[0]];
    struct bodies all = {0};
    double mass = 0.0;
    int n = 0;
    for (int i = 0; i < count; i++) {
        n += g->of[who[i]] < 0 ? 1 : groups_of(g, who[i])->n;
        mass += g->mass[who[i]];
    }
    if (n > CHAIN_MOST || !can_make(g)) return;
    for (int i = 1; i < count; i++) bring(c, who[i], time);
    for (int order = 0; order < 2; order++)
        for (int k = 0; k < 3; k++) {
            const double a = state_of(c->s, who[0], order)[k];
            double mean = 0.0;
            for (int i = 1; i < count; i++)
                mean += g->mass[who[i]] / mass * (state_of(c->s, who[i], order)[k] - a);
            all.centre[order][k] = a + mean;
        }
    for (int i = 0; i < count; i++) {
        double from[2][3];
        for (int order = 0; order < 2; order++)
            for (int k = 0; k < 3; k++)
                from[order][k] = state_of(c->s, who[i], order)[k] - all.centre[order][k];
        add_bodies(g, &all, who[i], from[0], from[1]);
    }
    if (!are_apart(&all)) return;
    for (int i = 0; i < count; i++)
        if (g->of[who[i]] >= 0) remove_group(g, g->of[who[i]]);
    settle(c, &all, 1, time);
}

/* Splits a group, which a row of the block is, into its parts. */
static void part(const struct change *c, int number)
{
    struct groups *g = c->g;
    struct group *q = g->group[number];
    const int p = q->who[0];
    struct bodies parts[2] = {{0}};
    if (!can_make(g)) return; /* later */
    for (int k = 0; k < 2; k++) {
        for (int order = 0; order < 2; order++)
            memcpy(parts[k].centre[order], state_of(c->s, p, order), sizeof *parts[k].centre);
        part_of(g, q, k ? q->parts.first : 0, k ? q->n : q->parts.first, &parts[k]);
    }
    remove_group(g, number);
    settle(c, parts, 2, c->s->t[p]);
}

static void end_group(const struct change *c, int row)
{
    const int p = c->block->address[row], number = c->g->of[p];
    const double time = c->block->time;
    struct group *q = c->g->group[number];
    const double pulls = (double)(q->then.pulls - q->now.pulls);
    few_body_copy(&q->now, &q->then);
    q->seen_at = q->end = NAN;
    q->depth = fabs(c->block->pot[row]);
    groups_find_parts(q);
    groups_note(c->g, number);
    if (q->reach > 1.5 * q->near_reach) { /* farther than its list, and those of others, say */
        groups_list(c->g, c->s, p, time);
        q->near_reach = q->reach, q->near_until = -INFINITY;
    }
    shorten(c, q, pulls);
    if (is_over(q)) {
        part(c, number);
    } else if (perturbation(q, q->n > 2 ? q->parts.r : q->parts.size) > GROUPS_BREAK) {
        const int other = groups_disturber(c->g, c->s, time, q);
        /* What a field does within a group is its gradient alone: not enough for wide pairs. */
        const int by_field = other < 0 && c->g->field;
        if (!by_field && (other < 0 || c->s->t[other] != time)) return;
        if (by_field || groups_many_planets(c->g, c->s, time, p, other, q->parts.size))
            part(c, number);
        else
            join(c, 2, (const int[]){p, other});
    }
}

int groups_end(struct groups *g, const struct hermite_state *s, const struct hermite_rule *rule,
               const struct groups_block *b)
{
    const struct change c = {g, s, rule, b};
    memset(g->changed, 0, (size_t)g->n);
    for (int i = 0; i < b->ni; i++) {
        const int p = b->address[i];
        if (g->of[p] >= 0 && !g->changed[p]) end_group(&c, i);
    }
    for (int i = 0; i < b->ni; i++) {
        int who[GROUPS_CLUMP] = {b->address[i], g->partner[i]};
        if (who[1] >= 0 && !g->changed[who[0]] && !g->changed[who[1]]) join(&c, 2, who);
    }
    for (int i = 0; i < b->ni; i++) {
        int who[GROUPS_CLUMP] = {b->address[i], b->nearest[i]};
        if (!g->crowded[i] || who[1] < 0 || g->of[who[0]] >= 0 || g->of[who[1]] >= 0) continue;
        if (g->mass[who[0]] < 0.0) continue;
        const int n = groups_clump(g, s, b->time, who);
        if (n) join(&c, n, who);
    }
    return memchr(g->changed, 1, (size_t)g->n) != NULL;
}
