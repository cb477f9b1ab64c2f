"""``events=`` of ``evolve``: encounters, escapes, energy errors, time."""

import itertools
import math
import pickle

import numpy as np
import pytest

from grape6py import Hermite, Leapfrog, fields, plummer, tidal_radius, uniform
from grape6py.errors import ArgumentError
from grape6py.events import Encounter, EnergyError, Escape, Event, WallTime


def ignore(cluster, event):
    pass


def make(n=32, seed=1, kind=Hermite, **options):
    return kind(*plummer(n, seed), eps=1 / 32, **options)


def kepler(e, **options):
    """Two bodies on an ellipse with a = G M = 1, at apocentre at time 0."""
    x, v = 1 + e, math.sqrt((1 - e) / (1 + e))
    pos, vel = np.array([[x, 0, 0], [0, 0, 0]]), np.array([[0, v, 0], [0, 0, 0]])
    mass = np.array([0.25, 0.75])
    centre, drift = mass @ pos, mass @ vel
    return Hermite(mass, pos - centre, vel - drift, precision="double", **options)


def inbound(e, r):
    """The time after apocentre at which the distance has become r."""
    anomaly = 2 * math.pi - math.acos((1 - r) / e)
    return anomaly - e * math.sin(anomaly) - math.pi


def distance(h, one=0, two=1):
    return float(np.linalg.norm(h.pos[one] - h.pos[two]))


def same(one, other, names=None):
    for name in names or type(one).STATE:
        assert np.array_equal(one.state()[name], other.state()[name]), name
    assert (one.time, one.steps, one.blocks) == (other.time, other.steps, other.blocks)


# ---- encounters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("e", "r"), [(0.9, 0.5), (0.9, 0.15), (0.5, 0.6), (0.3, 1.0)])
@pytest.mark.parametrize("eta", [0.02, 0.001])
def test_two_bodies_on_an_ellipse_meet_when_kepler_says(e, r, eta):
    h = kepler(e, eta=eta, dt_max=1 / 8)
    event = h.evolve(math.pi, events=[Encounter(r)])
    # apocentre is half a period before pericentre
    assert event.time == pytest.approx(
        inbound(e, r) % (2 * math.pi), abs=3e-4 if eta > 0.01 else 1e-6
    )
    assert event.kind == "encounter"
    assert event.ids == (0, 1)
    assert event.value == r
    assert h.time == event.time
    assert distance(h) == pytest.approx(r, rel=1e-3 if eta > 0.01 else 1e-6)
    assert h.events == [event]


def test_two_bodies_on_a_hyperbola_meet_when_kepler_says():
    """e = 1.5, a = 1: r = e cosh F - 1, t = e sinh F - F."""
    e, begin, meet = 1.5, -2.0, 0.8
    x, y = math.cosh(begin) - e, math.sqrt(e * e - 1) * math.sinh(begin)
    rate = 1 / (e * math.cosh(begin) - 1)
    vx, vy = math.sinh(begin) * rate, math.sqrt(e * e - 1) * math.cosh(begin) * rate
    pos = [[-0.5 * -x, 0.5 * -y, 0], [-0.5 * x, 0.5 * y, 0]]
    vel = [[-0.5 * -vx, 0.5 * -vy, 0], [-0.5 * vx, 0.5 * vy, 0]]
    h = Hermite([0.5, 0.5], pos, vel, eta=0.001, precision="double")
    anomaly = -math.acosh((1 + meet) / e)
    wanted = e * (math.sinh(anomaly) - math.sinh(begin)) - (anomaly - begin)
    event = h.evolve(10.0, events=[Encounter(meet)])
    assert event.time == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("options", [{"dt_max": 1.0}, {"dt": 0.7}, {"dt_max": 4.0, "eta": 10}])
def test_bodies_that_fly_by_within_a_step_are_seen(options):
    """Straight lines of tiny masses, whose steps are much longer than the meeting."""
    pos, vel = [[-5.3, 0.03, 0], [5.1, 0, 0]], [[1.0, 0, 0], [-1.0, 0, 0]]
    h = Hermite([1e-14, 1e-14], pos, vel, **options)
    event = h.evolve(10.0, events=[Encounter(0.05)])
    assert event is not None
    assert event.time == pytest.approx((10.4 - 0.04) / 2, abs=1e-9)
    h = Hermite([1e-14, 1e-14], pos, vel, **options)
    assert h.evolve(10.0, events=[Encounter(0.0299)]) is None


