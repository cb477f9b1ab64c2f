"""Quantities where none can be taken are refused by their names."""

import inspect
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
    events,
    fields,
    kroupa,
    plummer,
    reference,
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
    stars,
)
from runs import here  # noqa: F401 (fixture)

N, ONES = np.eye(3), np.ones(3)
X, M, V = N * u.pc, ONES * u.Msun, N * KMS
PLAIN = {"mass": ONES, "pos": N, "vel": N}
WITH_UNITS = {"mass": M, "pos": X, "vel": V}


def session(**options):
    grape = Grape6(**options)
    grape.set_particles(*(WITH_UNITS if options else PLAIN).values())
    return grape


def calls():
    """All that takes numbers: how it is made, and arguments that it takes."""
    for name, given, time in (("", PLAIN, 1.0), (" of quantities", WITH_UNITS, 1 * u.Myr)):
        bodies = [given[key] for key in ("mass", "pos", "vel")]
        places = {key: given[key] for key in ("mass", "pos")}
        yield f"Hermite{name}", lambda: Hermite, given
        yield f"Leapfrog{name}", lambda: Leapfrog, given | {"dt": time}
        yield f"Tree{name}", lambda: Tree, given
        yield f"accelerations{name}", lambda: accelerations, places
        for method, arguments in {
            "evolve": {"t": time / 1000}, "kick": {"ids": 0, "vel": bodies[2][0]},
            "merge": {"ids": [0, 1]}, "remove": {"ids": 0}, "lagrangian_radii": {},
            "add": {"mass": bodies[0][0], "pos": 5 * bodies[1][0], "vel": bodies[2][0]},
            "set_mass": {"ids": 0, "mass": bodies[0][0]},
        }.items():  # fmt: skip
            yield (f"Hermite.{method}{name}",
                   lambda b=bodies, m=method: getattr(Hermite(*b), m), arguments)  # fmt: skip
        for method, arguments in {"forces": {}, "bound": {"accuracy": 1e-3}, "nearest": {},
                                  "neighbours": {"radius": bodies[1][0, 0]}}.items():  # fmt: skip
            yield (f"Tree.{method}{name}",
                   lambda g=given, m=method: getattr(Tree(**g), m), arguments)  # fmt: skip
    yield "Grape6", lambda: Grape6, {}
    for name, options in (("", {}), (" in units", {"units": GALACTIC})):
        given = WITH_UNITS if options else PLAIN
        for method, arguments in {
            "set_particles": given, "forces": {"pos": given["pos"]}, "walks": {
                "i_start": [0, 3], "pos": given["pos"], "j_start": [0, 3],
                "source_pos": given["pos"], "source_mass": given["mass"]
            }
        }.items():  # fmt: skip
            yield (f"Grape6.{method}{name}",
                   lambda o=options, m=method: getattr(session(**o), m), arguments)  # fmt: skip
    for where, names in ((diagnostics, "potential energy momentum angular_momentum centre_of_mass "
                          "density_centre lagrangian_radii"), (reference, "energy"),
                         (grape6py, "binaries")):  # fmt: skip
        for name in names.split():
            function = getattr(where, name)
            known = inspect.signature(function).parameters
            arguments = {k: v for k, v in PLAIN.items() if k in known}
            yield f"{where.__name__}.{name}", lambda f=function: f, arguments
    yield "reference.predict", lambda: reference.predict, {"dt": 0.1, "pos": N, "vel": N}
    yield "reference.direct_sum", lambda: reference.direct_sum, PLAIN | {"target_pos": N}
    orbit = {"field": fields.point_mass(1), "pos": [1, 0, 0], "vel": [0, 1, 0]}
    yield "tidal_radius", lambda: tidal_radius, orbit | {"mass": 0.1}
    models = {
        "plummer": {"n": 9}, "king": {"n": 9, "w0": 6}, "uniform": {"n": 9}, "fractal": {"n": 9},
        "stars": {"mass": kroupa(9, 1)}, "two_body": {}, "galaxy_merger": {"n_halo": 9,
        "n_stars": 9}, "galaxy": {"n_disk": 9, "n_bulge": 5, "n_halo": 5}, "merger":
        {"first": plummer(9, 1), "second": plummer(9, 2), "pericentre": 1, "separation": 5},
        "with_binaries": {"particles": plummer(20, 1), "fraction": 0.5, "separation": 0.01},
        "kroupa": {"n": 9}, "salpeter": {"n": 9}, "maschberger": {"n": 9},
    }  # fmt: skip
    terms = {
        "point_mass": {"mass": 1}, "plummer": {"mass": 1, "scale": 1}, "rotation": {"omega": 1},
        "nfw": {"mass": 1, "scale": 1}, "miyamoto_nagai": {"mass": 1, "a": 1, "b": 1},
        "logarithmic": {"speed": 1}, "mwpotential2014": {},
        "power_law_cutoff": {"mass": 1, "exponent": 1, "cutoff": 1},
    }  # fmt: skip
    for where, table in ((grape6py, models), (fields, terms)):
        for name, arguments in table.items():
            function = getattr(where, name)
            yield f"{where.__name__}.{name}", lambda f=function: f, arguments
            if "units" in inspect.signature(function).parameters:
                more = arguments | {"units": HENON}
                yield f"{where.__name__}.{name} in units", lambda f=function: f, more
    for name, options, pos, vel in (("a field", {}, N, N),
                                    ("a field in units", {"units": GALACTIC}, X, V)):  # fmt: skip
        yield name, lambda o=options: fields.nfw(1, 1, **o), {"t": 0, "pos": pos, "vel": vel}
    for name, key in (("Encounter", "radius"), ("Escape", "radius"), ("EnergyError", "bound"),
                      ("WallTime", "seconds")):  # fmt: skip
        yield f"events.{name}", lambda e=name: getattr(events, e), {key: 1}
    yield "from_galpy", lambda: fields.from_galpy, {"potential": None}
    yield "king_profile", lambda: grape6py.models.king_profile, {"w0": 6}


