/* fuzz_tree.c - random calls of trees: codes, forces within what single precision gives, searches
 * exactly, NaN where nothing else is right. */
#include "fuzz_calls.h"

enum { TREES = 4, MOST = 40, NEAREST = 6, CAPACITY = 5 };

/* A tree as it was opened; handle 0: none. */
static struct planted {
    int handle, n, moving;
    double mass[MOST];
    vector x[MOST], v[MOST];
} tree[TREES];
static int closed; /* a number that was a tree's once */

/* ---- what is made up ------------------------------------------------------------------------ */

/* Denormals count as zero. */
static double seen(double a) { return fabs(a) < 0x1p-1022 ? 0.0 : a; }

static int any_number(void) { return below(chance(4) ? MOST : 8); }

static vector *any_places(int slot, int n, const struct planted *near)
{
    vector *to = tail_of(slot, (size_t)(n > 0 ? n : 0) * sizeof *to);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++) to[i][k] = any_coordinate();
        if (near && near->n && chance(4)) memcpy(to[i], near->x[below(near->n)], sizeof *to);
        if (i && chance(8)) memcpy(to[i], to[below(i)], sizeof *to);
    }
    return to;
}

static struct planted *any_tree(int *handle)
{
    static struct planted none;
    struct planted *t = &tree[below(TREES)];
    if (!t->handle || chance(20)) t = &none;
    *handle = t->handle ? t->handle : chance(2) ? closed : -below(3);
    return t;
}

/* Targets of a call on a tree: x NULL where they are the tree's own particles. */
struct aim {
    int handle, ni, *self;
    vector *x, *v;
    codes fault;
};

static struct planted *any_aim(struct aim *aim)
{
    struct planted *t = any_tree(&aim->handle);
    const int own = chance(3);
    aim->fault = 0;
    aim->ni = own ? t->n : any_number();
    if (chance(20)) aim->ni += chance(2) ? 1 : -2 - aim->ni;
    aim->x = own ? NULL : any_places(14, aim->ni, t);
    aim->v = chance(2) ? NULL : any_places(15, aim->ni, NULL);
    aim->self = chance(2) ? NULL : tail_of(16, (size_t)(aim->ni > 0 ? aim->ni : 0) * sizeof(int));
    for (int i = 0; aim->self && i < aim->ni; i++) {
        aim->self[i] = below(t->n + 1) - 1;
        if (chance(300)) aim->self[i] = any_index();
        if (!own && (aim->self[i] < -1 || aim->self[i] >= t->n)) aim->fault = CODE(G6X_E_ADDRESS);
    }
    if (aim->ni < 0 || (own && aim->ni != t->n)) aim->fault |= CODE(G6X_E_ARGUMENT);
    if (!t->handle) aim->fault |= CODE(G6X_E_NOT_OPEN);
    say(" tree %d ni %d%s%s", aim->handle, aim->ni, own ? " own" : "", aim->self ? " self" : "");
    return t;
}

static const double *place_of(const struct planted *t, const struct aim *aim, int i)
{
    return aim->x ? aim->x[i] : t->x[i];
}

static int self_of(const struct aim *aim, int i)
{
    return !aim->x ? i : aim->self ? aim->self[i] : -1;
}

static void returned(codes allowed, int code) { model_returned(NULL, allowed, code); }

/* ---- opening, closing, options -------------------------------------------------------------- */

static void close_tree(struct planted *t)
{
    calling = "g6x_tree_close";
    say(" %s %d", calling, t->handle);
    REQUIRE(g6x_tree_close(t->handle) == 0);
    if (t->handle) closed = t->handle;
    t->handle = 0;
}

void close_trees(void)
{
    for (int k = 0; k < TREES; k++) close_tree(&tree[k]);
}

static void try_plant(void)
{
    struct planted *t = &tree[below(TREES)];
    const int n = chance(15) ? -1 - below(3) : any_number();
    const size_t rows = (size_t)(n > 0 ? n : 0);
    double *mass = tail_of(17, rows * sizeof *mass);
    vector *x = any_places(14, n, NULL), *v = chance(2) ? NULL : any_places(15, n, NULL);
    codes allowed = n < 0 ? CODE(G6X_E_ARGUMENT) : 0;
    for (int i = 0; i < n; i++) {
        mass[i] = any_mass();
        if (is_bad(x[i]) || (v && is_bad(v[i])) || !isfinite(mass[i])) allowed = CODE(G6X_E_J_NAN);
    }
    if (chance(15)) x = NULL;
    if (chance(15)) mass = NULL;
    if (n && (!x || !mass)) allowed |= CODE(G6X_E_NULL);
    calling = "g6x_tree_open";
    say(" %s n %d%s", calling, n, v ? " moving" : "");
    const int code = g6x_tree_open(n, (const double (*)[3])x, (const double (*)[3])v, mass);
    returned(allowed ? allowed : CODE(0), code > 0 ? 0 : code);
    if (code <= 0) return;
    for (int k = 0; k < TREES; k++) REQUIRE(tree[k].handle != code);
    REQUIRE(code != closed);
    if (t->handle) close_tree(t);
    t->handle = code, t->n = n, t->moving = v != NULL;
    if (n) memcpy(t->mass, mass, rows * sizeof *mass), memcpy(t->x, x, rows * sizeof *x);
    if (n && v) memcpy(t->v, v, rows * sizeof *v);
    for (int i = 0; i < n; i++) x[i][0] = mass[i] = NAN; /* the tree has a copy */
}

