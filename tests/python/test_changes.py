"""Bodies that come, go and change on the way, and bodies without mass."""

import copy
import math
import pickle

import numpy as np
import pytest

from grape6py import Hermite, Leapfrog, fields, plummer
from grape6py.errors import AddressError, ArgumentError, CallOrderError, NotFiniteError

HERMITE = [
    (Hermite, {"dt_max": 1 / 8}),
    (Hermite, {"dt": 1 / 64, "passes": 2}),
]
DIRECT = [
    *HERMITE,
    (Leapfrog, {"dt": 1 / 64, "backend": "cpu"}),
    (Leapfrog, {"dt_max": 1 / 16, "backend": "cpu"}),
]
TREES = [
    (Leapfrog, {"dt": 1 / 64, "backend": "cpu-tree"}),
    (Leapfrog, {"dt_max": 1 / 16, "backend": "cpu-tree"}),
    (Leapfrog, {"dt": 1 / 64, "backend": "cpu-tree", "accuracy": 1e-3}),
]


def names(cases):
    return [f"{kind.__name__} {' '.join(map(str, o.values()))}" for kind, o in cases]


all_kinds = pytest.mark.parametrize(("kind", "options"), DIRECT + TREES, ids=names(DIRECT + TREES))
direct = pytest.mark.parametrize(("kind", "options"), DIRECT, ids=names(DIRECT))
hermite = pytest.mark.parametrize(("kind", "options"), HERMITE, ids=names(HERMITE))


def make(kind=Hermite, n=32, seed=1, particles=None, **options):
    more = {} if "tree" in options.get("backend", "") else {"precision": "double"}
    particles = plummer(n, seed) if particles is None else particles
    return kind(*particles, eps=1 / 16, **more | options)


def same(one, other):
    assert one.time == other.time
    assert np.array_equal(one.ids, other.ids)
    states = one.state(), other.state()
    assert states[0].keys() == states[1].keys()
    for name in states[0]:
        assert np.array_equal(states[0][name], states[1][name]), name
    assert np.array_equal(one.pos, other.pos)
    assert np.array_equal(one.mass, other.mass)


def total_of(h, eps=1 / 16, field=None):
    """Energy in plain NumPy."""
    m, x, v = h.mass, h.pos, h.vel
    d = np.sqrt(((x[:, None] - x) ** 2).sum(axis=2) + eps * eps)
    np.fill_diagonal(d, np.inf)
    total = (m * (v * v).sum(axis=1)).sum() / 2 - (m[:, None] * m / d).sum() / 2
    return total if field is None else total + (m * field(0.0, x, v).pot).sum()


CHANGES = {
    "add one": lambda h: h.add(0.05, [0.3, 0.2, 0.1], [0.1, -0.2, 0.3]),
    "add three": lambda h: h.add([0.05, 0.0, 0.02], np.eye(3), -np.eye(3)),
    "remove": lambda h: h.remove(5),
    "remove some": lambda h: h.remove([3, 31, 0]),
    "merge": lambda h: h.merge([2, 9]),
    "merge many": lambda h: h.merge([30, 4, 11, 7]),
    "kick": lambda h: h.kick(3, [0.3, 0.1, -0.2]),
    "kick all": lambda h: h.kick(h.ids, [0.01, 0.0, 0.0]),
    "kick some": lambda h: h.kick([3, 5], [[0.3, 0.1, -0.2], [0.0, 0.1, 0.0]]),
    "move": lambda h: h.kick([3, 5], pos=[0.3, 0.1, -0.2]),
    "move and kick": lambda h: h.kick(7, [0, 0.1, 0], pos=[0.3, 0.1, -0.2]),
    "set mass": lambda h: h.set_mass(4, 0.5),
    "set masses": lambda h: h.set_mass([4, 6], [0.5, 0.0]),
}

ONE_AFTER_THE_OTHER = (
    "kick; move; kick some; set mass; add one; move and kick; set masses; add three; merge; "
    "kick all; merge many; remove"
).split("; ")


# ---- what stays ----------------------------------------------------------------------------------


