"""Times sums and Hermite integrations on ranks of MPI: lines of JSON.

    [mpirun -n P] python benchmarks/ranks.py [--backend cuda] [--direct N ...] [--hermite N:T ...]
                                             [--tree N ...] [--threads 1] [--times 3]

`direct`: forces of N bodies on all of them (`Grape6(comm=...)`), in seconds. `hermite`: an
integration of a Plummer sphere up to time T, with its blocks and steps. `tree`: `Tree(comm=...)`
and its forces, each time with the work of the time before, with the seconds of each stage of the
slowest rank, the largest share of the work over the mean, and what a rank gets of others in MB.
Without mpirun the same without ranks: a program of one process. The bits of the last forces tell
whether all are the same.
"""

import argparse
import hashlib
import json
import os
import statistics
import time

import numpy as np

from grape6py import Grape6, Hermite, Tree, plummer


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


def tree(comm, n, options):
    mass, pos, _ = plummer(n, seed=1)
    rank, size = (0, 1) if comm is None else (comm.rank, comm.size)
    rows = slice(rank * n // size, (rank + 1) * n // size)
    more, took, builds = {}, [], []
    for _ in range(options.times):
        if comm is not None:
            comm.Barrier()
        began = time.perf_counter()
        made = Tree(
            pos[rows], mass[rows], comm=comm, backend="cpu", threads=options.threads, **more
        )
        if comm is not None:
            comm.Barrier()
        built = time.perf_counter()
        made.forces(eps=0.01, theta=0.7)
        if comm is not None:
            comm.Barrier()
            more["work"] = made.work
        took.append(time.perf_counter() - began)
        builds.append(built - began)
    found = {"what": "tree", "n": n, "seconds": statistics.median(took),
             "build": statistics.median(builds)}  # fmt: skip
    if comm is not None:
        shared = made._tree
        domain = shared._domain
        work = np.array(comm.allgather(shared._work * len(domain.pos)))
        each = comm.allgather(domain.seconds)
        found["imbalance"] = work.max() / work.mean()
        found["stages"] = {name: round(max(s[name] for s in each), 4) for name in domain.seconds}
        found["received_MB"] = max(comm.allgather(domain.bytes)) / 1e6
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--direct", type=int, nargs="*", default=[])
    parser.add_argument("--tree", type=int, nargs="*", default=[])
    parser.add_argument("--hermite", nargs="*", default=[], metavar="N:T")
    options = parser.parse_args()
    comm = communicator()
    tasks = [lambda n=n: direct(comm, n, options) for n in options.direct]
    tasks += [lambda n=n: tree(comm, n, options) for n in options.tree]
    tasks += [lambda of=of: hermite(comm, int(of.split(":")[0]), float(of.split(":")[1]), options)
              for of in options.hermite]  # fmt: skip
    for task in tasks:
        found = task()
        if comm is None or comm.rank == 0:
            size = 0 if comm is None else comm.size
            print(json.dumps({"ranks": size, **found}), flush=True)


if __name__ == "__main__":
    main()