static void try_tree_option(void)
{
    static const int KEYS[] = {G6X_THREADS, G6X_ISA, G6X_ISA, G6X_PRECISION, -1, 99};
    const int key = KEYS[below(6)], value = below(8) - 1;
    codes allowed = CODE(0);
    int handle;
    const struct planted *t = any_tree(&handle);
    if (key == G6X_ISA ? value < 0 || value >= NISA || !model.isa[value]
                       : key != G6X_THREADS || value < 0)
        allowed = CODE(G6X_E_ARGUMENT);
    if (!t->handle) allowed = CODE(G6X_E_NOT_OPEN);
    calling = "g6x_tree_set_int";
    say(" %s tree %d key %d value %d", calling, handle, key, value);
    returned(allowed, g6x_tree_set_int(handle, key, value));
}

/* ---- forces --------------------------------------------------------------------------------- */

/* The corners of the box are less than this apart, if all is tame: nothing is then as fast, or as
 * heavy. */
enum { WIDEST = 7 };

static int is_tame_call(const struct planted *t, const struct aim *aim, double eps2)
{
    return is_tame(eps2) && are_tame(t->n, t->mass) && are_tame(3 * t->n, t->x[0]) &&
           are_tame(3 * t->n, t->moving ? t->v[0] : NULL) &&
           are_tame(3 * aim->ni, aim->x ? aim->x[0] : NULL) &&
           are_tame(3 * aim->ni, aim->x && aim->v ? aim->v[0] : NULL);
}

/* What a target feels, and how wrong a sum in single precision of places of 48 bits may be. */
struct felt {
    long double acc[3], jerk[3], pot, error[3];
    int unresolved, zero_distances;
};

/* docs/accuracy.md: places are single relative to the group of targets, and pairs are summed so
 * down to a 64th of its radius; target and source, three coordinates, and the square of the
 * distance. */
static const long double NEAR = 2 * 1.74L * 64 * 0x1p-24L;

static void add_pair(const struct planted *t, int j, const double *x, const double *v, double eps2,
                     struct felt *f)
{
    const long double m = t->mass[j], place = 0x1p-48L * WIDEST;
    long double d[3], u[3] = {0}, s2 = eps2, rv = 0;
    for (int k = 0; k < 3; k++) {
        d[k] = (long double)t->x[j][k] - x[k];
        if (t->moving) u[k] = (long double)t->v[j][k] - (v ? v[k] : 0.0);
        s2 += d[k] * d[k];
        rv += d[k] * u[k];
    }
    f->zero_distances += s2 == 0;
    if (s2 == 0) return;
    const long double y = 1 / sqrtl(s2), y3 = y * y * y, error = fabsl(m) * (NEAR + 8 * place * y);
    if (place * y > 0.01L) f->unresolved = 1;
    for (int k = 0; k < 3; k++) {
        f->acc[k] += m * d[k] * y3;
        f->jerk[k] += m * (u[k] - 3 * rv * d[k] * y * y) * y3;
    }
    f->pot -= m * y;
    f->error[0] += error * y * y;
    f->error[1] += 8 * error * y3 * WIDEST;
    f->error[2] += error * y;
}

static struct felt felt_by(const struct planted *t, const struct aim *aim, int i, double eps2)
{
    const double *v = !t->moving ? NULL : !aim->x ? t->v[i] : aim->v ? aim->v[i] : NULL;
    struct felt f = {0};
    for (int j = 0; j < t->n; j++)
        if (j != self_of(aim, i)) add_pair(t, j, place_of(t, aim, i), v, eps2, &f);
    return f;
}

