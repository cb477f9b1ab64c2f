"""Hermite's subsystems: binaries and encounters keep their energy, and cost little."""

import numpy as np
import pytest

from few_bodies import PYTHAGOREAN, FewBodies, elements, energy, pair
from grape6py import Hermite, fields, plummer, reference
from grape6py.errors import ArgumentError, Grape6Warning
from particles import relative


def with_binaries(n, pairs, a, e, seed=1):
    """n bodies of equal mass in a Plummer sphere, of which 2 pairs are in binaries."""
    rng = np.random.default_rng(seed)
    _, pos, vel = plummer(n - pairs, seed=seed)
    inner = [[], []]
    for _ in range(pairs):
        m, x, v = pair(e, (1 / n, 1 / n), a)
        FewBodies(m, x, v).evolve(0)
        bodies = FewBodies(m, x, v, gamma=1e-6)
        bodies.evolve(rng.uniform(0, 2 * np.pi * np.sqrt(a**3 * n / 2)))
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        inner[0].append(bodies.x @ turn)
        inner[1].append(bodies.v @ turn)
    first = [np.repeat(q[:pairs], 2, axis=0) + np.concatenate(i)
             for q, i in zip((pos, vel), inner, strict=True)]  # fmt: skip
    pos, vel = (np.concatenate([f, q[pairs:]]) for f, q in zip(first, (pos, vel), strict=True))
    return np.full(n, 1 / n), pos, vel


def made(bodies, **options):
    given = {"backend": "cpu", "dt_max": 1 / 8, "threads": 1, "subsystems": True}
    return Hermite(*bodies, **(given | options))


@pytest.mark.parametrize("a", [1e-3, 1e-4])
@pytest.mark.parametrize("e", [0.0, 0.9, 0.99])
def test_hard_binaries_keep_the_energy_of_the_cluster(a, e):
    """As they do not without: 26 of them lost 2e-4 to 3 in a unit of time."""
    bodies = with_binaries(256, 26, a, e)
    cluster = made(bodies)
    before = energy(*bodies)
    cluster.evolve(0.5)
    assert abs(energy(cluster.mass, cluster.pos, cluster.vel) - before) < 1e-6
    assert len(cluster.subsystems) >= 25
    assert cluster.steps < 30000  # 18000 without binaries
    found = [s.semi_major_axis for s in cluster.subsystems if len(s.ids) == 2]
    assert np.median(found) == pytest.approx(a, rel=1e-3)


@pytest.mark.parametrize("e", [0.0, 0.9, 0.999999])
def test_two_bodies_alone(e):
    """They drifted to harder orbits before."""
    m, x, v = pair(e)
    cluster = made((m, x, v), dt_max=1 / 64)
    cluster.evolve(64 * np.pi)
    d, w = cluster.pos[1] - cluster.pos[0], cluster.vel[1] - cluster.vel[0]
    a, vector = elements(1.0, d, w)
    assert a == pytest.approx(1.0, abs=1e-9)
    assert np.linalg.norm(vector) == pytest.approx(e, abs=1e-9)
    assert np.abs(d - (x[1] - x[0])).max() < 1e-6
    (only,) = cluster.subsystems
    assert only.ids == (0, 1)
    assert only.semi_major_axis == pytest.approx(1.0, rel=1e-9)
    assert (cluster.step_sizes == 1 / 64).all()


def flyby(distance):
    """A binary that a star passes, and the same far from anything."""
    m, x, v = pair(0.3, (0.3, 0.2), 0.01)
    mass = [*m, 0.5]
    pos = np.vstack([x, [3.0, distance, 0.01]])
    vel = np.vstack([v, [-1.5, 0, 0]])
    return mass, pos, vel


