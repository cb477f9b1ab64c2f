"""``grape6py.fields``: built-in fields against plain formulas, other packages', functions."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from grape6py import Hermite, Leapfrog, fields, plummer
from grape6py.errors import ArgumentError, Grape6Warning, NotFiniteError, RangeError
from integrations import BOTH, HERMITE, MIXED, assert_same, each, evolve, made


def cutoff_potential(r, mass, exponent, cutoff):
    gammainc = pytest.importorskip("scipy.special").gammainc
    gamma = math.gamma
    s, a = (r / cutoff) ** 2, 1.5 - exponent / 2
    outside = (1 - gammainc(a - 0.5, s)) * gamma(a - 0.5) / gamma(a) / cutoff
    return -mass * (gammainc(a, s) / r + outside)


def radius(x):
    return np.sqrt((x * x).sum(axis=-1))


def disk(x, m, a, b):
    return -m / np.sqrt(x[..., 0] ** 2 + x[..., 1] ** 2 + (a + np.sqrt(x[..., 2] ** 2 + b**2)) ** 2)


def log(x, v, core, q):
    return v**2 / 2 * np.log(x[..., 0] ** 2 + x[..., 1] ** 2 + (x[..., 2] / q) ** 2 + core**2)


def sphere(x):
    return -3.0 / np.sqrt(radius(x) ** 2 + 0.7**2)


# With their potentials as books have them.
BOTH_WAYS = {
    "point": (fields.point_mass(2.0), lambda x: -2.0 / radius(x)),
    "plummer": (fields.plummer(3.0, 0.7), sphere),
    "disk": (fields.miyamoto_nagai(1.7, 0.9, 0.2), lambda x: disk(x, 1.7, 0.9, 0.2)),
    "flat disk": (fields.miyamoto_nagai(1.7, 0.0, 0.4), lambda x: disk(x, 1.7, 0.0, 0.4)),
    "nfw": (fields.nfw(5.0, 1.6), lambda x: -5.0 * np.log(1 + radius(x) / 1.6) / radius(x)),
    "logarithmic": (fields.logarithmic(1.3), lambda x: log(x, 1.3, 0.0, 1.0)),
    "flattened": (fields.logarithmic(1.3, 0.4, 0.7), lambda x: log(x, 1.3, 0.4, 0.7)),
    **{name: (fields.power_law_cutoff(*given), lambda x, g=given: cutoff_potential(radius(x), *g))
       for name, given in {"bulge": (0.8, 1.8, 0.9), "homogeneous": (0.8, 0.0, 0.9),
                           "steep": (0.8, 1.99, 1.2)}.items()},
    "galaxy": (fields.mwpotential2014(), None),
    "rotating": (fields.plummer(3.0, 0.7) + fields.rotation(0.6),
                 lambda x: sphere(x) - 0.6**2 / 2 * (x[..., 0] ** 2 + x[..., 1] ** 2)),
}  # fmt: skip
FIELDS = {name: field for name, (field, _) in BOTH_WAYS.items()}


def places(n=40, size=1.0, least=0.0):
    rng = np.random.default_rng(1)
    x, v = rng.normal(size=(n, 3)) * size, rng.normal(size=(n, 3))
    return x * np.maximum(1, least / np.linalg.norm(x, axis=1))[:, None], v


def derivative(f, h):
    """Of sixth order, at 0."""
    weights = 3 / 4, -3 / 20, 1 / 60
    return sum(w * (f(k * h) - f(-k * h)) for k, w in enumerate(weights, 1)) / h


def gradient(f, x, h=1e-3):
    columns = [derivative(lambda s, e=e: f(x + s * e), h) for e in np.eye(3)]
    return np.stack(columns, axis=-1)


def close(found, wanted, error):
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.ndim == 1:
        return bool((abs(found - wanted) <= error * abs(wanted)).all())
    miss, size = (np.linalg.norm(a, axis=1) for a in (found - wanted, wanted))
    return bool((miss <= error * size).all())


@pytest.mark.parametrize("name", FIELDS)
def test_potentials_are_those_of_the_books_and_accelerations_and_jerks_their_derivatives(name):
    field, potential = BOTH_WAYS[name]
    for size in (0.05, 1.0, 30.0):
        x, v = places(size=size)
        assert potential is None or close(field(0.0, x, v).pot, potential(x), 1e-11)
    x, v = places(least=0.4)  # differences need smoothness
    found = field(0.0, x, v)
    at_rest = 0 * v if name == "rotating" else v
    slope = gradient(lambda at: field(0.0, at, at_rest).pot, x)
    assert close(field(0.0, x, at_rest).acc, -slope, 1e-8)
    a = found.acc if name == "rotating" else 0 * v  # Coriolis' depends on the velocity
    wanted = derivative(lambda s: field(0.0, x + s * v + s * s / 2 * a, v + s * a).acc, 3e-4)
    miss = np.linalg.norm(found.jerk - wanted, axis=1)
    scale = np.linalg.norm(found.acc, axis=1) * (1 + np.linalg.norm(v, axis=1)) * 10
    assert (miss < 1e-8 * scale).all()
    other = field(0.0, x * [1, 1, -1], v * [1, 1, -1])  # symmetric
    assert np.array_equal(found.acc, other.acc * [1, 1, -1])
    assert np.array_equal(found.pot, other.pot)


@pytest.mark.parametrize("name", [n for n in FIELDS if n not in ("point", "logarithmic")])
def test_fields_are_finite_at_their_centre_and_next_to_it(name):
    """Also where the cube of the radius underflows."""
    for r in (0.0, 1e-300, 1e-160, 1e-130, 1e-110, 1e-100, 1e-12, 1e-6):
        found = FIELDS[name](0.0, [[r, 0, 0]], [[0, 0, 0]])
        assert np.isfinite(found.acc).all(), r
        assert np.isfinite(found.pot).all(), r


@pytest.mark.parametrize(("name", "mass", "error"), [
    ("plummer", 3.0, 1e-3), ("disk", 1.7, 1e-3), ("bulge", 0.8, 1e-13), ("homogeneous", 0.8, 1e-13),
    ("nfw", None, 1e-13),
])  # fmt: skip
@pytest.mark.parametrize("r", [1e4, 1e8])
def test_far_away_spheres_are_points(name, mass, error, r):
    """Of NFW's mass ln(1 + x) - x / (1 + x)."""
    s, direction = r / 1.6, np.array([0.6, 0.0, 0.8])
    m = mass or 5.0 * (math.log1p(s) - s / (1 + s))
    found = FIELDS[name](0.0, [r * direction], [[0, 0, 0]])
    assert close(found.acc, [-m / r**2 * direction], error)
    assert name == "nfw" or close(found.pot, [-m / r], error)


