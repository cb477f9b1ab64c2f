/* An allocation fails, each in a process of its own: calls succeed or return G6X_E_MEMORY with NaN
 * in their outputs; then all is done again and is right. Of those from one place in the source the
 * first fails, the second, the fourth and so on. Prints how many failed and how many of the
 * failures a call reported. For a library built with GRAPE6_TEST_HOOKS; its sanitizer looks for
 * leaks when a process ends. */
#define _GNU_SOURCE
#define BOARD_N 600 /* more allocate in no other places */
#include "board.h"
#include "g5lib.h"
#include "util/memory.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Exit codes of a child that is well, apart from those of sanitizers. */
enum { SILENT = 100, REPORTED };
enum { DEPTH = 2, MOST = 2000 };

static int reported, wrong;

/* Of all processes: the right forces, and which allocations are to fail. */
static struct {
    uint64_t expected;
    long count;
    unsigned char fails[MOST + 1];
} *plan;
static int planning;

/* Notes an allocation by the calls that have led to it. */
static void note_place(void)
{
    static uint64_t place[MOST + 1];
    if (!planning || plan->count == MOST) return;
    void *from[DEPTH + 2];
    const int depth = backtrace(from, DEPTH + 2);
    const long n = ++plan->count;
    unsigned seen = 1;
    for (int k = 2; k < depth; k++) place[n] = place[n] * 31 + (uintptr_t)from[k];
    for (long k = 1; k < n; k++) seen += place[k] == place[n];
    plan->fails[n] = (seen & (seen - 1)) == 0;
}

/* In place of the library's functions, which they call. */
static _Thread_local int within;

void *memory_zeroed(size_t bytes)
{
    void *(*zeroed)(size_t) = (void *(*)(size_t))dlsym(RTLD_NEXT, "memory_zeroed");
    if (!within) note_place();
    return zeroed(bytes);
}

void *memory_grown(void *p, size_t bytes)
{
    void *(*grown)(void *, size_t) = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "memory_grown");
    note_place();
    within = 1;
    p = grown(p, bytes);
    within = 0;
    return p;
}

static void note(const char *what, int code)
{
    if (code == G6X_E_MEMORY) reported = 1;
    if (code != 0 && code != G6X_E_MEMORY) {
        fprintf(stderr, "%s: code %d\n", what, code);
        wrong++;
    }
}

static void clear(Board *b)
{
    memset(b->acc, 0, sizeof b->acc);
    memset(b->pot, 0, sizeof b->pot);
}

static void note_rows(const char *what, const Board *b, int ni, int code)
{
    int right = code == 0 || board_all_nan(b, ni);
    for (int i = 0; code == 0 && i < ni; i++)
        right &= isfinite(b->acc[i][0] + b->pot[i]) && b->pot[i] != 0;
    note(what, code);
    if (right) return;
    fprintf(stderr, "%s: outputs do not fit code %d\n", what, code);
    wrong++;
}

static void force(Board *b, int id, int ni)
{
    clear(b);
    note("firsthalf", board_first(b, id, N, ni, 1e-4));
    note_rows("lasthalf", b, ni, board_last2(b, id, ni));
}

static void walks(Board *b, int id)
{
    memset(b->jerk, 0xff, sizeof b->jerk); /* which walks have not */
    for (int q = 0; q < 2; q++) {
        clear(b);
        note_rows("walks", b, NI, q ? board_flight(b, id, 3) : board_walks(b, id));
    }
}

/* Bulk writing with derivatives, one particle to several clusters, the clusters without an id,
 * j particles written between the halves, and what reads back. */
static void other_forms(Board *b, int id)
{
    double k18[3] = {1, 2, 3}, (*xv)[6] = calloc(N, sizeof *xv);
    int address = 3, index = 3, clusters = 2, target = id + 2, scale[3], n;
    const double (*x)[3] = (const double (*)[3])b->x, (*v)[3] = (const double (*)[3])b->v;
    note("bulk", g6x_set_j_particles(id + 1, N, NULL, NULL, NULL, NULL, b->mass, v, v, v, v, x));
    note("scale", g6x_get_scale(id + 1, N, scale));
    note("first", board_first(b, id + 1, N, 40, 0));
    note("between", g6_set_j_particle(id + 1, 9000, 1, 0, 0, 1, k18, k18, k18, k18, k18));
    note_rows("last", b, 40, board_last(b, id + 1, N, 40));
    note("predicted", g6_get_predicted_j_particles(id + 1, NI, b->acc, b->jerk));
    note("read back", get_j_part_data(0, N, xv[0]));
    note("several", g6_set_j_particle_multisend_mxfast_(&target, &clusters, &address, &index,
                                                        &b->mass[0], b->x[0]));
    note("open all", g6_open_all());
    note("all", g6_set_j_particle_all(2000, 1, 0, 0, 1, k18, k18, k18, k18, k18));
    note("first all",
         g6calc_firsthalf_all(2001, 2, b->index, b->x, b->v, b->old, b->old, b->phi, 0, b->h2));
    note("last all", g6calc_lasthalf2_all(2001, 2, b->index, b->x, b->v, 0, b->h2, b->acc, b->jerk,
                                          b->pot, b->nn));
    note("list all", g6_get_neighbour_list_all(1, N, &n, b->list));
    note("close all", g6_close_all());
    free(xv);
}

