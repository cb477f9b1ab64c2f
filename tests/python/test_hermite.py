"""``Hermite``: energy, momentum, order, orbits, the bits of its blocks; few, massless, resting and
coincident bodies, odd units and times."""

import numpy as np
import pytest

from grape6py import Hermite, plummer, two_body
from grape6py.errors import ArgumentError, Grape6Warning
from grape6py.integrators import blocks
from integrations import assert_same, error_of, made

N = 1024


@pytest.mark.full
@pytest.mark.parametrize(("eta", "goal", "precision"), [
    (0.02, 5e-8, "double"), (0.005, 5e-9, "grape")
])  # fmt: skip
def test_the_median_energy_error_of_five_plummer_spheres(eta, goal, precision):
    errors = []
    for seed in range(5):
        cluster = Hermite(*plummer(N, seed), eps=4 / N, eta=eta, precision=precision)
        start = cluster.energy().total
        cluster.evolve(1.0)
        errors.append(abs(cluster.energy().total / start - 1))
        total = (cluster.mass * np.sqrt((cluster.vel**2).sum(axis=1))).sum()
        assert np.abs(cluster.momentum()).max() <= 1e-7 * total
    assert np.median(errors) <= goal


def test_shared_steps_in_double_keep_the_momentum_to_rounding():
    cluster = made(n=256, eps=4 / 256, dt=1 / 256)
    before = cluster.momentum()
    cluster.evolve(1.0)
    total = (cluster.mass * np.sqrt((cluster.vel**2).sum(axis=1))).sum()
    assert np.abs(cluster.momentum() - before).max() <= 1e-13 * total


@pytest.mark.slow
def test_the_error_of_shared_steps_falls_with_their_fourth_power():
    all_made = [made(n=128, seed=5, eps=1 / 8, dt=2.0**-level) for level in range(6, 11)]
    worst = [error_of(one, *np.linspace(0, 1, 17)[1:]) for one in all_made]
    ratios = np.divide(worst[:-1], worst[1:])
    assert (np.abs(ratios - 16) <= 3).all(), ratios


def test_one_pass_more_makes_each_block_one_force_call_dearer_and_more_accurate():
    errors = [error_of(made(dt=1 / 32, passes=passes), 1.0) for passes in (1, 3)]
    assert errors[1] < errors[0]


@pytest.mark.parametrize("others", [0, 20, 40])
@pytest.mark.parametrize(("ratio", "e", "eps"), [
    (1, 0, 0.0), (1, 0.9, 0.0), (1, 0, 0.2), (0.1, 0.5, 0.0), (1e-3, 0, 0.0), (1e-9, 0.7, 0.1),
])  # fmt: skip
def test_hard_pairs_do_not_drift(ratio, e, eps, others):
    """As little as with two passes, for which all forces are summed twice; here with bodies far
    away, so that most blocks, which have 32 at most, have no others."""
    far = 1e-9 * np.ones(others), 1e4 * plummer(40, 1)[1][:others], np.zeros((others, 3))
    bodies = [*map(np.concatenate, zip(two_body(e, ratio), far, strict=True))]
    drifts = []
    for passes in 1, 2:
        pair = Hermite(*bodies, eps=eps, subsystems=False, passes=passes)
        start = pair.energy().total
        pair.evolve(20 * 2 * np.pi)
        drifts.append(abs(pair.energy().total / start - 1) / 20)
    assert drifts[0] < 1.5 * drifts[1] + 1e-9


@pytest.mark.parametrize(("passes", "goal"), [(1, 3e-6), (2, 5e-7)])
def test_orbits_of_eccentricity_nine_tenths(passes, goal):
    """The goals are those of a hundred orbits: each adds as much to the error as the one before."""
    pair = Hermite(*two_body(0.9), eta=0.00125, passes=passes, precision="double")
    assert error_of(pair, 10 * 2 * np.pi) <= goal / 10


def test_a_cold_collapse_keeps_its_energy():
    mass, pos, vel = plummer(128, seed=3)
    cluster = Hermite(mass, pos, 0 * vel, eps=0.02)
    assert error_of(cluster, 2.0) < 1e-5
    assert cluster.virial_ratio() > 0.2


