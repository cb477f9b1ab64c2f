"""What the ranks of a test do: `mpirun -n P python rank_programs.py NAME [argument ...]`.

Rank 0 prints lines of JSON; tests compare those of several numbers of ranks.
"""

import hashlib
import json
import os
import sys

import numpy as np
from astropy import units
from mpi4py import MPI

from grape6py import Grape6, Hermite, fields, partial, plummer, two_body
from grape6py.diagnostics import potential
from grape6py.errors import Grape6Error
from grape6py.events import Encounter, Escape, WallTime

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


# ---- integrations ------------------------------------------------------------------------------


def of_cluster(cluster):
    """Bits that must be the same on all ranks, and for any number of them."""
    found = hashlib.sha256()
    for array in (cluster.mass, cluster.pos, cluster.vel, cluster.acc, cluster.jerk, cluster.ids):
        found.update(array.tobytes())
    energy = cluster.energy()
    same = found.hexdigest()[:16], energy.total.hex(), cluster.steps, cluster.blocks
    assert COMM.allgather(same) == [same] * SIZE
    return [*same, cluster.time, cluster.energy_change.hex()]


def made(shared, n=1500, **options):
    more = {"comm": COMM} if int(shared) else {}
    settings = {"eps": 1 / 64, "backend": "cpu", "threads": 1} | options
    return Hermite(*plummer(n, seed=4), **settings, **more)


def integrations(shared):
    """Runs of all kinds, in the ways in which they are looked at."""
    cluster = made(shared)
    times = []
    cluster.evolve(0.0625, lambda c: times.append(c.time), every=0.015625)
    say(what="blocks", bits=of_cluster(cluster), times=times)
    cluster.evolve(0.1)  # not on the grid
    say(what="off the grid", bits=of_cluster(cluster))
    cluster.step()
    say(what="step", bits=of_cluster(cluster))
    say(what="double", bits=of_cluster(evolved(made(shared, 1100, precision="double"), 0.05)))
    say(what="passes", bits=of_cluster(evolved(made(shared, 1100, passes=2, dt=2**-7), 0.0625)))
    few = Hermite(*two_body(0.5), backend="cpu", **({"comm": COMM} if int(shared) else {}))
    say(what="two", bits=of_cluster(evolved(few, 1.0)))
    mass, pos, vel = plummer(40, seed=4)
    none = Hermite(mass * 0, pos, vel, backend="cpu", **({"comm": COMM} if int(shared) else {}))
    evolved(none, 0.25, events=Encounter(0.02, lambda c, e: None))
    say(what="massless", bits=of_cluster(none), met=[[e.time, *e.ids] for e in none.events])
    field = fields.plummer(1.0, 2.0) + fields.rotation(0.1)
    say(what="field", bits=of_cluster(evolved(made(shared, field=field), 0.05)))
    orbit = [3.0, 0, 0, 0, 0.5, 0]
    frame = made(shared, 1100, field=fields.nfw(1.0, 2.0), orbit=orbit)
    say(what="frame", bits=of_cluster(evolved(frame, 0.05)))
    function = made(shared, 1100, field=lambda t, pos, vel: (-pos, -vel, (pos**2).sum(axis=1) / 2))
    say(what="function", bits=of_cluster(evolved(function, 0.05)))


def evolved(cluster, t, **options):
    cluster.evolve(t, **options)
    return cluster


def changes(shared):
    """Bodies that come and go, and events."""
    cluster = made(shared)
    cluster.evolve(0.03)
    cluster.add([0.1, 0], [[2, 0, 0], [0, 3, 0]], [[0, 0.5, 0], [0.5, 0, 0]])
    cluster.remove([5, 700])
    cluster.kick(3, [0.5, 0, 0])
    cluster.set_mass(10, 0.01)
    cluster.merge([20, 21])
    cluster.evolve(0.06)
    say(what="changes", bits=of_cluster(cluster))
    close = made(shared, 1100)
    event = close.evolve(1.0, events=Encounter(6e-3))
    say(what="encounter", bits=of_cluster(close), event=[event.time.hex(), list(event.ids)])
    merging = made(shared, 1100)
    merging.evolve(0.05, events=[Encounter(3e-3, "merge"), Escape(3.0, "remove")])
    say(what="merging", bits=of_cluster(merging), n=len(merging))
    stopped = made(shared, 1100)
    event = stopped.evolve(5.0, events=WallTime(0.2))
    assert event.kind == "wall time"
    of_cluster(stopped)
    told = made(shared, 1100)
    told.evolve(1.0, lambda c: c.stop() if RANK == SIZE - 1 and c.time > 0.01 else None)
    assert 0.01 < told.time < 0.02
    of_cluster(told)


