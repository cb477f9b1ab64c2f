"""Models in quantities, and tidal radii."""

import numpy as np
import pytest
from astropy import constants
from astropy import units as u

from grape6py import (
    Hermite,
    Leapfrog,
    Units,
    events,
    fields,
    fractal,
    galaxy,
    galaxy_merger,
    king,
    kroupa,
    merger,
    plummer,
    tidal_radius,
    two_body,
    uniform,
    with_binaries,
)
from grape6py import stars as stars_of
from grape6py.errors import ArgumentError
from in_quantities import (
    ENERGY,
    EXACT,
    GALACTIC,
    HENON,
    KMS,
    NEWTON,
    assert_same,
    by_hand,
    is_close,
    is_in,
    stars,
)
from runs import here  # noqa: F401 (fixture)

MODELS = {
    "plummer": lambda **o: plummer(20, 1, **o),
    "plummer rescaled": lambda **o: plummer(20, 1, 0.9, rescale=True, **o),
    "king": lambda **o: king(20, 6.0, 1, **o),
    "uniform": lambda **o: uniform(20, 1, 0.2, **o),
    "fractal": lambda **o: fractal(20, 1.6, 1, **o),
    "stars": lambda **o: stars_of(kroupa(20, 1), plummer, 1, **o),
    "with_binaries": lambda **o: with_binaries(plummer(20, 1), 0.5, 1, separation=0.01, **o),
    "two_body": lambda **o: two_body(0.5, 0.3, 2.0, **o),
    "merger": lambda **o: merger(plummer(9, 1), plummer(8, 2), 1.0, 5.0, mass_ratio=0.5, **o),
    "galaxy": lambda **o: galaxy(10, 5, 20, 1, black_hole=0.1, **o),
    "galaxy_merger": lambda **o: galaxy_merger(20, 8, 1, **o),
}


def parts(model):
    return model.particles if hasattr(model, "particles") else model


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("mass", "length", "unit"), [
    (5e4 * u.Msun, 1.2 * u.pc, u.pc), (3e10 * u.Msun, 3.5 * u.kpc, u.kpc),
    (1 * u.Msun, 2 * u.AU, u.AU),
])  # fmt: skip
def test_models_come_in_units(name, mass, length, unit):
    plain, found = MODELS[name](), MODELS[name](units=Units(mass, length))
    assert type(found) is type(plain)
    if hasattr(plain, "component"):
        assert np.array_equal(found.component, plain.component)
        assert found.component.dtype == plain.component.dtype
    speed = np.sqrt(constants.G * mass / length).to(KMS)
    sizes = (mass, u.Msun), (length, unit), (speed, KMS)
    for array, numbers, (size, its_unit) in zip(parts(found), parts(plain), sizes, strict=True):
        assert is_in(array, its_unit)
        assert is_close(array.value, (numbers * size).to_value(its_unit), 1e-12)


def test_models_are_in_equilibrium_in_their_units():
    """E = -G M^2 / (4 r)."""
    mass, pos, vel = plummer(50, 1, rescale=True, units=HENON)
    found = Hermite(mass, pos, vel, **EXACT).energy()
    wanted = (-constants.G * (5e4 * u.Msun) ** 2 / (4 * 1.2 * u.pc)).to_value(ENERGY)
    assert by_hand(found.total) == pytest.approx(wanted, rel=1e-10)
    assert by_hand(found.kinetic) == pytest.approx(-wanted, rel=1e-10)


def test_masses_of_stars_may_be_quantities():
    masses = kroupa(20, 1) * u.Msun
    found = stars_of(masses, plummer, 1, units=HENON)
    assert is_close(by_hand(found.mass), masses.value / masses.value.sum() * 5e4, 1e-12)
    with pytest.raises(ArgumentError, match=r"\bmass\b"):
        stars_of(masses, plummer, 1)


@pytest.mark.parametrize("separation", [
    (100, 1000) * u.AU, (100 * u.AU, 1000 * u.AU), [100 * u.AU, 1000 * u.AU], 500 * u.AU,
])  # fmt: skip
def test_separations_of_binaries_may_be_quantities(separation):
    numbers = u.Quantity(separation).to_value(u.pc) / 1.2
    plain = with_binaries(plummer(20, 1), 0.5, 1, separation=numbers)
    for particles in (plummer(20, 1), plummer(20, 1, units=HENON)):
        found = with_binaries(particles, 0.5, 1, separation=separation, units=HENON)
        assert is_in(found.pos, u.pc)
        assert is_close(by_hand(found.pos), plain.pos * 1.2, 1e-12)
        assert is_close(by_hand(found.mass), plain.mass * 5e4, 1e-12)
        assert is_close(by_hand(found.vel), plain.vel * HENON.value("velocity", "km/s"), 1e-12)
    with pytest.raises(ArgumentError, match="separation"):
        with_binaries(plummer(20, 1), 0.5, 1, separation=separation)


