/* walks.cu - sums of the lists of walks. A CUDA block sums one list on a tile of targets, up to
 * four per thread. Positions are relative to the centre of the tile's box, in units of a power of
 * two that depends on the tile and its list. */
#include "shared/pair_double.h"
#include "shared/walk_close.h"

enum { WALK_THREADS = CUDA_WALK_THREADS, WALK_CHUNK = WALK_THREADS };

/* As in cpu/walks_kernel.c. */
struct walk_units {
    int length, mass;
    double unit, mass_unit, eps2;
    real close;
    real watched; /* squared distance from the centre; entries beyond it have no close pair */
};

struct alignas(16) walk_source {
    real x, y, z, m;
};
typedef real walk_totals[4][CUDA_WALK_EACH][WALK_THREADS];

/* High word of |a|, in the same order as |a|; 0x7ff00000 and above are Inf and NaN. */
DEVICE_FN int high_word(double a) { return (int)(bits_of(a) >> 32 & 0x7fffffff); }
enum { HIGH_OF_INFINITY = 0x7ff00000 };

/* frexp's exponent e from a high word, clamped so that 2^e and 2^-e are normal. */
DEVICE_FN int moderate_exponent(int high) { return max(-1000, min(1000, (high >> 20) - 1022)); }

DEVICE_FN int most_of_block(int mine, int shared[2])
{
    const int most = max_of_warp(mine);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = most;
    __syncthreads();
    return max(shared[0], shared[1]);
}

/* x, y, z, m of an entry. */
DEVICE_FN const double2 *walk_body(const struct cuda_walks_job &job,
                                   const struct cuda_walk_tile &tile, int64_t entry)
{
    const int64_t at = tile.entry + entry;
    return (const double2 *)job.bodies + 2 * (job.list ? (int64_t)job.list[at] : at);
}

/* Sets the units, in shared memory to save registers; returns whether all entries are finite. */
DEVICE_FN bool find_frame(const struct cuda_walks_job &job, const struct cuda_walk_tile &tile,
                          struct walk_units *f)
{
    __shared__ int of_reach[2], of_mass[2];
    int reach = max(high_word(tile.radius), high_word(sqrt(job.eps2))), mass = 0;
#pragma unroll 4
    for (int64_t e = threadIdx.x; e < tile.entries; e += WALK_THREADS) {
        const double2 *body = walk_body(job, tile, e), xy = body[0], zm = body[1];
        reach = max(reach, high_word(xy.x - tile.centre[0]));
        reach = max(reach, high_word(xy.y - tile.centre[1]));
        reach = max(reach, high_word(zm.x - tile.centre[2]));
        mass = max(mass, high_word(zm.y));
    }
    reach = most_of_block(reach, of_reach);
    mass = most_of_block(mass, of_mass);
    if (threadIdx.x == 0) {
        f->length = moderate_exponent(reach);
        f->mass = moderate_exponent(mass);
        f->unit = ldexp(1.0, -f->length);
        f->mass_unit = ldexp(1.0, -f->mass);
        f->eps2 = job.eps2 * f->unit * f->unit;
        const real radius = (real)(tile.radius * f->unit);
        f->close = walk_close((real)f->eps2, radius);
        const real far = v_fma(radius, (real)(1 + 0x1.01p-6), (real)1e-11);
        f->watched = v_mul(far, far);
    }
    __syncthreads();
    return max(reach, mass) < HIGH_OF_INFINITY;
}

DEVICE_FN struct walk_source scaled_source(const struct cuda_walk_tile &tile,
                                           const struct walk_units &f, double2 xy, double2 zm)
{
    return {(real)((xy.x - tile.centre[0]) * f.unit), (real)((xy.y - tile.centre[1]) * f.unit),
            (real)((zm.x - tile.centre[2]) * f.unit), (real)(zm.y * f.mass_unit)};
}

DEVICE_FN struct pair_j walk_pair_source(const struct walk_source &s)
{
    struct pair_j j;
    j.x = s.x, j.y = s.y, j.z = s.z, j.m = s.m;
    return j;
}

