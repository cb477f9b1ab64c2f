/* predict.cu - stores j particles on the GPU, and predicts them to the time of a force call. */

/* Writes particles to their slots, with one thread per word. */
KERNEL(receive, struct cuda_receive_job, 256, 1)
{
    const int n = (int)(blockIdx.x * blockDim.x + threadIdx.x), k = n / 16, w = n % 16;
    if (k >= job.count) return;
    const struct cuda_sent *sent = &job.sent[k];
    const int64_t address = sent->address, slots = job.store.slots;
    if (address == CUDA_NOT_SENT) return;
    if (w < CUDA_WORDS)
        job.store.body[w * slots + address] = ((const unsigned long long *)&sent->body)[w];
    else if (job.store.k18)
        for (int q = 0; q < 3; q++) job.store.k18[q * slots + address] = sent->k18[q];
}

union record { /* a particle in registers */
    struct jparticle body;
    unsigned long long word[16];
};

/* Loads the particle at an address from its slot; or if it is just arriving there, its words from
 * `words` and the rest from `sent`. */
DEVICE_FN void load_particle(const struct cuda_store &store, const struct cuda_sent *sent,
                             const unsigned long long *words, int a, union record *r, double k18[3])
{
    const unsigned long long *word = sent ? words : store.body + a;
    const double *third = sent ? sent->k18 : store.k18 + a;
    const int64_t step = sent ? 1 : store.slots;
#pragma unroll
    for (int w = 0; w < CUDA_WORDS; w++) r->word[w] = word[w * step];
    for (int q = 0; q < 3; q++) k18[q] = store.k18 ? third[q * step] : 0.0;
}

DEVICE_FN const unsigned long long *words_of(const struct cuda_sent *sent)
{
    return (const unsigned long long *)&sent->body;
}

DEVICE_FN void store_particle(const struct cuda_store &store, int a, const union record *r,
                              const double k18[3])
{
#pragma unroll
    for (int w = 0; w < CUDA_WORDS; w++) store.body[w * store.slots + a] = r->word[w];
    for (int q = 0; q < 3 && store.k18; q++) store.k18[q * store.slots + a] = k18[q];
}

/* Loads the particle of `rest` that arrives at an address. */
DEVICE_FN void load_at_rest(const struct cuda_at_rest &rest, int a, union record *r, double k18[3])
{
    const int k = a - rest.first;
    for (int w = 0; w < 16; w++) r->word[w] = 0;
    const double2 *xm = (const double2 *)rest.xm[k];
    const double2 xy = xm[0], zm = xm[1];
    r->body.x[0] = xy.x, r->body.x[1] = xy.y, r->body.x[2] = zm.x, r->body.mass = zm.y;
    r->body.time = rest.time;
    r->body.index = rest.index[k];
    r->body.state = SLOT_SET;
    k18[0] = k18[1] = k18[2] = 0.0;
}

/* Writes particles at rest to their slots, with one thread each. */
KERNEL(receive_at_rest, struct cuda_receive_job, 256, 1)
{
    const int k = (int)(blockIdx.x * blockDim.x + threadIdx.x), a = job.rest.first + k;
    union record r;
    double k18[3];
    if (k >= job.rest.count) return;
    load_at_rest(job.rest, a, &r, k18);
    store_particle(job.store, a, &r, k18);
}

/* Predicts a particle, stores it at its place in a pair, and returns the range of its exponents. */
template <class JOB> /* of a prediction, or of sums that predict by themselves */
DEVICE_FN struct block_range predict_particle(const JOB &job, int a, const struct jparticle *p,
                                              const double k18[3], real *pair)
{
    struct block_range e = {EXPONENT_NONE, EXPONENT_NONE, EXPONENT_NONE, EXPONENT_NONE,
                            EXPONENT_NONE};
    real x[3] = {v_set1(FAR_AWAY), 0, 0}, lo[3] = {0, 0, 0}, v[3] = {0, 0, 0}, m = 0;
    if (a < job.nj && p->state == SLOT_SET) {
        const double dt = job.time - p->time;
        const double scaled_m = p->mass * job.units.m_unit;
        real far = 0, fast = 0;
        m = (real)scaled_m;
#if !DOUBLE_MODE /* a mass that would underflow sends its block to the exact sum */
        if (p->mass != 0.0 && fabs(scaled_m) < 0x1p-100) m = 0x1p-126f;
#endif
#pragma unroll
        for (int k = 0; k < 3; k++) {
            double xp, vp;
            predict_component(dt, job.snap ? k18[k] : 0.0, p->j6[k], p->a2[k], p->v[k], p->x[k],
                              &xp, &vp);
            split_position((xp - job.units.origin[k]) * job.units.x_unit, &x[k], &lo[k]);
            v[k] = (real)((vp - job.units.drift[k]) * job.units.v_unit);
            far = larger_bits(far, x[k]);
            fast = larger_bits(fast, v[k]);
        }
        e.x = (int16_t)exponent_of(far);
        e.v = (int16_t)exponent_of(fast);
        if (m != 0) {
            e.v_massive = e.v;
            e.m_low = e.m_high = (int16_t)exponent_of(m);
        }
    }
    store_source(pair, a & 1, x, lo, m, v);
    return e;
}