def test_near_the_centre_of_a_halo_the_force_has_full_digits():
    """Series of ln(1 + s) - s / (1 + s) = s^2 / 2 - 2 s^3 / 3 + 3 s^4 / 4 - ..."""
    for s in (1e-10, 1e-6, 1e-3, 0.05, 0.0624, 0.0626):
        mass = sum((-1) ** k * (k - 1) / k * s**k for k in range(2, 40))
        acc = fields.nfw(1.0, 1.0)(0.0, [[s, 0, 0]], [[0, 0, 0]]).acc[0, 0]
        assert acc == pytest.approx(-mass / s**2, rel=2e-13)


def test_rotation_is_coriolis_and_centrifugal_force():
    x, v = places()
    omega = np.array([0, 0, 0.7])
    found = fields.rotation(0.7)(0.0, x, v)
    wanted = -2 * np.cross(omega, v) - np.cross(omega, np.cross(omega, x))
    assert close(found.acc, wanted, 1e-14)
    jerk = -2 * np.cross(omega, wanted) - np.cross(omega, np.cross(omega, v))
    assert close(found.jerk, jerk, 1e-13)
    assert close(found.pot, -0.49 / 2 * (x[:, 0] ** 2 + x[:, 1] ** 2), 1e-14)


def test_sums_of_fields_are_sums_of_what_they_do():
    x, v = places()
    a, b = FIELDS["disk"], FIELDS["bulge"]
    for found, one, two in zip((a + b)(0.0, x, v), a(0.0, x, v), b(0.0, x, v), strict=True):
        assert np.allclose(found, one + two, rtol=1e-13, atol=1e-14)
    assert (fields.rotation(0.5) + fields.rotation(0.25)).omega == 0.75
    assert len((a + b + a).terms) == 3
    assert not any(np.any(array) for array in fields.Field()(0.0, x, v))


