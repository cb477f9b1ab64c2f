"""Few bodies very far from all others, and many at one place: on a device they stay there."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grape6py import Tree, plummer
from particles import relative
from samples import truth

pytestmark = pytest.mark.filterwarnings("ignore:.*pairs of a tree at one place")
FAR = 10.0 ** np.array([1, 3, 5, 7, 9, 12, 15])


def stays(monkeypatch):
    """Has a tree of the host fail."""
    monkeypatch.setattr("grape6py.cuda.tree.device_tree.Replica", None)


def body(n, count, far, heavy, shift, seed):
    """A cluster, `count` of whose bodies are as far as `far` says, with that share of the mass."""
    rng = np.random.default_rng(seed)
    mass, pos, vel = plummer(n, seed=seed)
    which = rng.choice(n, count, replace=False)
    way = rng.standard_normal((count, 3))
    distance = rng.choice(far, count) * rng.uniform(1, 3, count)
    pos[which] = way * (distance / np.linalg.norm(way, axis=1))[:, None]
    mass[which] *= heavy * n / count
    return mass, pos + shift * np.array([1.0, -2.0, 0.5]), vel, which


@pytest.mark.parametrize("where", ["device", "blocks"], indirect=True)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(count=st.sampled_from([1, 2, 5, 33, 46]), heavy=st.sampled_from([0.0, 1e-3, 1.0, 1e6]),
       far=st.lists(st.sampled_from(FAR), min_size=1, max_size=5), seed=st.integers(0, 99),
       shift=st.sampled_from([0.0, 1e4]), eps=st.sampled_from([0.0, 0.01, 1.0, 1e7]))  # fmt: skip
def test_far_bodies_cost_no_accuracy(where, monkeypatch, count, far, heavy, shift, eps, seed):
    mass, pos, vel, which = body(3000, count, far, heavy, shift, seed)
    with monkeypatch.context() as patch:
        stays(patch)
        where.never_few(patch)
        found = where.tree(mass, pos, vel).forces(eps=eps, accuracy=1e-4)
    some = np.concatenate([which, np.setdiff1d(np.arange(3000), which)[::10]])
    true = truth(mass, pos, vel, eps, at=pos[some], at_vel=vel[some], own=some)
    found = found._replace(**{name: getattr(found, name)[some] for name in found._fields})
    for name, limit in (("acc", 5e-4), ("jerk", 3e-2)):
        assert np.percentile(true.errors(found, name), 95) < limit, name
    assert true.rounding(found, "acc") < 1e-3
    assert true.rounding(found, "pot") < 1e-3


@pytest.mark.parametrize("where", ["device"], indirect=True)
def test_targets_of_all_kinds_and_a_bound_with_far_bodies(where, monkeypatch):
    mass, pos, vel, which = body(3000, 46, FAR[2:], 1.0, 0.0, 3)
    stays(monkeypatch)
    where.never_few(monkeypatch)
    tree = where.tree(mass, pos, vel)
    number = np.array([*which, *range(200), -1, -1, -1])
    at = np.concatenate([pos[number[:-3]], [[1e4, 0, 0], [1e9, 1, 2], [0, 0, 1e13]]])
    speed = np.concatenate([vel[number[:-3]], np.ones((3, 3))])
    own = tree.forces(accuracy=1e-4)
    given = tree.forces(at, speed, self_index=number, accuracy=1e-4)
    with Tree(mass, pos, vel, backend="cpu") as host:
        right = host.forces(at, speed, self_index=number, theta=2**-20)
    for mine in (given, own._replace(**{k: getattr(own, k)[number[:-3]] for k in own._fields})):
        rows = len(mine.acc)
        assert np.percentile(relative(mine.acc, right.acc[:rows]), 98) < 1e-3
        assert np.percentile(relative(mine.jerk, right.jerk[:rows]), 95) < 1e-2
        assert np.abs(mine.pot / right.pot[:rows] - 1).max() < 1e-4
    momentum = tree.forces(accuracy=1e-4, momentum=True).acc
    assert np.abs(mass @ momentum).max() < 1e-12 * (mass @ np.linalg.norm(momentum, axis=1))
    monkeypatch.undo()
    with Tree(mass, pos, backend="cpu") as host:
        assert (tree.nearest(3)[0] == host.nearest(3)[0]).all()


@pytest.mark.parametrize("where", ["device"], indirect=True)
@pytest.mark.parametrize(
    ("places", "apart", "beyond"), [(1, 1.0, 0), (2, 1.0, 3), (3, 1e-9, 0), (5, 1.0, 40)]
)
@pytest.mark.parametrize("eps", [0.0, 0.3])
def test_any_number_may_stand_at_one_place(where, monkeypatch, places, apart, beyond, eps):
    """More than a crowd each, in one of the smallest cells or not, with bodies far away or not."""
    n, rng = 2200 * places + 900, np.random.default_rng(places)
    mass, pos, vel = plummer(n, seed=3)
    mass = mass * rng.uniform(0.5, 1.5, n)
    shared = rng.permutation(n)[: 2150 * places]
    pos[shared] = apart * rng.standard_normal((places, 3))[np.arange(len(shared)) % places]
    others = np.setdiff1d(np.arange(n), shared)
    pos[others[:beyond]] *= 1e7
    stays(monkeypatch)
    where.never_few(monkeypatch)
    some = np.concatenate([shared[:40], others[::9]])
    true = truth(mass, pos, vel, eps, at=pos[some], at_vel=vel[some], own=some)
    moving, at_rest = where.tree(mass, pos, vel), where.tree(mass, pos)
    for setting in ({"theta": 0.3}, {"accuracy": 1e-3}):
        own = moving.forces(eps=eps, **setting)
        of_targets = moving.forces(pos[some], vel[some], self_index=some, eps=eps, **setting)
        for found in (own._replace(**{k: getattr(own, k)[some] for k in own._fields}), of_targets):
            assert true.rounding(found, "acc") < 2e-3
            assert true.rounding(found, "pot") < 1e-3
            assert true.rounding(found, "jerk") < 2e-2
        plain = at_rest.forces(eps=eps, **setting)
        plain = plain._replace(acc=plain.acc[some], pot=plain.pot[some])
        assert np.percentile(true.errors(plain), 95) < 5e-3
        assert true.rounding(plain, "pot") < 1e-3
    for tree in moving, at_rest:
        found = tree.forces(eps=eps, momentum=True)
        for of_all in (found.acc, found.jerk)[: 1 + (tree is moving)]:
            assert np.abs(mass @ of_all).max() < 1e-10 * (mass @ np.linalg.norm(of_all, axis=1))
