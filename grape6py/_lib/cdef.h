/* The declarations of g6lib.h as cffi reads them: no comments on the calls, no
 * preprocessor. They stand in the header's order; a test compares the two. */
int g6_open(int clusterid);
int g6_close(int clusterid);
int g6_npipes(void);
int g6_reset(int clusterid);
int g6_reset_fofpga(int clusterid);
int g6_reinitialize(int clusterid);
int g6_set_tunit(int newtunit);
int g6_set_xunit(int newxunit);
int g6_open_special(int ndevice, int *list);
int g6_open_special2(int ndevice, int *list, int nmax);
int get_device_count(void);
int g6_set_j_particle(int clusterid, int address, int index, double tj, double dtj, double mass,
                      double k18[3], double j6[3], double a2[3], double v[3], double x[3]);
int g6_set_j_particle_mxonly(int clusterid, int address, int index, double mass, double x[3]);
int g6_set_ti(int clusterid, double ti);
int g6_initialize_jp_buffer(int clusterid, int size);
int g6_flush_jp_buffer(int clusterid);
int g6_flush_jp_buffer_and_multisend(int clusterid, int nclusters);
int g6_setup_njdata(int clusterid, int nj);
int force_j_particle_send(void);
int g6_getnjmax(int clusterid);
int g6_get_predicted_j_particles(int clusterid, int nj, double (*x)[3], double (*v)[3]);
int get_j_part_data(int addr, int nj, double *x6);
int g6calc_firsthalf(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                     double (*aold)[3], double (*j6old)[3], double phiold[], double eps2,
                     double h2[]);
int g6calc_lasthalf(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                    double eps2, double h2[], double (*acc)[3], double (*jerk)[3], double pot[]);
int g6calc_lasthalf2(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                     double eps2, double h2[], double (*acc)[3], double (*jerk)[3], double pot[],
                     int nnbindex[]);
int g6calc_lasthalf2p(int clusterid, int nj, int ni, int index[], double (*xi)[3],
                      double (*vi)[3], double eps2, double h2[], double (*acc)[3],
                      double (*jerk)[3], double pot[], int nnbindex[], float rnnb[]);
int g6calc_lasthalfn(int clusterid, int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                     double eps2, double h2[], double (*acc)[3], double (*jerk)[3], double pot[]);
int g6calc_lasthalf2n(int clusterid, int nj, int ni, int index[], double (*xi)[3],
                      double (*vi)[3], double eps2, double h2[], double (*acc)[3],
                      double (*jerk)[3], double pot[], int nnbindex[]);
int g6calc_lasthalf2np(int clusterid, int nj, int ni, int index[], double (*xi)[3],
                       double (*vi)[3], double eps2, double h2[], double (*acc)[3],
                       double (*jerk)[3], double pot[], int nnbindex[], float rnnb[]);
int g6calc_firsthalf0(int clusterid, int nj, int ni, int index[], double (*xi)[3],
                      double (*vi)[3], double (*aold)[3], double (*j6old)[3], double phiold[],
                      double *eps2, double h2[], int mode);
int g6calc_lasthalf0(int clusterid, int nj, int ni, int index[], double (*xi)[3],
                     double (*vi)[3], double *eps2, double h2[], double (*acc)[3],
                     double (*jerk)[3], double pot[], int mode);
int g6_read_neighbour_list(int clusterid);
int g6_read_neighbour_list_old(int clusterid);
int g6_get_neighbour_list(int clusterid, int ipipe, int maxlength, int *nblen, int nbl[]);
int g6_set_neighbour_list_sort_mode(int mode);
int g6_get_neighbour_list_sort_mode(void);
int g6_set_overflow_flag_test_mode(int aflag, int jflag, int pflag);
int g6_print_chip_status(int clusterid);
int g6_set_j_particle_multisend_mxfast_(int *clusterid, int *nclusters, int *address, int *index,
                                        double *mass, double x[3]);
int g6_open_all(void);
int g6_close_all(void);
int g6_reset_all(void);
int g6_reset_fofpga_all(void);
int g6_set_ti_all(double ti);
int g6_set_j_particle_all(int address, int index, double tj, double dtj, double mass,
                          double k18[3], double j6[3], double a2[3], double v[3], double x[3]);
int g6_set_j_particle_mxonly_all(int address, int index, double mass, double x[3]);
int g6calc_firsthalf_all(int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                         double (*aold)[3], double (*j6old)[3], double phiold[], double eps2,
                         double h2[]);
int g6calc_lasthalf_all(int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                        double eps2, double h2[], double (*acc)[3], double (*jerk)[3],
                        double pot[]);
