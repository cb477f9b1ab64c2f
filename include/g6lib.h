/* g6lib.h - the GRAPE-6 host library, in software (grape6py).
 *
 * Declares the historical calls (g6_*, g6calc_*) in their by-value C form and the
 * new calls (g6x_*). Every historical call is exported under three names: as
 * declared here, and for Fortran with all arguments by pointer as name_ and
 * name__. csrc/api/fortran.py makes the Fortran 2003 interfaces, g6lib.f90, of this file.
 *
 * Conventions, valid for every call unless it says otherwise
 *   units      the caller's own, with G = 1; any system of units works
 *   clusterid  any int: a key to an independent set of j particles. The first
 *              g6_open makes the library live; while any id is open, an id never
 *              seen before is opened by its first use
 *   address    0-based slot in the j memory, which grows as needed
 *   index      the caller's own label of a particle, any int; a pair with equal
 *              index is left out of acc, jerk, pot, nearest neighbour and lists
 *   arrays     belong to the caller; read or written only during the call and
 *              only in their first ni (nj) entries; inputs and outputs may overlap
 *   returns    0 for success, a negative code for an error (the table G6X_E_*);
 *              g6x_last_error has the text. A force call that fails fills its
 *              outputs with quiet NaN and nearest neighbours with -1; one bad i particle
 *              affects its own row only. Nominally void calls return 0 too
 *   threads    calls may come from any thread; one cluster does one call at a time
 */
#ifndef G6LIB_H
#define G6LIB_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- opening and closing ------------------------------------------------- */

/* Opens a cluster; opening twice is fine. 0, or a negative code. */
int g6_open(int clusterid);
/* Releases a cluster with its j particles; closing twice or unopened is fine. 0. */
int g6_close(int clusterid);
/* Number of i particles a caller sends per force call: 48 unless GRAPE6_NPIPES or
 * GRAPE6_CLIENT sets another number; constant, valid before g6_open. Larger blocks
 * are accepted. */
int g6_npipes(void);
/* Recovery calls of the hardware. Nothing to do here; legal before open. 0. */
int g6_reset(int clusterid);
int g6_reset_fofpga(int clusterid);
int g6_reinitialize(int clusterid);
/* Fixed-point units of the hardware. Ignored; legal before open. 0. */
int g6_set_tunit(int newtunit);
int g6_set_xunit(int newxunit);
/* Opens cluster 0 on the listed devices; list has ndevice entries. 0, or a code. */
int g6_open_special(int ndevice, int list[]);
int g6_open_special2(int ndevice, int list[], int nmax);
/* Devices that the chosen backend can use, at least 1; legal before open. */
int get_device_count(void);

/* ---- j particles --------------------------------------------------------- */

/* Writes one j particle. tj: the time of x, v and the derivatives; dtj: its step
 * (ignored); k18, j6, a2: d2a/dt2 / 18, da/dt / 6, a / 2, each double[3].
 * Takes effect no later than the next firsthalf. A NaN or Inf anywhere marks the
 * slot bad and returns G6X_E_J_NAN: forces that use it fail until it is rewritten. */
int g6_set_j_particle(int clusterid, int address, int index, double tj, double dtj, double mass,
                      double k18[3], double j6[3], double a2[3], double v[3], double x[3]);
/* The same for a particle at rest that is not extrapolated. */
int g6_set_j_particle_mxonly(int clusterid, int address, int index, double mass, double x[3]);
/* Time to which the j particles are predicted at the next firsthalf; sticky. */
int g6_set_ti(int clusterid, double ti);
/* Buffering of the hardware's host interface; no-ops, since nothing is delayed. 0. */
int g6_initialize_jp_buffer(int clusterid, int size);
int g6_flush_jp_buffer(int clusterid);
int g6_flush_jp_buffer_and_multisend(int clusterid, int nclusters);
int g6_setup_njdata(int clusterid, int nj);
int force_j_particle_send(void);
/* Largest number of j particles a cluster can hold. */
int g6_getnjmax(int clusterid);
/* x and v (double[nj][3] each) of addresses 0..nj-1, predicted to the current time;
 * unset slots come back as zeros. */
int g6_get_predicted_j_particles(int clusterid, int nj, double (*x)[3], double (*v)[3]);
/* x6: double[nj][6], x and v of nj particles from addr on in the cluster used last. */
int get_j_part_data(int addr, int nj, double x6[]);

/* ---- forces -------------------------------------------------------------- */

/* Starts the force of the j particles at addresses 0..nj-1 on ni particles.
 * index: int[ni]; xi, vi: double[ni][3], at the time set; aold, j6old, phiold:
 * ignored (hardware scaling); eps2: softening length squared, >= 0; h2:
 * double[ni], squared radius of the neighbour sphere (r^2 + eps2 <= h2).
 * Everything is copied. A second firsthalf replaces the first. */
int g6calc_firsthalf(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                     double (*aold)[3], double (*j6old)[3], double phiold[], double eps2,
                     double h2[]);
/* Waits for the sum and writes
 *   acc[i]  = sum m_j r / (r^2 + eps2)^(3/2),               r = x_j - x_i
 *   jerk[i] = sum m_j (v / s^3 - 3 (r.v) r / s^5),          s^2 = r^2 + eps2
 *   pot[i]  = - sum m_j / s
 * acc, jerk: double[ni][3]; pot: double[ni]. nj and ni as in firsthalf; index,
 * xi, vi, eps2 and h2 are not read. */
int g6calc_lasthalf(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                    double eps2, double h2[], double (*acc)[3], double (*jerk)[3], double pot[]);
/* ... and nnbindex: int[ni], index of the nearest j particle (ties: the lowest
 * address; the particle's own index if there is no other). */
int g6calc_lasthalf2(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                     double eps2, double h2[], double (*acc)[3], double (*jerk)[3], double pot[],
                     int nnbindex[]);
/* ... and rnnb: float[ni], distance of the nearest neighbour (0 if none). */
int g6calc_lasthalf2p(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                      double eps2, double h2[], double (*acc)[3], double (*jerk)[3], double pot[],
                      int nnbindex[], float rnnb[]);
/* The same three under the names of libraries that build lists only here. */
int g6calc_lasthalfn(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                     double eps2, double h2[], double (*acc)[3], double (*jerk)[3], double pot[]);
int g6calc_lasthalf2n(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                      double eps2, double h2[], double (*acc)[3], double (*jerk)[3], double pot[],
                      int nnbindex[]);
int g6calc_lasthalf2np(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                       double eps2, double h2[], double (*acc)[3], double (*jerk)[3], double pot[],
                       int nnbindex[], float rnnb[]);
