"""Errors of forces and of integrations on the CPU.

    python benchmarks/errors.py [accuracy] [integration] [force-errors] [energy-errors]
                                [shared-sums] [last-bit] [--name NAME] [--n 16384] [--seeds 5]

The first two are tables of pages/accuracy.md, the others pictures. Right forces are sums
in long double (80 ns a pair on two cores); energies are those of mode double.
"""

import time

import numpy as np
from harness import errors_of, relative, run

from grape6py import Grape6, Hermite, partial, plummer, reference, two_body
from grape6py.errors import Grape6Error

MODES = ("single", "grape", "double")
SUMS = ("acc", "jerk", "pot")
PERCENTILES = np.array([0.1, 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.9, 100])


def forces(model, **options):
    with Grape6(**options) as board:
        board.set_particles(*model)
        return board.forces()


def accuracy(options):
    """Every mode and instruction set: medians over the seeds of the median, and of the largest,
    relative error of a sphere cut at 0.999 of the mass; `bias`: the mean error along the force."""
    errors = {}
    for seed in range(1, options.seeds + 1):
        model = plummer(options.n, seed, mass_fraction=0.999)
        true = reference.direct_sum(*model, extended=True)
        for isa in ("base", "avx2", "avx512", "neon"):
            for mode in ("grape", "double", "single"):
                try:
                    found = forces(model, precision=mode, isa=isa)
                except Grape6Error as missing:
                    print(f"{isa}: {missing}")
                    continue
                sums, along = errors_of(found, true)
                for name, pair in (sums | {"bias": (along, 0.0)}).items():
                    errors.setdefault((mode, isa, name), []).append(pair)
    for (mode, isa, name), values in errors.items():
        median, largest = map(float, np.median(values, axis=0))
        yield {"mode": mode, "isa": isa, "what": name, "median": median, "largest": largest}


def force_errors(options):
    """Percentiles of the relative errors of a sphere's forces, by mode."""
    model = plummer(options.n, 1)
    true = reference.direct_sum(*model, extended=True)
    found = {"n": options.n, "percentiles": PERCENTILES.tolist()}
    for mode in MODES:
        sums = forces(model, precision=mode)
        errors = {name: relative(getattr(sums, name), getattr(true, name)) for name in SUMS}
        found[mode] = {name: np.percentile(e, PERCENTILES).tolist() for name, e in errors.items()}
    yield found


def energy_error(cluster, start):
    return abs(cluster.energy().total / start - 1)


def momentum(cluster):
    """As a share of sum m |v|."""
    total = (cluster.mass * np.sqrt((cluster.vel**2).sum(axis=1))).sum()
    return float(np.abs(cluster.momentum()).max() / total)


def spheres(precision, eta, seeds=8, n=1024):
    """Energy errors of Plummer spheres at t = 1, eps = 4/N; and their momenta."""
    errors, momenta = [], []
    for seed in range(seeds):
        cluster = Hermite(*plummer(n, seed), eps=4 / n, eta=eta, precision=precision)
        start = cluster.energy().total
        cluster.evolve(1.0)
        errors.append(energy_error(cluster, start))
        momenta.append(momentum(cluster))
    return errors, momenta


def energy_errors(options):
    """Of a sphere over a time unit against eta, by mode: median of the seeds."""
    n, seeds, etas = 1024, 8, [2.0**-k * 0.16 for k in range(8)]
    medians = {mode: [float(np.median(spheres(mode, eta, seeds, n)[0])) for eta in etas]
               for mode in MODES}  # fmt: skip
    yield {"n": n, "eps": 4 / n, "t": 1.0, "seeds": seeds, "eta": etas} | medians


def shared_steps(dt, n=128, seed=5):
    """Largest energy error over a time unit with one step for all, and the momentum."""
    cluster = Hermite(*plummer(n, seed), eps=1 / 8, dt=dt, precision="double")
    start, errors = cluster.energy().total, []
    cluster.evolve(1.0, lambda c: errors.append(energy_error(c, start)), every=1 / 16)
    return max(errors), momentum(cluster)


