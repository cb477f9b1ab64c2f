"""``events=`` of ``evolve``: encounters, escapes, energy errors, time."""

import functools
import itertools
import math

import numpy as np
import pytest

import integrations
from grape6py import Hermite, Leapfrog, fields, plummer, tidal_radius, uniform
from grape6py.errors import ArgumentError
from grape6py.events import Encounter, EnergyError, Escape, Event, WallTime
from integrations import MIXED, WAYS, assert_same, each

made = functools.partial(integrations.made, eps=1 / 32, precision="grape")


def ignore(cluster, event):
    pass


def distance(h, one=0, two=1):
    return float(np.linalg.norm(h.pos[one] - h.pos[two]))


@pytest.mark.parametrize(("e", "r"), [(0.9, 0.5), (0.9, 0.15), (0.5, 0.6), (0.3, 1.0)])
@pytest.mark.parametrize(("eta", "late", "error"), [(0.02, 3e-4, 1e-3), (0.001, 1e-6, 1e-6)])
def test_two_bodies_on_an_ellipse_meet_when_kepler_says(e, r, eta, late, error):
    x, v = 1 + e, math.sqrt((1 - e) / (1 + e))  # at apocentre, with a = G M = 1
    pos, vel = np.array([[x, 0, 0], [0, 0, 0]]), np.array([[0, v, 0], [0, 0, 0]])
    mass = np.array([0.25, 0.75])
    h = Hermite(mass, pos - mass @ pos, vel - mass @ vel, eta=eta, dt_max=1 / 8, precision="double")
    event = h.evolve(math.pi, events=Encounter(r))  # one needs no list
    # apocentre is half a period before pericentre
    anomaly = 2 * math.pi - math.acos((1 - r) / e)
    inbound = anomaly - e * math.sin(anomaly) - math.pi
    assert event.time == pytest.approx(inbound % (2 * math.pi), abs=late)
    assert isinstance(event, Event)
    assert (event.kind, event.ids, event.value) == ("encounter", (0, 1), r)
    assert h.time == event.time
    assert distance(h) == pytest.approx(r, rel=error)
    assert h.events == [event]


@pytest.mark.parametrize("masses", [(1e-14, 1e-14), (1e-14, 0.0), (0.0, 1e-14), (0.0, 0.0)])
@pytest.mark.parametrize("options", [{"dt_max": 1.0}, {"dt": 0.7}, {"dt_max": 4.0, "eta": 10}])
def test_bodies_that_fly_by_within_a_step_are_seen(options, masses):
    """Straight lines, with steps much longer than the meeting; a third body is much farther."""
    pos, vel = [[-5.3, 0.03, 0], [5.1, 0, 0], [1e9, 0, 0]], [[1, 0, 0], [-1, 0, 0], [0, 0, 0]]
    h = Hermite([*masses, 0.0], pos, vel, **options)
    event = h.evolve(10.0, events=[Encounter(0.05)])
    assert event.ids == (0, 1)
    assert event.time == pytest.approx((10.4 - 0.04) / 2, abs=1e-9)
    h = Hermite([*masses, 0.0], pos, vel, **options)
    assert h.evolve(10.0, events=[Encounter(0.0299)]) is None


@pytest.mark.parametrize(("masses", "place"), [((0, 0), 0), ((1, 0), -1), ((0, 1), 1)])
def test_one_without_mass_merges_with_any(masses, place):
    h = Hermite(masses, [[-1.0, 0, 0], [1, 0, 0]], [[1.0, 1, 0], [-1, 1, 0]], eps=10.0, eta=1e-3)
    h.evolve(2.0, events=[Encounter(0.1, "merge")])
    assert h.mass.tolist() == [sum(masses)]
    assert h.pos == pytest.approx(np.array([[-place * 1.0, 2, 0]]), abs=0.06)


