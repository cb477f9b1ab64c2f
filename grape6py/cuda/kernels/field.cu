/* field.cu - a field from outside at places in device memory. */
#include "base.cuh"
#include "shared/field.h"

/* Adds the field to acc, jerk and pot, of which jerk and pot may be NULL. Python fills it
 * (grape6py/fields/device.py). */
struct field_job {
    struct field field;
    const double (*x)[3], (*v)[3];
    double (*acc)[3], (*jerk)[3], *pot;
    int n, unused;
};

KERNEL(field_add_all, struct field_job, 256, 1)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= job.n) return;
    double x[3], v[3], acc[3], jerk[3];
    for (int k = 0; k < 3; k++) {
        x[k] = job.x[i][k], v[k] = job.v[i][k];
        acc[k] = job.acc[i][k], jerk[k] = job.jerk ? job.jerk[i][k] : 0.0;
    }
    field_add(&job.field, x, v, acc, jerk);
    for (int k = 0; k < 3; k++) {
        job.acc[i][k] = acc[k];
        if (job.jerk) job.jerk[i][k] = jerk[k];
    }
    if (job.pot) job.pot[i] += field_pot(&job.field, x);
}
