"""What the ranks of a test of Hermite or Leapfrog do:
`mpirun -n P python integration_programs.py NAME [argument ...]`.

Of a Hermite all ranks have all bodies, of a Leapfrog each rank has its own, some perhaps none. With
`shared` 0 one process without ranks has all.
"""

import hashlib
import itertools
import os
import sys
import warnings

import numpy as np

from file_programs import contents, die_when_it_is_written, filling_the_disk
from grape6py import Hermite, Leapfrog, archive, fields, plummer, read_snapshot, two_body
from grape6py.errors import AccuracyWarning
from grape6py.events import Encounter, EnergyError, Escape, WallTime
from rank_programs import ALL, COMM, DIFFERENT, LAST, RANK, SIZE, main, mine, of_last, refused, say

EPS = {Hermite: 1 / 64, Leapfrog: 1 / 32}
TREE = {"backend": "cpu-tree", "theta": 0.5}
ARRAYS = "mass pos vel acc jerk ids step_sizes".split()
SPIN = fields.plummer(1.0, 2.0) + fields.rotation(0.1)
FRAME = {"field": fields.nfw(1.0, 2.0), "orbit": [3.0, 0, 0, 0, 0.5, 0]}
warnings.simplefilter("ignore", AccuracyWarning)


def made(kind, shared, bodies=None, n=700, rows=None, **options):
    """An integration of all ranks, or by one process of all."""
    bodies = plummer(n, seed=4) if bodies is None else bodies
    if kind is Leapfrog:
        bodies = [a[mine(len(a)) if rows is None else rows] for a in bodies]
    settings = {"eps": EPS[kind], "backend": "cpu", "threads": 1} | options
    return kind(*bodies, **settings, **({"comm": COMM} if int(shared) else {}))


def whole(cluster, array):
    """Rows of all bodies."""
    of_all = COMM.allgather(array)
    if isinstance(cluster, Leapfrog):
        return np.concatenate(of_all)
    assert all(np.array_equal(array, other) for other in of_all)
    return array


def of(cluster):
    """What must be the same on all ranks, and for any number of them."""
    found = hashlib.sha256()
    for array in (*(getattr(cluster, name) for name in ARRAYS), cluster.potential()):
        found.update(whole(cluster, array).tobytes())
    sums = [cluster.energy().total, cluster.energy_change, cluster.virial_ratio(), cluster.time,
            *cluster.momentum(), *cluster.angular_momentum(), *cluster.centre_of_mass(),
            *cluster.lagrangian_radii(), float(cluster.lagrangian_radii(0.3, [0, 1, 0])),
            *cluster.profile(3).density, cluster.core_radius(), cluster.half_mass_radius(),
            cluster.mass_function(masses=[0, 1, 2]).number[0]]  # fmt: skip
    events = [(e.kind, e.time.hex(), list(e.ids), float(e.value).hex()) for e in cluster.events]
    same = [float(x).hex() for x in sums] + [cluster.steps, cluster.blocks, cluster.n, events]
    same.append(found.hexdigest()[:16])
    assert COMM.allgather(same) == [same] * SIZE
    return same


def evolved(cluster, t, **options):
    cluster.evolve(t, **options)
    return cluster


def massless(n, share):
    mass, pos, vel = plummer(n, seed=4)
    mass[::share] = 0
    return mass, pos, vel


def function(t, pos, vel):
    return -pos, -vel, (pos**2).sum(axis=1) / 2


def ignore(*_):
    pass


BLOCKS = {"dt_max": 2**-4, "eta": 0.02}
RUNS = {  # options, and how far
    Hermite: [
        ({"n": 1100, "precision": "double"}, 0.05), ({"n": 1100, "passes": 2, "dt": 2**-7}, 0.0625),
        ({"bodies": two_body(0.5), "eps": 0}, 1.0), ({"n": 1500, "field": SPIN}, 0.05),
        ({"n": 1100, **FRAME}, 0.05), ({"n": 1100, "field": function}, 0.05),
        ({"bodies": massless(40, 1), "eps": 0, "events": Encounter(0.1, ignore)}, 0.25),
        ({"n": 1100, "events": Encounter(6e-3)}, 1.0),
        ({"n": 1100, "events": [Encounter(3e-3, "merge"), Escape(3.0, "remove")]}, 0.05),
    ],
    Leapfrog: [
        (BLOCKS | {"precision": "double"}, 0.0625), ({"dt": 2**-6, "field": SPIN}, -0.04),
        (BLOCKS | {"bodies": massless(700, 3), "G": 2.0}, 0.0625),
        ({"dt": 2**-6, "field": function}, 0.04), ({"dt": 2**-6, **FRAME}, 0.04),
        ({"dt": 2**-7, "boundary": 2.0}, 0.13),
        ({"dt_max": 2**-6, "eta": 0.001, "boundary": 2.0}, 0.13),
        ({"n": 200, "dt": 2**-6, "events": Escape(2.0)}, 0.125),
        ({"n": 200, "dt": 2**-6, **FRAME,
          "events": Escape("tidal", factor=1.4, centre="density")}, 0.125),
        ({"dt": 2**-4, "eps": 1e-3, "events": EnergyError(1e-5)}, 2.0),
    ],
}  # fmt: skip


