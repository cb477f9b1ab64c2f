"""Each particle has its own softening, or a spline's: sums of trees and pair by pair are those of
plain sums, on the host and on a device. With one of Plummer's for all, errors by an angle are those
of eps = 0, and a sum has no more terms."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dominated
import samples
import softened
from grape6py import Leapfrog, Tree, plummer
from grape6py._arrays.modules import on_host
from grape6py._lib.tree_setting import Setting, Targets
from grape6py.errors import ArgumentError
from particles import relative

pytestmark = pytest.mark.filterwarnings("ignore:.*at one place")
LAWS = ["plummer", "spline"]
PLACES = pytest.mark.parametrize("where", ["host", "device", "blocks"], indirect=True)


def lengths(kind, pos, seed):
    """Two kinds of particles, by the density, over decades, none of some, all alike, and so on."""
    rng, n = np.random.default_rng(seed), len(pos)
    by_density = (1 + (pos**2).sum(axis=1)) ** (5 / 6) * (4.2 / n) ** (1 / 3)
    return {
        "two": rng.choice([0.01, 0.05], n),
        "density": 0.5 * by_density,
        "decades": 10 ** rng.uniform(-6, -1, n),
        "some": rng.choice([0.0, 0.03], n),
        "alike": np.full(n, 0.02),
        "large": rng.uniform(0.3, 3, n),
        "none": np.zeros(n),
    }[kind]


def errors(found, true):
    return [np.percentile(relative(a, b), q) for a, b in zip((found.acc, found.jerk), true[:2],
            strict=True) for q in (50, 99)]  # fmt: skip


@PLACES
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", ["two", "density", "decades", "some", "alike", "large", "none"])
def test_sums_are_those_of_plain_sums(where, monkeypatch, law, kind):
    """As accurate as with no softening by an angle, as asked by an accuracy, in both methods."""
    where.never_few(monkeypatch)
    mass, pos, vel = plummer(where.n, seed=4)
    eps = lengths(kind, pos, 4)
    true = softened.forces(mass, pos, vel, eps, spline=law == "spline")
    tree = where.tree(mass, pos, vel, eps=eps, softening=law)
    for setting, limits in (
        ({"theta": 0.6}, (1e-3, 2e-2, 1e-2, 0.2)),
        ({"method": "bh", "theta": 0.6}, (1e-3, 8e-3, 8e-3, 0.1)),
        ({"accuracy": 1e-4}, (1.5e-4, 5e-4, 5e-3, 0.1)),
        ({"theta": 2.0**-20}, (1e-6, 5e-6, 1e-5, 1e-3)),
    ):
        found = tree.forces(**setting)
        assert (np.array(errors(found, true)) < limits).all(), setting
        assert np.abs(found.pot / true[2] - 1).max() < 3e-3, setting


@PLACES
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(law=st.sampled_from(LAWS), n=st.sampled_from([0, 1, 2, 3, 33, 300]), seed=st.integers(0, 99),
       kind=st.sampled_from(["two", "decades", "some", "large"]), same=st.booleans(),
       scale=st.sampled_from([1e-25, 1e-3, 1.0, 1e9, 1e30]), far=st.sampled_from([0.0, 1e7, 1e14]),
       heavy=st.sampled_from([1.0, 1e8]), at_eps=st.sampled_from([0.0, 0.2]))  # fmt: skip
def test_targets_of_all_kinds(where, law, n, kind, scale, far, heavy, same, at_eps, seed):
    """Particles, by their numbers with their own softening, and others with that given."""
    rng = np.random.default_rng(seed)
    mass, pos, vel = plummer(max(n, 1), seed=seed)
    mass, pos, vel = mass[:n], pos[:n] * scale, vel[:n]
    if n > 2:
        pos[0] += far * scale if n > 32 else 0.0  # else a target may be nearer than a box resolves
        mass[1] *= heavy
        pos[2] = pos[1] if same else pos[2]
    eps = lengths(kind, pos / scale, seed) * scale if n else np.zeros(0)
    own = np.array([*rng.integers(0, n, 5 if n else 0), -1, -1], np.int32)
    at, at_vel = rng.standard_normal((len(own), 3)) * scale, rng.standard_normal((len(own), 3))
    at[:-2], at_vel[:-2] = pos[own[:-2]], vel[own[:-2]]
    each = np.array([*eps[own[:-2]], at_eps * scale, at_eps * scale])
    tree = where.tree(mass, pos, vel, eps=eps, softening=law)
    found = tree.forces(at, at_vel, eps=at_eps * scale, self_index=own)
    true = softened.forces(mass, pos, vel, eps, spline=law == "spline", at=at, at_vel=at_vel,
                           at_eps=each, own=own)  # fmt: skip
    sizes = softened.forces(np.abs(mass), pos, vel, eps, spline=law == "spline", at=at,
                            at_vel=at_vel, at_eps=each, own=own)  # fmt: skip
    for mine, right, size in zip((found.acc, found.pot), (true[0], true[2]), (sizes[0], sizes[2]),
                                 strict=True):  # fmt: skip
        limit = 1e-5 * np.abs(size).max() + 1e-5 * np.abs(right)
        assert (np.abs(mine - right) <= limit).all()


@pytest.mark.parametrize("where", ["host", "device"], indirect=True)
@pytest.mark.parametrize("kind", ["clumps", "site", "far"])
@pytest.mark.parametrize("law", LAWS)
def test_sets_that_no_one_box_resolves(where, kind, law):
    """Pair by pair, in double."""
    mass, pos, vel = plummer(400, seed=5)
    pos[:100] = {"clumps": pos[:100] * 1e-12, "site": pos[:1], "far": pos[:100] + 1e14}[kind]
    eps = lengths("some", pos, 5) if kind != "clumps" else np.full(400, 1e-13)
    true = softened.forces(mass, pos, vel, eps, spline=law == "spline")
    found = where.tree(mass, pos, vel, eps=eps, softening=law).forces()
    assert relative(found.acc, true[0]).max() < 1e-4
    assert relative(found.jerk, true[1]).max() < 1e-3


def test_one_spline_for_all_and_momentum():
    mass, pos, vel = plummer(6000, seed=6)
    all_alike = softened.forces(mass, pos, vel, np.zeros(6000), spline=True, at=pos[:50],
                                at_vel=vel[:50], at_eps=0.1, own=range(50))  # fmt: skip
    with Tree(mass, pos, vel, softening="spline", backend="cpu") as tree:
        found = tree.forces(eps=0.1, accuracy=1e-4, momentum=True)
        assert relative(found.acc[:50], all_alike[0]).max() < 1e-3
        assert np.abs(mass @ found.acc).max() < 1e-15
        assert (tree.copy().forces(eps=0.1).acc == tree.forces(eps=0.1).acc).all()
    eps = lengths("two", pos, 6)
    with Tree(mass, pos, vel, eps=eps, backend="cpu") as tree, tree.copy() as other:
        assert (tree.forces().acc == other.forces().acc).all()


def test_beyond_h_bits_are_those_without_softening():
    """Pair by pair, where no two particles are nearer than h."""
    mass, pos, vel = plummer(500, seed=7)
    with Tree(mass, pos, vel, softening="spline", backend="cpu") as tree:
        near = tree.nearest(1).distance.min()
        found = tree.forces(eps=0.3 * near, theta=2**-20), tree.forces(theta=2**-20)
    assert all((a == b).all() for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("where", ["host", "device"], indirect=True)
def test_what_is_refused(where):
    mass, pos, _ = plummer(20, seed=8)
    for eps, text in ((0.1, "give an array"), (np.full(20, -0.1), "is negative"),
                      (np.ones(19), "shape"), (np.full(20, np.nan), "not finite"),
                      (np.full(20, np.inf), "not finite")):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            where.tree(mass, pos, eps=eps)
    with pytest.raises(ArgumentError, match="plummer, spline"):
        where.tree(mass, pos, softening="w2")
    with pytest.raises(ArgumentError, match="their own eps"):
        where.tree(mass, pos, eps=np.ones(20)).forces(eps=0.1)


@pytest.mark.parametrize("where", ["host", "device"], indirect=True)
@pytest.mark.parametrize(("law", "each"), [("plummer", True), ("spline", True), ("spline", False)])
@pytest.mark.parametrize("steps", [{"dt": 1 / 128, "theta": 0.01}, {"dt_max": 1 / 16}])
def test_a_leapfrog_keeps_the_energy_of_its_law(where, tmp_path, law, each, steps):
    """And goes on from a file with the same bits."""
    mass, pos, vel = plummer(300, seed=9)
    eps = lengths("two", pos, 9) if each else 0.05
    run = where.leapfrog(mass, pos, vel, eps=eps, softening=law, **steps)
    of = np.broadcast_to(eps, 300)
    acc, jerk, pot = softened.forces(mass, pos, vel, of, spline=law == "spline")
    assert relative(on_host(run.acc), acc).max() < 1e-5
    assert relative(on_host(run.jerk), jerk).max() < 1e-3
    assert np.abs(on_host(run.potential()) / pot - 1).max() < 1e-5
    start = run.energy().total
    run.evolve(0.25)
    run.save(tmp_path / "run.h5")
    others = [Leapfrog.load(tmp_path / "run.h5"), run.copy()]
    for one in (run, *others):
        one.evolve(0.5)
    assert abs(run.energy().total / start - 1) < 2e-3
    for other in others if where.name == "host" else ():  # which are there, too
        assert (on_host(run.pos) == on_host(other.pos)).all()
    with pytest.raises(ArgumentError):
        run.binaries()
    with pytest.raises(ArgumentError, match="make a new"):
        run.remove(3)


def test_steps_go_by_each_bodys_own_softening_and_escapers_take_theirs_away():
    mass, pos, vel = plummer(200, seed=10)
    eps = np.where(np.arange(200) < 100, 0.3, 0.003)
    pos[5] = 50.0
    run = Leapfrog(mass, pos, vel, eps=eps, dt_max=1 / 8, backend="cpu-tree", boundary=40)
    assert run.n == 199
    assert (run._blocks.eps == np.delete(eps, 5)).all()
    wanted = np.sqrt(2 * 0.025 * run._blocks.eps / np.linalg.norm(run.acc, axis=1))
    assert (run.state()["dt"] <= np.minimum(wanted, 1 / 8)).all()
    assert (run.state()["dt"] > wanted / 2.001).any()
    for other in ({"backend": "cpu"}, {"backend": "cpu", "softening": "spline", "eps": 0.1}):
        with pytest.raises(ArgumentError, match="are a tree's"):
            Leapfrog(mass, pos, vel, **{"eps": eps, "dt": 0.1} | other)
    with pytest.raises(ArgumentError, match="an eps is 0"):
        Leapfrog(mass, pos, vel, eps=0 * eps + (eps > 0.1), dt_max=0.1)


# ---- one softening for all -----------------------------------------------------------------------
EPS = 0.0, 1e-4, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 1e3
COST = np.array([1.0, 6.0, 60.0])  # of pairs, cells on targets and on groups, about, in pairs


def cost(tree, eps=0.0):
    """Of a sum, in pairs."""
    return COST @ tree._tree.forces(Setting(0.6, 5, eps**2), Targets()).done


@pytest.mark.parametrize("where", ["host", "device", "ranks", "mixed", "blocks"], indirect=True)
@pytest.mark.parametrize("eps", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("order", [2, 5, 6, None])
def test_an_angle_has_the_errors_of_eps_0(where, eps, order):
    """Accelerations and jerks fall with it as they do there."""
    given = samples.bodies("plummer", where.n)
    tree, found = where.tree(*given), {}
    setting = {"order": order} if order else {"method": "bh"}
    for soft in (0.0, eps):
        true, forces = samples.truth(*given, soft), tree.forces(eps=soft, theta=0.5, **setting)
        found[soft] = [np.percentile(true.errors(forces, of), q) for of in ("acc", "jerk")
                       for q in (50, 95)]  # fmt: skip
    more = 6 if order == 2 else 3  # whose forces know no quadrupoles, and have errors of one sign
    assert (np.array(found[eps]) < more * np.array(found[0.0])).all(), found


@pytest.mark.parametrize("where", ["device"], indirect=True)
@pytest.mark.parametrize("shape", dominated.SHAPES)
def test_a_sum_costs_no_more_with_it(where, shape):
    """In terms; soft ones take up to twice as long."""
    given = dominated.bodies(shape, where.n, 0.0, seed=3)
    tree = where.tree(given.mass, given.pos).tree
    usual = cost(tree)
    assert all(cost(tree, eps) < 1.3 * usual for eps in EPS)
