"""python benchmarks/encounters.py N SEED T: a Plummer sphere without softening collapses."""

import sys
import time

from grape6py import Hermite, diagnostics, plummer

n, seed, end = map(int, sys.argv[1:4])
cluster = Hermite(*plummer(n, seed=seed), backend="cpu", threads=1)
start = cluster.energy().total
while cluster.time < end:
    cluster.evolve(cluster.time + 10)
    centre = diagnostics.density_centre(cluster.mass, cluster.pos)
    radii = cluster.lagrangian_radii([0.01, 0.1, 0.5], centre)
    change = cluster.energy().total / start - 1
    print(cluster.time, *radii, f"{change:.1e}", f"{time.process_time():.0f} s", flush=True)
