/* ph4_style.cc - a block-step integrator that calls the GRAPE-6 as AMUSE's ph4 does, in C++.
 *
 * Fourth-order Hermite scheme with power-of-two block time steps (Makino & Aarseth 1992,
 * PASJ 44, 141). The physics is that of hermite.c; the calls are those of ph4:
 *   - the by-value C names are defined here, around the names with an underscore
 *   - g6_open gets the number of a GPU, all other calls the MPI rank
 *   - bodies go by ids, any int, and come back as ids (nearest neighbours, lists)
 *   - aold and j6old are a/2 and j/6, in the arrays that the results overwrite
 *   - h2 = eps2 in force passes, so that no list is collected
 *   - to synchronise, all pipes get the same body, and nobody asks for the result
 *   - acc and jerk of a neighbour pass are one array
 *   - a list without entries sends h2 to infinity
 *
 *   ph4_style [FILE] [-e eps] [-a eta] [-t tend] [-i pattern] [-r rank] [-f]
 *
 * FILE: one line a body, m x y z vx vy vz, G = 1; # starts a comment. Defaults:
 * data/plummer1024.dat, eps = 4/N (also if negative), eta = 0.02, tend = 1, rank = 0.
 * pattern: of the ids: 0 is 1 to N, 1 (default) large and shuffled, 2 all over the integers.
 * -f prints the first forces on all bodies, not only five. Energies are printed every quarter
 * of a time unit, from the library's potential and from a sum of the host's own. */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "snapshot.h"

/* ---- the library as ph4 knows it: no header, and C names of its own -------------- */

extern "C" {
int g6_open_(int *id);
int g6_close_(int *id);
int g6_npipes_();
int g6_set_tunit_(double *p);
int g6_set_xunit_(double *p);
int g6_set_ti_(int *id, double *ti);
int g6_set_j_particle_(int *id, int *address, int *index, double *tj, double *dtj, double *mass,
                       double k18[3], double j6[3], double a2[3], double v[3], double x[3]);
void g6calc_firsthalf_(int *id, int *nj, int *ni, int index[], double xi[][3], double vi[][3],
                       double aold[][3], double j6old[][3], double phiold[], double *eps2,
                       double h2[]);
int g6calc_lasthalf_(int *id, int *nj, int *ni, int index[], double xi[][3], double vi[][3],
                     double *eps2, double h2[], double acc[][3], double jerk[][3], double pot[]);
int g6calc_lasthalf2_(int *id, int *nj, int *ni, int index[], double xi[][3], double vi[][3],
                      double *eps2, double h2[], double acc[][3], double jerk[][3], double pot[],
                      int nn[]);
int g6_initialize_jp_buffer_(int *id, int *size);
int g6_flush_jp_buffer_(int *id);
int g6_reset_(int *id);
int g6_reset_fofpga_(int *id);
int g6_read_neighbour_list_(int *id);
int g6_get_neighbour_list_(int *id, int *pipe, int *maxlength, int *n, int list[]);

int g6_open(int id) { return g6_open_(&id); }
int g6_close(int id) { return g6_close_(&id); }
int g6_npipes() { return g6_npipes_(); }
int g6_set_tunit(double p) { return g6_set_tunit_(&p); }
int g6_set_xunit(double p) { return g6_set_xunit_(&p); }
int g6_set_ti(int id, double ti) { return g6_set_ti_(&id, &ti); }
int g6_set_j_particle(int id, int address, int index, double tj, double dtj, double mass,
                      double k18[3], double j6[3], double a2[3], double v[3], double x[3])
{
    return g6_set_j_particle_(&id, &address, &index, &tj, &dtj, &mass, k18, j6, a2, v, x);
}
void g6calc_firsthalf(int id, int nj, int ni, int index[], double xi[][3], double vi[][3],
                      double aold[][3], double j6old[][3], double phiold[], double eps2,
                      double h2[])
{
    g6calc_firsthalf_(&id, &nj, &ni, index, xi, vi, aold, j6old, phiold, &eps2, h2);
}
int g6calc_lasthalf(int id, int nj, int ni, int index[], double xi[][3], double vi[][3],
                    double eps2, double h2[], double acc[][3], double jerk[][3], double pot[])
{
    return g6calc_lasthalf_(&id, &nj, &ni, index, xi, vi, &eps2, h2, acc, jerk, pot);
}
int g6calc_lasthalf2(int id, int nj, int ni, int index[], double xi[][3], double vi[][3],
                     double eps2, double h2[], double acc[][3], double jerk[][3], double pot[],
                     int nn[])
{
    return g6calc_lasthalf2_(&id, &nj, &ni, index, xi, vi, &eps2, h2, acc, jerk, pot, nn);
}
int g6_initialize_jp_buffer(int id, int size) { return g6_initialize_jp_buffer_(&id, &size); }
int g6_flush_jp_buffer(int id) { return g6_flush_jp_buffer_(&id); }
int g6_reset(int id) { return g6_reset_(&id); }
int g6_reset_fofpga(int id) { return g6_reset_fofpga_(&id); }
int g6_read_neighbour_list(int id) { return g6_read_neighbour_list_(&id); }
int g6_get_neighbour_list(int id, int pipe, int maxlength, int *n, int list[])
{
    return g6_get_neighbour_list_(&id, &pipe, &maxlength, n, list);
}
}