@pytest.mark.full
def test_an_interrupted_block_does_no_harm(monkeypatch):
    """Calls return half way through blocks of so many pairs, and Ctrl-C is heard between them, or
    a signal handler looks."""
    bodies = plummer(47_000, 6)
    broken = Hermite(*bodies, eps=0.04, dt=1 / 64)
    whole = broken.copy()
    advance, evolve, half_way, seen = broken._blocks.advance, broken._blocks.bodies.evolve, [], []
    monkeypatch.setattr(blocks, "_SECONDS", 1e-9)

    def interrupted(*arguments, **options):
        moved = advance(*arguments, **options)
        half_way.append(broken._blocks._evolution.ni > 0)
        if len(half_way) in (1, 4):
            raise KeyboardInterrupt
        return moved

    def looking(evolution):
        code = evolve(evolution)
        if evolution.ni and not seen:
            seen.append(broken.pos)
        return code

    monkeypatch.setattr(broken._blocks, "advance", interrupted)
    monkeypatch.setattr(broken._blocks.bodies, "evolve", looking)
    with pytest.raises(KeyboardInterrupt):
        broken.evolve(1 / 64)
    broken.evolve(1 / 128)  # the block that is half way ends later
    assert broken.steps == 0
    assert not np.array_equal(broken.pos, bodies.pos)  # predicted
    unmoved = broken.state()["pos"]
    with pytest.raises(KeyboardInterrupt):
        broken.evolve(1 / 64)
    broken.evolve(1 / 64)
    whole.evolve(1 / 64)
    assert half_way[0]
    assert seen
    assert np.array_equal(unmoved, bodies.pos)
    assert np.array_equal(broken.pos, whole.pos)
    assert broken.steps == whole.steps == 47_000


def test_steps_are_powers_of_two_on_their_own_grid():
    cluster = Hermite(*plummer(300, 2), eps=0.01)

    def look(cluster):
        state = cluster.state()
        assert (np.frexp(state["dt"] / cluster.settings["dt_max"])[0] == 0.5).all()
        assert (state["t"] % state["dt"] == 0).all()

    cluster.evolve(0.25, look)
    assert len(np.unique(cluster.step_sizes)) > 3


@pytest.mark.parametrize("dt_max", [0.3, 1 / 16, 5.0])
def test_the_largest_step_is_rounded_down_to_a_power_of_two(dt_max):
    cluster = made(dt_max=dt_max)
    assert cluster.settings["dt_max"] == 2.0 ** np.floor(np.log2(dt_max))
    cluster.evolve(0.5)
    assert cluster.step_sizes.max() <= dt_max


@pytest.mark.parametrize(("dt", "time"), [(0.01, 1.0), (1 / 3, 1.0), (1 / 128, 1.0), (0.1, 300.0)])
def test_shared_steps_of_any_size(dt, time):
    """They do not drift in time, and meet their multiples."""
    cluster = made(n=64, dt=dt) if time == 1 else Hermite(*two_body(0.0), dt=dt)
    error = error_of(cluster, time)
    assert cluster.time == time
    assert (cluster.step_sizes == dt).all()
    assert time / dt - 1 <= cluster.blocks <= time / dt + 1e-9  # if the last one ends is chance
    assert cluster.steps == cluster.n * cluster.blocks
    assert np.allclose(cluster.state()["t"], dt * cluster.blocks, rtol=1e-13)
    assert dt != 0.01 or (cluster.state()["t"] == 1.0).all()
    assert dt >= 0.1 or error < 1e-5


def test_a_long_way_of_short_shared_steps_is_allowed():
    """2^23 largest steps is the limit of block steps, whose smallest is 2^30 times shorter."""
    cluster = made(dt=2.0**-20)
    cluster.evolve(20.0, lambda c: c.stop())
    assert cluster.time == 2.0**-20
    with pytest.raises(ArgumentError, match="dt_max"):
        made(dt_max=2.0**-20).evolve(20.0)
    with pytest.raises(ArgumentError, match="dt"):
        made(dt=2.0**-20).evolve(2.0**34)


