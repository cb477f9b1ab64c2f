/* g5lib.h - the GRAPE-5 host library, in software (grape6py).
 *
 * The calls are for cluster 0; with MC in the name, for the cluster with the number devid. Fortran
 * has both with all arguments by pointer: g5_open_ or g5_open__, g5_openmc_ or g5_openmc__.
 *
 *   a[i] =   sum_j m_j r / (r^2 + eps^2)^(3/2),   r = x_j - x_i
 *   p[i] = + sum_j m_j / (r^2 + eps^2)^(1/2)     as the hardware had it; GRAPE6_G5_POT_SIGN=-1: -
 *
 * The sum is over all j particles. There are no indices: a zero-distance pair, such as i with
 * itself, adds nothing to a and m_j / eps to the sum of p; nothing if eps is 0.
 *
 * Conventions, valid for every call
 *   units      the caller's own, with G = 1; any system of units works
 *   devid      any int: a key to an independent set of j and i particles, separate from the
 *              clusters of g6lib.h, which may be used at the same time
 *   adr        0-based slot in the j memory, which grows as needed
 *   arrays     belong to the caller; read or written only during the call; inputs and outputs may
 *              overlap
 *   returns    0 for success, a negative code for an error: G6X_E_* of g6lib.h. A force call that
 *              fails fills its outputs with quiet NaN; one bad i particle affects its own row only.
 *              Nominally void calls return such a code too
 *   threads    calls may come from any thread; one cluster does one call at a time
 */
#ifndef G5LIB_H
#define G5LIB_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- opening and closing ------------------------------------------------- */

/* Opens a cluster; opening twice is fine. While any cluster is open, one of g6lib.h included, the
 * first use of a new one opens it. */
int g5_open(void);
int g5_openMC(int devid);
/* Opens cluster 0 on the listed devices; list has ndevice entries. */
int g5_open_special(int ndevice, int *list);
int g5_open_noinit(void); /* the same */
/* Releases a cluster with its particles; closing twice or unopened is fine. Closing the last
 * cluster that was opened by a call also closes those that were opened by use. */
int g5_close(void);
int g5_closeMC(int devid);
/* Number of i particles that a caller sends at a time: 48 unless GRAPE6_NPIPES or GRAPE6_CLIENT
 * sets another number; constant, legal before open. More are accepted. */
int g5_get_number_of_pipelines(void);
int g5_get_number_of_pipelinesMC(int devid);
/* The same, 1 and 0: programs use these clusters in turn. Legal before open. */
int g5_get_number_of_pipelines_per_board(void);
int g5_get_number_of_boards(void);
int g5_get_firstcluster(void);
/* 1 and 1; legal before open. */
int g5_get_number_of_real_pipelines(void);
int g5_get_number_of_real_pipelinesMC(int devid);
int g5_get_pcibus_freq(void);
int g5_get_pcibus_freqMC(int devid);
/* Number of j particles that a caller sends at a time: 2^24; legal before open. More are
 * accepted. */
int g5_get_jmemsize(void);
int g5_get_jmemsizeMC(int devid);
/* Fixed-point range of the hardware. Ignored; legal before open. */
int g5_set_range(double xmin, double xmax, double mmin);
int g5_set_rangeMC(int devid, double xmin, double xmax, double mmin);
/* Unit of length of a cut-off, above 0. There is none here: no effect, and, unless it is infinite,
 * a line on stderr that says so. */
int g5_set_eta(double eta);
int g5_set_etaMC(int devid, double eta);

/* ---- j particles --------------------------------------------------------- */

/* Uses the j particles at addresses 0 to n - 1; addresses never written add nothing. */
int g5_set_n(int n);
int g5_set_nMC(int devid, int n);
/* Writes nj particles to addresses adr to adr + nj - 1: x[0], m[0] to adr and so on; with
 * GRAPE6_G5_SOURCE=address x[adr], m[adr] to adr. A NaN or Inf marks the slot bad and returns
 * G6X_E_J_NAN: forces that use it fail until it is written again. */