@pytest.mark.parametrize(("kind", "options", "event", "error"), [
    (Hermite, {"eta": 0.005}, Encounter(0.06, "merge"), 1e-6),
    (Hermite, {"eta": 0.005}, Escape(1.5), 3e-5),
    (Leapfrog, {"dt": 1 / 256, "backend": "cpu"}, Escape(1.5), 3e-5),
    (Leapfrog, {"dt_max": 1 / 16, "eta": 0.001, "backend": "cpu"}, Escape(1.5), 3e-5),
])  # fmt: skip
def test_the_energy_of_who_merges_or_leaves_is_accounted_for(kind, options, event, error):
    h = made(kind, 64, precision="double", **options)
    start, mass, momentum = h.energy().total, math.fsum(h.mass), h.momentum()
    h.evolve(1.0, events=[event])
    assert h.time == 1
    assert 0 < len(h.events) == 64 - h.n < 34
    assert h.energy().total - h.energy_change == pytest.approx(start, abs=error)
    gone = {i for e in h.events for i in e.ids} - set(h.ids.tolist())
    assert len(gone) == 64 - h.n
    if isinstance(event, Encounter):
        assert math.fsum(h.mass) == pytest.approx(mass, rel=1e-14)
        assert np.allclose(h.momentum(), momentum, atol=2e-8)
    else:
        assert (np.linalg.norm(h.pos, axis=1) < 1.5 + 1e-3).all()


def test_all_who_are_close_merge():
    pos = [[0, 0, 0], [0.01, 0, 0], [0, 0.015, 0], [3, 0, 0], [3, 0.01, 0]]
    h = Hermite([0.2] * 5, pos, np.zeros((5, 3)), eps=0.1)
    h.evolve(0.5, events=[Encounter(0.1, "merge")])
    assert sorted(h.mass.tolist()) == pytest.approx([0.4, 0.6])


ACTIONS = {"merge": (lambda c, ids: c.merge(ids), -6),
           "remove": (lambda c, ids: c.remove(ids[0]), -6),
           "kick": (lambda c, ids: c.kick(ids, [0.1, 0, 0]), 0),
           "add": (lambda c, _: c.add(0.01, [1, 1, c.n - 47], [0, 0, 0]), 6)}  # fmt: skip


@pytest.mark.parametrize("action", ACTIONS)
def test_a_function_may_do_what_it_likes_at_an_encounter(action):
    h, seen = made(n=48, precision="double", eta=0.005), []
    start, (change, more) = h.energy().total, ACTIONS[action]

    def act(cluster, event):
        assert cluster is h
        assert event.time <= cluster.time < event.time + 1 / 16
        seen.append(distance(cluster, *(cluster.ids.tolist().index(i) for i in event.ids)))
        if len(seen) <= 6:
            change(cluster, event.ids)

    h.evolve(1.0, events=[Encounter(0.1, act)])
    assert h.time == 1
    assert len(seen) > 6
    assert np.allclose(seen, 0.1, rtol=0.2)  # some were within a step of the slower one
    assert h.n == 48 + more
    assert h.energy().total - h.energy_change == pytest.approx(start, abs=3e-6)


def test_every_meeting_of_a_cluster_is_seen_once():
    h, seen, looks = made(n=24, eta=0.005, dt_max=1 / 16), [], []
    r, step = 0.12, 1 / 512

    def look(c):
        d = np.linalg.norm(c.pos[:, None] - c.pos, axis=2)
        nearest = np.argmin(d + 9 * np.eye(24), axis=1).tolist()
        pairs = {(min(i, j), max(i, j)) for i, j in enumerate(nearest) if d[i, j] < r}
        looks.append((c.time, pairs))

    look(h)
    h.evolve(0.75, look, every=step, events=[Encounter(r, lambda c, event: seen.append(event))])
    start = looks[0][1]
    entries = [(time, pair) for (_, before), (time, now) in itertools.pairwise(looks)
               for pair in now - before]  # fmt: skip
    missed = {e.ids for e in seen} - {pair for _, pair in entries}  # between two looks
    assert len(missed) < 3
    for event in seen:
        found = [t for t, pair in entries if pair == event.ids and abs(t - event.time) < 2 * step]
        assert found or event.ids in start or event.ids in missed
    firsts = {pair: t for t, pair in reversed(entries)}
    for pair, t in firsts.items():
        assert pair in start or any(e.ids == pair and e.time <= t for e in seen), (pair, t)
    assert len({(e.ids, e.time) for e in seen}) == len(seen)
    assert {e.ids for e in seen} <= firsts.keys() | start | missed


