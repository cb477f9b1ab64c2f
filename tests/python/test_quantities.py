"""What takes quantities of astropy or AMUSE gives what it gives of plain numbers, in quantities.

One table has all calls that take quantities: the tests go by it, and by the calls' signatures."""

import inspect
import io
import re
from functools import partial

import numpy as np
import pytest
from astropy import constants
from astropy import units as u
from astropy.table import Column

import grape6py as g6
import in_quantities as iq
from grape6py import Grape6, Hermite, Leapfrog, Tree, diagnostics, events, fields, plummer
from grape6py.errors import ArgumentError, UnitError
from grape6py.in_units import ARGUMENTS, OF_ADD
from in_quantities import EXACT, GALACTIC, HENON, KINDS, KMS, as_given, by_hand, made, of_amuse

BODIES = iq.stars()
PAIR = {key: BODIES[key] for key in ("mass", "pos")}
ACC, JERK, POT = KMS / u.Myr, KMS / u.Myr**2, KMS**2
FIELDS = {
    "point_mass": {"mass": 1e10 * u.Msun},
    "plummer": {"mass": 2e40 * u.kg, "scale": 0.3 * u.kpc},
    "miyamoto_nagai": {"mass": 5e10 * u.Msun, "a": 3 * u.kpc, "b": 280 * u.pc},
    "nfw": {"mass": 1e11 * u.Msun, "scale": 16 * u.kpc},
    "logarithmic": {"speed": 2.2e5 * u.m / u.s, "core": 0.1 * u.kpc, "flattening": 0.8},
    "power_law_cutoff": {"mass": 5e9 * u.Msun, "exponent": 1.8, "cutoff": 1.9 * u.kpc},
    "rotation": {"omega": 30 * KMS / u.kpc},
    "mwpotential2014": {"radius": 8.1 * u.kpc, "speed": 230 * KMS},
}  # fmt: skip
ORBIT = [8.0, 0, 0.1] * u.kpc, [10.0, 220, 5] * KMS
GALAXY = ["mwpotential2014"]
EVOLVED = [
    ("hermite", ["miyamoto_nagai", "rotation"], {"eps": 0.05 * u.pc}),
    ("tree", [], {"boundary": 2.5 * u.pc}), ("hermite", GALAXY, {"orbit": ORBIT}),
    ("direct", GALAXY, {"orbit": list(ORBIT)}),
    ("tree", GALAXY, {"orbit": tuple(map(list, ORBIT))}),
]  # fmt: skip


def field(how, *names):
    units = None if how is by_hand else HENON
    first, *more = (getattr(fields, name)(**how(FIELDS[name]), units=units) for name in names)
    return sum(more, first)


def attraction(t, pos, vel):
    """Of 1e10 solar masses, in units of which 5e4 are one."""
    assert type(t) is float
    assert type(pos) is type(vel) is np.ndarray
    acc = -2e5 * pos / np.linalg.norm(pos, axis=1)[:, None] ** 3
    return acc, 0 * acc, acc[:, 0]


def session(how, **more):
    grape = Grape6(precision="double", units=None if how is by_hand else HENON)
    grape.set_particles(**how(BODIES | more))
    return grape


def tree_of(name):
    return lambda how: getattr(Tree(**how(BODIES)), name)


def cluster_of(name):
    return lambda how: getattr(made(how=how), name)


def grape_of(name, **more):
    return lambda how: getattr(session(how, **more), name)


def the(function):
    return lambda how: function


def evolved(how, kind, names, **options):
    """With all changes, of which bodies that the boundary takes are spared."""
    more = {"field": field(how, *names)} if names else {}
    cluster = made(kind, how, **options | more)
    for k, change in enumerate(CHANGES):
        cluster.evolve(how(((k + 1) * 2.05 * u.kyr).to(u.s)))
        if "boundary" not in options:
            getattr(cluster, change.split()[0])(**how(CHANGES[change]))
    assert (len(cluster) < 30) == ("boundary" in options)
    return cluster


ROWS = np.random.default_rng(1).normal(size=(30, 3))
DERIVATIVES = {"acc": ROWS * ACC, "jerk": ROWS[::-1] * JERK, "snap": ROWS * KMS / u.Myr**3}
SEPARATION = [100, 1000] * u.AU
WALKS = {"i_start": [0, 3, 9], "pos": BODIES["pos"][:9], "j_start": [0, 10, 20],
         "source_pos": BODIES["pos"][:20], "source_mass": BODIES["mass"][:20]}  # fmt: skip
