/* hermite.cu - Hermite integration in device memory: selection of the next block, prediction,
 * correction. The arithmetic is in hermite_step.h. */

/* ---- the next block --------------------------------------------------------------------- */

/* Infinity. */
DEVICE_FN double never(void) { return from_bits((uint64_t)0x7ff << 52); }

DEVICE_FN double step_end(const struct cuda_next_job &job, int p)
{
    return hermite_step_end(job.t[p], job.dt[p], job.common);
}

/* The least of the values of 256 threads, returned in all of them. */
DEVICE_FN double least_of_block(double mine, double *shared)
{
    const unsigned t = threadIdx.x;
    shared[t] = mine;
    for (unsigned half = 128; half; half /= 2) {
        __syncthreads();
        if (t < half && shared[t + half] < shared[t]) shared[t] = shared[t + half];
    }
    __syncthreads();
    return shared[0];
}

KERNEL(next_time, struct cuda_next_job, 256, 1)
{
    __shared__ double shared[256];
    const int first = (int)blockIdx.x * job.share;
    double least = never();
    for (int k = (int)threadIdx.x; k < job.share && first + k < job.n; k += 256) {
        const double end = step_end(job, first + k);
        if (end < least) least = end;
        if (!(end < never())) atomicMin(&job.notes->invalid, first + k);
    }
    least = least_of_block(least, shared);
    if (threadIdx.x == 0) job.earliest[blockIdx.x] = least;
}

KERNEL(next_count, struct cuda_next_job, 256, 1)
{
    __shared__ double shared[256];
    __shared__ int count;
    const unsigned t = threadIdx.x;
    if (t == 0) count = 0;
    const double time = least_of_block(t < gridDim.x ? job.earliest[t] : never(), shared);
    const int first = (int)blockIdx.x * job.share;
    for (int k = (int)t; k < job.share; k += 256) { /* whole warps: share is a multiple of 32 */
        const int p = first + k;
        const unsigned bits =
            __ballot_sync(0xffffffffu, p < job.n && step_end(job, p < job.n ? p : 0) == time);
        if (t % 32 == 0 && p < job.n) {
            job.bits[p / 32] = bits;
            if (bits) atomicAdd(&count, __popc(bits));
        }
    }
    __syncthreads();
    if (t != 0) return;
    job.counts[blockIdx.x] = count;
    if (blockIdx.x == 0) job.notes->time = time;
}

/* `before` plus the sum of `mine` over all lower threads. *end: `before` plus the sum over all
 * threads. */
DEVICE_FN int place_of(int mine, int before, int *shared, int *end)
{
    const unsigned t = threadIdx.x;
    int value = mine;
    for (unsigned by = 1; by < 256; by *= 2) {
        __syncthreads();
        shared[t] = value;
        __syncthreads();
        if (t >= by) value += shared[t - by];
    }
    __syncthreads();
    shared[t] = value;
    __syncthreads();
    *end = before + shared[255];
    return before + value - mine;
}

KERNEL(next_list, struct cuda_next_job, 256, 1)
{
    __shared__ int shared[256];
    const int t = (int)threadIdx.x, block = (int)blockIdx.x;
    int at, end;
    (void)place_of(t < block ? job.counts[t] : 0, 0, shared, &at);
    if (block == (int)gridDim.x - 1 && t == 0) job.notes->count = at + job.counts[block];
    const int first = block * job.share / 32, words = job.share / 32;
    for (int base = 0; base < words; base += 256, at = end) {
        const int w = first + base + t;
        unsigned bits = base + t < words && w < (job.n + 31) / 32 ? job.bits[w] : 0;
        int to = place_of(__popc(bits), at, shared, &end);
        for (; bits; bits &= bits - 1) {
            const int p = 32 * w + __ffs((int)bits) - 1;
            job.address[to++] = p;
            if (!(step_end(job, p) > job.t[p])) atomicMin(&job.notes->invalid, p);
        }
    }
}

/* ---- particles of the block ------------------------------------------------------------- */

KERNEL(hermite_predict, struct cuda_hermite_job, 256, 1)
{
    const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= job.rows) return;
    const int p = job.address[row];
    hermite_predict_one(&job.state, p, job.time, job.xi[row], job.vi[row]);
    if (job.fine) job.fine[row] = hermite_is_fine(&job.noise, &job.state, p, job.time);
}

/* Notes how many rows are j particles: they ascend, so that one thread knows. */
DEVICE_FN void note_acting(struct cuda_notes *notes, const int32_t *address, int row, int rows,
                           int acting)
{
    if (address[row] < acting && (row + 1 == rows || address[row + 1] >= acting))
        notes->acting = row + 1;
}

