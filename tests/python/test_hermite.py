"""The physics of ``Hermite``: energy, momentum, order, orbits; and the bits of its blocks."""

import numpy as np
import pytest

from grape6py import Hermite, plummer, two_body
from grape6py._lib.library import ffi, lib, pointer
from grape6py.errors import ArgumentError
from grape6py.integrators import blocks

N = 1024
EPS = 4 / N


def energy_error(cluster, start):
    return abs(cluster.energy().total / start - 1)


def integrated(seed, **options):
    cluster = Hermite(*plummer(N, seed), eps=EPS, **options)
    start = cluster.energy().total
    cluster.evolve(1.0)
    return cluster, energy_error(cluster, start)


@pytest.mark.parametrize(("eta", "goal", "precision"), [
    (0.02, 5e-8, "double"), (0.005, 5e-9, "grape")
])  # fmt: skip
def test_the_median_energy_error_of_eight_plummer_spheres(eta, goal, precision):
    errors = [integrated(seed, eta=eta, precision=precision)[1] for seed in range(8)]
    assert np.median(errors) <= goal


def test_block_steps_keep_the_momentum():
    cluster, _ = integrated(3, eta=0.02)
    total = (cluster.mass * np.sqrt((cluster.vel**2).sum(axis=1))).sum()
    assert np.abs(cluster.momentum()).max() <= 1e-7 * total


def test_shared_steps_in_double_keep_the_momentum_to_rounding():
    cluster = Hermite(*plummer(256, 2), eps=4 / 256, dt=1 / 256, precision="double")
    before = cluster.momentum()
    cluster.evolve(1.0)
    total = (cluster.mass * np.sqrt((cluster.vel**2).sum(axis=1))).sum()
    assert np.abs(cluster.momentum() - before).max() <= 1e-13 * total


def test_the_error_of_shared_steps_falls_with_their_fourth_power():
    worst = []
    for level in range(5):
        cluster = Hermite(*plummer(128, 5), eps=1 / 8, dt=2.0 ** -(6 + level), precision="double")
        start, errors = cluster.energy().total, []
        cluster.evolve(1.0, lambda c, e0=start, to=errors: to.append(energy_error(c, e0)),
                       every=1 / 16)  # fmt: skip
        worst.append(max(errors))
    ratios = np.divide(worst[:-1], worst[1:])
    assert (np.abs(ratios - 16) <= 3).all(), ratios


@pytest.mark.parametrize(("passes", "goal"), [(1, 3e-6), (2, 5e-7)])
def test_orbits_of_eccentricity_nine_tenths(passes, goal):
    """The goals are those of a hundred orbits: each adds as much to the error as the one before."""
    pair = Hermite(*two_body(0.9), eta=0.00125, passes=passes, precision="double")
    start = pair.energy().total
    pair.evolve(25 * 2 * np.pi)
    assert energy_error(pair, start) <= goal / 4


def test_bodies_are_predicted_with_the_bits_of_the_j_particles():
    generator = np.random.default_rng(4)
    t = generator.random(9)
    pos, vel, acc, jerk = generator.normal(size=(4, 9, 3))
    address = np.array([8, 0, 3], np.int32)
    xi, vi = np.empty((2, 3, 3))
    vectors = [pointer(a) for a in (pos, vel, acc, jerk, xi, vi)]
    block = 3, pointer(address), 1.5, pointer(t)
    assert lib.g6x_hermite_predict(*block, *vectors) == 0

    cluster, everybody = 77, np.arange(9, dtype=np.int32)
    assert lib.g6_open(cluster) == 0
    scaled = jerk / 6, acc / 2
    written = (pointer(a) for a in (*scaled, vel, pos))
    mass = np.ones(9)
    lib.g6x_set_j_particles(
        cluster, 9, pointer(everybody), ffi.NULL, pointer(t), ffi.NULL,
        pointer(mass), ffi.NULL, *written,
    )  # fmt: skip
    lib.g6_set_ti(cluster, 1.5)
    x, v = np.empty((2, 9, 3))
    there = (pointer(a) for a in (x, v))
    assert lib.g6_get_predicted_j_particles(cluster, 9, *there) == 0
    lib.g6_close(cluster)
    assert np.array_equal(xi, x[address])
    assert np.array_equal(vi, v[address])


