"""Times sums and Hermite integrations on ranks of MPI: lines of JSON.

    [mpirun -n P] python benchmarks/ranks.py [--backend cuda] [--direct N ...] [--hermite N:T ...]
                                             [--threads 1] [--times 3]

`direct`: forces of N bodies on all of them (`Grape6(comm=...)`), in seconds. `hermite`: an
integration of a Plummer sphere up to time T, with its blocks and steps. Without mpirun the same
without ranks: a program of one process. The bits of the last forces tell whether all are the same.
"""

import argparse
import hashlib
import json
import os
import statistics
import time

import numpy as np

from grape6py import Grape6, Hermite, plummer


def communicator():
    """That of mpirun; None without it."""
    if not any(name in os.environ for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")):
        return None
    from mpi4py import MPI

    return MPI.COMM_WORLD


def bits(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:12]


def direct(comm, n, options):
    mass, pos, vel = plummer(n, seed=1)
    rank, size = (0, 1) if comm is None else (comm.rank, comm.size)
    rows = slice(rank * n // size, (rank + 1) * n // size)
    with Grape6(comm=comm, backend=options.backend, threads=options.threads) as grape:
        grape.set_particles(mass[rows], pos[rows], vel[rows])
        grape.forces(pos[rows][:64], eps=0.01)  # kernels are loaded
        took = []
        for _ in range(options.times):
            if comm is not None:
                comm.Barrier()
            began = time.perf_counter()
            found = grape.forces(eps=0.01)
            if comm is not None:
                comm.Barrier()
            took.append(time.perf_counter() - began)
        acc = found.acc if comm is None else comm.gather(found.acc)
        name = grape.backend
    if rank == 0:
        acc = acc if comm is None else np.concatenate(acc)
        return {"what": "direct", "n": n, "seconds": statistics.median(took), "bits": bits(acc),
                "backend": name}  # fmt: skip
    return None


def hermite(comm, n, end, options):
    model = plummer(n, seed=1)
    settings = {"eps": 4 / n**0.5 / 64, "backend": options.backend, "threads": options.threads}
    cluster = Hermite(*model, **settings, comm=comm)
    began = time.perf_counter()
    cluster.evolve(end)
    took = time.perf_counter() - began
    return {"what": "hermite", "n": n, "end": end, "seconds": took, "blocks": cluster.blocks,
            "steps": cluster.steps, "forces": cluster.force_seconds, "bits": bits(cluster.pos),
            "backend": cluster.backend}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--direct", type=int, nargs="*", default=[])
    parser.add_argument("--hermite", nargs="*", default=[], metavar="N:T")
    options = parser.parse_args()
    comm = communicator()
    tasks = [lambda n=n: direct(comm, n, options) for n in options.direct]
    tasks += [lambda of=of: hermite(comm, int(of.split(":")[0]), float(of.split(":")[1]), options)
              for of in options.hermite]  # fmt: skip
    for task in tasks:
        found = task()
        if comm is None or comm.rank == 0:
            size = 0 if comm is None else comm.size
            print(json.dumps({"ranks": size, **found}), flush=True)


if __name__ == "__main__":
    main()