/* ---- the bodies ------------------------------------------------------------------ */

typedef double vec[3];

struct Body {
    int id, nn;           /* own id, and address of the nearest neighbour */
    double m, t, dt, pot; /* t: time of x, v, a, j */
    double rnb2;          /* squared neighbour radius */
    vec x, v, a, j;
    vec xp, vp, an, jn; /* predicted, and the new force there */
};

static const int NNB = 6;              /* neighbours in a density estimate */
static const int LMAX = 512;           /* room for a neighbour list */
static const int MAXROUND = 100;       /* radius changes before a density is given up */
static const double ETASTART = 0.0025; /* first step = ETASTART |a| / |da/dt| */
static const double DTMIN = std::ldexp(1.0, -40), DTOUT = 0.25;
static const int GPU = 32652; /* what ph4 has there if nobody sets it */

static std::vector<Body> body;
static std::map<int, int> address; /* of an id */
static double now, eps2, eta = 0.02, tend = 1.0, dtmax = 0.125;
static int n, rank, npipes, pattern = 1, print_all;
static long nstep, nblock, nlisted, nradius, ninfinite;
static int *iid, *inn; /* what goes to the pipes and comes back */
static vec *ipos, *ivel, *iacc, *ijerk;
static double *ipot, *ih2;

static void stop(const char *what, const char *name)
{
    std::fprintf(stderr, "ph4_style: %s %s\n", what, name);
    std::exit(1);
}

static void read_snapshot(const char *name)
{
    struct snapshot s;
    char fault[SNAPSHOT_FAULT];
    if (snapshot_load(name, &s, fault) != 0) {
        std::fprintf(stderr, "ph4_style: %s: %s\n", name, fault);
        std::exit(1);
    }
    n = s.n;
    body.resize((size_t)n);
    for (int i = 0; i < n; i++) {
        Body &b = body[(size_t)i];
        b.m = s.m[i];
        std::copy(s.x[i], s.x[i] + 3, b.x);
        std::copy(s.v[i], s.v[i] + 3, b.v);
    }
    snapshot_free(&s);
}

static double norm(const vec a) { return std::sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]); }

static double distance(const Body &a, const Body &b)
{
    vec r = {b.x[0] - a.x[0], b.x[1] - a.x[1], b.x[2] - a.x[2]};
    return norm(r);
}