/* Softening per i particle: eps2 is double[ni]. mode is ignored. */
int g6calc_firsthalf0(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                      double (*aold)[3], double (*j6old)[3], double phiold[], double eps2[],
                      double h2[], int mode);
int g6calc_lasthalf0(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                     double eps2[], double h2[], double (*acc)[3], double (*jerk)[3], double pot[],
                     int mode);

/* ---- neighbour lists ----------------------------------------------------- */

/* Prepares the lists of the last force call. 0; lists of any length fit. */
int g6_read_neighbour_list(int clusterid);
int g6_read_neighbour_list_old(int clusterid);
/* List of the i particle at position ipipe (0-based) of the last firsthalf:
 * nbl: int[maxlength], indices in ascending order; *nblen: the true length.
 * 0; or 1 if the list is longer than maxlength, nbl then holding the maxlength
 * lowest indices. Readable any number of times until the next firsthalf. */
int g6_get_neighbour_list(int clusterid, int ipipe, int maxlength, int *nblen, int nbl[]);
/* Lists are always sorted; the mode is stored and returned. Legal before open. */
int g6_set_neighbour_list_sort_mode(int mode);
int g6_get_neighbour_list_sort_mode(void);

/* ---- oddities of particular hosts and boards ----------------------------- */

int g6_set_overflow_flag_test_mode(int aflag, int jflag, int pflag); /* ignored */
int g6_print_chip_status(int clusterid);                             /* prints nothing */
/* Row of the last block whose sum overflowed, so that its scale was changed; -1: none, as always
 * here, where no sum overflows. The hardware's library has it; legal before open. */
int g6_changed_index(int clusterid);
/* Sends one particle at rest to the clusters clusterid .. clusterid + nclusters - 1.
 * Pointer form only. */
int g6_set_j_particle_multisend_mxfast_(int *clusterid, int *nclusters, int *address, int *index,
                                        double *mass, double x[3]);

/* The multi-GPU library's forms without a cluster: they share one j memory of their own. */
int g6_open_all(void);
int g6_close_all(void);
int g6_reset_all(void);
int g6_reset_fofpga_all(void);
int g6_set_ti_all(double ti);
int g6_set_j_particle_all(int address, int index, double tj, double dtj, double mass, double k18[3],
                          double j6[3], double a2[3], double v[3], double x[3]);
int g6_set_j_particle_mxonly_all(int address, int index, double mass, double x[3]);
int g6calc_firsthalf_all(int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                         double (*aold)[3], double (*j6old)[3], double phiold[], double eps2,
                         double h2[]);
int g6calc_lasthalf_all(int nj, int ni, int index[], double (*xi)[3], double (*vi)[3], double eps2,
                        double h2[], double (*acc)[3], double (*jerk)[3], double pot[]);
int g6calc_lasthalf2_all(int nj, int ni, int index[], double (*xi)[3], double (*vi)[3], double eps2,
                         double h2[], double (*acc)[3], double (*jerk)[3], double pot[],
                         int nnbindex[]);
int g6calc_firsthalf0_all(int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                          double (*aold)[3], double (*j6old)[3], double phiold[], double eps2[],
                          double h2[], int mode);
int g6calc_lasthalf0_all(int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                         double eps2[], double h2[], double (*acc)[3], double (*jerk)[3],
                         double pot[], int mode);
int g6_initialize_jp_buffer_all(int size);
int g6_flush_jp_buffer_all(void);
int g6_read_neighbour_list_all(void);
int g6_get_neighbour_list_all(int ipipe, int maxlength, int *nblen, int nbl[]);

/* The parts of firsthalf and lasthalf as separate calls: i particles one by one into
 * pipes (0-based address), then the numbers of i and j particles, then the result. */
int g6_set_nip(int clusterid, int nip);
int g6_set_njp(int clusterid, int njp);
int g6_set_i_particle_scales_from_real_value(int clusterid, int address, double acc[3],
                                             double jerk[3], double phi, double jfactor,
                                             double ffactor); /* ignored */
int g6_set_i_particle(int clusterid, int address, int index, double x[3], double v[3], double eps2,
                      double h2);
/* flag: int[nip], set to 0, or to the code of the error. */
int g6_get_force(int clusterid, double (*acc)[3], double (*jerk)[3], double phi[], int flag[]);
int g6_get_force_etc(int clusterid, double (*acc)[3], double (*jerk)[3], double phi[],
                     int nnbindex[], int flag[]);

/* ---- g6x: what the hardware library did not have -------------------------- */

/* Error codes: minus the row of the table in docs/errors.md. They never change. */
enum {
    G6X_E_DEVICE_MEMORY = -1, /* device out of memory */
    G6X_E_DEVICE_LOST = -2,   /* device failed and cannot be used any more */
    G6X_E_NO_DEVICE = -3,     /* a device was requested and there is none */
    G6X_E_RUNTIME = -4,       /* CUDA runtime, compiler or headers missing */
    G6X_E_PYTHON = -5,        /* Python side missing or broken */
    G6X_E_J_NAN = -6,         /* NaN or Inf in a j particle */
    G6X_E_I_NAN = -7,         /* NaN or Inf in an i particle */
    G6X_E_RANGE = -8,         /* a force does not fit a double */
    G6X_E_ARGUMENT = -11,     /* negative or NaN eps2, NaN time, negative count, bad option */
    G6X_E_ADDRESS = -13,      /* negative j address */
    G6X_E_NO_FIRSTHALF = -18, /* lasthalf without firsthalf */
    G6X_E_MISMATCH = -20,     /* lasthalf with other ni or nj than firsthalf */
    G6X_E_NOT_OPEN = -21,     /* nothing is open, or this cluster was closed */
    G6X_E_PIPE = -25,         /* neighbour list of a pipe >= ni */
    G6X_E_NULL = -26,         /* null pointer */
    G6X_E_OVERFLOW = -27,     /* size beyond what can be counted */
    G6X_E_MEMORY = -29,       /* out of host memory; a rejected j particle must be sent again */
    G6X_E_FORK = -30,         /* in a forked child: a device, or a cluster in another's call */
    G6X_E_VERIFY = -40        /* GRAPE6_VERIFY found a wrong result */
};

/* Text of the last error of a cluster (of the process, if the cluster is unknown), cut to
 * length bytes including its final zero. Returns the code, 0 if none. */
int g6x_last_error(int clusterid, char buffer[], int length);
/* The same for the last warning. Returns the number of warnings. */
int g6x_last_warning(int clusterid, char buffer[], int length);
/* Forgets both. */
int g6x_clear_error(int clusterid);
/* "grape6py MAJOR.MINOR.PATCH"; returns 10000 major + 100 minor + patch. */
int g6x_version(char buffer[], int length);
/* g6_open on a given backend (G6X_BACKEND_*), regardless of GRAPE6_BACKEND; no effect on a cluster
 * that is open. */