def runs(shared):
    """Of all kinds."""
    for kind, options, time in ((kind, *run) for kind, runs in RUNS.items() for run in runs):
        events = {"events": options["events"]} if "events" in options else {}
        rest = {k: v for k, v in options.items() if k != "events"}
        cluster = evolved(made(kind, shared, **rest), time, **events)
        assert cluster.events or not events
        assert 0 < cluster.n < 700 or "boundary" not in options
        say(found=of(cluster))


def changes(shared):
    for kind in RUNS:
        change(kind, shared)


def change(kind, shared):
    """Bodies that come and go; looks, stops. New bodies of a Leapfrog are the last rank's."""
    is_own = kind is Leapfrog
    cluster, times = made(kind, shared, n=700 if is_own else 1100, **BLOCKS), []
    cluster.evolve(0.03, lambda c: times.append(c.time), every=0.015625)
    say(what="looks", found=of(cluster), times=times)
    n, none = cluster.n, ([], np.zeros((0, 3)), np.zeros((0, 3)))
    new = [0.1, 0.0], [[2, 0, 0], [0, 3, 0]], [[0, 0.5, 0], [0.5, 0, 0]]
    ids = cluster.add(*(new if LAST or not is_own else none))
    assert ids.tolist() == ([n, n + 1] if LAST or not is_own else [])

    def own(*ids):
        return [k for k in ids if k in cluster.ids]

    cluster.remove(own(5, 600, n + 1))
    cluster.kick(own(3, 77), [0.5, 0, 0])
    cluster.set_mass(own(10), 0.01)
    if not is_own:
        cluster.merge([20, 21])
    say(what="changes", found=of(evolved(cluster, 0.06)))
    cluster.move_to_centre_of_mass()
    say(what="centre", found=of(evolved(cluster, 0.07)))
    cluster.step()
    say(what="step", found=of(cluster))
    say(what="off the grid", found=of(evolved(cluster, cluster.time + 1e-3)))
    if is_own:
        first = [array[:1] for array in cluster.particles()]
        assert len(cluster.add(*first, ids=[9000 + RANK][: cluster.n])) == len(first[0])
    stopped = made(kind, shared, dt_max=2**-6)
    assert stopped.evolve(100.0, events=WallTime(0.1)).kind == "wall time"
    of(stopped)
    told = made(kind, shared, dt_max=2**-6)
    told.evolve(1.0, lambda c: c.stop() if LAST and c.time > 0.01 else None)
    assert 0.01 < told.time < 0.1
    of(told)


def restarts(path):
    """Runs that go on from files, and from copies."""
    all_steps = ("shared", {"dt": 2**-6}), ("blocks", BLOCKS)
    for kind, (name, steps) in itertools.product(RUNS, all_steps):
        file, open_ = f"{kind.__name__}-{name}.h5", {"boundary": 4.0} if kind is Leapfrog else {}
        if os.path.exists(f"{path}/{file}"):
            cluster = kind.load(f"{path}/{file}", comm=COMM)
        else:
            cluster = made(kind, 1, **steps, **open_)
            cluster.evolve(0.07, events=Escape(2.0, ignore))
            cluster.kick([k for k in (3,) if k in cluster.ids], [0.5, 0, 0])
            seen = cluster.state()["watched_ids"]  # of bodies of all ranks, in one order
            assert len(seen) > 9
            assert COMM.allgather(seen.tolist()) == [seen.tolist()] * SIZE
            cluster.save(f"{path}/{file}")
            cluster = cluster.copy()
        before = len(cluster.events)
        cluster.evolve(0.15)
        assert len(cluster.events) == before
        cluster.events.clear()
        say(found=[x for x in of(cluster) if not isinstance(x, list)])


