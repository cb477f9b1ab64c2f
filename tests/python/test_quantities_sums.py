"""Sums of forces in quantities: accelerations, Tree, Grape6."""

import copy
import pickle

import numpy as np
import pytest
from astropy import constants
from astropy import units as u

from grape6py import Grape6, Tree, accelerations, plummer
from grape6py.errors import Grape6Error
from in_quantities import (
    GALACTIC,
    HENON,
    KMS,
    NEWTON,
    all_by_hand,
    assert_same,
    by_hand,
    is_close,
    is_in,
    stars,
)
from runs import here  # noqa: F401 (fixture)


def test_accelerations_are_quantities():
    mass, pos, vel = stars()
    eps, numbers = 0.01 * u.pc, all_by_hand(stars())
    plain = accelerations(*numbers[:2], 0.01, vel=numbers[2], jerk=True, potential=True, G=NEWTON,
                          precision="double")  # fmt: skip
    found = accelerations(mass, pos, eps, vel=vel, jerk=True, potential=True, precision="double")
    for each, wanted, unit in zip(found, plain, (KMS / u.Myr, KMS / u.Myr**2, KMS**2), strict=True):
        assert_same(each, wanted, unit, 1e-12)
    alone = accelerations(mass, pos, eps=eps, precision="double")
    assert_same(alone, plain[0], KMS / u.Myr, 1e-12)
    acc, pot = accelerations(mass, pos, eps, potential=True, precision="double")
    assert_same(pot, plain[2], KMS**2, 1e-12)
    acc, jerk = accelerations(mass, pos, eps, vel=vel, jerk=True, precision="double")
    assert_same(acc, plain[0], KMS / u.Myr, 1e-12)
    assert_same(jerk, plain[1], KMS / u.Myr**2, 1e-12)


def test_the_acceleration_of_the_earth_is_newtons():
    acc = accelerations([1.0, 0] * u.Msun, [[0, 0, 0], [1, 0, 0]] * u.AU, precision="double")
    wanted = -constants.G * u.Msun / u.AU**2
    assert acc[1, 0].to_value(u.m / u.s**2) == pytest.approx(wanted.to_value(u.m / u.s**2), 1e-12)
    assert acc.shape == (2, 3)


def trees():
    mass, pos, vel = stars()
    plain = all_by_hand(stars())
    return Tree(pos, mass, vel), Tree(plain[1], plain[0] * NEWTON, plain[2])


def test_a_tree_gives_forces_in_quantities():
    tree, plain = trees()
    for given in ({"eps": 0.1 * u.pc, "theta": 0.5}, {"eps": 1e4 * u.AU, "method": "bh"},
                  {"targets": np.eye(3) * u.kpc, "vel": np.eye(3) * u.m / u.s, "theta": 0.3},
                  {"targets": stars()[1][:4], "self_index": [0, 1, 2, 3]}):  # fmt: skip
        found, wanted = tree.forces(**given), plain.forces(**all_by_hand(given))
        assert type(found).__name__ == "TreeForces"
        for name, unit in (("acc", KMS / u.Myr), ("jerk", KMS / u.Myr**2), ("pot", KMS**2)):
            assert_same(getattr(found, name), getattr(wanted, name), unit, 1e-4)
    assert Tree(stars()[1], stars()[0]).forces().jerk is None
    assert tree.units.G == 1


def test_a_tree_finds_neighbours_in_quantities():
    tree, plain = trees()
    found, wanted = tree.nearest(5), plain.nearest(5)
    assert np.array_equal(found.index, wanted.index)
    assert_same(found.distance, wanted.distance, u.pc, 1e-12)
    targets = np.eye(3) * u.kpc
    assert_same(tree.nearest(2, targets).distance, plain.nearest(2, by_hand(targets)).distance,
                u.pc, 1e-12)  # fmt: skip
    for radius in (0.5 * u.pc, np.linspace(0, 2, 30) * u.pc, 1e5 * u.AU):
        for one, other in zip(tree.neighbours(radius), plain.neighbours(by_hand(radius)),
                              strict=True):  # fmt: skip
            assert np.array_equal(one, other)
    csr = tree.neighbours(1 * u.pc, targets, csr=True)
    assert len(csr) == 3


def test_the_bound_of_a_tree_is_a_share_without_a_unit():
    """It is the same whatever the units are."""
    mass, pos, vel = plummer(2000, 1, units=HENON)
    with Tree(pos, mass, vel) as tree, Tree(by_hand(pos), by_hand(mass) * NEWTON) as plain:
        size = np.linalg.norm(tree.forces(eps=0.1 * u.pc).acc, axis=1)
        wanted = plain.bound(1e-3, eps=0.1, last_acc=by_hand(size))
        found = tree.bound(1e-3, eps=0.1 * u.pc, last_acc=size)
        smaller = Tree(by_hand(pos) / 4, by_hand(mass) * NEWTON)
        assert smaller.bound(1e-3, eps=0.1 / 4, last_acc=by_hand(size) * 16) == wanted
        assert float(found) == pytest.approx(wanted, rel=1e-6)
        acc = tree.forces(eps=0.1 * u.pc, last_acc=size, bound=wanted).acc
        again = plain.forces(eps=0.1, last_acc=by_hand(size), bound=wanted).acc
        assert is_close(by_hand(acc), again, 1e-5)  # by rounding another cell may be opened