@each([
    (Hermite, {"dt_max": 1 / 8}), (Hermite, {"dt": 0.3}), (Hermite, {"dt_max": 2.0}),
    (Leapfrog, {"dt": 1 / 64, "backend": "cpu"}), (Leapfrog, {"dt": 0.3, "backend": "cpu-tree"}),
    (Leapfrog, {"dt_max": 1.0, "eps": 0.1, "backend": "cpu-tree"}),
])  # fmt: skip
def test_who_goes_straight_on_leaves_when_it_must(kind, options):
    h = kind([0.0, 0.0], [[0.5, 0, 0], [0, 0, 0]], [[1, 0, 0], [0, 0.1, 0]], **options)
    event = h.evolve(5.0, events=[Escape(2.75, "stop")])
    assert event == Event("escape", pytest.approx(2.25, abs=1e-12), (0,), 2.75)
    assert h.time == event.time
    assert np.allclose(h.pos[0], [2.75, 0, 0], atol=1e-12)
    assert h.evolve(5.0, events=[Escape(2.75, "stop")]) is None
    assert (h.n, h.time) == (2, 5)

    h = kind([0.0], [[0.0, 1.0, 0]], [[1, 0, 0]], **options)  # passes the centre at a distance
    event = h.evolve(5.0, events=[Escape(2.0, "stop")])
    assert event.time == pytest.approx(math.sqrt(3), abs=1e-9)

    pos, vel = [[0, 0, 0], [0, 0, 0], [0.1, 0, 0]], [[1, 0, 0], [0, 0.5, 0], [0.1, 0, 0]]
    h = kind(np.zeros(3), pos, vel, **options)
    assert h.evolve(5.0, events=[Escape(1.0)]) is None
    assert [e.ids for e in h.events] == [(0,), (1,)]
    assert [e.time for e in h.events] == pytest.approx([1.0, 2.0], abs=1e-12)
    assert h.ids.tolist() == [2]
    assert np.allclose(h.pos, [[0.6, 0, 0]])

    h, seen = kind([0.0], [[3.0, 0, 0]], [[1.0, 0, 0]], **options), []
    act = Escape(1.0, lambda c, e: seen.append((c.time, e.time)), centre=[3, 0, 0], factor=1.5)
    h.evolve(4.0, events=[act])
    assert seen == [(pytest.approx(1.5, abs=1e-12),) * 2]
    assert h.n == 1


@pytest.mark.parametrize("drift", [0, 4])  # with a centre that is not followed, all would leave
def test_a_cluster_elsewhere_has_its_centre_found(drift):
    m, x, v = uniform(64, 3)
    at, along = np.array([50, 0, 0]), np.array([drift, 0, 0])
    bodies = np.append(m, 0.0), np.vstack([x, [0, 0, 1]]) + at, np.vstack([v, [0, 0, 3]]) + along
    h = Hermite(*bodies, eps=1 / 32, dt_max=1 / 8)
    h.evolve(3.0, events=[Escape(6.0, centre="density")])
    assert [e.ids for e in h.events] == [(64,)]
    assert 5.0 / 3 < h.events[0].time < 2.2  # it is slowed down


def test_the_tidal_radius_is_that_of_the_mass_on_its_orbit():
    galaxy = fields.mwpotential2014(8000, 33.5)
    m, x, v = plummer(64, 3)
    limit = tidal_radius(galaxy, 1.0, [8000, 0, 0], [0, 33.5, 0])
    m, x, v = np.append(m, 0.0), np.vstack([x, [0, 0, 1]]), np.vstack([v, [0, 0, 40.0]])
    h = Hermite(m, x, v, eps=1 / 32, field=galaxy, orbit=[8000, 0, 0, 0, 33.5, 0])
    h.evolve(2.0, events=[Escape("tidal", factor=2)])
    event = next(e for e in h.events if e.ids == (64,))
    assert event.value == pytest.approx(2 * float(limit), rel=1e-3)
    assert event.time == pytest.approx((event.value - 1) / 40.0, rel=1e-2)