@pytest.mark.parametrize("distance", [0.4, 0.2, 0.04, 0.015])
def test_a_star_that_passes_a_binary_leaves_the_energy(distance):
    """And does to it what it does to few bodies, where the phase of its orbit does not matter."""
    few, cluster = FewBodies(*flyby(distance)), made(flyby(distance), eta=0.005)
    few.evolve(4.0)
    cluster.evolve(4.0)
    before = energy(*flyby(distance))
    assert energy(few.mass, cluster.pos, cluster.vel) == pytest.approx(before, rel=2e-6)
    if distance < 0.4:
        return
    of = [elements(0.5, x[1] - x[0], v[1] - v[0])
          for x, v in ((few.x, few.v), (cluster.pos, cluster.vel))]  # fmt: skip
    assert of[1][0] == pytest.approx(of[0][0], rel=5e-6)
    assert np.abs(of[1][1] - of[0][1]).max() < 5e-6
    assert np.abs(cluster.pos[2] - few.x[2]).max() < 1e-6


def test_bits_do_not_depend_on_threads_looks_or_files(tmp_path):
    bodies = with_binaries(256, 26, 1e-3, 0.9)
    whole, looked, stopped = made(bodies), made(bodies, threads=3), made(bodies)
    whole.evolve(0.4)
    for time in (0.07, 0.1, 0.25, 0.4):
        looked.evolve(time)
        looked.energy()
    stopped.evolve(0.21)
    stopped.save(tmp_path / "run.h5")
    loaded = Hermite.load(tmp_path / "run.h5")
    assert np.array_equal(loaded.pos, stopped.pos)
    assert loaded.subsystems == stopped.subsystems
    loaded.evolve(0.4)
    for other in looked, loaded:
        assert np.array_equal(whole.pos, other.pos)
        assert np.array_equal(whole.vel, other.vel)
        assert whole.subsystems == other.subsystems


def test_a_file_goes_on_with_the_same_bits_where_masses_differ(tmp_path):
    """Whom a subsystem takes in did depend on a list that files do not have."""
    _, pos, vel = plummer(20, seed=7)
    mass = 10 ** np.random.default_rng(7).uniform(-3, -0.5, 20)
    whole, stopped = (made((mass, 0.3 * pos, vel)) for _ in range(2))
    whole.evolve(4.0)
    stopped.evolve(0.8)
    stopped.evolve(1.6)
    stopped.save(tmp_path / "run.h5")
    loaded = Hermite.load(tmp_path / "run.h5")
    loaded.evolve(4.0)
    assert np.array_equal(whole.pos, loaded.pos)


@pytest.mark.parametrize("strong", [1.0, 30.0])
def test_the_tide_of_a_field_acts_on_members(strong, tmp_path):
    """As it does with very small steps."""
    m, x, v = pair(0.3, (0.5, 0.5), 0.01)
    bodies = m, np.add(x, [1, 0, 0]), np.add(v, [0, np.sqrt(strong), 0])
    given = {"field": fields.point_mass(strong), "dt_max": 2**-10, "backend": "cpu"}
    whole = Hermite(*bodies, **given)
    plain = Hermite(*bodies, eta=5e-4, precision="double", subsystems=False, **given)
    assert whole.settings["subsystems"]
    for cluster in whole, plain:
        cluster.evolve(0.125)
    assert np.abs(whole.pos - plain.pos).max() < 1e-5
    assert whole.energy().total == pytest.approx(plain.energy().total, rel=1e-6)
    whole.save(tmp_path / "run.h5")
    loaded = Hermite.load(tmp_path / "run.h5")
    for cluster in whole, loaded:
        cluster.evolve(0.25)
    assert np.array_equal(whole.pos, loaded.pos)


def test_a_cluster_with_binaries_on_its_orbit_keeps_the_energy(tmp_path):
    """It lost 1e-3 in a unit of time, without."""
    cluster = Hermite(*with_binaries(128, 13, 1e-3, 0.5, seed=2), field=fields.plummer(50, 2.0),
                      orbit=[8, 0, 0, 0, 2, 0], dt_max=1 / 8, backend="cpu")  # fmt: skip
    start = cluster.energy().total
    cluster.evolve(0.3)
    cluster.save(tmp_path / "run.h5")
    loaded = Hermite.load(tmp_path / "run.h5")
    assert len(cluster.subsystems) == 13
    for one in cluster, loaded:
        one.evolve(0.55)
        assert one.energy().total == pytest.approx(start, abs=2e-6)
    assert np.array_equal(cluster.pos, loaded.pos)


