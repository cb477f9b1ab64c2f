"""Copies of integrations and trees; arrays of other libraries, accelerations, units; numbers of
bodies of 64 bits through changes, events, files and copies."""

import copy
import multiprocessing
from functools import partial

import numpy as np
import pytest

import grape6py as g6
import integrations
from grape6py import Hermite, Leapfrog, Tree, plummer, read_snapshot
from grape6py.errors import ArgumentError, NotOpenError
from grape6py.events import Encounter, Escape
from integrations import assert_same, each, evolve
from runs import run

make = partial(integrations.made, n=48)
WAYS = {"copy.copy": copy.copy} | integrations.WAYS
del WAYS["file"]
ways = pytest.mark.parametrize("way", WAYS)
KINDS = [
    (Hermite, {}), (Hermite, {"precision": "double", "dt": 1 / 64}), (Hermite, {"G": 2.0}),
    (Leapfrog, {"dt": 1 / 64, "backend": "cpu", "boundary": 2.0}),
    (Leapfrog, {"dt": 1 / 64, "backend": "cpu", "precision": "single"}),
    (Leapfrog, {"dt_max": 1 / 16, "backend": "cpu-tree"}),
    (Leapfrog, {"dt": 1 / 32, "backend": "cpu-tree", "accuracy": 2e-3, "boundary": 2.0}),
]  # fmt: skip
kinds = each(KINDS)


def direct(mass, pos, vel=None, eps=0.0, G=1.0):
    """Acceleration, jerk and potential by the oracle."""
    vel = 0 * pos if vel is None else vel
    sums = g6.reference.direct_sum(np.broadcast_to(mass, len(pos)), pos, vel, eps2=eps * eps)
    return [G * array for array in (sums.acc, sums.jerk, sums.pot)]


@ways
def test_copies_have_lives_of_their_own(way):
    h, plain = make(), make()
    again = WAYS[way](h)
    assert (again.run_id == h.run_id) == (way == "pickle")
    again.kick(3, [1, 0, 0])
    again.evolve(1.0)
    again.close()
    evolve((h, plain), 0.5)
    assert_same(h, plain)


def test_copies_within_a_callback_or_a_list_are_of_that_moment():
    h, found = make(), []
    h.evolve(0.5, lambda c: found.append(c.copy()), every=0.25)
    pair = copy.deepcopy({"one": found[0], "two": found})
    pair["two"][0].evolve(0.5)
    assert pair["one"] is pair["two"][0]
    assert np.array_equal(pair["one"].pos, found[1].pos)
    assert found[0].time == 0.25


def _energy_of(h):
    h.evolve(0.5)
    return h.pos, h.energy().total


@pytest.mark.slow
def test_integrations_go_to_other_processes():
    runs = [make(n=16), make(n=24)]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.map(_energy_of, runs)
    for h, (pos, energy) in zip(runs, found, strict=True):
        h.evolve(0.5)
        assert np.array_equal(pos, h.pos)
        assert energy == h.energy().total


@ways
@pytest.mark.parametrize(("n", "with_vel"), [(200, True), (200, False), (1, False), (0, False)])
def test_copies_of_trees_give_the_same_bits(way, n, with_vel):
    mass, pos, vel = (array[:n] for array in plummer(200, 1))
    tree = Tree(pos, mass, vel if with_vel else None)
    again = WAYS[way](tree)
    assert len(again) == n
    for one, two in zip(tree.forces(eps=0.01), again.forces(eps=0.01), strict=True):
        assert (one is None and two is None) or np.array_equal(one, two)
    assert (again.forces(eps=0.01).jerk is None) != with_vel
    if n > 5:
        for one, two in zip(tree.nearest(5), again.nearest(5), strict=True):
            assert np.array_equal(one, two)
    tree.close()
    assert np.isfinite(again.forces().acc).all()
    of_one_mass = Tree(pos, 0.25)
    assert np.array_equal(WAYS[way](of_one_mass).forces().pot, of_one_mass.forces().pot)
    with pytest.raises(NotOpenError, match="closed"):
        WAYS[way](tree)


