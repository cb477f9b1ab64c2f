"""``Units`` alone: sizes and G against astropy's, texts, conversions, mistakes, equality."""

import copy
import doctest
import math
import pickle

import numpy as np
import pytest
from astropy import constants
from astropy import units as u

from grape6py import Units, units
from grape6py._arrays.unit_sizes import DIMENSIONS
from grape6py.errors import ArgumentError

NAMES = {
    "mass": {"Msun": u.Msun, "solMass": u.solMass, "M_sun": u.M_sun, "Mearth": u.earthMass,
             "earthMass": u.earthMass, "Mjup": u.jupiterMass, "jupiterMass": u.jupiterMass,
             "kg": u.kg, "g": u.g},
    "length": {"pc": u.pc, "parsec": u.pc, "kpc": u.kpc, "Mpc": u.Mpc, "AU": u.AU, "au": u.AU,
               "Rsun": u.Rsun, "solRad": u.Rsun, "R_sun": u.Rsun, "km": u.km, "m": u.m, "cm": u.cm},
    "time": {"Gyr": u.Gyr, "Myr": u.Myr, "kyr": u.kyr, "yr": u.yr, "day": u.day, "d": u.day,
             "s": u.s},
    "velocity": {"km/s": u.km / u.s, "pc/Myr": u.pc / u.Myr, "AU/yr": u.AU / u.yr,
                 "kpc/Gyr": u.kpc / u.Gyr, "cm/s": u.cm / u.s, "Rsun/day": u.Rsun / u.day},
}  # fmt: skip
OF_ASTROPY = [(kind, name) for kind, names in NAMES.items() for name in names]

# What users may write, and the same in astropy's units of mass, length and time.
PC_PER_KMS = u.pc / (u.km / u.s)
SYSTEMS = {
    "galactic": (Units("Msun", "pc", velocity="km/s"), u.Msun, u.pc, PC_PER_KMS),
    "large": (Units("1e10 Msun", "kpc", velocity="km/s"),
              1e10 * u.Msun, u.kpc, u.kpc / (u.km / u.s)),
    "planets": (Units("Mearth", "AU", time="yr"), u.earthMass, u.AU, u.yr),
    "jupiter": (Units("2 Mjup", "3.5 Rsun", time="0.5 day"),
                2 * u.jupiterMass, 3.5 * u.Rsun, 0.5 * u.day),
    "si": (Units("kg", "m", time="s"), u.kg, u.m, u.s),
    "cgs": (Units("g", "cm", velocity="cm/s"), u.g, u.cm, u.s),
    "old": (Units("Msun", "pc", time="Myr"), u.Msun, u.pc, u.Myr),
}  # fmt: skip


def unit_of(mass, length, time, dimension):
    m, d, t = DIMENSIONS[dimension]
    return u.Unit(mass) ** m * u.Unit(length) ** d * u.Unit(time) ** t


def same(one, other, error=1e-14):
    return all(abs(one.in_cgs(k) / other.in_cgs(k) - 1) < error for k in ("mass", "length", "time"))


# ---- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), OF_ASTROPY)
def test_units_have_astropys_sizes(kind, name):
    of_cgs = Units("g", "cm", time="s").value(kind, name)
    cgs = unit_of(u.g, u.cm, u.s, kind)
    assert of_cgs == pytest.approx((1 * cgs).to_value(NAMES[kind][name]), rel=1e-12)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_derived_units_are_astropys(system, dimension):
    found, *of_astropy = SYSTEMS[system]
    unit = unit_of(*of_astropy, dimension)
    cgs = unit_of(u.g, u.cm, u.s, dimension)
    assert found.in_cgs(dimension) == pytest.approx(unit.to(cgs), rel=1e-12)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_gravitational_constant_is_astropys(system):
    found, *of_astropy = SYSTEMS[system]
    wanted = constants.G.to_value(unit_of(*of_astropy, "G"))
    assert wanted == pytest.approx(found.G, rel=1e-12)