/* A call that GRAPE-5's later ones need: made again if memory was short. */
#define NEEDED(name, ...)                                                                          \
    do {                                                                                           \
        const int code = g5_##name##MC(__VA_ARGS__);                                               \
        note(#name, code);                                                                         \
        if (code != 0) note(#name " again", g5_##name##MC(__VA_ARGS__));                           \
    } while (0)

static void grape5_forces(Board *b, int cluster, int ni)
{
    clear(b);
    note("run", g5_runMC(cluster));
    note_rows("get_force", b, ni, g5_get_forceMC(cluster, ni, b->acc, b->pot));
}

static void grape5(Board *b, int cluster)
{
    double eps[NI];
    for (int i = 0; i < NI; i++) eps[i] = 0.01;
    memset(b->jerk, 0xff, sizeof b->jerk); /* which GRAPE-5 has not */
    NEEDED(open, cluster);
    NEEDED(set_xmj, cluster, 0, N - N / 2, b->x, b->mass);
    NEEDED(set_xj, cluster, N - N / 2, N / 2, b->x + N - N / 2);
    NEEDED(set_mj, cluster, N - N / 2, N / 2, b->mass);
    NEEDED(set_n, cluster, N);
    NEEDED(set_eps, cluster, NI, eps);
    NEEDED(set_xi, cluster, NI, b->x);
    grape5_forces(b, cluster, NI);
    grape5_forces(b, cluster, NI - 50);
}

/* An integration in which a pair becomes a subsystem, and is seen by others. */
static void subsystems(int id)
{
    enum { COUNT = 12, STATE = 200 };
    static double row[9][COUNT][3], one[4][COUNT], state[STATE];
    static int address[COUNT], nearest[COUNT];
    struct g6x_hermite h = {.n = COUNT, .subsystems = 1};
    struct g6x_evolution e = {.t_end = 0x1p-4, .passes = 1};
    double zero[3] = {0};
    memset(row, 0, sizeof row);
    h.mass = one[0], h.t = one[1], h.dt = one[2], h.pot = one[3];
    h.x = row[0], h.v = row[1], h.a = row[2], h.j = row[3], h.xi = row[4], h.vi = row[5];
    h.acc = row[6], h.jerk = row[7], h.address = address, h.nearest = nearest;
    h.eta = 0.01, h.dtmin = 0x1p-40, h.dtmax = 0x1p-6;
    note("mode", g6x_set_int(id, G6X_PRECISION, G6X_DOUBLE));
    for (int p = 0; p < COUNT; p++) {
        one[0][p] = 1.0, one[1][p] = 0.0, one[2][p] = 0x1p-10;
        for (int k = 0; k < 3; k++) h.x[p][k] = p * 3 % (5 + k);
        if (p < 2) { /* the first two are a pair */
            h.x[p][0] = p * 0.01, h.x[p][1] = h.x[p][2] = 0.0;
            h.v[p][1] = p ? 7.0 : -7.0, h.a[p][0] = p ? -1e4 : 1e4;
        }
        note("pair", g6_set_j_particle(id, p, p, 0, 0, 1.0, zero, zero, zero, h.v[p], h.x[p]));
    }
    note("evolve", g6x_hermite_evolve(id, &h, &e));
    note("unfold", g6x_hermite_unfold(id, &h, e.time, h.xi, h.vi, h.acc, row[8]));
    const int count = g6x_subsystems_get(id, &h, STATE, state);
    wrong += planning && count <= 0;
    note("put", count > 0 ? g6x_subsystems_put(id, &h, count, state) : count);
    note("pull", g6x_hermite_pull(id, &h, 1, e.time));
}

/* The life of a tree, of particles that one box resolves, or not. */
static void tree(Board *b, int parts)
{
    enum { K = 5, SOME = 250, FIRST = NI - SOME };
    static double at[NI][3], last[NI], h2[NI], r2[NI][K], bound;
    static int count[NI], found[NI][K], self[NI];
    static long long start[NI + 1];
    const double (*x)[3] = (const double (*)[3])at, (*v)[3] = (const double (*)[3])b->v;
    memcpy(at, b->x, sizeof at);
    for (int i = 0; i < NI; i++) {
        if (parts && i % 3 == 0) at[i][0] += 1e12;                           /* far apart, */
        if (parts && i > NI * 8 / 9) at[i][0] = at[i][1] = at[i][2] = -1e18; /* many at one place */
        last[i] = 1.0, h2[i] = i % 200 ? 1e-3 : INFINITY;
        start[i + 1] = (i + 1LL) * K, self[i] = i % 3 ? FIRST + i : -1;
    }
    const int made = g6x_tree_open(NI, x, v, b->mass);
    note("tree", made > 0 ? 0 : made);
    if (made <= 0) return;
    note("threads", g6x_tree_set_int(made, G6X_THREADS, 2));
    for (int method = 0; method < 2; method++) {
        clear(b);
        note_rows("own", b, NI,
                  g6x_tree_forces(made, NI, NULL, NULL, NULL, 1e-6, method + G6X_TREE_MOMENTUM, 4,
                                  0.7, last, 1e-4, b->acc, b->jerk, b->pot));
        clear(b);
        note_rows("targets", b, SOME,
                  g6x_tree_forces(made, SOME, x + FIRST, NULL, self, 0.0, method, 5, 0.5, NULL, 0.0,
                                  b->acc, b->jerk, b->pot));
    }
    note("bound", g6x_tree_bound(made, 1e-6, 0, 5, 1e-3, NULL, &bound));
    at[FIRST + 9][1] = NAN; /* the tree has its own copy */
    const int code = g6x_tree_forces(made, SOME, x + FIRST, v, NULL, 0.0, 0, 5, 0.5, NULL, 0.0,
                                     b->acc, b->jerk, b->pot);
    note("nan", code == G6X_E_I_NAN ? 0 : code);
    wrong += code == 0 || !isnan(b->pot[9]);
    wrong += g6x_tree_within(made, NI, NULL, NULL, h2, start, count, found[0]) < 0;
    wrong += g6x_tree_nearest(made, NI, NULL, NULL, K, found[0], r2[0]) != 0;
    note("close", g6x_tree_close(made));
}

/* Everything that allocates: opening, growth, derivatives, other layouts, blocks, lists. */
static void scenario(Board *b, int id)
{
    double snap[3] = {1, 2, 3}, zero[3] = {0, 0, 0};
    long long words[48][G6X_PARTIAL_WORDS];
    int n, flag[60];
    const int opened = g6_open(id);
    note("open", opened);
    if (opened != 0) note("open again", g6_open(id));
    note("set_int", g6x_set_int(id, G6X_THREADS, 3));
    for (int j = 0; j < N; j++)
        note("set_j",
             g6_set_j_particle(id, j, j, 0, 0, b->mass[j], zero, zero, zero, b->v[j], b->x[j]));
    note("snap", g6_set_j_particle(id, 9, 9, 0, 0, 1, snap, zero, zero, zero, b->x[9]));
    for (int mode = 0; mode < 4; mode++) {
        double a2[3] = {1, 0, 0}; /* a row that mode auto sums in double */
        note("set_j", g6_set_j_particle(id, 1, 1, 0, 0, 1, zero, zero, a2, b->v[1], b->x[1]));
        note("set_int", g6x_set_int(id, G6X_PRECISION, mode));
        force(b, id, mode == 0 ? 48 : NI);
        b->h2[0] = INFINITY;
        force(b, id, 48);
        note("list", g6_get_neighbour_list(id, 0, N, &n, b->list));
        b->h2[0] = 0;
        walks(b, id);
        note("partial", g6x_get_partial(id, 48, words[0]));
    }
    note("far", g6_set_j_particle_mxonly(id, 300000, 1, 0.0, snap));
    note("set_i", g6_set_i_particle(id, 59, 3, b->x[3], b->v[3], 0.0, 0.0));
    note("nip", g6_set_nip(id, 60) | g6_set_njp(id, N));
    note("get_force", g6_get_force_etc(id, b->acc, b->jerk, b->pot, b->nn, flag));
    note("first use", g6_set_ti(id + 1, 0.0));
    other_forms(b, id);
    grape5(b, id);
    subsystems(id);
    tree(b, 0);
    tree(b, 1);
}

/* The 0-th makes the plan. */
static int child(Board *b, long n)
{
    planning = n == 0;
    memory_fail_at(n);
    scenario(b, 5);
    memory_fail_at(0);
    planning = 0;
    wrong += g6_open(5) != 0 || g6x_set_int(5, G6X_PRECISION, 0) != 0;
    wrong += board_fill(b, 5) != 0 || board_force(b, 5, 1e-4) != 0;
    if (!n) plan->expected = board_hash(b);
    if (board_hash(b) != plan->expected) {
        fprintf(stderr, "other forces after allocation %ld failed\n", n);
        wrong++;
    }
    wrong += g6_close(5) != 0;
    free(b);
    return wrong ? 9 : reported ? REPORTED : SILENT;
}

int main(void)
{
    int status = 0, failed = 0, told = 0;
    const int access = PROT_READ | PROT_WRITE, of_all = MAP_SHARED | MAP_ANONYMOUS;
    plan = mmap(NULL, sizeof *plan, access, of_all, -1, 0);
    for (long n = 0; n <= plan->count; n++) {
        if (n && !plan->fails[n]) continue;
        Board *b = board_new();
        const pid_t pid = fork();
        if (pid == 0) return child(b, n);
        free(b);
        if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return 9;
        if (WEXITSTATUS(status) != SILENT && WEXITSTATUS(status) != REPORTED) {
            fprintf(stderr, "allocation %ld: exit code %d\n", n, WEXITSTATUS(status));
            return 9;
        }
        failed += n > 0;
        told += WEXITSTATUS(status) == REPORTED;
    }
    printf("%d %d\n", failed, told);
    return 0;
}