@pytest.mark.parametrize("masses", [(1e-14, 0.0), (0.0, 1e-14), (0.0, 0.0)])
def test_bodies_without_mass_meet_as_others_do(masses):
    """On straight lines, far from anything; the third body, with mass or none, is much farther."""
    pos, vel = [[-5.3, 0.03, 0], [5.1, 0, 0], [1e9, 0, 0]], [[1, 0, 0], [-1, 0, 0], [0, 0, 0]]
    h = Hermite([0.0, *masses], pos, vel, dt_max=0.5)
    event = h.evolve(10.0, events=[Encounter(0.05)])
    assert event.ids == (0, 1)
    assert event.time == pytest.approx((10.4 - 0.04) / 2, abs=1e-9)


def swarm(m, n=150):
    """Bodies of a mass on circles about another one, in a plane, in both senses."""
    rng = np.random.default_rng(5)
    a, phase = rng.uniform(1, 2, n), rng.uniform(0, 2 * np.pi, n)
    turn = np.where(rng.random(n) < 0.5, 1, -1) / np.sqrt(a)
    x, y = np.cos(phase), np.sin(phase)
    pos = np.vstack([np.zeros(3), np.column_stack([a * x, a * y, 0 * a])])
    vel = np.vstack([np.zeros(3), np.column_stack([-turn * y, turn * x, 0 * a])])
    order = rng.permutation(n + 1)
    return np.r_[1.0, np.full(n, m)][order], pos[order], vel[order]


def test_bodies_without_mass_have_the_encounters_of_those_with_a_tiny_one():
    found = []
    for m in (0.0, 1e-16):
        h = Hermite(*swarm(m), dt_max=1 / 16, precision="double")
        h.evolve(0.25, events=[Encounter(0.02, ignore)])
        found.append(sorted((e.ids, round(e.time, 6)) for e in h.events))
    assert len(found[0]) > 10
    assert found[0] == found[1]


def test_two_without_mass_become_one():
    h = Hermite([0.0] * 2, [[-1.0, 0, 0], [1, 0, 0]], [[1.0, 1, 0], [-1, 1, 0]])
    h.evolve(2.0, events=[Encounter(0.1, "merge")])
    assert h.pos == pytest.approx(np.array([[0, 2, 0]]))


def test_a_pair_that_comes_again_is_another_event():
    h, seen = kepler(0.8, eta=0.001), []
    h.evolve(20.0, events=[Encounter(0.4, lambda c, event: seen.append(event))])
    first = inbound(0.8, 0.4)
    assert [e.time for e in seen] == pytest.approx(
        [first + k * 2 * math.pi for k in range(3)], abs=1e-5
    )
    assert h.events == seen
    assert all(isinstance(e, Event) for e in seen)


def test_a_pair_that_stays_close_is_one_event():
    h, seen = kepler(0.3), []
    h.evolve(30.0, events=[Encounter(2.0, lambda c, event: seen.append(event))])
    assert len(seen) == 1
    assert seen[0].time < 1
    h.evolve(40.0, events=[Encounter(2.0, lambda c, event: seen.append(event))])
    assert len(seen) == 1


def test_going_on_after_a_stop_does_not_repeat_it():
    h, whole = kepler(0.8, eta=0.005), kepler(0.8, eta=0.005)
    times = []
    while (event := h.evolve(20.0, events=[Encounter(0.4)])) is not None:
        times.append(event.time)
        assert h.time == event.time
        assert len(times) < 10
    assert len(times) == 3
    assert np.diff(times) == pytest.approx(2 * math.pi, abs=1e-3)
    whole.evolve(20.0)
    same(h, whole)


def test_two_that_meet_become_one_and_the_energy_is_accounted_for():
    h = make(64, precision="double", eta=0.005)
    start = h.energy().total
    mass, momentum = math.fsum(h.mass), h.momentum()
    h.evolve(1.0, events=[Encounter(0.06, "merge")])
    assert h.time == 1
    assert h.n < 64
    assert len(h.events) == 64 - h.n
    assert all(e.kind == "encounter" for e in h.events)
    assert h.energy().total - h.energy_change == pytest.approx(start, abs=1e-6)
    assert math.fsum(h.mass) == pytest.approx(mass, rel=1e-14)
    assert np.allclose(h.momentum(), momentum, atol=2e-8)
    gone = {i for e in h.events for i in e.ids} - set(h.ids.tolist())
    assert len(gone) == 64 - h.n