CALLS = {name: (make, arguments) for name, make, arguments in calls()}
NOT_NUMBERS = """units comm ranks field model callback particles first second potential method
    rows""".split()


@pytest.mark.parametrize("name", CALLS)
def test_a_temperature_is_refused_by_the_name_of_every_argument(name):
    make, arguments = CALLS[name]
    for parameter in inspect.signature(make()).parameters.values():
        if parameter.name in NOT_NUMBERS or isinstance(parameter.default, bool):
            continue
        for value in (1 * u.K, ONES * u.K, N * u.K, [1 * u.K] * 3, [ONES * u.K] * 3):
            with pytest.raises(ArgumentError, match=rf"\b{parameter.name}\b"):
                make()(**arguments | {parameter.name: value})


@pytest.mark.parametrize(("call", "word"), [
    (lambda: Hermite(M, X, V, eps=1 * u.Msun), r"^eps is in solMass, which is no unit of length"),
    (lambda: Hermite(M, V, V), r"^pos is in km / s, which is no unit of length"),
    (lambda: Hermite(M, X, X), r"^vel is in pc, which is no unit of velocity"),
    (lambda: Hermite(M, X, N * u.deg), "^vel is in deg"), (lambda: Hermite(ONES * u.one, X, V),
                                                           "^mass is without a unit"),
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
])  # fmt: skip
def test_messages_say_what_is_wrong(here, call, word):  # noqa: F811
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


@pytest.mark.parametrize(("given", "word"), [
    (lambda m, x, v: (m.value, x, v), "mass"), (lambda m, x, v: (m, x.value, v), "pos"),
    (lambda m, x, v: (m.value, x.value, v), "vel"), (lambda m, x, v: (m, x, v.value), "vel"),
    (lambda m, x, v: (m, x.value, v.value), "pos"), (lambda m, x, v: (m.value, x, v.value), "mass"),
])  # fmt: skip
def test_quantities_and_plain_arrays_do_not_mix(given, word):
    """What a plain velocity would be in is nowhere said."""
    for make in (Hermite, lambda *g: Tree(g[1], g[0], g[2]), accelerated, written):
        with pytest.raises(ArgumentError, match=rf"^{word}\b"):
            make(*given(*stars()))


def accelerated(mass, pos, vel):
    return accelerations(mass, pos, vel=vel, jerk=True)


def written(*bodies):
    write_snapshot("none/a.hdf5", *bodies)


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
    one, other = (Hermite(*stars(), **given, eta=eta) for eta in (0.02 * u.one, 0.02))
    assert one.settings == other.settings
    found = diagnostics.lagrangian_radii(*numbers[:2], [50 * u.percent, 0.9])
    assert np.array_equal(found, diagnostics.lagrangian_radii(*numbers[:2], [0.5, 0.9]))