# ---- what fails ----------------------------------------------------------------------------------


def broken(path):
    for kind in RUNS:
        broken_of(kind, f"{path}/{kind.__name__}.h5")


def broken_of(kind, there):
    """What fails on one rank fails on all, and the bodies are as before."""
    step = {"dt_max": 2**-6}
    cluster, twin = (evolved(made(kind, 1, **step), 0.02) for _ in range(2))
    mass, pos, vel = plummer(10, seed=1)

    def make(**options):
        return lambda: made(kind, 1, n=100, **step | options)

    def field(t, pos, vel):
        if LAST and t > 0.03:
            raise ValueError("a field of one rank fails")
        return np.zeros_like(pos), np.zeros_like(pos), np.zeros(len(pos))

    def fail(c):
        if LAST and c.time > 0.025:
            raise KeyError("a callback")

    twin.save(there)  # a look, which `cluster` has not had
    wrong = evolved(made(kind, 1, field=field, **step), 0.02)
    bodies = f"{ALL}the bodies differ"
    calls = [
        (lambda: Hermite(*plummer(100, seed=RANK), comm=COMM),
         f"{bodies} between the ranks; this is rank 0", f"{bodies}.* rank 2"),
        (lambda: cluster.kick(3, [1.0 + LAST, 0, 0]), bodies),
        (lambda: cluster.merge([1] if LAST else [1, 2]), *of_last(f"{ALL}merge needs two")),
        (lambda: cluster.set_mass(3, 1.0 + LAST), bodies),
    ] if kind is Hermite else [
        (lambda: cluster.pos if LAST else cluster.evolve(0.04), DIFFERENT),
        (lambda: cluster.energy() if LAST else cluster.momentum(),
         f"{DIFFERENT}.*momentum", f"{ALL}.*energy"),
        (lambda: cluster.add(mass, pos, vel, ids=range(5000, 5010)), f"{ALL}ids: two ranks give"),
        (lambda: cluster.merge([1, 2]), f"{ALL}merge.. is of bodies that one rank has"),
        (lambda: cluster.binaries(), f"{ALL}binaries.. are of bodies that one rank has"),
    ]  # fmt: skip
    calls += [
        (make(bodies=(mass, pos, np.where(LAST, np.nan, vel)), rows=slice(None)),
         *of_last("NotFiniteError: vel")),
        (make(bodies=(mass, pos[: 9 if LAST else 10], vel), rows=slice(None)),
         *of_last(f"{ALL}(pos|vel)")),
        (make(dt_max=2**-5 if LAST else 2**-6), f"{ALL}the settings differ"),
        (make(eta=-1 if LAST else 0.02), *of_last(f"{ALL}eta = -1")),
        (make(backend="nothing" if LAST else "cpu"), *of_last(f"{ALL}backend = 'nothing'")),
        (lambda: twin.save(f"{there}/no/folder/a.h5"), ".*no/folder",
         "RankError: on rank 0 of 3: "),
        (lambda: kind.load(f"{there}.not" if LAST else there, comm=COMM),
         *of_last("FileNotFoundError")),
        (lambda: cluster.evolve(0.05 if LAST else 0.04),
         f"{ALL}t differs between the ranks: 0.04.* on rank 0", f"{ALL}t differs.* 0.05"),
        (lambda: cluster.evolve(1e17 if LAST else 0.04), *of_last(f"{ALL}t = 1e\\+17 is more")),
        (lambda: cluster.evolve(0.04, print, every=None if LAST else 0.001),
         f"{ALL}every differs.* 0.001", f"{ALL}every differs between the ranks: None"),
        (lambda: cluster.evolve(0.04, events=[WallTime(60.0)] * LAST), f"{ALL}events differ"),
        (lambda: cluster.kick([], [1, 0, 0]) if LAST else cluster.evolve(0.04),
         DIFFERENT, f"{DIFFERENT}.*kick()"),
        (lambda: cluster.kick(cluster.ids[:1], [np.nan if LAST else 1.0, 0, 0]),
         *of_last("NotFiniteError")),
        (lambda: cluster.add(1.0, [1, 2, 3], [0, 0] if LAST else [0, 0, 0]),
         *of_last(f"{ALL}vel has shape")),
        (lambda: cluster.remove([9999] if LAST else []), *of_last("AddressError: no body .*9999")),
        (lambda: twin.copy().evolve(0.04, fail, every=0.04), *of_last("KeyError: 'a callback'")),
        (lambda: wrong.evolve(1.0), *of_last("ValueError: a field of one rank fails")),
    ]  # fmt: skip
    for call in calls:
        refused(*call)
        assert cluster.time == 0.02
    assert COMM.allgather(wrong.blocks) == [wrong.blocks] * SIZE
    seen = []
    cluster.evolve(0.035, (lambda c: seen.append(c.time)) if RANK == 0 else None)
    twin.evolve(0.035)
    cluster.evolve(0.0375, seen.append if LAST else None, every=0.001)
    twin.evolve(0.0375)
    assert seen or 0 < RANK < SIZE - 1
    for each in (cluster, twin):
        each.kick(each.ids[:1], [0.5, 0, 0])
        each.evolve(0.05)
    assert of(cluster) == of(twin)


