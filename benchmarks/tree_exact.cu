/* tree_exact.cu - the direct sum in double precision, against which the octree is measured. */

enum { THREADS = 256 };

struct body {
    double x, y, z, m;
};

/* Adds to sum[k] the acceleration of particle row[k], and the lengths of its terms, by a share of
 * all n: a thread a row, a share for each blockIdx.y. */
extern "C" __global__ void tree_exact(const double (*x)[3], const double *m, int n, const int *row,
                                      int rows, double eps2, double (*sum)[4])
{
    __shared__ struct body tile[THREADS];
    const int k = blockIdx.x * THREADS + threadIdx.x, i = k < rows ? row[k] : 0;
    const double px = x[i][0], py = x[i][1], pz = x[i][2];
    double ax = 0, ay = 0, az = 0, length = 0;
    for (long long first = (long long)blockIdx.y * THREADS; first < n;
         first += (long long)gridDim.y * THREADS) {
        const int mine = (int)first + threadIdx.x, count = min(THREADS, n - (int)first);
        __syncthreads();
        if (mine < n) tile[threadIdx.x] = {x[mine][0], x[mine][1], x[mine][2], m[mine]};
        __syncthreads();
        for (int j = 0; j < count; j++) {
            const struct body b = tile[j];
            const double dx = b.x - px, dy = b.y - py, dz = b.z - pz;
            const double r2 = dx * dx + dy * dy + dz * dz, r1 = rsqrt(r2 + eps2);
            const double mr3 = (int)first + j == i ? 0.0 : b.m * r1 * r1 * r1;
            ax += mr3 * dx, ay += mr3 * dy, az += mr3 * dz, length += fabs(mr3) * sqrt(r2);
        }
    }
    if (k >= rows) return;
    atomicAdd(&sum[k][0], ax), atomicAdd(&sum[k][1], ay), atomicAdd(&sum[k][2], az);
    atomicAdd(&sum[k][3], length);
}
