"""Copies of integrations and trees, arrays of other libraries, accelerations, units."""

import copy
import multiprocessing
import pickle
from functools import partial

import numpy as np
import pytest

import integrations
from grape6py import (
    Grape6,
    Hermite,
    Leapfrog,
    Tree,
    accelerations,
    kroupa,
    plummer,
    reference,
    uniform,
)
from grape6py.errors import ArgumentError, NotOpenError
from integrations import assert_same, evolve

make = partial(integrations.made, n=48)
WAYS = {
    "copy": lambda a: a.copy(), "copy.copy": copy.copy, "deepcopy": copy.deepcopy,
    "pickle": lambda a: pickle.loads(pickle.dumps(a)),
}  # fmt: skip
ways = pytest.mark.parametrize("way", WAYS)
KINDS = [
    (Hermite, {}), (Hermite, {"precision": "double", "dt": 1 / 64}), (Hermite, {"G": 2.0}),
    (Leapfrog, {"dt": 1 / 64, "backend": "cpu"}),
    (Leapfrog, {"dt": 1 / 64, "backend": "cpu", "precision": "single"}),
    (Leapfrog, {"dt_max": 1 / 16, "backend": "cpu-tree"}),
    (Leapfrog, {"dt": 1 / 32, "backend": "cpu-tree", "accuracy": 2e-3, "boundary": 2.0}),
]  # fmt: skip
kinds = pytest.mark.parametrize(("kind", "options"), KINDS)


def direct(mass, pos, vel=None, eps=0.0, G=1.0):
    """Acceleration, jerk and potential by the oracle."""
    vel = 0 * pos if vel is None else vel
    sums = reference.direct_sum(np.broadcast_to(mass, len(pos)), pos, vel, eps2=eps * eps)
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
    with pytest.raises(NotOpenError, match="closed"):
        WAYS[way](tree)


def test_trees_that_came_from_one_mass_can_be_copied():
    tree = Tree(plummer(50, 1).pos, 0.25)
    assert np.array_equal(tree.copy().forces().pot, tree.forces().pot)


def everything(mass, pos, vel, index):
    yield from accelerations(mass, pos, 0.1, vel=vel, jerk=True, potential=True)
    with Grape6() as grape:
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
    found = accelerations(mass, pos, 0.05, jerk=True, potential=True, **options)
    for one, two in zip(found, wanted, strict=True):
        assert np.abs(one - two).max() < error * np.abs(two).max()
    acc, jerk = accelerations(mass, pos, 0.05, jerk=True, **options)
    assert np.array_equal(jerk, found[1])
    acc, pot = accelerations(mass, pos, 0.05, potential=True, **options)
    assert np.abs(pot - wanted[2]).max() < error * np.abs(wanted[2]).max()
    acc = accelerations(mass, pos, 0.05, **options)
    assert acc.shape == (100, 3)
    assert np.abs(acc - wanted[0]).max() < error * np.abs(wanted[0]).max()


def test_accelerations_take_one_mass_and_few_bodies_and_none_of_the_velocities():
    _, pos, _ = plummer(30, 1)
    acc, jerk = accelerations(0.5, pos, 0.1, jerk=True, precision="double")
    assert np.allclose(acc, direct(0.5, pos, eps=0.1)[0], rtol=1e-12)
    assert not jerk.any()
    for n in (0, 1):
        acc, pot = accelerations(np.ones(n), np.ones((n, 3)), potential=True)
        assert acc.shape == (n, 3)
        assert not acc.any()
        assert not pot.any()


@pytest.mark.parametrize(("arguments", "options", "words"), [
    ((np.ones((4, 3)), np.ones(4)), {}, r"accelerations\(mass, pos\)"),
    ((np.ones(4), np.ones((3, 3))), {}, "mass|pos"),
    ((np.ones(4), np.ones((4, 2))), {}, "pos"),
    ((np.ones(2), np.eye(3)[:2]), {"G": 0}, "G"), ((np.ones(2), np.eye(3)[:2]), {"G": -1}, "G"),
    ((np.ones(2), np.eye(3)[:2], -1.0), {}, "eps"),
    ((np.ones(2), np.eye(3)[:2]), {"vel": np.ones((3, 3))}, "vel"),
    ((np.ones(2), np.eye(3)[:2]), {"precision": "half"}, "precision"),
    ((np.ones(2), [[0, 0, 0], [np.nan, 0, 0]]), {}, r"\[1\]"),
])  # fmt: skip
def test_wrong_arguments_of_accelerations_are_refused_in_words(arguments, options, words):
    with pytest.raises(ArgumentError, match=words):
        accelerations(*arguments, **options)


@pytest.mark.parametrize(("call", "words"), [
    (lambda m, x, v: Hermite(x, m, v), r"Hermite\(mass, pos, vel\)"),
    (lambda m, x, v: Hermite(x.tolist(), m.tolist(), v), r"Hermite\(mass, pos, vel\)"),
    (lambda m, x, v: Leapfrog(x, m, v, dt=0.1), r"Leapfrog\(mass, pos, vel\)"),
    (lambda m, x, v: accelerations(x, m), r"accelerations\(mass, pos\)"),
    (lambda m, x, v: Hermite(x, v, m), r"Hermite\(mass, pos, vel\)|mass has shape"),
    (lambda m, x, v: Tree(x, v, m), "mass has shape"),
    *((lambda m, x, v, n=n: plummer(n), r"n = .* not an integer")
      for n in (10.5, "ten", None, True + 0.5)),
    (lambda m, x, v: uniform(10.0, 1), r"n = .* not an integer"),
    (lambda m, x, v: kroupa(3.5), r"n = .* not an integer"),
])  # fmt: skip
def test_arguments_in_another_order_and_numbers_that_are_none_are_told(call, words):
    with pytest.raises(ArgumentError, match=words):
        call(*plummer(np.int64(8), 1))


@kinds
def test_accelerations_and_jerks_of_an_integration_are_those_of_its_bodies(kind, options):
    h = make(kind, **options | ({"boundary": 1e3} if "boundary" in options else {}))
    for t in (0.0, 0.25, 0.31):
        h.evolve(t)
        acc, jerk, pot = direct(h.mass, h.pos, h.vel, 1 / 16, h.G)
        scheme = 2e-3 if "tree" in h.backend else 1e-4
        assert np.abs(h.acc - acc).max() < scheme * np.abs(acc).max()
        assert np.abs(h.jerk - jerk).max() < 20 * scheme * np.abs(jerk).max()
        assert np.abs(h.potential() - pot).max() < scheme * np.abs(pot).max()
        assert not h.acc.flags.writeable


@pytest.mark.parametrize("G", [0, -1, np.nan, "one"])
def test_wrong_constants_of_gravity_are_refused_in_words(G):
    for call in (lambda: make(G=G), lambda: make(Leapfrog, dt=0.1, backend="cpu", G=G)):
        with pytest.raises(ArgumentError, match="G = "):
            call()


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


def test_bodies_beyond_the_boundary_do_not_act_at_the_start():
    h = make(Leapfrog, dt=1 / 64, backend="cpu", precision="double", boundary=2.0)
    assert h.n < 48
    acc = direct(h.mass, h.pos, eps=1 / 16)[0]
    assert np.abs(h.acc - acc).max() < 1e-10