def test_all_who_are_close_merge():
    pos = [[0, 0, 0], [0.01, 0, 0], [0, 0.015, 0], [3, 0, 0], [3, 0.01, 0]]
    h = Hermite([0.2] * 5, pos, np.zeros((5, 3)), eps=0.1)
    h.evolve(0.5, events=[Encounter(0.1, "merge")])
    assert h.n == 2
    assert sorted(h.mass.tolist()) == pytest.approx([0.4, 0.6])


@pytest.mark.parametrize("action", ["merge", "remove", "kick", "add"])
def test_a_function_may_do_what_it_likes_at_an_encounter(action):
    h, seen = make(48, precision="double", eta=0.005), []
    start = h.energy().total

    def act(cluster, event):
        assert cluster is h
        assert event.time <= cluster.time < event.time + 1 / 16
        rows = [cluster.ids.tolist().index(i) for i in event.ids]
        seen.append(distance(cluster, *rows))
        if len(seen) > 6:
            return
        if action == "merge":
            cluster.merge(event.ids)
        elif action == "remove":
            cluster.remove(event.ids[0])
        elif action == "kick":
            cluster.kick(event.ids, [0.1, 0, 0])
        else:
            cluster.add(0.01, [1, 1, len(seen)], [0, 0, 0])

    h.evolve(1.0, events=[Encounter(0.1, act)])
    assert h.time == 1
    assert len(seen) > 6
    assert np.allclose(seen, 0.1, rtol=0.2)  # some were within a step of the slower one
    assert h.n == 48 + {"merge": -6, "remove": -6, "kick": 0, "add": 6}[action]
    assert h.energy().total - h.energy_change == pytest.approx(start, abs=3e-6)


def test_a_body_without_mass_meets_one_with_mass():
    h = Hermite([1.0, 0.0], [[0, 0, 0], [2, 0, 0]], [[0, 0, 0], [0, 0.1, 0]], eta=0.002)
    event = h.evolve(5.0, events=[Encounter(0.5)])
    assert event.ids == (0, 1)
    assert distance(h) == pytest.approx(0.5, rel=1e-5)
    h = Hermite([0.0, 1.0], [[2, 0, 0], [0, 0, 0]], [[0, 0.1, 0], [0, 0, 0]], eta=0.002)
    again = h.evolve(5.0, events=[Encounter(0.5, "merge")])
    assert again is None
    assert h.n == 1
    assert h.mass[0] == 1
    assert h.events[0].time == event.time


def test_every_meeting_of_a_cluster_is_seen_once():
    """Against distances of all pairs, looked at often."""
    h, seen = make(24, eta=0.005, dt_max=1 / 16), []
    r, step = 0.12, 1 / 512
    inside, entries = None, []

    def look(c):
        nonlocal inside
        d = np.linalg.norm(c.pos[:, None] - c.pos, axis=2)
        nearest = np.argmin(d + 9 * np.eye(24), axis=1)
        now = {(min(i, j), max(i, j)) for i, j in enumerate(nearest.tolist()) if d[i, j] < r}
        entries.extend((c.time, pair) for pair in now - (inside or set()))
        inside = now

    look(h)
    start = inside
    entries.clear()
    h.evolve(0.75, look, every=step, events=[Encounter(r, lambda c, event: seen.append(event))])
    missed = {e.ids for e in seen} - {pair for _, pair in entries}  # between two looks
    assert len(missed) < 3
    for event in seen:
        found = [t for t, pair in entries if pair == event.ids and abs(t - event.time) < 2 * step]
        assert found or event.ids in start or event.ids in missed
    firsts = {}
    for t, pair in entries:
        firsts.setdefault(pair, t)
    for pair, t in firsts.items():
        if pair not in start:
            assert any(e.ids == pair and e.time <= t for e in seen), (pair, t)
    for pair in {e.ids for e in seen}:
        times = [e.time for e in seen if e.ids == pair]
        assert len(times) == len(set(times))
        assert pair in firsts or pair in start


