"""Times ``Hermite`` on close binaries and on clusters far from the origin: lines of JSON.

    python benchmarks/binaries.py [--backend cpu] [--seconds 1] [--n 1024 8192] [--far 4096]
                                  [--separations 1e-4 1e-6] [--distances 0 1e4 1e6]

One body in ten is in a circular binary of that separation d, or the whole cluster of single bodies
lies at that distance D from the origin; eps = 0. Microseconds a block are the median of pieces of
about 100 blocks. To compare versions of the package, set PYTHONPATH.
"""

import argparse
import json
import statistics
import time

import numpy as np

from grape6py import Hermite, plummer

SEED = 7
PIECE = 100  # blocks
MOST_PIECES = 40


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
    first, second = slice(pairs), slice(members, n)
    pos, vel = np.vstack([pos, pos[first] - apart / 2]), np.vstack([vel, vel[first] - across / 2])
    pos[first] = pos[second] + apart
    vel[first] = vel[second] + across
    return np.full(n, 1 / n), pos, vel


def measured(bodies, options):
    """Microseconds a block, blocks, and the energy error at the end."""
    with Hermite(*bodies, eps=0.0, backend=options.backend) as cluster:
        energy = cluster.energy().total
        cluster.evolve(1.0, lambda c: c.stop() if c.blocks >= PIECE else None)
        piece, took = cluster.time, []
        deadline = time.perf_counter() + options.seconds
        while not took or (len(took) < MOST_PIECES and time.perf_counter() < deadline):
            blocks, began = cluster.blocks, time.perf_counter()
            cluster.evolve(cluster.time + piece)
            took.append((time.perf_counter() - began) / max(cluster.blocks - blocks, 1))
        return {
            "backend": cluster.backend,
            "us_per_block": 1e6 * statistics.median(took),
            "blocks": cluster.blocks,
            "steps": cluster.steps,
            "end": cluster.time,
            "error": abs(cluster.energy().total / energy - 1),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--seconds", type=float, default=1.0, help="for a case")
    parser.add_argument("--n", type=int, nargs="*", default=[1024, 8192])
    parser.add_argument("--separations", type=float, nargs="*", default=[1e-4, 1e-6])
    parser.add_argument("--far", type=int, default=4096, help="N of the clusters")
    parser.add_argument("--distances", type=float, nargs="*", default=[0, 1e4, 1e6])
    options = parser.parse_args()
    for n in options.n:
        for d in options.separations:
            case = {"what": "binaries", "n": n, "d": d, "D": 0.0}
            print(json.dumps(case | measured(with_binaries(n, d), options)), flush=True)
    for distance in options.distances:
        mass, pos, vel = plummer(options.far, seed=SEED)
        pos[:, 0] += distance
        case = {"what": "far", "n": options.far, "d": None, "D": distance}
        print(json.dumps(case | measured((mass, pos, vel), options)), flush=True)


if __name__ == "__main__":
    main()
