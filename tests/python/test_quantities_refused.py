"""What would do nothing is refused by its name: quantities that nothing takes, numbers without
units among quantities, attributes that are not there, arguments that another makes void."""

import copy
import pickle
import sys

import numpy as np
import pytest
from astropy import units as u
from astropy.table import Column, MaskedColumn

import grape6py as g6
from grape6py import Grape6, Hermite, Leapfrog, Tree, archive, diagnostics, events, fields, plummer
from grape6py.errors import ArgumentError, Grape6Error, ReadOnlyError, UnitError
from in_quantities import GALACTIC, HENON, KINDS, KMS, has_the_bits, made

N, ONES = np.eye(3), np.ones(3)
X, M, V = N * u.pc, ONES * u.Msun, N * KMS
PLAIN = {"mass": ONES, "pos": N, "vel": N}
BODIES = plummer(32, seed=1)
END = 1 * u.Myr
IN_NFW = {"field": fields.nfw(1e10, 8e3, units=GALACTIC)}


def session():
    grape = Grape6()
    grape.set_particles(**PLAIN)
    return grape


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_an_object_of_its_class_also_when_it_is_closed(kind):
    with made(kind) as cluster:
        assert {"pos", "vel", "evolve", "energy", "units"} <= set(dir(cluster))
        assert f"{KINDS[kind][0].__name__}, 30 bodies" in repr(cluster)
        assert "Msun pc km/s" in repr(cluster)
    with pytest.raises(Grape6Error, match="closed"):
        cluster.evolve(END)


def test_arguments_are_counted_and_named_as_without_units():
    """A fourth argument by its place, or one given twice, is not taken silently."""
    for given, more in (((M, X, V, 2.0), {}), ((M, X, V), {"mass": M}), ((M, X), {}),
                        ((M, X, V), {"softening": 1})):  # fmt: skip
        with pytest.raises(TypeError):
            Hermite(*given, **more)
    with pytest.raises(TypeError):
        Tree(X, M, V, "cpu")


REFUSED = [
    (lambda: Hermite(ONES * u.one, X, V), "^mass is without a unit"),
    (lambda: Hermite(M, [X[0], X[1], [0, 0, 1.0]], V), r"^pos holds quantities\b"),
    (lambda: Hermite(M, X * [[1], [1], [np.nan]], V), r"pos\[2\]"),
    (lambda: Hermite(*PLAIN.values(), eps=1 * u.mag), "^eps is a quantity in mag: .*give units="),
    (lambda: Hermite(*BODIES).evolve(1, events=events.Escape(1 * u.pc)), "radius is a quantity"),
    (lambda: Grape6(units="Msun pc"), "^units = 'Msun pc'"),
    (lambda: archive.read_particles("a.h5", 1 * u.s), "which"),
    (lambda: g6.reference.direct_sum(ONES, N, rows=[0, 1] * u.s), "^rows is a quantity in s:"),
    (lambda: diagnostics.centre_of_mass(Column(M), N), "^pos is no quantity, as mass is"),
    (lambda: g6.write_snapshot("b.dat", ONES, [*X]), "pos is: make it one"),
    (lambda: g6.write_snapshot("b.hdf5", *BODIES, time=END), "time"),
    (lambda: g6.write_snapshot("b.hdf5", M, X, V, ids=np.arange(3) * u.s), "ids"),
    *((lambda orbit=orbit: made(**IN_NFW, orbit=orbit), "orbit")
      for orbit in (([8, 0, 0] * KMS, [0, 220, 0] * KMS), [8, 0, 0, 0, 220, 0] * u.pc,
                    [8 * u.pc] * 6, ([8, 0, 0] * u.kpc,), ([8, 0] * u.kpc, [0, 220, 0] * KMS))),
    *((lambda wrong=wrong: events.Escape(wrong), "^radius")
      for wrong in (-1 * u.pc, 1 * u.s, 0 * u.pc, [1, 2] * u.pc)),
    (lambda: Hermite(*BODIES, dt=0.1, eta=0.1), "dt .*there is no eta"),
    (lambda: Hermite(*BODIES, dt=0.1, dt_max=0.1), "there is no dt_max"),
    (lambda: Leapfrog(*BODIES, eps=0.1, dt=0.1, eta=0.1), "there is no eta"),
    (lambda: Hermite(*BODIES, eps=0.1).evolve(0.1, every=0.05), "every says when the callback"),
    (lambda: made().evolve(END, print, every=1), "every has no unit"),
    (lambda: made().evolve(END, events=events.Escape(20)), "radius has no unit: .* as pc"),
    (lambda: made().evolve(END, events=[events.Encounter(1e-3)]), "radius has no unit"),
    (lambda: made().evolve(END, events=events.Escape(1 * u.pc, centre=N[0])), "centre has no unit"),
    (lambda: made().evolve(END, events=events.EnergyError(1, every=1)), "every has no unit"),
    (lambda: made(orbit=[8, 0, 0, 0, 1, 0]), "orbit has no units"),
    (lambda: made(field=fields.nfw(1e10, 8e3)), "field has no units: make it with units="),
    (lambda: made(field=fields.from_galpy(pytest.importorskip("galpy.potential").MWPotential2014)),
     "field has no units but galpy's own: give from_galpy radius= and speed="),
]  # fmt: skip


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_messages_say_what_is_wrong(here, call, words):
    Hermite(*PLAIN.values()).save("a.h5")
    with pytest.raises(ArgumentError, match=words) as refused:
        call()
    assert isinstance(refused.value, UnitError) == ("has no unit" in words)
    assert issubclass(UnitError, TypeError)