def test_a_field_is_found_again_from_its_text_and_says_what_it_is():
    x, v = places()
    names = "disk", "nfw", "flattened", "bulge", "rotating"
    whole = sum((FIELDS[name] for name in names), fields.Field())
    for field in (*FIELDS.values(), whole, fields.Field()):
        again = fields.Field.from_text(field.text)
        assert again == field
        assert hash(again) == hash(field)
        for one, two in zip(field(0.0, x, v), again(0.0, x, v), strict=True):
            assert np.array_equal(one, two)
    assert FIELDS["disk"] != FIELDS["flat disk"]
    assert FIELDS["disk"] != "disk"
    text = repr(FIELDS["disk"] + fields.rotation(0.5))
    assert text == "miyamoto_nagai(mass=1.7, a=0.9, b=0.2) + rotation(omega=0.5)"
    (term,) = FIELDS["plummer"].terms
    assert (term.kind, term.values) == ("plummer", (3.0, 0.7))


@pytest.mark.parametrize(("make", "word"), [
    *((lambda name=name, given=given: getattr(fields, name)(*given), word)
      for name, *given, word in [
          ("plummer", 1.0, -1.0, "scale"), ("plummer", math.nan, 1.0, "mass"),
          ("plummer", "one", 1.0, "mass"), ("point_mass", math.inf, "mass"),
          ("miyamoto_nagai", 1.0, 1.0, 0.0, "height|b"), ("miyamoto_nagai", 1.0, -1.0, 0.1, "a"),
          ("nfw", 1.0, 0.0, "scale"), ("nfw", 1.0, None, "scale"),
          ("logarithmic", 1.0, 0.1, 0.0, "flattening"), ("logarithmic", 1.0, -0.1, "core"),
          ("power_law_cutoff", 1.0, 2.0, 1.0, "exponent"), ("rotation", math.nan, "omega"),
          ("power_law_cutoff", 1.0, -0.5, 1.0, "exponent"), ("mwpotential2014", 0.0, "radius"),
          ("power_law_cutoff", 1.0, 1.0, 0.0, "cutoff"), ("mwpotential2014", 1.0, -1.0, "speed")]),
    (lambda: fields.Field.from_text('[["planet", 1.0]]'), "planet"),
    (lambda: fields.Field.from_text('[["plummer", 1.0]]'), "mass, scale"),
    (lambda: sum([fields.plummer(1, 1)] * 9, fields.Field()), "terms"),
    (lambda: FIELDS["disk"](0.0, [1.0, 2.0], [1.0, 2.0]), "pos has shape"),
    (lambda: FIELDS["disk"](0.0, np.zeros((2, 3)), np.zeros((3, 3))), "vel has shape"),
    (lambda: FIELDS["disk"](0.0, [[0, 0, 1], [0, math.nan, 0]], np.zeros((2, 3))), r"pos\[1\]"),
    (lambda: fields.from_agama(object()), r"agama\.Potential"),
    (lambda: Hermite(*plummer(8, 1), field=lambda t, x, v: (x[:3], v, x[:, 0])), "acc of shape"),
    (lambda: Hermite(*plummer(8, 1), field=5), "neither"),
])  # fmt: skip
def test_wrong_parameters_and_places_are_refused_in_words(make, word):
    with pytest.raises(ArgumentError, match=word):
        make()
    with pytest.raises(TypeError):
        FIELDS["disk"] + 1


def test_masses_take_the_gravitational_constant():
    x, v = np.array([[1.0, 0.5, 0.2]]), np.array([[0.1, 0.3, 0.0]])
    for field, factor in ((FIELDS["disk"], 3.0), (FIELDS["flattened"], 1.0)):
        body = Hermite([0.0], x, v, field=field, G=3.0)
        assert close(body.acc, factor * field(0.0, x, v).acc, 1e-14)
        assert close(body.jerk, factor * field(0.0, x, v).jerk, 1e-14)


def test_the_milky_way_has_its_circular_speed_in_any_units():
    for radius, speed, G in ((1.0, 1.0, 1.0), (8000.0, 220.0, 0.004301), (8.0, 220.0, 4.3e-6)):
        field = fields.mwpotential2014(radius, speed, G=G)
        body = Hermite([0.0], [[0, radius, 0]], [[0, 0, 0]], field=field, G=G)
        alone = [f(0.0, [[0, radius, 0]], [[0, 0, 0]]).acc
                 for f in (field, field + fields.rotation(0.0))]  # fmt: skip
        for acc in (body.acc, *alone):
            assert -acc[0, 1] * radius == pytest.approx(speed**2, rel=1e-14)
        if G != 1:
            with pytest.raises(ArgumentError, match=f"was made for G = {G:g}, and not 1"):
                Hermite([0.0], [[8000, 0, 0]], [[0, 220, 0]], field=field)
            with pytest.raises(ArgumentError, match=f"one field is for G = {G:g}, the other one f"):
                field + fields.mwpotential2014()