@pytest.mark.parametrize("first", [plummer(9, 1), plummer(9, 1, units=HENON)])
def test_the_orbit_of_a_merger_may_be_in_quantities(first):
    second = plummer(8, 2, units=HENON) if isinstance(first.pos, u.Quantity) else plummer(8, 2)
    found = merger(first, second, 2.4 * u.pc, 1e6 * u.AU, units=HENON)
    far = (1e6 * u.AU).to_value(u.pc) / 1.2
    plain = merger(plummer(9, 1), plummer(8, 2), 2.0, far)
    assert_same(found.particles.pos, plain.particles.pos * 1.2, u.pc, 1e-12)
    speed = HENON.value("velocity", "km/s")
    assert_same(found.particles.vel, plain.particles.vel * speed, KMS, 1e-11)
    assert np.array_equal(found.component, plain.component)


@pytest.mark.parametrize(("argument", "value", "number"), [
    ("disk_height", 700 * u.pc, 0.2), ("bulge_mass", 1.4e10 * u.Msun, 0.25),
    ("bulge_scale", 0.7 * u.kpc, 0.2), ("halo_mass", 2.8e11 * u.Msun, 5.0),
    ("halo_scale", 14 * u.kpc, 4.0), ("black_hole", 5.6e9 * u.Msun, 0.1),
])  # fmt: skip
def test_masses_and_lengths_of_a_galaxy_may_be_quantities(argument, value, number):
    found = galaxy(10, 5, 20, 1, **{argument: value}, units=Units("5.6e10 Msun", "3.5 kpc"))
    plain = galaxy(10, 5, 20, 1, **{argument: number})
    assert is_close(found.particles.pos.to_value(u.kpc), plain.particles.pos * 3.5, 1e-9)
    assert is_close(found.particles.mass.to_value(u.Msun), plain.particles.mass * 5.6e10, 1e-9)


def test_the_axis_of_two_bodies_may_be_a_quantity():
    found = two_body(0.5, semi_major_axis=5.2 * u.AU, units=Units("Msun", "AU"))
    plain = two_body(0.5, semi_major_axis=5.2)
    assert is_close(found.pos.to_value(u.AU), plain.pos, 1e-12)


def test_models_take_numbers_without_a_unit():
    for found, wanted in ((king(9, 6 * u.one, 1), king(9, 6, 1)),
                          (plummer(9, 1, 90 * u.percent), plummer(9, 1, 0.9)),
                          (uniform(9, 1, 0.2 * u.one), uniform(9, 1, 0.2)),
                          (two_body(0.5 * u.one), two_body(0.5))):  # fmt: skip
        for one, other in zip(found, wanted, strict=True):
            assert type(one) is np.ndarray
            assert np.array_equal(one, other)


def tide(mass, radius, galaxy_mass):
    """Of a point in whose field a body is on a circle."""
    return radius * (mass / (3 * galaxy_mass)) ** (1 / 3)


@pytest.mark.parametrize("units", [None, GALACTIC])
def test_the_tidal_radius_is_a_quantity(units):
    galaxy_mass, radius, mass = 1e10 * u.Msun, 8000 * u.pc, 1e4 * u.Msun
    speed = np.sqrt(constants.G * galaxy_mass / radius).to(KMS)
    field = fields.point_mass(galaxy_mass, units=GALACTIC)
    found = tidal_radius(field, mass, [1, 0, 0] * radius, [0, 1, 0] * speed, units=units)
    assert is_in(found, u.pc)
    assert by_hand(found) == pytest.approx(by_hand(tide(mass, radius, galaxy_mass)), rel=1e-6)
    in_kpc = tidal_radius(field, mass, [8, 0, 0] * u.kpc, [0, 1, 0] * speed)
    assert is_in(in_kpc, u.kpc)
    assert by_hand(in_kpc.to(u.pc)) == pytest.approx(by_hand(found), rel=1e-9)


@pytest.mark.parametrize("G", [1.0, NEWTON])
def test_the_tidal_radius_of_plain_numbers_knows_the_constant(G):
    """The built-in fields are those of G = 1."""
    speed = np.sqrt(G * 1e10 / 8000)
    found = tidal_radius(fields.point_mass(1e10), 1e4, [8000, 0, 0], [0, speed, 0], G=G)
    assert found == pytest.approx(tide(1e4, 8000, 1e10), rel=1e-6)


def test_the_tidal_radius_of_a_function_is_in_the_units():
    def field(t, pos, vel):
        r = np.linalg.norm(pos, axis=1)[:, None]
        return (-NEWTON * 1e10 * pos / r**3,)

    speed = np.sqrt(NEWTON * 1e10 / 8000)
    found = tidal_radius(field, 1e4 * u.Msun, [8, 0, 0] * u.kpc, [0, speed, 0] * KMS,
                         units=GALACTIC, time=0 * u.Myr)  # fmt: skip
    assert_same(found, tide(1e4, 8000, 1e10), u.pc, 1e-6)


@pytest.mark.parametrize("kind", [Hermite, Leapfrog])
@pytest.mark.parametrize("watched", [
    lambda: events.EnergyError(1.0), lambda: events.Escape(100 * u.pc, centre="density"),
])  # fmt: skip
def test_events_are_looked_for_with_constant_steps_in_years(kind, watched):
    """Of which a multiple over the step may be rounded down."""
    cluster = kind(*stars(8), dt=2 * u.kyr, eps=0.05 * u.pc)
    assert cluster.evolve(1 * u.Myr, events=[watched(), events.WallTime(5)]) is None
    assert cluster.time.to_value(u.Myr) == pytest.approx(1, rel=1e-12)