# ---- escapes -------------------------------------------------------------------------------------

STRAIGHT = [
    (Hermite, {"dt_max": 1 / 8}), (Hermite, {"dt": 0.3}), (Hermite, {"dt_max": 2.0}),
    (Leapfrog, {"dt": 1 / 64, "backend": "cpu"}), (Leapfrog, {"dt": 0.3, "backend": "cpu-tree"}),
    (Leapfrog, {"dt_max": 1.0, "eps": 0.1, "backend": "cpu-tree"}),
]  # fmt: skip
straight = pytest.mark.parametrize(("kind", "options"), STRAIGHT)


@straight
def test_who_goes_straight_on_leaves_when_it_must(kind, options):
    h = kind([0.0, 0.0], [[0.5, 0, 0], [0, 0, 0]], [[1, 0, 0], [0, 0.1, 0]], **options)
    event = h.evolve(5.0, events=[Escape(2.75, "stop")])
    assert event.kind == "escape"
    assert event.time == pytest.approx(2.25, abs=1e-12)
    assert event.ids == (0,)
    assert event.value == 2.75
    assert h.time == event.time
    assert np.allclose(h.pos[0], [2.75, 0, 0], atol=1e-12)
    assert h.evolve(5.0, events=[Escape(2.75, "stop")]) is None
    assert h.n == 2
    assert h.time == 5


@straight
def test_who_passes_the_centre_at_a_distance_leaves_when_it_must(kind, options):
    h = kind([0.0], [[0.0, 1.0, 0]], [[1, 0, 0]], **options)
    event = h.evolve(5.0, events=[Escape(2.0, "stop")])
    assert event.time == pytest.approx(math.sqrt(3), abs=1e-9)


@straight
def test_who_leaves_is_taken_out(kind, options):
    pos, vel = [[0, 0, 0], [0, 0, 0], [0.1, 0, 0]], [[1, 0, 0], [0, 0.5, 0], [0.1, 0, 0]]
    h = kind(np.zeros(3), pos, vel, **options)
    assert h.evolve(5.0, events=[Escape(1.0)]) is None
    assert [e.ids for e in h.events] == [(0,), (1,)]
    assert [e.time for e in h.events] == pytest.approx([1.0, 2.0], abs=1e-12)
    assert h.ids.tolist() == [2]
    assert np.allclose(h.pos, [[0.6, 0, 0]])


@straight
def test_the_centre_may_be_elsewhere_and_the_radius_has_a_factor(kind, options):
    h, seen = kind([0.0], [[3.0, 0, 0]], [[1.0, 0, 0]], **options), []
    act = Escape(1.0, lambda c, e: seen.append((c.time, e)), centre=[3, 0, 0], factor=1.5)
    h.evolve(4.0, events=[act])
    assert len(seen) == 1
    assert seen[0][0] == seen[0][1].time == pytest.approx(1.5, abs=1e-12)
    assert h.n == 1


def with_one_who_leaves(n, at, vel, drift=(0, 0, 0)):
    """A cluster at a place, with a drift, and one body more, without mass."""
    m, x, v = uniform(n, 3)
    return (
        np.append(m, 0.0),
        np.vstack([x + at, np.add(at, [0, 0, 1])]),
        np.vstack([v + drift, np.add(vel, drift)]),
    )


def test_a_cluster_elsewhere_has_its_centre_found():
    h = Hermite(*with_one_who_leaves(64, [50, 0, 0], [0, 0, 3]), eps=1 / 32, dt_max=1 / 8)
    h.evolve(3.0, events=[Escape(6.0, centre="density")])
    assert [e.ids for e in h.events] == [(64,)]
    assert 5.0 / 3 < h.events[0].time < 2.2  # it is slowed down


def test_the_centre_of_a_cluster_that_moves_is_followed():
    """Else all would leave."""
    moving = with_one_who_leaves(64, [50, 0, 0], [0, 0, 3], drift=[4, 0, 0])
    h = Hermite(*moving, eps=1 / 32, dt_max=1 / 8)
    h.evolve(3.0, events=[Escape(6.0, centre="density")])
    assert [e.ids for e in h.events] == [(64,)]


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