/* Ids out of order. Those of pattern 1 are neighbouring numbers that no float can tell apart. */
static int make_id(int i)
{
    if (pattern == 0) return i + 1;
    if (pattern == 1) return 2000000000 + (i % 2 ? n - 1 - i / 2 : i / 2);
    return (int)(2654435761u * (unsigned)(i + 1));
}

static int find(int id)
{
    std::map<int, int>::const_iterator p = address.find(id);
    if (p == address.end()) stop("the GRAPE gives an id that nobody has", "");
    return p->second;
}

/* ---- the board ------------------------------------------------------------------- */

static void send(int i)
{
    Body &b = body[(size_t)i];
    vec a2, j6, k18 = {0.0, 0.0, 0.0};
    for (int k = 0; k < 3; k++) {
        a2[k] = b.a[k] / 2.0;
        j6[k] = b.j[k] / 6.0;
    }
    g6_set_j_particle(rank, i, b.id, b.t, b.dt, b.m, k18, j6, a2, b.v, b.x);
}

static void load_pipe(int p, const Body &b, double h2)
{
    iid[p] = b.id;
    ih2[p] = h2;
    ipot[p] = b.pot;
    for (int k = 0; k < 3; k++) {
        ipos[p][k] = b.xp[k];
        ivel[p][k] = b.vp[k];
        iacc[p][k] = b.a[k] / 2.0;
        ijerk[p][k] = b.j[k] / 6.0;
    }
}

/* A force that is started and never fetched, as ph4 does to have all j particles arrive. */
static void synchronise()
{
    for (int p = 0; p < npipes; p++) load_pipe(p, body[0], eps2);
    g6_set_ti(rank, now);
    g6calc_firsthalf(rank, n, npipes, iid, ipos, ivel, iacc, ijerk, ipot, eps2, ih2);
}

static void send_all()
{
    for (int i = 0; i < n; i++) send(i);
    synchronise();
}

/* Forces at the time now on the bodies of a block, from their predicted state. */
static void forces(const std::vector<int> &block, bool count_lists = false)
{
    g6_set_ti(rank, now);
    for (size_t q = 0; q < block.size(); q++) {
        Body &b = body[(size_t)block[q]];
        const double dt = now - b.t;
        for (int k = 0; k < 3; k++) {
            b.xp[k] = b.x[k] + dt * (b.v[k] + dt * (b.a[k] / 2.0 + dt * b.j[k] / 6.0));
            b.vp[k] = b.v[k] + dt * (b.a[k] + dt * b.j[k] / 2.0);
        }
    }
    for (size_t first = 0; first < block.size(); first += (size_t)npipes) {
        const int ni = (int)std::min(block.size() - first, (size_t)npipes);
        for (int p = 0; p < ni; p++) load_pipe(p, body[(size_t)block[first + (size_t)p]], eps2);
        g6calc_firsthalf(rank, n, ni, iid, ipos, ivel, iacc, ijerk, ipot, eps2, ih2);
        g6calc_lasthalf2(rank, n, ni, iid, ipos, ivel, eps2, ih2, iacc, ijerk, ipot, inn);
        for (int p = 0; p < ni; p++) {
            Body &b = body[(size_t)find(iid[p])];
            b.pot = ipot[p];
            b.nn = find(inn[p]);
            std::copy(iacc[p], iacc[p] + 3, b.an);
            std::copy(ijerk[p], ijerk[p] + 3, b.jn);
        }
        if (count_lists && g6_read_neighbour_list(rank) == 0)
            for (int p = 0; p < ni; p++) {
                int length = -1, list[LMAX];
                g6_get_neighbour_list(rank, p, LMAX, &length, list);
                nlisted += length;
            }
    }
}

/* ---- steps ----------------------------------------------------------------------- */