BOUND = {"mass": 1e4 * u.Msun, "pos": [8, 0, 0] * u.kpc, "vel": [0, 73.3, 0] * KMS,
         "time": 1 * u.Myr}  # fmt: skip
TIGHT = g6.with_binaries(plummer(20, 1, units=HENON), 0.5, 1, separation=(10, 100) * u.AU)
OPTIONS = [{"eps": 0.1 * u.pc, "theta": 0.5}, {"eps": 1e4 * u.AU, "method": "bh"},
           {"targets": np.eye(3) * u.kpc, "vel": np.eye(3) * u.m / u.s, "theta": 0.3},
           {"last_acc": np.ones(30) * u.pc / u.Myr**2, "bound": 1e-3}]  # fmt: skip
IN = {"units": HENON}
CHANGES = {
    "move_to_centre_of_mass": {},
    "kick": {"ids": 3, "vel": [100, 0, 0] * u.m / u.s},
    "kick places": {"ids": [1, 2], "pos": [[0, 0, 100], [0, 3, 0]] * u.AU},
    "set_mass": {"ids": [1, 2], "mass": [1e33, 2e33] * u.kg},
    "add": {"mass": [1, 2] * u.Msun, "pos": [*np.eye(3)[:2] * u.pc], "vel": np.eye(3)[:2] * KMS},
    "merge": {"ids": [3, 4]},
}  # fmt: skip

