"""What programs.py times in Python, with the package that PYTHONPATH names: lines of JSON.

    python benchmarks/python_runs.py BACKEND SECONDS "WHAT N X"...

binaries N D   Hermite with one body in ten in a circular binary of separation D, eps = 0
far N D        Hermite with the whole cluster at that distance from the origin
block N T      Hermite from T / 8 to T, eps = 4 / N
lists N 0      Grape6.forces() alone, with neighbour lists, with nearest neighbours

Of the first two, microseconds a block are the median of pieces of about 100 blocks, for SECONDS.
"""

import json
import statistics
import sys
import time

import numpy as np

from grape6py import Grape6, Hermite, plummer

SEED, PIECE, MOST_PIECES = 7, 100, 40


def with_binaries(n, d):
    """A Plummer sphere, a twentieth of whose members are pairs of equal bodies."""
    pairs = n // 20
    members = n - pairs
    _, pos, vel = plummer(members, seed=SEED)
    rng = np.random.default_rng(SEED)
    apart = rng.standard_normal((pairs, 3))
    apart *= d / np.linalg.norm(apart, axis=1)[:, None]
    across = np.cross(apart, rng.standard_normal((pairs, 3)))
    across *= np.sqrt(2 / n / d) / np.linalg.norm(across, axis=1)[:, None]
    pos, vel = np.vstack([pos, pos[:pairs] - apart / 2]), np.vstack([vel, vel[:pairs] - across / 2])
    pos[:pairs], vel[:pairs] = pos[members:] + apart, vel[members:] + across
    return np.full(n, 1 / n), pos, vel


def integrated(bodies, backend, seconds):
    """Microseconds a block, blocks, and the energy error at the end."""
    with Hermite(*bodies, subsystems=False, backend=backend) as cluster:
        energy = cluster.energy().total
        cluster.evolve(1.0, lambda c: c.stop() if c.blocks >= PIECE else None)
        piece, took = cluster.time, []
        deadline = time.perf_counter() + seconds
        while not took or (len(took) < MOST_PIECES and time.perf_counter() < deadline):
            blocks, began = cluster.blocks, time.perf_counter()
            cluster.evolve(cluster.time + piece)
            took.append((time.perf_counter() - began) / max(cluster.blocks - blocks, 1))
        return {"on": cluster.backend, "us_per_block": 1e6 * statistics.median(took),
                "blocks": cluster.blocks, "steps": cluster.steps, "end": cluster.time,
                "error": abs(cluster.energy().total / energy - 1)}  # fmt: skip


def binaries(backend, seconds, n, d):
    what = f"Hermite (Python), binaries, d = {d:g}"
    return {"what": what, "n": n} | integrated(with_binaries(n, d), backend, seconds)


def far(backend, seconds, n, distance):
    bodies, what = plummer(n, seed=SEED), f"Hermite (Python), cluster at D = {distance:g}"
    bodies.pos[:, 0] += distance
    return {"what": what, "n": n} | integrated(bodies, backend, seconds)


def block(backend, seconds, n, t):
    cluster = Hermite(*plummer(n, seed=1), eps=4 / n, backend=backend)
    cluster.evolve(t / 8)
    blocks, start = cluster.blocks, time.perf_counter()
    cluster.evolve(t)
    us = 1e6 * (time.perf_counter() - start) / (cluster.blocks - blocks)
    return {"backend": backend, "n": n, "us": round(us, 2)}


def lists(backend, seconds, n, _):
    def median(**asked):
        takes = []
        for _ in range(7):
            start = time.perf_counter()
            board.forces(eps=1e-3, **asked)
            takes.append(time.perf_counter() - start)
        return statistics.median(takes)

    with Grape6(backend=backend) as board:
        board.set_particles(*plummer(n, seed=1))
        plain, listed, near = median(), median(h=0.35 * n ** (-1 / 3)), median(nn=True)
    return {"backend": backend, "n": n, "ms": round(1e3 * plain, 3),
            "lists": round(listed / plain, 2), "nearest": round(near / plain, 2)}  # fmt: skip


if __name__ == "__main__":
    backend, seconds, *cases = sys.argv[1:]
    for what, n, x in map(str.split, cases):
        print(json.dumps(globals()[what](backend, float(seconds), int(n), float(x))), flush=True)
