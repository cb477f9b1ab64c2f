"""What the ranks of a test do: `mpirun -n P python rank_programs.py NAME [argument ...]`.

Rank 0 prints lines of JSON; tests compare those of several numbers of ranks.
"""

import hashlib
import json
import sys

import numpy as np
from astropy import units
from mpi4py import MPI

from grape6py import Grape6, partial, plummer
from grape6py.diagnostics import potential
from grape6py.errors import Grape6Error

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()
FAR = np.array([1000.0, 0, -30])


def say(**found):
    if RANK == 0:
        print(json.dumps(found), flush=True)


def mine(n, is_odd=True):
    """Which of n rows this rank gives: no even shares, and sometimes none."""
    cuts = np.linspace(0, n, SIZE + 1).astype(int)
    if is_odd:
        cuts[1:-1] = np.sort(np.random.default_rng(SIZE).integers(0, n + 1, SIZE - 1))
    return slice(cuts[RANK], cuts[RANK + 1])


def bits(*arrays):
    """A number made of the bits of all ranks' rows, one rank's behind the other's."""
    found = hashlib.sha256()
    for array in arrays:
        parts = COMM.gather(array)
        if RANK == 0:
            found.update(np.concatenate(parts).tobytes())
    return found.hexdigest()[:16]


def of_forces(forces):
    """Bits of all that they have."""
    found = [bits(forces.acc, forces.jerk, forces.pot)]
    if forces.nearest is not None:
        found.append(bits(forces.nearest, forces.distance))
    if forces.neighbours is not None:
        lengths = np.array([len(row) for row in forces.neighbours], np.int64)
        found.append(bits(lengths, np.concatenate([*forces.neighbours, np.empty(0, np.int32)])))
    return found


def far_and_uneven(n):
    """Bodies of all masses, far from the origin."""
    rng = np.random.default_rng(1)
    _, pos, vel = plummer(n, seed=3)
    return rng.random(n), pos + FAR, vel + np.array([0, 5.0, 0])