@pytest.mark.parametrize(("mass", "length"), [
    ("Msun", "pc"), ("5e4 Msun", "1.2 pc"), ("1e10 Msun", "3.5 kpc"), ("Mearth", "Rsun"),
    ("kg", "m"), ("3e-7 g", "17 km"), ("0.1 Msun", "0.3 AU"),
])  # fmt: skip
def test_without_a_time_they_are_n_body_units(mass, length):
    found = Units(mass, length)
    assert found.G == 1
    of_mass, of_length = (found.in_cgs(k) * unit for k, unit in (("mass", u.g), ("length", u.cm)))
    time = np.sqrt(of_length**3 / (constants.G * of_mass))
    assert found.value("time", "Myr") == pytest.approx(time.to_value(u.Myr), rel=1e-12)
    speed = np.sqrt(constants.G * of_mass / of_length)
    assert found.value("velocity", "km/s") == pytest.approx(speed.to_value(u.km / u.s), rel=1e-12)


def test_a_velocity_says_what_the_time_is():
    found = Units("Msun", "pc", velocity="2 km/s")
    half = (0.5 * PC_PER_KMS).to_value(u.Myr)
    assert found.value("time", "Myr") == pytest.approx(half, rel=1e-12)
    assert found.value("velocity", "km/s") == pytest.approx(2, rel=1e-15)


def test_a_year_is_that_of_a_body_at_one_astronomical_unit():
    """Kepler's third law."""
    period = 2 * math.pi * Units("Msun", "AU").value("time", "day")
    assert period == pytest.approx(365.2568983, rel=1e-7)


# ---- conversions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_factors_are_astropys_and_go_back(dimension):
    for one, *of_one in SYSTEMS.values():
        for other, *of_other in SYSTEMS.values():
            wanted = unit_of(*of_one, dimension).to(unit_of(*of_other, dimension))
            factor = one.factor(dimension, other)
            assert factor == pytest.approx(wanted, rel=1e-12)
            assert factor * other.factor(dimension, one) == pytest.approx(1, rel=1e-14)


def test_the_factor_to_the_same_units_is_one_exactly():
    pairs = [("Msun", "pc"), ("solMass", "parsec"), ("1.0 M_sun", "1e-3 kpc")]
    for one in pairs:
        for other in pairs:
            for dimension in DIMENSIONS:
                assert Units(*one).factor(dimension, Units(*other)) == 1


def test_units_with_g_one_have_the_same_mass_and_length():
    found = Units("3 Msun", "2 kpc", velocity="km/s")
    henon = found.with_g_one()
    assert henon.G == 1
    assert henon.factor("mass", found) == henon.factor("length", found) == 1
    assert henon == Units("3 Msun", "2 kpc")
    assert henon.with_g_one() == henon
    assert found.G != 1


@pytest.mark.parametrize("system", SYSTEMS)
def test_units_are_found_again_from_their_sizes(system):
    found = SYSTEMS[system][0]
    sizes = [found.in_cgs(k) for k in ("mass", "length", "velocity")]
    assert same(Units.from_cgs(*sizes), found)


def test_known_sizes_get_short_names():
    for text in ("50000 Msun 1.2 pc", "Msun kpc km/s", "1e+10 Msun kpc km/s", "kg m m/s"):
        found = Units.from_text(text)
        sizes = [found.in_cgs(k) for k in ("mass", "length", "velocity")]
        assert str(Units.from_cgs(*sizes)) == text


# ---- texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "wanted"), [
    ("Msun pc", Units("Msun", "pc")), ("5e4 Msun 1.2 pc", Units("5e4 Msun", "1.2 pc")),
    ("5e4Msun 1.2pc", Units("5e4 Msun", "1.2 pc")), ("  Msun   pc ", Units("Msun", "pc")),
    ("Msun kpc km/s", Units("Msun", "kpc", velocity="km/s")),
    ("Msun pc Myr", Units("Msun", "pc", time="Myr")),
    ("1e10 Msun kpc 10 km/s", Units("1e10 Msun", "kpc", velocity="10 km/s")),
    ("Msun pc 2.5 Myr", Units("Msun", "pc", time="2.5 Myr")),
    ("1.5e-3 Mjup 1E2 AU", Units("1.5e-3 Mjup", "100 AU")),
    ("Mearth Rsun 3 day", Units("Mearth", "Rsun", time="3 day")),
    ("M_sun R_sun R_sun/d", Units("Msun", "Rsun", velocity="Rsun/day")),
])  # fmt: skip
def test_texts_say_what_the_units_are(text, wanted):
    assert Units.from_text(text) == wanted