@all_kinds
def test_ids_stay_with_their_bodies(kind, options):
    h = make(kind, **options)
    start = dict(zip(h.ids.tolist(), h.mass.tolist(), strict=True))
    assert h.ids.tolist() == list(range(32))
    h.evolve(0.25)
    assert h.add([0.1, 0.2], np.ones((2, 3)), np.zeros((2, 3))).tolist() == [32, 33]
    h.remove([0, 33])
    assert h.add(0.3, [1, 2, 3], [0, 0, 0]).tolist() == [34]
    assert h.merge([7, 32]) == 32
    assert h.add(0.4, [1, 2, -3], [0, 0, 0], ids=[7]).tolist() == [7]
    h.evolve(0.5)
    left = [i for i in range(1, 32) if i != 7]
    assert h.ids.tolist() == [*left, 32, 34, 7]
    masses = dict(zip(h.ids.tolist(), h.mass.tolist(), strict=True))
    assert all(masses[i] == start[i] for i in left)
    assert masses[34] == 0.3
    assert masses[7] == 0.4
    assert len(h) == h.n == len(h.pos) == 33


@direct
@pytest.mark.parametrize("field", [None, fields.mwpotential2014()])
def test_the_energy_of_a_change_is_known(kind, options, field):
    start = make(kind, field=field, **options)
    for time in (0.25, 0.3):
        start.evolve(time)
        before = total_of(start, field=field)
        for name, change in CHANGES.items():
            h = start.copy()
            change(h)
            after = total_of(h, field=field)
            assert h.time == time
            assert h.energy_change == pytest.approx(after - before, rel=1e-12, abs=1e-14), name
            assert h.energy().total == pytest.approx(after, rel=1e-13), name


@pytest.mark.parametrize(("kind", "options"), TREES, ids=names(TREES))
def test_the_energy_of_a_change_is_known_with_a_tree_too(kind, options):
    start = make(kind, **options)
    start.evolve(0.25)
    for name, change in CHANGES.items():
        h = start.copy()
        change(h)
        added = total_of(h) - total_of(start)
        assert h.energy_change == pytest.approx(added, rel=1e-11, abs=1e-13), name


@all_kinds
def test_the_total_less_what_changes_have_added_is_conserved(kind, options):
    h = make(kind, **options | ({"eta": 0.005} if "dt_max" in options else {}))
    start = h.energy().total
    for k, name in enumerate(ONE_AFTER_THE_OTHER):
        h.evolve((k + 1) * 0.05)
        CHANGES[name](h)
    h.evolve(1.0)
    error = abs(h.energy().total - h.energy_change - start)
    assert error < {Hermite: 2e-5, Leapfrog: 3e-3}[kind]
    assert abs(h.energy_change) > 0.1


def test_changes_are_no_error_of_the_energy(recwarn):
    h = make()
    h.energy()
    for change in CHANGES.values():
        h = make()
        h.energy()
        change(h)
        h.evolve(0.1)
        h.energy()
    assert not [w for w in recwarn if "energy" in str(w.message)]


@direct
def test_a_merger_keeps_mass_momentum_and_centre_of_mass(kind, options):
    h = make(kind, particles=(np.linspace(0.01, 0.05, 32), *plummer(32, 1)[1:]), **options)
    h.evolve(0.3)
    mass, momentum, centre = math.fsum(h.mass), h.momentum(), h.centre_of_mass()
    three = [h.mass[k] * h.pos[k] for k in (4, 30, 11)]
    weight = sum(h.mass[k] for k in (4, 30, 11))
    assert h.merge([4, 30, 11]) == 30
    row = h.ids.tolist().index(30)
    assert np.allclose(h.pos[row], sum(three) / weight, rtol=1e-14, atol=1e-16)
    assert h.mass[row] == pytest.approx(weight, rel=1e-15)
    assert math.fsum(h.mass) == pytest.approx(mass, rel=1e-15)
    assert np.allclose(h.momentum(), momentum, rtol=0, atol=1e-16)
    assert np.allclose(h.centre_of_mass(), centre, rtol=0, atol=1e-16)
    assert 4 not in h.ids
    assert 11 not in h.ids


def test_bodies_without_mass_merge_at_their_middle():
    h = make(particles=([1.0, 0.0, 0.0], [[5, 0, 0], [0, 1, 0], [0, 3, 0]], np.zeros((3, 3))))
    h.merge([1, 2])
    assert np.array_equal(h.pos[1], [0, 2, 0])
    assert h.mass[1] == 0