def integration(options):
    def figure(what, value, goal):
        return {"what": what, "value": value, "goal": goal}

    for precision in ("grape", "double"):
        for eta, goal in ((0.02, "5e-8"), (0.005, "5e-9")):
            errors, momenta = spheres(precision, eta)
            yield figure(f"median energy error, N = 1024, t = 1, eta = {eta}, {precision}",
                         float(np.median(errors)), goal)  # fmt: skip
            if eta == 0.02:
                what = f"largest momentum / sum m|v|, the same, {precision}"
                yield figure(what, max(momenta), "1e-7")
    worst = [shared_steps(2.0**-level) for level in range(6, 11)]
    for level in range(4):
        what = f"error ratio, shared steps, 2^-{6 + level} to 2^-{7 + level}"
        yield figure(what, worst[level][0] / worst[level + 1][0], "16 +- 3")
    yield figure("momentum / sum m|v|, shared steps, double", max(m for _, m in worst), "1e-13")
    for passes, goal in ((1, "3e-6"), (2, "5e-7")):
        pair = Hermite(*two_body(0.9), eta=0.00125, passes=passes, precision="double",
                       subsystems=False)  # fmt: skip
        start = pair.energy().total
        pair.evolve(200 * np.pi)
        what = f"energy error, e = 0.9, 100 orbits, passes = {passes}"
        yield figure(what, energy_error(pair, start), goal)
    cluster = Hermite(*plummer(options.n, 1), eps=1 / 256, eta=0.01, threads=2)
    cluster.evolve(0.25)
    forces, began = cluster.force_seconds, time.perf_counter()
    cluster.evolve(0.5)
    wall = time.perf_counter() - began
    what = f"bookkeeping share, N = {options.n}, eta = 0.01, t = 0.25 to 0.5"
    yield figure(what, 1 - (cluster.force_seconds - forces) / wall, "0.25")
    yield figure("wall time of that, s", wall, "-")


def shared_sums(options):
    """Share of the forces whose bits change if the j particles are shared by k boards and added up:
    as doubles by the caller, and as partial sums; mode double."""
    n = options.n
    model, blocks = plummer(n, 1), np.array_split(np.arange(n), max(n // 1024, 1))

    with Grape6(precision="double") as board:
        board.set_particles(*model)
        common = board.scale

    def sums(k, way, scale=None):
        for share in range(k):
            mine = np.concatenate(blocks[share::k])
            with Grape6(precision="double") as board:
                board.set_particles(*(values[mine] for values in model), index=mine)
                board.scale = scale
                yield way(board, model.pos, model.vel, np.arange(n))

    def as_doubles(k):
        return sum(found.acc for found in sums(k, Grape6.forces))

    def as_partial_sums(k):
        return partial.forces(partial.merged([*sums(k, Grape6.partial, common)])).acc

    parts = list(range(1, min(16, len(blocks)) + 1))
    whole = as_doubles(1)
    assert np.array_equal(as_partial_sums(1), whole)
    yield {"n": n, "parts": parts} | {
        name: [float((way(k) != whole).any(axis=1).mean()) for k in parts]
        for name, way in (("doubles", as_doubles), ("partial sums", as_partial_sums))
    }


def last_bit(options):
    """How far two runs of a sphere come apart if one coordinate differs in its last bit, which mode
    double resolves."""
    n, every = 1024, 0.25
    model = plummer(n, 1)
    nudged = model.pos.copy()
    nudged[0, 0] = np.nextafter(nudged[0, 0], np.inf)
    tracks = []
    for pos in (model.pos, model.pos, nudged):
        track = [pos.copy()]
        cluster = Hermite(model.mass, pos, model.vel, eps=4 / n, precision="double")
        cluster.evolve(12.0, lambda c, to=track: to.append(c.pos), every=every)
        tracks.append(np.array(track))
    apart = [np.sqrt(((tracks[0] - other) ** 2).sum(2).mean(1)).tolist() for other in tracks[1:]]
    time = (np.arange(len(tracks[0])) * every).tolist()
    yield {"n": n, "eps": 4 / n, "time": time, "same": apart[0], "last bit": apart[1]}


if __name__ == "__main__":
    run(__doc__, {"accuracy": accuracy, "integration": integration, "force-errors": force_errors,
                  "energy-errors": energy_errors, "shared-sums": shared_sums, "last-bit": last_bit},
        about=lambda options: {"n": options.n, "seeds": options.seeds},
        n={"type": int, "default": 16384},
        seeds={"type": int, "default": 5, "help": "of part accuracy"})  # fmt: skip