def test_looking_at_the_bodies_changes_nothing():
    watched, left_alone = (Hermite(*plummer(200, 1), eps=0.02) for _ in range(2))
    watched.evolve(0.7, lambda c: (c.pos, c.energy()), every=0.01)
    left_alone.evolve(0.7)
    assert np.array_equal(watched.pos, left_alone.pos)
    assert np.array_equal(watched.state()["jerk"], left_alone.state()["jerk"])


def test_an_interrupted_block_does_no_harm(monkeypatch):
    """Calls return half way through blocks of so many pairs, and Ctrl-C is heard between them."""
    bodies = plummer(47_000, 6)
    broken, whole = (Hermite(*bodies, eps=0.04, dt=1 / 64) for _ in range(2))
    advance, half_way = broken._blocks.advance, []
    monkeypatch.setattr(blocks, "_SECONDS", 1e-9)

    def interrupted(*arguments, **options):
        moved = advance(*arguments, **options)
        half_way.append(broken._blocks._evolution.ni > 0)
        if len(half_way) in (1, 4):
            raise KeyboardInterrupt
        return moved

    monkeypatch.setattr(broken._blocks, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        broken.evolve(1 / 32)
    broken.evolve(1 / 128)  # the block that is half way ends later
    assert broken.steps == 0
    assert not np.array_equal(broken.pos, bodies.pos)  # predicted
    unmoved = broken.state()["pos"]
    with pytest.raises(KeyboardInterrupt):
        broken.evolve(1 / 32)
    broken.evolve(1 / 32)
    whole.evolve(1 / 32)
    assert half_way[0]
    assert np.array_equal(unmoved, bodies.pos)
    assert np.array_equal(broken.pos, whole.pos)
    assert broken.steps == whole.steps == 94_000


def test_a_signal_handler_may_look_half_way_through_a_block(monkeypatch):
    looked, whole = (Hermite(*plummer(47_000, 6), eps=0.04, dt=1 / 64) for _ in range(2))
    evolve, half_way = looked._blocks.bodies.evolve, []
    monkeypatch.setattr(blocks, "_SECONDS", 1e-9)

    def interrupted(evolution):
        code = evolve(evolution)
        if evolution.ni and not half_way:
            half_way.append(looked.pos)
        return code

    monkeypatch.setattr(looked._blocks.bodies, "evolve", interrupted)
    looked.evolve(1 / 64)
    whole.evolve(1 / 64)
    assert half_way
    assert np.array_equal(looked.pos, whole.pos)
    assert looked.steps == whole.steps == 47_000


def test_steps_are_powers_of_two_on_their_own_grid():
    cluster = Hermite(*plummer(300, 2), eps=0.01)

    def look(cluster):
        state = cluster.state()
        largest = cluster.settings["dt_max"]
        assert (np.frexp(state["dt"] / largest)[0] == 0.5).all()
        assert (state["t"] % state["dt"] == 0).all()

    cluster.evolve(0.25, look)
    assert len(np.unique(cluster.step_sizes)) > 3


@pytest.mark.parametrize(
    "wrong",
    [{"eps": -1}, {"eta": 0}, {"passes": 0}, {"dt": -0.1}, {"dt_max": np.inf}, {"eta_start": -1},
     {"eta": "much"}, {"dt": 0.1, "dt_max": 1},
     {"precision": "half"}],
)  # fmt: skip
def test_nonsense_is_refused_before_anything_is_done(wrong):
    with pytest.raises(ArgumentError):
        Hermite(*plummer(10, 1), **wrong)