int g6calc_lasthalf2_all(int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                         double eps2, double h2[], double (*acc)[3], double (*jerk)[3],
                         double pot[], int nnbindex[]);
int g6calc_firsthalf0_all(int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                          double (*aold)[3], double (*j6old)[3], double phiold[], double *eps2,
                          double h2[], int mode);
int g6calc_lasthalf0_all(int nj, int ni, int index[], double (*xi)[3], double (*vi)[3],
                         double *eps2, double h2[], double (*acc)[3], double (*jerk)[3],
                         double pot[], int mode);
int g6_initialize_jp_buffer_all(int size);
int g6_flush_jp_buffer_all(void);
int g6_read_neighbour_list_all(void);
int g6_get_neighbour_list_all(int ipipe, int maxlength, int *nblen, int nbl[]);
int g6_set_nip(int clusterid, int nip);
int g6_set_njp(int clusterid, int njp);
int g6_set_i_particle_scales_from_real_value(int clusterid, int address, double acc[3],
                                             double jerk[3], double phi, double jfactor,
                                             double ffactor);
int g6_set_i_particle(int clusterid, int address, int index, double x[3], double v[3],
                      double eps2, double h2);
int g6_get_force(int clusterid, double (*acc)[3], double (*jerk)[3], double phi[], int flag[]);
int g6_get_force_etc(int clusterid, double (*acc)[3], double (*jerk)[3], double phi[],
                     int nnbindex[], int flag[]);
enum {
    G6X_E_DEVICE_MEMORY = -1,
    G6X_E_DEVICE_LOST = -2,
    G6X_E_NO_DEVICE = -3,
    G6X_E_RUNTIME = -4,
    G6X_E_PYTHON = -5,
    G6X_E_J_NAN = -6,
    G6X_E_I_NAN = -7,
    G6X_E_RANGE = -8,
    G6X_E_ARGUMENT = -11,
    G6X_E_ADDRESS = -13,
    G6X_E_NO_FIRSTHALF = -18,
    G6X_E_MISMATCH = -20,
    G6X_E_NOT_OPEN = -21,
    G6X_E_PIPE = -25,
    G6X_E_NULL = -26,
    G6X_E_OVERFLOW = -27,
    G6X_E_MEMORY = -29,
    G6X_E_FORK = -30,
    G6X_E_VERIFY = -40
};
int g6x_last_error(int clusterid, char *buffer, int length);
int g6x_last_warning(int clusterid, char *buffer, int length);
int g6x_clear_error(int clusterid);
int g6x_version(char *buffer, int length);
enum {
    G6X_BACKEND_AUTO = 0,
    G6X_BACKEND_CPU = 1,
    G6X_BACKEND_CUDA = 2,
    G6X_BACKEND_TREE = 3,
    G6X_BACKEND_CPU_TREE = 4,
    G6X_BACKEND_CUDA_TREE = 5
};
int g6x_open(int clusterid, int backend);
int g6x_backend(int clusterid, char *buffer, int length);
enum {
    G6X_PRECISION = 1,
    G6X_THREADS = 2,
    G6X_ISA = 3,
    G6X_JERK = 4,
    G6X_SNAP = 5,
    G6X_NEIGHBOUR_SELF = 6,
    G6X_SCALE_LENGTH = 7,
    G6X_SCALE_MASS = 8,
    G6X_SCALE_VELOCITY = 9,
    G6X_VERIFY = 10,
    G6X_LOG = 11,
    G6X_ON_ERROR = 12,
    G6X_NPIPES = 13,
    G6X_DEVICE = 14,
    G6X_THETA = 15,
    G6X_TREE_METHOD = 16,
    G6X_TREE_ORDER = 17,
    G6X_ORIGIN_X = 18,
    G6X_ORIGIN_Y = 19,
    G6X_ORIGIN_Z = 20,
    G6X_DRIFT_X = 21,
    G6X_DRIFT_Y = 22,
    G6X_DRIFT_Z = 23
};
enum { G6X_GRAPE = 0, G6X_DOUBLE = 1, G6X_SINGLE = 2 };
enum { G6X_ISA_BEST = 0, G6X_ISA_BASE = 1, G6X_ISA_AVX2 = 2, G6X_ISA_AVX512 = 3 };
enum { G6X_TREE_FMM = 0, G6X_TREE_BARNES_HUT = 1 };
enum { G6X_AUTO = -2147483647 };
int g6x_set_int(int clusterid, int key, int value);
int g6x_get_int(int clusterid, int key, int *value);
int g6x_set_double(int clusterid, int key, double value);
int g6x_get_double(int clusterid, int key, double *value);
int g6x_get_scale(int clusterid, int nj, int exponent[3]);
int g6x_get_origin(int clusterid, int nj, double origin[3], double drift[3]);
int g6x_set_j_particles(int clusterid, int n, const int *address, const int *index,
                        const double *tj, const double *dtj, const double *mass,
                        const double (*k18)[3], const double (*j6)[3], const double (*a2)[3],
                        const double (*v)[3], const double (*x)[3]);
