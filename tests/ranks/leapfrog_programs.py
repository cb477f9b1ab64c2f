"""What the ranks of a test of Leapfrog do: `mpirun -n P python leapfrog_programs.py NAME ...`.

Each rank has its own bodies, some perhaps none; with `shared` 0 one process without ranks has all.
"""

import os
import resource
import signal
import sys
import warnings
from pathlib import Path

import numpy as np

from grape6py import Leapfrog, archive, fields, plummer, read_snapshot, uniform
from grape6py.errors import AccuracyWarning
from grape6py.events import EnergyError, Escape, WallTime
from grape6py.files.storage import atomic_files
from rank_programs import COMM, RANK, SIZE, bits, complaint, mine, say

N = 700
DIRECT = {"backend": "cpu", "eps": 1 / 32, "threads": 1}
TREE = {"backend": "cpu-tree", "eps": 1 / 32, "threads": 1, "theta": 0.5}
LAST = RANK == SIZE - 1
warnings.simplefilter("ignore", AccuracyWarning)


def made(shared, rows=None, bodies=None, **options):
    """An integration of each rank's rows, or by one process of all."""
    if bodies is None:
        bodies = plummer(N, seed=4)
    rows = mine(len(bodies[0])) if rows is None else rows
    comm = COMM if int(shared) else None
    own = (array[rows] for array in bodies)
    return Leapfrog(*own, **(DIRECT | options), **({} if comm is None else {"comm": comm}))


def of_galaxy(galaxy):
    """What must be the same on all ranks, and for any number of them."""
    arrays = ("mass", "pos", "vel", "acc", "jerk", "ids", "step_sizes")
    found = [bits(getattr(galaxy, name)) for name in arrays] + [bits(galaxy.potential())]
    sums = [galaxy.energy().total, galaxy.energy_change, galaxy.virial_ratio(), galaxy.time,
            *galaxy.momentum(), *galaxy.angular_momentum(), *galaxy.centre_of_mass(),
            *galaxy.lagrangian_radii(), float(galaxy.lagrangian_radii(0.3, [0, 1, 0]))]  # fmt: skip
    same = [float(x).hex() for x in sums] + [galaxy.steps, galaxy.blocks, galaxy.n]
    assert COMM.allgather(same) == [same] * SIZE
    return found + same


def evolved(galaxy, t, **options):
    galaxy.evolve(t, **options)
    return galaxy


def direct(shared):
    """Runs of all kinds by direct sums."""
    galaxy = made(shared, dt=2**-6)
    times = []
    galaxy.evolve(0.0625, lambda g: times.append((g.time, g.pos.shape[1])), every=0.03125)
    say(what="shared", bits=of_galaxy(galaxy), times=times)
    say(what="off the grid", bits=of_galaxy(evolved(galaxy, 0.07)))
    blocks = made(shared, dt_max=2**-4, eta=0.005)
    say(what="blocks", bits=of_galaxy(evolved(blocks, 0.125)))
    blocks.step()
    say(what="step", bits=of_galaxy(blocks))
    say(what="off", bits=of_galaxy(evolved(blocks, blocks.time + 1e-3)))
    double = made(shared, dt_max=2**-4, eta=0.005, precision="double")
    say(what="double", bits=of_galaxy(evolved(double, 0.0625)))
    mass, pos, vel = plummer(N, seed=4)
    mass[::3] = 0
    some = made(shared, bodies=(mass, pos, vel), dt_max=2**-4, eta=0.005, G=2.0)
    say(what="massless", bits=of_galaxy(evolved(some, 0.0625)))
    for field in (fields.plummer(1.0, 2.0) + fields.rotation(0.1),
                  lambda t, pos, vel: (-pos, -vel, (pos**2).sum(axis=1) / 2)):  # fmt: skip
        say(what="field", bits=of_galaxy(evolved(made(shared, dt=2**-6, field=field), 0.04)))
    frame = made(shared, dt=2**-6, field=fields.nfw(1.0, 2.0), orbit=[3.0, 0, 0, 0, 0.5, 0])
    say(what="frame", bits=of_galaxy(evolved(frame, 0.04)))
    for steps in ({"dt": 2**-7}, {"dt_max": 2**-6, "eta": 0.001}):
        open_ = evolved(made(shared, boundary=2.0, **steps), 0.13)
        say(what="boundary", bits=of_galaxy(open_))
        assert 0 < open_.n < N