@all_kinds
def test_a_change_is_at_the_present_time_and_place(kind, options):
    h = make(kind, **options)
    h.evolve(0.3)
    pos, vel = h.pos.copy(), h.vel.copy()
    h.kick([2, 5], [0.1, 0.2, 0.3], pos=[[1, 0, 0], [0, 1, 0]])
    h.set_mass(9, 0.125)
    pos[2, 0] += 1
    pos[5, 1] += 1
    vel[[2, 5]] += [0.1, 0.2, 0.3]
    assert np.array_equal(h.pos, pos)
    assert np.array_equal(h.vel, vel)
    assert h.mass[9] == 0.125


# ---- going on ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "options", "error", "count"), [
    (Hermite, {"dt_max": 1 / 8, "eta": 0.003}, 2e-7, 100),
    (Hermite, {"dt": 1 / 512}, 2e-7, 15),
    (Leapfrog, {"dt": 1 / 512, "backend": "cpu"}, 2e-5, 15),
    (Leapfrog, {"dt_max": 1 / 16, "eta": 0.0005, "backend": "cpu"}, 5e-5, 15),
])  # fmt: skip
@pytest.mark.parametrize("every", [1 / 512, 0.0017])
def test_many_changes_are_those_of_runs_that_begin_anew(kind, options, error, count, every):
    """At each change; on the grid of steps and off it."""
    rng = np.random.default_rng(5)
    h, anew = make(kind, n=8, **options), make(kind, n=8, **options)
    for k in range(count):
        h.evolve((k + 1) * every)
        anew.evolve((k + 1) * every - k * every)
        mass, pos, vel = anew.particles()
        who, kick = int(rng.integers(len(mass))), rng.normal(size=3) * 0.01
        if k % 10 == 0:
            place = rng.normal(size=3)
            h.add(0.01, place, kick, ids=[100 + k])
            mass, pos, vel = (np.concatenate(p) for p in zip(
                (mass, pos, vel), ([0.01], [place], [kick]), strict=True))  # fmt: skip
        elif k % 10 == 5:
            h.remove(h.ids[who])
            mass, pos, vel = (np.delete(a, who, axis=0) for a in (mass, pos, vel))
        elif k % 10 == 7:
            h.set_mass(h.ids[who], 0.1)
            mass[who] = 0.1
        else:
            h.kick(h.ids[who], kick)
            vel[who] += kick
        anew = make(kind, particles=(mass, pos, vel), **options)
    assert np.array_equal(h.mass, mass)
    assert np.abs(h.pos - pos).max() < error
    assert np.abs(h.vel - vel).max() < 10 * error


@pytest.mark.parametrize("every", [1 / 128, 0.00781])
def test_kicks_that_cancel_leave_the_orbit(every):
    """Of a binary, whose period is known; on the grid of steps and off it."""
    h = Hermite([0.5, 0.5], [[0.5, 0, 0], [-0.5, 0, 0]], [[0, 0.5, 0], [0, -0.5, 0]],
                dt_max=1 / 32, eta=0.002, precision="double")  # fmt: skip
    for k in range(30):
        h.evolve((k + 1) * every)
        h.kick(0, [0.01, 0, 0])
        h.kick(0, [-0.01, 0, 0])
    t = h.time
    wanted = [math.cos(t) / 2, math.sin(t) / 2, 0]
    assert np.abs(h.pos[0] - wanted).max() < 1e-7


@all_kinds
def test_changes_in_callbacks_are_those_between_calls(kind, options):
    one, two = make(kind, **options), make(kind, **options)

    def change(c):
        if c.time in (0.25, 0.375):
            c.kick(3, [0.1, 0, 0])
            c.remove(4 if c.time == 0.25 else 5)

    one.evolve(0.5, change, every=1 / 8)
    for t in (0.125, 0.25, 0.375, 0.5):
        two.evolve(t)
        if t in (0.25, 0.375):
            change(two)
    same(one, two)


