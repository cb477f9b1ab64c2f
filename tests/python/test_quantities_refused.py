"""Objects of quantities; and quantities where none can be taken, which are refused by names."""

import copy
import inspect
import pickle
import sys

import numpy as np
import pytest
from astropy import units as u
from astropy.table import Column, MaskedColumn

import grape6py
from grape6py import (
    Grape6,
    Hermite,
    Leapfrog,
    Tree,
    accelerations,
    archive,
    diagnostics,
    fields,
    kroupa,
    plummer,
    reference,
    tidal_radius,
    with_binaries,
    write_snapshot,
)
from grape6py.errors import ArgumentError, Grape6Error, ReadOnlyError
from in_quantities import (
    EXACT,
    GALACTIC,
    HENON,
    KINDS,
    KMS,
    has_the_bits,
    is_close,
    is_in,
    made,
    stars,
)

N, ONES = np.eye(3), np.ones(3)
X, M, V = N * u.pc, ONES * u.Msun, N * KMS
PLAIN = {"mass": ONES, "pos": N, "vel": N}
WITH_UNITS = {"mass": M, "pos": X, "vel": V}


def test_it_is_an_object_of_its_class():
    cluster, tree = made(), Tree(**stars())
    for each, cls in ((cluster, Hermite), (made("tree"), Leapfrog), (tree, Tree),
                      (Grape6(units=HENON), Grape6)):  # fmt: skip
        assert isinstance(each, cls)
        assert each
    assert not isinstance(cluster, Leapfrog)
    assert len(cluster) == cluster.n == len(tree) == 30
    assert {"pos", "vel", "evolve", "energy", "units"} <= set(dir(cluster))
    assert "Hermite, 30 bodies" in repr(cluster)
    assert "Msun pc km/s" in repr(cluster)
    assert cluster.units == GALACTIC
    assert not hasattr(cluster, "nothing")
    with pytest.raises(AttributeError, match="nothing"):
        cluster.nothing()
    assert type(cluster.settings) is dict
    assert "every" in inspect.signature(cluster.evolve).parameters
    for name in ("mass", "pos", "vel"):
        with pytest.raises(ReadOnlyError, match=name):
            setattr(cluster, name, getattr(cluster, name))
    with Grape6(units=HENON) as grape:
        grape.threads = 2
        assert grape.threads == 2
        assert grape.n == 0


def test_plain_numbers_make_plain_objects():
    for plain in (Hermite(*plummer(10, 1)), Tree(N, ONES)):
        assert type(plain) in (Hermite, Tree)
        assert not hasattr(plain, "units")
    assert type(plummer(10, 1).pos) is np.ndarray


@pytest.mark.parametrize("way", [
    copy.copy, copy.deepcopy, lambda c: c.copy(), lambda c: pickle.loads(pickle.dumps(c)),
])  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_copies_keep_quantities_and_go_on_with_the_same_bits(kind, way):
    with made(kind, field=fields.nfw(1e11, 1e4, units=GALACTIC)) as cluster:
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
    with pytest.raises(Grape6Error, match="closed"):
        cluster.evolve(0.1 * u.Myr)
    assert is_in(cluster.time, u.Myr)


def test_arguments_are_counted_and_named_as_without_units():
    """A fourth argument by its place, or one given twice, is not taken silently."""
    for g in ([*PLAIN.values()], [*WITH_UNITS.values()]):
        for kind, given, more in ((Hermite, (*g, 2.0), {}), (Hermite, g, {"mass": g[0]}),
                                  (Hermite, g[:2], {}), (Hermite, g, {"softening": 1}),
                                  (Tree, (g[1], g[0], g[2], "cpu"), {}),
                                  (Leapfrog, (*g, 2.0), {"dt": 1})):  # fmt: skip
            with pytest.raises(TypeError):
                kind(*given, **more)


def session(**options):
    grape = Grape6(**options)
    grape.set_particles(*(WITH_UNITS if options else PLAIN).values())
    return grape


