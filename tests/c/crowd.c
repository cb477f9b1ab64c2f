/* Eight threads on four sessions, opening, writing, summing and closing at once; run under a
 * thread sanitizer. Two threads share a session; codes may then be those of a call out of
 * order, but a session's results by a thread that has it alone are the same bits each time. */
#include "board.h"

#include <pthread.h>

enum { THREADS = 8, SESSIONS = 4, ROUNDS = 6 };

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

/* Bits of what walks gave, by offsets (tag 0) or by pointers. */
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

int main(void)
{
    pthread_t thread[THREADS];
    Board *b = board_new();
    int total = g6_open(1) != 0;
    for (int mode = 0; mode < 3; mode++) {
        expected[mode] = sum(b, 1, mode, &total);
        expected_walks[mode] = walks(b, 1, 0, &total);
    }
    pthread_barrier_init(&gate, NULL, THREADS);
    for (int s = 0; s < SESSIONS; s++) pthread_mutex_init(&alone[s], NULL);
    for (intptr_t k = 0; k < THREADS; k++) pthread_create(&thread[k], NULL, work, (void *)k);
    for (int k = 0; k < THREADS; k++) {
        pthread_join(thread[k], NULL);
        total += bad[k];
    }
    free(b);
    return total != 0;
}