DEVICE_FN void sums_of(const struct cuda_hermite_job &job, int row, double acc[3], double jerk[3],
                       double *pot)
{
    for (int k = 0; k < 3; k++) acc[k] = job.acc[row][k], jerk[k] = job.jerk[row][k];
    *pot = job.pot[row];
}

DEVICE_FN bool has_given(const struct cuda_hermite_job &job) { return job.given; }

DEVICE_FN void add_given(const struct cuda_hermite_job &job, int row, double acc[3], double jerk[3])
{
    for (int k = 0; k < 3; k++) acc[k] += job.field_acc[row][k], jerk[k] += job.field_jerk[row][k];
}

/* All that acts on a row, and what of that is from outside. */
struct row_force {
    double acc[3], jerk[3], pot, outside[2][3];
};

template <class Job> DEVICE_FN struct row_force force_on(const Job &job, int row)
{
    struct row_force f;
    double x[3], v[3];
    sums_of(job, row, f.acc, f.jerk, &f.pot);
    for (int k = 0; k < 3; k++) {
        f.outside[0][k] = f.acc[k], f.outside[1][k] = f.jerk[k];
        x[k] = job.xi[row][k], v[k] = job.vi[row][k];
    }
    if (has_given(job))
        add_given(job, row, f.acc, f.jerk);
    else if (!field_is_none(&job.field))
        hermite_add_field(&job.field, &job.state, job.address[row], job.time, x, v, f.acc, f.jerk);
    for (int k = 0; k < 3; k++) {
        f.outside[0][k] = f.acc[k] - f.outside[0][k];
        f.outside[1][k] = f.jerk[k] - f.outside[1][k];
    }
    return f;
}

/* Adds to what acts on the row of a thread, of the only CUDA block, as hermite_correct_pairs(). */
template <class Job> DEVICE_FN void add_second(const Job &job, int row, struct row_force *f)
{
    __shared__ double all[2][HERMITE_PAIR_ROWS][3];
    const struct hermite_rows rows = {job.rows, job.address, job.time, job.eps2,
                                      job.xi,   job.vi,      all[0],   all[1]};
    if (!hermite_has_pairs(&rows)) return;
    for (int k = 0; k < 3 && row < job.rows; k++) {
        all[0][row][k] = f->acc[k];
        all[1][row][k] = f->jerk[k];
    }
    __syncthreads();
    if (row < job.rows) hermite_add_second(&rows, &job.state, row, f->acc, f->jerk);
    __syncthreads(); /* from now on rows may be written */
}

/* Corrects a row, on which `f` acts. Returns what hermite_correct_one() returns. */
template <class Job> DEVICE_FN int correct_row(const Job &job, int row, const struct row_force &f)
{
    const int p = job.address[row];
    const double dt = job.time - job.state.t[p];
    double a[3], x[3], v[3], roundoff = -1.0; /* of acc at xi, vi; negative: unknown */
    if (job.rounding) {
        for (int k = 0; k < 3; k++) a[k] = f.acc[k] - f.outside[0][k];
        const double error = hermite_roundoff(&job.noise, job.rounding[p], f.pot, a, f.jerk,
                                              job.xi[row], job.vi[row]);
        const bool fine = hermite_is_fine(&job.noise, &job.state, p, job.time);
        roundoff = (fine ? HERMITE_FINE * error : error) + job.field.roundoff;
    }
    const int found =
        hermite_correct_one(&job.rule, &job.state, p, job.time, f.acc, f.jerk, roundoff, x, v);
    if (found >= 0 && job.work.work)
        hermite_add_work(&job.work, p, dt, f.outside[0], f.outside[1], v, f.acc);
    for (int k = 0; k < 3; k++) job.xi[row][k] = x[k], job.vi[row][k] = v[k];
    return found;
}

KERNEL(hermite_correct, struct cuda_hermite_job, 256, 1)
{
    const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    struct row_force f;
    if (row < job.rows) f = force_on(job, row);
    add_second(job, row, &f);
    if (row >= job.rows) return;
    for (int k = 0; k < 3 && job.field_acc; k++) {
        job.field_acc[row][k] = f.outside[0][k];
        job.field_jerk[row][k] = f.outside[1][k];
    }
    const int found = correct_row(job, row, f);
    if (found > 0) atomicAdd(&job.notes->clamped, 1);
    if (found < 0) atomicMin(&job.notes->invalid, row);
    note_acting(job.notes, job.address, row, job.rows, job.acting);
    if (!job.a2) return;
    for (int k = 0; k < 3; k++) {
        job.a2[row][k] = f.acc[k] / 2.0;
        job.j6[row][k] = f.jerk[k] / 6.0;
    }
    job.mass_out[row] = job.mass[job.address[row]];
    job.time_out[row] = job.time;
}