def test_results_in_quantities_are_not_taken_by_what_takes_numbers():
    particles = made().particles()
    for call in (diagnostics.energy, grape6py.binaries, reference.direct_sum):
        with pytest.raises(ArgumentError, match=r"^(mass|pos|vel)\b"):
            call(*particles)


# ---- lists and tables ----------------------------------------------------------------------------


def lists(values, unit):
    """A list of scalars, or of vectors, that each have a unit."""
    return [value * unit for value in values]


def test_lists_of_quantities_are_taken():
    mass, pos, vel = all_by_hand(stars())
    given = lists(mass, u.Msun), lists(pos, u.pc), lists(vel, KMS)
    for units in (None, GALACTIC):
        cluster = Hermite(*given, eps=0.05 * u.pc, units=units, **EXACT)
        assert has_the_bits(cluster, made())
    mixed = [pos[0] * u.pc, *((row * u.pc).to(u.kpc) for row in pos[1:])]
    assert is_close(by_hand(Hermite(mass, mixed, vel, units=GALACTIC).pos), pos, 1e-14)
    cluster.add([1 * u.Msun, 2 * u.Msun], lists(N[:2], u.pc), lists(N[:2], KMS))
    assert len(cluster) == 32


def test_lists_of_quantities_and_numbers_are_refused():
    for units in (None, GALACTIC):
        with pytest.raises(ArgumentError, match=r"^pos holds quantities\b"):
            Hermite(M, [X[0], X[1], [0, 0, 1.0]], V, units=units)


@pytest.mark.parametrize(("call", "word"), [
    (lambda pos: Hermite(ONES, pos, N), "pos"), (lambda pos: Tree(N, ONES, pos), "vel"),
    (lambda pos: session().set_particles(ONES, pos), "pos"),
    (lambda pos: diagnostics.energy(ONES, N, pos), "vel"),
    (lambda pos: reference.direct_sum(ONES, pos), "pos"),
    (lambda pos: write_snapshot("a.dat", ONES, pos), "pos"),
    (lambda pos: fields.point_mass(1)(0.0, pos, N), "pos"),
    (lambda pos: Hermite(ONES, N, N).kick([0, 1, 2], pos), "vel"),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["vectors", "numbers", "last", "objects"])
def test_lists_of_quantities_are_refused_without_units(here, call, word, kind):  # noqa: F811
    """NumPy drops the units of a list of vectors without a word."""
    numbers = [[x * u.pc for x in row] for row in N]
    pos = {"vectors": [row * u.pc for row in N], "numbers": numbers, "last": [*N[:2], X[2]],
           "objects": np.array(numbers, dtype=object)}  # fmt: skip
    with pytest.raises(ArgumentError, match=rf"\b{word}\b"):
        call(pos[kind])


def test_columns_of_tables_keep_their_units():
    table = [Column(M, unit="Msun"), Column(X.to(u.kpc)), Column(V)]
    found = Hermite(*table)
    assert is_close(found.pos.to_value(u.pc), N, 1e-15)
    assert type(Hermite(*map(Column, PLAIN.values()))) is Hermite
    with pytest.raises(ArgumentError, match=r"^mass is a quantity\b"):
        diagnostics.centre_of_mass(table[0], N)


# ---- odd quantities ------------------------------------------------------------------------------


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
        assert is_close(by_hand(Hermite(mass, X, V, units=units).mass), [10, 100, 1000], 1e-12)
    with pytest.raises(ArgumentError, match=r"^eps is a quantity in mag\b"):
        Hermite(*PLAIN.values(), eps=1 * u.mag)


def test_values_that_are_not_finite_are_refused_in_quantities():
    for name, array in WITH_UNITS.items():
        wrong = array.copy()
        wrong[2] = np.nan * array.unit
        with pytest.raises(ArgumentError, match=rf"{name}\[2\]"):
            Hermite(**WITH_UNITS | {name: wrong})


def test_the_order_of_arguments_is_checked_in_quantities():
    for call in (lambda: Hermite(X, M, V), lambda: Tree(X, X), lambda: accelerations(X, M)):
        with pytest.raises(ArgumentError, match=r"^(mass|pos)\b"):
            call()


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