/* Adds a pair in double to the results of target `row`, as in cpu/walks_kernel.c. */
DEVICE_CALL void careful_pair(const struct cuda_walks_job &job, const struct cuda_walk_tile &tile,
                              const struct walk_units &f, int row, int64_t entry)
{
    const double2 *body = walk_body(job, tile, entry), xy = body[0], zm = body[1];
    const double *x = job.targets + 3 * (int64_t)row;
    const double r[3] = {(x[0] - xy.x) * f.unit, (x[1] - xy.y) * f.unit, (x[2] - zm.x) * f.unit};
    if ((r[0] == 0.0 && r[1] == 0.0 && r[2] == 0.0) || zm.y == 0.0) return;
    double *out = job.out + row, acc[3] = {out[0], out[job.stride], out[2 * job.stride]};
    (void)pair_add_double(r, f.eps2, zm.y * f.mass_unit, acc, &out[3 * job.stride]);
    for (int c = 0; c < 3; c++) out[c * job.stride] = acc[c];
}

/* Sums a chunk on a target that has close pairs with it. */
DEVICE_FN struct pair_sum careful_chunk(const struct cuda_walks_job &job,
                                        const struct cuda_walk_tile &tile,
                                        const struct walk_units &f, const struct pair_i &i,
                                        const struct walk_source *source, int row, int64_t first)
{
    struct pair_sum sum = no_pairs();
#pragma unroll 1
    for (int k = 0; k < WALK_CHUNK; k++) {
        const struct pair_j j = walk_pair_source(source[k]);
        const struct pair_sep r = pair_separation(0, &i, &j);
        const real s2 = pair_distance2(&r, i.eps2);
        if (s2 < f.close)
            careful_pair(job, tile, f, row, first + k);
        else
            pair_add(PAIR_FORCE, &i, &j, j.m, v_rsqrt(s2), &r, &sum);
    }
    return sum;
}

/* Sums a chunk on all targets of a thread. WATCHED: some pairs may be close. */
template <int N, bool WATCHED>
DEVICE_FN void add_chunk(const struct cuda_walks_job &job, const struct cuda_walk_tile &tile,
                         const struct walk_units &f, const struct pair_i i[N],
                         const struct walk_source *source, int64_t first, walk_totals total)
{
    const int thread = (int)threadIdx.x;
    struct pair_sum sum[N];
    real near[N];
#pragma unroll
    for (int n = 0; n < N; n++) {
        sum[n] = no_pairs();
        near[n] = v_set1(64); /* farther than anything */
    }
#pragma unroll 4 /* more, for all N, would overflow the instruction cache */
    for (int k = 0; k < WALK_CHUNK; k++) {
        const struct pair_j j = walk_pair_source(source[k]);
#pragma unroll
        for (int n = 0; n < N; n++) {
            const struct pair_sep r = pair_separation(0, &i[n], &j);
            const real s2 = pair_distance2(&r, i[n].eps2);
            if (WATCHED) near[n] = fmin(near[n], s2);
            pair_add(PAIR_FORCE, &i[n], &j, j.m, v_rsqrt(s2), &r, &sum[n]);
        }
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
        const int row = n * WALK_THREADS + thread;
        if (WATCHED && near[n] < f.close && row < tile.targets)
            sum[n] = careful_chunk(job, tile, f, i[n], source, tile.target + row, first);
        const real own[4] = {sum[n].ax, sum[n].ay, sum[n].az, sum[n].pot};
        for (int c = 0; c < 4; c++) total[c][n][thread] = v_add(total[c][n][thread], own[c]);
    }
}

/* Sets the position of a target; returns whether it is finite. */
DEVICE_FN bool walk_target(const struct cuda_walks_job &job, const struct cuda_walk_tile &tile,
                           const struct walk_units &f, int row, struct pair_i *i)
{
    const double *x = job.targets + 3 * (int64_t)(tile.target + min(row, tile.targets - 1));
    const int most = max(high_word(x[0]), max(high_word(x[1]), high_word(x[2])));
    const bool good = most < HIGH_OF_INFINITY;
    i->x = good ? (real)((x[0] - tile.centre[0]) * f.unit) : 0;
    i->y = good ? (real)((x[1] - tile.centre[1]) * f.unit) : 0;
    i->z = good ? (real)((x[2] - tile.centre[2]) * f.unit) : 0;
    i->eps2 = (real)f.eps2;
    return good;
}