@pytest.mark.parametrize("make", [
    lambda field, x: field(0.0, x, np.zeros((2, 3))),
    lambda field, x: Hermite([1.0, 0], x, np.zeros((2, 3)), field=field),
    lambda field, x: Leapfrog([1.0, 0], x, np.zeros((2, 3)), field=field, dt=0.1),
])  # fmt: skip
def test_a_body_in_a_centre_is_an_error_that_names_the_field(make):
    with pytest.raises(RangeError, match=r"field: .* in row 1, as in the centre of a point mass"):
        make(fields.point_mass(1.0) + fields.nfw(1.0, 1.0), [[1.0, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("make", [
    lambda m: fields.point_mass(m), lambda m: fields.nfw(m, 1.0),
    lambda m: fields.miyamoto_nagai(m, 1.0, 1.0), lambda m: fields.power_law_cutoff(m, 1.0, 1.0),
    lambda m: fields.Field.from_text(json.dumps([["plummer", m, 0.0]])),
])  # fmt: skip
def test_a_negative_mass_of_a_field_is_said(make):
    with pytest.warns(Grape6Warning, match="a negative mass pushes bodies away"):
        make(-1.0)
    make(0.0)


def agrees(adapter, built_in, error=1e-12, size=1.0, speed=1.0):
    x, v = places()
    wanted, found = (f(0.0, x * size, v * speed) for f in (built_in, adapter))
    assert close(found.acc, wanted.acc, error)
    assert close(found.jerk, wanted.jerk, 1e-7)
    limit = (1e-11 if size == 1 else 1e-9) * np.abs(wanted.pot).max()
    assert np.ptp(found.pot - wanted.pot) < limit  # up to a constant


def of_galpy(**units):
    return fields.from_galpy(pytest.importorskip("galpy.potential").MWPotential2014, **units)


def galpy_s(name, **parameters):
    return lambda: fields.from_galpy(
        getattr(pytest.importorskip("galpy.potential"), name)(**parameters)
    )


def gala_s(name, **parameters):
    def make():
        made = getattr(pytest.importorskip("gala.potential"), name)
        units = pytest.importorskip("gala.units").DimensionlessUnitSystem()
        return fields.from_gala(made(units=units, **parameters))

    return make


def agama_s():
    agama = pytest.importorskip("agama")
    return fields.from_agama(agama.Potential(type="Plummer", mass=3.0, scaleRadius=0.7))


def pull(t, x):
    return -3.0 * x / ((x**2).sum(axis=1, keepdims=True) + 0.49) ** 1.5


def like_agama():
    return fields.from_agama(SimpleNamespace(
        force=lambda pos, t: pull(t, pos), potential=lambda pos, t: sphere(pos),
    ))  # fmt: skip


@pytest.mark.parametrize(("make", "name"), [
    (of_galpy, "galaxy"), (galpy_s("MiyamotoNagaiPotential", amp=1.7, a=0.9, b=0.2), "disk"),
    (galpy_s("LogarithmicHaloPotential", amp=1.3**2, core=0.4, q=0.7), "flattened"),
    (gala_s("PlummerPotential", m=3.0, b=0.7), "plummer"),
    (gala_s("MiyamotoNagaiPotential", m=1.7, a=0.9, b=0.2), "disk"),
    (agama_s, "plummer"), (like_agama, "plummer"),
    (lambda: fields.from_acceleration(pull, lambda t, x: sphere(x)), "plummer"),
])  # fmt: skip
def test_potentials_of_other_packages_and_accelerations_are_fields(make, name):
    agrees(make(), FIELDS[name], 1e-11)


def test_the_milky_way_of_galpy_is_found_in_units():
    agrees(of_galpy(radius=8.0, speed=220.0), fields.mwpotential2014(8.0, 220.0), 1e-11, 8.0, 220.0)


def test_potentials_of_galpy_may_lack_symmetry_and_depend_on_time():
    """A bar that turns: the jerk has the time derivative."""
    potential = pytest.importorskip("galpy.potential")
    halo = potential.LogarithmicHaloPotential(amp=1.0, core=0.4, q=0.8, b=0.7)
    field = fields.from_galpy(potential.SolidBodyRotationWrapperPotential(pot=halo, omega=1.2))
    x, v = places(5)
    slope = gradient(lambda at: field(0.4, at, v).pot, x)
    assert close(field(0.4, x, v).acc, -slope, 1e-7)
    jerk = derivative(lambda s: field(0.4 + s, x + s * v, v).acc, 1e-3)
    assert close(field(0.4, x, v).jerk, jerk, 1e-6)


def test_jerks_by_differences_do_not_depend_on_units():
    x, v = places(20)
    for length, time in ((1e-15, 1e-20), (1.0, 1.0), (1e20, 1e15)):
        field = fields.from_acceleration(
            lambda t, x, s=length, unit=length / time**2: unit * pull(t, x / s)
        )
        wanted = FIELDS["plummer"](0.0, x, v).jerk * (length / time**3)
        assert close(field(0.0, x * length, v * (length / time)).jerk, wanted, 1e-7)


def test_jerks_by_differences_hold_for_bodies_at_rest_and_at_the_centre():
    field = fields.from_acceleration(lambda t, x: -x * np.cos(t), name="mine")
    assert repr(field) == "mine"
    assert not field(0.0, *places(3)).pot.any()
    found = field(0.3, [[0, 0, 0], [1, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0], [0, 1, 0]])
    assert np.allclose(found.jerk, [[0, 0, 0], [math.sin(0.3), 0, 0], [0, -math.cos(0.3), 0]],
                       atol=1e-8)  # fmt: skip


def rude(t, pos, vel):
    """The disk, as a function that writes into its arguments: it got copies."""
    found = tuple(FIELDS["disk"](t, pos, vel))
    pos[...], vel[...] = math.nan, 77.0
    return found


@each(MIXED)
def test_a_function_and_the_built_in_field_give_the_same_orbits(kind, options):
    one, two = (made(kind, field=f, **options) for f in (FIELDS["disk"], rude))
    evolve((one, two), 0.5)
    assert np.abs(one.pos - two.pos).max() < 1e-12
    assert np.abs(one.vel - two.vel).max() < 1e-12
    assert one.energy().total == pytest.approx(two.energy().total, rel=1e-12)
    assert one.energy().external == pytest.approx(two.energy().external, rel=1e-12)


class Failing:
    def __init__(self, at, how):
        self.calls, self.at, self.how = 0, at, how

    def __call__(self, t, pos, vel):
        self.calls += 1
        found = tuple(FIELDS["disk"](t, pos, vel))
        return self.how(*found) if self.calls == self.at else found


def _raise(*_):
    raise ZeroDivisionError("mine")


FAILURES = [(lambda a, j, p: (a, j), ArgumentError, "three arrays acc, jerk, pot"),
            (lambda a, j, p: None, ArgumentError, "NoneType"),
            (lambda a, j, p: a, ArgumentError, "three arrays"),
            (lambda a, j, p: (a, j[:, :2], p), ArgumentError, "jerk of shape"),
            (lambda a, j, p: (a, j, p[:, None]), ArgumentError, "pot of shape"),
            (lambda a, j, p: (a * [1, math.nan, 1], j, p), NotFiniteError, "acc = .*nan.* at time"),
            (lambda a, j, p: (a, j / 0.0, p), NotFiniteError, "jerk"),
            (_raise, ZeroDivisionError, "mine")]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("change", "error", "words"), FAILURES)
@each([*HERMITE, BOTH[1]])
def test_a_field_that_fails_once_loses_nothing(kind, options, change, error, words):
    whole, cluster = (made(kind, field=Failing(7, how), **options)
                      for how in (lambda *found: found, change))  # fmt: skip
    whole.evolve(0.5)
    with pytest.raises(error, match=words):
        cluster.evolve(0.5)
    assert cluster.time < 0.5
    cluster.evolve(0.5)
    assert_same(cluster, whole)


@each([(kind, {"dt_max": 1 / 64, "backend": "cpu"}) for kind in (Hermite, Leapfrog)])
def test_a_field_gets_the_time_of_the_bodies(kind, options):
    """A homogeneous field cos(t): x = 1 - cos(t), at any look."""

    def swing(t, pos, vel):
        x = np.array([[1.0, 0, 0]] * len(pos))
        return math.cos(t) * x, -math.sin(t) * x, -math.cos(t) * pos[:, 0]

    body = kind([0.0], [[0.0, 0, 0]], [[0.0, 0, 0]], field=swing, eps=0.01, eta=0.01, **options)
    for t in (0.25, 0.3333, 0.71, 1.0):
        body.evolve(t)
        assert body.pos[0, 0] == pytest.approx(1 - math.cos(t), abs=3e-5)
        assert body.acc[0, 0] == pytest.approx(math.cos(t), rel=1e-13)
        assert body.jerk[0, 0] == pytest.approx(-math.sin(t), rel=1e-13)