def restarts(shared, path):
    """A run that goes on from a file, and one that is copied."""
    if os.path.exists(path):
        cluster = Hermite.load(path, **({"comm": COMM} if int(shared) else {}))
    else:
        cluster = evolved(made(shared), 0.03)
        cluster.save(path)
        cluster = cluster.copy()
    cluster.evolve(0.05)
    say(bits=of_cluster(cluster), run=cluster.run_id == Hermite.load(path).run_id)


def broken(path):
    """What fails on one rank fails on all, and the bodies are as before."""
    last = RANK == SIZE - 1
    cluster, twin = made(1, 1100), made(1, 1100)
    for each in (cluster, twin):
        each.evolve(0.005)

    def make(**options):
        return lambda: made(1, 100, **({"precision": "grape"} | options))

    def field(t, pos, vel):
        if last and t > 0.007:
            raise ValueError("a field of one rank fails")
        return np.zeros_like(pos), np.zeros_like(pos), np.zeros(len(pos))

    def fail(c):
        if last and c.time > 0.007:
            raise KeyError("a callback")

    def fail_at_last(c):
        if last:
            raise KeyError("the last one")

    there = f"{path}/a.h5"
    cluster.save(there)
    calls = {
        "folder": lambda: cluster.save(f"{path}/no/folder/a.h5"),
        "no file": lambda: Hermite.load(f"{path}/b.h5" if last else there, comm=COMM),
        "bodies": lambda: Hermite(*plummer(100, seed=RANK), comm=COMM),
        "number": lambda: Hermite(*plummer(100 + last, seed=1), comm=COMM),
        "eta": make(eta=0.01 if last else 0.02),
        "no eta": make(eta=-1 if last else 0.02),
        "dt_max": make(dt_max=0.25 if last else None),
        "backend": make(backend="nothing" if last else "cpu"),
        "t": lambda: cluster.evolve(0.02 if last else 0.01),
        "t past": lambda: cluster.evolve(0.0 if last else 0.01),
        "t no number": lambda: cluster.evolve(np.nan if last else 0.01),
        "every": lambda: cluster.evolve(0.01, print, every=0.002 if last else 0.001),
        "no every": lambda: cluster.evolve(0.01, print, every=None if last else 0.001),
        "events": lambda: cluster.evolve(0.01, events=Escape(20.0 + last)),
        "event": lambda: cluster.evolve(0.01, events=[WallTime(60.0)] * last),
        "kick of one": lambda: cluster.kick(3, [1, 0, 0]) if last else cluster.evolve(0.01),
        "kick or step": lambda: cluster.kick(3, [1, 0, 0]) if last else cluster.step(),
        "kick": lambda: cluster.kick(3, [1.0 + last, 0, 0]),
        "kick of other": lambda: cluster.kick(3 + last, [1.0, 0, 0]),
        "kick no number": lambda: cluster.kick(3, [np.nan if last else 1.0, 0, 0]),
        "add": lambda: cluster.add(1.0, [1, 2, 3], [0, 0] if last else [0, 0, 0]),
        "remove": lambda: cluster.remove(9999 if last else 9),
        "merge": lambda: cluster.merge([1] if last else [1, 2]),
        "set_mass": lambda: cluster.set_mass(3, 1.0 + last),
        "callback": lambda: twin.copy().evolve(0.01, fail),
        "last callback": lambda: twin.copy().evolve(0.01, fail_at_last, every=0.01),
    }
    for name, call in calls.items():
        say(call=name, texts=COMM.gather(complaint(call)))
        assert cluster.time == 0.005
    wrong = made(1, 1100, field=field)
    say(call="field", texts=COMM.gather(complaint(lambda: wrong.evolve(1.0))))
    assert COMM.allgather(wrong.blocks) == [wrong.blocks] * SIZE
    seen = []
    cluster.evolve(0.01, (lambda c: seen.append(c.time)) if RANK == 0 else None)
    twin.evolve(0.01)
    cluster.evolve(0.0125, seen.append if last else None, every=0.001)
    twin.evolve(0.0125)
    assert len(seen) == (3 if last else len(seen))
    assert seen or 0 < RANK < SIZE - 1
    for each in (cluster, twin):
        each.kick(3, [0.5, 0, 0])
        each.evolve(0.02)
    assert of_cluster(cluster) == of_cluster(twin)


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