enum {
    G6X_BACKEND_AUTO = 0,
    G6X_BACKEND_CPU = 1,
    G6X_BACKEND_CUDA = 2,
    G6X_BACKEND_TREE = 3,
    G6X_BACKEND_CPU_TREE = 4,
    G6X_BACKEND_CUDA_TREE = 5
};
int g6x_open(int clusterid, int backend);
/* Name of the backend, and of its instruction set or device, of an open cluster:
 * "cpu avx512". 0, or a code. */
int g6x_backend(int clusterid, char buffer[], int length);
/* With G6X_BACKEND_AUTO the first force call of a cluster selects the CPU or a GPU, by the cost of
 * a run of so many particles on this machine (docs/gpu.md); until then g6x_backend gives "auto".
 * This call selects now, as a force call of these numbers would; ni = 0: a GPU, if there is one.
 * No effect after the selection, or on other backends. 0, or a code. */
int g6x_prepare(int clusterid, int ni, int nj);
/* Returns what that selection would be if there is a GPU, G6X_BACKEND_CPU or G6X_BACKEND_CUDA, or a
 * code. Writes the reason to buffer. Needs no cluster. */
int g6x_choice(int ni, int nj, char buffer[], int length);

/* Options of a cluster, from the next firsthalf on. Environment variables give their initial
 * values. Options set before any cluster is open are the initial values of clusters opened later.
 * Closing resets them. */
enum {
    G6X_PRECISION = 1,      /* int: G6X_GRAPE, _DOUBLE, _SINGLE, _AUTO_MODE */
    G6X_THREADS = 2,        /* int: threads of a force call; 0: as many as the affinity mask */
    G6X_ISA = 3,            /* int: G6X_ISA_*; an unsupported one is rejected */
    G6X_JERK = 4,           /* int: 0: no jerk requested, it comes back as NaN */
    G6X_SNAP = 5,           /* int: 0: k18 is not used in the prediction */
    G6X_NEIGHBOUR_SELF = 6, /* int: 1: a particle is in its own list */
    G6X_SCALE_LENGTH = 7,   /* int: the length scale is 2^value; G6X_AUTO: from the data */
    G6X_SCALE_MASS = 8,     /* int: the same for masses */
    G6X_SCALE_VELOCITY = 9, /* int: the same for velocities */
    G6X_VERIFY = 10,        /* double: fraction of rows to recompute and compare, 0..1 */
    G6X_LOG = 11,           /* int, whole process: 0 none, 1 errors, 2 info */
    G6X_ON_ERROR = 12,      /* int, whole process: 0 return codes, 1 abort */
    G6X_NPIPES = 13,        /* int, read only */
    G6X_DEVICE = 14,        /* int, read only: CUDA's number of the cluster's device; the CPU: -1 */
    G6X_THETA = 15,         /* double: opening angle of a tree, 0..1; 0: the direct sum */
    G6X_TREE_METHOD = 16,   /* int: G6X_TREE_FMM or G6X_TREE_BARNES_HUT */
    G6X_TREE_ORDER = 17,    /* int: order of G6X_TREE_FMM's expansions, 2..6 */
    G6X_ORIGIN_X = 18,      /* double: origin of positions; NaN: from the data, or 0 if the
                               length scale is set */
    G6X_ORIGIN_Y = 19,
    G6X_ORIGIN_Z = 20,
    G6X_DRIFT_X = 21, /* double: the same for velocities and the velocity scale */
    G6X_DRIFT_Y = 22,
    G6X_DRIFT_Z = 23
};
enum { G6X_GRAPE = 0, G6X_DOUBLE = 1, G6X_SINGLE = 2, G6X_AUTO_MODE = 3 };
enum { G6X_ISA_BEST = 0, G6X_ISA_BASE = 1, G6X_ISA_AVX2 = 2, G6X_ISA_AVX512 = 3, G6X_ISA_NEON = 4 };
enum { G6X_TREE_FMM = 0, G6X_TREE_BARNES_HUT = 1, G6X_TREE_MOMENTUM = 16, G6X_TREE_SPLINE = 32 };
enum { G6X_AUTO = -2147483647 };
/* Set or read an option. 0; G6X_E_ARGUMENT for an unknown key or a value out of range. */
int g6x_set_int(int clusterid, int key, int value);
int g6x_get_int(int clusterid, int key, int *value);
int g6x_set_double(int clusterid, int key, double value);
int g6x_get_double(int clusterid, int key, double *value);
/* Scale exponents (length, mass, velocity) that a force call with nj would use:
 * set these in all sessions whose partial sums are to be merged. */
int g6x_get_scale(int clusterid, int nj, int exponent[3]);
/* Origins of positions and of velocities that such a call would use, for options
 * G6X_ORIGIN_X to _Z and G6X_DRIFT_X to _Z. */
int g6x_get_origin(int clusterid, int nj, double origin[3], double drift[3]);

/* A cluster whose nj j particles are a share of `all`, of which other clusters have the others: its
 * address a is number first + a of all. For the scale and the origin that one cluster with all of
 * them has, and so for its bits, add over the shares, as integers, what these calls give, and hand
 * the sums to all: g6x_get_sample first, then g6x_get_counts; after each change of j particles.
 * They are those of this cluster until g6x_end_share. After an error of these calls force calls are
 * refused until g6x_set_counts succeeds, or g6x_end_share is called. */
enum { G6X_SAMPLE_WORDS = 105, G6X_COUNT_WORDS = 6600 };
int g6x_get_sample(int clusterid, int nj, long long all, long long first,
                   long long words[G6X_SAMPLE_WORDS]);
int g6x_set_sample(int clusterid, const long long words[G6X_SAMPLE_WORDS]);
int g6x_get_counts(int clusterid, int nj, long long words[G6X_COUNT_WORDS]);
int g6x_set_counts(int clusterid, const long long words[G6X_COUNT_WORDS]);
int g6x_end_share(int clusterid);
/* Which of ni i particles mode auto sums in double, 1 or 0 each, by their own j particles among the
 * nj of this cluster. For a share: add them over all, by MPI_MAX, and hand the result to the next
 * firsthalf of each, whose rows are then these; without it a share sums all as in mode grape. */
int g6x_get_fine_rows(int clusterid, int nj, int ni, const int index[], unsigned char fine[]);
int g6x_set_fine_rows(int clusterid, int ni, const unsigned char fine[]);
/* Of a cluster since it was opened: force calls, their i particles, and those of them that mode
 * auto has summed in double. */
