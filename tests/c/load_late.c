/* A host that loads the library at run time, closes it, and ends in odd orders (row 36).
 * usage: load_late LIBRARY (plain | unclosed | atexit | thread | deepbind) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int (*g6_open)(int), (*g6_close)(int),
    (*set)(int, int, int, double, double, double, double *, double *, double *, double *, double *);
static int (*first)(int, int, int, int *, double *, double *, double *, double *, double *, double,
                    double *);
static int (*last)(int, int, int, int *, double *, double *, double, double *, double *, double *,
                   double *);

static int flags = RTLD_NOW | RTLD_LOCAL;

static void *load(const char *path)
{
    void *handle = dlopen(path, flags);
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(98);
    }
    *(void **)&g6_open = dlsym(handle, "g6_open");
    *(void **)&g6_close = dlsym(handle, "g6_close");
    *(void **)&set = dlsym(handle, "g6_set_j_particle");
    *(void **)&first = dlsym(handle, "g6calc_firsthalf");
    *(void **)&last = dlsym(handle, "g6calc_lasthalf");
    return handle;
}

static int use(void)
{
    static double x[3000][3], zero[64][3], h2[64], acc[64][3], jerk[64][3], pot[64];
    static int index[64];
    int bad = g6_open(0) != 0;
    for (int j = 0; j < 3000; j++) {
        x[j][0] = 1 + j % 7;
        x[j][1] = j % 11;
        bad += set(0, j, j + 100, 0, 0, 1, zero[0], zero[0], zero[0], zero[0], x[j]) != 0;
    }
    bad += first(0, 3000, 64, index, zero[0], zero[0], zero[0], zero[0], h2, 0.0, h2) != 0;
    bad += last(0, 3000, 64, index, zero[0], zero[0], 0.0, h2, acc[0], jerk[0], pot) != 0;
    return bad + !(acc[63][0] > 1 && isfinite(pot[63]));
}

static void use_at_exit(void)
{
    if (use() != 0 || g6_close(0) != 0) {
        fputs("force at exit failed\n", stderr);
        _Exit(97);
    }
}

static void *use_in_thread(void *unused)
{
    (void)unused;
    return use() == 0 ? (void *)&g6_open : NULL;
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "plain";
    int bad = 0;
    if (strcmp(how, "deepbind") == 0) flags |= RTLD_DEEPBIND; /* as plugins of some hosts are */
    for (int round = 0; round < 3; round++) {
        void *handle = load(argv[1]);
        if (strcmp(how, "thread") == 0) {
            pthread_t thread;
            void *fine = NULL;
            pthread_create(&thread, NULL, use_in_thread, NULL);
            pthread_join(thread, &fine);
            bad += fine == NULL;
        } else {
            bad += use();
        }
        if (strcmp(how, "unclosed") != 0) {
            bad += g6_close(0) != 0;
        }
        bad += dlclose(handle) != 0;
    }
    if (strcmp(how, "atexit") == 0) {
        load(argv[1]);
        atexit(use_at_exit);
    }
    return bad;
}
