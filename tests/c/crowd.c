/* Eight threads on four sessions, then on one tree and on their own, opening, writing, summing and
 * closing at once; run under a thread sanitizer. Two threads share a session; codes may then be
 * those of a call out of order, but a session's results by a thread that has it alone are the same
 * bits each time. So are those of who has a tree, until somebody has closed it. */
#include "board.h"

#include <pthread.h>

enum { THREADS = 8, SESSIONS = 4, ROUNDS = 6, BODIES = 300, K = 3 };

static pthread_barrier_t gate;
static pthread_mutex_t alone[SESSIONS];
static uint64_t expected[3], expected_walks[3];
static int bad[THREADS];

static uint64_t sum(Board *b, int id, int mode, int *wrong)
{
    *wrong += g6x_set_int(id, G6X_PRECISION, mode) != 0;
    *wrong += board_fill(b, id) != 0 || board_force(b, id, 1e-4) != 0;
    return board_hash(b);
}

static uint64_t walks(Board *b, int id, int tag, int *wrong)
{
    memset(b->jerk, 0, sizeof b->jerk);
    *wrong += (tag ? board_flight(b, id, tag) : board_walks(b, id)) != 0;
    return board_hash(b);
}

static void unordered(Board *b, int id, int tag, int *wrong)
{
    char text[100];
    int n, code = g6_set_j_particle_mxonly(id, N + 7, 5, 0.0, b->x[5]);
    *wrong += code != 0;
    (void)board_force(b, id, 1e-4);
    code = g6_get_neighbour_list(id, 3, N, &n, b->list);
    *wrong += code != 0 && code != G6X_E_NO_FIRSTHALF && code != G6X_E_PIPE;
    *wrong += walks(b, id, tag, wrong) != expected_walks[G6X_GRAPE];
    *wrong += g6x_backend(id, text, sizeof text) != 0;
    (void)g6x_last_error(id, text, sizeof text);
}

/* An id of the thread's own, opened by its first use; and one that all threads open, misuse, read
 * errors of and close: its calls come before or after another's close. */
static void first_uses(Board *b, int own, int *wrong)
{
    const int shared = 99;
    char text[100];
    double jerk[3] = {0, 0, 0};
    *wrong += g6_set_j_particle_mxonly(own, 0, 1, 1.0, b->x[0]) != 0;
    *wrong += g6_set_j_particle_mxonly(own, -1, 1, 1.0, b->x[0]) != G6X_E_ADDRESS;
    *wrong += g6x_last_error(own, text, sizeof text) != G6X_E_ADDRESS;
    *wrong += g6_set_ti(own, NAN) != G6X_E_ARGUMENT || g6x_clear_error(own) != 0;
    *wrong += g6_set_nip(own, 3) != 0 || g6_close(own) != 0;
    *wrong += g6_open(shared) != 0;
    (void)g6_set_j_particle(shared, 5, 5, 0, 0, NAN, jerk, jerk, jerk, jerk, jerk);
    (void)g6x_set_int(shared, G6X_JERK, 0);
    (void)g6_get_force(shared, NULL, NULL, NULL, NULL);
    (void)g6x_last_error(shared, text, sizeof text);
    (void)g6x_last_warning(shared, text, sizeof text);
    (void)g6x_clear_error(shared);
    *wrong += g6_close(shared) != 0;
    *wrong += g6x_set_int(own, G6X_LOG, 0) != 0 && g6x_last_error(own, text, sizeof text) == 0;
}

static void *work(void *argument)
{
    const int k = (int)(intptr_t)argument, id = 10 + k % SESSIONS, own = 100 + k;
    Board *b = board_new();
    pthread_barrier_wait(&gate);
    bad[k] += g6_open(id) != 0;
    for (int round = 0; round < ROUNDS; round++) {
        const int mode = (k + round) % 3;
        bad[k] += g6_open(own) != 0 || g6x_set_int(own, G6X_THREADS, 1 + k % 3) != 0;
        bad[k] += sum(b, own, mode, &bad[k]) != expected[mode];
        bad[k] += walks(b, own, k % 2, &bad[k]) != expected_walks[mode];
        bad[k] += g6_close(own) != 0;
        unordered(b, id, 1 + k, &bad[k]);
        first_uses(b, 1000 + 100 * k + round, &bad[k]);
        pthread_mutex_lock(&alone[k % SESSIONS]);
        (void)g6x_set_int(id, G6X_THREADS, 2);
        pthread_mutex_unlock(&alone[k % SESSIONS]);
    }
    free(b);
    return NULL;
}

