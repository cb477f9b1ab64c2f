/* One thread makes the calls whose paths depend on sizes, in every mode and instruction set; run
 * under sanitizers and valgrind. Silent, and 0, if every code was the expected one. The others are
 * those of fuzz.c. */
#include "board.h"

static int surprises;
#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "line %d: %s\n", __LINE__, #what);                                     \
            surprises++;                                                                           \
        }                                                                                          \
    } while (0)

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

static void others(Board *b, int id)
{
    double snap[3] = {1, 1, 1};
    long long words[NI][G6X_PARTIAL_WORDS];
    int n, flag[NI];
    for (int a = N + 6; a < 40000; a = a * 3 / 2)
        CHECK(g6_set_j_particle_mxonly(id, a, a, 0.0, snap) == 0);
    CHECK(g6_set_j_particle(id, N + 5, 5, 0, 0, 1, snap, snap, snap, snap, snap) == 0);
    b->h2[5] = INFINITY;
    CHECK(board_force(b, id, 0.0) == 0);
    CHECK(g6_get_neighbour_list(id, 5, N, &n, b->list) == 0 && n == N - 1);
    b->h2[5] = 0.01;
    CHECK(g6_set_j_particle(id, 0, 0, 0, 0, 1, snap, snap, snap, snap, b->x[0]) == 0);
    CHECK(board_last(b, id, N, NI) == 0 && g6x_get_partial(id, NI, words[0]) == 0);
    CHECK(g6x_from_partial(NI, words[0], b->acc, b->jerk, b->pot) == 0 && b->pot[0] < 0);
    CHECK(g6x_set_double(id, G6X_VERIFY, 0.1) == 0 && board_force(b, id, 0.0) == 0);
    CHECK(g6x_set_double(id, G6X_VERIFY, 0.0) == 0 && g6x_set_int(id, G6X_JERK, 0) == 0);
    CHECK(board_force(b, id, 0.0) == 0 && isnan(b->jerk[0][0]));
    CHECK(g6x_set_int(id, G6X_JERK, 1) == 0 && g6_set_nip(id, NI) == 0 && g6_set_njp(id, N) == 0);
    CHECK(g6_set_i_particle(id, NI - 1, 3, b->x[3], b->v[3], 0.0, 0.0) == 0);
    CHECK(g6_get_force_etc(id, b->acc, b->jerk, b->pot, b->nn, flag) == 0 && flag[1] == 0);
}

static void walks(Board *b, int id)
{
    long long i[2] = {0, NI}, j[2] = {0, N};
    const double (*x)[3] = (const double (*)[3])b->x;
    int list[2] = {0, N};
    CHECK(board_walks(b, id) == 0 && isfinite(b->pot[NI - 1]));
    const uint64_t by_offsets = board_hash(b);
    CHECK(board_flight(b, id, -3) == 0 && board_hash(b) == by_offsets);
    CHECK(g6x_walks(id, 1, i, x, j, NULL, 0, x, b->mass, 0.0, b->acc, b->pot) == 0);
    j[1] = 2;
    CHECK(g6x_walks(id, 1, i, x, j, list, N, x, b->mass, 0.0, b->acc, b->pot) == G6X_E_ADDRESS);
    CHECK(isnan(b->acc[NI - 1][2]) && isnan(b->pot[0]));
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
            others(b, isa);
            walks(b, isa);
        }
        CHECK(g6x_last_error(isa, text, sizeof text) < 0 && text[0]);
        CHECK(g6_close(isa) == 0 && g6_close(isa) == 0);
    }
    g6_close(0);
    free(b);
    return surprises != 0;
}