MASSES = *NAMES["mass"], "5e4 Msun", "1E4 Msun", "1e+4 kg", ".5 Mearth"
LENGTHS = *NAMES["length"], "1.2 pc", "1e-3 kpc", "7. Rsun"
TIMES = {}, {"time": "0.5 Gyr"}, {"time": "d"}, {"velocity": "km/s"}, {"velocity": "3e2 R_sun/kyr"}


@pytest.mark.parametrize("mass", MASSES)
def test_texts_of_units_lead_back_to_them(mass):
    for length in LENGTHS:
        for more in TIMES:
            found = Units(mass, length, **more)
            assert Units.from_text(str(found)) == found
            assert eval(repr(found), {"Units": Units}) == found


def test_texts_keep_every_digit():
    rng = np.random.default_rng(1)
    for numbers in rng.lognormal(0, 20, (200, 3)).tolist():
        m, d, t = map(repr, numbers)
        for more in ({"time": f"{t} Myr"}, {"velocity": f"{t} km/s"}, {}):
            found = Units(f"{m} Msun", f"{d} pc", **more)
            again = Units.from_text(str(found))
            for dimension in ("mass", "length", "time"):
                assert again.in_cgs(dimension) == found.in_cgs(dimension)


@pytest.mark.parametrize("quantities", [
    (1 * u.Msun, 1 * u.pc), (3e4 * u.solMass, 0.3 * u.Mpc), (1 * u.imperial.lb, 1 * u.lyr),
    (1e-7 * u.Mjup, 1 * u.imperial.mile), (u.Quantity(5, u.Msun, dtype=int), 2 * u.earthRad),
])  # fmt: skip
def test_quantities_are_units(quantities):
    mass, length = quantities
    found = Units(mass, length, velocity=2 * u.km / u.s)
    assert found.in_cgs("mass") == pytest.approx(mass.to_value(u.g), rel=1e-14)
    assert found.in_cgs("length") == pytest.approx(length.to_value(u.cm), rel=1e-14)
    assert found.in_cgs("velocity") == pytest.approx(2e5, rel=1e-14)
    assert same(Units.from_text(str(found)), found, 1e-15)


def test_quantities_and_texts_are_the_same_units():
    pairs = [
        (Units(5e4 * u.Msun, 1.2 * u.pc), Units("5e4 Msun", "1.2 pc")),
        (Units(1 * u.earthMass, 1 * u.AU, time=1 * u.yr), Units("Mearth", "AU", time="yr")),
        (Units("Msun", 1 * u.kpc, velocity=1 * u.km / u.s),
         Units("Msun", "kpc", velocity="km/s")),
        (Units("Msun", "pc", velocity=1 * u.pc / u.Myr), Units("Msun", "pc", time="Myr")),
    ]  # fmt: skip
    for one, other in pairs:
        assert one == other


def test_names_to_show_numbers_in_are_those_of_the_user():
    assert Units("5e4 Msun", "1.2 pc").names == {
        "mass": "Msun", "length": "pc", "time": "Myr", "velocity": "km/s"
    }  # fmt: skip
    assert Units("Mearth", "AU", time="day").names == {
        "mass": "Mearth", "length": "AU", "time": "day", "velocity": "km/s"
    }  # fmt: skip
    assert Units("kg", "m").names == {"mass": "kg", "length": "m", "time": "s", "velocity": "m/s"}
    assert Units("Msun", "Rsun", velocity="Rsun/day").names["velocity"] == "Rsun/day"


# ---- equality, copies ----------------------------------------------------------------------------


def test_units_of_the_same_sizes_are_equal():
    assert Units("Msun", "pc") == Units("solMass", "1e-3 kpc")
    assert Units("Msun", "pc", velocity="pc/Myr") == Units("Msun", "pc", time="Myr")
    henon = Units("Msun", "pc")
    for other in (Units("1.001 Msun", "pc"), Units("Msun", "1.001 pc"),
                  Units("Msun", "pc", time="Myr"), "Msun pc", None, 1):  # fmt: skip
        assert henon != other