@pytest.mark.parametrize("options", [{"dt": 1 / 8}, {"dt_max": 1 / 8, "eta": 1.0}])
def test_an_energy_error_stops(options):
    h = made(precision="double", **options)
    start = h.energy().total
    event = h.evolve(20.0, events=[EnergyError(1e-3)])
    assert (event.kind, event.ids) == ("energy", ())
    assert abs(event.value) > 1e-3
    assert event.time == h.time < 20
    assert abs(h.energy().total / start - 1) == pytest.approx(abs(event.value), rel=1e-9)


@pytest.mark.parametrize("every", [0.5, 0.3, 0.29, None])
def test_the_energy_is_looked_at_as_often_as_one_says(every):
    times = []
    h = made(dt=1 / 8, precision="double")
    h.evolve(2.2, events=[EnergyError(1e-15, lambda c, e: times.append(e.time), every=every)])
    every = every or 1 / 8
    assert times == pytest.approx([k * every for k in range(1, math.floor(2.2 / every) + 1)])


def test_changes_of_bodies_are_no_energy_error():
    h = made(precision="double", eta=0.005)
    for k in range(5):
        assert h.evolve((k + 1) / 8, events=[EnergyError(1e-5)]) is None
        h.kick(k, [1.0, 0, 0])
        h.remove(k + 10)
        h.add(0.1, [1, 1, k], [0, 0, 0])


@pytest.mark.parametrize("dt", [0.01, 0.1 / 3, 1 / 7])
def test_looking_at_each_step_ends_though_no_step_is_a_power_of_two(dt):
    h = Leapfrog(*plummer(32, 1), eps=1 / 32, dt=dt)
    h.evolve(dt)
    assert h.evolve(1.0, events=[EnergyError(1e9)]) is None
    assert h.time == pytest.approx(1.0, abs=dt)


def test_no_time_is_over_at_once():
    h, calls = made(n=64), []
    event = h.evolve(100.0, events=[WallTime(0)])
    assert (event.kind, event.ids, event.time) == ("wall time", (), h.time)
    assert event.value >= 0
    assert h.time < 100
    end = h.time + 0.4
    assert h.evolve(h.time + 0.1, events=[WallTime(1000)]) is None
    h.evolve(end, events=[WallTime(0, lambda c, e: calls.append(e))])
    assert len(calls) == 1
    assert h.time == end


def look(c, event):
    assert c.time >= event.time
    assert np.isfinite([*c.pos.flat, c.energy().total]).all()


@each(MIXED)
@pytest.mark.parametrize(("end", "is_quiet"), [(0.5, True), (0.7, False)])
def test_to_watch_and_to_look_change_no_bit(kind, options, end, is_quiet):
    events = [EnergyError(1.0), WallTime(1e9), Escape(100.0)] if is_quiet else [Escape(1.0, look)]
    if kind is Hermite:
        events.append(Encounter(1e-7, "merge") if is_quiet else Encounter(0.2, look))
    if "tree" in options.get("backend", ""):
        options = options | {"precision": None}
    h, plain = made(kind, **options), made(kind, **options)
    assert h.evolve(end, events=events) is None
    plain.evolve(end)
    assert (h.events == []) if is_quiet else len(h.events) > 3
    assert_same(h, plain, kind.STATE)


def test_events_do_not_depend_on_stops_callbacks_and_looks():
    def events(act=ignore):
        return [Encounter(0.15, act), Escape(1.2, act)]

    one, two, three, stopped, plain = (made() for _ in range(5))
    one.evolve(1.0, events=events())
    for k in range(1, 11):
        two.evolve(k / 10, events=events())
        assert np.isfinite(two.energy().total)
    three.evolve(1.0, lambda c: c.pos, events=events())
    while stopped.evolve(1.0, events=events("stop")) is not None:
        assert len(stopped.events) < 500
    plain.evolve(1.0)
    assert len(one.events) > 10
    for other in (two, three, stopped):
        assert other.events == one.events
        assert_same(other, plain, Hermite.STATE)