def changes(shared):
    """Bodies that come and go, and events. New ones are the last rank's."""
    galaxy = made(shared, dt_max=2**-4, eta=0.005)
    galaxy.evolve(0.03)
    new = [0.1, 0.0], [[2, 0, 0], [0, 3, 0]], [[0, 0.5, 0], [0.5, 0, 0]]
    ids = galaxy.add(*(new if LAST else ([], np.zeros((0, 3)), np.zeros((0, 3)))))
    assert ids.tolist() == [N, N + 1] * LAST
    galaxy.remove([k for k in (5, 600, N + 1) if k in galaxy.ids])
    galaxy.kick([k for k in (3, 77) if k in galaxy.ids], [0.5, 0, 0])
    galaxy.set_mass([k for k in (10,) if k in galaxy.ids], 0.01)
    galaxy.evolve(0.06)
    say(what="changes", bits=of_galaxy(galaxy))
    galaxy.move_to_centre_of_mass()
    say(what="centre", bits=of_galaxy(evolved(galaxy, 0.1)))
    next_ = galaxy.add(*(array[:1] for array in galaxy.particles()), ids=[9000 + RANK][: galaxy.n])
    assert len(next_) == len(galaxy.particles().mass[:1])
    orbit = {"field": fields.nfw(1.0, 2.0), "orbit": [3.0, 0, 0, 0, 0.5, 0]}
    for escape, more in ((Escape(4.0), {}), (Escape(4.5, centre="density"), {}),
                         (Escape("tidal", factor=1.4, centre="density"), orbit)):  # fmt: skip
        few = made(shared, dt=2**-6, **more)
        few.evolve(0.125, events=escape)
        events = [(e.kind, e.time.hex(), list(e.ids)) for e in few.events]
        assert 0 < len(events) == N - few.n
        say(what="escape", bits=of_galaxy(few), events=events)
    error = made(shared, dt=2**-4, eps=1e-3)
    event = error.evolve(2.0, events=EnergyError(1e-5))
    say(what="energy", bits=of_galaxy(error), event=event.value.hex())
    stopped = made(shared, dt=2**-6)
    assert stopped.evolve(100.0, events=WallTime(0.1)).kind == "wall time"
    of_galaxy(stopped)
    stopped = made(shared, dt_max=2**-6)
    stopped.evolve(1.0, lambda g: g.stop() if LAST and g.time > 0.01 else None)
    assert 0.01 < stopped.time < 0.1
    of_galaxy(stopped)


def restarts(shared, path):
    """Runs that go on from files, and from copies."""
    for name, steps in (("shared", {"dt": 2**-6}), ("blocks", {"dt_max": 2**-4, "eta": 0.005})):
        file = f"{path}/{name}.h5"
        comm = {"comm": COMM} if int(shared) else {}
        if os.path.exists(file):
            galaxy = Leapfrog.load(file, **comm)
        else:
            galaxy = made(shared, **steps, boundary=4.0)
            galaxy.evolve(0.07, events=Escape(2.0, lambda *_: None))
            galaxy.kick([k for k in (3,) if k in galaxy.ids], [0.5, 0, 0])
            seen = galaxy.state()["watched_ids"]  # of bodies of all ranks, in one order
            assert len(seen) > 9
            assert COMM.allgather(seen.tolist()) == [seen.tolist()] * SIZE
            galaxy.save(file)
            galaxy = galaxy.copy()
        galaxy.evolve(0.15)
        say(bits=of_galaxy(galaxy))


