"""What would do nothing is an error: attributes that are not there, numbers without units where
there are units, arguments that another one makes void."""

import copy
import pickle

import numpy as np
import pytest
from astropy import units as u

import grape6py
from grape6py import Grape6, Hermite, Leapfrog, Tree, Units, events, fields, plummer
from grape6py.errors import ArgumentError, ReadOnlyError, UnitError

BODIES = plummer(32, seed=1)
GALACTIC = Units("Msun", "pc", velocity="km/s")


def in_units(kind=Hermite, **options):
    return kind(*plummer(32, seed=1, units=GALACTIC), eps=0.1 * u.pc, **options)


MADE = {
    "Hermite": lambda: Hermite(*BODIES, eps=0.1),
    "Leapfrog": lambda: Leapfrog(*BODIES, eps=0.1, dt=0.1),
    "Hermite in units": in_units,
    "Grape6": Grape6,
    "Grape6 in units": lambda: Grape6(units=GALACTIC),
    "Tree": lambda: Tree(BODIES.pos, BODIES.mass),
    "Encounter": lambda: events.Encounter(1.0),
    "Escape": lambda: events.Escape("tidal"),
    "EnergyError": lambda: events.EnergyError(0.1),
    "WallTime": lambda: events.WallTime(1),
    "Units": lambda: Units("Msun", "pc"),
    "Field": lambda: fields.nfw(1, 1),
}


@pytest.mark.parametrize(("name", "attribute", "words"), [
    ("Hermite", "eta", r"fixed from the start: make a new Hermite\(eta=...\)"),
    ("Hermite", "eps", "fixed"), ("Hermite", "dt_max", "fixed"), ("Hermite", "field", "fixed"),
    ("Leapfrog", "theta", "fixed"), ("Leapfrog", "boundary", "fixed"),
    ("Hermite in units", "eta", "fixed"), ("Hermite", "time", "calls change it"),
    ("Hermite", "vel", r"kick\(ids, vel"), ("Leapfrog", "mass", "set_mass"),
    ("Hermite", "evolve", "calls change it"),
    ("Hermite", "evolv", "no attribute evolv .did you mean evolve"),
    ("Hermite in units", "etta", "did you mean eta"), ("Grape6", "presicion", "mean precision"),
    ("Grape6", "precision", "cannot be set"), ("Grape6", "eps", "no attribute eps"),
    ("Grape6 in units", "treads", "mean threads"), ("Tree", "pos", "fixed"),
    ("Tree", "theta", "no attribute theta"), ("Encounter", "radius", "fixed"),
    ("Escape", "factor", "fixed"), ("EnergyError", "every", "fixed"),
    ("WallTime", "second", "mean seconds"), ("Units", "mass", "fixed"), ("Field", "mass", "no"),
    ("Field", "omega", "cannot be set"),
])  # fmt: skip
def test_attributes_that_would_do_nothing_are_refused(name, attribute, words):
    made = MADE[name]()
    with pytest.raises(ReadOnlyError, match=words):
        setattr(made, attribute, 1)


def read_snapshot_of(bodies, path="a.csv", **more):
    grape6py.write_snapshot(path, bodies, **more)
    return grape6py.read_snapshot(path)


def test_what_can_be_set_is_set():
    with Grape6(threads=1) as grape:
        grape.threads = 2
        assert grape.threads == 2
    snapshot = read_snapshot_of(BODIES)
    snapshot.time = 3.0
    with pytest.raises(AttributeError, match="did you mean time"):
        snapshot.tine = 3.0
    for event in MADE["Escape"](), MADE["WallTime"]():
        for same in copy.copy(event), pickle.loads(pickle.dumps(event)):
            assert vars(same).keys() == vars(event).keys()


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("call", "words"), [
    (lambda c: c.evolve(10), "t has no unit: .* of time, as Myr"),
    (lambda c: c.evolve(1 * u.Myr, print, every=1), "every has no unit"),
    (lambda c: c.add(1, [0, 0, 1] * u.pc, [0, 0, 0]), "mass has no unit: .* as solMass"),
    (lambda c: c.add(1 * u.Msun, [0, 0, 1], [0, 0, 0]), "pos has no unit: .* as pc"),
    (lambda c: c.kick(0, [0, 0, 1]), "vel has no unit: .* as km / s"),
    (lambda c: c.set_mass(0, 1), "mass has no unit"),
    (lambda c: c.lagrangian_radii(centre=[0, 0, 1]), "centre has no unit"),
    (lambda c: c.evolve(1 * u.Myr, events=events.Escape(20)), "radius has no unit: .* as pc"),
    (lambda c: c.evolve(1 * u.Myr, events=[events.Encounter(1e-3)]), "radius has no unit"),
    (lambda c: c.evolve(1 * u.Myr, events=events.Escape(20 * u.pc, centre=[1, 0, 0])), "centre"),
    (lambda c: c.evolve(1 * u.Myr, events=events.EnergyError(1, every=1)), "every has no unit"),
    (lambda _: in_units(dt_max=0.1), "dt_max has no unit: .* as Myr"),
    (lambda _: in_units(G=1), "G has no unit"),
    (lambda _: in_units(orbit=[8, 0, 0, 0, 1, 0]), "orbit has no units"),
    (lambda _: in_units(field=fields.nfw(1e10, 8e3)), "field has no units: make it with units="),
    (lambda _: in_units(Leapfrog, dt=1), "dt has no unit"),
    (lambda _: Tree([[1, 0, 0]] * u.pc, [1] * u.Msun).forces(eps=0.1), "eps has no unit"),
    (lambda _: Grape6(units=GALACTIC).set_particles([1], [[1, 0, 0]]), "mass has no unit"),
])  # fmt: skip
def test_a_number_without_a_unit_is_refused_where_there_are_units(call, words):
    with pytest.raises(UnitError, match=words):
        call(in_units())
    assert issubclass(UnitError, TypeError)
    assert issubclass(UnitError, ArgumentError)