int g6x_counts(int clusterid, long long counts[3]);

/* Writes n j particles at once. address, index: int[n]; tj, dtj, mass: double[n];
 * k18, j6, a2, v, x: double[n][3]. NULL for address: 0..n-1 in order; for index:
 * the address; for tj, dtj, k18, j6, a2 or v: zeros. Returns the first error met;
 * the other particles are still written.
 * May be NULL: address, index, tj, dtj, k18, j6, a2, v. */
int g6x_set_j_particles(int clusterid, int n, const int address[], const int index[],
                        const double tj[], const double dtj[], const double mass[],
                        const double (*k18)[3], const double (*j6)[3], const double (*a2)[3],
                        const double (*v)[3], const double (*x)[3]);

/* Calls on arrays in device memory: all array pointers are in the memory of the cluster's device
 * (option G6X_DEVICE is its number). stream: a CUDA stream's handle, NULL for the default one.
 * Earlier work on the stream is done first, and the results are complete when the call returns. On
 * the CPU: G6X_E_NO_DEVICE. With GRAPE6_BACKEND=auto a call whose device fails returns that error,
 * and the cluster continues on the CPU.
 *
 * As g6x_set_j_particles, but with a NaN, a negative address or too little memory no particle is
 * written. If the device is lost during the call, some may have been written. */
int g6x_set_j_particles_device(int clusterid, int n, const int address[], const int index[],
                               const double tj[], const double mass[], const double (*k18)[3],
                               const double (*j6)[3], const double (*a2)[3], const double (*v)[3],
                               const double (*x)[3], void *stream);
/* As g6_get_predicted_j_particles. Ends the last force call: its lists are gone. */
int g6x_get_predicted_j_particles_device(int clusterid, int nj, double (*x)[3], double (*v)[3],
                                         void *stream);
/* A whole force call: acc, jerk, pot of firsthalf and lasthalf, to the bit, and if not NULL the
 * nearest neighbours' indices and distances. h2: if not NULL, all calls that may follow a lasthalf
 * are allowed afterwards, neighbour lists too; if NULL, they are not. */
int g6x_forces_device(int clusterid, int nj, int ni, const int index[], const double (*x)[3],
                      const double (*v)[3], double eps2, const double h2[], double (*acc)[3],
                      double (*jerk)[3], double pot[], int nearest[], float distance[],
                      void *stream);
/* The same by several clusters, as ranks with a GPU each, that all have the nj particles. Each sums
 * share number `share` of `shares`, in whole blocks of 1024, and writes a part of *bytes, at most
 * G6X_PART_BYTES for each i particle, to `part` in device memory; nearest: not 0 if it is wanted,
 * too. Bring the parts of all to each, one behind the other, and merge: the bits are those of
 * g6x_forces_device. shares is at least 2, and at most the number of blocks. part may still be
 * written when the call returns, in `stream`. 0, or a code. */
enum { G6X_PART_BYTES = 192 };
int g6x_force_part_device(int clusterid, int nj, int ni, const int index[], const double (*x)[3],
                          const double (*v)[3], double eps2, int nearest, int share, int shares,
                          void *part, long long *bytes, void *stream);
/* parts: of all shares, in device memory. No particle may have been written in between; ni as
 * there. */
int g6x_merge_parts_device(int clusterid, int ni, void *parts, int shares, double (*acc)[3],
                           double (*jerk)[3], double pot[], int nearest[], float distance[],
                           void *stream);

/* Block steps on the host: what a fourth-order Hermite integrator does besides forces (Makino
 * and Aarseth 1992). Particle p of the caller has its own time t[p], its step dt[p], and x, v,
 * a, j = da/dt at that time; address: int[ni], the particles of the block. No cluster is used.
 * xi, vi may be acc, jerk, but must not overlap the particles' own arrays.
 *
 * xi, vi: double[ni][3], the block predicted to `time` with the bits of the j particles' own
 * prediction (a2 = a/2, j6 = j/6, k18 = 0). 0, or a code. */
int g6x_hermite_predict(int ni, const int address[], double time, const double t[],
                        const double (*x)[3], const double (*v)[3], const double (*a)[3],
                        const double (*j)[3], double (*xi)[3], double (*vi)[3]);
/* xi, vi: the block corrected with acc and jerk (double[ni][3]) at `time`. If dt is not NULL the
 * particles are moved there: t, x, v, a, j are written, and dt becomes the next step by Aarseth's
 * criterion with eta, as it will be two steps ahead (docs/integrating.md): halved as often as
 * needed, down to dtmin, doubled at most once, not beyond dtmax and only where `time` is a multiple
 * of the doubled step. roundoff: double[ni], the error of acc, or NULL: a step is not shortened for
 * changes of the force that are no larger. For more than one corrector pass, call with dt = NULL,
 * take forces at xi, vi, and call again. A particle that is at `time` already is not changed, nor
 * is one whose new values would not fit a double (G6X_E_RANGE).
 * Returns how many particles have step dtmin though the criterion gives less, or a code.
 * May be NULL: roundoff, dt. In and out: t, x, v, a, j. */
int g6x_hermite_correct(int ni, const int address[], double time, double eta, double dtmin,
                        double dtmax, const double (*acc)[3], const double (*jerk)[3],
                        const double roundoff[], double t[], double dt[], double (*x)[3],
                        double (*v)[3], double (*a)[3], double (*j)[3], double (*xi)[3],
                        double (*vi)[3]);

/* A field from outside, as that of a galaxy: a sum of terms. With G = 1; R^2 = x^2 + y^2.
 *   kind             p                               potential
 *   PLUMMER          mass, b                         -m / sqrt(r^2 + b^2); a point mass if b = 0
 *   MIYAMOTO_NAGAI   mass, a, b                      -m / sqrt(R^2 + (a + sqrt(z^2 + b^2))^2)
 *   NFW              mass, a                         -m ln(1 + r/a) / r
 *   LOGARITHMIC      speed, core, flattening q       v^2/2 ln(R^2 + z^2/q^2 + core^2)
 *   CUTOFF           total mass, exponent k, cutoff  of the density r^-k exp(-(r/c)^2), 0 <= k < 2
 */
