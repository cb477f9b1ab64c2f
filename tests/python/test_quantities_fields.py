"""Fields in quantities, and bodies in them."""

import pickle

import numpy as np
import pytest
from astropy import constants
from astropy import units as u

from grape6py import Hermite, Units, fields
from grape6py.errors import ArgumentError
from in_quantities import (
    GALACTIC,
    HENON,
    KINDS,
    KMS,
    NEWTON,
    all_by_hand,
    assert_alike,
    assert_same,
    by_hand,
    is_close,
    made,
    stars,
)
from runs import here  # noqa: F401 (fixture)

FIELDS = {
    "point_mass": {"mass": 1e10 * u.Msun},
    "plummer": {"mass": 2e40 * u.kg, "scale": 0.3 * u.kpc},
    "miyamoto_nagai": {"mass": 5e10 * u.Msun, "a": 3 * u.kpc, "b": 280 * u.pc},
    "nfw": {"mass": 1e11 * u.Msun, "scale": 16 * u.kpc},
    "logarithmic": {"speed": 2.2e5 * u.m / u.s, "core": 0.1 * u.kpc, "flattening": 0.8},
    "power_law_cutoff": {"mass": 5e9 * u.Msun, "exponent": 1.8, "cutoff": 1.9 * u.kpc},
    "rotation": {"omega": 30 * KMS / u.kpc},
    "mwpotential2014": {"radius": 8.1 * u.kpc, "speed": 230 * KMS},
}  # fmt: skip


def places(n=12):
    rng = np.random.default_rng(2)
    return rng.normal(size=(n, 3)) * 5 * u.kpc, rng.normal(size=(n, 3)) * 100 * KMS


@pytest.mark.parametrize("name", FIELDS)
def test_fields_take_quantities_and_give_them(name):
    make, given = getattr(fields, name), FIELDS[name]
    field = make(**given, units=GALACTIC)
    more = {"G": NEWTON} if name == "mwpotential2014" else {}
    plain = make(**all_by_hand(given), **more).with_masses_times(NEWTON)
    assert field.units == GALACTIC
    pos, vel = places()
    wanted = plain(0.0, by_hand(pos), by_hand(vel))
    for x, v, t in ((pos, vel, 0.0), (pos.to(u.AU), vel.to(u.m / u.s), 1 * u.Myr)):
        found = field(t, x, v)
        for each, numbers, unit in ((found.acc, wanted.acc, KMS / u.Myr),
                                    (found.jerk, wanted.jerk, KMS / u.Myr**2),
                                    (found.pot, wanted.pot, KMS**2)):  # fmt: skip
            assert_same(each, numbers, unit, 1e-12)


@pytest.mark.parametrize("name", FIELDS)
def test_fields_of_numbers_with_units_are_those_of_quantities(name):
    one = getattr(fields, name)(**FIELDS[name], units=GALACTIC)
    other = getattr(fields, name)(**all_by_hand(FIELDS[name]), units=GALACTIC)
    kpc = getattr(fields, name)(**FIELDS[name], units=Units("1e10 Msun", "kpc", velocity="km/s"))
    pos, vel = places()
    for field in (other, kpc):
        found, wanted = field(0.0, pos, vel), one(0.0, pos, vel)
        assert is_close(by_hand(found.acc), by_hand(wanted.acc), 1e-12)
        shift = by_hand(found.pot - wanted.pot)  # a logarithm has its zero where the length is 1
        assert np.ptp(shift) < 1e-12 * abs(by_hand(wanted.pot)).max()
        assert name == "logarithmic" or abs(shift).max() < 1e-12 * abs(by_hand(wanted.pot)).max()


def test_a_point_mass_attracts_as_newton_says():
    field = fields.point_mass(1 * u.Msun, units=Units("Msun", "AU", time="yr"))
    found = field(0.0, [[0, 1, 0]] * u.AU, np.zeros((1, 3)) * KMS)
    wanted = -constants.G * u.Msun / u.AU**2
    assert found.acc[0, 1].to_value(u.m / u.s**2) == pytest.approx(
        wanted.to_value(u.m / u.s**2), rel=1e-12
    )
    deep = (-constants.G * u.Msun / u.AU).to_value(KMS**2)
    assert found.pot[0].to_value(KMS**2) == pytest.approx(deep, rel=1e-12)


@pytest.mark.parametrize("units", [
    GALACTIC, HENON, Units("1e10 Msun", "kpc", time="Gyr"), Units("kg", "m", time="s"),
    Units("Msun", "AU"),
])  # fmt: skip
def test_the_milky_way_has_its_circular_speed_in_all_units(units):
    field = fields.mwpotential2014(units=units)
    acc = field(0.0, [[8, 0, 0]] * u.kpc, np.zeros((1, 3)) * KMS).acc[0, 0]
    assert np.sqrt(-acc * 8 * u.kpc).to_value(KMS) == pytest.approx(220, rel=1e-12)
    given = fields.mwpotential2014(8 * u.kpc, 220 * KMS, units=units)
    acc = given(0.0, [[8, 0, 0]] * u.kpc, np.zeros((1, 3)) * KMS).acc[0, 0]
    assert np.sqrt(-acc * 8 * u.kpc).to_value(KMS) == pytest.approx(220, rel=1e-12)


