"""Quantities where none can be taken are refused by their names."""

import sys

import numpy as np
import pytest
from astropy import constants
from astropy import units as u

import grape6py
from grape6py import (
    Grape6,
    Hermite,
    Leapfrog,
    Tree,
    accelerations,
    diagnostics,
    fields,
    kroupa,
    maschberger,
    plummer,
    reference,
    salpeter,
    tidal_radius,
    write_snapshot,
)
from grape6py.errors import ArgumentError
from in_quantities import (
    EXACT,
    GALACTIC,
    HENON,
    KMS,
    all_by_hand,
    by_hand,
    has_the_bits,
    is_close,
    made,
    outcome,
    stars,
)
from runs import here  # noqa: F401 (fixture)


@pytest.mark.parametrize("kind", [Hermite, Leapfrog])
@pytest.mark.parametrize(("name", "value"), [
    ("mass", np.ones(30) * u.pc), ("pos", np.ones((30, 3)) * KMS), ("vel", np.ones((30, 3)) * u.pc),
    ("eps", 1 * u.Msun), ("dt", 1 * u.pc), ("dt_max", 1 * KMS), ("G", 1 * u.pc), ("eta", 0.1 * u.s),
    ("threads", 1 * u.s), ("eps", 1 * u.K), ("mass", np.ones(30) * u.one),
    ("vel", np.ones((30, 3)) * u.deg),
])  # fmt: skip
@pytest.mark.parametrize("units", [None, GALACTIC])
def test_other_dimensions_are_refused_by_name(kind, name, value, units):
    given = dict(zip(("mass", "pos", "vel"), stars(), strict=True)) | {"eps": 0.1 * u.pc}
    if kind is Leapfrog:
        given |= {"dt_max" if name == "eta" else "dt": 1 * u.kyr}
        given = {k: v for k, v in given.items() if k != "dt" or name != "dt_max"}
    with pytest.raises(ArgumentError, match=rf"\b{name}\b"):
        kind(**given | {name: value}, units=units)


@pytest.mark.parametrize(("name", "value"), [
    ("boundary", 1 * u.s), ("theta", 0.5 * u.pc), ("accuracy", 1e-3 * u.s), ("order", 4 * u.s),
])  # fmt: skip
def test_other_dimensions_of_a_leapfrog_are_refused_by_name(name, value):
    with pytest.raises(ArgumentError, match=rf"\b{name}\b"):
        Leapfrog(*stars(), dt=1 * u.kyr, **{name: value})


@pytest.mark.parametrize("kind", [Hermite, Leapfrog])
@pytest.mark.parametrize(("given", "word"), [
    (lambda m, x, v: (m.value, x, v), "mass"), (lambda m, x, v: (m, x.value, v), "pos"),
    (lambda m, x, v: (m.value, x.value, v), "vel"), (lambda m, x, v: (m, x, v.value), "vel"),
    (lambda m, x, v: (m, x.value, v.value), "pos"), (lambda m, x, v: (m.value, x, v.value), "mass"),
])  # fmt: skip
def test_quantities_and_plain_arrays_do_not_mix(kind, given, word):
    """What a plain velocity would be in is nowhere said."""
    options = {"dt": 1.0} if kind is Leapfrog else {}
    with pytest.raises(ArgumentError, match=rf"^{word}\b"):
        kind(*given(*stars()), **options)


def test_plain_bodies_take_no_quantities():
    numbers = plummer(20, 1)
    for name, value in (("eps", 1 * u.pc), ("dt", 1 * u.Myr), ("G", constants.G)):
        with pytest.raises(ArgumentError, match=rf"\b{name}\b.*units=Units"):
            Hermite(*numbers, **{name: value})
    cluster = Hermite(*numbers)
    for call, word in ((lambda: cluster.evolve(1 * u.Myr), "t"),
                       (lambda: cluster.kick(0, [1, 0, 0] * KMS), "vel"),
                       (lambda: cluster.kick(0, pos=[1, 0, 0] * u.pc), "pos"),
                       (lambda: cluster.set_mass(0, 1 * u.Msun), "mass"),
                       (lambda: cluster.add(1 * u.Msun, [0, 0, 0], [0, 0, 0]), "mass"),
                       (lambda: cluster.add(1, [0, 0, 0] * u.pc, [0, 0, 0]), "pos"),
                       (lambda: cluster.lagrangian_radii(centre=[0, 0, 0] * u.pc), "centre"),
                       (lambda: cluster.evolve(1, print, every=1 * u.Myr), "every")):  # fmt: skip
        with pytest.raises(ArgumentError, match=rf"\b{word}\b"):
            call()
    assert cluster.time == 0


