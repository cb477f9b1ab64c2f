"""Back in time, orbits in fields, and Kepler's elements."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grape6py import Hermite, Leapfrog, Units, fields, kepler, plummer
from grape6py.errors import AddressError, ArgumentError, CallOrderError
from grape6py.events import EnergyError, WallTime

MASS, POS, VEL = plummer(200, seed=1)
HERE = POS[:6] + np.array([1, 0, 0]), VEL[:6] + np.array([0, 1, 0])
ROTATING = fields.logarithmic(1.0, 0.1, 0.8) + fields.rotation(0.3)


def function(t, pos, vel):
    """A field whose strength changes with time."""
    acc, jerk, pot = fields.logarithmic(1.0, 0.5)(t, pos, vel)
    return (1 + t / 10) * acc, (1 + t / 10) * jerk + acc / 10, (1 + t / 10) * pot


@pytest.mark.parametrize("options", [{"dt": 1 / 64}, {"dt": 0.01, "theta": 0.6},
                                     {"dt": 1 / 64, "backend": "cpu"}], ids=str)  # fmt: skip
def test_a_leapfrog_comes_back(options):
    bodies = Leapfrog(MASS, POS, VEL, eps=0.05, **options)
    bodies.evolve(1.0)
    bodies.evolve(0.0)
    assert bodies.time == 0
    assert np.allclose(bodies.pos, POS, rtol=0, atol=1e-13)
    assert np.allclose(bodies.vel, VEL, rtol=0, atol=1e-13)


OWN = POS[:, 0] ** 2 + 0.01


@pytest.mark.parametrize(
    "options", [{"dt": 1 / 64}, {"dt_max": 1 / 16}, {"dt_max": 1 / 32, "eps": OWN}]
)
def test_what_goes_back_is_what_goes_on_with_reversed_velocities(options):
    options = {"eps": 0.05} | options
    bodies = Leapfrog(MASS, POS, VEL, **options)
    mirror = Leapfrog(MASS, POS, -VEL, **options)
    for t in (0.25, 0.6, 0.61):
        bodies.evolve(-t)
        mirror.evolve(t)
        assert np.array_equal(bodies.pos, mirror.pos)
        assert np.array_equal(bodies.vel, -mirror.vel)
        assert np.array_equal(bodies.potential(), mirror.potential())
        assert bodies.energy() == mirror.energy()


FIELDS = {"built-in": ROTATING, "function": function}
INTEGRATORS = {
    "hermite": (Hermite, {"eta": 1e-4}),
    "dt": (Hermite, {"dt": 1 / 256}),
    "leapfrog": (Leapfrog, {"dt": 1 / 512, "eps": 0.1}),
    "block": (Leapfrog, {"dt_max": 1 / 512, "eps": 0.1}),
}


@pytest.mark.parametrize("kind", INTEGRATORS)
@pytest.mark.parametrize("field", FIELDS)
def test_bodies_without_mass_go_back_in_a_field(field, kind):
    cls, options = INTEGRATORS[kind]
    made = lambda pos, vel: cls(np.zeros(6), pos, vel, field=FIELDS[field], **options)  # noqa: E731
    first = made(*HERE)
    first.evolve(1.5)
    there = first.pos, first.vel, first.acc
    again = made(*HERE)
    again.evolve(-1.5)
    assert not np.allclose(again.pos, there[0], atol=1e-2)
    again.evolve(1.5)
    for one, other in zip((again.pos, again.vel, again.acc), there, strict=True):
        assert np.allclose(one, other, rtol=0, atol=2e-4)


def test_a_callback_looks_at_each_multiple_on_the_way_back():
    bodies, times = Leapfrog(MASS, POS, VEL, eps=0.05, dt=1 / 64), []
    bodies.evolve(-0.6, lambda b: times.append(b.time), every=0.25, events=WallTime(1e9))
    assert times == [-0.25, -0.5, -0.6]
    bodies.evolve(-0.1, lambda b: times.append(b.time), every=0.25)
    assert times[3:] == [-0.5, -0.25, -0.1]


def test_a_file_of_bodies_on_their_way_back_goes_on_forward(tmp_path):
    bodies = Leapfrog(MASS, POS, VEL, eps=0.05, dt_max=1 / 16)
    bodies.evolve(-0.3)
    bodies.save(tmp_path / "back.h5")
    others = Leapfrog.load(tmp_path / "back.h5"), bodies.copy(), pickle.loads(pickle.dumps(bodies))
    assert np.array_equal(others[0].pos, bodies.pos)
    for one in (bodies, *others):
        one.evolve(0.4)
        assert np.array_equal(one.pos, bodies.pos)


def test_bodies_change_on_the_way_back():
    bodies = Leapfrog(MASS, POS, VEL, eps=0.05, dt=1 / 64)
    bodies.evolve(-0.5, lambda b: b.remove(b.ids[0]) if b.time == -0.25 else None, every=0.25)
    assert (bodies.time, len(bodies)) == (-0.5, 199)


def test_who_cannot_go_back_says_so():
    with pytest.raises(ArgumentError, match="Hermite goes back with bodies without mass alone"):
        Hermite(MASS, POS, VEL).evolve(-1)
    bodies = Hermite(np.zeros(2), HERE[0][:2], HERE[1][:2], field=ROTATING)
    with pytest.raises(ArgumentError, match="WallTime alone"):
        bodies.evolve(-1, events=EnergyError(1))
    moving = Hermite(np.zeros(2), POS[:2], VEL[:2], field=function, orbit=[1, 0, 0, 0, 1, 0])
    with pytest.raises(ArgumentError, match=r"fields\.orbit"):
        moving.evolve(-1)
    with pytest.raises(CallOrderError, match="callback"):
        Leapfrog(MASS, POS, VEL, eps=0.1, dt=1 / 8).evolve(1, lambda b: b.evolve(0))


# ---- fields.orbit --------------------------------------------------------------------------------


@pytest.mark.parametrize("field", FIELDS)
def test_an_orbit_is_that_of_another_integrator(field):
    integrate = pytest.importorskip("scipy.integrate")
    field = FIELDS[field]

    def slope(t, y):
        return [*y[3:], *np.asarray(field(t, y[None, :3], y[None, 3:])[0])[0]]

    times = [3.0, -7.0, 0.0, -0.5]
    found = fields.orbit(field, [1, 0, 0.2], [0, 0.8, 0.1], times)
    assert found.pos.shape == (4, 3)
    for k, t in enumerate(times):
        start = [1, 0, 0.2, 0, 0.8, 0.1]
        exact = integrate.solve_ivp(slope, (0, t), start, method="DOP853", rtol=1e-11, atol=1e-11)
        assert np.allclose(np.append(found.pos[k], found.vel[k]), exact.y[:, -1], atol=1e-8)


def test_an_orbit_in_units_is_that_of_a_cluster():
    u = pytest.importorskip("astropy.units")
    units = Units("Msun", "pc", velocity="km/s")
    galaxy = fields.mwpotential2014(units=units)
    here = [8, 0, 0] * u.kpc, [0, 220, 10] * u.km / u.s
    there = fields.orbit(galaxy, *here, -1 * u.Gyr, units=units)
    assert there.time == -1 * u.Gyr
    one = Hermite([1.0] * u.Msun, [[0, 0, 0]] * u.pc, [[0, 0, 0]] * u.km / u.s, units=units,
                  field=galaxy, orbit=there[1:])  # fmt: skip
    one.evolve(1 * u.Gyr)
    for found, before in zip(one.origin, here, strict=True):
        assert np.allclose(found, before, rtol=1e-6, atol=1e-4 * before.max())


def test_orbits_of_several_bodies_have_an_axis_more():
    found = fields.orbit(ROTATING, *HERE, -1.0)
    assert found.pos.shape == (6, 3)
    assert found.time == -1
    assert fields.orbit(ROTATING, *HERE, [-1.0, 2]).vel.shape == (2, 6, 3)
    with pytest.raises(ArgumentError, match="t has shape"):
        fields.orbit(ROTATING, *HERE, [[1.0]])


# ---- elements ------------------------------------------------------------------------------------

ANGLES = st.floats(0.01, 6.27)


@settings(deadline=None, max_examples=200)
@given(st.floats(1e-3, 1e3), st.floats(1e-6, 0.99) | st.floats(1.01, 20), st.floats(0.01, 3.13),
       ANGLES, ANGLES, st.floats(-3, 3), st.floats(0, 1e3))  # fmt: skip
def test_elements_come_back(size, e, inc, Omega, omega, M, mass):
    a = size if e < 1 else -size
    sun = Leapfrog([1000.0], [[1, 2, 3.0]], [[3, 2, 1.0]], dt=1.0)
    sun.add(mass, a=a, e=e, inc=inc, Omega=Omega, omega=omega, M=M, primary=0)
    found = sun.orbits(0)
    assert np.allclose([found.a[0] / a, found.e[0]], [1, e], rtol=1e-6)
    assert np.allclose([found.inc[0], found.Omega[0]], [inc, Omega], atol=1e-6)
    way = np.exp(1j * np.array([found.omega[0] - omega, found.M[0] - M]))
    if e < 1:
        assert np.allclose(way, 1, atol=1e-6 / e)
        assert np.isclose(found.P[0], 2 * np.pi * np.sqrt(a**3 / (1000 + mass)))
    else:
        assert np.isclose(found.M[0], M, rtol=1e-6, atol=1e-6)
        assert found.P[0] == np.inf


@pytest.mark.parametrize("inc", [0, np.pi])
def test_elements_in_the_plane(inc):
    pos, vel = kepler.relative(np.ones(1), {"a": 2, "e": 0.5, "inc": inc, "omega": 1, "f": 2})
    a, e, _, found, Omega, omega, f, _ = kepler.elements(np.ones(1), pos, vel)
    assert np.allclose([a, e, found, np.sin(Omega)], [[2], [0.5], [inc], [0]], atol=1e-7)
    assert np.allclose(np.exp(1j * (omega - 1)), np.exp(1j * Omega * np.cos(inc)), atol=1e-7)
    assert np.allclose(f, 2)


def test_elements_of_a_fall_and_of_a_circle():
    a, e, _, inc, *_ = kepler.elements(np.ones(1), np.array([[1.0, 0, 0]]), np.zeros((1, 3)))
    assert (a[0], e[0]) == (0.5, 1)
    assert np.isnan(inc[0])
    assert kepler.elements(np.ones(1), np.array([[1.0, 0, 0]]), np.array([[0, 1.0, 0]]))[1] == 0


def test_planets_by_their_orbits():
    sun = Hermite([1.0], [[0, 0, 0]], [[0, 0, 0]])
    assert sun.add(1e-3, a=[1, 4], e=0.05).tolist() == [1, 2]
    sun.add(P=2 * np.pi, f=np.pi)
    found = sun.orbits()
    assert (found.primary, found.ids.tolist()) == (0, [1, 2, 3])
    assert np.allclose(found.a, [1, 4, 1])
    assert np.allclose(sun.pos[3], [-1, 0, 0])
    assert sun.orbits(1, where=[0]).ids.tolist() == [0]


def test_angles_may_be_quantities():
    u = pytest.importorskip("astropy.units")
    sun = Hermite([1.0] * u.Msun, [[0, 0, 0]] * u.AU, [[0, 0, 0]] * u.km / u.s)
    sun.add(1 * u.jupiterMass, P=11.86 * u.yr, e=0.05, inc=30 * u.deg, omega=1 * u.rad, M=0.5)
    found = sun.orbits()
    angles = u.Quantity([found.inc[0], found.omega[0], found.M[0]])
    assert np.allclose(angles.to_value(u.deg), np.rad2deg([np.pi / 6, 1, 0.5]))
    assert np.isclose(found.a[0], 5.2 * u.AU, rtol=1e-3)


@pytest.mark.parametrize(("how", "error", "why"), [
    ({"a": 1, "P": 1}, ArgumentError, "a or a period"),
    ({"e": 0.5}, ArgumentError, "a or a period"),
    ({"a": 1, "f": 1, "M": 1}, ArgumentError, "f or M"),
    ({"a": 1, "e": 1}, ArgumentError, "ellipses"),
    ({"a": -1, "e": 0.5}, ArgumentError, "ellipses"),
    ({"a": -1, "e": 2, "f": 3}, ArgumentError, "asymptotes"),
    ({"a": 1, "primary": 7}, AddressError, "no body"),
    ({"a": 1, "primary": 2}, ArgumentError, "no mass"),
    ({"a": 1, "pos": [1, 0, 0], "vel": [0, 1, 0]}, ArgumentError, "or an orbit"),
    ({"a": 1}, ArgumentError, "heavier than all"),
    ({"pos": [1, 0, 0]}, ArgumentError, "vel"),
], ids=str)  # fmt: skip
def test_wrong_orbits_are_refused(how, error, why):
    pair = Hermite([0.5, 0.5, 0], POS[:3], VEL[:3])
    with pytest.raises(error, match=why):
        pair.add(
            **({} if why in ("heavier than all", "or an orbit", "vel") else {"primary": 0}) | how
        )
    assert len(pair) == 3