def everything(mass, pos, vel, index):
    yield from g6.accelerations(mass, pos, 0.1, vel=vel, jerk=True, potential=True)
    with g6.Grape6() as grape:
        grape.set_particles(mass, pos, vel)
        found = grape.forces(eps=0.1)
        yield from (found.acc, found.jerk, found.pot)
    with Tree(pos, mass, vel) as tree:
        yield from tree.forces(eps=0.1)
        yield from tree.nearest(3)
        yield from tree.forces(pos, vel, eps=0.1, self_index=index)


@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_arrays_come_back_as_those_of_the_library_that_they_are_of(library):
    module = pytest.importorskip(library)
    if library == "jax":
        module.config.update("jax_enable_x64", True)
        module.config.update("jax_platforms", "cpu")  # a GPU's sums have other last digits
    put, kind = {
        "numpy": lambda: (np.ndarray.tolist, np.ndarray),  # of lists, too
        "torch": lambda: (module.from_numpy, module.Tensor),
        "jax": lambda: (module.numpy.asarray, module.Array),
    }[library]()
    given = [*(np.array(a) for a in plummer(64, 1)), np.arange(64, dtype=np.int32)]
    for found, wanted in zip(everything(*map(put, given)), everything(*given), strict=True):
        assert isinstance(found, kind)
        assert np.array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize(("precision", "error"), [("double", 1e-12), ("grape", 2e-5), (None, 2e-5)])
@pytest.mark.parametrize("G", [1.0, 4.3e-3])
def test_accelerations_are_the_plain_sum(precision, error, G):
    mass, pos, vel = plummer(100, 1)
    wanted = direct(mass, pos, vel, 0.05, G)
    options = {"G": G, "precision": precision, "vel": vel}
    found = g6.accelerations(mass, pos, 0.05, jerk=True, potential=True, **options)
    for one, two in zip(found, wanted, strict=True):
        assert np.abs(one - two).max() < error * np.abs(two).max()
    acc, jerk = g6.accelerations(mass, pos, 0.05, jerk=True, **options)
    assert np.array_equal(jerk, found[1])
    acc, pot = g6.accelerations(mass, pos, 0.05, potential=True, **options)
    for one in acc, g6.accelerations(mass, pos, 0.05, **options):
        assert np.abs(one - wanted[0]).max() < error * np.abs(wanted[0]).max()
    assert np.abs(pot - wanted[2]).max() < error * np.abs(wanted[2]).max()


def test_accelerations_take_one_mass_and_few_bodies_and_none_of_the_velocities():
    _, pos, _ = plummer(30, 1)
    acc, jerk = g6.accelerations(0.5, pos, 0.1, jerk=True, precision="double")
    assert np.allclose(acc, direct(0.5, pos, eps=0.1)[0], rtol=1e-12)
    assert not jerk.any()
    for n in (0, 1):
        acc, pot = g6.accelerations(np.ones(n), np.ones((n, 3)), potential=True)
        assert acc.shape == (n, 3)
        assert not acc.any()
        assert not pot.any()


@pytest.mark.parametrize(("call", "words"), [
    (lambda m, x, v: Hermite(x, m, v), r"Hermite\(mass, pos, vel\)"),
    (lambda m, x, v: Hermite(x.tolist(), m.tolist(), v), r"Hermite\(mass, pos, vel\)"),
    (lambda m, x, v: Leapfrog(x, m, v, dt=0.1), r"Leapfrog\(mass, pos, vel\)"),
    (lambda m, x, v: Hermite(x, v, m), r"Hermite\(mass, pos, vel\)|mass has shape"),
    (lambda m, x, v: Tree(x, v, m), "mass has shape"),
    *((lambda m, x, v, n=n: plummer(n), r"n = .* not an integer")
      for n in (10.5, "ten", None, True + 0.5)),
    (lambda m, x, v: g6.uniform(9.5, 1), r"n = .* not an integer"),
    (lambda m, x, v: g6.accelerations(x, m), r"accelerations\(mass, pos\)"),
    (lambda m, x, v: g6.accelerations(m, x[:3]), "mass|pos"),
    (lambda m, x, v: g6.accelerations(m, x[:, :2]), "pos"),
    (lambda m, x, v: g6.accelerations(m, np.where(x == x[1], np.nan, x)), r"\[1\]"),
    *((lambda m, x, v, given=given: g6.accelerations(m, x, **given), next(iter(given)))
      for given in ({"G": 0}, {"G": -1}, {"eps": -1.0}, {"vel": np.ones((3, 3))},
                    {"precision": "half"})),
    *((lambda m, x, v, G=G, of=of: of(m, x, v, dt=0.1, backend="cpu", G=G), "G = ")
      for of in (Hermite, Leapfrog) for G in (0, -1, np.nan, "one")),
])  # fmt: skip
def test_arguments_in_another_order_and_wrong_ones_are_told(call, words):
    with pytest.raises(ArgumentError, match=words):
        call(*plummer(np.int64(8), 1))