def test_a_tidal_radius_needs_a_field():
    with pytest.raises(ArgumentError, match="field"):
        make().evolve(1.0, events=[Escape("tidal")])


@pytest.mark.parametrize(("kind", "options"), [
    (Hermite, {"eta": 0.005, "precision": "double"}),
    (Leapfrog, {"dt": 1 / 256, "backend": "cpu"}),
    (Leapfrog, {"dt_max": 1 / 16, "eta": 0.001, "backend": "cpu"}),
])  # fmt: skip
def test_bodies_take_their_energy_with_them(kind, options):
    h = make(64, kind=kind, **options)
    start = h.energy().total
    h.evolve(1.0, events=[Escape(1.5)])
    assert 30 < h.n < 64
    assert len(h.events) == 64 - h.n
    assert {i for e in h.events for i in e.ids}.isdisjoint(h.ids.tolist())
    assert (np.linalg.norm(h.pos, axis=1) < 1.5 + 1e-3).all()
    assert h.energy().total - h.energy_change == pytest.approx(start, abs=3e-5)


# ---- energy and time -----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"dt": 1 / 8}, {"dt_max": 1 / 8, "eta": 1.0}])
def test_an_energy_error_stops(options):
    h = Hermite(*plummer(32, 1), eps=1 / 32, precision="double", **options)
    start = h.energy().total
    event = h.evolve(20.0, events=[EnergyError(1e-3)])
    assert event.kind == "energy"
    assert event.ids == ()
    assert abs(event.value) > 1e-3
    assert event.time == h.time < 20
    assert abs(h.energy().total / start - 1) == pytest.approx(abs(event.value), rel=1e-9)


@pytest.mark.parametrize("every", [
    0.5, 0.3, 0.29, None,
])  # fmt: skip
def test_the_energy_is_looked_at_as_often_as_one_says(every):
    times = []
    h = Hermite(*plummer(32, 1), eps=1 / 32, dt=1 / 8, precision="double")
    h.evolve(2.2, events=[EnergyError(1e-15, lambda c, e: times.append(e.time), every=every)])
    each = every or 1 / 8
    assert times == pytest.approx([k * each for k in range(1, math.floor(2.2 / each) + 1)])


def test_changes_of_bodies_are_no_energy_error():
    h = make(32, precision="double", eta=0.005)
    for k in range(5):
        assert h.evolve((k + 1) / 8, events=[EnergyError(1e-5)]) is None
        h.kick(k, [1.0, 0, 0])
        h.remove(k + 10)
        h.add(0.1, [1, 1, k], [0, 0, 0])


@pytest.mark.parametrize("dt", [0.01, 0.1 / 3, 1 / 7])
def test_looking_at_each_step_ends_though_no_step_is_a_power_of_two(dt):
    h = make(kind=Leapfrog, dt=dt)
    h.evolve(dt)
    assert h.evolve(1.0, events=[EnergyError(1e9)]) is None
    assert h.time == pytest.approx(1.0, abs=dt)


def test_no_time_is_over_at_once():
    h = make(64)
    event = h.evolve(100.0, events=[WallTime(0)])
    assert event.kind == "wall time"
    assert event.time == h.time < 100
    assert event.value >= 0
    assert event.ids == ()
    assert h.evolve(h.time + 0.1, events=[WallTime(1000)]) is None
    calls, end = [], h.time + 0.3
    h.evolve(end, events=[WallTime(0, lambda c, e: calls.append(e))])
    assert len(calls) == 1
    assert h.time == end


# ---- bits ----------------------------------------------------------------------------------------

KINDS = [
    (Hermite, {}), (Hermite, {"dt": 1 / 64, "passes": 2}),
    (Leapfrog, {"dt": 1 / 64, "backend": "cpu"}),
    (Leapfrog, {"dt_max": 1 / 16, "backend": "cpu-tree"}),
]  # fmt: skip
kinds = pytest.mark.parametrize(("kind", "options"), KINDS)


def quiet(kind):
    found = [Escape(100.0), EnergyError(1.0), WallTime(1e9)]
    return [*found, Encounter(1e-7, "merge")] if kind is Hermite else found