def test_sums_of_fields_keep_their_units():
    one, other = (fields.point_mass(m * u.Msun, units=GALACTIC) for m in (1, 2))
    total = one + other
    assert total.units == GALACTIC
    acc = total(0.0, [[1, 0, 0]] * u.pc, [[0, 0, 0]] * KMS).acc[0, 0]
    assert by_hand(acc) == pytest.approx(-3 * NEWTON, rel=1e-12)
    both = total + fields.plummer(1 * u.Msun, 2 * u.pc, units=HENON)
    assert both.units == GALACTIC
    assert both.terms[-1].values == pytest.approx((1, 2), rel=1e-14)
    assert one != fields.point_mass(1, units=HENON)
    again = pickle.loads(pickle.dumps(total))
    assert again.units == GALACTIC
    assert again == total


@pytest.mark.parametrize("kind", KINDS)
def test_bodies_move_in_a_field_in_quantities(kind):
    field = fields.miyamoto_nagai(**FIELDS["miyamoto_nagai"], units=GALACTIC)
    field += fields.rotation(**FIELDS["rotation"], units=GALACTIC)
    numbers = fields.miyamoto_nagai(**all_by_hand(FIELDS["miyamoto_nagai"]))
    numbers += fields.rotation(**all_by_hand(FIELDS["rotation"]))
    cls, options = KINDS[kind]
    cluster = cls(*stars(), **options, field=field)
    plain = cls(*all_by_hand(stars()), **all_by_hand(options), field=numbers, G=NEWTON)
    assert_alike(cluster, plain)
    cluster.evolve(20 * u.kyr)
    plain.evolve(by_hand(20 * u.kyr))
    assert_alike(cluster, plain)


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_in_other_units_than_the_bodies_is_converted(kind):
    found = []
    for text in "Msun pc km/s", "5e4 Msun 1.2 pc", "Msun kpc km/s", "Msun pc Myr":
        units = Units.from_text(text)
        field = fields.rotation(**FIELDS["rotation"], units=units)
        for name in "nfw", "logarithmic", "miyamoto_nagai", "power_law_cutoff":
            field += getattr(fields, name)(**FIELDS[name], units=units)
        cluster = made(kind, field=field)
        cluster.evolve(4 * u.kyr)
        found.append(cluster.pos)
    for pos in found[1:]:
        assert np.allclose(pos.to_value(u.pc), found[0].to_value(u.pc), rtol=1e-11, atol=0)


ORBIT = [8.0, 0, 0.1] * u.kpc, [10.0, 220, 5] * KMS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", [tuple, list, lambda o: tuple(map(list, o))])
def test_an_orbit_is_a_place_and_a_velocity(kind, way):
    field, numbers = (fields.mwpotential2014(units=GALACTIC),
                      fields.mwpotential2014(8000, 220, G=NEWTON))  # fmt: skip
    cls, options = KINDS[kind]
    mass, pos, vel = stars()
    cluster = cls(mass, pos, vel, **options, field=field, orbit=way(ORBIT))
    plain = cls(*all_by_hand(stars()), **all_by_hand(options), field=numbers, G=NEWTON,
                orbit=np.concatenate(all_by_hand(ORBIT)))  # fmt: skip
    for t in (0 * u.kyr, 20 * u.kyr):
        cluster.evolve(t)
        plain.evolve(by_hand(t))
        assert_alike(cluster, plain)
        for found, wanted, unit in zip(cluster.origin, plain.origin, (u.pc, KMS), strict=True):
            assert_same(found, wanted, unit, 1e-12)
    again = pickle.loads(pickle.dumps(cluster))
    assert np.array_equal(again.origin[0].value, cluster.origin[0].value)


@pytest.mark.parametrize(("orbit", "word"), [
    (([8, 0, 0] * KMS, [0, 220, 0] * KMS), "orbit"),
    (([8, 0, 0] * u.pc, [0, 2, 0] * u.pc), "orbit"),
    ([8, 0, 0, 0, 220, 0] * u.pc, "orbit"), ([8 * u.pc] * 6, "orbit"),
    (([8, 0] * u.kpc, [0, 220, 0] * KMS), "orbit"), (([8, 0, 0] * u.kpc,), "orbit"),
])  # fmt: skip
def test_a_wrong_orbit_is_refused_by_name(orbit, word):
    with pytest.raises(ArgumentError, match=word):
        made(field=fields.mwpotential2014(units=GALACTIC), orbit=orbit)


def test_a_function_is_asked_in_plain_numbers_of_the_units():
    asked = []

    def field(t, pos, vel):
        asked.append((t, pos, vel))
        return np.ones_like(pos) * [1.0, 0, 0], np.zeros_like(pos), -pos[:, 0]

    cluster = Hermite([0.0] * u.Msun, [[1, 2, 3]] * u.kpc, [[0, 0, 1]] * KMS, field=field,
                      units=GALACTIC)  # fmt: skip
    assert all(type(part) in (float, np.ndarray) for call in asked for part in call)
    assert is_close(asked[0][1], [[1000, 2000, 3000]], 1e-15)
    assert_same(cluster.acc, [[1.0, 0, 0]], KMS / u.Myr, 1e-14)