def test_zeros_and_infinities_need_no_unit():
    c = in_units()
    c.evolve(0)
    c.add(0, [0, 0, 0], [0, 0, 0])
    c.evolve(0.01 * u.Myr, events=events.Escape(5 * u.kpc, centre=[0, 0, 0]))
    c = in_units(dt_max=0.01 * u.Myr, orbit=(np.zeros(3), np.zeros(3)),
                 field=fields.nfw(1e10, 8e3, units=GALACTIC))  # fmt: skip
    assert c.n == 32
    tree = Tree([[1, 0, 0], [2, 0, 0]] * u.pc, [1, 1] * u.Msun)
    assert [len(near) for near in tree.neighbours(np.inf)] == [1, 1]


def test_events_take_quantities():
    bodies = ([1.0, 1.0] * u.Msun, [[0, 0, 0], [0.5, 0, 0]] * u.pc,
              [[0, 0, 0], [1, 0, 0]] * u.pc / u.Myr)  # fmt: skip
    c, other, third = (Hermite(*bodies, dt=1 * u.kyr) for _ in range(3))
    seen = []
    third.evolve(0.7 * u.Myr, events=events.Escape(1 * u.pc, lambda *given: seen.append(given)))
    ((who, event),) = seen
    assert who is third
    assert third.events == [event]
    assert event.time.to_value(u.Myr) == pytest.approx(0.5, rel=0.02)
    far = c.evolve(2 * u.Myr, events=events.Escape(3.0856775814913674e13 * u.km, "stop"))
    same = other.evolve(2 * u.Myr, events=events.Escape(1 * u.pc, "stop"))
    assert far.time.to_value(u.Myr) == pytest.approx(same.time.to_value(u.Myr), rel=1e-12)
    assert far.value.to_value(u.pc) == pytest.approx(1)
    energy = events.EnergyError(1e-30, every=2 * u.kyr)
    assert c.evolve(3 * u.Myr, events=energy).kind == "energy"
    for event in events.Escape(1 * u.pc), events.Encounter(1 * u.pc), energy:
        with pytest.raises(ArgumentError, match=r"(radius|every) is a quantity"):
            Hermite(*BODIES).evolve(1.0, events=event)
    for wrong in (-1 * u.pc, 1 * u.s, 0 * u.pc, [1, 2] * u.pc):
        with pytest.raises(ArgumentError, match=r"^radius"):
            events.Escape(wrong)


def test_bodies_of_a_snapshot_come_with_its_units_and_ids():
    units = Units("1e10 Msun", "kpc", velocity="km/s")  # as those of Gadget, with G = 43007
    given = plummer(32, seed=1)
    snapshot = read_snapshot_of(given, "a.hdf5", units=units, ids=np.arange(32) + 2**40)
    c = Hermite.of(snapshot, eps=0.1 * u.kpc)
    plain = Hermite(*given, eps=0.1, G=units.G)
    assert c.ids[0] == 2**40
    energy = c.energy().total.to_value(1e10 * u.Msun * u.km**2 / u.s**2)
    assert energy == pytest.approx(plain.energy().total, rel=1e-12)
    again = Hermite.of(read_snapshot_of(given, "b.csv"), eps=0.1)
    assert again.energy() == Hermite(*given, eps=0.1).energy()


@pytest.mark.parametrize(("call", "words"), [
    (lambda: Hermite(*BODIES, dt=0.1, eta=0.1), "dt .*there is no eta"),
    (lambda: Hermite(*BODIES, dt=0.1, eta_start=0.1), "there is no eta_start"),
    (lambda: Hermite(*BODIES, dt=0.1, dt_max=0.1), "there is no dt_max"),
    (lambda: Leapfrog(*BODIES, eps=0.1, dt=0.1, eta=0.1), "there is no eta"),
    (lambda: Hermite(*BODIES, eps=0.1).evolve(0.1, every=0.05), "every says when the callback"),
    (lambda: Grape6(backend="cpu", theta=0.5), "theta is a tree's"),
])  # fmt: skip
def test_arguments_that_another_makes_void_are_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()