def test_a_refused_change_changes_nothing():
    cluster = made()
    for call in (lambda: cluster.evolve(1 * u.pc), lambda: cluster.remove(0 * u.pc),
                 lambda: cluster.kick(0, [1, 0, 0] * KMS, pos=[1, 0, 0] * u.s)):  # fmt: skip
        with pytest.raises(ArgumentError):
            call()
    assert has_the_bits(cluster, made())


def test_zeros_and_infinities_need_no_unit():
    c = made(orbit=(N[0] * 0, N[0] * 0), **IN_NFW)
    c.evolve(0)
    c.add(0, [0, 0, 0], [0, 0, 0])
    c.evolve(0.01 * u.Myr, events=events.Escape(5 * u.kpc, centre=[0, 0, 0]))
    assert c.n == 31
    assert [len(near) for near in Tree(X[:2], M[:2]).neighbours(np.inf)] == [1, 1]


def test_dimensionless_quantities_are_numbers():
    plain = Hermite(*BODIES, eps=0.1, eta=0.01)
    cluster = Hermite(*(array * u.one for array in BODIES), eps=0.1 * u.one, eta=1 * u.percent)
    for each, end in (plain, 0.125), (cluster, 0.125 * u.one):
        each.evolve(end)
    assert cluster.settings == plain.settings
    assert np.array_equal(cluster.pos, plain.pos)
    for numbers in cluster, Hermite(*map(Column, PLAIN.values())):
        assert type(numbers) is Hermite
    assert fields.nfw(1 * u.one, 2 * u.one) == fields.nfw(1, 2)
    found = diagnostics.lagrangian_radii(*BODIES[:2], [50 * u.percent, 0.9])
    assert np.array_equal(found, diagnostics.lagrangian_radii(*BODIES[:2], [0.5, 0.9]))


def test_quantities_of_other_packages_are_refused_by_name():
    unyt = pytest.importorskip("unyt")
    mass, pos, vel = (unyt.unyt_array(a, b) for a, b in ((ONES, "Msun"), (N, "pc"), (N, "km/s")))
    for call, words in (
        (lambda: Hermite(mass, pos, vel, units=GALACTIC), "mass.*astropy|pos.*astropy"),
        (lambda: g6.write_snapshot("a.hdf5", mass, pos), "mass.*astropy|pos.*astropy"),
        (lambda: diagnostics.centre_of_mass(mass, N), r"\bmass\b"),
        (lambda: made().evolve(unyt.unyt_quantity(1, "Myr")), r"\bt\b"),
    ):
        with pytest.raises(ArgumentError, match=words):
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
    rows = [np.ma.array(row) for row in N + 1]
    session().forces(pos=rows)
    rows[2][1] = np.ma.masked
    with pytest.raises(ArgumentError, match="pos is a masked array"):
        session().forces(pos=rows)


def test_scalars_that_are_no_numbers_are_refused():
    for wrong in (np.ma.masked, np.ma.array(1, mask=True), np.array(1, "m8[ns]"),
                  np.datetime64(1, "ns")):  # fmt: skip
        with pytest.raises(ArgumentError, match=r"(?s)eps = .* is not a number"):
            session().forces(eps=wrong)
        with pytest.raises(ArgumentError, match=r"(?s)k = .* is not an integer"):
            Tree(N, ONES).nearest(wrong)


