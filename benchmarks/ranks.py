"""Times sums and Hermite integrations on ranks of MPI: lines of JSON.

    [mpirun -n P] python benchmarks/ranks.py [--backend cuda] [--direct N ...] [--hermite N:T ...]
                                             [--tree N ...] [--threads 1] [--times 3]

`direct`: forces of N bodies on all of them, in seconds. `hermite`: a Plummer sphere up to time T.
`tree`: a tree and its forces of an accuracy, each time with the work of the time before, with the
seconds of each stage of the slowest rank, the largest share of the work over the mean, and what a
rank gets of others; on GPUs with CuPy's arrays. Without mpirun the same in one process.
"""

import argparse
import hashlib
import json
import os
import statistics
import time

import numpy as np
import tree_models
from tree_models import EPS

from grape6py import Grape6, Hermite, Tree, plummer
from grape6py.ranks.stages import Stages


def barrier(comm):
    if comm is not None:
        comm.Barrier()
    return time.perf_counter()


def bits(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:12]


def direct(comm, rank, size, n, options):
    rows = slice(rank * n // size, (rank + 1) * n // size)
    mass, pos, vel = (array[rows] for array in plummer(n, seed=1))
    with Grape6(comm=comm, backend=options.backend, threads=options.threads) as grape:
        grape.set_particles(mass, pos, vel)
        grape.forces(pos[:64], eps=0.01)  # kernels are loaded
        took = []
        for _ in range(options.times):
            began = barrier(comm)
            found = grape.forces(eps=0.01)
            took.append(barrier(comm) - began)
        acc = [found.acc] if comm is None else comm.gather(found.acc)
        seconds, name = statistics.median(took), grape.backend
    return rank == 0 and {"n": n, "seconds": seconds, "bits": bits(np.concatenate(acc)),
                          "backend": name}  # fmt: skip


def hermite(comm, rank, size, case, options):
    n, end = int(case.split(":")[0]), float(case.split(":")[1])
    settings = {"eps": 4 / n**0.5 / 64, "backend": options.backend, "threads": options.threads}
    with Hermite(*plummer(min(n, 32768), seed=2), **settings, comm=comm) as other:
        other.evolve(1 / 1024)  # kernels are loaded, ranks connected
    cluster = Hermite(*plummer(n, seed=1), **settings, comm=comm)
    began = time.perf_counter()
    cluster.evolve(end)
    took = time.perf_counter() - began
    return {"n": n, "end": end, "seconds": took, "blocks": cluster.blocks, "steps": cluster.steps,
            "forces": cluster.force_seconds, "bits": bits(cluster.pos),
            "backend": cluster.backend}  # fmt: skip


def median_error(xp, comm, mass, pos, acc, targets=256):
    """Of the accelerations of some of the first rank's bodies, beside direct sums."""
    at = pos[:targets]
    if comm is not None:
        at = xp.asarray(comm.bcast(at if xp is np else at.get()))
    exact = np.zeros((targets, 3))
    for k in range(targets):
        d = pos - at[k]
        s2 = (d * d).sum(axis=1) + EPS * EPS
        exact[k] = [float(x) for x in (d * (mass / (s2 * xp.sqrt(s2)))[:, None]).sum(axis=0)]
    exact = exact if comm is None else sum(comm.allgather(exact))
    found = acc[:targets] if xp is np else acc[:targets].get()
    error = np.linalg.norm(found - exact, axis=1) / np.linalg.norm(exact, axis=1)
    return float(np.median(error))


def tree(comm, rank, size, n, options):
    """As a program that moves bodies: the bound that gives an accuracy is found once. Bodies are
    made where they are."""
    xp, backend = np, {"backend": "cpu", "threads": options.threads}
    if options.backend.startswith("cuda"):
        import cupy as xp

        xp.cuda.Device(rank % xp.cuda.runtime.getDeviceCount() if comm else 0).use()
        backend = {}
    count = (rank + 1) * n // size - rank * n // size
    pos, mass = tree_models.plummer(xp, count, rank)[0], xp.full(count, 1 / n)
    walk = {"eps": EPS, "order": 3}

    def at_once():
        if xp is not np:
            xp.cuda.Device().synchronize()
        return barrier(comm)

    made = Tree(mass, pos, comm=comm, **backend)
    if options.settled and comm is not None:
        pos, mass = map(made._tree._domain.way.there, (pos, mass))
        made = Tree(mass, pos, comm=comm, **backend)
    acc = made.forces(accuracy=options.accuracy, **walk).acc
    last = xp.sqrt((acc * acc).sum(axis=1))
    bound = options.bound or made.bound(options.accuracy, last_acc=last, **walk)
    took, builds = [], []
    for _ in range(options.times):
        more = {"work": made.work} if hasattr(made._tree, "work") else {}
        made.close()
        began = at_once()
        made = Tree(mass, pos, comm=comm, **backend, **more)
        builds.append(at_once() - began)
        acc = made.forces(bound=bound, last_acc=last, **walk).acc
        took.append(at_once() - began)
    found = {"n": n, "seconds": statistics.median(took), "build": statistics.median(builds),
             "bound": bound, "error": median_error(xp, comm, mass, pos, acc)}  # fmt: skip
    if xp is not np:
        found["GB"] = xp.get_default_memory_pool().total_bytes() / 1e9
    if comm is not None:
        domain = made._tree._domain
        work = np.array(comm.allgather(made._tree._work * len(domain.pos)))
        each = comm.allgather(made._tree.seconds)
        found["imbalance"] = work.max() / work.mean()
        found["stages"] = {name: round(max(s[name] for s in each), 4) for name in each[0]}
        found["received_MB"] = max(comm.allgather(domain.bytes)) / 1e6
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--accuracy", type=float, default=5e-4)
    parser.add_argument("--bound", type=float, help="the same for all numbers of ranks")
    parser.add_argument("--settled", action="store_true",
                        help="bodies are on the ranks that have their domains")  # fmt: skip
    parser.add_argument("--profile", action="store_true", help="stages wait for each other")
    tasks = {"direct": (direct, int), "tree": (tree, int), "hermite": (hermite, str)}
    for name, (_, kind) in tasks.items():
        parser.add_argument(f"--{name}", type=kind, nargs="*", default=[])
    options = parser.parse_args()
    Stages.exact = options.profile
    comm = None
    if {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"} & os.environ.keys():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
    rank, size = (0, 1) if comm is None else (comm.rank, comm.size)
    for name, (task, _) in tasks.items():
        for case in getattr(options, name):
            found = task(comm, rank, size, case, options)
            if rank == 0:
                ranks = 0 if comm is None else size
                print(json.dumps({"ranks": ranks, "what": name, **found}), flush=True)


if __name__ == "__main__":
    main()