@kinds
@pytest.mark.parametrize("end", [0.5, 0.7])
def test_to_watch_changes_no_bit(kind, options, end):
    h, plain = make(kind=kind, **options), make(kind=kind, **options)
    assert h.evolve(end, events=quiet(kind)) is None
    plain.evolve(end)
    assert h.events == []
    same(h, plain)


@kinds
def test_events_that_one_only_looks_at_change_no_bit(kind, options):
    h, plain, seen = make(kind=kind, **options), make(kind=kind, **options), []

    def look(c, event):
        seen.append(event)
        assert c.time >= event.time
        assert np.isfinite([*c.pos.flat, c.energy().total]).all()

    events = [Escape(1.0, look)] + ([Encounter(0.2, look)] if kind is Hermite else [])
    h.evolve(0.7, events=events)
    plain.evolve(0.7)
    assert len(seen) > 3
    same(h, plain)


def test_stops_change_no_bit():
    h, plain = make(), make()
    stops = 0
    while h.evolve(0.7, events=[Encounter(0.2), Escape(1.0, "stop")]) is not None:
        stops += 1
        assert stops < 500
    plain.evolve(0.7)
    assert stops > 5
    assert len(h.events) == stops
    same(h, plain)


def test_events_do_not_depend_on_stops_callbacks_and_looks():
    def events():
        return [Encounter(0.15, ignore), Escape(1.2, ignore)]

    one, two, three = make(), make(), make()
    one.evolve(1.0, events=events())
    for k in range(1, 11):
        two.evolve(k / 10, events=events())
        assert np.isfinite(two.energy().total)
    three.evolve(1.0, lambda c: c.pos, events=events())
    assert len(one.events) > 10
    assert two.events == one.events
    assert three.events == one.events
    same(one, two)
    same(one, three)


@pytest.mark.parametrize("way", ["pickle", "copy", "file"])
@pytest.mark.parametrize("middle", [0.5, 0.43])
def test_events_go_on_over_a_file(way, middle, tmp_path):
    def events():
        return [Encounter(0.15, "merge"), Escape(1.5), EnergyError(0.1)]

    whole = make()
    whole.evolve(middle, events=events())
    count = len(whole.events)
    if way == "file":
        whole.save(tmp_path / "a.h5")
        again = Hermite.load(tmp_path / "a.h5")
    else:
        again = whole.copy() if way == "copy" else pickle.loads(pickle.dumps(whole))
    for h in (whole, again):
        h.evolve(1.0, events=events())
    assert len(whole.events) > count
    assert again.events == whole.events[count:]
    same(whole, again)
    assert whole.energy_change == again.energy_change


def test_what_lasts_is_not_said_again_after_a_file(tmp_path):
    whole = make()
    whole.evolve(0.43, events=[Encounter(0.2, ignore), Escape(0.9, ignore)])
    count = len(whole.events)
    whole.save(tmp_path / "a.h5")
    again = Hermite.load(tmp_path / "a.h5")
    for h in (whole, again):
        h.evolve(0.8, events=[Encounter(0.2, ignore), Escape(0.9, ignore)])
    assert again.events == whole.events[count:]
    assert len(whole.events) > count


def test_events_go_on_in_a_copy_that_was_made_in_one():
    h, made = make(), []

    def act(c, event):
        if not made and c.time > 0.3:
            made.append((pickle.dumps(c), len(c.events)))

    h.evolve(1.0, events=[Encounter(0.15, act), Escape(1.2, ignore)])
    again = pickle.loads(made[0][0])
    again.evolve(1.0, events=[Encounter(0.15, ignore), Escape(1.2, ignore)])
    assert again.events == h.events[made[0][1] :]
    same(h, again)


def test_bodies_with_ids_below_zero_have_no_event_twice():
    h = Hermite([0.5, 0.5], [[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, 1, 0]], eps=0.1)
    try:
        h.add(1e-3, [0.2, 0, 0], [0, 0, 0], ids=[-1])
    except ArgumentError:
        return  # is as good
    h.evolve(0.2, events=[Encounter(0.5, ignore)])
    again = h.copy()
    for each in (h, again):
        each.evolve(0.4, events=[Encounter(0.5, ignore)])
    assert len(h.events) == 1
    assert again.events == []