@all_kinds
def test_changes_in_callbacks_after_blocks_keep_the_energy(kind, options):
    h, done = make(kind, **options), []
    start = total_of(h)

    def change(c):
        if len(done) < 20:
            done.append(c.time)
            c.kick(int(c.ids[len(done)]), [0.0, 0.05, 0.0])
            if len(done) % 7 == 0:
                c.merge(c.ids[[0, 1]])

    h.evolve(0.6, change)
    assert h.time == 0.6
    assert len(done) >= 7
    assert h.n == 32 - len(done) // 7
    assert abs(total_of(h) - h.energy_change - start) < (1e-5 if kind is Hermite else 5e-3)


@hermite
@pytest.mark.parametrize("time", [0.25, 0.3])
def test_looking_between_changes_changes_no_bit(kind, options, time):
    one, two = make(kind, **options), make(kind, **options)
    for h in (one, two):
        h.evolve(time)
        h.kick(3, [0.1, 0, 0])
        if h is two:
            assert np.isfinite([h.energy().total, *h.jerk.flat]).all()
        h.evolve(0.4)
        h.remove(7)
        if h is two:
            h.evolve(0.44)
            assert np.isfinite(h.binaries()[0]).all()
        h.evolve(0.5)
    for name in (*Hermite.STATE, "epoch", "energy_change"):
        assert np.array_equal(one.state()[name], two.state()[name]), name


def test_a_change_of_nothing_but_one_keeps_the_steps_of_the_others():
    """A kick is felt at once by its body; those far away keep their steps."""
    h = make(n=64)
    h.evolve(0.5)
    steps = h.step_sizes.copy()
    h.kick(3, [1e-6, 0, 0])
    others = np.arange(64) != 3
    assert np.array_equal(h.step_sizes[others], steps[others])


# ---- copies and files ----------------------------------------------------------------------------


def through_file(h, tmp_path):
    h.save(tmp_path / "a.h5")
    return type(h).load(tmp_path / "a.h5")


WAYS = {
    "copy": lambda h, _: h.copy(),
    "deepcopy": lambda h, _: copy.deepcopy(h),
    "pickle": lambda h, _: pickle.loads(pickle.dumps(h)),
    "file": through_file,
}


@pytest.mark.parametrize(("kind", "options", "way", "time"), [
    *[(*case, "copy", 0.25) for case in DIRECT], *[(*case, "file", 0.3) for case in DIRECT + TREES],
    *[(*case, "pickle", 0.3) for case in DIRECT + TREES], (*DIRECT[0], "deepcopy", 0.3),
])  # fmt: skip
def test_what_has_changed_goes_on_with_the_same_bits(kind, options, way, time, tmp_path):
    h = make(kind, **options)
    h.evolve(time)
    for name in ("add three", "remove", "merge", "kick", "set masses"):
        CHANGES[name](h)
    h.evolve(0.41)
    again = WAYS[way](h, tmp_path)
    assert again.energy_change == h.energy_change
    same(h, again)
    for each in (h, again):
        each.evolve(0.5)
        each.kick(12, [0, 0, 0.1])
        each.evolve(0.6)
    same(h, again)
    assert h.energy_change == again.energy_change
    assert (h.steps, h.blocks) == (again.steps, again.blocks)


@all_kinds
def test_the_number_of_a_body_that_is_gone_is_not_given_again(kind, options):
    h = make(kind, n=8, **options)
    h.remove(7)
    assert h.add(0.1, [1, 1, 1], [0, 0, 0]).tolist() == [8]


@pytest.mark.parametrize("way", WAYS)
def test_copies_give_new_bodies_the_same_numbers(way, tmp_path):
    h = make(n=8)
    h.add(0.1, [1, 1, 1], [0, 0, 0])
    h.kick(8, [0.1, 0, 0])
    h.remove(8)
    again = WAYS[way](h, tmp_path)
    found = [each.add(0.1, [1, 1, 1], [0, 0, 0]).tolist() for each in (h, again)]
    assert found == [[9], [9]]


# ---- bodies without mass -------------------------------------------------------------------------


def with_tests(n=24, k=8, mass=0.0):
    """Massive bodies, then some of another mass."""
    m, x, v = plummer(n + k, 2)
    m = np.concatenate([m[:n] * (n + k) / n, np.full(k, mass)])
    return m, x, v


