/* fuzz_block.c - random calls of the block steps: codes, what is written, the predictor. */
#include "fuzz_calls.h"

enum { N = 6 };

struct bodies {
    double t[N], dt[N];
    vector x[N], v[N], a[N], j[N];
};

static struct bodies now, before;
static vector xi[N], vi[N], acc[N], jerk[N];
static double noise[N];
static int address[N];

static void any_vectors(vector *to)
{
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++) to[i][k] = any_coordinate();
}

static void make(void)
{
    memset(&now, 0, sizeof now);
    any_vectors(now.x), any_vectors(now.v), any_vectors(now.a), any_vectors(now.j);
    any_vectors(acc), any_vectors(jerk);
    for (int i = 0; i < N; i++) {
        now.t[i] = below(8) * 0.125;
        now.dt[i] = ldexp(1.0, -below(9));
        noise[i] = chance(3) ? any_square() : 1e-9;
        address[i] = i;
        for (int k = 0; k < 3; k++) xi[i][k] = vi[i][k] = BEFORE;
    }
    for (int i = N - 1; i > 0; i--) {
        const int other = below(i + 1), swap = address[i];
        address[i] = address[other], address[other] = swap;
    }
    before = now;
}

/* Of a body in a call that moved, or only predicted, the first ni. */
static void check_body(int i, int ni, double time, int moves, int predicts)
{
    const int p = address[i], same = !memcmp(now.x[p], before.x[p], sizeof now.x[p]) &&
                                     now.t[p] == before.t[p] && now.dt[p] == before.dt[p];
    if (i >= ni) {
        REQUIRE(same && xi[i][0] == BEFORE && vi[i][2] == BEFORE);
        return;
    }
    if (moves && time != before.t[p]) {
        REQUIRE(now.t[p] == time && !memcmp(now.x[p], xi[i], sizeof xi[i]));
        REQUIRE(!memcmp(now.a[p], acc[i], sizeof acc[i]) && now.dt[p] <= 2.0 * before.dt[p]);
    } else {
        REQUIRE(same);
    }
    for (int k = 0; predicts && !wild && k < 3; k++) {
        const long double h = (long double)time - before.t[p], x = before.x[p][k],
                          v = before.v[p][k], a0 = before.a[p][k], j = before.j[p][k];
        const long double place = x + h * (v + h * (a0 / 2 + h * j / 6));
        REQUIRE(fabsl(place - xi[i][k]) <= 1e-13L);
        REQUIRE(fabsl(v + h * (a0 + h * j / 2) - vi[i][k]) <= 1e-13L);
    }
}

void try_block(void)
{
    static const double BAD[] = {0.0, -1.0, NAN, INFINITY};
    int ni = below(N + 1), code, *where = address;
    double time = chance(5) ? 0.5 : any_time(), eta = 0.02, least = 0x1p-20, most = 0.25;
    const int correct = chance(2), moves = correct && !chance(3);
    double *const t = chance(20) ? NULL : now.t;
    vector *const to = chance(20) ? NULL : xi, *const force = chance(20) ? NULL : acc;
    codes allowed = 0;
    make();
    if (chance(15)) ni = -1 - below(3);
    if (chance(15)) time = BAD[2 + below(2)];
    if (chance(15)) address[below(N)] = -1 - below(9);
    if (chance(15)) where = NULL;
    if (chance(15)) eta = BAD[below(3)];
    if (chance(15)) least = BAD[below(4)];
    say(" ni %d time %g", ni, time);
    if (ni < 0 || !isfinite(time)) {
        allowed = CODE(G6X_E_ARGUMENT);
    } else {
        if (ni && (!where || !t || !to || (correct && !force))) allowed |= CODE(G6X_E_NULL);
        for (int i = 0; i < ni; i++)
            if (address[i] < 0) allowed |= CODE(G6X_E_ADDRESS);
        if (moves && !(eta > 0 && least > 0 && least <= most)) allowed |= CODE(G6X_E_ARGUMENT);
    }
    if (correct)
        code = (calling = "g6x_hermite_correct",
                g6x_hermite_correct(ni, where, time, eta, least, most, force, jerk,
                                    chance(2) ? noise : NULL, t, moves ? now.dt : NULL, now.x,
                                    now.v, now.a, now.j, to, vi));
    else
        code = (calling = "g6x_hermite_predict",
                g6x_hermite_predict(ni, where, time, t, now.x, now.v, now.a, now.j, to, vi));
    REQUIRE(code <= (moves && ni > 0 ? ni : 0));
    if (!allowed) allowed = CODE(0) | CODE(wild && correct && ni ? G6X_E_RANGE : 0);
    model_returned(NULL, allowed, code > 0 ? 0 : code);
    if (code == G6X_E_RANGE) { /* each has moved, or stays where it was */
        for (int i = 0; i < N; i++)
            if (address[i] >= 0) check_body(i, ni, time, moves && now.t[address[i]] == time, 0);
        return;
    }
    if (code < 0) {
        REQUIRE(!memcmp(&now, &before, sizeof now) && xi[0][0] == BEFORE && vi[N - 1][2] == BEFORE);
        return;
    }
    for (int i = 0; i < N; i++)
        if (address[i] >= 0) check_body(i, ni, time, moves, !correct);
}
