"""Bodies that come, go and change on the way, and bodies without mass."""

import math
import pickle

import numpy as np
import pytest

import integrations
from grape6py import Hermite, Leapfrog, fields, plummer
from grape6py.errors import AddressError, ArgumentError, CallOrderError, NotFiniteError
from integrations import BOTH, DIRECT, HERMITE, LEAPFROG, TREES, WAYS, assert_same, each, evolve
from integrations import made as make

CHANGES = {
    "add one": ("add", 0.05, [0.3, 0.2, 0.1], [0.1, -0.2, 0.3]),
    "add three": ("add", [0.05, 0.0, 0.02], np.eye(3), -np.eye(3)),
    "add equal": ("add", 0.03, np.eye(3), np.zeros((3, 3))),
    "add nobody": ("add", [], np.zeros((0, 3)), np.zeros((0, 3))), "remove": ("remove", 5),
    "remove some": ("remove", [3, 31, 0]), "remove nobody": ("remove", []),
    "merge": ("merge", [2, 9]), "merge many": ("merge", [30, 4, 11, 7]),
    "kick": ("kick", 3, [0.3, 0.1, -0.2]), "kick many": ("kick", range(0, 32, 2), [0.01, 0.0, 0.0]),
    "kick some": ("kick", [3, 5], [[0.3, 0.1, -0.2], [0.0, 0.1, 0.0]]),
    "move": ("kick", [3, 5], [0, 0, 0], [0.3, 0.1, -0.2]),
    "move and kick": ("kick", 7, [0, 0.1, 0], [0.3, 0.1, -0.2]), "set mass": ("set_mass", 4, 0.5),
    "set masses": ("set_mass", [4, 6], [0.5, 0.0]), "set back": ("set_mass", 6, 0.04),
}  # fmt: skip


def change(h, name):
    call, *given = CHANGES[name]
    return h.kick(*given[:2], pos=[*given, None][2]) if call == "kick" else getattr(h, call)(*given)


def model(particles, name):
    """What a change makes of bodies whose ids are their rows, in plain NumPy."""
    mass, pos, vel = map(np.array, particles)
    call, who, *given = CHANGES[name]
    if call == "add":
        more = np.broadcast_to(who, np.shape(given[0])[:-1]).reshape(-1), *given
        return [np.concatenate([a, np.reshape(b, (-1, *a.shape[1:]))])
                for a, b in zip((mass, pos, vel), more, strict=True)]  # fmt: skip
    if call == "set_mass":
        mass[who] = given[0]
    elif call == "kick":
        vel[who] += given[0]
        pos[who] += given[1] if len(given) > 1 else 0
    elif call == "merge":
        heaviest = max(who, key=lambda k: (mass[k], -k))
        weight = mass[who].sum()
        for array in (pos, vel):
            array[heaviest] = mass[who] @ array[who] / weight
        mass[heaviest] = weight
        who = [k for k in who if k != heaviest]
    if call in ("merge", "remove"):
        return [np.delete(a, np.array(who, int), axis=0) for a in (mass, pos, vel)]
    return mass, pos, vel


ONE_AFTER_THE_OTHER = (
    "kick; kick many; move; kick some; set mass; add one; move and kick; set masses; add three; "
    "merge; set back; merge many; remove"
).split("; ")


@each(DIRECT + TREES)
@pytest.mark.parametrize(("time", "field"), [(0.25, None), (0.3, fields.mwpotential2014())])
def test_a_change_is_at_present_time_and_place_and_its_energy_is_known(kind, options, field, time):
    particles = np.linspace(0.01, 0.05, 32), *plummer(32, 1)[1:]
    start = make(kind, particles=particles, field=field, **options)
    start.evolve(time)
    before = integrations.total_of(start, field)
    for name in CHANGES:
        h = start.copy()
        change(h, name)
        for found, wanted in zip(h.particles(), model(start.particles(), name), strict=True):
            assert np.allclose(found, wanted, rtol=1e-14, atol=1e-16), name
        after = integrations.total_of(h, field)
        assert h.time == time
        assert len(h) == h.n == len(h.pos)
        is_tree = "tree" in options.get("backend", "")
        rel, least = (1e-11, 1e-13) if is_tree else (1e-12, 1e-14)
        assert h.energy_change == pytest.approx(after - before, rel=rel, abs=least), name
        assert is_tree or h.energy().total == pytest.approx(after, rel=1e-13), name