@direct
def test_bodies_without_mass_at_the_end_do_not_act(kind, options):
    particles = with_tests()
    whole = make(kind, particles=particles, **options)
    alone = make(kind, particles=[a[:24] for a in particles], **options)
    for h in (whole, alone):
        h.evolve(0.3)
        h.evolve(0.75)
    for name in ("pos", "vel", "acc", "step_sizes"):
        assert np.array_equal(getattr(whole, name)[:24], getattr(alone, name)), name
    assert whole.energy().total == pytest.approx(alone.energy().total, rel=1e-14)


@direct
def test_bodies_without_mass_move_as_those_of_tiny_mass(kind, options):
    fine = {"eta": 0.002} if "dt_max" in options else {"dt": 1 / 512}
    one, two = (make(kind, particles=with_tests(mass=m), **options | fine) for m in (0, 1e-14))
    for h in (one, two):
        h.evolve(0.5)
    error = 1e-7 if kind is Hermite else 1e-5
    assert np.abs(one.pos - two.pos).max() < error
    assert np.abs(one.vel - two.vel).max() < 10 * error


@direct
def test_bodies_without_mass_may_stand_anywhere(kind, options):
    particles = with_tests()
    mixed = np.empty(32, int)  # the massive ones keep their order
    at = np.sort(np.random.default_rng(4).choice(32, 24, replace=False))
    mixed[at], mixed[np.setdiff1d(np.arange(32), at)] = np.arange(24), np.arange(24, 32)
    one = make(kind, particles=particles, **options)
    two = make(kind, particles=[a[mixed] for a in particles], **options)
    for h in (one, two):
        h.evolve(0.3)
        assert np.isfinite(h.energy().total)
        h.evolve(0.75)
    for name in ("pos", "vel", "acc", "step_sizes", "mass"):
        assert np.array_equal(getattr(one, name)[mixed], getattr(two, name)), name
    if kind is Hermite:
        assert np.array_equal(one.jerk[mixed], two.jerk)


@all_kinds
def test_bodies_without_mass_alone_go_straight_on(kind, options):
    x, v = np.random.default_rng(1).normal(size=(2, 10, 3))
    h = make(kind, particles=(np.zeros(10), x, v), **options)
    h.evolve(0.3)
    h.evolve(2.0)
    assert np.allclose(h.pos, x + 2 * v, rtol=1e-13)
    assert h.energy().total == 0
    h.add(0.0, [1, 1, 1], [0, 0, 1])
    h.remove(0)
    h.evolve(3.0)
    assert np.allclose(h.pos[:9], (x + 3 * v)[1:], rtol=1e-13)
    assert np.allclose(h.pos[9], [1, 1, 2])


def change_tests(h):
    """Changes of bodies without mass alone."""
    new = h.add([0.0, 0.0], [[1, 0, 0], [0, 0, 1]], np.zeros((2, 3)))
    h.kick(25, [0.5, 0, 0], pos=[0.1, 0, 0])
    h.merge([26, int(new[0])])
    h.remove([27, 28])
    h.set_mass(29, 0.0)


@pytest.mark.parametrize("times", [[0.25], [0.25, 0.28125, 0.5], [0.375, 0.4375]])
def test_changes_of_bodies_without_mass_are_felt_by_themselves_alone(times):
    one, two = (make(particles=with_tests(), dt_max=1 / 8) for _ in range(2))
    for t in times:
        for h in (one, two):
            h.evolve(t)
        if t == times[0]:
            change_tests(one)
        one.kick(30, [0.1, 0, 0])
    for t in (0.6, 1.0):
        for h in (one, two):
            h.evolve(t)
        for name in ("pos", "vel", "acc", "jerk", "step_sizes"):
            assert np.array_equal(getattr(one, name)[:24], getattr(two, name)[:24]), name


@pytest.mark.parametrize("options", [{"dt": 1 / 64}, {"dt_max": 1 / 16}])
def test_leapfrogs_feel_no_change_of_bodies_without_mass_on_the_grid(options):
    one, two = (make(Leapfrog, particles=with_tests(), backend="cpu", **options) for _ in range(2))
    for h in (one, two):
        h.evolve(0.25)
    change_tests(one)
    for h in (one, two):
        h.evolve(1.0)
    assert np.array_equal(one.pos[:24], two.pos[:24])
    assert np.array_equal(one.vel[:24], two.vel[:24])


