"""``Units`` alone: sizes and G against astropy's, texts, conversions, mistakes, equality."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from astropy import constants
from astropy import units as u
from hypothesis import given, settings
from hypothesis import strategies as st

from grape6py import Units
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
                 "kpc/Gyr": u.kpc / u.Gyr, "cm/s": u.cm / u.s, "R_sun/d": u.Rsun / u.day},
}  # fmt: skip
NUMBERS = st.sampled_from("1 1e4 1E+4 .5 7. 1.2e-3".split()) | st.floats(1e-9, 1e9).map(repr)


@st.composite
def systems(draw):
    """Units, and what they are in astropy's units of mass, length and time."""
    third = draw(st.sampled_from([[], ["time"], ["velocity"]]))
    texts, sizes = {}, []
    for kind in ["mass", "length", *third]:
        number, name = draw(NUMBERS), draw(st.sampled_from(sorted(NAMES[kind])))
        texts[kind] = name if number == "1" else f"{number} {name}"
        sizes.append(float(number) * NAMES[kind][name])
    if not third:
        sizes.append(np.sqrt(sizes[1] ** 3 / (constants.G * sizes[0])))
    if "velocity" in texts:
        sizes[2] = sizes[1] / sizes[2]
    return Units(**texts), *sizes


def cgs_of(quantity, dimension):
    m, d, t = DIMENSIONS[dimension]
    return quantity.to_value(u.g**m * u.cm**d * u.s**t)


def test_units_have_astropys_sizes():
    for kind, names in NAMES.items():
        for name, unit in names.items():
            of_cgs = Units("g", "cm", time="s").value(kind, name)
            assert of_cgs * cgs_of(1 * unit, kind) == pytest.approx(1, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(systems(), systems())
def test_units_factors_and_constants_are_astropys_and_texts_and_copies_lead_back_to_them(one, two):
    (found, *of_astropy), other = one, two[0]
    for dimension, powers in DIMENSIONS.items():
        quantities = (size**power for size, power in zip(of_astropy, powers, strict=True))
        wanted = math.prod(quantities)
        size = found.in_cgs(dimension)
        assert size == pytest.approx(cgs_of(wanted, dimension), rel=1e-12)
        factor = found.factor(dimension, other)
        assert factor == pytest.approx(size / other.in_cgs(dimension), rel=1e-14)
        assert found.factor(dimension, found) == 1
    mass, length, time = of_astropy
    constant = (constants.G * mass * time**2 / length**3).to_value(u.one)
    assert constant == pytest.approx(found.G, rel=1e-12)
    henon = found.with_g_one()
    assert henon.G == 1
    assert henon.factor("mass", found) == henon.factor("length", found) == 1
    assert henon.with_g_one() == henon
    for again in (Units.from_text(str(found)), eval(repr(found), {"Units": Units}),
                  copy.deepcopy(found), pickle.loads(pickle.dumps(found))):  # fmt: skip
        assert again == found
        assert again.G == found.G
        assert str(again) == str(found)
        for kind in ("mass", "length", "time"):
            assert again.in_cgs(kind) == found.in_cgs(kind)  # every digit
    again = Units.from_cgs(*(found.in_cgs(kind) for kind in ("mass", "length", "velocity")))
    for kind in ("mass", "length", "time"):
        assert again.in_cgs(kind) == pytest.approx(found.in_cgs(kind), rel=1e-14)


def test_short_names_are_found_again_and_numbers_are_shown_in_those_of_the_user():
    for text, shown in (
        ("50000 Msun 1.2 pc", "Msun pc Myr km/s"), ("Mearth AU day", "Mearth AU day km/s"),
        ("Msun Rsun Rsun/day", "Msun Rsun yr Rsun/day"), ("Msun kpc km/s", "Msun kpc Myr km/s"),
        ("1e+10 Msun kpc km/s", "Msun kpc Myr km/s"), ("kg m m/s", "kg m s m/s"),
    ):  # fmt: skip
        found = Units.from_text(text)
        assert list(found.names) == ["mass", "length", "time", "velocity"]
        assert list(found.names.values()) == shown.split()
        if "day" not in text:
            sizes = [found.in_cgs(kind) for kind in ("mass", "length", "velocity")]
            assert str(Units.from_cgs(*sizes)) == text


def test_units_of_the_same_sizes_are_equal():
    for same in (
        [Units("Msun", "pc"), Units("solMass", "1e-3 kpc"), Units("1.0 M_sun", "parsec")],
        [Units("Msun", "pc", velocity="pc/Myr"), Units("Msun", "pc", time="Myr"),
         Units("Msun", "pc", velocity=1 * u.pc / u.Myr), Units("Msun", 1 * u.pc, time="1 Myr")],
        [Units(5e4 * u.Msun, 1.2 * u.pc), Units("5e4 Msun", "1.2 pc"),
         Units.from_text("5e4Msun 1.2pc"), Units.from_text("  5E4 Msun   1.2 pc ")],
        [Units.from_text("M_sun R_sun R_sun/d"), Units("Msun", "Rsun", velocity="Rsun/day")],
        [Units.from_text("1e10 Msun kpc 10 km/s"), Units("1e10 Msun", "kpc", velocity="10 km/s")],
    ):  # fmt: skip
        for one, other in itertools.permutations(same, 2):
            assert one == other
            assert all(one.factor(dimension, other) == 1 for dimension in DIMENSIONS)
    henon = Units("Msun", "pc")
    for other in (Units("1.000000000001 Msun", "pc"), Units("Msun", "1.001 pc"),
                  Units("Msun", "pc", time="Myr"), "Msun pc", None, 1):  # fmt: skip
        assert henon != other


@pytest.mark.parametrize(("mass", "length", "more", "words"), [
    ("Msun", "kpcs", {}, r"no unit of length.*did you mean kpc\?"),
    ("Msun", "pc", {"time": "Myrs"}, r"no unit of time.*did you mean Myr\?"),
    ("Msun", "pc", {"velocity": "km/sec"}, "'sec' is no unit of time"),
    ("Msun", "pc", {"velocity": "kms"}, "km/s"), ("Msun", "pc", {"velocity": "pc"}, "velocity"),
    ("Msun", "pc", {"time": "km/s"}, "time"), ("", "pc", {}, "mass"), ("5", "pc", {}, "mass"),
    ("many Msun", "pc", {}, "'many' is not a num"), ("0 Msun", "pc", {}, "mass.*above zero"),
    ("Msun", "nan pc", {}, "length.*above zero"), ("inf Msun", "pc", {}, "mass.*above zero"),
    ("Msun", "pc", {"velocity": "-1 km/s"}, "velocity.*above zero"),
    ("Msun", "pc", {"time": "Myr", "velocity": "km/s"}, "one of them"),
    (1.0, "pc", {}, "mass is 1.0"), ("Msun", None, {}, "length"), ("Msun", ["pc"], {}, "length"),
    (1 * u.pc, 1 * u.pc, {}, "mass"), ("Msun", "pc", {"velocity": 1 * u.pc}, "velocity"),
    (-1 * u.Msun, "pc", {}, "mass"), ([1.0, 2.0] * u.Msun, "pc", {}, "mass"),
    (1 * u.one, "pc", {}, "mass"), ("stone", "pc", {}, ".*".join(NAMES["mass"])),
])  # fmt: skip
def test_mistakes_are_named(mass, length, more, words):
    with pytest.raises(ArgumentError, match=words):
        Units(mass, length, **more)
    with pytest.raises(ArgumentError, match="'Msun' is no unit of time"):
        Units("Msun", "pc").value("time", "Msun")