def contents():
    """All files of the folder, and of those in it, when no rank is writing."""
    COMM.barrier()
    found = {str(path): path.read_bytes() for path in Path().rglob("[!.]*") if path.is_file()}
    COMM.barrier()
    return found


def saves(path):
    """Outputs in numbered files; a full disk of one rank; one that takes the place of another."""
    os.chdir(path)
    galaxy = made(1, dt=2**-6)
    galaxy.save("a.h5")
    evolved(galaxy, 0.0625).save("a.h5")
    say(names=sorted(contents()))
    before, old = contents(), resource.getrlimit(resource.RLIMIT_FSIZE)
    evolved(galaxy, 0.125)
    if LAST:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, old[1]))
    say(texts=COMM.gather(complaint(lambda: galaxy.save("a.h5"))))
    resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert contents() == before
    galaxy.save("a.h5")
    assert galaxy.save("a.h5") is None  # at the same time
    say(names=sorted(contents()))
    later, mine = Leapfrog.load("a.h5", comm=COMM), read_snapshot("a.h5", comm=COMM)
    own = COMM.allgather(galaxy.pos)
    for pos in (later.pos, mine.pos):
        assert np.array_equal(np.concatenate(COMM.allgather(pos)), np.concatenate(own))
    assert of_galaxy(evolved(later, 0.15)) == of_galaxy(evolved(galaxy, 0.15))
    say(n=[later.n, len(mine.mass)], time=mine.time)
    if not RANK:
        os.mkdir("again")
    COMM.barrier()
    made(1, dt=2**-6).save("again/b.h5", overwrite=True)
    new = made(1, dt=2**-6)
    for time in (0.0, 0.0625):
        evolved(new, time).save("again/b.h5", overwrite=True)
    assert Leapfrog.load("again/b.h5", comm=COMM).run_id == new.run_id
    archive.save("again/c.h5", new, about={"name": "a cloud"}, component=new.ids % 5)
    later = Leapfrog.load("again/c.h5", comm=COMM)
    later.save("again/d.h5")
    (one, records), (other, same) = (archive.history(f"again/{k}.h5") for k in "cd")
    assert records == same
    assert repr(one) == repr(other)
    labels = archive.read_component("again/d.h5")
    assert np.array_equal(labels.component, labels.ids % 5)
    say(again=sorted(name for name in contents() if name.startswith("again/b")))


def killed(path):
    """A rank is killed when it has written its file, which has not got its name."""
    os.chdir(path)
    galaxy = made(1, dt=2**-6)
    galaxy.save("a.h5")
    if LAST:
        write = atomic_files._write_synced

        def and_die(path, pieces):
            write(path, pieces)
            os.kill(os.getpid(), signal.SIGKILL)

        atomic_files._write_synced = and_die
    evolved(galaxy, 0.0625).save("a.h5")


def distance(one, other):
    """Median of the distances of rows."""
    return float(np.median(np.linalg.norm(one - other, axis=1)))


def trees():
    """Trees of all ranks and of one process, compared with sums in double."""
    for steps in ({"dt": 2**-6}, {"dt_max": 2**-5, "eta": 0.01},
                  {"dt": 2**-6, "theta": None, "accuracy": 1e-3}):  # fmt: skip
        galaxy = made(1, **(TREE | steps))
        start, momentum = galaxy.energy().total, galaxy.momentum()
        galaxy.evolve(0.125)
        drift = float(np.abs(galaxy.momentum() - momentum).max())
        energy = abs(galaxy.energy().total / start - 1)
        pos, jerk, ids = (COMM.gather(a) for a in (galaxy.pos, galaxy.jerk, galaxy.ids))
        if RANK == 0:
            assert np.concatenate(ids).tolist() == list(range(N))
            one = evolved(made(0, slice(None), **(TREE | steps)), 0.125)
            exact = evolved(made(0, slice(None), dt=2**-7, precision="double"), 0.125)
            errors = [distance(found, exact.pos) for found in (np.concatenate(pos), one.pos)]
            say(errors=errors, energy=energy, drift=drift, shared="dt" in steps,
                jerk=distance(np.concatenate(jerk), one.jerk) / distance(one.jerk, 0))  # fmt: skip
    open_ = evolved(made(1, **TREE, boundary=2.0, dt=2**-7), 0.13)
    assert 0 < open_.n < N
    of_galaxy(open_)


