"""Stars that lose mass, get kicks and collide: the argument `stars` of evolve."""

import math

import numpy as np
import pytest

from grape6py import Hermite, Leapfrog, StellarUpdate, Units, plummer, two_body
from grape6py.errors import ArgumentError
from grape6py.events import Encounter, EnergyError

MASS, POS, VEL = plummer(100, seed=3)
MASS = MASS * np.linspace(0.5, 1.5, 100)
KICK = np.where(np.arange(100)[:, None] == 7, [0.1, 0.2, 0], 0.0)


class Wind:
    """Stars that lose mass, one of which gets a kick at time 1/2."""

    def __init__(self):
        self.times = []

    def __call__(self, cluster):
        self.times.append(cluster.time)
        kick = KICK if cluster.time == 0.5 else None
        mass = np.where(MASS > 0.01, MASS * (1 - 0.2 * cluster.time), MASS)
        return StellarUpdate(mass, [9.0, cluster.time + 0.125], kick, np.full(100, 1e-5))


def made(kind=Hermite, **options):
    options |= {"eps": 0.01} if kind is Hermite else {"eps": 0.05, "dt": 1 / 64}
    return kind(MASS, POS, VEL, **options)


def test_masses_follow_and_energy_is_accounted():
    cluster, wind = made(), Wind()
    assert cluster.evolve(1.0, stars=wind, events=EnergyError(1e-4)) is None
    assert wind.times == [k / 8 for k in range(9)]
    assert np.array_equal(cluster.mass, np.where(MASS > 0.01, MASS * 0.8, MASS))
    assert cluster.energy_change > 0.05
    assert np.array_equal(cluster.radius, np.full(100, 1e-5))


def test_cuts_and_restarts_change_no_bit(tmp_path):
    whole, cut = made(), made()
    whole.evolve(1.0, stars=Wind())
    cut.evolve(0.3, stars=Wind())
    cut.save(tmp_path / "cut.h5")
    cut = Hermite.load(tmp_path / "cut.h5")
    assert cut.radius[0] == 1e-5
    wind = Wind()
    for t in (0.375, 0.5, 0.77, 1.0):
        cut.evolve(t, stars=wind)
    assert wind.times == [k / 8 for k in range(3, 9)]
    assert np.array_equal(whole.pos, cut.pos)


def test_a_kick_is_added():
    cluster = made(Leapfrog)
    cluster.evolve(0.5)
    before = cluster.vel
    cluster.evolve(0.5, stars=lambda c: StellarUpdate(c.mass, kick=KICK))
    assert np.array_equal(cluster.vel, before + KICK)
    cluster.evolve(0.6, stars=lambda _: pytest.fail("it has said never"))


def test_a_binary_widens_as_slow_loss_of_mass_has_it():
    """a (m1 + m2) and e stay (Jeans 1924)."""
    pair = two_body(0.3, 0.5)
    cluster = Hermite(*pair)
    cluster.evolve(
        2000.0, stars=lambda c: StellarUpdate(pair.mass * (1 - c.time / 8000), c.time + 1.0)
    )
    found = cluster.orbits(0)
    assert np.allclose([found.a[0], found.e[0]], [4 / 3, 0.3], rtol=2e-3)


@pytest.mark.parametrize("subsystems", [False, True])
@pytest.mark.parametrize("times", [0.98, 1.02])
def test_stars_collide_that_touch(times, subsystems):
    pair = Hermite([0.5, 0.5], [[0, 0, 0], [1, 0.01, 0]], [[0, 0, 0], [-3, 0, 0.0]],
                   subsystems=subsystems)  # fmt: skip
    orbit = pair.orbits(0)
    radius = times * (orbit.a * (1 - orbit.e))[0] / 2
    pair.evolve(1.0, stars=lambda c: StellarUpdate(c.mass, radius=np.full(len(c), radius)),
                events=Encounter("radii", "merge"))  # fmt: skip
    assert len(pair) == (1 if times > 1 else 2)
    assert pair.radius.shape == (len(pair),)


def test_stars_in_units():
    u = pytest.importorskip("astropy.units")
    cluster = Hermite(*plummer(50, seed=1, units=Units("1000 Msun", "1 pc")))

    def stars(c):
        mass = c.mass * (1 - 0.1 * c.time.to_value("Myr"))
        kick = np.zeros((50, 3)) * u.km / u.s
        return StellarUpdate(mass, c.time + 0.25 * u.Myr, kick, np.ones(50) * u.Rsun)

    cluster.evolve(0.5 * u.Myr, stars=stars)
    assert np.isclose(cluster.mass.sum(), 0.975 * 0.95 * 1000 * u.Msun)
    assert np.allclose(cluster.radius, 1 * u.Rsun)


@pytest.mark.parametrize(("stars", "why"), [
    (lambda c: c.mass, "not a StellarUpdate"),
    (lambda c: StellarUpdate(c.mass[1:]), "stars: mass has shape"),
    (lambda c: StellarUpdate(-c.mass), "below zero"),
    (lambda c: StellarUpdate(c.mass * math.nan), "stars: mass"),
    (lambda c: StellarUpdate(c.mass, c.time), "never end"),
    (lambda c: StellarUpdate(c.mass, math.nan), "next"),
    (lambda c: StellarUpdate(c.mass, kick=[1, 2]), "stars: kick"),
    (lambda c: StellarUpdate(c.mass, radius=-c.mass), "radius .* below zero"),
])  # fmt: skip
def test_wrong_stars_are_refused(stars, why):
    cluster = made()
    with pytest.raises(ArgumentError, match=why):
        cluster.evolve(1.0, stars=stars)
    assert np.array_equal(cluster.mass, MASS)
    assert cluster.time == 0


def test_radii_have_to_be_known_and_are_hermites():
    points = made()
    points.evolve(0.1, stars=lambda c: StellarUpdate(c.mass, radius=0 * c.mass),
                  events=Encounter("radii"))  # fmt: skip
    assert points.events == []
    with pytest.raises(ArgumentError, match="no radii"):
        made().evolve(1.0, events=Encounter("radii"))
    with pytest.raises(ArgumentError, match="Leapfrog has not"):
        made(Leapfrog).evolve(1.0, stars=Wind())