# ---- files of ranks ------------------------------------------------------------------------------


def names(index, folder, *numbers):
    """Of the index of a run and of its outputs, each in three files."""
    return [index, *(f"{folder}/{number:06d}.{k}.hdf5" for number in numbers for k in range(3))]


def saves(path):
    """Outputs in numbered files; a full disk of one rank; one that takes the place of another."""
    os.chdir(path)
    galaxy = made(Leapfrog, 1, dt=2**-6)
    galaxy.save("a.h5")
    evolved(galaxy, 0.0625).save("a.h5")
    before = contents("[!.]*")
    assert sorted(before) == names("a.h5", "a", 0, 1)
    evolved(galaxy, 0.125)
    full = "OSError: .*File too large"
    refused(lambda: filling_the_disk(lambda: galaxy.save("a.h5")),
            of_last(f"{full}: '.*000002.2.hdf5'")[0], full)  # fmt: skip
    assert contents("[!.]*") == before
    galaxy.save("a.h5")
    assert galaxy.save("a.h5") is None  # at the same time
    assert sorted(contents("[!.]*")) == names("a.h5", "a", 0, 1, 3)
    later, mine = Leapfrog.load("a.h5", comm=COMM), read_snapshot("a.h5", comm=COMM)
    assert (later.n, mine.time) == (700, 0.125)
    for pos in (later.pos, mine.pos):
        assert np.array_equal(whole(later, pos), whole(galaxy, galaxy.pos))
    assert of(evolved(later, 0.15)) == of(evolved(galaxy, 0.15))
    if not RANK:
        os.mkdir("again")
    COMM.barrier()
    made(Leapfrog, 1, dt=2**-6).save("again/b.h5", overwrite=True)
    new = made(Leapfrog, 1, dt=2**-6)
    for time in (0.0, 0.0625):
        evolved(new, time).save("again/b.h5", overwrite=True)
    found = [name for name in contents("[!.]*") if name.startswith("again")]
    assert sorted(found) == names("again/b.h5", "again/b", 0, 1)
    assert Leapfrog.load("again/b.h5", comm=COMM).run_id == new.run_id
    archive.save("again/c.h5", new, about={"name": "a cloud"}, component=new.ids % 5)
    Leapfrog.load("again/c.h5", comm=COMM).save("again/d.h5")
    (one, records), (other, same) = (archive.history(f"again/{k}.h5") for k in "cd")
    assert records == same
    assert repr(one) == repr(other)
    labelled = read_snapshot("again/d.h5")
    assert np.array_equal(labelled.component, labelled.ids % 5)


def killed(path):
    os.chdir(path)
    galaxy = made(Leapfrog, 1, dt=2**-6)
    galaxy.save("a.h5")
    die_when_it_is_written()
    evolved(galaxy, 0.0625).save("a.h5")


def few():
    """No bodies at all, fewer than ranks, and all on one rank."""
    for options in ({}, TREE):
        for steps in ({"dt": 2**-4}, {"dt_max": 2**-4, "eta": 1.0}):
            for n in (0, 1, SIZE - 1):
                galaxy = made(Leapfrog, 1, plummer(max(n, 1), seed=3),
                              rows=slice(n) if LAST else slice(0), **(options | steps))  # fmt: skip
                galaxy.evolve(0.1)
                assert len(galaxy) == n
                assert len(galaxy.pos) == n * LAST
                galaxy.energy()
                galaxy.lagrangian_radii()


if __name__ == "__main__":
    main(globals(), *sys.argv[1:])
