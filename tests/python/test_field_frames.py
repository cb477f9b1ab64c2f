"""Clusters in fields: frames on orbits, coordinates that rotate, files and copies of both."""

import math

import numpy as np
import pytest

from grape6py import Hermite, Leapfrog, fields, plummer, tidal_radius
from grape6py.errors import ArgumentError
from integrations import MIXED, WAYS, assert_same, each, evolve, made, total_of

GALAXY = fields.mwpotential2014(20.0, 3.0)
ORBIT = [20.0, 0.0, 1.0, 0.5, 2.5, 0.4]
START, DRIFT = np.array(ORBIT[:3]), np.array(ORBIT[3:])


def galaxy(t, pos, vel):
    return tuple(GALAXY(t, pos, vel))


def other(t, pos, vel):
    return galaxy(t, pos, vel)


@pytest.mark.parametrize(("kind", "options", "error", "field"), [
    (Hermite, {"eta": 0.003}, 1e-7, GALAXY), (Hermite, {"dt": 1 / 256, "passes": 2}, 1e-6, galaxy),
    (Leapfrog, {"dt": 1 / 256, "backend": "cpu"}, 1e-4, galaxy),
    (Leapfrog, {"dt_max": 1 / 64, "eta": 0.001, "backend": "cpu"}, 1e-4, GALAXY),
])  # fmt: skip
def test_a_cluster_in_a_frame_is_that_at_rest(kind, options, error, field):
    m, x, v = plummer(32, 1)
    inside = made(kind, eps=1 / 8, field=field, orbit=ORBIT, **options)
    rest = made(kind, particles=(m, x + START, v + DRIFT), eps=1 / 8, field=GALAXY, **options)
    for t in (0.3, 0.75):
        evolve((inside, rest), t)
        origin, velocity = inside.origin
        assert np.abs(inside.pos + origin - rest.pos).max() < error
        assert np.abs(inside.vel + velocity - rest.vel).max() < 10 * error
    assert np.linalg.norm(origin - START) > 1
    assert not np.any(rest.origin)