def test_what_is_seen_of_members_is_that_of_bodies():
    bodies = with_binaries(100, 20, 1e-3, 0.5)
    cluster = made(bodies, precision="double")
    cluster.evolve(0.3)
    right = reference.direct_sum(bodies[0], cluster.pos, cluster.vel)
    error = relative(cluster.acc, right.acc)
    assert error.max() < 1e-3
    assert np.median(error) < 1e-5
    assert np.median(relative(cluster.jerk, right.jerk)) < 1e-3
    assert len(cluster.binaries().first) >= 20


def test_bodies_of_subsystems_may_come_go_and_change():
    cluster = made(with_binaries(100, 10, 1e-3, 0.5))
    cluster.evolve(0.1)
    assert len(cluster.subsystems) == 10
    cluster.remove([0])
    cluster.merge([2, 3])
    cluster.kick([4], [[0, 0, 9.0]])
    cluster.evolve(0.2)
    assert len(cluster) == 98
    assert sorted(s.ids for s in cluster.subsystems)[0] == (6, 7)
    with_one = energy(cluster.mass, cluster.pos, cluster.vel)
    cluster.evolve(0.3)
    assert energy(cluster.mass, cluster.pos, cluster.vel) == pytest.approx(with_one, abs=1e-6)


@pytest.mark.parametrize("pairs", [0, 10])
@pytest.mark.parametrize(("who", "mass"), [(0, 0.0), (0, 0.03), (50, 0.0), (50, 0.03)])
def test_a_mass_that_changes_acts_from_then_on(pairs, who, mass):
    cluster = made(with_binaries(100, pairs, 1e-3, 0.5) if pairs else plummer(100, seed=1))
    cluster.evolve(0.1)
    cluster.set_mass([who], [mass])
    fresh = made((cluster.mass, cluster.pos, cluster.vel))
    cluster.evolve(0.2)
    fresh.evolve(0.1)
    assert np.abs(cluster.pos - fresh.pos).max() < 1e-5
    momentum = cluster.mass @ cluster.vel - fresh.mass @ fresh.vel
    assert np.abs(momentum).max() < 1e-6


def test_stars_round_a_massive_black_hole_are_block_steps():
    """Of which as many steps are made, with the same bits, as without subsystems."""
    n, found = 100, []
    for subsystems in (None, False):
        random = np.random.default_rng(1)
        cluster = Hermite([1.0], [[0, 0, 0]], [[0, 0, 0]], subsystems=subsystems)
        cluster.add(np.full(n, 1e-5), a=np.geomspace(0.5, 5, n), e=0.4, inc=random.random(n),
                    Omega=6 * random.random(n), M=6 * random.random(n))  # fmt: skip
        cluster.evolve(3.0)
        found.append((cluster.steps, cluster.pos, len(cluster.subsystems)))
    assert found[0][::2] == found[1][::2]
    assert np.array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("mass", [0.0, 1e-16, 1e-3])
@pytest.mark.parametrize("apart", [[0.1, 0, 0], [0.5, 0.1, 0]])
@pytest.mark.parametrize("name", ["plummer", "logarithmic"])
def test_pairs_in_a_field_are_those_of_another_integrator(name, apart, mass):
    """Light ones too, and such as are so wide that the field's gradient is not enough."""
    solve_ivp = pytest.importorskip("scipy.integrate").solve_ivp
    field = {"plummer": fields.plummer(1e-3, 100.0), "logarithmic": fields.logarithmic(1.0)}[name]
    masses, pos = np.array([1.0, mass]), np.array([[2.0, 0, 0], [2.0, 0, 0]])
    pos[1] += apart
    vel = np.array([[0, 0, 0], [0, 3 if apart[0] < 0.2 else 0.5, 0.0]])

    def slopes(t, y):
        x, v = y.reshape(2, 2, 3)
        between = (x[1] - x[0]) / np.linalg.norm(x[1] - x[0]) ** 3
        acc = np.array(field(t, x, v).acc) + np.outer(masses[::-1] * [1, -1], between)
        return np.concatenate([v.ravel(), acc.ravel()])

    start = np.concatenate([pos.ravel(), vel.ravel()])
    exact = solve_ivp(slopes, (0, 1), start, method="DOP853", rtol=1e-11, atol=1e-12).y[:6, -1]
    cluster = Hermite(masses, pos, vel, field=field, dt_max=1 / 32)
    cluster.evolve(1.0)
    assert np.allclose(cluster.pos, exact.reshape(2, 3), rtol=0, atol=5e-4)