int g6x_set_j_particles_device(int clusterid, int n, const int address[], const int index[],
                               const double tj[], const double mass[], const double (*k18)[3],
                               const double (*j6)[3], const double (*a2)[3], const double (*v)[3],
                               const double (*x)[3], void *stream);
int g6x_get_predicted_j_particles_device(int clusterid, int nj, double (*x)[3], double (*v)[3],
                                         void *stream);
int g6x_forces_device(int clusterid, int nj, int ni, const int index[], const double (*x)[3],
                      const double (*v)[3], double eps2, const double h2[], double (*acc)[3],
                      double (*jerk)[3], double pot[], int nearest[], float distance[],
                      void *stream);
int g6x_hermite_predict(int ni, const int address[], double time, const double t[],
                        const double (*x)[3], const double (*v)[3], const double (*a)[3],
                        const double (*j)[3], double (*xi)[3], double (*vi)[3]);
int g6x_hermite_correct(int ni, const int address[], double time, double eta, double dtmin,
                        double dtmax, const double (*acc)[3], const double (*jerk)[3],
                        const double noise[], double t[],
                        double dt[], double (*x)[3], double (*v)[3], double (*a)[3],
                        double (*j)[3], double (*xi)[3], double (*vi)[3]);
struct g6x_hermite {
    int n;
    double eta, dtmin, dtmax;
    const double *mass;
    const double *rounding;
    double *t, *dt, (*x)[3], (*v)[3], (*a)[3], (*j)[3];
    int *address;
    double (*xi)[3], (*vi)[3], (*acc)[3], (*jerk)[3], *pot;
};
int g6x_hermite_next_device(int clusterid, const struct g6x_hermite *h, double *time, void *stream);
int g6x_hermite_predict_device(int clusterid, const struct g6x_hermite *h, int ni, double time,
                               void *stream);
enum { G6X_HERMITE_MOVE = 1, G6X_HERMITE_WRITE = 2 };
int g6x_hermite_correct_device(int clusterid, const struct g6x_hermite *h, int ni, double time,
                               int what, void *stream);
int g6x_tree_open(int n, const double (*x)[3], const double (*v)[3], const double mass[]);
int g6x_tree_close(int tree);
int g6x_tree_set_int(int tree, int key, int value);
int g6x_tree_forces(int tree, int ni, const double (*x)[3], const double (*v)[3], const int self[],
                    double eps2, int method, int order, double theta, const double last_acc[],
                    double bound, double (*acc)[3], double (*jerk)[3], double pot[]);
int g6x_tree_within(int tree, int ni, const double (*x)[3], const int self[], const double h2[],
                    const long long start[], int count[], int found[]);
int g6x_tree_nearest(int tree, int ni, const double (*x)[3], const int self[], int k, int number[],
                     double r2[]);
int g6x_walks(int clusterid, int nwalks, const long long i_start[], const double (*xi)[3],
              const long long j_start[], const int j_list[], int nj, const double (*xj)[3],
              const double mj[], double eps2, double (*acc)[3], double pot[]);
int g6x_walks_dispatch(int clusterid, int tag, int nwalks, const int ni[],
                       const double (*const xi[])[3], const int nj[],
                       const double (*const xj[])[3], const double *const mj[], const int nc[],
                       const double (*const xc[])[3], const double *const mc[], double eps2);
int g6x_walks_retrieve(int clusterid, int tag, int nwalks, const int ni[], double (*const acc[])[3],
                       double *const pot[]);
enum { G6X_PARTIAL_WORDS = 32 };
int g6x_get_partial(int clusterid, int ni, long long *words);
int g6x_add_partial(int ni, long long *sum, const long long *words);
int g6x_from_partial(int ni, const long long *words, double (*acc)[3], double (*jerk)[3],
                     double pot[]);

/* Not in the header: for the benchmark only. Independent fused multiply-add vector
 * instructions a second that one thread issues with the kernel of an instruction set
 * (G6X_ISA_*) and a mode (G6X_GRAPE, ...). */
double g6x_fma_rate(int isa, int mode);