# By a name: what is called, its arguments, the units of what it gives (of fields of tuples by
# their names), and the error of that.
CALLS = {
    **{f"{cls.__name__} {kind}": (the(cls), BODIES | options, None, iq.ERRORS.get(kind, 1e-9))
       for kind, (cls, options) in KINDS.items()},
    "Hermite of twice G": (the(Hermite), BODIES | {"G": 2 * constants.G, "dt": 1 * u.kyr} | EXACT),
    "Hermite in a function": (the(Hermite), BODIES | {"field": attraction} | EXACT | IN),
    **{f"Hermite of {name}": (the(Hermite), KINDS["hermite"][1] | BODIES | given)
       for name, given in {
           "lists": {key: list(value) for key, value in BODIES.items()},
           "two units": {"pos": [BODIES["pos"][0], *BODIES["pos"][1:].to(u.kpc)]},
           "columns": {key: Column(value) for key, value in BODIES.items()},
           "logarithms": {"mass": u.Dex(np.linspace(1, 3, 30), u.dex(u.Msun))}}.items()},
    "Hermite of pairs": (lambda how: Hermite(**how(TIGHT._asdict())).binaries, {}, None, 1e-8),
    "Hermite on an orbit": (
        lambda how: partial(Hermite, field=field(how, "nfw", "plummer")),
        BODIES | {"orbit": ORBIT, "dt": 1 * u.kyr} | EXACT),
    "radii": (cluster_of("lagrangian_radii"),
              {"fractions": [50, 100] * u.percent, "centre": [2000, 1000, -1000] * u.mpc}, u.pc),
    **{f"Hermite.{name}": (cluster_of(name.split()[0]), given) for name, given in CHANGES.items()},
    **{f"evolved {k}": (lambda how, of=of: partial(evolved, how, *of), options, None,
                        iq.ERRORS.get(of[0], 1e-8)) for k, (*of, options) in enumerate(EVOLVED)},
    "origin": (lambda how: lambda **given: tuple(evolved(how, "hermite", GALAXY, **given).origin),
               {"orbit": ORBIT}, (u.pc, KMS), 1e-12),
    "Hermite.add on orbits": (cluster_of("add"), {
        "mass": 1 * u.Mjup, "primary": 3, "a": [1e3, 2e3] * u.AU, "e": 0.1, "inc": 0.5}),
    "orbit": (lambda how: partial(fields.orbit, field(how, "nfw", "plummer")),
              {"pos": ORBIT[0], "vel": ORBIT[1], "t": [-9, 5] * u.Myr} | IN),
    "Hermite.evolve": (cluster_of("evolve"), {"t": 1 * u.kyr}),
    "Hermite.remove": (cluster_of("remove"), {"ids": 0}),
    **{f"accelerations{name}": (the(g6.accelerations), of | {"precision": "double"}, unit)
       for name, of, unit in [
           ("", PAIR | {"eps": 2e3 * u.AU}, ACC),
           (" all", BODIES | {"jerk": True, "potential": True}, (ACC, JERK, POT))]},
    **{f"Tree.forces {k}": (tree_of("forces"), given, None, 1e-4)
       for k, given in enumerate(OPTIONS)},
    "Tree without vel": (lambda how: Tree(**how(PAIR)).forces, {}, None, 1e-4),
    "Tree.bound": (tree_of("bound"), {"accuracy": 1e-3, "eps": 0.1 * u.pc}, None, 1e-6),
    "Tree.nearest": (tree_of("nearest"), {"k": 2, "targets": np.eye(3) * u.kpc}),
    "Tree.neighbours csr": (tree_of("neighbours"), {
        "radius": 3e5 * u.AU, "targets": np.eye(3) * u.pc, "csr": True}),
    "Grape6.forces": (grape_of("forces"), {"eps": 0.1 * u.pc, "nn": True}, None, 1e-6),
    "Grape6.forces h": (grape_of("forces"), {"h": 0.5 * u.pc, "eps": 0.0 * u.pc}),
    "Grape6.forces of predicted": (
        grape_of("forces", time=5 * u.kyr, **DERIVATIVES),
        {"pos": np.eye(3) * u.pc, "vel": np.eye(3) * KMS, "time": 0.1 * u.Myr}),
    "Grape6.walks": (grape_of("walks"), WALKS | {"eps": 500 * u.AU}, (ACC, POT)),
    **{f"fields.{name}": (the(getattr(fields, name)), given | IN)
       for name, given in FIELDS.items()},
    "a field": (lambda how: field(how, "miyamoto_nagai", "rotation"),
                iq.PLACES | {"t": 0 * u.Myr}),
    "tidal_radius": (lambda how: partial(g6.tidal_radius, field(how, "point_mass")), BOUND, u.kpc),
    "tidal_radius of a function": (lambda how: partial(g6.tidal_radius, attraction),
                                   BOUND | IN, u.pc, 1e-6),
    "plummer": (the(plummer), {"n": 20, "seed": 1, "rescale": True} | IN),
    "eff": (the(g6.eff), {"n": 20, "gamma": 3, "seed": 1} | IN),
    "hernquist": (the(g6.hernquist), {"n": 20, "seed": 1} | IN),
    "king": (the(g6.king), {"n": 20, "w0": 6 * u.one, "seed": 1} | IN),
    "uniform": (the(g6.uniform), {"n": 20, "seed": 1, "virial_ratio": 20 * u.percent} | IN),
    "fractal": (the(g6.fractal), {"n": 20, "seed": 1} | IN),
    "stars": (the(g6.stars), {"mass": g6.kroupa(20, 1) * u.Msun, "model": plummer, "seed": 1} | IN),
    **{f"with_binaries {k}": (the(g6.with_binaries), {
        "particles": plummer(20, 1, **more), "fraction": 0.5, "seed": 1, "separation": given} | IN)
       for k, (more, given) in enumerate([({}, SEPARATION), (IN, list(SEPARATION))])},
    "two_body": (the(g6.two_body), {"mass_ratio": 0.5, "semi_major_axis": 1e5 * u.AU} | IN),
    **{f"merger {k}": (the(g6.merger), {
        "first": plummer(9, 1, **more), "second": plummer(8, 2, **more),
        "pericentre": 2.4 * u.pc, "separation": 1e6 * u.AU, "mass_ratio": 0.5} | IN)
       for k, more in enumerate(({}, IN))},
    "galaxy": (the(g6.galaxy), {
        "n_disk": 10, "n_bulge": 5, "n_halo": 20, "seed": 1, "disk_height": 0.24 * u.pc,
        "bulge_mass": 1.25e4 * u.Msun, "bulge_scale": 5e4 * u.AU, "halo_mass": 2.5e5 * u.Msun,
        "halo_scale": 4.8 * u.pc, "black_hole": 5e3 * u.Msun} | IN),
    "galaxy_merger": (the(g6.galaxy_merger), {
        "n_halo": 20, "n_stars": 8, "seed": 1, "pericentre": 3 * u.pc, "separation": 40 * u.pc,
        "black_hole": 10 * u.Msun} | IN),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_call_in_quantities_gives_what_it_gives_of_numbers(name, amuse):
    """Or of numbers that units are given for. A number among quantities is refused by its name."""
    make, given, *more = CALLS[name]
    unit, error = *more, *(None, 1e-9)[len(more) :]
    kind = u.Quantity if name.startswith("Grape6") else iq.AmuseQuantity
    numbers = by_hand(given)
    wanted = make(by_hand)(**numbers)
    iq.assert_same(make(as_given)(**given), wanted, unit, error)
    if any(one is not given[key] for key, one in of_amuse(given).items()):
        iq.assert_same(make(of_amuse)(**of_amuse(given)), wanted, unit, error, kind)
    if "units" in inspect.signature(make(by_hand)).parameters:
        of_units = u.pc if name == "tidal_radius" else unit
        iq.assert_same(make(by_hand)(**numbers, units=HENON), wanted, of_units, error)
    for key, value in given.items() if "units" not in given else ():
        if isinstance(value, u.Quantity) and value.unit != u.percent and np.any(value.value):
            words = f"^{key} (has no unit: multiply it by one of {ARGUMENTS[key]}, as |is no quant)"
            with pytest.raises(ArgumentError, match=words) as refused:
                make(as_given)(**given | {key: numbers[key]})
            unit = str(refused.value).partition(", as ")[2]
            assert isinstance(refused.value, UnitError) == ("multiply" in str(refused.value))
            assert "multiply" not in str(refused.value) or value.unit.is_equivalent(unit)


MASS, POS, VEL = plummer(12, seed=1)
ROWS = np.arange(12, dtype=np.int32)
ARRAYS = {"mass": MASS, "pos": POS, "vel": VEL, "acc": VEL, "jerk": VEL, "snap": VEL, "h": MASS,
          "time": MASS, "pot": -MASS, "index": ROWS, "address": ROWS}  # fmt: skip


def forces(pos, vel, index, h):
    with Grape6(backend="cpu") as grape:
        grape.set_particles(MASS, POS)
        grape.forces(pos, vel, index=index, h=h)


def written(mass, pos, vel):
    g6.write_snapshot(io.StringIO(), mass, pos, vel)


def energy_of(mass, vel, pot):
    diagnostics.energy(mass, POS, vel, pot=pot)


# Functions of plain numbers alone, and what they need besides arrays of ARRAYS.
OF_NUMBERS = {function: {} for function in (
    diagnostics.potential, energy_of, diagnostics.momentum, g6.reference.energy,
    diagnostics.angular_momentum, diagnostics.centre_of_mass, diagnostics.density_centre,
    diagnostics.lagrangian_radii, g6.binaries, forces, written,
    Grape6(backend="cpu").set_particles)}  # fmt: skip
OF_NUMBERS |= {
    g6.reference.direct_sum: {"target_pos": np.eye(3)}, g6.reference.predict: {"dt": 0.1},
    events.Encounter: {"radius": 1}, events.Escape: {"radius": 1}, events.EnergyError: {"bound": 1},
    events.WallTime: {"seconds": 1}, fields.from_galpy: {"potential": None},
    g6.models.king_profile: {"w0": 6}, g6.kroupa: {"n": 9}, g6.salpeter: {"n": 9},
    g6.maschberger: {"n": 9}, Grape6: {"jerk": 1, "snap": 1},
    diagnostics.energy: {"pot": None},
}  # fmt: skip
NOT_NUMBERS = """units comm ranks field model callback particles first second potential method
    rows subsystems stars""".split()
# NumPy drops the units of a list of vectors without a word.
LISTS = [[np.ones(3) * u.K] * 3, [[1 * u.K] * 3] * 3, [[1.0, 0, 0], [0, 1.0, 0], np.ones(3) * u.K],
         np.array([[1 * u.K] * 3] * 3, dtype=object)]  # fmt: skip
REFUSING = {f"{name} {how.__name__}": (how, *row[:2]) for name, row in CALLS.items()
            for how in (as_given, by_hand) if not re.match("evolved|origin", name)}  # fmt: skip
for function, more in OF_NUMBERS.items():
    taken = inspect.signature(function).parameters
    arrays = {key: ARRAYS[key] for key in ARRAYS if key in taken}
    REFUSING[f"{function.__module__}.{function.__name__}"] = by_hand, the(function), arrays | more


def hiding(values):
    array = np.ma.array(values)
    array[-1] = np.ma.masked
    return array


@pytest.mark.parametrize("name", REFUSING)
def test_what_is_no_such_number_is_refused_by_the_name_of_every_argument(name, amuse):
    """Temperatures; and, for arrays of numbers, dates and masks, but not one that hides nothing."""
    how, make, given = REFUSING[name]
    call, given = make(how), how(given)
    for parameter in inspect.signature(call).parameters.values():
        key, value = parameter.name, given.get(parameter.name)
        wrong = []
        if key not in NOT_NUMBERS and not isinstance(parameter.default, bool):
            words = rf"\b{key}\b"
            lists = LISTS[: 4 if getattr(value, "ndim", 0) == 2 else 1]
            wrong = [(one, words) for one in lists]
            if how is as_given and key != "events":
                words = f"^{key} is a quantity in K: a number is needed"
                known = OF_ADD if name.startswith("Hermite.add") else ARGUMENTS
                if key in known:
                    words = f"^{key} is in K, which is no unit of {known[key]}$"
            wrong += [(one, words) for one in (1 * u.K, np.eye(3) * u.K, of_amuse(1 * u.K))]
        if how is by_hand and isinstance(value, np.ndarray) and value.ndim:
            call(**given | {key: np.ma.array(value)})
            wrong.append((hiding(value), f"^{key} is a masked array that hides values"))
            wrong += [(np.asarray(value).astype(int).astype(f"{kind}8[s]"), f"^{key} .*{word}64")
                      for kind, word in (("M", "datetime"), ("m", "timedelta"))]  # fmt: skip
        for one, words in wrong:
            with pytest.raises(ArgumentError, match=words):
                call(**given | {key: one})


def test_no_public_function_of_units_is_missing_in_the_table():
    listed = {getattr(make(by_hand), "__name__", "") for make, *_ in CALLS.values()}
    for where in g6, fields:
        for name in {*where.__all__} - {"tidal_radius", "orbit"}:
            found = getattr(where, name)
            if inspect.isfunction(found) and "units" in inspect.signature(found).parameters:
                assert name in listed | {"write_snapshot"}


@pytest.mark.parametrize(("kind", "options", "more"), [
    (Hermite, {"eta": 0.01}, {}), (Hermite, {"passes": 2, "eta_start": 0.01}, {}),
    (Leapfrog, {"dt": 1 / 64, "backend": "cpu-tree"}, {"dt": 1 / 64 * u.pc / KMS}),
])  # fmt: skip
def test_quantities_have_the_bits_of_plain_numbers_in_their_units(kind, options, more):
    """With the constant of these; and numbers with `units` have them as well."""
    numbers = [array.value for array in BODIES.values()]
    plain = kind(*numbers, eps=0.05, G=GALACTIC.G, **options)
    plain.evolve(0.125)
    for cluster in (kind(*numbers, eps=0.05, units=GALACTIC, **options),
                    kind(**BODIES, eps=0.05 * u.pc, **options | more)):  # fmt: skip
        assert cluster.units == GALACTIC
        assert cluster.settings == plain.settings
        cluster.evolve(0.125 * u.pc / KMS)
        assert np.array_equal(cluster.pos.value, plain.pos)
        assert np.array_equal(cluster.vel.value, plain.vel)


def test_sums_of_fields_have_the_units_of_the_first():
    one, other = (fields.point_mass(m * u.Msun, units=GALACTIC) for m in (1, 2))
    total = one + other + fields.plummer(1 * u.Msun, 2 * u.pc, units=HENON)
    assert total.units == GALACTIC
    assert [term.values[0] for term in total.terms] == pytest.approx([1, 2, 1], rel=1e-14)
    assert total.terms[-1].values[1] == pytest.approx(2, rel=1e-14)
    assert one != fields.point_mass(1, units=HENON)


@pytest.mark.parametrize(
    ("end", "every", "count"), [(0.2 * u.Myr, 40 * u.kyr, 5), (10.5 * u.kyr, None, 5)]
)
def test_callbacks_see_quantities_at_each_multiple_or_block(end, every, count):
    """Once at the end, too, if the last digit of a conversion lets it be just after a multiple."""
    cluster, seen = made(), []
    cluster.evolve(end, lambda c: seen.append((c, c.time)), every=every)
    assert all(one is cluster and time.unit == u.Myr for one, time in seen)
    step = 2 * u.kyr if every is None else every
    found = [time.to_value(step.unit) for _, time in seen]
    assert iq.is_close(found, step.value * np.arange(1, count + 1), 1e-12)


def test_events_are_looked_for_with_constant_steps_in_years():
    """Of which a multiple over the step may be rounded down."""
    cluster = Leapfrog(**iq.stars(8), dt=2 * u.kyr, eps=0.05 * u.pc)
    watched = [events.Escape(100 * u.pc, centre="density"), events.WallTime(1000)]
    assert cluster.evolve(1 * u.Myr, events=watched) is None
    assert cluster.time.to_value(u.Myr) == pytest.approx(1, rel=1e-12)