@each(DIRECT + TREES)
def test_the_total_less_what_changes_have_added_is_conserved(kind, options):
    h = make(kind, **options | ({"eta": 0.005} if "dt_max" in options else {}))
    start = h.energy().total
    for k, name in enumerate(ONE_AFTER_THE_OTHER):
        h.evolve((k + 1) * 0.05)
        change(h, name)
    h.evolve(1.0)
    assert abs(h.energy().total - h.energy_change - start) < {Hermite: 2e-5, Leapfrog: 3e-3}[kind]
    assert abs(h.energy_change) > 0.1


@each(DIRECT + TREES)
def test_changes_in_callbacks_are_those_between_calls(kind, options):
    one, two = make(kind, **options), make(kind, **options)

    def some(c):
        if c.time in (0.25, 0.375):
            c.kick(3, [0.1, 0, 0])
            c.remove(4 if c.time == 0.25 else 5)

    one.evolve(0.5, some, every=1 / 8)
    for t in (0.125, 0.25, 0.375, 0.5):
        two.evolve(t)
        some(two)
    assert_same(one, two)


def test_a_change_of_nothing_but_one_keeps_the_steps_of_the_others():
    """A kick is felt at once by its body; those far away keep their steps."""
    h = make(n=64)
    h.evolve(0.5)
    steps = h.step_sizes.copy()
    h.kick(3, [1e-6, 0, 0])
    assert np.array_equal(np.delete(h.step_sizes, 3), np.delete(steps, 3))


@pytest.mark.parametrize(("kind", "options", "way", "time"), [
    *[(*case, "copy", 0.25) for case in DIRECT], *[(*case, "file", 0.3) for case in DIRECT + TREES],
    *[(*case, "pickle", 0.3) for case in TREES], (*DIRECT[0], "deepcopy", 0.3),
])  # fmt: skip
def test_what_has_changed_goes_on_with_the_same_bits(kind, options, way, time, tmp_path):
    """Also where one looks at one of both between changes."""
    h = make(kind, **options)
    h.evolve(time)
    for name in ("add three", "remove", "merge", "kick", "set masses"):
        change(h, name)
    h.remove(34)  # whose number is not given again
    h.evolve(0.41)
    again = WAYS[way](h, tmp_path)
    assert_same(h, again)
    for one in (h, again):
        one.evolve(0.5)
        one.kick(12, [0, 0, 0.1])
        if one is h:
            assert np.isfinite([h.energy().total, *h.jerk.flat]).all()
        one.evolve(0.55)
        assert one.add(0.1, [1, 1, 1], [0, 0, 0]) == [35]
        if one is h:
            h.evolve(0.57)
            assert np.isfinite(h.binaries()[0]).all()
        one.evolve(0.6)
    assert_same(h, again)
    assert h.energy_change == again.energy_change


def with_tests():
    m, x, v = plummer(32, 2)
    return np.concatenate([m[:24] * 32 / 24, np.zeros(8)]), x, v


