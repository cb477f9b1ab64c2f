/* arrays.cu - callers' arrays in device memory: loads i particles, writes forces, collects j
 * particles. A vector is a row of three doubles. */

DEVICE_FN bool is_number(double a) { return (bits_of(a) >> 52 & 0x7ff) != 0x7ff; }
DEVICE_FN bool are_numbers(const double *a)
{
    return is_number(a[0]) && is_number(a[1]) && is_number(a[2]);
}
DEVICE_FN double quiet_nan(void) { return from_bits((uint64_t)0x7ff8 << 48); }

/* ---- i particles ------------------------------------------------------------------------ */

KERNEL(read_targets, struct cuda_read_targets_job, 256, 1)
{
    const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= job.rows) return;
    const int from = job.list ? job.list[row] : row;
    const double *x = job.x + 3 * (size_t)from, *v = job.v + 3 * (size_t)from;
    struct cuda_target *to = &job.targets[row];
    const bool valid = are_numbers(x) && are_numbers(v);
    for (int k = 0; k < 3; k++) {
        to->x[k] = valid ? x[k] : 0.0;
        to->v[k] = valid ? v[k] : 0.0;
    }
    to->eps2 = job.eps2;
    to->index = job.index[from];
    to->invalid = !valid;
    if (!valid) atomicMin(&job.notes->invalid, from);
}

/* ---- forces ----------------------------------------------------------------------------- */

/* hi + lo, |lo| <= ulp(hi) / 2 */
struct pair_of_doubles {
    double hi, lo;
};

DEVICE_FN struct pair_of_doubles sum_of(double a, double b)
{
    const double s = __dadd_rn(a, b), c = __dsub_rn(s, a);
    return {s, __dadd_rn(__dsub_rn(a, __dsub_rn(s, c)), __dsub_rn(b, c))};
}

DEVICE_FN struct pair_of_doubles times(double a, double b)
{
    const double p = __dmul_rn(a, b);
    return {p, __fma_rn(a, b, -p)};
}

/* Distance of two positions, computed in twice the precision of a double: it rounds to the same
 * float as on the host, which has 64 bits. */
DEVICE_FN float distance_of(const double from[3], const double to[3])
{
    double hi = 0.0, lo = 0.0;
    for (int k = 0; k < 3; k++) {
        const struct pair_of_doubles d = sum_of(to[k], -from[k]);
        if (!(fabs(d.hi) < 0x1p200)) return __int_as_float(0x7f800000); /* too large for a float */
        const struct pair_of_doubles square = times(d.hi, d.hi), s = sum_of(hi, square.hi);
        const double rest = __fma_rn(2.0 * d.hi, d.lo, square.lo);
        const struct pair_of_doubles sum = sum_of(s.hi, __dadd_rn(__dadd_rn(s.lo, lo), rest));
        hi = sum.hi, lo = sum.lo;
    }
    if (!(hi > 0.0)) return 0.0f;
    const double root = sqrt(hi);
    const struct pair_of_doubles square = times(root, root);
    const double lacks = __dadd_rn(__dsub_rn(__dsub_rn(hi, square.hi), square.lo), lo);
    return (float)__dadd_rn(root, lacks / (2.0 * root));
}

/* The particle at an address, predicted. */
DEVICE_FN void predict_slot(const struct cuda_store &store, int64_t a, double time, bool snap,
                            double x[3], double v[3])
{
    const double *word = (const double *)store.body + a;
    const int64_t slots = store.slots;
    const double dt = time - word[7 * slots];
    for (int k = 0; k < 3; k++)
        predict_component(dt, snap && store.k18 ? store.k18[k * slots + a] : 0.0,
                          word[(12 + k) * slots], word[(8 + k) * slots], word[(4 + k) * slots],
                          word[k * slots], &x[k], &v[k]);
}

/* Writes a vector; NaN if it is not requested or one component does not fit a double. */
DEVICE_FN bool store_vector(double *to, const double *sum, int64_t stride, bool requested)
{
    const double a[3] = {sum[0], sum[stride], sum[2 * stride]};
    const bool fits = are_numbers(a);
    for (int k = 0; k < 3; k++) to[k] = fits && requested ? a[k] : quiet_nan();
    return fits || !requested;
}