enum {
    G6X_FIELD_PLUMMER = 1,
    G6X_FIELD_MIYAMOTO_NAGAI = 2,
    G6X_FIELD_NFW = 3,
    G6X_FIELD_LOGARITHMIC = 4,
    G6X_FIELD_CUTOFF = 5
};
enum { G6X_FIELD_TERMS = 8 };
struct g6x_field_term {
    int kind;
    double p[3];
};
struct g6x_field {
    int terms; /* at most G6X_FIELD_TERMS */
    struct g6x_field_term term[8];
    double omega; /* angular speed about the z axis with which the coordinates rotate; 0: none */
    double epoch; /* added to the times of the calls, for the orbit below */
    int nodes;    /* 0: the coordinates do not move; else two or more */
    /* [nodes], ascending: time, and position, velocity, acceleration and jerk of the origin of the
     * coordinates. Between two nodes it moves on the polynomial of degree 7. */
    const double (*orbit)[13];
};
/* Adds the field at `time` to acc, jerk (double[n][3], which have all other forces: those of a
 * rotation depend on them) and pot (double[n]) of bodies at x with velocities v (double[n][3]).
 * May be NULL: acc, jerk, pot. pot of a rotation is the centrifugal potential, in a moving frame
 * the potential is that above the origin's. 0, or a code, also for a time outside the orbit, and
 * G6X_E_RANGE where an acceleration is NaN or Inf, as in the centre of a point mass. */
int g6x_field_add(const struct g6x_field *f, int n, double time, const double (*x)[3],
                  const double (*v)[3], double (*acc)[3], double (*jerk)[3], double pot[]);
/* Position, velocity, acceleration and jerk of the origin of moving coordinates at `time`; 0, or a
 * code, also for a time outside the orbit. */
int g6x_field_origin(const struct g6x_field *f, double time, double origin[4][3]);

/* An integration of n particles: j particles of a cluster at addresses and with indices 0 to n - 1.
 * g6x_hermite_evolve does its block steps, with the arrays in host memory. The last members may be
 * zero. */
struct g6x_hermite {
    int n;
    double eta, dtmin, dtmax; /* dtmin = dtmax: one step for all, of any length */
    const double *mass;       /* [n] */
    const double *rounding;   /* [n] or NULL: the error of acc is at least this times pot^2 */
    double *t, *dt, (*x)[3], (*v)[3], (*a)[3], (*j)[3];     /* [n] each, as above */
    int *address;                                           /* [n], of the block: its particles */
    double (*xi)[3], (*vi)[3], (*acc)[3], (*jerk)[3], *pot; /* [n], row by row of the block */
    int massless; /* the last particles, which do not act: they are no j particles */
    const struct g6x_field *field; /* in host memory; NULL: none */
    int *nearest;                  /* [n], of the block: the nearest of all particles; NULL: none */
    double *close, *left;          /* [n], of the block, as g6x_evolution says; or NULL */
    /* [n], of the block: the part of acc and jerk that is from outside; NULL: not requested */
    double (*field_acc)[3], (*field_jerk)[3];
    /* [n] or NULL (then all): work per mass that these have done since it was set to 0, and at t
     * their power and its derivative. field_acc and field_jerk are needed. */
    double *work, *power, *rate;
    /* [n][G6X_PARTIAL_WORDS] or NULL: the cluster sums the particles share_first to before
     * share_end alone, as g6x_share_particles gives them; acc, jerk and pot are the caller's. */
    long long *words;
    int share_first, share_end;
    /* For g6x_hermite_evolve_device, or NULL: the cluster has all particles, but sums the share
     * number `share` of `shares` of them alone, in blocks of particles that give share_pairs pairs
     * or more. part, in device memory: part_rows G6X_PART_BYTES bytes, part_rows at least 64;
     * parts: shares times as many. */
    void *part, *parts;
    int part_rows, share, shares;
    long long share_pairs;
    /* With rounding: the error of acc, without a field, is at least noise times |acc|; relative
     * error of positions, for differences that are taken of rounded ones. */
    double noise, place;
    /* Not 0, with eps2 = 0, with `nearest`, and without a field that rotates (omega) or is yours:
     * g6x_hermite_evolve integrates bound pairs and close encounters by themselves, as
     * g6x_few_body_evolve does. The first body of such a group carries its centre of mass in the
     * arrays above, and the others have times that never come: g6x_hermite_unfold says where all
     * are. */
    int subsystems;
};
/* Limits and state of an evolution. All that the calls write must be zero at first. */
struct g6x_evolution {
    double t_end; /* blocks that end later are not begun */
    double eps2;  /* softening length squared */
    int passes;   /* evaluations of the force, and corrections, in a step; at least 1. With 1, hard
                   * pairs in blocks of 32 particles and fewer are corrected twice, for their own
                   * pull, unless subsystems are asked for. */
    double seconds;        /* limit of wall time of a call; 0: no limit */
    long long most_blocks; /* limit of blocks of a call; 0: no limit */
    const int *stop; /* or NULL: if it is not zero, the call returns after the current block */
    int pause;       /* not 0: pause when the sums of a block are complete (needs field_acc) */
    /* Return G6X_HERMITE_WATCHED if during its step a particle of the block is closer than this to
     * its nearest neighbour (h->nearest and h->close are needed), or farther than this from the
     * centre (h->left); 0: do not look. */
    double closer, farther, centre[3];
    /* written by the calls; counts and seconds are added up */
    long long blocks, steps; /* blocks, and steps of single particles */
    long long clamped;       /* of these, steps of dtmin where the criterion gives less */
    double clamped_time;     /* end of the first block with such a step; set while clamped is 0 */
    double force_seconds;    /* wall time spent in forces */
    double time, next;       /* end times of the last complete block and of the next one */
    int ni, pass, row;       /* of the current block; ni = 0: none. Set to 0 to abandon it: the
                              * particles are unchanged, but not the cluster's */
    int stage; /* of the current block, or of its next rows: the last of the outcomes below that
                * came of it; 1 for G6X_HERMITE_MERGE, which comes first */
    long long part_bytes; /* of h->part, after G6X_HERMITE_MERGE */
};
/* What a call returns, if not a code. */
enum {
    G6X_HERMITE_DONE = 0,       /* no block is left that ends by t_end, or most_blocks or stop */
    G6X_HERMITE_UNFINISHED = 1, /* seconds ended it, perhaps within a block: repeat the call */
    G6X_HERMITE_PAUSED = 2,     /* e->pause */
    G6X_HERMITE_WATCHED = 3,    /* e->closer or e->farther */
    G6X_HERMITE_MERGE = 4       /* h->words, or h->part on a device */
};
/* The j particles must have been written before. After a code the particles are as after the last
 * complete block, but with G6X_E_RANGE those of the next block that fit have moved, though not in
 * the j memory.
 * Paused: e->ni particles, h->address, are at e->next with positions h->xi and velocities h->vi:
 * write a field of yours to h->field_acc and h->field_jerk, which are added, and repeat the call.
 * Merge: the sums of the e->ni particles are in h->words. Merge those of all shares, write h->acc,
 * h->jerk and h->pot, and repeat the call. On a device bring the first part_bytes bytes of `part`
 * of all shares to `parts`, one's behind the other's in the order of their numbers, on the call's
 * stream, and repeat the call.
 * Watched: h->close and h->left have the first time in the step of each at which it was closer or
 * farther, or infinity. Repeat the call to end the block all the same, or abandon it. */
