/* core.cuh - whether nearly all particles stand in a tiny share of the box of all. */

enum {
    CORE_SAMPLE = 256,
    CORE_LEAST = 244,    /* of these have to be in the core */
    CORE_OUTLIERS = 14,  /* binary digits that the set is wider than its core, at least */
    CORE_FARTHEST = 300, /* at most, so that powers of distances fit */
    CORE_BOX = 9,        /* that the box of a set with outliers is wider than the core */
    DISTANT_POINT = 128  /* boxes away, the box acts by its mass and quadrupole */
};

/* A warp finds whether nearly all particles are in a core that is a tiny share of the box with
 * these corners; then the box becomes one about the core, and the others are distant. */
DEVICE_FN void find_core(const struct tree_device_job &job, double low[3], double high[3])
{
    const int lane = (int)threadIdx.x % 32;
    double centre[3], half = 0.0;
    for (int c = 0; c < 3; c++) {
        const double x = job.x[3 * ((int64_t)lane * (job.n - 1) / 31) + c];
        int rank = 0;
        for (int k = 0; k < 32; k++) {
            const double other = __shfl_sync(EVERY, x, k);
            rank += other < x || (other == x && k < lane);
        }
        centre[c] = __shfl_sync(EVERY, x, __ffs((int)__ballot_sync(EVERY, rank == 16)) - 1);
        half = fmax(half, 0.5 * high[c] - 0.5 * low[c]);
    }
    int exponent[CORE_SAMPLE / 32];
    TREE_UNROLL
    for (int k = 0; k < CORE_SAMPLE / 32; k++) {
        const int64_t i = (int64_t)(lane + 32 * k) * job.n / CORE_SAMPLE;
        double r = 0.0;
        for (int c = 0; c < 3; c++) r = fmax(r, fabs(job.x[3 * i + c] - centre[c]));
        exponent[k] = exponent_of(r); /* r < 2^exponent */
    }
    int below = -2000, size = 2000; /* the core's exponent is above `below` */
    while (size - below > 1) {
        const int middle = below + (size - below) / 2;
        int count = 0;
        TREE_UNROLL
        for (int k = 0; k < CORE_SAMPLE / 32; k++)
            count += __popc(__ballot_sync(EVERY, exponent[k] <= middle));
        if (count >= CORE_LEAST)
            size = middle;
        else
            below = middle;
    }
    const int wider = exponent_of(half) - 1 - size;
    if (size < -900 || wider < CORE_OUTLIERS || wider > CORE_FARTHEST) return;
    for (int c = 0; c < 3; c++) {
        const double box = ldexp(1.0, size + CORE_BOX);
        low[c] = centre[c] - box, high[c] = centre[c] + box;
    }
}

/* Whether a place in units of the box is beyond some boxes. */
DEVICE_FN bool is_distant(const struct tree_box *box, float4 high, float boxes)
{
    const float edge = boxes * (float)-box->low[0] * (1.0f + 0x1p-20f);
    return !(fabsf(high.x) <= edge && fabsf(high.y) <= edge && fabsf(high.z) <= edge);
}