/* Hermite corrector for a body, and its next step by Aarseth's criterion. */
static void correct(Body &b)
{
    vec s, c; /* second and third derivative of the acceleration */
    const double dt = now - b.t, dt2 = dt * dt;
    for (int k = 0; k < 3; k++) {
        const double a0 = b.a[k], a1 = b.an[k], j0 = b.j[k], j1 = b.jn[k];
        const double s0 = (6.0 * (a1 - a0) - dt * (4.0 * j0 + 2.0 * j1)) / dt2;
        c[k] = (12.0 * (a0 - a1) + 6.0 * dt * (j0 + j1)) / (dt2 * dt);
        s[k] = s0 + dt * c[k];
        b.x[k] = b.xp[k] + dt2 * dt2 * (s0 / 24.0 + dt * c[k] / 120.0);
        b.v[k] = b.vp[k] + dt2 * dt * (s0 / 6.0 + dt * c[k] / 24.0);
        b.a[k] = a1;
        b.j[k] = j1;
    }
    b.t = now;
    const double an = norm(b.a), jn = norm(b.j), sn = norm(s), cn = norm(c);
    const double below = jn * cn + sn * sn;
    const double want = below > 0.0 ? std::sqrt(eta * (an * sn + jn * jn) / below) : dtmax;
    if (want < dt)
        while (b.dt > want && b.dt > DTMIN) b.dt /= 2.0;
    else if (b.dt < dtmax && want >= 2.0 * dt && std::fmod(now, 2.0 * dt) == 0.0)
        b.dt *= 2.0; /* where the grid of that step allows it */
}

static void block_step()
{
    std::vector<int> block;
    double next = HUGE_VAL;
    for (int i = 0; i < n; i++) next = std::min(next, body[(size_t)i].t + body[(size_t)i].dt);
    for (int i = 0; i < n; i++)
        if (body[(size_t)i].t + body[(size_t)i].dt == next) block.push_back(i);
    now = next;
    forces(block);
    for (size_t q = 0; q < block.size(); q++) correct(body[(size_t)block[q]]);
    for (size_t q = 0; q < block.size(); q++) send(block[q]);
    nstep += (long)block.size();
    nblock++;
}

static std::vector<int> everybody()
{
    std::vector<int> all;
    for (int i = 0; i < n; i++) all.push_back(i);
    return all;
}

static void start()
{
    npipes = g6_npipes();
    if (npipes < 1) stop("no GRAPE here", "");
    iid = new int[npipes](), inn = new int[npipes]();
    ipos = new vec[npipes](), ivel = new vec[npipes]();
    iacc = new vec[npipes](), ijerk = new vec[npipes]();
    ipot = new double[npipes](), ih2 = new double[npipes]();

    if (g6_open(GPU) != 0) stop("cannot open the GRAPE", "");
    g6_set_tunit(51.0);
    g6_set_xunit(51.0);
    g6_reset(rank);
    g6_reset_fofpga(rank);
    g6_initialize_jp_buffer(rank, 10000);
    send_all();
    g6_flush_jp_buffer(rank);
    forces(everybody(), true);
    for (int i = 0; i < n; i++) {
        Body &b = body[(size_t)i];
        std::copy(b.an, b.an + 3, b.a);
        std::copy(b.jn, b.jn + 3, b.j);
        b.dt = dtmax;
        while (b.dt * norm(b.j) > ETASTART * norm(b.a) && b.dt > DTMIN) b.dt /= 2.0;
        if (i < 5 || print_all)
            std::printf(" force %6d %24.16E %24.16E %24.16E %24.16E\n", i + 1, b.a[0], b.a[1],
                        b.a[2], b.pot);
    }
    send_all();
}

/* ---- output ---------------------------------------------------------------------- */

/* Density of a body from a list of ids: the mass of the NNB - 1 nearest over the cube of the
 * distance of the next (Casertano & Hut 1985, ApJ 298, 80); 0 if there are too few. */
