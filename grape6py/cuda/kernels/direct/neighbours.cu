/* neighbours.cu - neighbour lists: pairs of a row and an index with s^2 <= h2.
 *
 * The test is made in double, but only for pairs that a first test does not exclude: r^2 in the
 * precision of MODE, from the high halves of the positions. */

enum {
    LIST_THREADS = 256,
    LIST_EACH = CUDA_BLOCK / LIST_THREADS, /* addresses of a thread */
    LIST_UNROLL = DOUBLE_MODE ? 1 : 2,
    LIST_BUFFER = 1024 /* pairs that are written together */
};

/* Squared distance in double, from the positions as the kernels store them. */
DEVICE_FN double separation2(const struct pair_i *i, const struct pair_j *j)
{
    const real from[6] = {i->x, i->y, i->z, i->xl, i->yl, i->zl};
    const real to[6] = {j->x, j->y, j->z, j->xl, j->yl, j->zl};
    double s2 = 0.0;
    for (int k = 0; k < 3; k++) {
        double d = __dsub_rn((double)to[k], (double)from[k]);
        if (SPLIT) d = __dadd_rn(d, __dsub_rn((double)to[3 + k], (double)from[3 + k]));
        s2 = __dadd_rn(s2, __dmul_rn(d, d));
    }
    return s2;
}

/* The position of a row's i particle, in the form of pair.h. */
DEVICE_FN void split_target(const struct cuda_list_job &job, int row, struct pair_i *i)
{
    const double *x = job.targets[row].x;
    const struct cuda_units &units = job.units;
    split_position((x[0] - units.origin[0]) * units.x_unit, &i->x, &i->xl);
    split_position((x[1] - units.origin[1]) * units.x_unit, &i->y, &i->yl);
    split_position((x[2] - units.origin[2]) * units.x_unit, &i->z, &i->zl);
}

DEVICE_FN bool is_everybody(double h2) { return h2 > 0x1.fffffffffffffp1023; }

/* An i particle in shared memory. A neighbour has r^2 <= most; most is infinite or NaN if no
 * particle can be excluded, and AS_WRITTEN if the numbers are too large to tell. */
enum { AS_WRITTEN = -2 };
struct alignas(4 * sizeof(real)) list_row {
    real x, y, z, most;
};

/* Its position and bound. `low` is the largest low half of the j particles' coordinates. The bound
 * allows for the missing low halves of i and j in three directions: less than twice their sum. */
DEVICE_FN struct list_row prepare_row(const struct cuda_list_job &job, int row, real low)
{
    const double unit = job.units.x_unit, h2 = job.targets[row].h2;
    const double limit = h2 * unit * unit, eps2 = job.targets[row].eps2 * unit * unit;
    const double reach2 = limit - eps2 + limit * 0x1p-18;
    struct pair_i i = {};
    split_target(job, row, &i);
    const real own = larger_bits(larger_bits(i.xl, i.yl), i.zl);
    struct list_row r = {i.x, i.y, i.z, v_set1(-1)};
    if (!(h2 >= 0.0) || reach2 < 0.0) return r;
    const double radius = sqrt(reach2) + (SPLIT ? 2.0 * ((double)own + (double)low) : 0.0);
    const double most = radius * radius * (1.0 + 0x1p-18), huge = DOUBLE_MODE ? 0x1p1000 : 0x1p120;
    const bool fits = most < huge && larger_bits(larger_bits(i.x, i.y), i.z) < huge;
    r.most = is_everybody(h2) ? (real)from_bits(0x7ff0000000000000u)
             : fits           ? (real)(most + 1.0 / huge)
                              : v_set1(AS_WRITTEN);
    return r;
}

/* Whether the particle at an address is a neighbour of a row's i particle. An infinite h2 includes
 * particles whose positions do not fit the kernels' numbers. */
DEVICE_CALL bool is_neighbour(const struct cuda_list_job &job, int row, int address)
{
    const double unit = job.units.x_unit, h2 = job.targets[row].h2;
    if (address >= job.nj) return false;
    const struct pair_j j = load_source((const real *)job.sources.pairs, address);
    if (j.x == v_set1(FAR_AWAY) && j.m == 0) return false;
    if (is_everybody(h2)) return true;
    struct pair_i i = {};
    split_target(job, row, &i);
    const double limit = h2 * unit * unit, eps2 = job.targets[row].eps2 * unit * unit;
    return __dadd_rn(separation2(&i, &j), eps2) <= limit;
}

/* The same from what the caller wrote. */
DEVICE_CALL bool is_neighbour_as_written(const struct cuda_list_job &job, int row, int address)
{
    const struct cuda_list_target &i = job.targets[row];
    union record p;
    double k18[3], s2 = i.eps2;
    if (address >= job.nj) return false;
    load_particle(job.store, NULL, NULL, address, &p, k18);
    for (int k = 0; k < 3; k++) {
        double x, v;
        predict_component(job.time - p.body.time, job.snap ? k18[k] : 0.0, p.body.j6[k],
                          p.body.a2[k], p.body.v[k], p.body.x[k], &x, &v);
        const double d = __dsub_rn(x, i.x[k]);
        s2 = __dadd_rn(s2, __dmul_rn(d, d));
    }
    return p.body.state == SLOT_SET && s2 <= i.h2;
}

