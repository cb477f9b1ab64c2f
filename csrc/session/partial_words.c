/* partial_words.c - see partial_words.h. */
#include "session/partial_words.h"

#include <limits.h>
#include <string.h>

#include "session/force.h"
#include "shared/package.h"
#include "simd/dispatch.h"
#include "util/fpenv.h"

/* Words of a row: kind, scale, invalid bits, tops, limbs, and how it was summed; see
 * docs/reproducibility.md. */
enum { WORD_KIND, WORD_SCALE, WORD_INVALID, WORD_TOP, WORD_LIMB = 6, WORD_SUMMED_BY = 27 };
enum { PARTIAL_VERSION = 2 };
static const long long LARGEST_LIMB = 1ll << 62;

/* What the bits of a sum depend on besides the particles: backend, instruction set and mode. */
static long long summed_by(const struct session *s, int mode)
{
    static const struct backend *const BACKENDS[] = {&cpu_direct_backend, &cuda_backend,
                                                     &tree_backend_cpu, &tree_backend_cuda};
    const int on_gpu = (s->backend->capabilities & CAN_DEVICE_POINTERS) != 0;
    const int isa = on_gpu ? 0 : simd_dispatch_number(s->call.isa) - G6X_ISA_BASE;
    long long number = 0;
    const long long last = sizeof BACKENDS / sizeof *BACKENDS - 1;
    while (number < last && BACKENDS[number] != s->backend) number++;
    return (number + 1) << 16 | (long long)isa << 8 | mode;
}

static void to_words(const struct partial_row *row, long long *w)
{
    w[WORD_INVALID] = row->invalid;
    for (int k = 0; k < NWINDOW; k++) w[WORD_TOP + k] = row->top[k];
    memcpy(w + WORD_LIMB, row->limb, sizeof row->limb);
}

static void from_words(const long long *w, struct partial_row *row)
{
    row->invalid = (uint32_t)w[WORD_INVALID];
    for (int k = 0; k < NWINDOW; k++) row->top[k] = (int32_t)w[WORD_TOP + k];
    memcpy(row->limb, w + WORD_LIMB, sizeof row->limb);
}

static int is_row(const long long *w)
{
    const long long kind = w[WORD_KIND], limbs = kind / 16 % 16;
    if (kind / 256 != PARTIAL_VERSION || limbs < 2 || limbs > MAX_LIMBS || kind % 16 > 1) return 0;
    if (w[WORD_INVALID] < 0 || w[WORD_INVALID] >= 1 << NWINDOW) return 0;
    for (int k = 0; k < NWINDOW; k++)
        if (w[WORD_TOP + k] < BIN_LOWEST || w[WORD_TOP + k] > -BIN_LOWEST) return 0;
    /* Larger ones than sums of 2^22 blocks: two may overflow. */
    for (int k = WORD_LIMB; k < WORD_SUMMED_BY; k++)
        if (w[k] <= -LARGEST_LIMB || w[k] >= LARGEST_LIMB) return 0;
    return 1;
}

static int not_a_row(const char *call, int i, const long long *w, struct error *err)
{
    const long long code = w[WORD_KIND];
    if (code >= 0 || code < G6X_E_VERIFY)
        return error_set(err, G6X_E_ARGUMENT, "%s: row %d is not a partial sum", call, i);
    return error_set(
        err, (int)code, "partial sums, row %d: the sum failed with %d: %s", i, (int)code,
        code == G6X_E_MISMATCH ? "ni is not the same in all calls, or on all ranks"
                               : "shares differ in backend, instruction set, precision, "
                                 "scale or origin, or that of some rank failed");
}

/* Three exponents, and a 15-bit hash that tells origins apart: 0 for none. */
static long long word_of(const struct scale *scale)
{
    uint64_t mixed = 0;
    for (int k = 0; k < 3; k++) mixed = (mixed ^ bits_of(scale->origin[k])) * 0x9e3779b97f4a7c15u;
    for (int k = 0; k < 3; k++) mixed = (mixed ^ bits_of(scale->drift[k])) * 0x9e3779b97f4a7c15u;
    return (scale->length + 32768) | (long long)(scale->mass + 32768) << 16 |
           (long long)(scale->velocity + 32768) << 32 | (long long)(mixed >> 49) << 48;
}

void session_partial_words_spoil(int ni, long long *words, int code)
{
    for (int i = 0; words && i < ni; i++) words[(size_t)i * G6X_PARTIAL_WORDS + WORD_KIND] = code;
}