static double density(const Body &b, const int *list, int length)
{
    std::vector<std::pair<double, int>> near;
    double mass = 0.0;
    for (int q = 0; q < length; q++) {
        const int i = find(list[q]);
        near.push_back(std::make_pair(distance(b, body[(size_t)i]), i));
    }
    if (length < NNB) return 0.0;
    std::partial_sort(near.begin(), near.begin() + NNB, near.end());
    for (int q = 0; q < NNB - 1; q++) mass += body[(size_t)near[(size_t)q].second].m;
    return mass / std::pow(near[NNB - 1].first, 3.0);
}

/* Density centre; the radii change until the lists are neither too short nor too long. From
 * an infinite radius the way back starts at the squared size of the system. */
static void density_centre(double size2)
{
    std::vector<double> rho((size_t)n), few((size_t)n), many((size_t)n, HUGE_VAL);
    std::vector<int> todo = everybody(), again;
    int list[LMAX], length;
    double sum = 0.0, rc = 0.0;
    vec xd = {0.0, 0.0, 0.0};

    for (int round = 0; round < MAXROUND && !todo.empty(); round++, todo.swap(again)) {
        again.clear();
        for (size_t first = 0; first < todo.size(); first += (size_t)npipes) {
            const int ni = (int)std::min(todo.size() - first, (size_t)npipes);
            for (int p = 0; p < ni; p++) {
                const Body &b = body[(size_t)todo[first + (size_t)p]];
                load_pipe(p, b, b.rnb2 + eps2);
                nradius++;
                if (std::isinf(b.rnb2)) ninfinite++;
            }
            g6calc_firsthalf(rank, n, ni, iid, ipos, ivel, iacc, ijerk, ipot, eps2, ih2);
            g6calc_lasthalf(rank, n, ni, iid, ipos, ivel, eps2, ih2, iacc, iacc, ipot);
            const int full = g6_read_neighbour_list(rank);
            if (full < 0) stop("the GRAPE gives no neighbours", "");
            for (int p = 0; p < ni; p++) {
                const size_t i = (size_t)find(iid[p]);
                Body &b = body[i];
                if (full || g6_get_neighbour_list(rank, p, LMAX, &length, list)) {
                    many[i] = std::min(b.rnb2, size2);
                    b.rnb2 = (few[i] + many[i]) / 2.0;
                } else {
                    rho[i] = density(b, list, length);
                    if (length >= NNB) continue;
                    few[i] = b.rnb2;
                    b.rnb2 *= std::pow(2.0 * NNB / length, 2.0 / 3.0); /* length may be 0 */
                    if (many[i] <= b.rnb2 && many[i] < HUGE_VAL) b.rnb2 = (few[i] + many[i]) / 2.0;
                }
                again.push_back((int)i);
            }
        }
    }
    for (size_t i = 0; i < rho.size(); i++) {
        sum += rho[i];
        for (int k = 0; k < 3; k++) xd[k] += rho[i] * body[i].x[k];
    }
    for (int k = 0; k < 3; k++) xd[k] /= sum;
    for (size_t i = 0; i < rho.size(); i++) {
        vec r = {body[i].x[0] - xd[0], body[i].x[1] - xd[1], body[i].x[2] - xd[2]};
        rc += rho[i] * norm(r);
    }
    std::printf(" density centre %10.5f%10.5f%10.5f   density radius %10.5f\n", xd[0], xd[1], xd[2],
                rc / sum);
    if (!todo.empty()) std::printf(" no density found for %d bodies\n", (int)todo.size());
}

/* Energies by the library's potential and by the host; all bodies are at the time now. All j
 * particles are sent anew first: ph4 does so whenever a body came or went. */
