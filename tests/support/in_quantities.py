"""Bodies in quantities and in plain numbers, and how these compare: for test_quantities_*.py."""

import functools

import numpy as np
from astropy import constants
from astropy import units as u

from grape6py import Hermite, Leapfrog, Units, plummer
from grape6py.errors import ArgumentError
from runs import here  # noqa: F401 (fixture)

KMS = u.km / u.s
TIME = u.pc / KMS  # of the plain numbers that all is compared with
PLAIN = {"mass": u.Msun, "length": u.pc, "time": TIME, "velocity": KMS}
OF_G = u.pc * KMS**2 / u.Msun
NEWTON = constants.G.to_value(OF_G)
GALACTIC = Units("Msun", "pc", velocity="km/s")
HENON = Units("5e4 Msun", "1.2 pc")

# Units in which results are, of bodies in solar masses, parsecs and km/s.
ARRAYS = {"mass": u.Msun, "pos": u.pc, "vel": KMS, "acc": KMS / u.Myr, "jerk": KMS / u.Myr**2,
          "step_sizes": u.Myr, "time": u.Myr, "G": OF_G,
          "energy_change": u.Msun * KMS**2}  # fmt: skip
SUMS = {"potential": KMS**2, "momentum": u.Msun * KMS, "angular_momentum": u.Msun * u.pc * KMS,
        "centre_of_mass": u.pc, "lagrangian_radii": u.pc}  # fmt: skip
ENERGY = u.Msun * KMS**2

EXACT = {"precision": "double", "backend": "cpu"}
KINDS = {
    "hermite": (Hermite, {"dt": 2e-3 * u.Myr, "eps": 0.05 * u.pc, **EXACT}),
    "direct": (Leapfrog, {"dt": 2e-3 * u.Myr, "eps": 10000 * u.AU, **EXACT}),
    "tree": (Leapfrog, {"dt": 1.0 * u.kyr, "eps": 0.05 * u.pc, "backend": "cpu-tree"}),
}


@functools.cache
def stars(n=30):
    """Neither at rest nor in the origin."""
    mass, pos, vel = plummer(n, 1, units=HENON)
    return mass, pos + [2, 1, -1] * u.pc, vel + [3, -1, 2] * KMS


def by_hand(value):
    """Numbers in solar masses, parsecs and km/s."""
    if not isinstance(value, u.Quantity):
        return value
    m, d, v = PLAIN["mass"], PLAIN["length"], PLAIN["velocity"]
    for unit in (m, d, v, TIME, v / TIME, v / TIME**2, v / TIME**3, v**2, m * v, m * d * v,
                 m * v**2, OF_G, 1 / TIME):  # fmt: skip
        if value.unit.is_equivalent(unit):
            return value.to_value(unit)
    raise AssertionError(value.unit)


def all_by_hand(values):
    if isinstance(values, dict):
        return {name: by_hand(value) for name, value in values.items()}
    return [by_hand(value) for value in values]


def made(kind="hermite", n=30, **more):
    cls, options = KINDS[kind]
    return cls(*stars(n), **options | more)


def both(kind="hermite", n=30, **more):
    """The same bodies in quantities and in plain numbers."""
    cls, options = KINDS[kind]
    plain = cls(*all_by_hand(stars(n)), **all_by_hand(options | more), G=NEWTON)
    return made(kind, n, **more), plain


def is_close(found, wanted, error=1e-9):
    found, wanted = np.asarray(found), np.asarray(wanted)
    return found.shape == wanted.shape and bool(
        (abs(found - wanted) <= error * np.abs(wanted).max(initial=0)).all()
    )


def is_in(found, unit):
    return isinstance(found, u.Quantity) and found.unit == unit


def assert_same(found, wanted, unit, error=1e-9):
    """A quantity in a unit, which is what plain numbers say."""
    assert is_in(found, unit), f"{type(found)} in {getattr(found, 'unit', None)}"
    assert is_close(by_hand(found), wanted, error)


def assert_alike(cluster, plain, error=1e-9):
    for name, unit in ARRAYS.items():
        assert_same(getattr(cluster, name), getattr(plain, name), unit, error)
    for name, unit in SUMS.items():
        assert_same(getattr(cluster, name)(), getattr(plain, name)(), unit, error)
    found, wanted = cluster.energy(), plain.energy()
    for name in ("kinetic", "potential", "external", "total"):
        assert_same(getattr(found, name), getattr(wanted, name), ENERGY, error)
    for name, unit in (("mass", u.Msun), ("pos", u.pc), ("vel", KMS)):
        particles = cluster.particles()
        assert type(particles).__name__ == "Particles"
        assert_same(getattr(particles, name), getattr(plain.particles(), name), unit, error)


def outcome(call):
    """What it gives, or the ArgumentError that it raises."""
    try:
        return call()
    except ArgumentError as error:
        return error


def has_the_bits(one, other):
    return all(
        is_in(a, b.unit) and np.array_equal(a.value, b.value)
        for a, b in ((getattr(one, k), getattr(other, k)) for k in ("mass", "pos", "vel", "time"))
    )