@pytest.mark.parametrize(("way", "middle"), [("pickle", 0.5), ("copy", 0.43), ("file", 0.43)])
@pytest.mark.parametrize("events", [
    [Encounter(0.15, "merge"), Escape(1.5), EnergyError(0.1)],
    [Encounter(0.2, ignore), Escape(0.9, ignore)],  # what lasts is not said again
])  # fmt: skip
def test_events_go_on_over_files_and_copies(way, middle, events, tmp_path):
    whole = made()
    whole.evolve(middle, events=events)
    count = len(whole.events)
    again = WAYS[way](whole, tmp_path)
    for h in (whole, again):
        h.evolve(1.0, events=events)
    assert len(whole.events) > count
    assert again.events == whole.events[count:]
    assert_same(whole, again)
    assert whole.energy_change == again.energy_change


def test_a_function_that_fails_loses_nothing():
    h, plain, calls = made(), made(), itertools.count()

    def fail(c, event):
        if next(calls) % 2 == 0:
            raise ZeroDivisionError

    failed = 0
    while h.time < 0.5:
        try:
            h.evolve(0.5, events=[Encounter(0.2, fail)])
        except ZeroDivisionError:
            failed += 1
            assert failed < 200
    plain.evolve(0.5)
    assert failed > 1
    assert_same(h, plain, Hermite.STATE)


def test_events_are_of_one_call_beside_callbacks_and_stops():
    h, times = made(), []
    h.evolve(1.0, lambda c: times.append(c.time), every=0.25, events=[Encounter(0.2, ignore)])
    assert times == [0.25, 0.5, 0.75, 1.0]
    count = len(h.events)
    h.evolve(2.0)
    assert len(h.events) == count
    h.events.clear()
    assert len(h.events) == count
    h = made()
    assert h.evolve(1.0, events=[Encounter(0.2, lambda c, e: c.stop())]) is None
    assert 0 <= h.time < 1
    assert len(h.events) == 1


@pytest.mark.parametrize(("act", "words"), [
    (lambda _: Encounter(0), "radius"), (lambda _: Encounter(-1), "radius"),
    (lambda _: Encounter(math.nan), "radius"), (lambda _: Encounter("near"), "radius"),
    (lambda _: Encounter(1, "remove"), "stop, merge"), (lambda _: Escape(0), "radius"),
    (lambda _: Encounter(1, None), "on_encounter"), (lambda _: Escape("far"), "radius"),
    (lambda _: Escape(1, "merge"), "remove, stop"), (lambda _: Escape(1, factor=0), "factor"),
    (lambda _: Escape(1, centre="mass"), "centre"), (lambda _: Escape(1, centre=[1, 2]), "centre"),
    (lambda _: EnergyError(0), "bound"), (lambda _: EnergyError(1, "remove"), "on_error"),
    (lambda _: EnergyError(1, every=0), "every"),
    (lambda _: WallTime(-1), "seconds"), (lambda _: WallTime(1, "remove"), "on_time"),
    *((lambda h, events=events: h.evolve(1.0, events=events), words) for events, words in [
        ([Encounter(1.0), Encounter(2.0)], "Encounter is given twice"),
        ([Escape(1.0), WallTime(1), Escape(2.0)], "Escape is given twice"),
        (["encounter"], "none of"), ([Encounter], "none of"), ([None], "none of"),
        (Escape("tidal"), "field")]),
    (lambda _: Leapfrog(*plummer(9, 1), dt=1, eps=1).evolve(1, events=Encounter(1)), "Hermite"),
])  # fmt: skip
def test_wrong_events_and_lists_of_them_are_refused_in_words(act, words):
    h = made()
    with pytest.raises(ArgumentError, match=words):
        act(h)
    assert h.time == 0
