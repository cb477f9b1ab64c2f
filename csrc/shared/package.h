/* package.h - what the Python package knows of the library besides g6lib.h: it reads this file. */
#ifndef GRAPE6_PACKAGE_H
#define GRAPE6_PACKAGE_H

/* j particles of a block: shares of ranks are whole blocks. */
enum { BLOCK = 1024 };
/* Bit of the first word of a partial sum: it has the jerk. */
enum { WORD_JERK = 1 };

/* 1 if the last error of a cluster has been printed on stderr. */
int g6x_error_printed(int clusterid);
/* 1 if this thread is in Python code that the library has called, with its locks held. Objects that
 * Python's garbage collector finds then must not be closed yet. */
int g6x_runs_python(void);
/* g6_open (backend -1) or g6x_open on a CUDA device, by its number; -1, or one that GRAPE6_DEVICES
 * does not name: the first of these. A rank of MPI has its own all the same. */
int g6x_open_on(int clusterid, int backend, int device);
/* Threads of a force call where 0 are asked for. */
int g6x_threads(void);
/* FMA instructions on full vectors that one thread issues a second with the kernel of an
 * instruction set and a mode; 0 if the machine lacks it. */
double g6x_fma_rate(int isa, int mode);
/* 1 if a tree's pairs are summed one by one. */
int g6x_tree_few(long long particles, long long targets, int on_device);
/* acc, jerk and pot of nj particles on ni targets, pair by pair in double precision, with the
 * softening length of each: as g6x_tree_soften and G6X_TREE_SPLINE say. self: the particle that a
 * target is, or -1. *left_out: how many pairs had neither distance nor softening. 0, or a code. May
 * be NULL: v, vj. Numbers are finite, and of particles that there are. */
int g6x_softened_forces(int spline, int threads, int ni, const double (*x)[3], const double (*v)[3],
                        const double eps[], const int self[], int nj, const double (*xj)[3],
                        const double (*vj)[3], const double mass[], const double epsj[],
                        double (*acc)[3], double (*jerk)[3], double pot[], long long *left_out);
/* The bound of theta of an order, for an accuracy. */
double g6x_tree_bound_of(int order, double accuracy);

#endif
