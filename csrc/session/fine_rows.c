/* fine_rows.c - see fine_rows.h. */
#include "session/fine_rows.h"

#include <string.h>

#include "g6lib.h"
#include "session/ahead.h"
#include "session/force_scale.h"
#include "shared/fine.h"
#include "util/fpenv.h"
#include "util/memory.h"
#include "util/threads.h"

struct search {
    struct jmemory *memory;
    double time, step;
    const double *drift;
    int64_t nj;
    const int32_t *index;
    unsigned char *fine;
};

static void look_at(void *search, int64_t first, int64_t end)
{
    const struct search *f = search;
    for (int64_t i = first; i < end; i++) {
        int32_t own[1];
        f->fine[i] = 0;
        /* of two slots with one index none is the particle's own */
        if (jmemory_find(f->memory, f->index[i], f->nj, 1, own) != 1) continue;
        const struct jparticle *p = &f->memory->body[own[0]];
        double v[3];
        for (int k = 0; k < 3; k++) v[k] = p->v[k] - f->drift[k];
        f->fine[i] = (unsigned char)fine_is(f->step, f->time - p->time, p->a2, p->j6, v);
    }
}

/* Looks up rows in the slots of j particles; returns how many are fine. */
static int look_up(const struct session *s, struct search *search, int rows)
{
    enum { ROWS = 256, ROWS_PER_THREAD = 4096 };
    int found = 0;
    jmemory_commit(search->memory);
    jmemory_map(search->memory);
    threads_each(options_threads_for(rows / ROWS_PER_THREAD + 1, s->options.threads), rows, ROWS,
                 look_at, search);
    for (int i = 0; i < rows; i++) found += search->fine[i];
    return found;
}

int session_fine_rows_of(struct session *s, int nj, int rows, const int32_t *index,
                         unsigned char *fine)
{
    struct jmemory *memory = s->whole ? s->whole : &s->j;
    const int64_t all = s->whole ? s->whole_nj : nj;
    /* Sums of shares cannot be merged if only one of them knows a row's slot. */
    const int shared = !s->whole && (s->options.scale[0] != G6X_AUTO || s->j.is_share);
    memset(fine, 0, (size_t)rows);
    if (shared || jmemory_all_rest(memory, all)) return 0;
    const struct force_call *c = &s->call;
    const double step = fine_step((double)all);
    struct search search = {memory, c->time, step, c->scale.drift, all, index, fine};
    return look_up(s, &search, rows);
}

int session_fine_rows_get(struct session *s, int nj, int ni, const int *index, unsigned char *fine)
{
    static const char call[] = "g6x_get_fine_rows";
    if (ni > 0 && (!index || !fine))
        return error_set(&s->error, G6X_E_NULL, "%s: null pointer", call);
    if (nj < 0 || ni < 0 || s->time_bad)
        return error_set(&s->error, G6X_E_ARGUMENT,
                         "%s: nj = %d or ni = %d is negative, or the time NaN", call, nj, ni);
    if (!ni) return 0;
    FPENV_HERE;
    memset(fine, 0, (size_t)ni);
    if (session_force_scale_precision(s, nj) == MODE_AUTO && !jmemory_all_rest(&s->j, nj)) {
        const struct scale scale = session_force_scale_in(s, MODE_GRAPE);
        const int64_t all = s->j.is_share ? s->j.share_all : nj;
        const double step = fine_step((double)all);
        struct search search = {&s->j, s->time, step, scale.drift, nj, index, fine};
        (void)look_up(s, &search, ni);
    }
    return 0;
}

int session_fine_rows_set(struct session *s, int ni, const unsigned char *fine)
{
    const struct memory_array all[] = {MEMORY_ARRAY(s->given, ni > 0 ? ni : 1), {0}};
    const int code = ni < 0 ? G6X_E_ARGUMENT : ni && !fine ? G6X_E_NULL : memory_grow_all(all);
    if (code)
        return error_set(&s->error, code,
                         "g6x_set_fine_rows: ni = %d is negative, a null pointer, or no memory",
                         ni);
    for (int i = 0; i < ni; i++) s->given[i] = fine[i] != 0;
    s->given_rows = ni + 1;
    return 0;
}

int session_fine_rows_find(struct session *s, int nj, const struct i_arrays *from)
{
    struct force_call *c = &s->call;
    int found = 0;
    if (c->precision != MODE_AUTO || !c->rows) return 0;
    if (from->fine) memcpy(c->all.fine, from->fine, (size_t)c->rows);
    for (int i = 0; i < c->rows && from->fine; i++) found += from->fine[i];
    if (from->fine) return found;
    if (c->ni) memcpy(c->all.index, from->index, (size_t)c->ni * sizeof *c->all.index);
    if (c->rows > c->ni) session_ahead_fill(s, c->ni, c->rows - c->ni);
    return session_fine_rows_of(s, nj, c->rows, c->all.index, c->all.fine);
}
