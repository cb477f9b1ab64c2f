/* close.cuh - close pairs, which the pair terms' precision does not resolve (close_exponent).
 * Closed runs, those with a close pair, are left out of a row's sums and computed here in double,
 * from the particles as the caller wrote them. A warp sums the closed runs of one row and block, a
 * lane every 32nd address of a run. The lanes are added in a tree, and the sum goes to the row's
 * bins like a block sum, so it depends on the row and the block alone. */
namespace in_double
{
typedef double vec;
#undef GRAPE6_PAIR_H
#include "shared/pair.h"
#undef GRAPE6_RSQRT_H
#include "shared/rsqrt.h"
} // namespace in_double

/* Particles that arrive with this launch: number in `sent` of each address of the block, or -1. */
struct arriving {
    const signed char *number;
    const struct cuda_sent *sent;
};

/* What a lane has found. */
struct close_found {
    struct in_double::pair_sum sum;
    double r2; /* of the nearest neighbour, scaled */
    int address, zero_distances;
    bool beyond; /* a pair was outside the range of a double */
};

/* Adds the particle at an address, if it is set and is not the i particle. */
DEVICE_FN void add_close(const struct cuda_sum_job &job, const struct arriving &arriving,
                         const struct cuda_target &i, int address, struct close_found *found)
{
    const struct cuda_sent *sent = NULL;
    if (arriving.number && arriving.number[address % CUDA_BLOCK] >= 0)
        sent = &arriving.sent[arriving.number[address % CUDA_BLOCK]];
    union record p;
    double k18[3], x[3], v[3];
    load_particle(job.store, sent, sent ? words_of(sent) : NULL, address, &p, k18);
    if (p.body.state != SLOT_SET || p.body.index == i.index) return;
    for (int k = 0; k < 3; k++) {
        double xp, vp;
        predict_component(job.time - p.body.time, job.snap ? k18[k] : 0.0, p.body.j6[k],
                          p.body.a2[k], p.body.v[k], p.body.x[k], &xp, &vp);
        x[k] = __dmul_rn(__dsub_rn(i.x[k], xp), job.units.x_unit);
        v[k] = __dmul_rn(__dsub_rn(i.v[k], vp), job.units.v_unit);
    }
    /* the differences, as an i particle relative to a j particle at zero */
    const struct in_double::pair_i at = {
        x[0], x[1], x[2], 0,    0,
        0,    v[0], v[1], v[2], __dmul_rn(__dmul_rn(i.eps2, job.units.x_unit), job.units.x_unit)};
    const struct in_double::pair_j zero = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    const struct in_double::pair_sep r = in_double::pair_separation(0, &at, &zero);
    const double r2 = in_double::pair_distance2(&r, 0.0);
    const double s2 = in_double::pair_distance2(&r, at.eps2);
    const bool apart = x[0] != 0.0 || x[1] != 0.0 || x[2] != 0.0 || i.eps2 != 0.0;
    if (s2 < 0x1p-600 && apart)
        found->beyond = true;
    else if (s2 == 0.0)
        found->zero_distances++;
    else
        in_double::pair_add(PAIR_JERK, &at, &zero, __dmul_rn(p.body.mass, job.units.m_unit),
                            in_double::rsqrt_refine(s2, rsqrt_estimate(s2)), &r, &found->sum);
    if (r2 < found->r2 || (r2 == found->r2 && address < found->address)) {
        found->r2 = r2;
        found->address = address;
    }
}

DEVICE_FN double of_lane(double a, int by)
{
    const uint64_t bits = bits_of(a);
    const uint64_t high = (uint32_t)__shfl_xor_sync(0xffffffffu, (int)(bits >> 32), by);
    return from_bits(high << 32 | (uint32_t)__shfl_xor_sync(0xffffffffu, (int)bits, by));
}