@each(DIRECT)
def test_bodies_without_mass_do_not_act_wherever_they_stand(kind, options):
    particles = with_tests()
    mixed = np.empty(32, int)  # the massive ones keep their order
    at = np.sort(np.random.default_rng(4).choice(32, 24, replace=False))
    mixed[at], mixed[np.setdiff1d(np.arange(32), at)] = np.arange(24), np.arange(24, 32)
    orders = slice(24), slice(32), mixed
    three = [make(kind, particles=[a[order] for a in particles], **options) for order in orders]
    evolve(three, 0.3)
    assert np.isfinite([h.energy().total for h in three]).all()
    evolve(three, 0.75)
    alone, whole, other = three
    for name in ("pos", "vel", "acc", "step_sizes", "mass") + ("jerk",) * (kind is Hermite):
        assert np.array_equal(getattr(whole, name)[:24], getattr(alone, name)), name
        assert np.array_equal(getattr(whole, name)[mixed], getattr(other, name)), name
    assert whole.energy().total == pytest.approx(alone.energy().total, rel=1e-14)


def change_tests(h):
    new = h.add([0.0, 0.0], [[1, 0, 0], [0, 0, 1]], np.zeros((2, 3)))
    h.kick(25, [0.5, 0, 0], pos=[0.1, 0, 0])
    h.merge([26, int(new[0])])
    h.remove([27, 28])
    h.set_mass(29, 0.0)


@pytest.mark.parametrize(("kind", "options", "times"), [
    *[(*HERMITE[0], times) for times in ([], [0.25], [0.25, 0.28125, 0.5], [0.375, 0.4375])],
    *[(*case, [0.25]) for case in LEAPFROG],  # on the grid
])  # fmt: skip
def test_changes_of_bodies_without_mass_are_felt_by_themselves_alone(kind, options, times):
    """Between calls, or (without times) in callbacks."""
    one, two = (make(kind, particles=with_tests(), **options) for _ in range(2))
    for t in times:
        evolve((one, two), t)
        if t == times[0]:
            change_tests(one)
        if kind is Hermite:
            one.kick(30, [0.1, 0, 0])

    def callback(h):
        h.kick(30, [1e-3, 0, 0])
        if h.blocks == 40:
            change_tests(h)

    for t in (0.6, 0.75):
        one.evolve(t, None if times else callback)
        two.evolve(t)
        for name in ("pos", "vel", "acc", "jerk", "step_sizes"):
            assert np.array_equal(getattr(one, name)[:24], getattr(two, name)[:24]), name


@each(DIRECT + TREES)
def test_all_bodies_may_go_and_others_come(kind, options):
    h = make(kind, **options)
    h.evolve(0.3)
    h.remove(h.ids)
    assert len(h) == 0
    assert h.energy().total == 0
    h.evolve(0.5)
    assert h.time == 0.5
    assert h.add([0.5, 0.5], [[1, 0, 0], [-1, 0, 0]], np.zeros((2, 3))).shape == (2,)
    h.evolve(0.75)
    assert 0.9 < h.pos[0, 0] < 1
    assert h.pos[0, 0] == pytest.approx(-h.pos[1, 0], rel=1e-6)


WRONG = [
    (lambda h: h.merge([3, 3]), ArgumentError, "twice"),
    (lambda h: h.merge([3]), ArgumentError, "two bodies"),
    (lambda h: h.merge([3, 77]), AddressError, "77"),
    (lambda h: h.remove(32), AddressError, "32"),
    (lambda h: h.remove([4, 4]), ArgumentError, "twice"),
    (lambda h: h.remove(1.5), ArgumentError, "ids"),
    (lambda h: h.kick(3, [math.nan, 0, 0]), NotFiniteError, "vel"),
    (lambda h: h.kick(3, pos=[0, math.inf, 0]), NotFiniteError, "pos"),
    (lambda h: h.kick(3, [1, 2]), ArgumentError, "vel has shape"),
    (lambda h: h.kick([3, 3], [0, 0, 1]), ArgumentError, "twice"),
    (lambda h: h.set_mass(3, math.nan), NotFiniteError, "mass"),
    (lambda h: h.set_mass([3, 4], [1.0]), ArgumentError, "mass has shape"),
    (lambda h: h.set_mass(40, 1.0), AddressError, "40"),
    (lambda h: h.add(1.0, [0, 0], [0, 0]), ArgumentError, "pos has shape"),
    (lambda h: h.add(1.0, [0, 0, 0], [math.nan, 0, 0]), NotFiniteError, "vel"),
    (lambda h: h.add([1.0, 2.0], [0, 0, 0], [0, 0, 0]), ArgumentError, "mass has shape"),
    (lambda h: h.add(1.0, [0, 0, 0], [0, 0, 0], ids=[3]), ArgumentError, "3 is the number"),
    (lambda h: h.add(1.0, [0, 0, 0], [0, 0, 0], ids=[-1]), ArgumentError, "-1"),
    (lambda h: h.add([1.0, 1.0], np.eye(3)[:2], np.eye(3)[:2], ids=[50, 50]), ArgumentError,
     "50"),
    (lambda h: h.add(1.0, [0, 0, 0], [0, 0, 0], ids=[1, 2]), ArgumentError, "ids"),
]  # fmt: skip


