"""Clusters in fields: frames on orbits, coordinates that rotate, files and copies of both."""

import copy
import math
import pickle

import numpy as np
import pytest

from grape6py import Hermite, Leapfrog, fields, plummer
from grape6py.errors import ArgumentError

GALAXY = fields.mwpotential2014(20.0, 3.0)
ORBIT = [20.0, 0.0, 1.0, 0.5, 2.5, 0.4]
START, DRIFT = np.array(ORBIT[:3]), np.array(ORBIT[3:])


def galaxy(t, pos, vel):
    """The same as a function."""
    return tuple(GALAXY(t, pos, vel))


def other(t, pos, vel):
    return galaxy(t, pos, vel)


KINDS = [
    (Hermite, {"precision": "double"}),
    (Hermite, {"dt": 1 / 64, "passes": 2}),
    (Leapfrog, {"dt": 1 / 64, "backend": "cpu"}),
    (Leapfrog, {"dt_max": 1 / 16, "backend": "cpu-tree"}),
]
kinds = pytest.mark.parametrize(("kind", "options"), KINDS)


def make(kind=Hermite, n=32, **options):
    return kind(*plummer(n, 1), eps=1 / 16, **options)


def same(one, two):
    assert one.time == two.time
    states = one.state(), two.state()
    assert states[0].keys() == states[1].keys()
    for name in states[0]:
        assert np.array_equal(states[0][name], states[1][name]), name
    for a, b in zip(one.origin, two.origin, strict=True):
        assert np.array_equal(a, b)
    assert np.array_equal(one.pos, two.pos)


# ---- a frame on an orbit -------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "options", "error"), [
    (Hermite, {"eta": 0.003, "precision": "double"}, 1e-7),
    (Hermite, {"dt": 1 / 256, "passes": 2, "precision": "double"}, 1e-6),
    (Leapfrog, {"dt": 1 / 256, "backend": "cpu", "precision": "double"}, 1e-4),
    (Leapfrog, {"dt_max": 1 / 64, "eta": 0.001, "backend": "cpu", "precision": "double"}, 1e-4),
])  # fmt: skip
def test_a_cluster_in_a_frame_is_that_at_rest(kind, options, error):
    field = galaxy if "dt" in options and kind is Hermite else GALAXY
    m, x, v = plummer(32, 1)
    inside = kind(m, x, v, eps=1 / 8, field=field, orbit=ORBIT, **options)
    rest = kind(m, x + START, v + DRIFT, eps=1 / 8, field=GALAXY, **options)
    for t in (0.3, 0.75):
        inside.evolve(t)
        rest.evolve(t)
        origin, velocity = inside.origin
        assert np.abs(inside.pos + origin - rest.pos).max() < error
        assert np.abs(inside.vel + velocity - rest.vel).max() < 10 * error
    assert np.linalg.norm(origin - START) > 1