def test_a_constant_of_gravity_that_no_units_have_is_refused():
    """Plain bodies in a field of solar masses, parsecs and km/s, but with G = 1."""
    for call in (
        lambda G: Hermite(*PLAIN.values(), **IN_NFW, G=G),
        lambda G: g6.tidal_radius(**IN_NFW, mass=1, pos=[8e3, 0, 0], vel=[0, 70, 0], G=G),
    ):
        assert call(0.0043009) is not None
        with pytest.raises(ArgumentError, match=r"field is in units Msun pc km/s, for G = 0\.0043"):
            call(1.0)


def test_without_astropy_units_are_refused_in_words(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "astropy"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install.*units"):
        plummer(10, 1, units=HENON)
    assert type(plummer(10, 1)).__name__ == "Particles"


SET = {
    lambda: Hermite(*BODIES, eps=0.1): {
        "eta": r"fixed from the start: make a new Hermite\(eta=...\)", "eps": "fixed",
        "dt_max": "fixed", "field": "fixed", "time": "calls change it", "vel": r"kick\(ids, vel",
        "evolve": "calls change it", "evolv": "no attribute evolv .did you mean evolve"},
    lambda: Leapfrog(*BODIES, eps=0.1, dt=0.1): {
        "theta": "fixed", "boundary": "fixed", "mass": "set_mass"},
    made: {"eta": "fixed", "etta": "did you mean eta", "mass": "mass", "pos": "pos"},
    Grape6: {"presicion": "mean precision", "precision": "cannot be set", "eps": "no attribute e"},
    lambda: Grape6(units=GALACTIC): {"treads": "mean threads"},
    lambda: Tree(BODIES.pos, BODIES.mass): {"pos": "fixed", "theta": "no attribute theta"},
    lambda: events.Encounter(1.0): {"radius": "fixed"},
    lambda: events.WallTime(1): {"second": "mean seconds"},
    lambda: GALACTIC: {"mass": "fixed"},
    lambda: fields.nfw(1, 1): {"mass": "no", "omega": "cannot be set"},
}  # fmt: skip


def test_attributes_that_would_do_nothing_are_refused():
    for make, refused in SET.items():
        one = make()
        for attribute, words in refused.items():
            with pytest.raises(ReadOnlyError, match=words):
                setattr(one, attribute, 1)


def test_what_can_be_set_is_set(here):
    g6.write_snapshot("a.csv", BODIES)
    snapshot = g6.read_snapshot("a.csv")
    snapshot.time = 3.0
    with pytest.raises(AttributeError, match="did you mean time"):
        snapshot.tine = 3.0
    for event in events.Escape("tidal"), events.WallTime(1):
        for same in copy.copy(event), pickle.loads(pickle.dumps(event)):
            assert vars(same).keys() == vars(event).keys()


def test_events_take_and_give_quantities():
    bodies = ([1.0, 1.0] * u.Msun, [[0, 0, 0], [0.5, 0, 0]] * u.pc,
              [[0, 0, 0], [1, 0, 0]] * u.pc / u.Myr)  # fmt: skip
    c, other = (Hermite(*bodies, dt=1 * u.kyr) for _ in range(2))
    event, seen = c.evolve(2 * u.Myr, events=events.Escape((1 * u.pc).to(u.km), "stop")), []
    assert event.time.to_value(u.Myr) == pytest.approx(0.5, rel=0.02)
    assert event.value.to_value(u.pc) == pytest.approx(1)
    other.evolve(0.7 * u.Myr, events=events.Escape(1 * u.pc, lambda *given: seen.append(given)))
    ((who, same),) = seen
    assert who is other
    assert other.events == [same]
    assert same.time.to_value(u.Myr) == pytest.approx(event.time.to_value(u.Myr), rel=1e-12)
    assert c.evolve(3 * u.Myr, events=events.EnergyError(1e-30, every=2 * u.kyr)).kind == "energy"


def test_bodies_of_a_snapshot_come_with_its_units_and_ids(here):
    units = g6.Units("1e10 Msun", "kpc", velocity="km/s")  # as those of Gadget, with G = 43007
    g6.write_snapshot("a.hdf5", BODIES, units=units, ids=np.arange(32) + 2**40)
    c = Hermite.of(g6.read_snapshot("a.hdf5"), eps=0.1 * u.kpc)
    assert c.ids[0] == 2**40
    wanted = Hermite(*BODIES, eps=0.1, G=units.G).energy().total
    assert c.energy().total.to_value(1e10 * u.Msun * KMS**2) == pytest.approx(wanted, rel=1e-12)
    g6.write_snapshot("b.csv", BODIES)
    again = Hermite.of(g6.read_snapshot("b.csv"), eps=0.1)
    assert again.energy() == Hermite(*BODIES, eps=0.1).energy()