DEVICE_FN void store_walk(const struct cuda_walks_job &job, const struct cuda_walk_tile &tile,
                          const struct walk_units &f, int row, bool fine, bool good,
                          const real sum[4])
{
    for (int c = 0; c < 4; c++) {
        double *to = &job.out[c * job.stride + tile.target + row];
        const double a = *to + (double)sum[c];
        const double value = high_word(a) < HIGH_OF_INFINITY
                                 ? ldexp(a, f.mass - (c < 3 ? 2 : 1) * f.length)
                                 : from_bits((uint64_t)HIGH_OF_INFINITY << 32);
        *to = !fine   ? from_bits(CUDA_WALK_BAD)
              : !good ? from_bits((uint64_t)0x7ff80000 << 32)
              : c < 3 ? value
                      : 0.0 - value;
    }
}

template <int N>
DEVICE_FN void walk_on(const struct cuda_walks_job &job, const struct cuda_walk_tile &tile,
                       struct walk_source *source, walk_totals total, struct walk_units &f)
{
    __shared__ bool watched[WALK_THREADS / 32];
    const int thread = (int)threadIdx.x, warp = thread / 32;
    const bool idle = 32 * warp >= tile.targets;
    struct pair_i i[N];
    const bool fine = find_frame(job, tile, &f);
#pragma unroll
    for (int n = 0; n < N; n++) {
        const int row = n * WALK_THREADS + thread;
        (void)walk_target(job, tile, f, row, &i[n]);
        for (int c = 0; c < 4; c++) {
            total[c][n][thread] = 0;
            if (row < tile.targets) job.out[c * job.stride + tile.target + row] = 0.0;
        }
    }
    double2 xy = {0.0, 0.0}, zm = {0.0, 0.0};
    for (int64_t first = -WALK_CHUNK; fine && first < tile.entries; first += WALK_CHUNK) {
        const int64_t next = first + WALK_CHUNK + thread; /* loaded while this chunk is summed */
        struct walk_source mine = scaled_source(tile, f, xy, zm);
        if (first + thread >= tile.entries) /* far padding */
            mine.x = (real)0x1p30, mine.y = mine.z = mine.m = 0;
        const real r2 = v_fma(mine.z, mine.z, v_fma(mine.y, mine.y, v_mul(mine.x, mine.x)));
        const bool near = __any_sync(0xffffffffu, r2 < f.watched);
        __syncthreads();
        source[thread] = mine;
        if (thread % 32 == 0) watched[warp] = near;
        __syncthreads();
        if (next < tile.entries) {
            const double2 *body = walk_body(job, tile, next);
            xy = body[0], zm = body[1];
        }
        if (first < 0 || idle) continue;
        if (watched[0] || watched[1])
            add_chunk<N, true>(job, tile, f, i, source, first, total);
        else
            add_chunk<N, false>(job, tile, f, i, source, first, total);
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
        const int row = n * WALK_THREADS + thread;
        const real sum[4] = {total[0][n][thread], total[1][n][thread], total[2][n][thread],
                             total[3][n][thread]};
        if (row < tile.targets)
            store_walk(job, tile, f, row, fine, walk_target(job, tile, f, row, &i[n]), sum);
    }
}

/* CUDA blocks per multiprocessor: as many as leave enough registers per thread. */
KERNEL(walks, struct cuda_walks_job, WALK_THREADS, DOUBLE_MODE ? 4 : 10)
{
    __shared__ struct walk_source source[WALK_CHUNK];
    __shared__ walk_totals total;
    __shared__ struct walk_units units;
    const struct cuda_walk_tile &tile = job.tiles[blockIdx.x]; /* a reference, to save registers */
    switch ((tile.targets + WALK_THREADS - 1) / WALK_THREADS) {
    case 1: walk_on<1>(job, tile, source, total, units); break;
    case 2: walk_on<2>(job, tile, source, total, units); break;
    case 3: walk_on<3>(job, tile, source, total, units); break;
    default: walk_on<4>(job, tile, source, total, units);
    }
}