def few():
    """No bodies at all, fewer than ranks, and all on one rank."""
    for options in (DIRECT, TREE):
        for steps in ({"dt": 2**-4}, {"dt_max": 2**-4, "eta": 1.0}):
            for n in (0, 1, SIZE - 1):
                bodies = plummer(max(n, 1), seed=3)
                galaxy = made(1, slice(n) if LAST else slice(0), bodies, **(options | steps))
                galaxy.evolve(0.1)
                assert len(galaxy) == n
                assert len(galaxy.pos) == n * LAST
                galaxy.energy()
                galaxy.lagrangian_radii()
    say(ok=True)


def balance(name, n):
    """The largest share of the work over the mean, in the sums of twelve steps."""
    n = int(n)
    bodies = uniform(n, seed=1, virial_ratio=0)
    if name == "merger":
        bodies = plummer(n, seed=1)
        some = slice(n // 3)
        bodies.pos[some] = bodies.pos[some] / 4 + [2, 0, 0]
        bodies.vel[some] *= 2
    galaxy = made(1, bodies=bodies, backend="cpu-tree", eps=0.02, dt=2**-6)
    forces, largest = galaxy._forces, []
    learn = forces._learn

    def learned(tree, is_of_all):
        learn(tree, is_of_all)
        own = tree._tree._work * len(tree._tree._domain.pos)
        work = np.array(COMM.allgather(own))
        largest.append(float(work.max() / work.mean()))

    forces._learn = learned
    galaxy.evolve(12 * 2**-6)
    say(largest=largest)


def broken(path):
    """What fails on one rank fails on all, and the bodies are as before."""
    galaxy, twin = (evolved(made(1, dt_max=2**-6), 0.02) for _ in range(2))
    mass, pos, vel = plummer(10, seed=1)
    wrong = np.where(LAST, np.nan, vel)

    def field(t, pos, vel):
        if LAST and t > 0.01:
            raise ValueError("a field of one rank fails")
        return np.zeros_like(pos), np.zeros_like(pos), np.zeros(len(pos))

    def fail(g):
        if LAST and g.time > 0.025:
            raise KeyError("a callback")

    calls = {
        "nan": lambda: Leapfrog(mass, pos, wrong, dt=0.1, comm=COMM),
        "shape": lambda: Leapfrog(mass, pos[: 9 if LAST else 10], vel, dt=0.1, comm=COMM),
        "dt": lambda: Leapfrog(mass, pos, vel, dt=0.2 if LAST else 0.1, comm=COMM),
        "tree": lambda: Leapfrog(
            mass, pos, vel, dt=0.1, comm=COMM, backend="cpu" if LAST else "tree"
        ),
        "t": lambda: galaxy.evolve(0.05 if LAST else 0.04),
        "call": lambda: galaxy.energy() if LAST else galaxy.momentum(),
        "look": lambda: galaxy.pos if LAST else galaxy.evolve(0.04),
        "callback": lambda: twin.copy().evolve(0.04, fail),
        "field": lambda: evolved(made(1, dt=2**-7, field=field), 0.04),
        "id": lambda: galaxy.remove([galaxy.ids[-1] + 1] if LAST else []),
        "same ids": lambda: galaxy.add(mass, pos, vel, ids=np.arange(10) + 5000),
        "merge": lambda: galaxy.merge([1, 2]),
        "binaries": lambda: galaxy.binaries(),
        "folder": lambda: galaxy.save(f"{path}/no/folder/a.h5"),
    }
    for name, call in calls.items():
        say(call=name, texts=COMM.gather(complaint(call)))
        assert galaxy.time == 0.02
    for each in (galaxy, twin):
        each.evolve(0.05)
    assert of_galaxy(galaxy) == of_galaxy(twin)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
