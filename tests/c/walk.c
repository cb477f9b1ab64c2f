/* One thread walks the whole API, valid and invalid calls alike, in every mode and instruction
 * set; run under sanitizers and valgrind. Silent, and 0, if every code was the expected one. */
#include "board.h"

static int surprises;
#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "line %d: %s\n", __LINE__, #what);                                     \
            surprises++;                                                                           \
        }                                                                                          \
    } while (0)

static double zero[3];

/* Force calls around the edges of vectors, tiles and blocks of 1024. */
static void sizes(Board *b, int id)
{
    const int nj[] = {0, 1, 2, 1023, 1024, 1025, 2048, N, N + 3000};
    const int ni[] = {0, 1, 15, 16, 17, 48, 65};
    float distance[NI];
    for (int k = 0; k < 9; k++) {
        for (int i = k % 3; i < 7; i += 3) {
            CHECK(board_first(b, id, nj[k], ni[i], 1e-4) == 0);
            if (i == 4) CHECK(board_last(b, id, nj[k], ni[i]) == 0);
            CHECK(g6calc_lasthalf2p(id, nj[k], ni[i], b->index, b->x, b->v, 0, b->h2, b->acc,
                                    b->jerk, b->pot, b->nn, distance) == 0);
            CHECK(!ni[i] || isfinite(b->pot[ni[i] - 1]));
        }
    }
}

static void lists(Board *b, int id)
{
    int length = -1, one = 0;
    b->h2[5] = INFINITY;
    CHECK(board_force(b, id, 0.0) == 0);
    CHECK(g6_read_neighbour_list(id) == 0);
    CHECK(g6_get_neighbour_list(id, 5, N, &length, b->list) == 0 && length == N - 1);
    CHECK(g6_get_neighbour_list(id, 5, 1, &length, &one) == 1 && length == N - 1);
    CHECK(g6_get_neighbour_list(id, 5, 0, &length, NULL) == 1);
    CHECK(g6_get_neighbour_list(id, NI, N, &length, b->list) == G6X_E_PIPE && length == 0);
    CHECK(g6_get_neighbour_list(id, -1, N, &length, b->list) == G6X_E_PIPE);
    CHECK(g6_get_neighbour_list(id, 0, 5, NULL, b->list) == G6X_E_NULL);
    b->h2[5] = 0.01;
}

static void partial_sums(Board *b, int id)
{
    const size_t bytes = NI * G6X_PARTIAL_WORDS * sizeof(long long);
    long long *one = malloc(bytes), *sum = calloc(1, bytes);
    int scale[3];
    CHECK(g6x_get_scale(id, N, scale) == 0);
    CHECK(g6x_get_partial(id, NI + 1, one) == G6X_E_MISMATCH);
    CHECK(g6x_get_partial(id, NI, NULL) == G6X_E_NULL);
    CHECK(g6x_get_partial(id, NI, one) == 0);
    CHECK(g6x_add_partial(NI, sum, one) < 0); /* words of no row */
    memcpy(sum, one, bytes);
    CHECK(g6x_add_partial(NI, sum, one) == 0);
    CHECK(g6x_from_partial(NI, sum, b->acc, b->jerk, b->pot) == 0 && b->pot[0] < 0);
    memset(sum, 0x7f, bytes);
    CHECK(g6x_from_partial(NI, sum, b->acc, b->jerk, b->pot) < 0 && isnan(b->pot[0]));
    CHECK(g6x_from_partial(-1, sum, b->acc, b->jerk, b->pot) == G6X_E_ARGUMENT);
    free(one);
    free(sum);
}

