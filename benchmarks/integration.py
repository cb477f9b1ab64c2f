"""How well and how fast ``Hermite`` integrates; kept as JSON.

    python benchmarks/integration.py [--name NAME]

Energies are those of mode double. The last figure is what Hermite does besides force calls, as a
share of the wall time from t = 0.25 to 0.5.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
from cpu import commit, machine

from grape6py import Hermite, plummer, two_body

HERE = Path(__file__).resolve().parent


def error(cluster, start):
    return abs(cluster.energy().total / start - 1)


def spheres(precision, eta, seeds=8, n=1024):
    """Energy errors of Plummer spheres at t = 1, eps = 4/N; and momentum over sum m |v|."""
    errors, momenta = [], []
    for seed in range(seeds):
        cluster = Hermite(*plummer(n, seed), eps=4 / n, eta=eta, precision=precision)
        start = cluster.energy().total
        cluster.evolve(1.0)
        errors.append(error(cluster, start))
        momenta.append(drift(cluster))
    return errors, momenta


def drift(cluster):
    total = (cluster.mass * np.sqrt((cluster.vel**2).sum(axis=1))).sum()
    return float(np.abs(cluster.momentum()).max() / total)


def shared(dt, n=128, seed=5):
    """Largest energy error over a time unit with one step for all, and the momentum."""
    cluster = Hermite(*plummer(n, seed), eps=1 / 8, dt=dt, precision="double")
    start, errors = cluster.energy().total, []
    cluster.evolve(1.0, lambda c: errors.append(error(c, start)), every=1 / 16)
    return max(errors), drift(cluster)


def orbits(passes):
    """Energy error of two bodies with e = 0.9 after 100 orbits, eta = 0.00125."""
    pair = Hermite(*two_body(0.9), eta=0.00125, passes=passes, precision="double")
    start = pair.energy().total
    pair.evolve(200 * np.pi)
    return error(pair, start)


def bookkeeping(n=16384):
    cluster = Hermite(*plummer(n, 1), eps=1 / 256, eta=0.01, threads=2)
    cluster.evolve(0.25)
    forces, began = cluster.force_seconds, time.perf_counter()
    cluster.evolve(0.5)
    wall = time.perf_counter() - began
    return 1 - (cluster.force_seconds - forces) / wall, wall


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", default=platform.node())
    options = parser.parse_args()
    figures = []

    def keep(what, value, goal):
        figures.append({"what": what, "value": value, "goal": goal})
        print(f"{what}: {value:.3g} (goal {goal})", flush=True)

    for precision in ("grape", "double"):
        for eta, goal in ((0.02, "5e-8"), (0.005, "5e-9")):
            errors, momenta = spheres(precision, eta)
            keep(f"median energy error, N = 1024, t = 1, eta = {eta}, {precision}",
                 float(np.median(errors)), goal)  # fmt: skip
            if eta == 0.02:
                keep(f"largest momentum / sum m|v|, the same, {precision}", max(momenta), "1e-7")
    worst = [shared(2.0**-level) for level in range(6, 11)]
    for level in range(4):
        ratio = worst[level][0] / worst[level + 1][0]
        keep(f"error ratio, shared steps, 2^-{6 + level} to 2^-{7 + level}", ratio, "16 +- 3")
    keep("momentum / sum m|v|, shared steps, double", max(m for _, m in worst), "1e-13")
    for passes, goal in ((1, "3e-6"), (2, "5e-7")):
        keep(f"energy error, e = 0.9, 100 orbits, passes = {passes}", orbits(passes), goal)
    share, wall = bookkeeping()
    keep("bookkeeping share, N = 16384, eta = 0.01, t = 0.25 to 0.5", share, "0.25")
    keep("wall time of that, s", wall, "-")
    path = HERE / "results" / f"integration-{options.name}.json"
    result = {"machine": machine(), "commit": commit(), "figures": figures}
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