int g5_set_xmj(int adr, int nj, double (*x)[3], double *m);
int g5_set_xmjMC(int devid, int adr, int nj, double (*x)[3], double *m);
int g5_set_jp(int adr, int nj, double *m, double (*x)[3]);
int g5_set_jpMC(int devid, int adr, int nj, double *m, double (*x)[3]);
/* Positions or masses alone; a force that uses a particle without one of them fails. */
int g5_set_xj(int adr, int nj, double (*x)[3]);
int g5_set_xjMC(int devid, int adr, int nj, double (*x)[3]);
int g5_set_mj(int adr, int nj, double *m);
int g5_set_mjMC(int devid, int adr, int nj, double *m);

/* ---- softening ----------------------------------------------------------- */

/* Set the softening: eps is a length >= 0, eps2 its square. Without MC: for all clusters, also
 * those opened later; kept after close; legal before open. Required before the first run. */
int g5_set_eps_to_all(double eps);
int g5_set_eps_to_allMC(int devid, double eps);
int g5_set_eps2_to_all(double eps2);
int g5_set_eps2_to_allMC(int devid, double eps2);
/* Sets eps[i] for i particle i < ni in all later runs, until g5_set_eps_to_all. The other i
 * particles keep what that call has set. */
int g5_set_eps(int ni, double *eps);
int g5_set_epsMC(int devid, int ni, double *eps);

/* ---- forces -------------------------------------------------------------- */

/* Copies ni i particles. */
int g5_set_xi(int ni, double (*x)[3]);
int g5_set_xiMC(int devid, int ni, double (*x)[3]);
/* ... each with its softening length squared, which overrides the settings above. */
int g5_set_xei(int ni, double (*x)[3], double *eps2);
int g5_set_xeiMC(int devid, int ni, double (*x)[3], double *eps2);
/* ... each with its softening length. h, the radius of the hardware's neighbours, is not read. */
int g5_set_ip(int ni, double (*x)[3], double *eps, double *h);
int g5_set_ipMC(int devid, int ni, double (*x)[3], double *eps, double *h);
/* Starts the sum for them, with the current j particles, n and softening. May be repeated with
 * other j particles. */
int g5_run(void);
int g5_runMC(int devid);
/* Waits for the sum and writes a and p of the first ni i particles. */
int g5_get_force(int ni, double (*a)[3], double *p);
int g5_get_forceMC(int devid, int ni, double (*a)[3], double *p);
/* set_xi (or set_xei), run and get_force in one, for any ni. */
int g5_calculate_force_on_x(double (*x)[3], double (*a)[3], double *p, int ni);
int g5_calculate_force_on_xMC(int devid, double (*x)[3], double (*a)[3], double *p, int ni);
int g5_calculate_force_on_xe(double (*x)[3], double *eps2, double (*a)[3], double *p, int ni);
int g5_calculate_force_on_xeMC(int devid, double (*x)[3], double *eps2, double (*a)[3], double *p,
                               int ni);

/* ---- symmetric softening --------------------------------------------------- */

/* Phantom-GRAPE's calls that end in 0: eps^2 = eps2[i] + epsj2[j]. Their j particles have a memory
 * of their own; n is that of g5_set_n. Summed in double precision on the CPU, whatever the mode and
 * the backend are. g5_set_xiMC0 is g5_set_xeiMC; g5_get_forceMC gives the forces. */
int g5_set_xmj0(int adr, int nj, double (*x)[3], double *m, double *epsj2);
int g5_set_xmjMC0(int devid, int adr, int nj, double (*x)[3], double *m, double *epsj2);
int g5_set_xiMC0(int devid, int ni, double (*x)[3], double *eps2);
int g5_runMC0(int devid);
int g5_calculate_force_on_x0(double (*x)[3], double (*a)[3], double *p, int ni, double *eps2);
int g5_calculate_force_on_xMC0(int devid, double (*x)[3], double (*a)[3], double *p, int ni,
                               double *eps2);

/* ---- errors (new; this name only) ---------------------------------------- */

/* Copies the text of a cluster's last error to buffer of length bytes; if the cluster is not open,
 * of the process's last error. Returns its code, 0 if there is none. */
int g6x_g5_last_error(int devid, char *buffer, int length);

#ifdef __cplusplus
}
#endif

#endif