@pytest.mark.parametrize(("call", "word"), [
    (lambda: Hermite(M, X, V, eps=1 * u.Msun), r"^eps is in solMass, which is no unit of length"),
    (lambda: Hermite(M, V, V), r"^pos is in km / s, which is no unit of length"),
    (lambda: Hermite(M, X, X), r"^vel is in pc, which is no unit of velocity"),
    (lambda: Hermite(M, X, N * u.deg), "^vel is in deg"), (lambda: Hermite(ONES * u.one, X, V),
                                                           "^mass is without a unit"),
    (lambda: Hermite(M, [X[0], X[1], [0, 0, 1.0]], V), r"^pos holds quantities\b"),
    (lambda: made().evolve(1 * u.one), "^t is without a unit"),
    (lambda: made().kick(0, [1, 0, 0] * u.pc), "^vel is in pc"),
    (lambda: made().lagrangian_radii([0.5] * u.pc), "^fractions is a quantity in pc"),
    (lambda: Hermite(*PLAIN.values(), eps=1 * u.pc), "^eps .*give units=Units"),
    (lambda: Hermite(*PLAIN.values()).add(1, [0, 0, 9] * u.pc, [0, 0, 0]), "^pos is a quantity"),
    (lambda: fields.nfw(1 * u.Msun, 1 * u.pc), "^mass .*give units=Units"),
    (lambda: session().forces(eps=1 * u.pc), "^eps .*give units=Units"),
    (lambda: Grape6(units="Msun pc"), "^units = 'Msun pc'"),
    (lambda: plummer(10, 1, units=u.pc), "^units = Unit"),
    (lambda: fields.nfw(1, 1, units=("Msun", "pc")), r"^units = \('Msun'"),
    (lambda: archive.read_particles("a.h5", 1 * u.s), "which"),
    (lambda: reference.direct_sum(ONES, N, rows=[0, 1] * u.s), "^rows is a quantity in s:"),
    (lambda: write_snapshot("b.hdf5", ONES, X, V), r"^mass\b"),
    (lambda: write_snapshot("b.hdf5", M, X, N), r"^vel\b"),
    (lambda: write_snapshot("b.dat", ONES, [*X]), "pos is: give units"),
    (lambda: diagnostics.energy(*made().particles()), r"^(mass|pos|vel)\b"),
    (lambda: with_binaries(plummer(9, 1), 0.5, separation=1 * u.AU), r"\bseparation\b"),
    (lambda: grape6py.stars(kroupa(9, 1) * u.Msun), r"\bmass\b"),
    *((lambda orbit=orbit: made(field=fields.mwpotential2014(units=GALACTIC), orbit=orbit), "orbit")
      for orbit in (([8, 0, 0] * KMS, [0, 220, 0] * KMS), ([8, 0, 0] * u.pc, [0, 2, 0] * u.pc),
                    [8, 0, 0, 0, 220, 0] * u.pc, [8 * u.pc] * 6, ([8, 0, 0] * u.kpc,),
                    ([8, 0] * u.kpc, [0, 220, 0] * KMS))),
    (lambda: Hermite(X, M, V), r"^mass\b"), (lambda: Tree(X, X), r"^(mass|pos)\b"),
    (lambda: accelerations(X, M), r"^(mass|pos)\b"),
])  # fmt: skip
def test_messages_say_what_is_wrong(here, call, word):
    Hermite(*PLAIN.values()).save("a.h5")
    with pytest.raises(ArgumentError, match=word):
        call()


def test_a_refused_change_changes_nothing():
    cluster = made()
    before = cluster.particles()
    for call in (lambda: cluster.evolve(1 * u.pc), lambda: cluster.remove(0 * u.pc),
                 lambda: cluster.kick(0, [1, 0, 0] * KMS, pos=[1, 0, 0] * u.s)):  # fmt: skip
        with pytest.raises(ArgumentError):
            call()
    assert cluster.time == 0
    assert np.array_equal(cluster.pos, before.pos)
    assert np.array_equal(cluster.vel, before.vel)


def test_dimensionless_quantities_are_numbers():
    numbers = plummer(20, 1)
    plain = Hermite(*numbers, eps=0.1, eta=0.01)
    cluster = Hermite(*(array * u.one for array in numbers), eps=0.1 * u.one, eta=1 * u.percent)
    assert type(cluster) is Hermite
    assert cluster.settings == plain.settings
    cluster.evolve(0.125 * u.one)
    plain.evolve(0.125)
    assert np.array_equal(cluster.pos, plain.pos)
    assert fields.nfw(1 * u.one, 2 * u.one) == fields.nfw(1, 2)
    given = {"eps": 0.05 * u.pc}
    one, other = (Hermite(**stars(), **given, eta=eta) for eta in (0.02 * u.one, 0.02))
    assert one.settings == other.settings
    found = diagnostics.lagrangian_radii(*numbers[:2], [50 * u.percent, 0.9])
    assert np.array_equal(found, diagnostics.lagrangian_radii(*numbers[:2], [0.5, 0.9]))


def lists(values, unit):
    return [value * unit for value in values]