/* The nearer of the nearest j particle and the nearest of those that are none, for a row of which
 * this CUDA block has the 256 threads. */
DEVICE_FN int nearest_of_all(const struct cuda_hermite_job &job, const struct watch_row &row)
{
    __shared__ struct watch_nearest shared[256];
    const int t = (int)threadIdx.x;
    struct watch_nearest mine = {never(), row.p};
    double x[3], v[3];
    for (int q = t ? job.acting + t - 1 : row.nearest; q < job.n; q += t ? 255 : job.n) {
        hermite_predict_one(&job.state, q, job.time, x, v);
        if (q != row.p) watch_add_near(&mine, x, q, row.x);
    }
    shared[t] = mine;
    for (int half = 128; half; half /= 2) {
        __syncthreads();
        const struct watch_nearest *other = &shared[t + half];
        if (t < half &&
            (other->r2 < shared[t].r2 || (other->r2 == shared[t].r2 && other->p < shared[t].p)))
            shared[t] = *other;
    }
    return shared[0].p;
}

KERNEL(hermite_watch, struct cuda_hermite_job, 256, 1)
{
    const int row = (int)blockIdx.x;
    struct watch_row watch = job.watch;
    watch.x = job.xi[row];
    watch.v = job.vi[row];
    watch.p = job.address[row];
    watch.nearest = job.nearest ? job.nearest[row] : watch.p;
    const int is_known = watch.nearest >= 0 && watch.nearest < job.n;
    if (is_known && job.nearest && job.acting < job.n) watch.nearest = nearest_of_all(job, watch);
    if (threadIdx.x != 0) return;
    if (!is_known) {
        job.notes->unknown = 1;
        return;
    }
    if (job.nearest) job.nearest[row] = watch.nearest;
    if (watch_step(&job.state, &watch, job.time, never(), &job.close[row], &job.left[row]))
        job.notes->watched = 1;
}

/* ---- kernel fused_step: a whole block step, for few particles ---------------------------------
 */

DEVICE_FN void sums_of(const struct cuda_fused_step_job &job, int row, double acc[3],
                       double jerk[3], double *pot)
{
    const int fine = job.fine ? job.fine[row] : -1, which = fine >= 0;
    const double *sum = job.sum[which] + (which ? fine : row);
    const int64_t stride = job.stride[which];
    for (int k = 0; k < 3; k++) {
        acc[k] = sum[(SUM_AX + k) * stride];
        jerk[k] = sum[(SUM_JX + k) * stride];
    }
    *pot = sum[SUM_POT * stride];
}

DEVICE_FN bool has_given(const struct cuda_fused_step_job &) { return false; }
DEVICE_FN void add_given(const struct cuda_fused_step_job &, int, double *, double *) {}

/* Whether all sums of the block are complete and finite. Called by 256 threads. */
DEVICE_FN bool is_complete(const struct cuda_fused_step_job &job)
{
    bool odd = job.rows && (*job.left_count[0] != 0 || (job.fine && *job.left_count[1] != 0));
    for (int row = (int)threadIdx.x; row < job.rows; row += 256) {
        double acc[3], jerk[3], pot;
        sums_of(job, row, acc, jerk, &pot);
        if (!are_numbers(acc) || !are_numbers(jerk) || !is_number(pot)) odd = true;
    }
    return !__syncthreads_or(odd);
}

/* Moves the particles of the block, in the field; false if one would become NaN or infinite. */
DEVICE_FN bool move_block(const struct cuda_fused_step_job &job)
{
    __shared__ int clamped, invalid;
    if (threadIdx.x == 0) clamped = 0, invalid = CUDA_NO_ROW;
    __syncthreads();
    for (int base = 0; base < job.rows; base += 256) {
        const int row = base + (int)threadIdx.x;
        struct row_force f;
        if (row < job.rows) f = force_on(job, row);
        add_second(job, row, &f);
        if (row >= job.rows) continue;
        const int found = correct_row(job, row, f);
        if (found > 0) atomicAdd(&clamped, 1);
        if (found < 0) atomicMin(&invalid, row);
    }
    __syncthreads();
    if (threadIdx.x == 0) job.notes->clamped = clamped, job.notes->invalid = invalid;
    return invalid == CUDA_NO_ROW;
}