def test_changes_of_bodies_without_mass_in_callbacks_are_felt_by_themselves_alone():
    one, two = (make(particles=with_tests(), dt_max=1 / 8) for _ in range(2))

    def change(h):
        h.kick(30, [1e-3, 0, 0])
        if h.blocks == 40:
            change_tests(h)

    one.evolve(0.75, change)
    two.evolve(0.75)
    assert np.array_equal(one.pos[:24], two.pos[:24])
    assert np.array_equal(one.step_sizes[:24], two.step_sizes[:24])


def test_kicked_bodies_without_mass_move_right():
    """Against bodies that begin anew."""
    for time in (0.25, 0.28125):
        one = make(particles=with_tests(), dt_max=1 / 8, eta=0.002)
        one.evolve(time)
        change_tests(one)
        two = make(particles=one.particles(), dt_max=1 / 8, eta=0.002)
        one.evolve(time + 0.5)
        two.evolve(0.5)
        assert np.abs(one.pos - two.pos).max() < 1e-7
        assert np.abs(one.vel - two.vel).max() < 1e-6


@hermite
def test_a_body_may_lose_its_mass_and_have_it_again(kind, options):
    h = make(kind, **options)
    start = total_of(h)
    mass = float(h.mass[5])
    h.evolve(0.2)
    h.set_mass(5, 0.0)
    h.evolve(0.4)
    h.set_mass(5, mass)
    h.evolve(0.6)
    assert h.mass[5] == mass
    assert h.ids.tolist() == list(range(32))
    assert abs(total_of(h) - h.energy_change - start) < 1e-5


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("change", "error", "words"), [
    (lambda h: h.merge([3, 3]), ArgumentError, "twice"),
    (lambda h: h.merge([3]), ArgumentError, "two bodies"),
    (lambda h: h.merge(3), ArgumentError, "two bodies"),
    (lambda h: h.merge([3, 77]), AddressError, "77"),
    (lambda h: h.remove(32), AddressError, "32"),
    (lambda h: h.remove(-1), AddressError, "-1"),
    (lambda h: h.remove([4, 4]), ArgumentError, "twice"),
    (lambda h: h.remove(1.5), ArgumentError, "ids"),
    (lambda h: h.remove("one"), ArgumentError, "ids"),
    (lambda h: h.kick(3, [math.nan, 0, 0]), NotFiniteError, "vel"),
    (lambda h: h.kick(3, pos=[0, math.inf, 0]), NotFiniteError, "pos"),
    (lambda h: h.kick(3, [1, 2]), ArgumentError, "vel has shape"),
    (lambda h: h.kick([3, 4], np.ones((3, 3))), ArgumentError, "vel has shape"),
    (lambda h: h.kick([3, 3], [0, 0, 1]), ArgumentError, "twice"),
    (lambda h: h.kick(3, 0.5), ArgumentError, "vel has shape"),
    (lambda h: h.set_mass(3, math.nan), NotFiniteError, "mass"),
    (lambda h: h.set_mass([3, 4], [1.0]), ArgumentError, "mass has shape"),
    (lambda h: h.set_mass(40, 1.0), AddressError, "40"),
    (lambda h: h.add(1.0, [0, 0], [0, 0]), ArgumentError, "pos has shape"),
    (lambda h: h.add(1.0, [0, 0, 0], [math.nan, 0, 0]), NotFiniteError, "vel"),
    (lambda h: h.add([1.0, 2.0], [0, 0, 0], [0, 0, 0]), ArgumentError, "mass has shape"),
    (lambda h: h.add(1.0, [0, 0, 0], [0, 0, 0], ids=[3]), ArgumentError, "3 is the number"),
    (lambda h: h.add([1.0, 1.0], np.eye(3)[:2], np.eye(3)[:2], ids=[50, 50]), ArgumentError,
     "50"),
    (lambda h: h.add(1.0, [0, 0, 0], [0, 0, 0], ids=[1, 2]), ArgumentError, "ids"),
])  # fmt: skip
def test_wrong_changes_are_refused_in_words_and_change_nothing(change, error, words):
    h, other = make(), make()
    for each in (h, other):
        each.evolve(0.3)
    with pytest.raises(error, match=words):
        change(h)
    assert h.energy_change == 0
    for each in (h, other):
        each.evolve(0.5)
    same(h, other)