static double (*x)[3], (*v)[3], *mass, h2[BODIES];
static long long start[BODIES + 1];
static struct results {
    double acc[BODIES][3], jerk[BODIES][3], pot[BODIES], r2[BODIES][K];
    int number[BODIES][K], count[BODIES], found[BODIES][K];
} right;
static int shared, passing; /* passing: closed while it is used */

static int opened(void)
{
    return g6x_tree_open(BODIES, (const double (*)[3])x, (const double (*)[3])v, mass);
}

/* 0, or the code of a call that found no tree. */
static int use(int tree, struct results *r)
{
    const int code = g6x_tree_forces(tree, BODIES, NULL, NULL, NULL, 1e-4, G6X_TREE_FMM, 4, 0.6,
                                     NULL, 0.0, r->acc, r->jerk, r->pot);
    const int within = g6x_tree_within(tree, BODIES, NULL, NULL, h2, start, r->count, r->found[0]);
    const int nearest = g6x_tree_nearest(tree, BODIES, NULL, NULL, K, r->number[0], r->r2[0]);
    return code ? code : within < 0 ? within : nearest;
}

static int is_wrong(int tree, struct results *r)
{
    memset(r, 0, sizeof *r);
    return use(tree, r) != 0 || memcmp(r, &right, sizeof *r) != 0;
}

static void *work_on_trees(void *argument)
{
    const int k = (int)(intptr_t)argument;
    struct results *r = malloc(sizeof *r);
    char text[100];
    pthread_barrier_wait(&gate);
    for (int round = 0; round < ROUNDS; round++) {
        const int own = opened();
        bad[k] += own <= 0 || g6x_tree_set_int(own, G6X_THREADS, 1 + k % 3) != 0;
        bad[k] += g6x_tree_set_int(shared, G6X_THREADS, 1 + (k + round) % 3) != 0;
        bad[k] += g6x_tree_set_int(shared, G6X_ISA, G6X_ISA_BASE) != 0;
        bad[k] += is_wrong(shared, r) + is_wrong(own, r);
        bad[k] += g6x_tree_close(own) != 0 || use(own, r) != G6X_E_NOT_OPEN;
        (void)g6x_last_error(-7, text, sizeof text);
        (void)g6x_last_warning(-7, text, sizeof text);
        if (round == k) bad[k] += g6x_tree_close(passing) != 0;
        const int code = use(passing, r);
        bad[k] += code != 0 && code != G6X_E_NOT_OPEN;
    }
    free(r);
    return NULL;
}

static void in_threads(void *(*of_each)(void *))
{
    pthread_t thread[THREADS];
    for (intptr_t k = 0; k < THREADS; k++) pthread_create(&thread[k], NULL, of_each, (void *)k);
    for (int k = 0; k < THREADS; k++) pthread_join(thread[k], NULL);
}

int main(void)
{
    Board *b = board_new();
    int total = g6_open(1) != 0;
    for (int mode = 0; mode < 3; mode++) {
        expected[mode] = sum(b, 1, mode, &total);
        expected_walks[mode] = walks(b, 1, 0, &total);
    }
    pthread_barrier_init(&gate, NULL, THREADS);
    for (int s = 0; s < SESSIONS; s++) pthread_mutex_init(&alone[s], NULL);
    in_threads(work);
    for (int id = 1; id < 10 + SESSIONS; id++) total += g6_close(id) != 0;
    x = b->x, v = b->v, mass = b->mass;
    for (int i = 0; i < BODIES; i++) h2[i] = 0.01, start[i + 1] = K * (i + 1LL);
    shared = opened(), passing = opened();
    total += g6x_tree_set_int(shared, G6X_ISA, G6X_ISA_BASE);
    total += g6x_set_int(-7, G6X_ISA, G6X_ISA_BASE); /* of trees to come */
    total += use(shared, &right);
    in_threads(work_on_trees);
    for (int k = 0; k < THREADS; k++) total += bad[k];
    free(b);
    return total || g6x_tree_close(shared) != 0;
}