def test_planets_without_mass_go_with_their_star():
    m, pos, vel = plummer(64, seed=4)
    planet = pos[5] + [1e-4, 0, 0], vel[5] + [0, np.sqrt(m[5] / 1e-4), 0]
    cluster = made((np.append(m, 0.0), np.vstack([pos, planet[0]]), np.vstack([vel, planet[1]])))
    cluster.evolve(0.5)
    a, vector = elements(m[5], cluster.pos[64] - cluster.pos[5], cluster.vel[64] - cluster.vel[5])
    assert a == pytest.approx(1e-4, rel=1e-6)
    assert np.linalg.norm(vector) < 1e-5
    assert (5, 64) in [s.ids for s in cluster.subsystems]


@pytest.mark.parametrize("options", [
    {"eps": 0.01}, {"field": fields.rotation(1.0)}, {"field": lambda t, x, v: (-x, -v, x[:, 0])},
    {"precision": "single"},
])  # fmt: skip
def test_what_they_do_not_go_together_with_is_named(options):
    with pytest.raises(ArgumentError, match="a softening, a field that rotates"):
        made(plummer(20, seed=1), **options)
    assert "subsystems" not in Hermite(*plummer(20, seed=1), backend="cpu", **options).settings


@pytest.mark.parametrize(("options", "there"), [
    ({}, True), ({"subsystems": False}, False), ({"dt": 0.01}, False),
    ({"dt": 0.01, "subsystems": True}, True),
])  # fmt: skip
def test_they_are_there_with_block_steps_if_nobody_says_no(options, there):
    assert Hermite(*plummer(20, seed=1), **options).settings.get("subsystems", False) == there


def round_a_star(*orbits):
    """A star of mass 1, and for each mass, distance and angle a body on a circle round it."""
    m, a, angle = np.array([(0, 1, 0), *orbits]).T
    pos = np.c_[np.cos(angle), np.sin(angle), 0 * a] * a[:, None]
    vel = np.c_[-np.sin(angle), np.cos(angle), 0 * a] / np.sqrt(a)[:, None]
    pos[0], vel[0], m[0] = 0, 0, 1
    return m, pos, vel


def test_a_ring_is_block_steps():
    cluster = made(round_a_star(*((0, 1, k) for k in range(40))))
    cluster.evolve(1.0)
    assert max(len(s.ids) for s in cluster.subsystems) <= 8


def test_steps_with_many_orbits_in_them_are_made_shorter():
    """One looks at the clock, and for Ctrl-C, between blocks."""
    cluster = made(round_a_star((1e-3, 1e-5, 0), (1.0, 1.0, 0)), dt_max=1.0)
    cluster.evolve(0.002)
    assert cluster.step_sizes[0] < 1000 * 2 * np.pi * 1e-5**1.5
    assert cluster.subsystems[0].ids == (0, 1, 2)


def test_a_triple_is_one_from_the_start():
    """It began as a pair and a star, which lost 1e-3 of the energy."""
    cluster = made(round_a_star((1.0, 1.0, 0.0), (1.0, 10.0, 1.0)))
    start = cluster.energy().total
    cluster.evolve(2.0)
    assert [s.ids for s in cluster.subsystems] == [(0, 1, 2)]
    assert cluster.energy().total == pytest.approx(start, rel=1e-12)


@pytest.mark.parametrize(("t", "bound"), [(30, 1e-9), (50, 1e-5)])
def test_the_pythagorean_problem(t, bound):
    """No two of its bodies are a pair: all three are one from the start."""
    cluster = made(([3, 4, 5], [(1, 3, 0), (-2, -1, 0), (1, -1, 0)], np.zeros((3, 3))))
    cluster.evolve(t)
    assert np.abs(cluster.pos[0, :2] - PYTHAGOREAN[t]).max() < bound