DEVICE_FN struct block_range range_of_warp(struct block_range e)
{
    const int low = min_of_warp(e.m_low == EXPONENT_NONE ? EXPONENT_HUGE : e.m_low);
    e.x = (int16_t)max_of_warp(e.x), e.v = (int16_t)max_of_warp(e.v);
    e.v_massive = (int16_t)max_of_warp(e.v_massive);
    e.m_high = (int16_t)max_of_warp(e.m_high);
    e.m_low = (int16_t)(e.m_high == EXPONENT_NONE ? EXPONENT_NONE : low);
    return e;
}

/* Smallest and largest label of a warp's particles. */
DEVICE_FN struct cuda_span span_of_warp(int32_t label)
{
    return {min_of_warp(label), max_of_warp(label)};
}

DEVICE_FN struct cuda_span wider_span(struct cuda_span a, struct cuda_span b)
{
    a.low = min(a.low, b.low);
    a.high = max(a.high, b.high);
    return a;
}

enum { WARP_REALS = 16 * PAIR_REALS, PREDICT_WARPS = CUDA_QUARTER / 32 };

/* Sets arriving[0..span-1] to the number in `sent` of each particle from `first` on, or to -1. The
 * caller must synchronize afterwards. */
DEVICE_FN void note_arriving(const struct cuda_arrivals &of, int first, int span,
                             signed char *arriving)
{
    const int t = (int)threadIdx.x;
    for (int k = t; k < span; k += (int)blockDim.x) arriving[k] = -1;
    __syncthreads();
    if (t < of.few && of.address[t] >= first && of.address[t] < first + span)
        arriving[of.address[t] - first] = (signed char)t;
}

/* The words of arriving particles in shared memory, by number in `sent`. */
typedef unsigned long long arriving_words[CUDA_FEW][CUDA_WORDS];

/* Fetches those that arrive from `first` on. They are in the host's memory: neighbouring threads
 * read neighbouring words, so that each particle takes one transfer. The caller must synchronize
 * afterwards. */
DEVICE_FN void fetch_arriving(const struct cuda_arrivals &of, const struct cuda_sent *sent,
                              int first, int span, arriving_words words)
{
    enum { THREADS = 256, ABREAST = THREADS / 16, PASSES = CUDA_FEW / ABREAST };
    const int w = (int)threadIdx.x % 16, k0 = (int)threadIdx.x / 16;
    unsigned long long word[PASSES];
#pragma unroll
    for (int p = 0; p < PASSES; p++) {
        const int k = k0 + p * ABREAST, at = k < of.few ? of.address[k] : -1;
        const bool mine = w < CUDA_WORDS && at >= first && at < first + span;
        word[p] = mine ? words_of(&sent[k])[w] : 0;
    }
#pragma unroll
    for (int p = 0; p < PASSES; p++)
        if (w < CUDA_WORDS) words[k0 + p * ABREAST][w] = word[p];
}

/* One thread per address. Sources go through shared memory, so that their stores coalesce. */
KERNEL(predict, struct cuda_predict_job, CUDA_QUARTER, 4)
{
    alignas(16) __shared__ real out[PREDICT_WARPS * WARP_REALS];
    __shared__ struct block_range ranges[PREDICT_WARPS];
    __shared__ struct cuda_span spans[PREDICT_WARPS];
    __shared__ signed char arriving[CUDA_QUARTER];
    __shared__ arriving_words sent;
    const int t = (int)threadIdx.x, warp = t / 32, lane = t % 32;
    const int quarter = job.first_block * (CUDA_BLOCK / CUDA_QUARTER) + (int)blockIdx.x;
    const int a = quarter * CUDA_QUARTER + t;
    note_arriving(job.arrivals, quarter * CUDA_QUARTER, CUDA_QUARTER, arriving);
    if (job.arrivals.few)
        fetch_arriving(job.arrivals, job.arrivals.sent, quarter * CUDA_QUARTER, CUDA_QUARTER, sent);
    __syncthreads();
    union record r;
    double k18[3];
    const bool rests = (unsigned)(a - job.rest.first) < (unsigned)job.rest.count;
    const bool arrives = rests || arriving[t] >= 0;
    if (rests)
        load_at_rest(job.rest, a, &r, k18);
    else
        load_particle(job.store, arrives ? &job.arrivals.sent[arriving[t]] : NULL,
                      sent[arrives ? arriving[t] : 0], a, &r, k18);
    if (arrives) store_particle(job.store, a, &r, k18);
    real *own = out + warp * WARP_REALS;
    const struct block_range e =
        range_of_warp(predict_particle(job, a, &r.body, k18, own + lane / 2 * PAIR_REALS));
    const struct cuda_span s = span_of_warp(r.body.index);
    job.sources.index[a] = r.body.index;
    if (lane == 0) {
        ranges[warp] = e;
        spans[warp] = s;
    }
    __syncthreads();
    quad *to = (quad *)((real *)job.sources.pairs + (size_t)(a - lane) / 2 * PAIR_REALS);
    for (int q = lane; q < (int)(WARP_REALS * sizeof(real) / 16); q += 32) to[q] = ((quad *)own)[q];
    enum { GROUPS = CUDA_QUARTER / CUDA_GROUP };
    if (t < GROUPS)
        job.sources.spans[quarter * GROUPS + t] = wider_span(spans[2 * t], spans[2 * t + 1]);
    if (t == 32) {
        struct block_range all = ranges[0];
        for (int w = 1; w < PREDICT_WARPS; w++) all = wider(all, ranges[w]);
        job.sources.ranges[quarter] = all;
    }
}