/* Combines the results of all lanes, in every lane. */
DEVICE_FN void gather(struct close_found *f)
{
#pragma unroll
    for (int by = 16; by; by /= 2) {
#pragma unroll
        for (int q = 0; q < NSUM; q++) {
            double *sum = sum_number(&f->sum, q);
            *sum = __dadd_rn(*sum, of_lane(*sum, by));
        }
        const double r2 = of_lane(f->r2, by);
        const int address = __shfl_xor_sync(0xffffffffu, f->address, by);
        if (r2 < f->r2 || (r2 == f->r2 && address < f->address)) {
            f->r2 = r2;
            f->address = address;
        }
        f->zero_distances += __shfl_xor_sync(0xffffffffu, f->zero_distances, by);
    }
    f->beyond = __any_sync(0xffffffffu, f->beyond);
}

/* Nearest neighbours: not requested, by place as in kernels wide, or by address. */
enum near_by { NEAR_NOT, NEAR_BY_PLACE, NEAR_BY_ADDRESS };

/* Sums the closed runs of one row and block. Called by all lanes of a warp. */
DEVICE_FN void close_row(const struct cuda_sum_job &job, const struct cuda_target &i,
                         const struct arriving &arriving, bool jerk, near_by near, int row,
                         int block, unsigned runs)
{
    const int lane = (int)threadIdx.x % 32;
    struct close_found found = {{0, 0, 0, 0, 0, 0, 0}, FAR_S2, 0x7fffffff, 0, false};
    for (unsigned left = runs; left; left &= left - 1) {
        const int first = block * CUDA_BLOCK + (__ffs((int)left) - 1) * RUN;
#pragma unroll 1
        for (int a = first + lane; a < min(job.nj, first + RUN); a += 32)
            add_close(job, arriving, i, a, &found);
    }
    gather(&found);
    const int w = window_of(lane);
    double sum = 0.0;
#pragma unroll
    for (int q = 0; q < NSUM; q++)
        if (q == lane && is_wanted(jerk, q)) sum = *sum_number(&found.sum, q);
    const bool good = !found.beyond && (lane >= NSUM || has_bins(job, sum, w));
    if (!__all_sync(0xffffffffu, good)) {
        if (lane == 0) leave_to_host(job, row, block, runs);
        return;
    }
    if (lane < NSUM) deposit(job, row, lane, sum);
    if (lane) return;
    if (found.zero_distances) note_zero_distances(job, found.zero_distances);
    if (near && found.address != 0x7fffffff)
        offer_nearest(job, row, (real)found.r2,
                      near == NEAR_BY_PLACE ? of_address(found.address) : found.address);
}

/* The runs to close where a row's sums of a block leave the range of single precision: all. If they
 * may leave that of double precision as well, none, and the block is left to the host. */
DEVICE_FN unsigned runs_beyond(const struct cuda_sum_job &job, const struct body_range *i,
                               const struct block_range *range, int row, int block)
{
    enum { UNDERFLOWN = -125 }; /* a mass that single precision does not hold (predict_particle) */
    if (!DOUBLE_MODE && in_range(MODE_DOUBLE, i, range) && range->m_low != UNDERFLOWN)
        return CUDA_WHOLE_BLOCK;
    leave_to_host(job, row, block, CUDA_WHOLE_BLOCK);
    return 0;
}

/* Sums the closed runs of the rows first + lane and one block. Called by all lanes of a warp. */
DEVICE_CALL void close_rows(const struct cuda_sum_job &job,
                            const struct cuda_packed_targets *in_job,
                            const struct arriving &arriving, bool jerk, near_by near, int first,
                            int block, unsigned runs)
{
    for (unsigned lanes = __ballot_sync(0xffffffffu, runs != 0); lanes; lanes &= lanes - 1) {
        const int lane = __ffs((int)lanes) - 1, row = first + lane;
        close_row(job, target_of(job, in_job, row), arriving, jerk, near, row, block,
                  (unsigned)__shfl_sync(0xffffffffu, (int)runs, lane));
    }
}
