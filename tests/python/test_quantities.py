"""Clusters of astropy's quantities: what one asks of them, and changes."""

import copy
import inspect
import pickle

import numpy as np
import pytest
from astropy import constants
from astropy import units as u

import grape6py
from grape6py import Grape6, Hermite, Leapfrog, Tree, Units, plummer, two_body, with_binaries
from grape6py.errors import Grape6Error, ReadOnlyError
from in_quantities import (
    ARRAYS,
    ENERGY,
    EXACT,
    GALACTIC,
    HENON,
    KINDS,
    KMS,
    NEWTON,
    OF_G,
    all_by_hand,
    assert_alike,
    assert_same,
    both,
    by_hand,
    has_the_bits,
    is_close,
    is_in,
    made,
    stars,
)
from runs import here  # noqa: F401 (fixture)

# ---- integrations --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_one_asks_of_bodies_has_its_unit(kind):
    assert_alike(*both(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_an_integration_in_quantities_is_that_in_plain_numbers(kind):
    cluster, plain = both(kind)
    for t in (0.0205 * u.Myr, 50.5 * u.kyr, (0.1005 * u.Myr).to(u.s)):
        assert cluster.evolve(t) is None
        plain.evolve(by_hand(t))
        assert cluster.time.to_value(u.Myr) == pytest.approx(t.to_value(u.Myr), rel=1e-14)
    assert_alike(cluster, plain)
    assert cluster.steps == plain.steps
    for one, other in ((cluster, plain), (cluster.energy(), plain.energy())):
        ratios = [r() if callable(r) else r for r in (one.virial_ratio, other.virial_ratio)]
        assert ratios[0] == pytest.approx(ratios[1], rel=1e-9)


@pytest.mark.parametrize("options", [{"eta": 0.01}, {"passes": 2, "eta_start": 0.01}])
def test_units_alone_say_what_plain_numbers_are(options):
    """They have the bits of plain numbers with that constant, as quantities in these units have."""
    numbers = all_by_hand(stars())
    plain = Hermite(*numbers, eps=0.05, G=GALACTIC.G, **options)
    plain.evolve(0.125)
    for bodies, eps, units in ((numbers, 0.05, GALACTIC), (stars(), 0.05 * u.pc, None)):
        cluster = Hermite(*bodies, eps=eps, units=units, **options)
        assert cluster.units == GALACTIC
        assert by_hand(cluster.G) == pytest.approx(NEWTON, rel=1e-14)
        assert cluster.settings == plain.settings
        with pytest.raises(TypeError, match=r"t has no unit: .* of time, as Myr"):
            cluster.evolve(0.125)
        cluster.evolve(0.125 * u.pc / u.km * u.s)
        assert by_hand(cluster.time) == pytest.approx(0.125, rel=1e-15)
        assert is_in(cluster.pos, u.pc)
        assert np.array_equal(cluster.pos.value, plain.pos)
        assert np.array_equal(cluster.vel.value, plain.vel)


def test_units_and_quantities_go_together():
    """Which then are converted."""
    mass, pos, vel = stars()
    cluster = Hermite(mass.to(u.kg), pos.to(u.AU), vel.to(u.cm / u.s), eps=0.05 * u.pc, units=HENON)
    assert cluster.units == HENON
    plain = Hermite(*all_by_hand(stars()), eps=0.05, G=NEWTON)
    for name in ("mass", "pos", "vel", "acc", "jerk"):
        assert_same(getattr(cluster, name), getattr(plain, name), ARRAYS[name], 1e-6)
    assert cluster.settings["eps"] == pytest.approx(0.05 / 1.2, rel=1e-14)
    assert "G" not in cluster.settings


BODIES_IN = [
    (u.Msun, u.pc, KMS), (u.Msun, u.kpc, KMS), (u.kg, u.m, u.m / u.s), (u.g, u.cm, u.cm / u.s),
    (u.Mjup, u.Rsun, KMS), (u.earthMass, u.AU, u.AU / u.yr), (u.Msun, u.AU, u.AU / u.day),
    (u.Msun, u.Mpc, u.kpc / u.Gyr), (u.solMass, u.pc, u.pc / u.Myr),
    (u.imperial.lb, u.lyr, u.km / u.hr),
]  # fmt: skip


@pytest.mark.parametrize("units", BODIES_IN)
@pytest.mark.parametrize("kind", [Hermite, Leapfrog])
def test_bodies_come_out_with_the_bits_with_which_they_went_in(units, kind):
    rng = np.random.default_rng(3)
    given = rng.random(20), rng.normal(size=(20, 3)), rng.normal(size=(20, 3)) * 1e-3
    quantities = [array * unit for array, unit in zip(given, units, strict=True)]
    options = {"dt": 1 * u.s} if kind is Leapfrog else {}
    cluster = kind(*quantities, **options)
    for name, wanted in zip(("mass", "pos", "vel"), quantities, strict=True):
        for found in (getattr(cluster, name), getattr(cluster.particles(), name)):
            assert is_in(found, wanted.unit)
            assert np.array_equal(found.value, wanted.value)


@pytest.mark.parametrize(("length", "speed", "time"), [
    (u.pc, KMS, u.Myr), (u.kpc, KMS, u.Myr), (u.AU, KMS, u.yr), (u.Rsun, KMS, u.yr),
    (u.km, KMS, u.s), (u.m, u.m / u.s, u.s),
])  # fmt: skip
def test_times_are_in_a_unit_that_suits_the_lengths(length, speed, time):
    cluster = Hermite([1.0, 1] * u.Msun, np.eye(3)[:2] * length, np.eye(3)[:2] * speed)
    assert is_in(cluster.time, time)
    assert is_in(cluster.step_sizes, time)


def test_a_year_is_one_turn_of_a_body_at_one_astronomical_unit():
    bodies = two_body(0.3, 1e-3, units=Units("Msun", "AU"))
    cluster = Hermite(*bodies, dt=0.5 * u.day, passes=2, **EXACT)
    total = -constants.G * bodies.mass[0] * bodies.mass[1] / (2 * u.AU)
    assert cluster.energy().total.to_value(u.J) == pytest.approx(total.to_value(u.J), rel=1e-12)
    period = 2 * np.pi * np.sqrt((1 * u.AU) ** 3 / (constants.G * bodies.mass.sum()))
    assert period.to_value(u.yr) == pytest.approx(1, rel=1e-4)
    cluster.evolve(period)
    assert is_close(cluster.pos.to_value(u.AU), bodies.pos.to_value(u.AU), 1e-6)


def test_a_constant_may_be_given_as_a_quantity():
    twice = 2 * constants.G
    cluster = Hermite(*stars(), eps=0.05 * u.pc, G=twice, **EXACT)
    assert_same(cluster.G, 2 * NEWTON, OF_G, 1e-14)
    assert is_close(by_hand(cluster.acc), 2 * by_hand(made().acc), 1e-12)


def test_a_boundary_is_a_length():
    inside = made("tree", boundary=2.5 * u.pc)
    plain = both("tree", boundary=2.5 * u.pc)[1]
    for each, t in ((inside, 0.02 * u.Myr), (plain, by_hand(0.02 * u.Myr))):
        each.evolve(t)
    assert 0 < len(inside) == len(plain) < 30


def test_radii_about_a_centre_are_quantities():
    cluster, plain = both()
    for fractions in ([0.5], (0.1, 0.9), [50, 100] * u.percent):
        numbers = fractions.to_value(u.one) if isinstance(fractions, u.Quantity) else fractions
        found = cluster.lagrangian_radii(fractions, centre=[2000, 1000, -1000] * u.mpc)
        wanted = plain.lagrangian_radii(numbers, [2, 1, -1])
        assert_same(found, wanted, u.pc)


def test_binaries_have_quantities():
    pairs = with_binaries(plummer(20, 1, units=HENON), 0.5, 1, separation=(10, 100) * u.AU)
    cluster = Hermite(*pairs)
    found = cluster.binaries()
    wanted = grape6py.binaries(*all_by_hand(pairs), G=NEWTON)
    assert len(wanted.first) > 5
    assert_same(found.semi_major_axis, wanted.semi_major_axis, u.pc, 1e-8)
    for name in ("first", "second", "eccentricity", "hardness"):
        array = getattr(found, name)
        assert type(array) is np.ndarray
        assert np.allclose(array, getattr(wanted, name), rtol=1e-8, atol=1e-8)
    assert 9 < found.semi_major_axis.to_value(u.AU).min() < 100


def test_few_bodies_are_taken():
    nobody = Hermite(np.zeros(0) * u.Msun, np.zeros((0, 3)) * u.pc, np.zeros((0, 3)) * KMS)
    assert len(nobody) == 0
    assert nobody.pos.shape == (0, 3)
    assert is_in(nobody.pos, u.pc)
    nobody.evolve(1 * u.Myr)
    one = Hermite([1.0] * u.Msun, [[1.0, 0, 0]] * u.pc, [[0, 1.0, 0]] * KMS)
    one.evolve(1 * u.Myr)
    assert is_close(by_hand(one.pos), [[1, by_hand(1 * u.Myr), 0]], 1e-12)


def test_quantities_of_single_precision_and_integers_are_taken():
    mass, pos, vel = (array.astype(np.float32) for array in stars())
    assert is_close(by_hand(Hermite(mass, pos, vel).pos), by_hand(pos), 1e-7)
    mass = u.Quantity([1, 2], u.Msun, dtype=int)
    pos = u.Quantity([[0, 0, 0], [1, 0, 0]], u.kpc, dtype=int)
    cluster = Hermite(mass, pos, np.zeros((2, 3)) * KMS, units=GALACTIC)
    assert is_close(cluster.pos.value, [[0, 0, 0], [1000, 0, 0]], 1e-15)
    assert cluster.mass.value.tolist() == [1, 2]


# ---- changes -------------------------------------------------------------------------------------


CHANGES = {
    "add": (("add",), {"mass": 1e31 * u.kg, "pos": [0.1, 0, 0] * u.kpc,
                       "vel": [0, 7e3, 0] * u.m / u.s}),
    "add several": (("add",), {"mass": [1, 2] * u.Msun, "pos": np.eye(3)[:2] * u.pc,
                               "vel": np.eye(3)[:2] * KMS, "ids": [100, 200]}),
    "add by place": (("add", 5 * u.Msun, [1, 2, 3] * u.pc, [0, 0, 0] * KMS), {}),
    "kick": (("kick", 3), {"vel": [100, 0, 0] * u.m / u.s}),
    "shift": (("kick", [1, 2]), {"pos": [[0, 0, 100], [0, 3, 0]] * u.AU}),
    "set mass": (("set_mass", [1, 2]), {"mass": [1e33, 2e33] * u.kg}),
    "merge": (("merge", [3, 4]), {}),
    "move": (("move_to_centre_of_mass",), {}),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_changes_take_quantities(kind, change):
    (name, *arguments), options = CHANGES[change]
    cluster, plain = both(kind)
    cluster.evolve(0.01 * u.Myr)
    plain.evolve(by_hand(0.01 * u.Myr))
    found = getattr(cluster, name)(*arguments, **options)
    wanted = getattr(plain, name)(*all_by_hand(arguments), **all_by_hand(options))
    assert np.array_equal(found, wanted)  # ids, or None
    assert not isinstance(found, u.Quantity)
    assert_same(cluster.energy_change, plain.energy_change, ENERGY, 1e-8)
    assert np.array_equal(cluster.ids, plain.ids)
    cluster.evolve(0.02 * u.Myr)
    plain.evolve(by_hand(0.02 * u.Myr))
    for name in ("mass", "pos", "vel"):
        assert_same(getattr(cluster, name), getattr(plain, name), ARRAYS[name])
    assert len(cluster) == len(plain)


def test_arrays_are_still_set_by_changes_alone():
    cluster = made()
    for name in ("mass", "pos", "vel"):
        with pytest.raises(ReadOnlyError, match=name):
            setattr(cluster, name, getattr(cluster, name))


# ---- what the object is --------------------------------------------------------------------------


def test_it_is_an_object_of_its_class():
    cluster = made()
    assert isinstance(cluster, Hermite)
    assert not isinstance(cluster, Leapfrog)
    assert isinstance(made("tree"), Leapfrog)
    assert isinstance(Grape6(units=HENON), Grape6)
    assert isinstance(Tree(stars()[1], stars()[0]), Tree)
    assert len(cluster) == cluster.n == 30
    assert {"pos", "vel", "evolve", "energy", "units"} <= set(dir(cluster))
    assert "Hermite, 30 bodies" in repr(cluster)
    assert "Msun pc km/s" in repr(cluster)
    assert cluster.units == GALACTIC
    assert not hasattr(cluster, "nothing")
    with pytest.raises(AttributeError, match="nothing"):
        cluster.nothing()
    assert type(cluster.settings) is dict
    assert cluster.ids.tolist() == list(range(30))
    assert "every" in inspect.signature(cluster.evolve).parameters
    for each in (cluster, Tree(*stars()[1::-1]), Grape6(), Grape6(units=HENON)):
        assert each  # as without units


def test_plain_numbers_make_plain_objects():
    assert type(Hermite(*plummer(10, 1))) is Hermite
    assert type(plummer(10, 1).pos) is np.ndarray
    assert not hasattr(Hermite(*plummer(10, 1)), "units")


@pytest.mark.parametrize("kind", KINDS)
def test_a_with_statement_closes_it(kind):
    with made(kind) as cluster:
        assert isinstance(cluster, KINDS[kind][0])
        cluster.evolve(4 * u.kyr)
        assert is_in(cluster.pos, u.pc)
    with pytest.raises(Grape6Error, match="closed"):
        cluster.evolve(0.1 * u.Myr)
    assert is_in(cluster.time, u.Myr)


@pytest.mark.parametrize("way", [
    copy.copy, copy.deepcopy, lambda c: c.copy(), lambda c: pickle.loads(pickle.dumps(c)),
])  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_copies_keep_quantities_and_go_on_with_the_same_bits(kind, way):
    cluster = made(kind)
    cluster.evolve(10 * u.kyr)
    other = way(cluster)
    assert isinstance(other, KINDS[kind][0])
    assert other.units == cluster.units
    assert other is not cluster
    assert has_the_bits(other, cluster)
    other.evolve(20 * u.kyr)
    assert not has_the_bits(other, cluster)
    cluster.evolve(20 * u.kyr)
    assert has_the_bits(other, cluster)
    seen = []
    other.evolve(30 * u.kyr, seen.append, every=10 * u.kyr)
    assert all(one is other for one in seen)


def test_arguments_are_counted_and_named_as_without_units():
    """A fourth argument by its place, or one given twice, is not taken silently."""
    numbers = all_by_hand(stars())
    wrong = [(lambda g: Hermite(*g, 2.0)), (lambda g: Hermite(*g, mass=g[0])),
             (lambda g: Hermite(*g[:2])), (lambda g: Hermite(*g, softening=1)),
             (lambda g: Tree(g[1], g[0], g[2], "cpu")),
             (lambda g: Leapfrog(*g, 2.0, dt=1))]  # fmt: skip
    for call in wrong:
        for given in (numbers, stars()):
            with pytest.raises(TypeError):
                call(given)