def test_any_time_can_be_the_end():
    cluster, at_once = made(n=64), made(n=64)
    for time in (0.1, 0.1 + 2**-50, 1 / 3, 0.7):
        cluster.evolve(time)
        assert cluster.time == time
    at_once.evolve(0.7)
    assert_same(cluster, at_once)
    for end in (0.5, np.nan, np.inf, -1.0, 1e300, "soon", None):
        with pytest.raises((ArgumentError, TypeError), match="before" if end == 0.5 else None):
            cluster.evolve(end)
    cluster.evolve(0.7)
    assert_same(cluster, at_once)


def test_a_single_body_flies_on_in_a_straight_line():
    alone = Hermite([2.0], [[1, 2, 3]], [[0.5, 0, -1]], precision="double")
    alone.evolve(10.3)
    assert np.allclose(alone.pos, [[6.15, 2, -7.3]], rtol=1e-15)
    assert np.array_equal(alone.vel, [[0.5, 0, -1]])
    assert alone.energy().potential == 0


def test_coincident_bodies_move_as_one():
    """At distance 0 with eps = 0 a pair adds nothing: two halves do not feel each other."""
    mass, pos, vel = two_body(0.0)
    with pytest.warns(Grape6Warning, match="at one place"):
        split = Hermite(np.r_[mass[0] / 2, mass[0] / 2, mass[1]], pos[[0, 0, 1]],
                        vel[[0, 0, 1]], precision="double")  # fmt: skip
    split.evolve(1.0)
    with pytest.warns(Grape6Warning, match="at one place"):
        split.energy()
    assert np.isfinite(split.pos).all()
    assert np.array_equal(split.pos[0], split.pos[1])


def test_a_collision_without_softening_ends_and_warns():
    """Two bodies fall onto each other: the smallest step is hit, the run does not hang."""
    cluster = Hermite([0.5, 0.5], [[-0.5, 0, 0], [0.5, 0, 0]], np.zeros((2, 3)),
                      precision="double", subsystems=False)  # fmt: skip
    with pytest.warns(Grape6Warning, match="step"):
        cluster.evolve(1.2)
    assert cluster.time == 1.2
    assert np.isfinite(cluster.pos).all()


# In mode grape the last bits follow powers of 2^40 alone: see "Units" in docs/accuracy.md.
@pytest.mark.parametrize(("precision", "length", "time"), [
    ("grape", 40, 0), ("grape", 0, 40), ("grape", -40, -80), ("double", 40, 0),
    ("double", -30, 24), ("double", 7, -9),
])  # fmt: skip
def test_scaling_by_powers_of_two_keeps_the_mantissas(precision, length, time):
    mass, pos, vel = plummer(64, seed=2)
    plain = Hermite(mass, pos, vel, eps=1 / 16, precision=precision)
    scaled = Hermite(np.ldexp(mass, 3 * length - 2 * time), np.ldexp(pos, length),
                     np.ldexp(vel, length - time), eps=2.0**length / 16,
                     precision=precision)  # fmt: skip
    assert scaled.settings["dt_max"] == np.ldexp(plain.settings["dt_max"], time)
    plain.evolve(0.4)
    scaled.evolve(np.ldexp(0.4, time))
    assert np.array_equal(scaled.pos, np.ldexp(plain.pos, length))
    assert np.array_equal(scaled.vel, np.ldexp(plain.vel, length - time))


@pytest.mark.parametrize("precision", ["double", "grape"])
@pytest.mark.parametrize(("planets", "scatter"), [(2, 0), (5, 0), (8, 1e-6)])
def test_a_star_amid_a_ring_does_not_step_on_rounding(planets, scatter, precision):
    """Its forces cancel but for their errors, which would ask for ever shorter steps."""
    angle = 2 * np.pi * np.arange(planets) / planets
    ring = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    ring += scatter * np.random.default_rng(1).normal(size=ring.shape)
    turned = np.column_stack([-ring[:, 1], ring[:, 0], 0 * angle])
    mass = np.append(1.0, np.full(planets, 1e-4))
    star = Hermite(mass, np.vstack([np.zeros(3), ring]), np.vstack([np.zeros(3), turned]),
                   precision=precision)  # fmt: skip
    start = star.energy().total
    star.evolve(6.25, lambda s: s.stop() if s.blocks > 1000 else None)
    assert star.time == 6.25
    assert abs(star.energy().total / start - 1) < 2e-5