int g6x_hermite_evolve(int clusterid, const struct g6x_hermite *h, struct g6x_evolution *e);
/* Adds to h->acc and h->jerk of the ni particles of a block at `time`, whose forces are those at
 * h->xi, h->vi, what members of subsystems do beyond their centres of mass. 0, or a code. */
int g6x_hermite_pull(int clusterid, const struct g6x_hermite *h, int ni, double time);
/* x, v: double[n][3] with what carries a centre of mass, or is a single body, at `time`, which is
 * not before the last complete block; acc, jerk: double[n][3], both or none. Writes those of all
 * bodies. In and out: x, v. May be NULL: acc, jerk. 0, or a code. */
int g6x_hermite_unfold(int clusterid, const struct g6x_hermite *h, double time, double (*x)[3],
                       double (*v)[3], double (*acc)[3], double (*jerk)[3]);
/* carrier: int[n], the body that carries the centre of mass of each one's subsystem, or itself.
 * elements: double[n][6]: of a subsystem, where it is carried, semi-major axis and eccentricity of
 * its widest pair, of bodies or of centres of mass; the largest factor by which a pair in it is
 * slowed down; when two of its bodies came to the distance `closer` of the evolution, from the
 * beginning of the last step begun, or infinity, and their numbers. Quiet NaN elsewhere. May be
 * NULL: elements. Returns the number of subsystems, or a code. */
int g6x_subsystems(int clusterid, const struct g6x_hermite *h, int carrier[],
                   double (*elements)[6]);
/* All that a later integration needs to go on with the same subsystems. state: double[most];
 * written if it fits. May be NULL: state. Returns how many numbers there are, or a code. */
int g6x_subsystems_get(int clusterid, const struct g6x_hermite *h, int most, double state[]);
/* Takes such a state over for arrays that are those of then, and writes members as j particles:
 * call it whenever all particles have been written as j particles. state: double[count]. 0, or a
 * code. */
int g6x_subsystems_put(int clusterid, const struct g6x_hermite *h, int count, const double state[]);
/* Writes particles first to before end of n as j particles at addresses from 0 on, with indices
 * first and so on, and notes all n for the scale, which is then that of a cluster that has them
 * all. For its bits shares are whole blocks of 1024. Arrays as g6x_set_j_particles has them; k18
 * is 0. n = 0: the cluster is no share any more. 0, or a code. */
int g6x_share_particles(int clusterid, int n, int first, int end, const double tj[],
                        const double mass[], const double (*j6)[3], const double (*a2)[3],
                        const double (*v)[3], const double (*x)[3]);
/* Adds h->field, or without one h->field_acc and h->field_jerk, to h->acc and h->jerk of the ni
 * particles of a block on the host at `time`, whose forces are those at h->xi, h->vi. 0, or a code.
 */
int g6x_hermite_add_field(const struct g6x_hermite *h, int ni, double time);
/* h->work as it would be at `time`, for the ni particles of a block on the host whose forces, and
 * velocities h->vi, are those of that time; they stay where they are. work: double[ni]; NULL:
 * h->work is set to 0 instead, and h->power and h->rate to those of that time. 0, or a code.
 * May be NULL: work. */
int g6x_hermite_work(const struct g6x_hermite *h, int ni, double time, double work[]);

/* The same for an integration in the memory of the cluster's device: *h and *e are in host memory,
 * the pointers in *h are in device memory. */
int g6x_hermite_evolve_device(int clusterid, const struct g6x_hermite *h, struct g6x_evolution *e,
                              void *stream);
/* Its block steps one by one (h->field is added by correct): next, predict,
 * g6x_forces_device(clusterid, n, ni, address, xi, vi, eps2, NULL, acc, jerk, pot, NULL, NULL,
 * stream), correct.
 *
 * Writes the particles whose steps end first, ascending, to address, and the end time of these
 * steps to *time (host memory). Returns their number, or a code. */
int g6x_hermite_next_device(int clusterid, const struct g6x_hermite *h, double *time, void *stream);
/* xi, vi: particles address[0..ni-1] predicted to `time`. Launched on the stream: the call does
 * not wait for it. */
int g6x_hermite_predict_device(int clusterid, const struct g6x_hermite *h, int ni, double time,
                               void *stream);
/* xi, vi: the same corrected with acc and jerk. With G6X_HERMITE_MOVE in `what` the particles are
 * moved there, and get their next steps; with G6X_HERMITE_WRITE the j particles are written from
 * xi, vi, acc and jerk. Returns as g6x_hermite_correct. */
enum { G6X_HERMITE_MOVE = 1, G6X_HERMITE_WRITE = 2 };
int g6x_hermite_correct_device(int clusterid, const struct g6x_hermite *h, int ni, double time,
                               int what, void *stream);

/* A body outside a few: it moves by its derivatives at the start of a call. */
struct g6x_perturber {
    double mass, x[3], v[3], a[3], j[3];
};
/* A few bodies that are bound or meet, by algorithmic regularisation: any eccentricity costs the
 * same, and energies keep all digits. Members that are zero take the usual value. */
enum { G6X_FEW_MOST = 64 };
struct g6x_few_bodies {
    int n;                   /* 2 to G6X_FEW_MOST */
    const double *mass;      /* [n], not negative */
    double (*x)[3], (*v)[3]; /* [n], from an origin near them: a far one costs close pairs digits */
    double eps2;             /* softening length squared */
    double tolerance;        /* relative, of a step; 0: 1e-12 */
    /* A bound pair moves by Kepler's laws if its perturbation, the tide at apocentre over the
     * pull of its bodies on each other, is smaller; as two alone do. 0: never. */
    double gamma;
    /* Of three or more: bound pairs with a smaller perturbation are slowed down until it is this,
     * as 1e-6 (Wang, Nitadori and Makino 2020); 0: they are not. */
    double slow_down;
    int perturbers;
    const struct g6x_perturber *perturber; /* [perturbers] */
    int moved; /* not 0: perturbers move the centre of mass, too, which else moves straight on */
    /* Written. Keep for the next call with the same bodies; zero for others. */
    double step;
    long long steps, pulls;       /* added up: steps, and evaluations of all forces */
    double closest, closest_time; /* of the call: least distance of two, and when from its start */
    int pair[2];                  /* the numbers of these two */
    double kappa[64];             /* how much each body's pair is slowed down; keep it as step */
};
/* Moves the bodies on by dt >= 0. 0, or a code: then they stay as they were. G6X_E_RANGE: no step
 * converges, as where two meet at one place. Legal before any open. */