@pytest.mark.parametrize("far", [0, 20])
@pytest.mark.parametrize("spin", [0.0, 1e-8, 1e-4, 0.01])
@pytest.mark.parametrize("n", [3, 4, 5])
def test_who_meet_as_equals_and_who_collide_keep_the_energy(n, spin, far):
    """A polygon that falls together, far from others: at rest all are at one place in the end."""
    angle = 2 * np.pi * np.arange(n) / n
    pos = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    vel = spin * np.stack([-np.sin(angle), np.cos(angle), 0 * angle], axis=1)
    mass = np.append(np.ones(n), np.full(far, 0.01))
    pos, vel = np.vstack([pos, 40 * plummer(20, 1)[1][:far]]), np.vstack([vel, np.zeros((far, 3))])
    cluster = made((mass, pos, vel))
    before = energy(mass, pos, vel)
    cluster.evolve(2.0)
    kinetic = 0.5 * (mass * (cluster.vel**2).sum(axis=1)).sum()  # of pairs that came of it
    after = energy(mass, cluster.pos, cluster.vel)
    share = 1e-5 if spin > 1e-3 else 1e-3  # below, places are rounding alone when they meet
    assert abs(after - before) < share * max(kinetic, -before)


def test_two_at_one_place_do_nothing_to_each_other():
    m, pos, vel = plummer(16, seed=1)
    pos[1], pos[2] = pos[0], pos[0] + [1e-5, 0, 0]
    cluster = made((m, pos, vel))
    with pytest.warns(Grape6Warning):
        cluster.evolve(0.1)
    assert np.isfinite(cluster.pos).all()


def test_pairs_that_are_there_at_the_start_take_no_step_alone():
    m, x, v = pair(0.99, (0.1, 0.1), 1e-6)
    bodies = [*m, 0.1], np.vstack([x, [1.0, 0, 0]]), np.vstack([v, [0, 0.3, 0]])
    cluster = made(bodies, dt=1 / 64, dt_max=None)
    cluster.evolve(0.5)
    assert energy(*bodies) == pytest.approx(energy(bodies[0], cluster.pos, cluster.vel), rel=1e-8)
    assert cluster.subsystems[0].ids[:2] == (0, 1)


@pytest.mark.parametrize("mass", [0.0, 1e-12, 1e-6])
def test_planets_are_where_they_are_on_their_orbits(mass):
    """Two, far apart: stars would be slowed down."""
    bodies = round_a_star((mass, 0.01, 0), (mass, 1.0, 0))
    cluster = made(bodies, dt_max=1 / 16)
    cluster.evolve(3.0)
    for k, a in ((1, 0.01), (2, 1.0)):
        m = bodies[0][:k]
        d, w = (q[k] - m @ q[:k] / m.sum() for q in (cluster.pos, cluster.vel))
        assert elements(1.0, d, w)[0] == pytest.approx(a, rel=1e-4)
        angle = 3.0 / np.sqrt(a**3)
        assert np.abs(d - a * np.array([np.cos(angle), np.sin(angle), 0])).max() < 0.01 * a


@pytest.mark.backends("cuda gpu")
def test_a_gpu_sums_and_the_host_does_the_rest():
    bodies = with_binaries(64, 8, 1e-3, 0.5)
    cluster = made(bodies, backend="cuda")
    cluster.evolve(0.2)
    assert len(cluster.subsystems) == 8
    after = energy(cluster.mass, cluster.pos, cluster.vel)
    assert after == pytest.approx(energy(*bodies), abs=1e-5)


@pytest.mark.full
def test_a_cluster_goes_through_core_collapse():
    bodies = plummer(128, seed=5)
    cluster = made(bodies, dt_max=1 / 8)
    before = energy(*bodies)
    cluster.evolve(80.0)
    assert abs(energy(cluster.mass, cluster.pos, cluster.vel) / before - 1) < 1e-3