static void output(double *egrape, double *ehost)
{
    double ekin = 0.0, epot = 0.0, sum = 0.0, rmin = HUGE_VAL, size = 0.0;
    int closest = 0;

    send_all();
    forces(everybody());
    for (int i = 0; i < n; i++) {
        const Body &b = body[(size_t)i];
        const double r = distance(b, body[(size_t)b.nn]);
        ekin += 0.5 * b.m * norm(b.v) * norm(b.v);
        epot += 0.5 * b.m * b.pot;
        size = std::max(size, norm(b.x));
        if (b.nn != i && r < rmin) rmin = r, closest = i;
        for (int q = 0; q < i; q++) {
            const double s = distance(b, body[(size_t)q]);
            sum -= b.m * body[(size_t)q].m / std::sqrt(s * s + eps2);
        }
    }
    *egrape = ekin + epot;
    *ehost = ekin + sum;
    std::printf(" time %10.5f   energy (host) %18.10E   energy (pot) %18.10E\n", now, *ehost,
                *egrape);
    if (n > 1)
        std::printf(" closest pair %7d%7d   distance %12.4E\n", closest + 1,
                    body[(size_t)closest].nn + 1, rmin);
    if (n > NNB) density_centre(4.0 * size * size);
    std::fflush(stdout);
}

static double number(const char *text)
{
    char *end;
    const double value = std::strtod(text, &end);
    if (end == text || *end || !std::isfinite(value)) stop("not a number:", text);
    return value;
}

int main(int argc, char **argv)
{
    const char *name = "data/plummer1024.dat";
    double eps = -1.0, e0, e1, h0, h1, scale = 0.0;

    for (int i = 1; i < argc; i++) {
        const char *flag = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (flag[0] != '-') {
            name = flag;
        } else if (!std::strcmp(flag, "-f")) {
            print_all = 1;
        } else {
            if (!std::strcmp(flag, "-e"))
                eps = number(value);
            else if (!std::strcmp(flag, "-a"))
                eta = number(value);
            else if (!std::strcmp(flag, "-t"))
                tend = number(value);
            else if (!std::strcmp(flag, "-i"))
                pattern = (int)number(value);
            else if (!std::strcmp(flag, "-r"))
                rank = (int)number(value);
            else
                stop("usage: ph4_style [FILE] [-e eps] [-a eta] [-t tend] [-i pattern] [-r rank]",
                     "[-f]");
            i++;
        }
    }
    if (!(eta > 0.0) || !(tend > 1e-9)) stop("eta and tend must be above zero", "");
    read_snapshot(name);
    if (eps < 0.0) eps = 4.0 / n;
    eps2 = eps * eps;
    for (int i = 0; i < n; i++) {
        Body &b = body[(size_t)i];
        b.id = make_id(i);
        address[b.id] = i;
        scale += norm(b.x) / n;
    }
    /* So small that bodies outside the core find nobody at first. */
    for (int i = 0; i < n; i++)
        body[(size_t)i].rnb2 = scale > 0.0 ? std::pow(scale / std::cbrt(n), 2.0) : 1.0;

    /* The largest step divides tend, so that all bodies meet there; if need be, tend moves. */
    while (std::fmod(tend, dtmax) != 0.0 && dtmax > tend / 16.0) dtmax /= 2.0;
    tend = std::rint(tend / dtmax) * dtmax;
    std::printf(" ph4_style   N = %d   eps = %.3E   eta = %.3E   t_end = %.5f\n", n, eps, eta,
                tend);
    start();
    output(&e0, &h0);
    while (now < tend) {
        block_step();
        if (std::fmod(now, DTOUT) == 0.0 || now >= tend) output(&e1, &h1);
    }
    g6_close(rank);
    std::printf(" neighbours in the first force pass %ld\n", nlisted);
    std::printf(" neighbour radii tried %ld   infinite %ld\n", nradius, ninfinite);
    std::printf(" steps %ld   blocks %ld\n", nstep, nblock);
    std::printf(" relative energy error by pot %11.3E\n", std::fabs((e1 - e0) / e0));
    std::printf(" relative energy error %11.3E\n", std::fabs((h1 - h0) / h0));
    if (!std::isfinite(h1) || !std::isfinite(e1)) stop("energy is lost", "");
    return 0;
}