def test_units_that_differ_in_the_twelfth_digit_differ():
    assert Units("1.000000000001 Msun", "pc") != Units("Msun", "pc")


def test_copies_and_pickles_are_equal():
    for found, *_ in SYSTEMS.values():
        for made in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
            assert made == found
            assert str(made) == str(found)
            assert found.G == made.G


def test_the_example_is_true():
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder().find(units.Units, globs={}):
        runner.run(test)
    assert runner.summarize().attempted > 3
    assert runner.failures == 0


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "words"), [
    (lambda: Units("Msum", "pc"), r"'Msum' is no unit of mass.*did you mean Msun\?"),
    (lambda: Units("Msun", "kpcs"), r"no unit of length.*did you mean kpc\?"),
    (lambda: Units("Msun", "parsecs"), r"no unit of length.*did you mean parsec\?"),
    (lambda: Units("Msun", "pc", time="Myrs"), r"no unit of time.*did you mean Myr\?"),
    (lambda: Units("Msun", "pc", velocity="km/sec"), "'sec' is no unit of time"),
    (lambda: Units("Msun", "pc", velocity="kms"), "km/s"),
    (lambda: Units("Msun", "pc", velocity="pc"), "velocity"),
    (lambda: Units("Msun", "pc", time="km/s"), "time"),
    (lambda: Units("pc", "Msun"), "'pc' is no unit of mass"),
    (lambda: Units("Msun", "Msun"), "'Msun' is no unit of length"),
    (lambda: Units("", "pc"), "mass"),
    (lambda: Units("5", "pc"), "mass"),
    (lambda: Units("many Msun", "pc"), "'many' is not a number"),
    (lambda: Units("0 Msun", "pc"), "mass.*above zero"),
    (lambda: Units("Msun", "-1 pc"), "length.*above zero"),
    (lambda: Units("Msun", "nan pc"), "length.*above zero"),
    (lambda: Units("inf Msun", "pc"), "mass.*above zero"),
    (lambda: Units("Msun", "pc", time="0 Myr"), "time.*above zero"),
    (lambda: Units("Msun", "pc", velocity="-1 km/s"), "velocity.*above zero"),
    (lambda: Units("Msun", "pc", time="Myr", velocity="km/s"), "one of them"),
    (lambda: Units(1.0, "pc"), "mass is 1.0"),
    (lambda: Units("Msun", None), "length"),
    (lambda: Units("Msun", ["pc"]), "length"),
    (lambda: Units(1 * u.pc, 1 * u.pc), "mass"),
    (lambda: Units(1 * u.Msun, 1 * u.s), "length"),
    (lambda: Units("Msun", "pc", time=1 * u.pc), "time"),
    (lambda: Units("Msun", "pc", velocity=1 * u.pc), "velocity"),
    (lambda: Units(-1 * u.Msun, "pc"), "mass"),
    (lambda: Units([1.0, 2.0] * u.Msun, "pc"), "mass"),
    (lambda: Units(1 * u.one, "pc"), "mass"),
    (lambda: Units("Msun", "pc").value("time", "Msun"), "no unit of time"),
    (lambda: Units("Msun", "pc").value("velocity", "km/h"), "'h' is no unit of time"),
])  # fmt: skip
def test_mistakes_are_named(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


@pytest.mark.parametrize("text", [
    "", "Msun", "Msun pc km/s Myr", "Msun pc 3", "5 4 Msun pc", "Msun; pc", "pc Msun", "Msun pc kg",
    "Msum pc", "Msun pc km/h", "-1 Msun pc", "Msun * pc", "1e Msun pc", "Msun pc km/s/s",
])  # fmt: skip
def test_texts_that_say_no_units_are_refused(text):
    with pytest.raises(ArgumentError):
        Units.from_text(text)


def test_a_wrong_name_is_answered_with_those_that_there_are():
    with pytest.raises(ArgumentError) as caught:
        Units("stone", "pc")
    assert all(name in str(caught.value) for name in NAMES["mass"])