def test_units_are_units():
    for wrong in ("Msun pc", 1.0, u.pc, ("Msun", "pc")):
        with pytest.raises(ArgumentError, match="units"):
            Hermite(*plummer(10, 1), units=wrong)
        with pytest.raises(ArgumentError, match="units"):
            plummer(10, 1, units=wrong)
        with pytest.raises(ArgumentError, match="units"):
            fields.nfw(1.0, 1.0, units=wrong)


def test_dimensionless_quantities_are_numbers():
    numbers = plummer(20, 1)
    plain = Hermite(*numbers, eps=0.1, eta=0.01)
    cluster = Hermite(*numbers, eps=0.1 * u.one, eta=1 * u.percent)
    assert type(cluster) is Hermite
    assert cluster.settings == plain.settings
    cluster.evolve(0.125 * u.one)
    plain.evolve(0.125)
    assert np.array_equal(cluster.pos, plain.pos)
    assert fields.nfw(1 * u.one, 2 * u.one) == fields.nfw(1, 2)
    assert made(eta=0.02 * u.one).settings == made(eta=0.02).settings
    assert diagnostics.centre_of_mass(numbers.mass * u.one, numbers.pos * u.one) == pytest.approx(
        diagnostics.centre_of_mass(*numbers[:2]), abs=1e-15
    )


def test_bodies_without_a_unit_are_numbers():
    numbers = plummer(20, 1)
    cluster = Hermite(*(array * u.one for array in numbers))
    assert type(cluster) is Hermite
    assert np.array_equal(cluster.pos, numbers.pos)
    acc = accelerations(numbers.mass * u.one, numbers.pos * u.one)
    assert type(acc) is np.ndarray
    assert np.array_equal(acc, accelerations(numbers.mass, numbers.pos))


X, M, V = np.eye(3) * u.pc, np.ones(3) * u.Msun, np.eye(3) * KMS
N = np.eye(3)
ONES = np.ones(3)
TAKE_NONE = {
    "diagnostics.potential": [(lambda: diagnostics.potential(M, N), "mass"),
                              (lambda: diagnostics.potential(ONES, X), "pos"),
                              (lambda: diagnostics.potential(ONES, N, 1 * u.pc), "eps")],
    "diagnostics.energy": [(lambda: diagnostics.energy(M, N, N), "mass"),
                           (lambda: diagnostics.energy(ONES, X, N), "pos"),
                           (lambda: diagnostics.energy(ONES, N, V), "vel"),
                           (lambda: diagnostics.energy(ONES, N, N, pot=ONES * KMS**2), "pot")],
    "diagnostics.momentum": [(lambda: diagnostics.momentum(M, N), "mass"),
                             (lambda: diagnostics.momentum(ONES, V), "vel")],
    "diagnostics.angular_momentum": [
        (lambda: diagnostics.angular_momentum(M, N, N), "mass"),
        (lambda: diagnostics.angular_momentum(ONES, X, N), "pos"),
        (lambda: diagnostics.angular_momentum(ONES, N, V), "vel")],
    "diagnostics.centre_of_mass": [(lambda: diagnostics.centre_of_mass(M, N), "mass"),
                                   (lambda: diagnostics.centre_of_mass(ONES, X), "pos")],
    "diagnostics.density_centre": [(lambda: diagnostics.density_centre(M, N), "mass"),
                                   (lambda: diagnostics.density_centre(ONES, X), "pos"),
                                   (lambda: diagnostics.density_centre(ONES, N, 6 * u.s),
                                    "neighbours")],
    "diagnostics.lagrangian_radii": [
        (lambda: diagnostics.lagrangian_radii(M, N), "mass"),
        (lambda: diagnostics.lagrangian_radii(ONES, X), "pos"),
        (lambda: diagnostics.lagrangian_radii(ONES, N, [0.5] * u.pc), "fractions"),
        (lambda: diagnostics.lagrangian_radii(ONES, N, centre=[0, 0, 0] * u.pc), "centre")],
    "binaries": [(lambda: grape6py.binaries(M, N, N), "mass"),
                 (lambda: grape6py.binaries(ONES, X, N), "pos"),
                 (lambda: grape6py.binaries(ONES, N, V), "vel"),
                 (lambda: grape6py.binaries(ONES, N, N, 1 * u.pc), "eps"),
                 (lambda: grape6py.binaries(ONES, N, N, G=constants.G), "G"),
                 (lambda: grape6py.binaries(ONES, N, N, ids=[1, 2, 3] * u.s), "ids")],
    "reference.direct_sum": [(lambda: reference.direct_sum(M, N), "mass"),
                             (lambda: reference.direct_sum(ONES, X), "pos"),
                             (lambda: reference.direct_sum(ONES, N, V), "vel"),
                             (lambda: reference.direct_sum(ONES, N, N, eps2=1 * u.pc**2), "eps2"),
                             (lambda: reference.direct_sum(ONES, N, target_pos=X), "target_pos"),
                             (lambda: reference.direct_sum(ONES, N, h2=ONES * u.pc), "h2"),
                             (lambda: reference.direct_sum(ONES, N, index=[0, 1, 2] * u.s),
                              "index")],
    "reference.predict": [(lambda: reference.predict(0.0, X, N), "pos"),
                          (lambda: reference.predict(0.0, N, V), "vel"),
                          (lambda: reference.predict(1 * u.s, N, N), "dt")],
    "reference.energy": [(lambda: reference.energy(M, N, N), "mass"),
                         (lambda: reference.energy(ONES, X, N), "pos"),
                         (lambda: reference.energy(ONES, N, V), "vel"),
                         (lambda: reference.energy(ONES, N, N, eps2=1 * u.pc**2), "eps2")],
    "mass functions": [(lambda: kroupa(9, 1, 0.1 * u.Msun), "lowest"),
                       (lambda: kroupa(9, 1, 0.1, 100 * u.Msun), "highest"),
                       (lambda: kroupa(9 * u.s, 1), "n"),
                       (lambda: salpeter(9, 1, 0.1 * u.Msun), "lowest"),
                       (lambda: salpeter(9, 1, slope=2 * u.s), "slope"),
                       (lambda: maschberger(9, 1, 0.1 * u.Msun), "lowest"),
                       (lambda: maschberger(9, 1, mu=0.2 * u.Msun), "mu")],
    "king_profile": [(lambda: grape6py.models.king_profile(6 * u.pc), "w0")],
    "from_galpy": [(lambda: fields.from_galpy(None, radius=8 * u.kpc), "radius"),
                   (lambda: fields.from_galpy(None, speed=220 * KMS), "speed")],
    "restored": [
        (lambda: Hermite.restored(*restored(mass=M), time=0.0), "mass"),
        (lambda: Hermite.restored(*restored(pos=X), time=0.0), "pos"),
        (lambda: Hermite.restored(*restored(), time=1 * u.Myr), "time")],
    "without units": [(lambda: Tree(X, ONES), "mass"), (lambda: Tree(N, M), "pos"),
                      (lambda: Tree(N, ONES, V), "vel"),
                      (lambda: Tree(N, ONES).forces(eps=1 * u.pc), "eps"),
                      (lambda: Tree(N, ONES).neighbours(1 * u.pc), "radius"),
                      (lambda: tidal_radius(fields.point_mass(1), 1, [1, 0, 0] * u.pc, [0, 1, 0]),
                       "mass"),
                      (lambda: tidal_radius(fields.point_mass(1), 1, [1, 0, 0], [0, 1, 0] * KMS),
                       "vel")],
}  # fmt: skip