static void particles(Board *b, int id)
{
    double bad[3] = {0, INFINITY, 0}, xv[2][6], x[3][3], v[3][3], snap[3] = {1, 1, 1};
    CHECK(g6_set_j_particle(id, -1, 0, 0, 0, 1, zero, zero, zero, zero, zero) == G6X_E_ADDRESS);
    CHECK(g6_set_j_particle(id, 3, 0, 0, 0, 1, zero, zero, zero, zero, NULL) == G6X_E_NULL);
    CHECK(g6_set_j_particle(id, N + 5, 5, 0, 0, 1, snap, zero, zero, zero, bad) == G6X_E_J_NAN);
    CHECK(g6_set_j_particle(id, N + 5, 5, 0, 0, 1, snap, zero, zero, zero, snap) == 0);
    for (int a = N + 6; a < 40000; a = a * 3 / 2) { /* growth */
        CHECK(g6_set_j_particle_mxonly(id, a, a, 0.0, snap) == 0);
    }
    CHECK(g6_get_predicted_j_particles(id, 3, x, v) == 0);
    CHECK(g6_get_predicted_j_particles(id, 3, NULL, v) == G6X_E_NULL);
    CHECK(get_j_part_data(40000, 2, xv[0]) == 0 && get_j_part_data(1 << 30, 2, xv[0]) == 0);
    CHECK(g6x_set_j_particles(id, -1, NULL, NULL, NULL, NULL, b->mass, NULL, NULL, NULL, NULL,
                              (const double (*)[3])b->x) == G6X_E_ARGUMENT);
    CHECK(board_force(b, id, 0.0) == 0);
    CHECK(g6_set_j_particle(id, 0, 0, 0, 0, 1, zero, zero, zero, zero, b->x[0]) == 0);
    CHECK(board_last(b, id, N, NI) == 0);
}

static void options(Board *b, int id)
{
    char text[40], one[1];
    int value;
    double fraction;
    for (int key = 0; key < 16; key++) {
        CHECK(g6x_get_int(id, key, &value) <= 0 && g6x_set_int(id, key, -99) <= 0);
        if (key >= G6X_SCALE_LENGTH && key <= G6X_SCALE_VELOCITY) {
            CHECK(board_force(b, id, 0.0) == 0);
            CHECK(g6x_set_int(id, key, G6X_AUTO) == 0);
        }
    }
    CHECK(g6x_get_int(id, G6X_JERK, NULL) == G6X_E_NULL);
    CHECK(g6x_set_double(id, G6X_VERIFY, 2.0) == G6X_E_ARGUMENT);
    CHECK(g6x_set_double(id, G6X_VERIFY, 0.1) == 0 && board_force(b, id, 0.0) == 0);
    CHECK(g6x_get_double(id, G6X_VERIFY, &fraction) == 0 && fraction == 0.1);
    CHECK(g6x_set_double(id, G6X_VERIFY, 0.0) == 0);
    CHECK(g6x_set_int(id, G6X_JERK, 0) == 0 && board_force(b, id, 0.0) == 0);
    CHECK(isnan(b->jerk[0][0]) && g6x_set_int(id, G6X_JERK, 1) == 0);
    CHECK(g6x_set_int(id, G6X_NEIGHBOUR_SELF, 1) == 0 && board_force(b, id, 0.0) == 0);
    CHECK(g6x_set_int(id, G6X_NEIGHBOUR_SELF, 0) == 0 && g6x_set_int(id, G6X_SNAP, 0) == 0);
    CHECK(board_force(b, id, 0.0) == 0 && g6x_set_int(id, G6X_SNAP, 1) == 0);
    CHECK(g6x_backend(id, text, sizeof text) == 0 && g6x_backend(id, one, 1) == 0);
    CHECK(g6x_version(text, sizeof text) > 0 && g6x_version(NULL, 0) > 0);
}

/* Many walks: right ones, and lists that are none. */
static void walks(Board *b, int id)
{
    long long i[2] = {0, NI}, j[2] = {0, N};
    const double (*x)[3] = (const double (*)[3])b->x;
    int list[2] = {0, N};
    CHECK(board_walks(b, id) == 0 && isfinite(b->pot[NI - 1]));
    const uint64_t by_offsets = board_hash(b);
    CHECK(board_flight(b, id, -3) == 0 && board_hash(b) == by_offsets);
    CHECK(g6x_walks(id, 1, i, x, j, NULL, 0, x, b->mass, 0.0, b->acc, b->pot) == 0);
    CHECK(g6x_walks(id, 1, i, x, j, NULL, 0, x, b->mass, NAN, b->acc, b->pot) == G6X_E_ARGUMENT);
    CHECK(g6x_walks(id, 1, i, x, j, NULL, 0, x, NULL, 0.0, b->acc, b->pot) == G6X_E_NULL);
    CHECK(isnan(b->acc[NI - 1][2]) && isnan(b->pot[0]));
    j[1] = 2;
    CHECK(g6x_walks(id, 1, i, x, j, list, N, x, b->mass, 0.0, b->acc, b->pot) == G6X_E_ADDRESS);
    j[1] = -1;
    CHECK(g6x_walks(id, 1, i, x, j, list, N, x, b->mass, 0.0, b->acc, b->pot) == G6X_E_ARGUMENT);
    CHECK(g6x_walks_dispatch(id, 9, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0.0) == 0);
    CHECK(g6x_walks_retrieve(id, 8, 0, NULL, NULL, NULL) == G6X_E_NO_FIRSTHALF);
}