def test_the_origin_is_a_body_in_the_field():
    solve_ivp = pytest.importorskip("scipy.integrate").solve_ivp

    def slope(t, y):
        return np.concatenate([y[3:], GALAXY(t, y[None, :3], y[None, 3:]).acc[0]])

    for field, orbit, end in ((GALAXY, ORBIT, 30.0), (galaxy, [START, DRIFT], 2.0)):
        h = made(field=field, orbit=orbit, n=2, dt=1 / 8)
        assert np.array_equal(h.origin, [START, DRIFT])
        h.evolve(end)
        found = solve_ivp(slope, (0, end), ORBIT, method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
        assert np.abs(np.ravel(h.origin) - found).max() < 1e-7


@pytest.mark.filterwarnings("ignore::grape6py.errors.Grape6Warning")
@each(MIXED)
def test_a_body_at_the_origin_stays_there(kind, options):
    h = kind([0.0], np.zeros((1, 3)), np.zeros((1, 3)), eps=0.1, field=GALAXY, orbit=ORBIT,
             **options)  # fmt: skip
    h.evolve(10.0, lambda c: c.stop() if c.blocks > 2000 else None)
    assert h.time == 10
    assert np.abs(h.pos).max() < 1e-9
    assert np.linalg.norm(h.origin[0] - START) > 15


@pytest.mark.parametrize(("kind", "options", "limit", "field"), [
    (Hermite, {"eta": 0.002}, 1e-7, GALAXY), (Hermite, {"eta": 0.005}, 3e-6, galaxy),
    (Leapfrog, {"dt": 1 / 256, "backend": "cpu"}, 3e-4, GALAXY),
])  # fmt: skip
def test_the_energy_is_conserved_and_counts_the_work_of_the_field(kind, options, limit, field):
    """It is that at rest, T + W in the frame by plain NumPy with what the field has done."""
    h = made(kind, field=field, orbit=ORBIT, **options)
    before, first, energies = total_of(h), h.energy().external, [h.energy().total]
    for t in (0.5, 1.01, 2.0):
        h.evolve(t)
        energies.append(h.energy().total)
        assert h.energy().external - first == pytest.approx(before - total_of(h), abs=limit)
    assert np.ptp(energies) < limit
    assert abs(h.energy().external) > 1e-3


@pytest.mark.filterwarnings("ignore::grape6py.errors.AccuracyWarning")
@each(MIXED)
def test_how_often_one_looks_changes_no_bit(kind, options):
    one, two = (made(kind, field=GALAXY, orbit=ORBIT, **options) for _ in range(2))
    one.evolve(1.0)
    for t in (0.1, 0.25, 0.333, 0.7, 1.0):
        two.evolve(t)
        assert np.isfinite([*two.origin[0], *two.pos.flat, two.energy().total]).all()
    assert_same(one, two, kind.STATE)
    assert one.energy() == two.energy()


BAR = fields.plummer(2.0, 0.5)


@pytest.mark.parametrize(("kind", "options", "limit"), [
    (Hermite, {"passes": 2, "eta": 0.005}, 2e-6), (Hermite, {"passes": 2, "dt": 1 / 256}, 2e-6),
    (Leapfrog, {"dt": 1 / 256, "backend": "cpu"}, 1e-3),
])  # fmt: skip
def test_a_cluster_in_rotating_coordinates_is_that_at_rest(kind, options, limit):
    omega, time = 0.8, 0.75
    m, x, v = plummer(24, 1)
    spin = np.array([0, 0, omega])
    disk = fields.miyamoto_nagai(1.0, 1.0, 0.3)
    turning = made(kind, particles=(m, x, v - np.cross(spin, x)), eps=1 / 8,
                   field=disk + fields.rotation(omega), **options)  # fmt: skip
    rest = made(kind, n=24, eps=1 / 8, field=disk, **options)
    start = turning.energy().total
    evolve((turning, rest), time)
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
        h = made(n=16, seed=2, eps=0.3, field=field, dt=dt, passes=passes)
        start = h.energy().total
        h.evolve(1.0)
        errors.append(abs(h.energy().total - start))
    assert errors[0] / errors[1] > least


SETTINGS = {
    "field": {"field": GALAXY}, "frame": {"field": GALAXY, "orbit": ORBIT},
    "function": {"field": galaxy}, "function in a frame": {"field": galaxy, "orbit": ORBIT},
    "spin": {"field": BAR + fields.rotation(0.4)},
    "G": {"field": fields.mwpotential2014(20.0, 3.0, G=2.0), "orbit": ORBIT, "G": 2.0},
}  # fmt: skip
CASES = [
    *[(case, "frame", "file") for case in MIXED[1:]], *[(MIXED[0], "frame", way) for way in WAYS],
    (MIXED[3], "spin", "pickle"),
    *[(MIXED[0], setting, "file") for setting in SETTINGS if setting != "frame"],
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::grape6py.errors.AccuracyWarning")
@pytest.mark.parametrize(("case", "setting", "way"), CASES)
def test_the_bits_go_on_over_files_and_copies(case, way, setting, tmp_path):
    kind, options = case
    h = made(kind, n=16, **SETTINGS[setting], **options)
    h.evolve(0.43)
    energy = h.energy()
    again = WAYS[way](h, tmp_path, **({"field": galaxy} if "function" in setting else {}))
    assert again.energy() == energy
    assert again.G == h.G
    evolve((h, again), 0.6, 1.0)
    assert_same(h, again)
    assert h.energy() == again.energy()


def test_a_function_has_to_be_given_again_and_a_built_in_field_may_be(tmp_path):
    for name, field in (("a.h5", galaxy), ("b.h5", GALAXY), ("c.h5", None)):
        made(field=field, n=8).save(tmp_path / name)
    assert Hermite.load(tmp_path / "a.h5", field=galaxy).n == 8
    assert Hermite.load(tmp_path / "b.h5", field=GALAXY).n == 8
    for name, field, words in [
        ("a.h5", None, r"galaxy.*field="), ("a.h5", other, r"other.*galaxy"),
        ("a.h5", GALAXY, "field"), ("b.h5", BAR, "begun in"), ("b.h5", galaxy, "field"),
        ("c.h5", GALAXY, "without"),
    ]:  # fmt: skip
        with pytest.raises(ArgumentError, match=words):
            Hermite.load(tmp_path / name, **({"field": field} if field else {}))


@pytest.mark.parametrize(("options", "words"), [
    *[({"field": GALAXY, "orbit": orbit}, "orbit")
      for orbit in ([1, 2, 3], np.zeros((3, 3)), "far", [1, 2, 3, 4, 5, math.nan])],
    ({"orbit": ORBIT}, "field"), ({"orbit": ORBIT, "field": BAR + fields.rotation(0.1)}, "rotate"),
])  # fmt: skip
def test_wrong_orbits_are_refused_in_words(options, words):
    with pytest.raises(ArgumentError, match=words):
        made(**options)


def test_an_orbit_may_begin_at_rest_and_a_body_too():
    h = Hermite([0.0], np.zeros((1, 3)), np.zeros((1, 3)), field=fields.plummer(1, 1),
                orbit=[1, 0, 0, 0, 0, 0])  # fmt: skip
    h.evolve(1.0)
    pos, vel = h.origin
    assert 0 < pos[0] < 1
    assert vel @ vel / 2 - 1 / math.sqrt(pos @ pos + 1) == pytest.approx(-(0.5**0.5), abs=1e-10)
    h = Hermite([0.0], [[1.0, 0, 0]], np.zeros((1, 3)), field=fields.plummer(1000, 1))
    h.evolve(0.25)
    x, v = h.pos[0], h.vel[0]
    energy = v @ v / 2 - 1000 / math.sqrt(x @ x + 1)
    assert energy == pytest.approx(-1000 / math.sqrt(2), rel=1e-4)


def test_no_bodies_in_a_frame_go_on_to_any_time():
    h = Hermite([1.0], np.zeros((1, 3)), np.zeros((1, 3)), field=GALAXY, orbit=ORBIT)
    h.remove(0)
    h.evolve(1e5)
    assert (h.time, h.n) == (1e5, 0)


def power_law(power, strength=1.0):
    """A field whose acceleration is -strength r^power towards the origin."""

    def field(t, pos, vel):
        r = np.linalg.norm(pos, axis=1)[:, None]
        return -strength * pos * r ** (power - 1), np.zeros_like(pos), np.zeros(len(pos))

    return field


PLACE = np.array([3.0, -1.0, 2.0])
R = math.sqrt(14)
AROUND = np.cross([0, 1, 1], PLACE) / np.linalg.norm(np.cross([0, 1, 1], PLACE))


@pytest.mark.parametrize(("field", "mass", "vel", "G", "cube"), [
    # About a point mass it is Hill's radius; in a logarithmic potential there are 2 Omega^2.
    (power_law(-2, 1e3), 2.0, AROUND * math.sqrt(1e3 / R), 1.0, R**3 * 2 / (3 * 1e3)),
    (power_law(-1, 220.0**2), 1e5, AROUND * 220, 4.3e-3, 4.3e-3 * 1e5 * R**2 / (2 * 220**2)),
    *((power_law(-2), 1e-4, vel, 1.0,  # on an eccentric orbit the angular velocity counts
       1e-4 / ((np.cross(PLACE, vel) ** 2).sum() / R**4 + 2 / R**3))
      for vel in ([0.1, 0.2, 0.3], [0, 0, 0], PLACE)),
])  # fmt: skip
def test_it_is_that_of_potentials_for_which_it_is_known(field, mass, vel, G, cube):
    assert tidal_radius(field, mass, PLACE, vel, G=G) == pytest.approx(cube ** (1 / 3), rel=1e-10)


def test_the_field_is_asked_at_the_time_with_velocities():
    asked = []

    def field(t, pos, vel):
        asked.append((t, pos.shape, vel.tolist()))
        return power_law(-2)(t, pos, vel)

    tidal_radius(field, 1, [1, 0, 0], [0, 1, 0], time=2.5)
    ((t, shape, vel),) = asked
    assert t == 2.5
    assert vel == [[0, 1, 0]] * shape[0]


@pytest.mark.parametrize(("wrong", "words"), [
    ({"field": power_law(1), "vel": [0, 0, 0]}, "compresses the cluster .*no tidal radius"),
    ({"mass": 0}, "mass = 0.0 is not above zero"),
    ({"pos": [0, 0, 0]}, "pos is the galaxy's centre"),
    ({"pos": [1, 2]}, r"pos has shape \(2,\), not \(3,\)"),
    ({"vel": [math.nan, 0, 0]}, r"vel\[0\] is not finite"),
    ({"G": -1}, "G = -1.0 is not above zero"),
    ({"time": math.inf}, "time = inf is not a finite number"),
    ({"field": lambda t, pos, vel: pos}, "gives ndarray, not a tuple of acc, jerk, pot"),
    ({"field": lambda t, pos, vel: (pos[:2], 0, 0)}, "acc of field has shape"),
    ({"field": lambda t, pos, vel: (pos * math.nan, 0, 0)}, "acc of field.* is not finite"),
])  # fmt: skip
def test_tides_that_cannot_be_are_refused_in_words(wrong, words):
    right = {"field": power_law(-2), "mass": 1, "pos": [1, 0, 0], "vel": [0, 1, 0]}
    with pytest.raises(ValueError, match=words):
        tidal_radius(**right | wrong)