@kinds
def test_accelerations_and_jerks_of_an_integration_are_those_of_its_bodies(kind, options):
    """A third of which have no mass; those beyond the boundary do not act, from the start."""
    mass, pos, vel = plummer(48, 1)
    mass[1::3] = 0
    h = make(kind, particles=(mass, pos, vel), **options)
    assert (h.n < 48) == ("boundary" in options)
    for t in (0.0, 0.25, 0.31):
        h.evolve(t)
        acc, jerk, pot = direct(h.mass, h.pos, h.vel, 1 / 16, h.G)
        scheme = 2e-3 if "tree" in h.backend else 1e-4
        assert np.abs(h.acc - acc).max() < scheme * np.abs(acc).max()
        assert np.abs(h.jerk - jerk).max() < 20 * scheme * np.abs(jerk).max()
        assert np.abs(h.potential() - pot).max() < scheme * np.abs(pot).max()
        assert not h.acc.flags.writeable


@kinds
def test_a_step_moves_the_next_block(kind, options):
    h, whole = make(kind, **options), make(kind, **options)
    times = []
    for k in range(20):
        ends = (h.state()["t"] + h.step_sizes).min()
        h.step()
        assert h.blocks == k + 1
        assert h.time == pytest.approx(ends, rel=1e-15)
        times.append(h.time)
    assert (np.diff(times) > 0).all()
    whole.evolve(h.time)
    assert h.n == whole.n
    assert np.array_equal(h.pos, whole.pos)
    assert h.steps == whole.steps
    h.evolve(h.time + 0.3)
    whole.evolve(h.time)
    assert np.array_equal(h.pos, whole.pos)


HERMITE = Hermite, {"eps": 0.01, "backend": "cpu"}
LEAPFROG = Leapfrog, {"eps": 0.05, "dt_max": 1 / 16, "backend": "cpu"}
BOTH = each([HERMITE, LEAPFROG])
# Beyond 32 bits, beyond what a double holds, and beyond int64, as half of AMUSE's keys are.
STARTS = pytest.mark.parametrize("start", [2**40, 2**53 + 1, 2**63 - 20, 2**64 - 80])


def numbered(start, n):
    return np.array([start + k for k in range(n)], np.uint64 if start + n > 2**63 else np.int64)


@BOTH
@STARTS
def test_large_ids_stay_with_their_bodies(kind, options, start, tmp_path):
    ids = numbered(start, 40)
    c = kind(*plummer(40, seed=1), ids=ids, **options)
    assert c.ids.dtype == ids.dtype
    masses = {start + k: 1 / 40 for k in range(40)}
    c.remove([start + 3, start + 39])
    kept = c.merge([start + 4, start + 5])
    assert kept in (start + 4, start + 5)
    c.set_mass(start + 7, 0.5)
    assert c.add([0.1, 0.2], np.eye(3)[:2], np.zeros((2, 3))).tolist() == [start + 40, start + 41]
    gone = start + 3, start + 39, 2 * start + 9 - kept
    masses = {k: m for k, m in masses.items() if k not in gone}
    masses |= {kept: 1 / 20, start + 7: 0.5, start + 40: 0.1, start + 41: 0.2}
    c.evolve(0.125)
    c.save(tmp_path / "a.h5")
    for again in c, c.copy(), kind.load(tmp_path / "a.h5"):
        assert dict(zip(again.ids.tolist(), again.mass.tolist(), strict=True)) == masses
    assert read_snapshot(tmp_path / "a.h5").ids.tolist() == c.ids.tolist()
    next_one = kind.load(tmp_path / "a.h5")
    next_one.remove(start + 41)
    next_one.save(tmp_path / "b.h5")  # the largest that there was is remembered
    assert kind.load(tmp_path / "b.h5").add(0.0, [9, 0, 0], [0, 0, 0]) == [start + 42]