def sums(n, precision, shared):
    """Forces of all kinds; on one rank with `shared` 0 those of a session without ranks."""
    n = int(n)
    mass, pos, vel = far_and_uneven(n)
    comm = COMM if int(shared) else None
    with Grape6(comm=comm, backend="cpu", precision=precision, threads=1) as grape:
        rows = mine(n)
        grape.set_particles(mass[rows], pos[rows], vel[rows])
        say(what="all", bits=of_forces(grape.forces(eps=0.01, nn=True, h=0.3)), n=grape.n)
        targets = np.random.default_rng(5).normal(size=(77, 3)) + FAR
        few = mine(77)
        say(what="foreign", bits=of_forces(grape.forces(targets[few], eps=0.01, h=0.3, nn=True)))
        more = {"same": True} if comm else {}
        found = grape.forces(targets, eps=0.01, nn=True, h=0.3, **more)
        if RANK:  # each rank has all
            found = found._replace(**{k: None if v is None else v[:0] for k, v in
                                      found._asdict().items() if k != "neighbours"},
                                   neighbours=[])  # fmt: skip
        say(what="same", bits=of_forces(found))
        address = np.random.default_rng(6).permutation(n)[: n // 3]
        some = mine(len(address))
        changed = address[some]
        grape.set_particles(mass[changed], 2 * pos[changed], vel[changed], time=0.25,
                            acc=pos[changed], jerk=vel[changed], address=changed)  # fmt: skip
        say(what="changed", bits=of_forces(grape.forces(eps=0.01, time=0.5)), time=grape.time)
        labels = np.arange(n)[::-1]
        grape.set_particles(mass[rows], pos[rows], index=labels[rows])
        say(what="at rest", bits=of_forces(grape.forces(time=3.0, nn=True)))
        few = mine(n // 2)
        grape.set_particles(mass[few], pos[few], vel[few], time=-1.0)
        say(what="fewer", bits=of_forces(grape.forces(nn=True)), n=grape.n, time=grape.time)


def nobody():
    """No bodies at all, and ranks without any."""
    with Grape6(comm=COMM, backend="cpu") as grape:
        grape.set_particles(np.zeros(0), np.zeros((0, 3)))
        found = grape.forces(nn=True, h=1.0)
        assert found.acc.shape == (0, 3)
        n = 3 if RANK == SIZE - 1 else 0
        grape.set_particles(np.ones(n), np.arange(9.0).reshape(3, 3)[:n])
        found = grape.forces(np.ones((RANK, 3)), nn=True, h=100.0)
        assert len(found.acc) == RANK
        assert all(sorted(row) == [0, 1, 2] for row in found.neighbours)
        say(n=grape.n)


def errors():
    """An error of one rank is one of all, and nothing is lost."""
    mass, pos, vel = far_and_uneven(3000)
    rows = mine(3000, is_odd=False)
    wrong = np.array(pos[rows])
    last = RANK == SIZE - 1
    if last:
        wrong[0] = np.nan
    with Grape6(comm=COMM, backend="cpu", threads=1) as grape:
        grape.set_particles(mass[rows], pos[rows], vel[rows])
        before = of_forces(grape.forces())
        calls = [
            lambda: grape.set_particles(mass[rows], wrong, vel[rows]),
            lambda: grape.set_particles(mass[:1], pos[:1], address=[3000 if last else 0]),
            lambda: grape.set_particles(mass[:1], pos[:1], index=[7] if last else None),
            lambda: grape.forces(vel=vel, index=None),
            lambda: grape.forces(eps=0.1 if last else 0.2),
            lambda: grape.forces(eps=-1.0 if last else 0.2),
            lambda: grape.forces(eps=np.nan if last else 0.2),
            lambda: grape.forces(eps=1e200 if last else 0.2),
            lambda: grape.forces(time=0.5 if last else 0.25),
            lambda: grape.forces(time=np.inf if last else 0.25),
            lambda: grape.forces(time=0.25 if last else None),
            lambda: grape.forces(None if last else pos),
            lambda: grape.forces(pos[: 2 + last], same=True),
            lambda: grape.forces(pos[last : 2 + last], same=True),
            lambda: grape.forces(same=True),
            lambda: grape.forces(pos, h=[1.0] if last else 1.0),
            lambda: grape.forces() if last else grape.set_particles(mass[rows], pos[rows]),
            lambda: Grape6(comm=COMM, backend="nothing" if last else "cpu"),
            lambda: potential(mass, pos * (1 + last), comm=COMM),
            lambda: potential(mass, pos * units.m if last else pos, comm=COMM),
        ]
        for call in calls:
            say(texts=COMM.gather(complaint(call)))
        assert of_forces(grape.forces()) == before
        if last:
            grape.close()
        say(texts=COMM.gather(complaint(grape.forces)))


def complaint(call):
    """What a call says that must fail."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def partials():
    """Partial sums of a decomposition of its own."""
    mass, pos, vel = plummer(3000, seed=8)
    with Grape6(backend="cpu") as all_, Grape6(backend="cpu") as part:
        all_.set_particles(mass, pos, vel)
        mine = np.arange(3000) // 1024 % SIZE == RANK  # whole blocks; some ranks have none
        part.set_particles(mass[mine], pos[mine], vel[mine])
        part.scale = all_.scale
        rows = partial.merged_over(COMM, part.partial(pos[:90] + 0.1, eps=0.01))
        right = all_.forces(pos[:90] + 0.1, eps=0.01)
        same = [np.array_equal(a, b) for a, b in zip(partial.forces(rows)[:3], right, strict=False)]
        try:
            partial.merged_over(COMM, rows[: 80 + (RANK == 0)])
            text = None
        except Grape6Error as error:
            text = str(error)
    COMM.Barrier()
    say(same=same, text=text)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