def test_a_function_that_fails_loses_nothing():
    h, plain, calls = make(), make(), itertools.count()

    def fail(c, event):
        if next(calls) % 2 == 0:
            raise ZeroDivisionError

    failed = 0
    for _ in range(200):
        try:
            h.evolve(0.5, events=[Encounter(0.2, fail)])
            break
        except ZeroDivisionError:
            failed += 1
    plain.evolve(0.5)
    assert failed > 1
    same(h, plain)


@pytest.mark.parametrize(("kind", "options"), [
    (Hermite, {}), (Hermite, {"dt": 1 / 64}), (Leapfrog, {"dt": 1 / 64, "backend": "cpu"}),
    (Leapfrog, {"dt_max": 1 / 16, "backend": "cpu"}),
])  # fmt: skip
def test_bodies_are_at_the_time_of_an_event_or_at_that_of_the_last_block(kind, options):
    """By less than the step in which it happened."""
    late, last = [], [0.0]

    def look(c, event):
        longest = max(c.step_sizes[np.isin(c.ids, event.ids)])
        assert c.time == max(event.time, last[0])
        assert c.time - event.time < 2 * longest  # which may have been halved since
        late.append(c.time - event.time)

    h = make(64, kind=kind, **options)
    events = [Escape(1.0, look)] + [Encounter(0.05, look)] * (kind is Hermite)
    h.evolve(1.0, lambda c: last.__setitem__(0, c._blocks.latest()), events=events)
    assert len(late) > 10
    assert (max(late) == 0) == ("dt" in options)


def test_callbacks_and_stops_work_beside_events():
    h, times = make(), []
    h.evolve(1.0, lambda c: times.append(c.time), every=0.25, events=[Encounter(0.2, ignore)])
    assert times == [0.25, 0.5, 0.75, 1.0]
    h = make()
    assert h.evolve(1.0, events=[Encounter(0.2, lambda c, e: c.stop())]) is None
    assert 0 <= h.time < 1
    assert len(h.events) == 1


def test_events_of_one_call_do_not_last():
    h = make()
    h.evolve(0.3, events=[Encounter(0.2, ignore), Escape(1.0, ignore)])
    count = len(h.events)
    h.evolve(1.0)
    assert len(h.events) == count
    h.events.clear()
    assert len(h.events) == count


# ---- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("make_it", "words"), [
    (lambda: Encounter(0), "radius"), (lambda: Encounter(-1), "radius"),
    (lambda: Encounter(math.nan), "radius"), (lambda: Encounter("near"), "radius"),
    (lambda: Encounter(1, "remove"), "stop, merge"), (lambda: Encounter(1, None), "on_encounter"),
    (lambda: Escape(0), "radius"), (lambda: Escape("far"), "radius"),
    (lambda: Escape(1, "merge"), "remove, stop"), (lambda: Escape(1, factor=0), "factor"),
    (lambda: Escape(1, centre="mass"), "centre"), (lambda: Escape(1, centre=[1, 2]), "centre"),
    (lambda: EnergyError(0), "bound"), (lambda: EnergyError(1, "remove"), "on_error"),
    (lambda: EnergyError(1, every=0), "every"),
    (lambda: WallTime(-1), "seconds"), (lambda: WallTime(1, "remove"), "on_time"),
])  # fmt: skip
def test_wrong_events_are_refused_in_words(make_it, words):
    with pytest.raises(ArgumentError, match=words):
        make_it()


@pytest.mark.parametrize(("events", "words"), [
    ([Encounter(1.0), Encounter(2.0)], "Encounter is given twice"),
    ([Escape(1.0), WallTime(1), Escape(2.0)], "Escape is given twice"),
    (["encounter"], "none of"), ([Encounter], "none of"), ([None], "none of"),
])  # fmt: skip
def test_wrong_lists_of_events_are_refused_in_words(events, words):
    h = make()
    with pytest.raises(ArgumentError, match=words):
        h.evolve(1.0, events=events)
    assert h.time == 0


def test_one_event_needs_no_list():
    event = make().evolve(1.0, events=Encounter(1.0))
    assert event.kind == "encounter"


def test_leapfrogs_do_not_look_for_encounters():
    h = make(kind=Leapfrog, dt=1 / 64, backend="cpu")
    with pytest.raises(ArgumentError, match="Hermite"):
        h.evolve(1.0, events=[Encounter(0.1)])