int g6x_few_body_evolve(struct g6x_few_bodies *b, double dt);

/* Trees: octrees that a program makes itself, independent of clusters; legal before any open. They
 * give forces of n particles in a time proportional to n, and searches. Errors are those of the
 * process (g6x_last_error of a cluster that is not open). A tree does not change: any number of
 * threads may use it at once.
 *
 * Copies n particles, which are not predicted; x, v: double[n][3]; mass: double[n], of any sign.
 * May be NULL: v. No jerk is requested then. Returns the tree's number, > 0, or a code. */
int g6x_tree_open(int n, const double (*x)[3], const double (*v)[3], const double mass[]);
/* Frees a tree when no call uses it any more; closing twice is fine. 0. */
int g6x_tree_close(int tree);
/* Options of a tree: G6X_THREADS, G6X_ISA, with the initial values of clusters. 0, or a code. */
int g6x_tree_set_int(int tree, int key, int value);
/* x, mass: the particles as they were given, double[n][3] and double[n]. Returns n, or a code. */
int g6x_tree_particles(int tree, double (*x)[3], double mass[]);
/* Gives each particle of a tree its own softening length, >= 0: once, before any sum. A pair then
 * has eps^2 = eps_i^2 + eps_j^2 or, with G6X_TREE_SPLINE, the larger one. Not with particles of
 * other ranks. 0, or a code. */
int g6x_tree_soften(int tree, const double eps[]);
/* acc, jerk, pot of the tree's particles on ni targets, as g6calc_lasthalf has them; jerk
 * comes back as quiet NaN if the tree has no velocities. May be NULL: x, v, self, last_acc, jerk.
 *   x, v      double[ni][3]; v NULL: at rest. x NULL: the tree's own particles in the order they
 *             were given, and ni their number; v and self are not read then
 *   self      int[ni]: the number of the particle that is target i, and is left out, or -1; NULL:
 *             no target is a particle. Their positions may differ
 *   eps2      softening length squared, >= 0; of a target that is a particle with its own, not read
 *   method    G6X_TREE_FMM: far cells act on whole groups of targets, as expansions about a centre
 *             (Dehnen 2002; Warren and Salmon 1995), of `order` 2 to 6. G6X_TREE_BARNES_HUT: with
 *             quadrupoles on each target (Barnes and Hut 1986; Bedorf, Gaburov and Portegies Zwart
 *             2012); order is not read. Plus G6X_TREE_MOMENTUM: the sums of m acc and of m jerk are
 *             zero, but for rounding in double precision, so that momentum is conserved where all
 *             particles are moved at once; x has to be NULL. Every row is changed by the same small
 *             share of its length, |sum m acc| over sum |m acc|. Plus G6X_TREE_SPLINE: a pair
 * nearer than h = 2.8 eps acts as the compact spline of Gadget (Springel, Yoshida and White 2001),
 * with the potential -m/eps at its centre, others without softening theta     opening angle, above
 * 0 and at most 1.5: a cell acts as a whole if its size is less than theta times its distance.
 * Towards 0 the forces become those of the direct sum. Or 0: bound is then the relative error of
 * acc that is wanted, 1e-6 to 0.1: of half of the targets; 99 % are below four times that; pairs of
 * up to 4096 particles, or 2^24 pairs in all, are summed one by one last_acc  double[ni], or NULL
 * if bound or theta is 0: the approximate magnitude of each target's acceleration, for example from
 * the previous call bound     0, or the largest estimated error of a cell's force as a fraction of
 * last_acc The bits depend on the particles and on all targets of the call, which share traversals;
 * not on threads. 0, or a code; a NaN in a target affects its own row only. */
int g6x_tree_forces(int tree, int ni, const double (*x)[3], const double (*v)[3], const int self[],
                    double eps2, int method, int order, double theta, const double last_acc[],
                    double bound, double (*acc)[3], double (*jerk)[3], double pot[]);
/* The bound with which g6x_tree_forces on the tree's own particles, with theta 1.4 and their
 * accelerations in last_acc, has the errors of acc of `accuracy`, 1e-6 to 0.1. It is the same for
 * all particles. last_acc: double[number of particles], whose values do not matter. 0, or a code;
 * *bound is then NaN. May be NULL: last_acc. */
int g6x_tree_bound(int tree, double eps2, int method, int order, double accuracy,
                   const double last_acc[], double *bound);
/* One tree of the particles of several ranks of a program, of which each rank has some: those of a
 * range of keys along a Hilbert curve, so that they are near each other. Before a sum each rank has
 * of each other one the part of its tree that its targets may look at.
 *   whole     double[13], the same on all ranks: the least and the largest x, y and z, the largest
 *             |mass|, the number of particles, the largest component of a velocity (negative: there
 *             are none), the mean velocity, weighted with |mass|, and the sum of |mass|; of the
 *             particles of all ranks
 *   region    double[7]: the least and the largest x, y and z of some targets, and the least of
 *             their last_acc, or 0. Some hundred targets that are near each other are a region */
enum { G6X_TREE_WHOLE = 13, G6X_TREE_REGION = 7 };
/* As g6x_tree_open, of a rank's own particles, n >= 0. G6X_E_RANGE where these stand closer
 * together than one box of all ranks' particles resolves. May be NULL: v. */
int g6x_tree_open_in(const double whole[G6X_TREE_WHOLE], int n, const double (*x)[3],
                     const double (*v)[3], const double mass[]);
/* Keys along the curve, below 2^63. 0, or a code. */
int g6x_tree_keys(const double whole[G6X_TREE_WHOLE], int n, const double (*x)[3],
                  unsigned long long key[]);
/* The numbers of the tree's particles in the order of their keys. Returns n, or a code. */
int g6x_tree_by_key(int tree, int order[]);
/* What targets in some regions may look at, of sums with this eps2 (the targets' largest), method
 * (without G6X_TREE_MOMENTUM), order, theta and bound. *bytes: how many it has, which are written
 * if they are no more than `capacity`. It is for programs of the same build. 0, or a code. */
int g6x_tree_part(int tree, double eps2, int method, int order, double theta, double bound,
                  int regions, const double (*region)[G6X_TREE_REGION], void *to,
                  long long capacity, long long *bytes);
/* As g6x_tree_forces, of the particles of all ranks: part[k] is that of another rank's tree for
 * this one's targets. theta may not be 0. done: pairs, cells on targets and cells on groups that
 * were summed. May be NULL: x, v, self, last_acc, jerk, done. */