/* Writes the block as j particles, to their slots and to the host. */
DEVICE_FN void write_block(const struct cuda_fused_step_job &job)
{
    const double none[3] = {0.0, 0.0, 0.0};
    if (threadIdx.x == 0) job.notes->acting = 0;
    __syncthreads();
    for (int row = (int)threadIdx.x; row < job.rows && job.address[row] < job.acting; row += 256) {
        const int p = job.address[row];
        struct cuda_sent *sent = &job.sent[row];
        union record r;
        note_acting(job.notes, job.address, row, job.rows, job.acting);
        for (int k = 0; k < 3; k++) {
            r.body.x[k] = job.xi[row][k];
            r.body.v[k] = job.vi[row][k];
            r.body.a2[k] = job.state.a[p][k] / 2.0; /* with the field in it */
            r.body.j6[k] = job.state.j[p][k] / 6.0;
            sent->k18[k] = 0.0;
        }
        r.body.mass = job.mass[p];
        r.body.time = job.time;
        r.body.index = p;
        r.body.state = SLOT_SET;
        r.body.unused = 0.0;
        store_particle(job.store, p, &r, none);
        sent->body = r.body;
        sent->address = p;
    }
}

/* A thread's place among those of 256 threads that are chosen, behind *count earlier ones. Adds
 * their number to *count. */
DEVICE_FN int place_among(bool chosen, int *count)
{
    __shared__ int of_warp[8];
    const int t = (int)threadIdx.x;
    const unsigned bits = __ballot_sync(0xffffffffu, chosen);
    __syncthreads();
    if (t % 32 == 0) of_warp[t / 32] = __popc(bits);
    __syncthreads();
    int to = *count + __popc(bits & ((1u << t % 32) - 1));
    for (int w = 0; w < 8; w++) {
        if (w < t / 32) to += of_warp[w];
        *count += of_warp[w];
    }
    return to;
}

/* Writes the particles whose steps end first, ascending, to job.address. Returns their number; 0 if
 * one of these steps has no length, or any step has no finite end. */
DEVICE_FN int find_next(const struct cuda_fused_step_job &job, double *time)
{
    __shared__ double shared[256];
    const int t = (int)threadIdx.x;
    bool stuck = false;
    double least = never();
    for (int p = t; p < job.n; p += 256) {
        const double end = hermite_step_end(job.state.t[p], job.state.dt[p], job.common);
        if (end < least) least = end;
        if (!(end < never())) stuck = true;
    }
    *time = least = least_of_block(least, shared);
    int count = 0;
    for (int base = 0; base < job.n; base += 256) {
        const int p = base + t;
        const bool is_next =
            p < job.n && hermite_step_end(job.state.t[p], job.state.dt[p], job.common) == least;
        const int to = place_among(is_next, &count);
        if (is_next) job.address[to] = p;
        if (is_next && !(least > job.state.t[p])) stuck = true;
    }
    return __syncthreads_or(stuck) ? 0 : count;
}

/* Numbers the fine rows of the next block, and writes them once more as i particles for the sums in
 * double. Returns how many there are. */
DEVICE_FN int place_fine(const struct cuda_fused_step_job &job, int count, double time)
{
    const int t = (int)threadIdx.x;
    int placed = 0;
    for (int base = 0; base < count && job.fine; base += 256) {
        const int row = base + t;
        const bool fine =
            row < count && hermite_is_fine(&job.noise, &job.state, job.address[row], time);
        const int to = place_among(fine, &placed);
        if (row < count) job.fine[row] = fine ? to : -1;
        if (fine) job.fine_targets[to] = job.targets[row];
    }
    return placed;
}

/* Predicts the next block, and writes it as i particles; false if one is not finite. */
DEVICE_FN bool predict_block(const struct cuda_fused_step_job &job, int count, double time)
{
    bool odd = false;
    for (int row = (int)threadIdx.x; row < count; row += 256) {
        const int p = job.address[row];
        struct cuda_target *to = &job.targets[row];
        double x[3], v[3];
        hermite_predict_one(&job.state, p, time, x, v);
        if (!are_numbers(x) || !are_numbers(v)) odd = true;
        for (int k = 0; k < 3; k++) {
            job.xi[row][k] = to->x[k] = x[k];
            job.vi[row][k] = to->v[k] = v[k];
        }
        to->eps2 = job.eps2;
        to->index = p;
        to->invalid = 0;
    }
    return !__syncthreads_or(odd);
}

KERNEL(fused_step, struct cuda_fused_step_job, 256, 1)
{
    struct cuda_notes *notes = job.notes;
    bool complete = is_complete(job);
    bool valid = complete && move_block(job);
    double time = 0.0;
    int count = 0, fine = 0;
    if (valid) {
        write_block(job);
        __syncthreads();
        count = find_next(job, &time);
        valid = predict_block(job, count, time);
        fine = place_fine(job, count, time);
    }
    if (threadIdx.x == 0) {
        notes->incomplete = !complete;
        notes->count = valid ? count : 0;
        notes->time = time;
        notes->fine = fine;
    }
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) *(volatile unsigned long long *)&notes->step = job.step;
}