DEVICE_FN void fill_nan(const struct cuda_write_forces_job &job, size_t row, int nearest)
{
    for (int k = 0; k < 3; k++) {
        if (job.acc) job.acc[3 * row + k] = quiet_nan();
        if (job.jerk) job.jerk[3 * row + k] = quiet_nan();
    }
    if (job.pot) job.pot[row] = quiet_nan();
    if (job.nearest) job.nearest[row] = nearest;
    if (job.distance) job.distance[row] = __int_as_float(0x7fc00000);
}

/* Writes the outputs as csrc/session/output.c does. */
KERNEL(write_forces, struct cuda_write_forces_job, 256, 1)
{
    const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= job.rows) return;
    const struct cuda_target *target = &job.targets[row];
    const int to = job.list ? job.list[row] : row;
    if (job.failed || target->invalid) {
        fill_nan(job, (size_t)to, job.failed ? -1 : target->index);
        return;
    }
    const size_t at = 3 * (size_t)to;
    const double *sum = job.sum + row, pot = sum[SUM_POT * job.stride];
    bool fits = store_vector(job.acc + at, sum, job.stride, true);
    fits &= store_vector(job.jerk + at, sum + SUM_JX * job.stride, job.stride, job.has_jerk);
    fits &= is_number(pot);
    job.pot[to] = is_number(pot) ? 0.0 - pot : quiet_nan();
    if (!fits) atomicMin(&job.notes->out_of_range, to);
    const int address = job.nearest || job.distance ? job.nearest_address[row] : -1;
    if (job.nearest) job.nearest[to] = address < 0 ? target->index : job.nearest_index[row];
    if (!job.distance) return;
    double x[3], v[3];
    if (address >= 0) predict_slot(job.store, address, job.time, job.snap, x, v);
    job.distance[to] = address < 0 ? 0.0f : distance_of(target->x, x);
}

/* ---- j particles ------------------------------------------------------------------------ */

KERNEL(examine, struct cuda_collect_job, 256, 1)
{
    const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= job.count) return;
    const size_t at = 3 * (size_t)row;
    bool valid = is_number(job.mass[row]) && (!job.time || is_number(job.time[row]));
    const double *const vectors[] = {job.x, job.v, job.a2, job.j6, job.k18};
    for (const double *vector : vectors) valid = valid && (!vector || are_numbers(vector + at));
    if (!valid) atomicMin(&job.notes->invalid, row);
}

DEVICE_FN unsigned long long word_of(const double *array, size_t at)
{
    return array ? bits_of(array[at]) : 0;
}

/* Sixteen threads per row, one for each word of struct jparticle; the last one, whose word is
 * unused, copies k18. */
KERNEL(collect, struct cuda_collect_job, 256, 1)
{
    const int n = (int)(blockIdx.x * blockDim.x + threadIdx.x), k = n / 16, w = n % 16;
    if (k >= job.count) return;
    const size_t row = (size_t)job.first + k, at = 3 * row + w % 4;
    const int32_t address = job.address ? job.address[row] : (int32_t)row;
    const int64_t slots = job.store.slots;
    struct cuda_sent *sent = &job.sent[k];
    if (w == 15) {
        for (int q = 0; q < 3; q++) {
            const double k18 = job.k18 ? job.k18[3 * row + q] : 0.0;
            sent->k18[q] = k18;
            if (job.store.body && job.store.k18) job.store.k18[q * slots + address] = k18;
        }
        return;
    }
    unsigned long long word;
    if (w % 4 < 3)
        word = word_of(w < 4 ? job.x : w < 8 ? job.v : w < 12 ? job.a2 : job.j6, at);
    else if (w == 11)
        word =
            (unsigned long long)SLOT_SET << 32 | (uint32_t)(job.index ? job.index[row] : address);
    else
        word = w == 3 ? word_of(job.mass, row) : word_of(job.time, row);
    ((unsigned long long *)&sent->body)[w] = word;
    if (w == 11) sent->address = address;
    if (job.store.body) job.store.body[w * slots + address] = word;
}

KERNEL(predicted, struct cuda_predicted_job, 256, 1)
{
    const int a = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (a >= job.n) return;
    double x[3] = {0.0, 0.0, 0.0}, v[3] = {0.0, 0.0, 0.0};
    if (a < job.store.slots && job.store.body[11 * job.store.slots + a] >> 32 == SLOT_SET)
        predict_slot(job.store, a, job.time, job.snap, x, v);
    for (int k = 0; k < 3; k++) {
        job.x[3 * (size_t)a + k] = x[k];
        job.v[3 * (size_t)a + k] = v[k];
    }
}