int g6x_tree_forces_with(int tree, int parts, const void *const part[], int ni,
                         const double (*x)[3], const double (*v)[3], const int self[], double eps2,
                         int method, int order, double theta, const double last_acc[], double bound,
                         double (*acc)[3], double (*jerk)[3], double pot[], long long done[3]);
/* Particles with r^2 <= h2[i] of each target, in double precision; x, self and ni as above. The
 * tree's own particles are left out of their own lists. h2 negative or NaN: none; infinite: all.
 * count: int[ni], their number (-1 if the target has a NaN). start: long long[ni + 1], or NULL to
 * count them only; found: the particle numbers of target i, ascending, from found[start[i]] to
 * before found[start[i + 1]]. 0; 1 if a target's part of found is too small, which then holds the
 * lowest numbers; or a code. Outputs may not overlap inputs. May be NULL: x, self, start, found. */
int g6x_tree_within(int tree, int ni, const double (*x)[3], const int self[], const double h2[],
                    const long long start[], int count[], int found[]);
/* The k nearest particles of each target, nearest first, ties to the lowest number. number:
 * int[ni][k]; r2: double[ni][k], squared distances; -1 and infinity where there are fewer. 0, or a
 * code. Outputs may not overlap inputs. May be NULL: x, self. */
int g6x_tree_nearest(int tree, int ni, const double (*x)[3], const int self[], int k, int number[],
                     double r2[]);

/* Many walks (Hamada and others 2009): forces on groups of targets, each from a list of its own, in
 * one call, for programs that keep their own tree. The j memory and the time are not used.
 *   acc[i] = sum m_j r / (r^2 + eps2)^(3/2), pot[i] = - sum m_j / sqrt(r^2 + eps2), r = x_j - x_i,
 * over the list of the walk that target i belongs to. A zero-distance pair adds nothing, so that a
 * body in its own list is left out; entries may be bodies or cells, which act as points. Pairs are
 * in single precision, with positions relative to the targets (error of a force about 1e-6 of its
 * terms, of one close pair up to 1.6e-5), or in double with G6X_PRECISION double. The bits of a
 * walk's forces do not depend on the other walks of the call, nor on threads.
 *   i_start   long long[nwalks + 1]: targets of walk w are xi[i_start[w]] to before
 *             xi[i_start[w + 1]]; their results go to the same rows of acc and pot
 *   j_start   the same for the list of walk w, in xj and mj or, if j_list is not NULL, in j_list
 *   j_list    which of the nj entries of xj and mj are in the lists, counted from 0; NULL: xj and
 *             mj are the lists themselves, and nj is not read. Numbers are faster to copy to a GPU
 * 0, or a code; a NaN in a target affects its own row only. May be NULL: j_list.
 * In and out: acc, pot. Their rows of no walk stay as they are. */
int g6x_walks(int clusterid, int nwalks, const long long i_start[], const double (*xi)[3],
              const long long j_start[], const int j_list[], int nj, const double (*xj)[3],
              const double mj[], double eps2, double (*acc)[3], double pot[]);
/* The same in two halves, with pointers to the arrays of each walk: targets (ni, xi), particles
 * (nj, xj, mj) and cells (nc, xc, mc; nc NULL: none), in the manner of FDPS. The inputs are free
 * again when dispatch returns; on a GPU the sum continues. Up to 8 tags may be pending; a second
 * dispatch of a tag before its retrieve replaces the first. A retrieve returns the error of its
 * dispatch again. May be NULL: nc, xc, mc. */
int g6x_walks_dispatch(int clusterid, int tag, int nwalks, const int ni[],
                       const double (*const xi[])[3], const int nj[], const double (*const xj[])[3],
                       const double *const mj[], const int nc[], const double (*const xc[])[3],
                       const double *const mc[], double eps2);
/* Waits for the sums of a tag; nwalks and ni as in the dispatch. acc, pot: arrays for the results
 * of each walk. */
int g6x_walks_retrieve(int clusterid, int tag, int nwalks, const int ni[], double (*const acc[])[3],
                       double *const pot[]);

/* The neighbour lists of all ni i particles of the last force call, in one call; ni as
 * there. The indices of i particle i, ascending, go to list[start[i]] to before
 * list[start[i + 1]].
 *   capacity  entries that list has
 *   start     long long[ni + 1]: from 0 to the number of all indices
 *   list      int[capacity]; NULL with a capacity of 0: only start is written
 * Returns 1 if list is too short for start[ni] indices: start is correct, list is undefined,
 * and the call can be repeated. G6X_E_I_NAN if an i particle had a NaN: its list is empty,
 * all others are complete. With any other code all lists are empty. */
int g6x_get_neighbour_lists(int clusterid, int ni, long long capacity, long long start[],
                            int list[]);

enum { G6X_PARTIAL_WORDS = 32 };
/* Order-free partial sums. Between firsthalf and the next one, g6x_get_partial gives
 * the exact sums of this cluster's share of j as integers. Rows of several clusters, processes or
 * devices, made with equal scales, may be merged in any order with g6x_add_partial, or by the
 * caller as docs/reproducibility.md describes, and turned into forces with
 * g6x_from_partial. If every share is whole blocks of 1024 addresses (j address
 * a in block a / 1024 of one common numbering), the result has the bits of one
 * cluster that holds everything. Rows of a call that fails hold its code, from which
 * g6x_from_partial makes NaN. words: long long[ni][G6X_PARTIAL_WORDS]. */
int g6x_get_partial(int clusterid, int ni, long long words[]);
int g6x_from_partial(int ni, const long long words[], double (*acc)[3], double (*jerk)[3],
                     double pot[]);
/* Adds words to sum. sum, words: long long[ni][G6X_PARTIAL_WORDS]. In and out: sum. */
int g6x_add_partial(int ni, long long sum[], const long long words[]);
enum { G6X_PARTIAL_TOPS = 6, G6X_PARTIAL_LIMB = 6, G6X_PARTIAL_LIMBS = 21 };
/* For merging by MPI (g6x_mpi.h) or others: top has the tops of the three windows of each row, and
 * whether they are invalid. After MPI_MAX of them over all shares g6x_raise_partial gives the rows
 * these tops. Then words G6X_PARTIAL_LIMB to before G6X_PARTIAL_LIMB + G6X_PARTIAL_LIMBS add up.
 * words: long long[ni][G6X_PARTIAL_WORDS]. In and out: words. */
int g6x_get_tops(int ni, const long long words[], int (*top)[G6X_PARTIAL_TOPS]);
int g6x_raise_partial(int ni, long long words[], const int (*top)[G6X_PARTIAL_TOPS]);

#ifdef __cplusplus
}
#endif
#endif