@pytest.mark.parametrize("way", [
    copy.copy, copy.deepcopy, lambda c: c.copy(), lambda c: pickle.loads(pickle.dumps(c)),
])  # fmt: skip
def test_copies_of_a_tree_keep_quantities(way):
    tree = Tree(*stars()[1::-1])
    other = way(tree)
    assert isinstance(other, Tree)
    assert len(other) == len(tree) == 30
    assert np.array_equal(other.forces().acc, tree.forces().acc)
    assert is_in(other.forces().acc, KMS / u.Myr)
    with tree as same:
        assert same is tree
    with pytest.raises(Grape6Error, match="closed"):
        tree.forces()


def test_a_session_computes_in_quantities():
    mass, pos, vel = stars()
    numbers = all_by_hand(stars())
    with Grape6(units=GALACTIC, precision="double") as grape, Grape6(precision="double") as plain:
        grape.set_particles(mass, pos.to(u.AU), vel)
        plain.set_particles(numbers[0] * NEWTON, *numbers[1:])
        for given in ({"eps": 0.1 * u.pc, "nn": True}, {"h": 0.5 * u.pc, "eps": 0.0 * u.pc},
                      {"pos": np.eye(3) * u.pc, "vel": np.eye(3) * KMS, "eps": 1 * u.AU},
                      {"time": 10 * u.kyr}):  # fmt: skip
            found, wanted = grape.forces(**given), plain.forces(**all_by_hand(given))
            for name, unit in (("acc", KMS / u.Myr), ("jerk", KMS / u.Myr**2), ("pot", KMS**2)):
                assert_same(getattr(found, name), getattr(wanted, name), unit, 1e-12)
            if "nn" in given:
                assert_same(found.distance, wanted.distance, u.pc, 1e-6)
                assert np.array_equal(found.nearest, wanted.nearest)
            if "h" in given:
                for one, other in zip(found.neighbours, wanted.neighbours, strict=True):
                    assert np.array_equal(one, other)
        assert_same(grape.time, by_hand(10 * u.kyr), u.Myr, 1e-14)
        assert grape.n == 30
        assert grape.index.tolist() == list(range(30))
        grape.threads = 2
        assert grape.threads == 2
    with pytest.raises(Grape6Error, match="closed"):
        grape.forces()


def test_a_session_predicts_particles_in_quantities():
    rng = np.random.default_rng(1)
    given = {"mass": rng.random(9) * u.Msun, "pos": rng.normal(size=(9, 3)) * u.pc,
             "vel": rng.normal(size=(9, 3)) * KMS, "acc": rng.normal(size=(9, 3)) * KMS / u.Myr,
             "jerk": rng.normal(size=(9, 3)) * KMS / u.Myr**2, "time": 5 * u.kyr,
             "snap": rng.normal(size=(9, 3)) * KMS / u.Myr**3}  # fmt: skip
    with Grape6(units=GALACTIC, precision="double") as grape, Grape6(precision="double") as plain:
        grape.set_particles(**given)
        numbers = all_by_hand(given)
        plain.set_particles(**numbers | {"mass": numbers["mass"] * NEWTON})
        found = grape.forces(np.eye(3) * u.pc, time=0.1 * u.Myr)
        wanted = plain.forces(np.eye(3), time=by_hand(0.1 * u.Myr))
        assert_same(found.acc, wanted.acc, KMS / u.Myr, 1e-12)
        grape.set_particles([1.0] * u.Msun, [[0.0, 0, 1]] * u.kpc, address=[3])
        assert grape.n == 9


def test_walks_are_in_quantities():
    mass, pos, _ = stars()
    walks = [0, 3, 9], [0, 10, 20]
    with Grape6(units=HENON, precision="double") as grape, Grape6(precision="double") as plain:
        found = grape.walks(walks[0], pos[:9], walks[1], pos[:20], mass[:20],
                            eps=500 * u.AU)  # fmt: skip
        wanted = plain.walks(walks[0], by_hand(pos)[:9], walks[1], by_hand(pos)[:20],
                             by_hand(mass)[:20] * NEWTON, eps=by_hand(500 * u.AU))  # fmt: skip
        assert_same(found[0], wanted[0], KMS / u.Myr, 1e-9)
        assert_same(found[1], wanted[1], KMS**2, 1e-9)
