"""``Hermite`` at its edges: few, massless, resting and coincident bodies, odd units and times."""

import warnings

import numpy as np
import pytest

from grape6py import Hermite, Leapfrog, plummer, reference, two_body
from grape6py.errors import ArgumentError, Grape6Warning, NotFiniteError

YEAR, AU, SUN = 3.15576e7, 1.495978707e11, 1.32712440018e20  # G M, since G = 1: m^3 / s^2


def energy(cluster, eps=0.0):
    return reference.energy(cluster.mass, cluster.pos, cluster.vel, eps2=eps**2, extended=True)


def test_a_single_body_flies_on_in_a_straight_line():
    alone = Hermite([2.0], [[1, 2, 3]], [[0.5, 0, -1]], precision="double")
    alone.evolve(10.3)
    assert alone.time == 10.3
    assert np.allclose(alone.pos, [[6.15, 2, -7.3]], rtol=1e-15)
    assert np.array_equal(alone.vel, [[0.5, 0, -1]])
    assert alone.energy().potential == 0


@pytest.mark.parametrize("precision", ["grape", "double"])
def test_two_bodies_on_a_circle_come_back(precision):
    pair = Hermite(*two_body(0.0), eta=0.002, precision=precision)
    start = pair.pos
    pair.evolve(2 * np.pi)
    assert np.abs(pair.pos - start).max() < 1e-5


def test_bodies_without_mass_are_carried_along():
    mass, pos, vel = two_body(0.0)
    probe = [[0, 0, 50.0]], [[0.0, 0.01, 0]]
    bare = Hermite(mass, pos, vel, dt=1 / 64, precision="double")
    probed = Hermite(np.r_[mass, 0], np.r_[pos, probe[0]], np.r_[vel, probe[1]], dt=1 / 64,
                     precision="double")  # fmt: skip
    for cluster in bare, probed:
        cluster.evolve(3.0)
    assert np.array_equal(probed.pos[:2], bare.pos)
    assert probed.pos[2, 2] == pytest.approx(50 - 3.0**2 / 2 / 50**2, abs=1e-6)
    assert probed.energy().total == pytest.approx(bare.energy().total, rel=1e-14)


def test_bodies_none_of_which_has_mass_fly_straight():
    cluster = Hermite(np.zeros(3), np.eye(3), np.eye(3))
    cluster.evolve(4.0)
    assert np.array_equal(cluster.pos, 5 * np.eye(3))
    assert np.isnan(cluster.virial_ratio())


def test_a_cold_collapse_keeps_its_energy():
    mass, pos, _ = plummer(128, seed=3)
    cluster = Hermite(mass, pos, np.zeros((128, 3)), eps=0.02)
    start = energy(cluster, 0.02).total
    cluster.evolve(2.0)
    assert abs(energy(cluster, 0.02).total / start - 1) < 1e-5
    assert cluster.virial_ratio() > 0.2


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
                      precision="double")  # fmt: skip
    with pytest.warns(Grape6Warning, match="step"):
        cluster.evolve(1.2)
    assert cluster.time == 1.2
    assert np.isfinite(cluster.pos).all()


def solar_system(length, time, mass):
    """Sun, Earth and Jupiter on circles, in SI times these units."""
    radii, masses = np.array([0, 1, 5.2044]) * AU, SUN * np.array([1, 3.0035e-6, 9.5479e-4])
    speed = np.sqrt(SUN / np.where(radii > 0, radii, np.inf))
    pos, vel = np.zeros((2, 3, 3))
    pos[:, 0], vel[:, 1] = radii * length, speed * length / time
    return masses * mass, pos, vel


@pytest.mark.parametrize(("length", "time"), [(1.0, 1.0), (100.0, 1.0), (1 / AU, 1 / YEAR)],
                         ids=["si", "cgs", "au"])  # fmt: skip
def test_the_solar_system_in_any_units(length, time):
    cluster = Hermite(
        *solar_system(length, time, length**3 / time**2), precision="double", eta=0.01
    )
    start = energy(cluster).total
    cluster.evolve(5 * YEAR * time)
    assert 0.01 * YEAR * time < cluster.settings["dt_max"] < 2 * YEAR * time
    assert abs(energy(cluster).total / start - 1) < 1e-6
    earth, sun = cluster.pos[1], cluster.pos[0]
    assert np.linalg.norm(earth - sun) == pytest.approx(AU * length, rel=0.01)
    assert 100 < cluster.blocks < 20000