/* Forces, given their code; the code that there must be. `direct`: theta is next to nothing. */
static codes check_forces(const struct planted *t, const struct aim *aim, double eps2, int direct,
                          int jerk, int code)
{
    const int tame = is_tame_call(t, aim, eps2);
    const long double far = direct ? 1 : 3e4L; /* of theta <= 0.5: a third of the terms */
    int bad = 0, unfit = 0, unresolved = !tame, zero_distances = 0;
    for (int i = 0; i < aim->ni; i++) {
        const int nan = is_nan3(out.acc[i]) || isnan(out.pot[i]) || (jerk && is_nan3(out.jerk[i]));
        if (!jerk && !is_nan3(out.jerk[i])) broken("a jerk of target %d without velocities", i);
        if (is_bad(place_of(t, aim, i)) || (aim->x && aim->v && is_bad(aim->v[i]))) {
            REQUIRE(is_nan3(out.acc[i]) && isnan(out.pot[i]) && is_nan3(out.jerk[i]));
            bad = 1;
            continue;
        }
        unfit |= nan;
        if (!tame) continue;
        const struct felt f = felt_by(t, aim, i, eps2);
        unresolved |= f.unresolved;
        zero_distances += f.zero_distances;
        if (f.unresolved) continue;
        REQUIRE(!nan);
        check_numbers("acc", i, out.acc[i], f.acc, 3, far * f.error[0]);
        check_numbers("pot", i, &out.pot[i], &f.pot, 1, far * f.error[2]);
        if (jerk) check_numbers("jerk", i, out.jerk[i], f.jerk, 3, far * f.error[1]);
    }
    model.warnings_least += !unresolved && zero_distances && !code;
    model.warnings_most += (unresolved || zero_distances) && !code;
    bad &= tame || !unfit || code != G6X_E_RANGE; /* trees refuse an eps of 1e18 times their size */
    return CODE(bad ? G6X_E_I_NAN : unfit ? G6X_E_RANGE : 0);
}

static void try_forces(void)
{
    static const double THETAS[] = {1e-9, 1e-9, 0.3, 0.5, 0.0, -1.0, 1.6, NAN};
    struct aim aim;
    const struct planted *t = any_aim(&aim);
    const int method = chance(20) ? 2 : below(2), order = chance(20) ? 7 : 2 + below(5);
    const int momentum = chance(4) ? G6X_TREE_MOMENTUM : 0;
    const int usual = below(4), bounded = chance(6), rows = aim.ni > 0 ? aim.ni : 0;
    const double theta = THETAS[chance(15) ? below(8) : usual];
    const double eps2 = any_square();
    /* with theta 0 it is the wanted error, for which there are other tests */
    const double bound = !bounded ? 0.0 : theta == 0.0 || chance(8) ? -1.0 : 1e-4;
    double *last = chance(6) ? NULL : tail_of(18, (size_t)rows * sizeof *last);
    codes fault = aim.fault;
    for (int i = 0; last && i < rows; i++) last[i] = chance(100) ? -1.0 : below(9) * 0.25;
    make_outputs(aim.ni);
    vector *const acc = chance(30) ? NULL : out.acc, *const jerk = chance(4) ? NULL : out.jerk;
    double *const pot = chance(30) ? NULL : out.pot;
    if (method == 2 || (!method && order == 7) || !(theta > 0 && theta <= 1.5) ||
        !(seen(eps2) >= 0 && isfinite(eps2)) || bound < 0 || (momentum && aim.x))
        fault |= CODE(G6X_E_ARGUMENT);
    for (int i = 0; bound > 0 && last && i < rows; i++)
        if (last[i] < 0) fault |= CODE(G6X_E_ARGUMENT);
    if (rows && (!acc || !pot || (bound > 0 && !last))) fault |= CODE(G6X_E_NULL);
    calling = "g6x_tree_forces";
    say(" method %d order %d theta %g eps2 %g bound %g", method, order, theta, eps2, bound);
    const int code = g6x_tree_forces(aim.handle, aim.ni, (const double (*)[3])aim.x,
                                     (const double (*)[3])aim.v, aim.self, eps2, method + momentum,
                                     order, theta, last, bound, acc, jerk, pot);
    without(acc, jerk, pot, (size_t)rows);
    check_untouched(rows);
    if (fault) {
        returned(fault, code);
        check_nan(rows, 1);
        return;
    }
    returned(check_forces(t, &aim, seen(eps2), theta < 0.1, jerk && t->moving, code), code);
}

/* ---- searches ------------------------------------------------------------------------------- */

/* As g6lib.h has it: in double precision, numbers below the least normal one being zero. */
static double distance2(const double *a, const double *b)
{
    double square[3];
    for (int k = 0; k < 3; k++) {
        const double d = seen(seen(a[k]) - seen(b[k]));
        square[k] = seen(d * d);
    }
    return square[0] + square[1] + square[2];
}

