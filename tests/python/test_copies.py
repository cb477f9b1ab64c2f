"""Copies of integrations and trees, arrays of other libraries, accelerations, units."""

import copy
import math
import multiprocessing
import pickle

import numpy as np
import pytest

from grape6py import Grape6, Hermite, Leapfrog, Tree, accelerations, kroupa, plummer, uniform
from grape6py.errors import ArgumentError, NotFiniteError, NotOpenError

WAYS = {
    "copy": lambda a: a.copy(),
    "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda a: pickle.loads(pickle.dumps(a)),
}
ways = pytest.mark.parametrize("way", WAYS)
KINDS = [
    (Hermite, {}), (Hermite, {"precision": "double", "dt": 1 / 64}), (Hermite, {"G": 2.0}),
    (Leapfrog, {"dt": 1 / 64, "backend": "cpu"}),
    (Leapfrog, {"dt": 1 / 64, "backend": "cpu", "precision": "single"}),
    (Leapfrog, {"dt_max": 1 / 16, "backend": "cpu-tree"}),
    (Leapfrog, {"dt": 1 / 32, "backend": "cpu-tree", "accuracy": 2e-3, "boundary": 2.0}),
]  # fmt: skip
kinds = pytest.mark.parametrize(("kind", "options"), KINDS)


def make(kind=Hermite, n=48, **options):
    return kind(*plummer(n, 1), eps=1 / 16, **options)


def same(one, two):
    assert (one.time, one.steps, one.blocks) == (two.time, two.steps, two.blocks)
    assert np.array_equal(one.ids, two.ids)
    states = one.state(), two.state()
    assert states[0].keys() == states[1].keys()
    for name in states[0]:
        assert np.array_equal(states[0][name], states[1][name]), name


def direct(mass, pos, vel=None, eps=0.0, G=1.0):
    """Acceleration, jerk and potential in plain NumPy."""
    mass, pos = np.broadcast_to(np.asarray(mass, float), len(pos)), np.asarray(pos, float)
    x = pos - pos[:, None]
    v = np.zeros_like(x) if vel is None else np.asarray(vel) - np.asarray(vel)[:, None]
    r2 = (x * x).sum(axis=2) + eps * eps
    np.fill_diagonal(r2, np.inf)
    w = G * mass * r2**-1.5
    acc = (w[..., None] * x).sum(axis=1)
    rv = (x * v).sum(axis=2) / r2
    jerk = (w[..., None] * (v - 3 * rv[..., None] * x)).sum(axis=1)
    return acc, jerk, -(G * mass / np.sqrt(r2)).sum(axis=1)


# ---- copies of integrations ----------------------------------------------------------------------


@kinds
@ways
def test_copies_go_on_with_the_same_bits(kind, options, way):
    h = make(kind, **options)
    h.evolve(0.43)
    again = WAYS[way](h)
    assert type(again) is kind
    assert again.settings == h.settings
    assert (again.backend, again.precision, again.G) == (h.backend, h.precision, h.G)
    same(h, again)
    assert again.energy() == h.energy()
    for each in (h, again):
        each.evolve(0.6)
        each.evolve(0.8)
    same(h, again)


@ways
def test_copies_have_lives_of_their_own(way):
    """Each but a pickle is another run."""
    h, plain = make(), make()
    again = WAYS[way](h)
    assert (again.run_id == h.run_id) == (way == "pickle")
    again.kick(3, [1, 0, 0])
    again.evolve(1.0)
    again.close()
    for each in (h, plain):
        each.evolve(0.5)
    same(h, plain)


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


@pytest.mark.parametrize("way", ["multiprocessing", "joblib"])
def test_integrations_go_to_other_processes(way):
    runs = [make(n=16), make(n=24)]
    if way == "joblib":
        joblib = pytest.importorskip("joblib")
        found = joblib.Parallel(n_jobs=2)(joblib.delayed(_energy_of)(h) for h in runs)
    else:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.map(_energy_of, runs)
    for h, (pos, energy) in zip(runs, found, strict=True):
        h.evolve(0.5)
        assert np.array_equal(pos, h.pos)
        assert energy == h.energy().total


# ---- trees ---------------------------------------------------------------------------------------


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


# ---- arrays of other libraries -------------------------------------------------------------------


def everything(mass, pos, vel, index):
    """All calls that give back arrays of the kind that came in."""
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


# ---- accelerations -------------------------------------------------------------------------------


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
])  # fmt: skip
def test_wrong_arguments_of_accelerations_are_refused_in_words(arguments, options, words):
    with pytest.raises(ArgumentError, match=words):
        accelerations(*arguments, **options)


def test_places_that_are_not_finite_are_refused():
    with pytest.raises(NotFiniteError, match=r"\[1\]"):
        accelerations([1, 1], [[0, 0, 0], [math.nan, 0, 0]])


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


# ---- what one asks -------------------------------------------------------------------------------


@kinds
def test_sums_over_bodies_are_those_of_numpy(kind, options):
    h = make(kind, **options)
    h.evolve(0.3)
    m, x, v = h.mass, h.pos, h.vel
    assert len(h) == h.n == len(m)
    assert np.allclose(h.centre_of_mass(), m @ x / m.sum(), atol=1e-15)
    assert np.allclose(h.momentum(), m @ v, atol=1e-15)
    assert np.allclose(h.angular_momentum(), (m[:, None] * np.cross(x, v)).sum(axis=0), atol=1e-14)
    kinetic = (m * (v * v).sum(axis=1)).sum() / 2
    assert h.energy().kinetic == pytest.approx(kinetic, rel=1e-13)
    pot = (m * direct(m, x, eps=1 / 16, G=h.G)[2]).sum() / 2
    assert h.energy().potential == pytest.approx(pot, rel=1e-4 if "tree" in h.backend else 1e-12)
    assert h.virial_ratio() == pytest.approx(-kinetic / pot, rel=1e-4)


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


@pytest.mark.parametrize(("kind", "options"), [
    (Hermite, {"precision": "double", "dt_max": 1 / 8}),
    (Hermite, {"precision": "double", "dt": 1 / 64}),
    (Leapfrog, {"precision": "double", "dt": 1 / 64, "backend": "cpu"}),
])  # fmt: skip
def test_a_constant_of_gravity_is_another_unit(kind, options):
    """Masses in solar ones, parsec, km/s: speeds are sqrt(G M / r); times r / speed."""
    G, weight, length = 4.3e-3, 1000.0, 2.0
    speed = math.sqrt(G * weight / length)
    time = length / speed
    m, x, v = plummer(32, 1)
    plain = kind(m, x, v, eps=1 / 16, **options)
    factor = {k: o * 2.0 ** round(math.log2(time)) if k[:2] == "dt" else o
              for k, o in options.items()}  # fmt: skip
    time_unit = 2.0 ** round(math.log2(time))
    weight *= (time / time_unit) ** 2  # times a power of two, so that steps are equal
    speed = length / time_unit
    units = kind(m * weight, x * length, v * speed, eps=length / 16, G=G, **factor)
    for k in (0.25, 1.0):
        plain.evolve(k)
        units.evolve(k * time_unit)
        assert np.abs(units.pos / length - plain.pos).max() < 1e-10
        assert np.abs(units.vel / speed - plain.vel).max() < 1e-9
    energy = plain.energy().total * weight * speed**2
    assert units.energy().total == pytest.approx(energy, rel=1e-11)
    assert units.settings["G"] == units.G == G
    assert plain.G == 1


@pytest.mark.parametrize("G", [0, -1, math.nan, "one"])
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
