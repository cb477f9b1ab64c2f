/* g6x_share.c - the g6x_ calls for a cluster that has a share of the j particles of many. */
#include <string.h>

#include "api/arguments.h"
#include "core/jmemory.h"
#include "g6lib.h"
#include "session/call_rows.h"
#include "session/force.h"
#include "util/fpenv.h"

_Static_assert((int)G6X_SAMPLE_WORDS == SHARE_SAMPLE_WORDS, "g6lib.h");
_Static_assert((int)G6X_COUNT_WORDS == SHARE_COUNT_WORDS, "g6lib.h");

/* An error in the exchange of samples and counts: forces would have a scale of no use to other
 * shares, so they are refused until an exchange succeeds. */
#define REFUSE(s, code, ...) ((s)->j.share_code = error_set(&(s)->error, code, __VA_ARGS__))

/* Settles the j particles below nj. */
static int settle(struct session *s, int nj, int lacks, const char *call)
{
    if (lacks || nj < 0)
        return REFUSE(s, lacks ? G6X_E_NULL : G6X_E_ARGUMENT, "%s: null pointer or nj = %d", call,
                      nj);
    FPENV_HERE;
    jmemory_settle(&s->j, nj, options_threads(s->options.threads));
    return 0;
}

int g6x_get_sample(int clusterid, int nj, long long all, long long first,
                   long long words[G6X_SAMPLE_WORDS])
{
    SESSION_HERE(s, clusterid, code);
    if (s) code = settle(s, nj, !words, "g6x_get_sample");
    if (code) return code;
    if (first < 0 || all > INT64_MAX / 64 || first > all - nj)
        return REFUSE(s, G6X_E_ARGUMENT,
                      "g6x_get_sample: %d particles from number %lld on, of %lld in all", nj, first,
                      all);
    s->j.share_all = all;
    jmemory_share_sample(&s->j, all, first, words);
    return 0;
}

int g6x_set_sample(int clusterid, const long long words[G6X_SAMPLE_WORDS])
{
    SESSION_HERE(s, clusterid, code);
    if (!s) return code;
    if (!words) return REFUSE(s, G6X_E_NULL, "g6x_set_sample: null pointer");
    if (words[0] && words[0] == s->j.share_code) return s->j.share_code; /* known */
    if (words[0] < 0 && words[0] >= G6X_E_VERIFY)
        return REFUSE(s, (int)words[0],
                      "the exchange of scales failed with %d on one of the ranks at least; "
                      "only the last rank with j particles may have an incomplete block of 1024",
                      (int)words[0]);
    for (int k = 0; k < SHARE_SAMPLE_WORDS; k += SHARE_SAMPLE) {
        double place[6];
        memcpy(place, words + k + 1, sizeof place);
        if (words[k] != 0 && words[k] != 1)
            return REFUSE(s, G6X_E_ARGUMENT, "g6x_set_sample: %lld shares have sample %d", words[k],
                          k / SHARE_SAMPLE);
        if (words[k] && !all_finite(place, 6))
            return REFUSE(s, G6X_E_ARGUMENT, "g6x_set_sample: sample %d has a NaN or Inf",
                          k / SHARE_SAMPLE);
    }
    FPENV_HERE;
    jmemory_share_set_sample(&s->j, words);
    return 0;
}

int g6x_get_counts(int clusterid, int nj, long long words[G6X_COUNT_WORDS])
{
    SESSION_HERE(s, clusterid, code);
    if (s) code = settle(s, nj, !words, "g6x_get_counts");
    if (!code) jmemory_share_counts(&s->j, words);
    return code;
}

int g6x_set_counts(int clusterid, const long long words[G6X_COUNT_WORDS])
{
    SESSION_HERE(s, clusterid, code);
    if (!s) return code;
    if (!words) return REFUSE(s, G6X_E_NULL, "g6x_set_counts: null pointer");
    if (!s->j.is_share)
        return REFUSE(s, G6X_E_ARGUMENT,
                      "g6x_set_counts: call g6x_set_sample first, which sets the origin");
    for (int k = 0; k < SHARE_COUNT_WORDS; k++)
        if (words[k] < 0 || words[k] > INT32_MAX)
            return REFUSE(s, G6X_E_ARGUMENT, "g6x_set_counts: word %d is %lld", k, words[k]);
    if (jmemory_share_set_counts(&s->j, words))
        return REFUSE(s, G6X_E_MEMORY, "g6x_set_counts: no memory");
    s->j.share_code = 0;
    return 0;
}

int g6x_end_share(int clusterid)
{
    SESSION_HERE(s, clusterid, code);
    if (s) jmemory_share_end(&s->j);
    return code;
}

int g6x_get_fine_rows(int clusterid, int nj, int ni, const int index[], unsigned char fine[])
{
    return ON_SESSION(clusterid, session_call_rows_get_fine, nj, ni, index, fine);
}

int g6x_set_fine_rows(int clusterid, int ni, const unsigned char fine[])
{
    return ON_SESSION(clusterid, session_call_rows_set_fine, ni, fine);
}

/* ---- a share of an integration ------------------------------------------------------ */

int g6x_share_particles(int clusterid, int n, int first, int end, const double tj[],
                        const double mass[], const double (*j6)[3], const double (*a2)[3],
                        const double (*v)[3], const double (*x)[3])
{
    const char *call = "g6x_share_particles";
    SESSION_HERE(s, clusterid, code);
    if (!s) return code;
    if (n < 0 || first < 0 || first > end || end > n)
        return error_set(&s->error, G6X_E_ARGUMENT, "%s: %d to %d of n = %d", call, first, end, n);
    if (!n) {
        session_force_scale_end_whole(s);
        return 0;
    }
    if (!tj || !mass || !j6 || !a2 || !v || !x)
        return error_set(&s->error, G6X_E_NULL, "%s: null pointer", call);
    code = session_force_scale_begin_whole(s);
    session_force_before_write(s);
    for (int i = 0; i < n && !code; i++)
        code = jmemory_set(s->whole, i, i, tj[i], mass[i], NULL, j6[i], a2[i], v[i], x[i]);
    for (int i = first; i < end && !code; i++)
        code = jmemory_set(&s->j, i - first, i, tj[i], mass[i], NULL, j6[i], a2[i], v[i], x[i]);
    s->whole_nj = code ? 0 : n;
    return code ? error_set(&s->error, code, "%s: a particle is refused", call) : 0;
}