static void try_within(void)
{
    struct aim aim;
    const struct planted *t = any_aim(&aim);
    const int rows = aim.ni > 0 ? aim.ni : 0, listed = chance(2);
    long long *start = listed ? tail_of(19, ((size_t)rows + 1) * sizeof *start) : NULL;
    double *h2 = tail_of(18, (size_t)rows * sizeof *h2);
    int *count = tail_of(20, (size_t)rows * sizeof *count), *found = NULL, bad = 0, cut = 0;
    codes fault = aim.fault;
    for (int i = 0; i < rows; i++) h2[i] = chance(9) ? INFINITY : any_square();
    if (listed) {
        start[0] = 0;
        for (int i = 0; i < rows; i++) start[i + 1] = start[i] + below(CAPACITY);
        found = tail_of(21, (size_t)start[rows] * sizeof *found);
        for (int k = 0; k < start[rows]; k++) found[k] = -7;
        if (rows && chance(15)) start[below(rows)] = 1 << 20; /* a list that runs backwards */
        for (int i = 0; i < rows; i++)
            if (start[i + 1] < start[i]) fault |= CODE(G6X_E_ARGUMENT);
        if (rows && chance(15)) found = NULL;
    }
    if (chance(20)) count = NULL;
    if (chance(20)) h2 = NULL;
    if (rows && (!count || !h2 || (listed && !found))) fault |= CODE(G6X_E_NULL);
    calling = "g6x_tree_within";
    say(" %s%s", calling, listed ? " lists" : "");
    const int code = g6x_tree_within(aim.handle, aim.ni, (const double (*)[3])aim.x, aim.self, h2,
                                     start, count, found);
    if (fault) {
        returned(fault, code);
        for (int i = 0; count && i < rows; i++) REQUIRE(count[i] == -1);
        return;
    }
    for (int i = 0; i < rows; i++) {
        const double *x = place_of(t, &aim, i);
        const int capacity = listed ? (int)(start[i + 1] - start[i]) : 0;
        int n = 0;
        if (is_bad(x)) {
            REQUIRE(count[i] == -1);
            bad = 1;
            continue;
        }
        for (int j = 0; j < t->n; j++) {
            if (j == self_of(&aim, i) || !(distance2(t->x[j], x) <= seen(h2[i]))) continue;
            if (n < capacity) REQUIRE(found[start[i] + n] == j);
            n++;
        }
        REQUIRE(count[i] == n);
        for (int k = n; k < capacity; k++) REQUIRE(found[start[i] + k] == -7);
        cut |= listed && n > capacity;
    }
    returned(bad ? CODE(G6X_E_I_NAN) : CODE(cut), code);
}

static void try_nearest(void)
{
    struct aim aim;
    const struct planted *t = any_aim(&aim);
    const int k = chance(15) ? -1 - below(3) : below(NEAREST + 1), rows = aim.ni > 0 ? aim.ni : 0;
    const size_t places = (size_t)rows * (size_t)(k > 0 ? k : 0);
    int *number = chance(20) ? NULL : tail_of(20, places * sizeof *number), bad = 0;
    double *r2 = chance(20) ? NULL : tail_of(21, places * sizeof *r2);
    codes fault = aim.fault | (k < 0 ? CODE(G6X_E_ARGUMENT) : 0);
    if (places && (!number || !r2)) fault |= CODE(G6X_E_NULL);
    calling = "g6x_tree_nearest";
    say(" %s k %d", calling, k);
    const int code =
        g6x_tree_nearest(aim.handle, aim.ni, (const double (*)[3])aim.x, aim.self, k, number, r2);
    if (fault) {
        returned(fault, code);
        for (size_t i = 0; i < places; i++)
            REQUIRE((!number || number[i] == -1) && (!r2 || isnan(r2[i])));
        return;
    }
    for (int i = 0; i < rows; i++) {
        const double *x = place_of(t, &aim, i);
        int taken[MOST] = {0};
        bad |= is_bad(x);
        for (int q = 0; q < k; q++) {
            int best = -1;
            for (int j = 0; j < t->n && !is_bad(x); j++)
                if (!taken[j] && j != self_of(&aim, i) &&
                    (best < 0 || distance2(t->x[j], x) < distance2(t->x[best], x)))
                    best = j;
            const double right = best < 0 ? INFINITY : distance2(t->x[best], x);
            REQUIRE(number[i * k + q] == best);
            REQUIRE(is_bad(x) ? isnan(r2[i * k + q]) : r2[i * k + q] == right);
            if (best >= 0) taken[best] = 1;
        }
    }
    returned(CODE(bad ? G6X_E_I_NAN : 0), code);
}

/* Some calls in a row. */
void try_tree(void)
{
    static void (*const TRIES[])(void) = {try_plant,  try_plant,  try_tree_option, try_forces,
                                          try_forces, try_within, try_nearest};
    for (int n = 2 + below(10); n > 0; n--) {
        if (chance(20))
            close_tree(&tree[below(TREES)]);
        else
            TRIES[below(7)]();
    }
}