static void other_forms(Board *b, int id)
{
    int flag[2], n, address = 1, index = 9, clusters = 2;
    double mass = 1;
    CHECK(g6_open_all() == 0 && g6_set_ti_all(0.0) == 0);
    CHECK(g6_set_j_particle_all(0, 1, 0, 0, 1, zero, zero, zero, zero, b->x[0]) == 0);
    CHECK(g6_set_j_particle_mxonly_all(1, 2, 1, b->x[1]) == 0);
    CHECK(g6calc_firsthalf0_all(2, 2, b->index, b->x, b->v, b->old, b->old, b->phi, b->h2, b->h2,
                                0) == 0);
    CHECK(g6calc_lasthalf0_all(2, 2, b->index, b->x, b->v, b->h2, b->h2, b->acc, b->jerk, b->pot,
                               0) == 0);
    CHECK(g6_get_neighbour_list_all(0, N, &n, b->list) == 0 && g6_close_all() == 0);
    CHECK(g6_set_nip(id, 2) == 0 && g6_set_njp(id, N) == 0);
    CHECK(g6_set_i_particle(id, 700, 3, b->x[3], b->v[3], 0.0, 0.0) == 0);
    CHECK(g6_set_i_particle(id, -1, 3, b->x[3], b->v[3], 0.0, 0.0) == G6X_E_ADDRESS);
    CHECK(g6_get_force_etc(id, b->acc, b->jerk, b->pot, b->nn, flag) == 0 && flag[1] == 0);
    CHECK(g6_set_j_particle_multisend_mxfast_(&id, &clusters, &address, &index, &mass, zero) == 0);
    CHECK(g6_open_special(1, NULL) == G6X_E_NULL && g6_open_special2(0, NULL, 5) == 0);
    CHECK(g6_close(id + 1) == 0 && g6_close(12345) == 0);
}

/* usage: walk [threads of half of the calls [the only instruction set]] */
int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 4, only = argc > 2 ? atoi(argv[2]) : 0;
    Board *b = board_new();
    char text[300];
    CHECK(g6_set_ti(0, 0.0) == G6X_E_NOT_OPEN && g6_close(3) == 0);
    for (int isa = G6X_ISA_BASE; isa <= G6X_ISA_NEON; isa++) {
        CHECK(g6_open(isa) == 0 && g6_open(-isa) == 0);
        if ((only && isa != only) || g6x_set_int(isa, G6X_ISA, isa) != 0) continue;
        CHECK(board_everything(b, isa, 1) == 0);
        CHECK(board_fill(b, isa) == 0);
        for (int mode = 0; mode < 3; mode++) {
            CHECK(g6x_set_int(isa, G6X_PRECISION, mode) == 0);
            CHECK(g6x_set_int(isa, G6X_THREADS, mode != isa % 3 ? threads : 1) == 0);
            CHECK(board_last(b, isa, N, NI) <= 0);
            sizes(b, isa);
            lists(b, isa);
            partial_sums(b, isa);
            particles(b, isa);
            options(b, isa);
            walks(b, isa);
            other_forms(b, isa);
        }
        CHECK(g6x_last_error(isa, text, sizeof text) < 0 && text[0]);
        CHECK(g6_close(isa) == 0 && g6_close(isa) == 0);
    }
    g6_close(0);
    free(b);
    return surprises != 0;
}