def test_the_origin_is_a_body_in_the_field():
    """Against an integrator of high order."""
    solve_ivp = pytest.importorskip("scipy.integrate").solve_ivp

    def slope(t, y):
        return np.concatenate([y[3:], GALAXY(t, y[None, :3], y[None, 3:]).acc[0]])

    for field, end in ((GALAXY, 30.0), (galaxy, 2.0)):
        h = make(field=field, orbit=ORBIT, n=2, dt=1 / 8)
        assert np.array_equal(h.origin[0], START)
        assert np.array_equal(h.origin[1], DRIFT)
        h.evolve(end)
        found = solve_ivp(slope, (0, end), ORBIT, method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
        assert np.abs(h.origin[0] - found[:3]).max() < 1e-7
        assert np.abs(h.origin[1] - found[3:]).max() < 1e-7


def test_without_an_orbit_the_origin_stays():
    for h in (make(), make(field=GALAXY)):
        h.evolve(0.5)
        assert not np.any(h.origin)


@pytest.mark.filterwarnings("ignore::grape6py.errors.Grape6Warning")
@pytest.mark.parametrize(("kind", "options"), [
    *KINDS
])  # fmt: skip
def test_a_body_at_the_origin_stays_there(kind, options):
    h = kind([0.0], np.zeros((1, 3)), np.zeros((1, 3)), eps=0.1, field=GALAXY, orbit=ORBIT,
             **options)  # fmt: skip
    h.evolve(10.0, lambda c: c.stop() if c.blocks > 2000 else None)
    assert h.time == 10
    assert np.abs(h.pos).max() < 1e-9
    assert np.linalg.norm(h.origin[0] - START) > 15


@pytest.mark.parametrize(("kind", "options"), [KINDS[0], KINDS[2]])
def test_a_function_and_the_built_in_field_give_the_same_cluster_in_a_frame(kind, options):
    one, two = (make(kind, field=f, orbit=ORBIT, **options) for f in (GALAXY, galaxy))
    for h in (one, two):
        h.evolve(0.5)
    assert np.abs(one.pos - two.pos).max() < 1e-9
    assert one.energy().external == pytest.approx(two.energy().external, abs=1e-9)


def test_the_energy_in_a_frame_is_kept_as_well_as_that_of_a_cluster_alone():
    """8 kpc from the centre of the Milky Way, in Henon units of a parsec."""
    far, errors = fields.mwpotential2014(8000, 33.5), []
    for seed in range(1, 4):
        pair = []
        for more in ({}, {"field": far, "orbit": [8000, 0, 0, 0, 33.5, 0]}):
            h = Hermite(*plummer(64, seed), eps=1 / 16, precision="double", **more)
            start = h.energy().total
            h.evolve(2.0)
            pair.append(abs(h.energy().total - start))
        errors.append(pair)
    alone, inside = np.median(errors, axis=0)
    assert inside < 2 * alone + 1e-9


@pytest.mark.parametrize(("kind", "options", "limit", "field"), [
    (Hermite, {"eta": 0.005, "precision": "double"}, 3e-6, GALAXY),
    (Hermite, {"eta": 0.005, "precision": "double"}, 3e-6, galaxy),
    (Leapfrog, {"dt": 1 / 256, "backend": "cpu", "precision": "double"}, 3e-4, GALAXY),
])  # fmt: skip
def test_the_energy_is_conserved_near_the_centre_too(kind, options, limit, field):
    h = make(kind, field=field, orbit=ORBIT, **options)
    energies = [h.energy().total]
    for t in (0.5, 1.01, 2.0):
        h.evolve(t)
        energies.append(h.energy().total)
    assert np.ptp(energies) < limit
    assert abs(h.energy().external) > 1e-3


def test_the_work_is_the_difference_of_energies_at_rest():
    """Of T + W in the frame, what the field has done: plain NumPy."""
    h = make(field=GALAXY, orbit=ORBIT, eta=0.002, precision="double")

    def own():
        m, x, v = h.mass, h.pos, h.vel
        d = np.sqrt(((x[:, None] - x) ** 2).sum(axis=2) + 1 / 256)
        np.fill_diagonal(d, np.inf)
        return (m * (v * v).sum(axis=1)).sum() / 2 - (m[:, None] * m / d).sum() / 2

    before = own()
    h.evolve(1.3)
    assert h.energy().external == pytest.approx(before - own(), abs=1e-7)


@pytest.mark.filterwarnings("ignore::grape6py.errors.AccuracyWarning")
@kinds
def test_how_often_one_looks_changes_no_bit(kind, options):
    one, two = (make(kind, field=GALAXY, orbit=ORBIT, **options) for _ in range(2))
    one.evolve(1.0)
    for t in (0.1, 0.25, 0.333, 0.7, 1.0):
        two.evolve(t)
        assert np.isfinite([*two.origin[0], *two.pos.flat, two.energy().total]).all()
    for name in kind.STATE:
        assert np.array_equal(one.state()[name], two.state()[name]), name
    assert np.array_equal(one.origin[0], two.origin[0])
    assert one.energy() == two.energy()


def test_long_runs_follow_the_orbit_over_many_nodes():
    """Some turns about the centre, looked at seldom and often."""
    seldom, often = (Hermite([0.0], [[0.01, 0, 0]], [[0, 0, 0.0]], field=fields.plummer(1, 0.5),
                             orbit=[1, 0, 0, 0, 0.7, 0], dt=1 / 32) for _ in range(2))  # fmt: skip
    seldom.evolve(20.0)
    for k in range(1, 41):
        often.evolve(k / 2)
        if k % 10 == 0:
            assert np.isfinite(often.origin[0]).all()
    for a, b in zip(seldom.origin, often.origin, strict=True):
        assert np.array_equal(a, b)
    assert np.abs(seldom.pos - often.pos).max() < 1e-11
    pos, vel = seldom.origin
    energy = vel @ vel / 2 - 1 / math.sqrt(pos @ pos + 0.25)
    assert energy == pytest.approx(0.245 - 1 / math.sqrt(1.25), abs=1e-9)


def test_the_bits_in_a_frame_do_not_depend_on_how_far_calls_go():
    whole, parts = (Hermite([0.0], [[0.01, 0, 0]], [[0, 0, 0.0]], field=fields.plummer(1, 0.5),
                            orbit=[1, 0, 0, 0, 0.7, 0], dt=1 / 32) for _ in range(2))  # fmt: skip
    whole.evolve(32.0)
    for k in range(1, 65):
        parts.evolve(k / 2)
    assert np.array_equal(whole.pos, parts.pos)


def test_the_tide_makes_a_cluster_lose_bodies_only_where_it_is_strong():
    """Of a body at twice the tidal radius, and of one well inside."""
    point, period = fields.point_mass(1e6), 2 * math.pi * math.sqrt(1e6 / 1e6)
    orbit = [100, 0, 0, 0, 100, 0]
    limit = (1 / (3 * 1e6)) ** (1 / 3) * 100
    far = np.array([[0, 0, 0], [2 * limit, 0, 0], [0.3 * limit, 0, 0]])
    vel = np.array([[0, 0, 0], [0, 0, 0], [0, math.sqrt(1 / (0.3 * limit)), 0]])
    h = Hermite([1.0, 0, 0], far, vel, field=point, orbit=orbit, dt=period / 4096, passes=2)
    h.evolve(period)
    r = np.linalg.norm(h.pos - h.pos[0], axis=1)
    assert r[1] > 4 * limit
    assert r[2] < limit


# ---- rotation ------------------------------------------------------------------------------------


BAR = fields.plummer(2.0, 0.5)
OFF = np.array([0.8, 0, 0])


def bar(t, pos, vel):
    """Two spheres that turn with the coordinates, and these: all of it as a function."""
    spin = fields.rotation(0.7)(t, pos, vel)
    ends = [BAR(t, pos - side * OFF, vel) for side in (1, -1)]
    acc, jerk, pot = (sum(parts) for parts in zip(spin, *ends, strict=True))
    # Coriolis' and centrifugal force change with all the acceleration
    pull = sum(e.acc for e in ends)
    jerk = jerk + 1.4 * np.column_stack([pull[:, 1], -pull[:, 0], 0 * pull[:, 2]])
    return acc, jerk, pot


def jacobi(h):
    x, v = h.pos[0], h.vel[0]
    pot = sum(-2 / math.sqrt(((x - s * OFF) ** 2).sum() + 0.25) for s in (1, -1))
    return v @ v / 2 + pot - 0.49 / 2 * (x[0] ** 2 + x[1] ** 2)


@pytest.mark.parametrize(("kind", "options", "order"), [
    (Hermite, {"passes": 2}, 4), (Leapfrog, {"backend": "cpu"}, 2),
])  # fmt: skip
def test_jacobis_energy_is_conserved_at_the_schemes_order(kind, options, order):
    errors = []
    for dt in (1 / 32, 1 / 64):
        h = kind([0.0], [[1.5, 0.2, 0.3]], [[0, 0.5, 0.2]], field=bar, dt=dt, **options)
        start, worst = jacobi(h), 0.0
        for k in range(1, 13):
            h.evolve(k * 0.25)
            worst = max(worst, abs(jacobi(h) - start))
        errors.append(worst)
    assert math.log2(errors[0] / errors[1]) > order - 0.5
    assert errors[-1] < {4: 1e-5, 2: 1e-2}[order]


@pytest.mark.parametrize(("kind", "options", "limit"), [
    (Hermite, {"passes": 2, "eta": 0.005, "precision": "double"}, 2e-6),
    (Hermite, {"passes": 2, "dt": 1 / 256, "precision": "double"}, 2e-6),
    (Leapfrog, {"dt": 1 / 256, "backend": "cpu", "precision": "double"}, 1e-3),
])  # fmt: skip
def test_a_cluster_in_rotating_coordinates_is_that_at_rest(kind, options, limit):
    """In a field that is round; with its energies."""
    omega, time = 0.8, 0.75
    m, x, v = plummer(24, 1)
    spin = np.array([0, 0, omega])
    disk = fields.miyamoto_nagai(1.0, 1.0, 0.3)
    turning = kind(m, x, v - np.cross(spin, x), eps=1 / 8, field=disk + fields.rotation(omega),
                   **options)  # fmt: skip
    rest = kind(m, x, v, eps=1 / 8, field=disk, **options)
    start = turning.energy().total
    for h in (turning, rest):
        h.evolve(time)
    c, s = math.cos(omega * time), math.sin(omega * time)
    back = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    assert np.abs(turning.pos @ back.T - rest.pos).max() < limit
    velocity = (turning.vel + np.cross(spin, turning.pos)) @ back.T
    assert np.abs(velocity - rest.vel).max() < 10 * limit
    assert turning.energy().total == pytest.approx(start, abs=limit)
    # Jacobi's energy is E - Omega L
    total = rest.energy().total - omega * rest.angular_momentum()[2]
    assert turning.energy().total == pytest.approx(total, abs=2 * limit)


def spinning(t, pos, vel):
    """What a field does, as a function: it cannot know how the stars pull each other."""
    return tuple((BAR + fields.rotation(1.0))(t, pos, vel))


@pytest.mark.parametrize(("passes", "field", "least"), [
    (2, BAR + fields.rotation(1.0), 11), (3, BAR + fields.rotation(1.0), 11), (2, spinning, 3),
])  # fmt: skip
def test_the_order_of_a_cluster_in_rotating_coordinates_is_four(passes, field, least):
    """But two with a function, whose jerk lacks what accelerates the bodies else."""
    errors = []
    for dt in (1 / 64, 1 / 128):
        h = Hermite(*plummer(16, 2), eps=0.3, field=field, dt=dt,
                    passes=passes, precision="double")  # fmt: skip
        start = h.energy().total
        h.evolve(1.0)
        errors.append(abs(h.energy().total - start))
    assert errors[0] / errors[1] > least


def test_coordinates_do_not_rotate_and_move_at_once():
    with pytest.raises(ArgumentError, match="rotate"):
        make(field=GALAXY + fields.rotation(0.1), orbit=ORBIT)


# ---- files and copies ----------------------------------------------------------------------------


def through_file(h, tmp_path, field):
    h.save(tmp_path / "a.h5")
    return type(h).load(tmp_path / "a.h5", **field)


WAYS = {
    "copy": lambda h, *_: h.copy(),
    "deepcopy": lambda h, *_: copy.deepcopy(h),
    "pickle": lambda h, *_: pickle.loads(pickle.dumps(h)),
    "file": through_file,
}


CASES = [
    *[(kind, "frame", "file") for kind in KINDS[1:]],
    *[(KINDS[0], "frame", way) for way in WAYS],
    *[(kind, setting, "pickle") for kind in KINDS for setting in ("function", "spin")],
    *[(KINDS[0], setting, "file") for setting in ("field", "function", "spin")],
    (KINDS[0], "function in a frame", "file"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::grape6py.errors.AccuracyWarning")
@pytest.mark.parametrize(("case", "setting", "way"), CASES)
def test_the_bits_go_on_over_files_and_copies(case, way, setting, tmp_path):
    kind, options = case
    field = {"field": GALAXY, "frame": GALAXY, "spin": BAR + fields.rotation(0.4)}
    field = field.get(setting, galaxy)
    orbit = ORBIT if "frame" in setting else None
    h = make(kind, n=16, field=field, orbit=orbit, **options)
    h.evolve(0.43)
    energy = h.energy()
    again = WAYS[way](h, tmp_path, {"field": galaxy} if field is galaxy else {})
    assert again.energy() == energy
    for each in (h, again):
        each.evolve(0.6)
        each.evolve(1.0)
    same(h, again)
    assert h.energy() == again.energy()


def test_a_field_with_a_constant_of_gravity_goes_on_over_a_file(tmp_path):
    h = make(G=2.0, field=fields.mwpotential2014(20.0, 3.0, G=2.0), orbit=ORBIT, n=16)
    h.evolve(0.43)
    h.save(tmp_path / "a.h5")
    again = Hermite.load(tmp_path / "a.h5")
    assert again.G == 2
    for each in (h, again):
        each.evolve(0.6)
    same(h, again)


def test_a_function_has_to_be_given_again(tmp_path):
    h = make(field=galaxy, n=8)
    h.save(tmp_path / "a.h5")
    with pytest.raises(ArgumentError, match=r"galaxy.*field="):
        Hermite.load(tmp_path / "a.h5")
    with pytest.raises(ArgumentError, match=r"other.*galaxy"):
        Hermite.load(tmp_path / "a.h5", field=other)
    with pytest.raises(ArgumentError, match="field"):
        Hermite.load(tmp_path / "a.h5", field=GALAXY)
    assert Hermite.load(tmp_path / "a.h5", field=galaxy).n == 8


def test_a_built_in_field_may_be_given_again_if_it_is_the_same(tmp_path):
    h = make(field=GALAXY, n=8)
    h.save(tmp_path / "a.h5")
    assert Hermite.load(tmp_path / "a.h5", field=GALAXY).n == 8
    with pytest.raises(ArgumentError, match="begun in"):
        Hermite.load(tmp_path / "a.h5", field=BAR)
    with pytest.raises(ArgumentError, match="field"):
        Hermite.load(tmp_path / "a.h5", field=galaxy)
    make(n=8).save(tmp_path / "b.h5")
    with pytest.raises(ArgumentError, match="without"):
        Hermite.load(tmp_path / "b.h5", field=GALAXY)


# ---- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("orbit", [[1, 2, 3], np.zeros((3, 3)), "far", [1, 2, 3, 4, 5, math.nan]])
def test_wrong_orbits_are_refused_in_words(orbit):
    with pytest.raises(ArgumentError, match="orbit"):
        make(field=GALAXY, orbit=orbit)


def test_an_orbit_needs_a_field():
    with pytest.raises(ArgumentError, match="field"):
        make(orbit=ORBIT)


def test_an_orbit_may_be_two_rows():
    h = make(field=GALAXY, orbit=[START, DRIFT])
    assert np.array_equal(h.origin, [START, DRIFT])


def test_an_orbit_may_begin_at_rest():
    h = Hermite(
        [0.0], [[0, 0, 0]], [[0, 0, 0]], field=fields.plummer(1, 1), orbit=[1, 0, 0, 0, 0, 0]
    )
    h.evolve(1.0)
    pos, vel = h.origin
    assert 0 < pos[0] < 1
    assert vel @ vel / 2 - 1 / math.sqrt(pos @ pos + 1) == pytest.approx(-(0.5**0.5), abs=1e-10)


def test_a_body_at_rest_begins_to_fall_in_small_steps():
    h = Hermite([0.0], [[1.0, 0, 0]], [[0.0, 0, 0]], field=fields.plummer(1000, 1))
    h.evolve(0.25)
    x, v = h.pos[0], h.vel[0]
    energy = v @ v / 2 - 1000 / math.sqrt(x @ x + 1)
    assert energy == pytest.approx(-1000 / math.sqrt(2), rel=1e-4)


def test_no_bodies_in_a_frame_go_on_to_any_time():
    h = Hermite([1.0], np.zeros((1, 3)), np.zeros((1, 3)), field=GALAXY, orbit=ORBIT)
    h.remove(0)
    h.evolve(1e5)
    assert h.time == 1e5
    assert h.n == 0
