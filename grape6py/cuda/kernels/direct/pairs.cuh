/* pairs.cuh - sums within one thread: pairs, runs of addresses, groups of runs. */

enum { RUN = DOUBLE_MODE ? CUDA_RUN_DOUBLE : CUDA_RUN }; /* addresses, one after another */
enum { RUN_REALS = RUN / 2 * PAIR_REALS, GROUP_REALS = CUDA_GROUP / 2 * PAIR_REALS };
enum { PLACE = 32 };                     /* addresses searched again for a nearest neighbour */
enum { PLACES = CUDA_GROUP / PLACE };    /* of a group */
enum { UNROLLED = DOUBLE_MODE ? 2 : 4 }; /* pairs of addresses */

/* Adds one pair and returns its r^2. A pair of equal index adds nothing. */
template <bool JERK, bool SOFT, bool SAME>
DEVICE_FN real add_pair(const struct pair_i *i, const struct pair_j *j, bool same,
                        struct pair_sum *sum)
{
    const struct pair_sep r = pair_separation(SPLIT, i, j);
    real r2 = pair_distance2(&r, v_set1(0));
    if (SAME) r2 = same ? v_set1(FAR_S2) : r2;
    const real s2 = SOFT ? v_add(r2, i->eps2) : r2;
    const real m = SAME && same ? v_set1(0) : j->m;
    pair_add(JERK, i, j, m, v_rsqrt(s2), &r, sum);
    return r2;
}

/* The smallest of three r^2. They are not negative, so their bits are in the same order, and
 * integers are compared faster. */
DEVICE_FN real least_of(real a, real b, real c)
{
#if DOUBLE_MODE
    const int64_t i = __double_as_longlong(a), j = __double_as_longlong(b);
    const int64_t k = __double_as_longlong(c), m = i < j ? i : j;
    return __longlong_as_double(m < k ? m : k);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    return __int_as_float(__vimin3_s32(__float_as_int(a), __float_as_int(b), __float_as_int(c)));
#else
    return fminf(a, fminf(b, c));
#endif
}

/* Sum number q (SUM_*) of a pair_sum; q must be a compile-time constant. */
template <class sums> DEVICE_FN auto sum_number(sums *s, int q)
{
    return q == SUM_AX   ? &s->ax
           : q == SUM_AY ? &s->ay
           : q == SUM_AZ ? &s->az
           : q == SUM_JX ? &s->jx
           : q == SUM_JY ? &s->jy
           : q == SUM_JZ ? &s->jz
                         : &s->pot;
}

DEVICE_FN constexpr bool is_wanted(bool jerk, int sum) { return jerk || sum / 3 != WINDOW_JERK; }

DEVICE_FN struct pair_sum no_pairs(void) { return {}; }

/* a = a + b */
template <bool JERK> DEVICE_FN void add_sums(struct pair_sum *a, struct pair_sum b)
{
#pragma unroll
    for (int q = 0; q < NSUM; q++)
        if (is_wanted(JERK, q)) *sum_number(a, q) = v_add(*sum_number(a, q), *sum_number(&b, q));
}

/* The indices of a group: in memory, or two in each lane of a warp. */
struct labels_in_memory {
    const int32_t *index;
};
struct labels_in_warp {
    int32_t low, high;
};
DEVICE_FN int32_t label_of(const struct labels_in_memory &labels, int a) { return labels.index[a]; }
DEVICE_FN int32_t label_of(const struct labels_in_warp &labels, int a)
{
    return __shfl_sync(0xffffffffu, a < 32 ? labels.low : labels.high, a % 32);
}

/* Sums of a run on PER targets; its first index is label number `first`. Keeps the least r^2 and,
 * if NEAR, its place. If CHECK, a run with a close pair is left out, and its bit set in `closed`.
 */
template <bool JERK, bool NEAR, bool SOFT, bool SAME, bool CHECK, int PER, int UNROLL, class labels>
DEVICE_FN void add_run(const struct target t[PER], const real *pairs, const labels &label,
                       int first, int place, struct pair_sum sum[PER], real r2_min[PER],
                       int near_place[PER], unsigned closed[PER])
{
    real run_min[PER];
    int run_place[PER];
#pragma unroll
    for (int k = 0; k < PER; k++) {
        sum[k] = no_pairs();
        run_min[k] = CHECK ? v_set1(FAR_S2) : r2_min[k];
        run_place[k] = CHECK ? place : near_place[k];
    }
#pragma unroll 1
    for (int h = 0; h < RUN / PLACE; h++) {
        real least[PER];
#pragma unroll
        for (int k = 0; k < PER; k++) least[k] = NEAR ? v_set1(FAR_S2) : run_min[k];
#pragma unroll(UNROLL)
        for (int p = 0; p < PLACE / 2; p++) {
            struct pair_j a, b;
            load_sources(pairs + p * PAIR_REALS, &a, &b);
            const int a_label = first + h * PLACE + 2 * p;
            const int32_t index_a = SAME ? label_of(label, a_label) : 0;
            const int32_t index_b = SAME ? label_of(label, a_label + 1) : 0;
#pragma unroll
            for (int k = 0; k < PER; k++) {
                const real r2_a =
                    add_pair<JERK, SOFT, SAME>(&t[k].i, &a, SAME && index_a == t[k].label, &sum[k]);
                const real r2_b =
                    add_pair<JERK, SOFT, SAME>(&t[k].i, &b, SAME && index_b == t[k].label, &sum[k]);
                least[k] = least_of(least[k], r2_a, r2_b);
            }
        }
#pragma unroll
        for (int k = 0; k < PER; k++) {
            if (!NEAR) {
                run_min[k] = least[k];
            } else if (least[k] < run_min[k]) {
                run_min[k] = least[k];
                run_place[k] = place + h;
            }
        }
        pairs += PLACE / 2 * PAIR_REALS;
    }
    bool any_close = false;
#pragma unroll
    for (int k = 0; k < PER; k++) any_close = any_close || (CHECK && run_min[k] < t[k].close);
    if (any_close) { /* seldom: a branch is faster than to select each sum */
#pragma unroll
        for (int k = 0; k < PER; k++) {
            if (!(run_min[k] < t[k].close)) continue;
            sum[k] = no_pairs();
            closed[k] |= 1u << place % (CUDA_BLOCK / PLACE) / (RUN / PLACE); /* run of the block */
            run_min[k] = v_set1(FAR_S2);
        }
    }
#pragma unroll
    for (int k = 0; k < PER; k++) {
        if (!CHECK || (NEAR && run_min[k] < r2_min[k])) {
            r2_min[k] = run_min[k];
            near_place[k] = run_place[k];
        }
    }
}

/* Sums of a group, whose runs are run_reals apart. */
template <bool JERK, bool NEAR, bool SOFT, bool SAME, bool CHECK, int PER, int UNROLL, class labels>
DEVICE_FN void add_group(const struct target t[PER], const real *pairs, int run_reals,
                         const labels &label, int place, struct pair_sum sum[PER], real r2_min[PER],
                         int near_place[PER], unsigned closed[PER])
{
    add_run<JERK, NEAR, SOFT, SAME, CHECK, PER, UNROLL>(t, pairs, label, 0, place, sum, r2_min,
                                                        near_place, closed);
#if !DOUBLE_MODE
    struct pair_sum other[PER];
    add_run<JERK, NEAR, SOFT, SAME, CHECK, PER, UNROLL>(
        t, pairs + run_reals, label, RUN, place + PLACES / 2, other, r2_min, near_place, closed);
#pragma unroll
    for (int k = 0; k < PER; k++) add_sums<JERK>(&sum[k], other[k]);
#endif
}