def restored(**other):
    plain = Hermite(ONES, N, N)
    mass, state = other.pop("mass", ONES), plain.state()
    return plain.settings, mass, state | other


@pytest.mark.parametrize("name", TAKE_NONE)
def test_what_takes_no_quantities_refuses_them_by_name(name):
    for call, word in TAKE_NONE[name]:
        with pytest.raises(ArgumentError, match=rf"\b{word}\b"):
            call()


def test_results_in_quantities_are_not_taken_by_what_takes_numbers():
    particles = made().particles()
    for call in (lambda: diagnostics.energy(*particles), lambda: grape6py.binaries(*particles),
                 lambda: reference.direct_sum(*particles)):  # fmt: skip
        with pytest.raises(ArgumentError, match=r"^(mass|pos|vel)\b"):
            call()


def lists(values, unit):
    """A list of scalars, or of vectors, that each have a unit."""
    return [value * unit for value in values]


def test_lists_of_quantities_are_taken_with_units():
    mass, pos, vel = all_by_hand(stars())
    cluster = Hermite(lists(mass, u.Msun), lists(pos, u.pc), lists(vel, KMS), eps=0.05 * u.pc,
                      units=GALACTIC, **EXACT)  # fmt: skip
    assert has_the_bits(cluster, made())
    mixed = [pos[0] * u.pc, *((row * u.pc).to(u.kpc) for row in pos[1:])]
    assert is_close(by_hand(Hermite(mass, mixed, vel, units=GALACTIC).pos), pos, 1e-14)
    cluster.add([1 * u.Msun, 2 * u.Msun], lists(N[:2], u.pc), lists(N[:2], KMS))
    assert len(cluster) == 32