int session_partial_words_get(struct session *s, int ni, long long *words)
{
    struct force_call *c = &s->call;
    if (!c->made)
        return error_set(&s->error, G6X_E_NO_FIRSTHALF, "g6x_get_partial without firsthalf");
    if (ni != c->ni) { /* row 20 of docs/errors.md: only rows that exist in both are written */
        session_partial_words_spoil(ni < c->ni ? ni : c->ni, words, G6X_E_MISMATCH);
        return error_set(&s->error, G6X_E_MISMATCH,
                         "g6x_get_partial: ni = %d, but firsthalf had %d", ni, c->ni);
    }
    if (ni && !words) return error_set(&s->error, G6X_E_NULL, "g6x_get_partial: null pointer");
    const struct partial_row *rows = NULL;
    FPENV_HERE;
    int code = c->code ? c->code : session_force_complete(s, 0);
    jmemory_commit(&s->j); /* some rows may still need the host fallback */
    if (!code) code = s->backend->partials(s->state, &rows, &s->error);
    if (code && !c->code && !session_force_resume(s, code))
        code = s->backend->partials(s->state, &rows, &s->error);
    if (code) return c->code = code; /* some sums may have been done again */
    const long long scale = word_of(&c->scale), fine_scale = word_of(&c->fine_scale);
    for (int i = 0; i < ni; i++) {
        long long *w = words + (size_t)i * G6X_PARTIAL_WORDS;
        memset(w, 0, G6X_PARTIAL_WORDS * sizeof *w);
        const int mode = session_force_scale_mode_of(c, i);
        w[WORD_KIND] = PARTIAL_VERSION * 256 + limbs_of(mode) * 16 + c->jerk * WORD_JERK;
        w[WORD_SUMMED_BY] = summed_by(s, mode);
        w[WORD_SCALE] = c->fine && mode == MODE_DOUBLE ? fine_scale : scale;
        to_words(&rows[c->first + i], w);
        if (c->own.invalid[i]) w[WORD_INVALID] = (1 << NWINDOW) - 1;
    }
    return c->invalid_rows ? G6X_E_I_NAN : 0;
}

int session_partial_words_add(int ni, long long *sum, const long long *words, struct error *err)
{
    for (int i = 0; i < ni; i++) {
        long long *a = sum + (size_t)i * G6X_PARTIAL_WORDS;
        const long long *b = words + (size_t)i * G6X_PARTIAL_WORDS;
        struct partial_row row, other;
        if (!is_row(a) || !is_row(b) || a[WORD_KIND] != b[WORD_KIND] ||
            a[WORD_SCALE] != b[WORD_SCALE] || a[WORD_SUMMED_BY] != b[WORD_SUMMED_BY])
            return error_set(
                err, G6X_E_ARGUMENT,
                "g6x_add_partial: row %d: not a partial sum, or made with another "
                "backend, instruction set, precision, scale or origin (set GRAPE6_BACKEND, "
                "GRAPE6_ISA, G6X_SCALE_* and G6X_ORIGIN_* alike)",
                i);
        from_words(a, &row);
        from_words(b, &other);
        partial_merge(&row, &other, (int)(a[WORD_KIND] / 16 % 16));
        to_words(&row, a);
    }
    return 0;
}

int session_partial_words_tops(int ni, const long long *words, int (*top)[G6X_PARTIAL_TOPS],
                               struct error *err)
{
    for (int i = 0; i < ni; i++) {
        struct partial_row row;
        const long long *w = words + (size_t)i * G6X_PARTIAL_WORDS;
        if (!is_row(w)) { /* and none of other ranks are raised to these, either */
            for (int k = 0; k < ni * G6X_PARTIAL_TOPS; k++) top[0][k] = INT_MAX;
            return not_a_row("g6x_get_tops", i, w, err);
        }
        from_words(w, &row);
        for (int k = 0; k < NWINDOW; k++) {
            top[i][k] = row.top[k];
            top[i][NWINDOW + k] = row.invalid >> k & 1;
        }
    }
    return 0;
}

int session_partial_words_raise(int ni, long long *words, const int (*top)[G6X_PARTIAL_TOPS],
                                struct error *err)
{
    for (int i = 0; i < ni; i++) {
        struct partial_row row;
        long long *w = words + (size_t)i * G6X_PARTIAL_WORDS;
        int is_sound = is_row(w);
        for (int k = 0; k < NWINDOW; k++)
            is_sound &= top[i][k] >= BIN_LOWEST && top[i][k] <= -BIN_LOWEST &&
                        (top[i][NWINDOW + k] | 1) == 1;
        if (!is_sound)
            return error_set(err, G6X_E_ARGUMENT, "g6x_raise_partial: row %d or its tops are wrong",
                             i);
        from_words(w, &row);
        partial_raise(&row, top[i], (int)(w[WORD_KIND] / 16 % 16));
        for (int k = 0; k < NWINDOW; k++) row.invalid |= (uint32_t)top[i][NWINDOW + k] << k;
        to_words(&row, w);
    }
    return 0;
}

int session_partial_words_force(int ni, const long long *words, double (*acc)[3], double (*jerk)[3],
                                double *pot, struct error *err)
{
    int out_of_range = -1;
    for (int i = 0; i < ni; i++) {
        const long long *w = words + (size_t)i * G6X_PARTIAL_WORDS;
        struct partial_row row;
        double sum[NSUM];
        if (!is_row(w)) {
            session_output_nan(ni, acc, jerk, pot, NULL, NULL);
            return not_a_row("g6x_from_partial", i, w, err);
        }
        from_words(w, &row);
        partial_value(&row, sum);
        if (!session_output_fit(sum, w[WORD_KIND] & WORD_JERK) && out_of_range < 0)
            out_of_range = i;
        memcpy(acc[i], sum + SUM_AX, sizeof acc[i]);
        memcpy(jerk[i], sum + SUM_JX, sizeof jerk[i]);
        pot[i] = 0.0 - sum[SUM_POT];
    }
    return out_of_range < 0 ? 0
                            : error_set(err, G6X_E_RANGE,
                                        "g6x_from_partial: row %d holds a NaN or does not fit a "
                                        "double",
                                        out_of_range);
}