@pytest.mark.parametrize("planet", [1e-3, 1e-12, 0.0])
def test_a_light_planet_has_a_year_too(planet):
    """The largest step follows from what the bodies feel, not from the mass ratio."""
    cluster = Hermite([1, planet], [[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, 1, 0]])
    assert 1 / 16 <= cluster.settings["dt_max"] <= 1 / 2
    cluster.evolve(2 * np.pi)
    relative = cluster.pos[1] - cluster.pos[0]
    assert np.linalg.norm(relative) == pytest.approx(1, abs=2 * planet + 1e-3)


# In mode grape the last bits follow powers of 2^40 alone: see "Units" in docs/accuracy.md.
@pytest.mark.parametrize(
    ("precision", "length", "time"),
    [("grape", 40, 0), ("grape", 0, 40), ("grape", -40, -80), ("double", 40, 0),
     ("double", -30, 24), ("double", 7, -9)],
)  # fmt: skip
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


def test_any_time_can_be_the_end():
    cluster, at_once = (Hermite(*plummer(64, 1), eps=1 / 16) for _ in range(2))
    for time in (0.1, 0.1 + 2**-50, 1 / 3, 0.7):
        cluster.evolve(time)
        assert cluster.time == time
    at_once.evolve(0.7)
    assert np.array_equal(cluster.pos, at_once.pos)
    with pytest.raises(ArgumentError, match="before"):
        cluster.evolve(0.5)
    cluster.evolve(0.7)
    assert np.array_equal(cluster.pos, at_once.pos)


@pytest.mark.parametrize("end", [np.nan, np.inf, -1.0, 1e300, "soon", None])
def test_no_end_is_refused(end):
    cluster = Hermite(*plummer(16, 1), eps=0.1)
    with pytest.raises((ArgumentError, TypeError)):
        cluster.evolve(end)
    assert cluster.time == 0


@pytest.mark.parametrize("dt", [0.01, 1 / 3, 1 / 128])
def test_shared_steps_of_any_size(dt):
    cluster = Hermite(*plummer(64, 2), eps=1 / 16, dt=dt, precision="double")
    start = energy(cluster, 1 / 16).total
    cluster.evolve(1.0)
    assert cluster.time == 1
    assert (cluster.step_sizes == dt).all()
    assert 1 / dt - 1 <= cluster.blocks <= 1 / dt  # whether the last one ends in time is chance
    assert cluster.steps == 64 * cluster.blocks
    if dt < 0.1:
        assert abs(energy(cluster, 1 / 16).total / start - 1) < 1e-5


def test_many_shared_steps_do_not_drift_in_time():
    cluster = Hermite(*two_body(0.0), dt=0.1, precision="double")
    cluster.evolve(300.0)
    assert cluster.blocks in (2999, 3000)
    assert np.allclose(cluster.state()["t"], 0.1 * cluster.blocks, rtol=1e-13)


@pytest.mark.parametrize("dt_max", [0.3, 1 / 16, 5.0])
def test_the_largest_step_is_rounded_down_to_a_power_of_two(dt_max):
    cluster = Hermite(*plummer(32, 2), eps=0.1, dt_max=dt_max)
    assert cluster.settings["dt_max"] == 2.0 ** np.floor(np.log2(dt_max))
    cluster.evolve(0.5)
    assert cluster.step_sizes.max() <= dt_max


@pytest.mark.parametrize("name", ["mass", "pos", "vel"])
@pytest.mark.parametrize(("kind", "bad"), [
    (Hermite, np.nan), (Hermite, np.inf), (Leapfrog, np.nan)
])  # fmt: skip
def test_values_that_are_not_finite_are_refused(kind, name, bad):
    given = plummer(10, 1)._asdict()
    given[name][4] = bad
    with pytest.raises(NotFiniteError, match=rf"{name}\[4\]"):
        kind(**given, dt=0.1)


@pytest.mark.parametrize("shapes", [(3, (3, 3), (2, 3)), (3, (3, 2), (3, 3)), (2, (3, 3), (3, 3))])
def test_shapes_that_do_not_fit_are_refused(shapes):
    with pytest.raises(ArgumentError):
        Hermite(*(np.ones(shape) for shape in shapes))


def test_an_ordinary_run_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Hermite(*plummer(64, 2), eps=1 / 16).evolve(0.5)


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


def test_a_shared_step_that_is_no_power_of_two_meets_its_multiples():
    cluster = Hermite(*plummer(20, 1), eps=0.1, dt=0.01)
    cluster.evolve(1.0)
    assert cluster.blocks == 100
    assert (cluster.state()["t"] == 1.0).all()