@STARTS
def test_events_name_large_ids(start):
    mass, pos, vel = plummer(64, seed=2)
    pos[5], vel[5] = [2.9, 0, 0], [2, 0, 0]
    pos[6], vel[6] = pos[7] + [0.05, 0, 0], vel[7] - [1, 0, 0]
    for kind, options in HERMITE, LEAPFROG:
        watched = [Escape(3.0)] + [Encounter(0.02, "merge")] * (kind is Hermite)
        large, small = (kind(mass, pos, vel, ids=ids, **options)
                        for ids in (numbered(start, 64), None))  # fmt: skip
        for c in large, small:
            c.evolve(0.125, events=watched)
            c = c.copy()  # with what is known
        names = [tuple(start + k for k in event.ids) for event in small.events]
        assert (start + 5,) in names
        assert [event.ids for event in large.events] == names
        assert [event.time for event in large.events] == [event.time for event in small.events]
        assert large.state()["pos"].tobytes() == small.state()["pos"].tobytes()


def test_what_is_known_of_pairs_of_large_ids_is_restored(tmp_path):
    pair = np.array([1.0, 1.0]), np.array([[0, 0, 0], [0.1, 0, 0.0]]), np.zeros((2, 3))
    c = Hermite(*pair, eps=1.0, ids=[2**53, 2**53 + 1])
    seen = []
    events = [Encounter(0.5, lambda _, event: seen.append(event.ids)), Escape(0.05, "stop")]
    c.evolve(0.25, events=events[0])
    c.save(tmp_path / "a.h5")
    for again in c.copy(), Hermite.load(tmp_path / "a.h5"):
        again.evolve(0.5, events=events[0])
    assert seen == [(2**53, 2**53 + 1)]


@BOTH
def test_after_the_last_number_there_is_none(kind, options):
    c = kind(*plummer(3, seed=1), ids=[2**63 - 1, 1, 2], **options)
    assert c.add(0.0, [9, 0, 0], [0, 0, 0]).tolist() == [2**63]
    c = kind(*plummer(3, seed=1), ids=[2**64 - 1, 1, 2], **options)
    with pytest.raises(ArgumentError, match="give ids="):
        c.add(0.0, [9, 0, 0], [0, 0, 0])
    assert c.add(0.0, [9, 0, 0], [0, 0, 0], ids=[3]).tolist() == [3]


@pytest.mark.parametrize(("ids", "words", "more"), [
    (numbered(2**40, 50), None, []), (np.arange(50) // 2, "0 is the number of two", []),
    (numbered(2**64 - 50, 50), None, ["--integrator", "leapfrog", "--dt", 0.0625]),
    (np.arange(50)[::-1] - 1, r"ids[49] = -1", ["--integrator", "leapfrog", "--dt", 0.0625]),
])  # fmt: skip
def test_grape6_run_keeps_ids_or_says_why_not(here, capsys, ids, words, more):
    g6.write_snapshot("a.hdf5", plummer(50, seed=1), ids=ids)
    end = [*more, "--eps", 0.1, "--backend", "cpu", "--t-end", 0.0625, "--dt-out", 0.0625]
    status = run("a.hdf5", *end, "--out", "b.h5", "--out", "b.csv")
    if words is not None:
        assert status == 1
        error = capsys.readouterr().err
        assert words in error
        assert "--renumber" in error
        assert run("a.hdf5", *end, "--out", "b.h5", "--renumber") == 0
        assert read_snapshot("b.h5").ids.tolist() == list(range(50))
        return
    assert status == 0
    assert run("b.h5", "--restart", "--t-end", 0.125) == 0
    assert run("b.h5", *end, "--out", "c.h5") == 0  # its last output, as a new run
    for name in ["b.h5", "c.h5", *["b.csv"] * (ids.dtype == np.int64)]:
        assert read_snapshot(name).ids.tolist() == ids.tolist()