def test_one_mass_goes_to_all_new_bodies():
    h = make()
    h.add(0.3, np.eye(3), np.zeros((3, 3)))  # "mass : float or array_like, shape (k,)"
    assert h.mass[-3:].tolist() == [0.3] * 3


@all_kinds
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


def test_an_empty_change_is_none():
    h, other = make(), make()
    h.remove([])
    h.add([], np.zeros((0, 3)), np.zeros((0, 3)))
    for each in (h, other):
        each.evolve(0.5)
    assert np.array_equal(h.pos, other.pos)


@pytest.mark.parametrize("name", ["pos", "vel", "mass"])
@pytest.mark.parametrize(("kind", "options"), [
    (Hermite, {}), (Leapfrog, {"dt": 1 / 64, "backend": "cpu-tree"})])  # fmt: skip
def test_arrays_cannot_be_set(kind, options, name):
    h = make(kind, **options)
    call = "set_mass" if name == "mass" else "kick"
    with pytest.raises(AttributeError, match=call):
        setattr(h, name, np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        getattr(h, name)[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        getattr(h, name)[...] += 1


@pytest.mark.parametrize("action", [
    lambda h: h.kick(3, [0.1, 0, 0]), lambda h: h.add(0.1, [0, 0, 0], [0, 0, 0]),
    lambda h: h.remove(2), lambda h: h.merge([1, 2]), lambda h: h.set_mass(1, 0.5),
    lambda h: h.evolve(1.0), lambda h: h.step(), lambda h: h.pos + h.jerk,
])  # fmt: skip
@pytest.mark.parametrize(("kind", "options"), [
    (Hermite, {}), (Leapfrog, {"dt": 1 / 64, "backend": "cpu"})])  # fmt: skip
def test_a_field_cannot_change_bodies_and_nothing_is_lost(kind, options, action):
    disk, does = fields.miyamoto_nagai(1.0, 0.5, 0.1), []

    def field(t, pos, vel):
        if t > 0.1 and does:
            does.pop()(cluster)
        return disk(t, pos, vel)

    cluster, other = (make(kind, field=field, **options) for _ in range(2))
    does.append(action)
    with pytest.raises(CallOrderError, match="field"):
        cluster.evolve(0.5)
    assert not does
    for each in (cluster, other):
        each.evolve(0.5)
    assert cluster.energy_change == 0
    same(cluster, other)


@pytest.mark.parametrize("call", [
    lambda h: h.kick(3, [0.1, 0, 0]), lambda h: h.add(0.1, [0, 0, 0], [0, 0, 0]),
    lambda h: h.remove(2), lambda h: h.set_mass(1, 0.5)])  # fmt: skip
@pytest.mark.parametrize(("kind", "options"), [
    (Hermite, {}), (Leapfrog, {"dt": 1 / 64, "backend": "cpu"})])  # fmt: skip
def test_a_change_that_fails_in_the_field_changes_nothing(kind, options, call):
    disk, fails = fields.miyamoto_nagai(1.0, 0.5, 0.1), []

    def field(t, pos, vel):
        if fails:
            fails.pop()
            raise ZeroDivisionError
        return disk(t, pos, vel)

    cluster, other = (make(kind, field=field, **options) for _ in range(2))
    for each in (cluster, other):
        each.evolve(0.3)
        assert np.isfinite(each.pos).all()
    fails.append(1)
    with pytest.raises(ZeroDivisionError):
        call(cluster)
    assert len(cluster) == 32
    for each in (cluster, other):
        each.evolve(0.5)
    assert cluster.energy_change == 0
    same(cluster, other)


@pytest.mark.parametrize("change", ["add three", "remove some", "merge", "move", "set masses"])
def test_energies_in_a_frame_that_moves_count_changes_too(change):
    h = make(field=fields.mwpotential2014(80.0, 4.0), orbit=[80, 0, 0, 0, 4, 0], eta=0.01)
    start = h.energy().total
    h.evolve(0.7)
    CHANGES[change](h)
    assert h.energy().total - h.energy_change == pytest.approx(start, abs=2e-6)
    h.evolve(1.5)
    assert h.energy().total - h.energy_change == pytest.approx(start, abs=4e-6)
    again = pickle.loads(pickle.dumps(h))
    for each in (h, again):
        each.evolve(1.9)
    same(h, again)
    assert h.energy().total == again.energy().total