def test_wrong_changes_are_refused_in_words_and_change_nothing():
    h, other = make(), make()
    evolve((h, other), 0.3)
    for change, error, words in WRONG:
        with pytest.raises(error, match=words):
            change(h)
    assert h.energy_change == 0
    evolve((h, other), 0.5)
    assert_same(h, other)


IN_A_FIELD = {
    "kick": lambda h: h.kick(3, [0.1, 0, 0]), "add": lambda h: h.add(0.1, [0, 0, 0], [0, 0, 0]),
    "remove": lambda h: h.remove(2), "set_mass": lambda h: h.set_mass(1, 0.5),
    "merge": lambda h: h.merge([1, 2]), "evolve": lambda h: h.evolve(1.0),
    "step": lambda h: h.step(), "look": lambda h: h.pos + h.jerk,
}  # fmt: skip


@pytest.mark.parametrize(("within", "does"), [
    *[(True, name) for name in IN_A_FIELD], *[(False, name) for name in [*IN_A_FIELD][:4]]
])  # fmt: skip
@each(BOTH)
def test_a_change_within_a_field_or_with_one_that_fails_loses_nothing(kind, options, within, does):
    disk, left = fields.miyamoto_nagai(1.0, 0.5, 0.1), []

    def field(t, pos, vel):
        if t > 0.1 and left:
            left.pop()(cluster)
        return disk(t, pos, vel)

    def fails(_):
        raise ZeroDivisionError

    cluster, other = (make(kind, field=field, **options) for _ in range(2))
    if within:
        left.append(IN_A_FIELD[does])
        with pytest.raises(CallOrderError, match="field"):
            cluster.evolve(0.5)
    else:
        evolve((cluster, other), 0.3)
        assert np.isfinite([cluster.pos, other.pos]).all()
        left.append(fails)
        with pytest.raises(ZeroDivisionError):
            IN_A_FIELD[does](cluster)
    assert not left
    assert len(cluster) == 32
    evolve((cluster, other), 0.5)
    assert cluster.energy_change == 0
    assert_same(cluster, other)


@pytest.mark.parametrize("name", ["add three", "remove some", "merge", "move", "set masses"])
def test_energies_in_a_frame_that_moves_count_changes_too(name):
    h = make(field=fields.mwpotential2014(80.0, 4.0), orbit=[80, 0, 0, 0, 4, 0], eta=0.01)
    start = h.energy().total
    h.evolve(0.7)
    change(h, name)
    assert h.energy().total - h.energy_change == pytest.approx(start, abs=2e-6)
    h.evolve(1.5)
    assert h.energy().total - h.energy_change == pytest.approx(start, abs=4e-6)
    again = pickle.loads(pickle.dumps(h))
    evolve((h, again), 1.9)
    assert_same(h, again)
    assert h.energy().total == again.energy().total