DEVICE_FN void write_listed(const struct cuda_list_job &job, unsigned long long at,
                            struct cuda_listed pair)
{
    if (at < (unsigned long long)job.capacity) job.listed[at] = pair;
}

/* The largest low half of the block's particles; `mine`: of those of this thread. */
DEVICE_FN real largest_of_block(real mine)
{
#if SPLIT
    __shared__ int largest;
    if (threadIdx.x == 0) largest = 0;
    __syncthreads();
    const int most = max_of_warp(__float_as_int(mine));
    if (threadIdx.x % 32 == 0) atomicMax(&largest, most);
    __syncthreads();
    return __int_as_float(largest);
#else
    return mine;
#endif
}

/* Each thread tests LIST_EACH addresses against all rows of its CUDA block. Addresses from nj on
 * are tested too, and never match. */
KERNEL(neighbours, struct cuda_list_job, 256, 4)
{
    __shared__ struct list_row row[CUDA_LIST_ROWS];
    __shared__ struct cuda_listed buffer[LIST_BUFFER];
    __shared__ int found;
    __shared__ unsigned long long place;
    const int thread = (int)threadIdx.x, first_row = (int)blockIdx.y * job.tile_rows;
    const int rows = min(job.tile_rows, job.rows - first_row);
    const int address = (int)blockIdx.x * CUDA_BLOCK + 2 * thread; /* this, + 1, + 512, + 513 */
    real x[LIST_EACH], y[LIST_EACH], z[LIST_EACH], low = 0;
#pragma unroll
    for (int k = 0; k < LIST_EACH; k += 2) {
        struct pair_j j[2];
        const int first = address + k * LIST_THREADS;
        load_sources((const real *)job.sources.pairs + (size_t)(first / 2) * PAIR_REALS, &j[0],
                     &j[1]);
#pragma unroll
        for (int q = 0; q < 2; q++) {
            x[k + q] = j[q].x, y[k + q] = j[q].y, z[k + q] = j[q].z;
            if (SPLIT && first + q < job.nj)
                low = larger_bits(low, larger_bits(larger_bits(j[q].xl, j[q].yl), j[q].zl));
        }
    }
    if (thread == 0) found = 0;
    low = largest_of_block(low);
    if (thread < rows) row[thread] = prepare_row(job, first_row + thread, low);
    const int any = __syncthreads_or(thread < rows && row[thread].most == v_set1(AS_WRITTEN));
    const auto address_of = [&](int k) { return address + k / 2 * 2 * LIST_THREADS + k % 2; };
    const auto list = [&](int r, int a) {
        const struct cuda_listed pair = {first_row + r, job.sources.index[a]};
        const int at = atomicAdd(&found, 1);
        if (at < LIST_BUFFER)
            buffer[at] = pair;
        else
            write_listed(job, atomicAdd(job.count, 1ull), pair);
    };
#pragma unroll(LIST_UNROLL)
    for (int r = 0; r < rows; r++) {
        const struct list_row i = row[r];
        real r2[LIST_EACH];
#pragma unroll
        for (int k = 0; k < LIST_EACH; k++) {
            const struct pair_sep s = {v_sub(i.x, x[k]), v_sub(i.y, y[k]), v_sub(i.z, z[k])};
            r2[k] = pair_distance2(&s, v_set1(0));
        }
        if (fmin(fmin(r2[0], r2[1]), fmin(r2[2], r2[3])) > i.most) continue;
#pragma unroll 1
        for (int k = 0; k < LIST_EACH; k++) {
            const real own = k == 0 ? r2[0] : k == 1 ? r2[1] : k == 2 ? r2[2] : r2[3];
            if (own > i.most || !is_neighbour(job, first_row + r, address_of(k))) continue;
            list(r, address_of(k));
        }
    }
    for (int r = 0; any && r < rows; r++)
        for (int k = 0; row[r].most == v_set1(AS_WRITTEN) && k < LIST_EACH; k++)
            if (is_neighbour_as_written(job, first_row + r, address_of(k))) list(r, address_of(k));
    __syncthreads();
    const int buffered = min(found, (int)LIST_BUFFER);
    if (thread == 0 && buffered) place = atomicAdd(job.count, (unsigned long long)buffered);
    __syncthreads();
    for (int k = thread; k < buffered; k += LIST_THREADS)
        write_listed(job, place + (unsigned)k, buffer[k]);
    __threadfence_system();
    __syncthreads();
    if (thread || atomicAdd(&job.count[1], 1ull) != gridDim.x * gridDim.y - 1) return;
    job.there[0] = __ldcg(&job.count[0]);
    job.count[0] = job.count[1] = 0;
    __threadfence_system();
    *(volatile unsigned long long *)&job.there[1] = job.step;
}