@pytest.mark.parametrize(("call", "word"), [
    (lambda pos: Hermite(ONES, pos, N), "pos"), (lambda pos: Hermite(ONES, N, pos), "vel"),
    (lambda pos: Leapfrog(ONES, pos, N, dt=1.0), "pos"), (lambda pos: Tree(pos, ONES), "pos"),
    (lambda pos: Tree(N, ONES, pos), "vel"), (lambda pos: accelerations(ONES, pos), "pos"),
    (lambda pos: Grape6().set_particles(ONES, pos), "pos"),
    (lambda pos: diagnostics.centre_of_mass(ONES, pos), "pos"),
    (lambda pos: diagnostics.energy(ONES, N, pos), "vel"),
    (lambda pos: grape6py.binaries(ONES, pos, N), "pos"),
    (lambda pos: reference.direct_sum(ONES, pos), "pos"),
    (lambda pos: write_snapshot("a.dat", ONES, pos), "pos"),
    (lambda pos: fields.point_mass(1)(0.0, pos, N), "pos"),
    (lambda pos: Hermite(ONES, N, N).add(ONES, pos, N), "pos"),
    (lambda pos: Hermite(ONES, N, N).kick([0, 1, 2], pos), "vel"),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["vectors", "numbers", "one", "objects"])
def test_lists_of_quantities_are_refused_without_units(here, call, word, kind):  # noqa: F811
    """NumPy drops the units of a list of vectors without a word."""
    pos = {"vectors": [row * u.pc for row in N], "numbers": [[x * u.pc for x in row] for row in N],
           "one": [*N[:2], N[2] * u.pc],
           "objects": np.array([[x * u.pc for x in row] for row in N], dtype=object)}  # fmt: skip
    with pytest.raises(ArgumentError, match=rf"\b{word}\b"):
        call(pos[kind])


def test_a_long_list_of_which_the_last_has_a_unit_is_refused():
    pos = [*np.random.default_rng(1).normal(size=(20, 3)), [1, 2, 3] * u.pc]
    with pytest.raises(ArgumentError, match="pos"):
        Hermite(np.ones(21), pos, np.zeros((21, 3)))


def test_quantities_of_other_packages_are_refused_by_name():
    unyt = pytest.importorskip("unyt")
    mass, pos, vel = (unyt.unyt_array(a, b) for a, b in ((ONES, "Msun"), (N, "pc"), (N, "km/s")))
    for call in (lambda: Hermite(mass, pos, vel), lambda: Hermite(mass, pos, vel, units=GALACTIC),
                 lambda: Tree(pos, mass), lambda: accelerations(mass, pos),
                 lambda: write_snapshot("a.hdf5", mass, pos)):  # fmt: skip
        with pytest.raises(ArgumentError, match=r"mass.*astropy|pos.*astropy"):
            call()
    for call, word in ((lambda: diagnostics.centre_of_mass(mass, N), "mass"),
                       (lambda: Hermite(ONES, N, N, eps=unyt.unyt_quantity(1, "pc")), "eps"),
                       (lambda: Hermite(ONES, N, N).evolve(unyt.unyt_quantity(1, "Myr")), "t"),
                       (lambda: made().evolve(unyt.unyt_quantity(1, "Myr")), "t")):  # fmt: skip
        with pytest.raises(ArgumentError, match=rf"\b{word}\b"):
            call()


def test_hidden_values_are_refused_in_quantities_too():
    masked = pytest.importorskip("astropy.utils.masked").Masked
    mass = masked(ONES, mask=[False, True, False]) * u.Msun
    with pytest.raises(ArgumentError, match="mass"):
        Hermite(mass, X, V)
    with pytest.raises(ArgumentError, match="mass"):
        Hermite(mass, X, V, units=HENON)
    shown = masked(ONES, mask=[False] * 3) * u.Msun
    assert np.array_equal(Hermite(shown, X, V).mass.value, ONES)


def test_logarithmic_units_are_converted_or_refused():
    mass = u.Dex([1.0, 2.0, 3.0], u.dex(u.Msun))
    found = outcome(lambda: Hermite(mass, X, V, units=GALACTIC))
    if isinstance(found, ArgumentError):
        assert "mass" in str(found)
    else:
        assert is_close(by_hand(found.mass), [10, 100, 1000], 1e-12)


def test_values_that_are_not_finite_are_refused_in_quantities():
    for name in ("mass", "pos", "vel"):
        given = dict(zip(("mass", "pos", "vel"), (np.array(a) * a.unit for a in stars()),
                         strict=True))  # fmt: skip
        given[name][3] = np.nan * given[name].unit
        with pytest.raises(ArgumentError, match=rf"{name}\[3\]"):
            Hermite(**given)


def test_the_order_of_arguments_is_checked_in_quantities():
    mass, pos, vel = stars()
    with pytest.raises(ArgumentError, match="mass"):
        Hermite(pos, mass, vel)
    with pytest.raises(ArgumentError, match=r"\b(mass|pos)\b"):
        Tree(mass, pos)


def test_without_astropy_units_are_refused_in_words(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "astropy"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install.*units"):
        plummer(10, 1, units=HENON)
    assert type(plummer(10, 1)).__name__ == "Particles"
