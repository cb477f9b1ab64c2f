/* leapfrog.cu - leapfrog integration in device memory: the same operations as in
 * integrators/leapfrog_steps.py, with the same bits. */
#include "base.cuh"

/* Particles of the integration, forces on some of them, and outputs.
 * Python reads it here (integrators/leapfrog_device.py). */
struct leapfrog_job {
    const double (*x)[3], (*v)[3], (*a)[3]; /* of particle p at its time */
    const double *t;        /* that time; NULL: `step` before the new time for all */
    const double (*acc)[3]; /* at the new time, row by row */
    const int *rows;        /* the particle of each row */
    double (*at)[3];        /* positions at the new time */
    double (*new_x)[3], (*new_v)[3], (*new_a)[3], *new_t, *dt;
    double time, step; /* the new time */
    double scale;      /* 2 eta eps: a particle's step is at most sqrt(scale / |a|); or 2 eta: */
    const double *eps; /* of each particle; or NULL */
    double smallest, largest; /* bounds of the steps */
    int n, count;             /* particles, rows */
};

DEVICE_FN double leapfrog_time(const struct leapfrog_job &job, int p)
{
    return job.t ? job.time - job.t[p] : job.step;
}

KERNEL(leapfrog_drift, struct leapfrog_job, 256, 1)
{
    const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (p >= job.n) return;
    const double h = leapfrog_time(job, p);
    for (int k = 0; k < 3; k++)
        job.at[p][k] = job.x[p][k] + h * (job.v[p][k] + h / 2.0 * job.a[p][k]);
}

KERNEL(leapfrog_kick, struct leapfrog_job, 256, 1)
{
    const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (p >= job.n) return;
    const double h = leapfrog_time(job, p) / 2.0;
    for (int k = 0; k < 3; k++) job.new_v[p][k] = job.v[p][k] + h * (job.a[p][k] + job.acc[p][k]);
}

/* The step by the criterion of Springel 2005, MNRAS 364, 1105, equation 34. */
DEVICE_FN double leapfrog_criterion_step(const struct leapfrog_job &job, int p, const double a[3])
{
    const double scale = job.scale * (job.eps ? job.eps[p] : 1.0);
    return sqrt(scale / sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]));
}

/* Halves `step` until it is at most `requested`, or job.smallest. */
DEVICE_FN double leapfrog_halved(const struct leapfrog_job &job, double step, double requested)
{
    while (!(step <= requested) && step > job.smallest) step /= 2.0;
    return step;
}

/* First steps, from accelerations row by row. */
KERNEL(leapfrog_begin, struct leapfrog_job, 256, 1)
{
    const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (p < job.n)
        job.dt[p] = leapfrog_halved(job, job.largest, leapfrog_criterion_step(job, p, job.acc[p]));
}

/* Particles at the end of their steps. The caller has copied the old state to the new arrays. */
KERNEL(leapfrog_end_step, struct leapfrog_job, 256, 1)
{
    const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= job.count) return;
    const int p = job.rows[row];
    const double step = job.dt[p], *acc = job.acc[row];
    for (int k = 0; k < 3; k++) {
        job.new_x[p][k] = job.at[p][k];
        job.new_v[p][k] = job.v[p][k] + step / 2.0 * (job.a[p][k] + acc[k]);
        job.new_a[p][k] = acc[k];
    }
    job.new_t[p] = job.time;
    const double requested = leapfrog_criterion_step(job, p, acc), twice = 2.0 * step;
    const bool longer = twice <= requested && twice <= job.largest && fmod(job.time, twice) == 0.0;
    job.dt[p] = longer ? twice : leapfrog_halved(job, step, requested);
}