def test_lists_of_quantities_are_taken():
    mass, pos, vel = [array.value for array in stars().values()]
    given = lists(mass, u.Msun), lists(pos, u.pc), lists(vel, KMS)
    for units in (None, GALACTIC):
        cluster = Hermite(*given, eps=0.05 * u.pc, units=units, **EXACT)
        assert has_the_bits(cluster, made())
    mixed = [pos[0] * u.pc, *((row * u.pc).to(u.kpc) for row in pos[1:])]
    assert is_close(Hermite(mass, mixed, vel, units=GALACTIC).pos.value, pos, 1e-14)
    cluster.add([1 * u.Msun, 2 * u.Msun], lists(N[:2], u.pc), lists(N[:2], KMS))
    assert len(cluster) == 32


def test_columns_of_tables_keep_their_units():
    table = [Column(M, unit="Msun"), Column(X.to(u.kpc)), Column(V)]
    found = Hermite(*table)
    assert is_close(found.pos.to_value(u.pc), N, 1e-15)
    assert type(Hermite(*map(Column, PLAIN.values()))) is Hermite
    with pytest.raises(ArgumentError, match=r"^mass is a quantity\b"):
        diagnostics.centre_of_mass(table[0], N)


def test_quantities_of_other_packages_are_refused_by_name():
    unyt = pytest.importorskip("unyt")
    mass, pos, vel = (unyt.unyt_array(a, b) for a, b in ((ONES, "Msun"), (N, "pc"), (N, "km/s")))
    for call in (lambda: Hermite(mass, pos, vel), lambda: Hermite(mass, pos, vel, units=GALACTIC),
                 lambda: Tree(pos, mass), lambda: write_snapshot("a.hdf5", mass, pos)):  # fmt: skip
        with pytest.raises(ArgumentError, match=r"mass.*astropy|pos.*astropy"):
            call()
    for call, word in ((lambda: diagnostics.centre_of_mass(mass, N), "mass"),
                       (lambda: Hermite(ONES, N, N, eps=unyt.unyt_quantity(1, "pc")), "eps"),
                       (lambda: made().evolve(unyt.unyt_quantity(1, "Myr")), "t")):  # fmt: skip
        with pytest.raises(ArgumentError, match=rf"\b{word}\b"):
            call()


def test_hidden_values_are_refused_in_quantities_too():
    masked = pytest.importorskip("astropy.utils.masked").Masked
    mask = [False, True, False]
    for mass in (masked(ONES, mask=mask) * u.Msun, MaskedColumn(ONES, unit="Msun", mask=mask),
                 [masked(1.0, mask=hidden) * u.Msun for hidden in mask]):  # fmt: skip
        for units in (None, HENON):
            with pytest.raises(ArgumentError, match=r"^mass is a masked\b"):
                Hermite(mass, X, V, units=units)
    shown = masked(ONES, mask=[False] * 3) * u.Msun
    assert np.array_equal(Hermite(shown, X, V).mass.value, ONES)


def test_logarithmic_units_are_converted():
    mass = u.Dex([1.0, 2.0, 3.0], u.dex(u.Msun))
    for units in (None, GALACTIC):
        assert is_close(
            Hermite(mass, X, V, units=units).mass.to_value(u.Msun), [10, 100, 1000], 1e-12
        )
    with pytest.raises(ArgumentError, match=r"^eps is a quantity in mag\b"):
        Hermite(*PLAIN.values(), eps=1 * u.mag)


def test_values_that_are_not_finite_are_refused_in_quantities():
    for name, array in WITH_UNITS.items():
        wrong = array.copy()
        wrong[2] = np.nan * array.unit
        with pytest.raises(ArgumentError, match=rf"{name}\[2\]"):
            Hermite(**WITH_UNITS | {name: wrong})


def test_a_constant_of_gravity_that_no_units_have_is_refused():
    """Plain bodies in a field of solar masses, parsecs and km/s, but with G = 1."""
    field = fields.point_mass(1e10, units=GALACTIC)
    for call in (lambda G: Hermite(*PLAIN.values(), field=field, G=G),
                 lambda G: tidal_radius(field, 1, [8e3, 0, 0], [0, 70, 0], G=G)):  # fmt: skip
        assert call(0.0043009) is not None
        with pytest.raises(ArgumentError, match=r"field is in units Msun pc km/s, for G = 0\.0043"):
            call(1.0)


def test_without_astropy_units_are_refused_in_words(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "astropy"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install.*units"):
        plummer(10, 1, units=HENON)
    assert type(plummer(10, 1)).__name__ == "Particles"
