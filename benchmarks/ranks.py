"""Times sums and Hermite integrations on ranks of MPI: lines of JSON.

    [mpirun -n P] python benchmarks/ranks.py [--backend cuda] [--direct N ...] [--hermite N:T ...]
                                             [--tree N ...] [--threads 1] [--times 3]

`direct`: forces of N bodies on all of them (`Grape6(comm=...)`), in seconds. `hermite`: an
integration of a Plummer sphere up to time T, with its blocks and steps. `tree`: `Tree(comm=...)`
and its forces of an accuracy, each time with the work of the time before, with the seconds of each
stage of the slowest rank, the largest share of the work over the mean, and what a rank gets of
others in MB; on GPUs with CuPy's arrays, on all that GRAPE6_DEVICES names without ranks.
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
from grape6py.ranks.stages import Stages

EPS = 1e-4


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
    with Hermite(*plummer(min(n, 32768), seed=2), **settings, comm=comm) as other:
        other.evolve(1 / 1024)  # kernels are loaded, ranks connected
    cluster = Hermite(*model, **settings, comm=comm)
    began = time.perf_counter()
    cluster.evolve(end)
    took = time.perf_counter() - began
    return {"what": "hermite", "n": n, "end": end, "seconds": took, "blocks": cluster.blocks,
            "steps": cluster.steps, "forces": cluster.force_seconds, "bits": bits(cluster.pos),
            "backend": cluster.backend}  # fmt: skip


def sphere(xp, n, count, seed):
    """Masses and positions of some of the n bodies of a Plummer sphere, made where they are."""
    rng = xp.random.default_rng(seed)
    radius = (rng.uniform(1e-9, 0.999, count) ** (-2 / 3) - 1) ** -0.5
    z, angle = rng.uniform(-1, 1, count), rng.uniform(0, 2 * np.pi, count)
    flat = xp.sqrt(1 - z * z)
    pos = radius[:, None] * xp.stack([flat * xp.cos(angle), flat * xp.sin(angle), z], axis=1)
    return xp.full(count, 1 / n), pos


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


def tree(comm, n, options):
    """As a program that moves bodies: the bound that gives an accuracy is found once."""
    rank, size = (0, 1) if comm is None else (comm.rank, comm.size)
    count = (rank + 1) * n // size - rank * n // size
    xp = np
    if options.backend.startswith("cuda"):
        import cupy as xp

        xp.cuda.Device(rank % xp.cuda.runtime.getDeviceCount() if comm else 0).use()
    finish = (lambda: None) if xp is np else xp.cuda.Device().synchronize
    mass, pos = sphere(xp, n, count, rank)
    backend = {} if xp is not np else {"backend": "cpu", "threads": options.threads}
    walk = {"eps": EPS, "order": 3}

    def at_once():
        finish()
        if comm is not None:
            comm.Barrier()
        return time.perf_counter()

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
        built = at_once()
        acc = made.forces(bound=bound, last_acc=last, **walk).acc
        took.append(at_once() - began)
        builds.append(built - began)
    found = {"what": "tree", "n": n, "seconds": statistics.median(took),
             "build": statistics.median(builds), "bound": bound,
             "error": median_error(xp, comm, mass, pos, acc)}  # fmt: skip
    if xp is not np:
        pool = xp.get_default_memory_pool()
        found["GB"] = pool.total_bytes() / 1e9
    if comm is not None:
        shared = made._tree
        domain = shared._domain
        work = np.array(comm.allgather(shared._work * len(domain.pos)))
        each = comm.allgather(shared.seconds)
        found["imbalance"] = work.max() / work.mean()
        found["stages"] = {name: round(max(s[name] for s in each), 4) for name in each[0]}
        found["received_MB"] = max(comm.allgather(domain.bytes)) / 1e6
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--direct", type=int, nargs="*", default=[])
    parser.add_argument("--accuracy", type=float, default=5e-4)
    parser.add_argument("--settled", action="store_true",
                        help="bodies are on the ranks that have their domains")  # fmt: skip
    parser.add_argument("--profile", action="store_true", help="stages wait for each other")
    parser.add_argument("--bound", type=float, help="the same for all numbers of ranks")
    parser.add_argument("--tree", type=int, nargs="*", default=[])
    parser.add_argument("--hermite", nargs="*", default=[], metavar="N:T")
    options = parser.parse_args()
    Stages.exact = options.profile
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
