"""Few particles: with an accuracy their pairs are summed one by one, whatever dominates."""

import itertools

import numpy as np
import pytest

from grape6py import Leapfrog, Tree, plummer, reference
from grape6py.errors import ArgumentError, Grape6Warning
from particles import relative

FEW = 4096
ROUNDING = 2e-6


def ring(n):
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    pos = np.c_[np.cos(angle), np.sin(angle), 0 * angle]
    pos[0] = 0
    return np.where(np.arange(n) == 0, 1.0, 0.0), pos, pos[:, [1, 0, 2]] * [-1, 1, 0]


def heavy(n):
    mass, pos, vel = plummer(n, seed=2)
    mass[n // 3] = 1e3
    return mass, pos, vel


def signed(n):
    mass, pos, vel = plummer(n, seed=3)
    mass[::3] *= -2
    return mass, pos, vel


def outlier(n):
    mass, pos, vel = plummer(n, seed=4)
    pos[-1] = 1e12
    return mass, pos, vel


@pytest.mark.parametrize("moving", [True, False], ids=["jerk", "acc"])
@pytest.mark.parametrize("n", [2, 40, 1000])
@pytest.mark.parametrize("make", [ring, heavy, signed, outlier])
def test_errors_are_those_of_rounding(make, n, moving):
    mass, pos, vel = make(n)
    # Where forces cancel, rounding is measured by the sum of their absolute values.
    exact = reference.direct_sum(mass, pos, vel, eps2=1e-6, extended=True)
    size = np.linalg.norm(reference.direct_sum(np.abs(mass), pos, vel, eps2=1e-6).acc, axis=1)
    size = np.maximum(size, np.linalg.norm(exact.acc, axis=1)) + 1e-300
    with Tree(mass, pos, vel if moving else None) as tree:
        last = np.linalg.norm(exact.acc, axis=1)
        bound = tree.bound(1e-2, eps=1e-3)
        everybody = {"targets": pos, "self_index": np.arange(n), "vel": vel if moving else None}
        for given in ({}, {"accuracy": 1e-2}, {"bound": bound, "last_acc": last}, everybody):
            found = tree.forces(eps=1e-3, **given)
            wrong = np.linalg.norm(found.acc - exact.acc, axis=1) / size
            assert np.median(wrong) < ROUNDING, given
            assert np.percentile(wrong, 99) < 1e-4, given
            if moving and make is not signed:
                assert np.median(relative(found.jerk, exact.jerk)) < 1e-4
            assert (found.jerk is None) == (not moving)


@pytest.mark.parametrize("n", [FEW, FEW + 1])
def test_the_number_and_the_opening_angle_decide(n):
    mass, pos, _ = plummer(n, seed=5)
    exact = reference.direct_sum(mass, pos, 0 * pos, rows=np.arange(200)).acc
    with Tree(mass, pos) as tree:
        wanted = np.median(relative(tree.forces(accuracy=1e-2).acc[:200], exact))
        by_angle = np.median(relative(tree.forces(theta=0.75).acc[:200], exact))
        of_few = np.median(relative(tree.forces(pos[:200], self_index=np.arange(200)).acc, exact))
    assert (wanted < ROUNDING) == (n <= FEW)
    assert by_angle > 1e-5
    assert of_few < ROUNDING


def test_threads_do_not_matter_and_forces_add_up_to_zero():
    mass, pos, vel = heavy(3000)
    found = []
    for threads in (1, 2, 5):
        with Tree(mass, pos, vel, threads=threads) as tree:
            found.append(tree.forces(momentum=True))
    for other in found[1:]:
        assert all(map(np.array_equal, found[0], other))
    net = (mass[:, None] * found[0].acc).sum(axis=0)
    assert np.abs(net).max() < 1e-14 * np.abs(mass[:, None] * found[0].acc).sum()


def test_none_one_and_two_at_one_place():
    for n in (0, 1):
        with Tree(np.ones(n), np.zeros((n, 3))) as tree:
            acc, pot, jerk = tree.forces()
        assert (acc.tolist(), pot.tolist(), jerk) == (np.zeros((n, 3)).tolist(), [0.0] * n, None)
    tree = Tree([1.0, 2.0, 4.0], [[0, 0, 0], [0, 0, 0], [2, 0, 0]])
    with tree, pytest.warns(Grape6Warning, match="one place"):
        acc, pot, _ = tree.forces()
    assert acc[:, 0] == pytest.approx([1.0, 1.0, -0.75], rel=1e-6)
    assert pot == pytest.approx([-2, -2, -1.5], rel=1e-6)


@pytest.mark.parametrize("options", [{}, {"method": "bh"}, {"accuracy": 1e-2}], ids=str)
@pytest.mark.parametrize("step", [{"dt": 1 / 64}, {"dt_max": 1 / 32}], ids=str)
def test_a_leapfrog_of_few_bodies_has_the_path_of_direct_sums(tmp_path, options, step):
    bodies = plummer(60, seed=2)
    made = [
        Leapfrog(*bodies, eps=0.05, **step, **kind)
        for kind in ({"backend": "cpu-tree"} | options, {"backend": "cpu", "precision": "double"})
    ]
    for one in made:
        one.evolve(0.125)
    assert np.abs(made[0].pos - made[1].pos).max() < 1e-5
    assert np.median(relative(made[0].jerk, made[1].jerk)) < 1e-4
    made[0].save(tmp_path / "few.h5")
    again = Leapfrog.load(tmp_path / "few.h5", backend="cpu-tree")
    assert again.settings == made[0].settings
    for one in (made[0], again):
        one.evolve(0.25)
    assert np.array_equal(again.pos, made[0].pos)
    assert "few_bodies" not in Leapfrog(*bodies, eps=0.05, theta=0.75, **step).settings


@pytest.mark.parametrize("n", [1, 3, 50])
def test_mass_and_pos_come_in_either_order(n):
    mass, pos, vel = heavy(n)
    found = []
    for given, options in (
        ((mass, pos, vel), {}),
        ((pos, mass, vel), {}),
        ((mass,), {"pos": pos, "vel": vel}),
        ((), {"vel": vel, "pos": pos, "mass": mass}),
        ((mass.tolist(), pos.tolist()), {"vel": vel.tolist()}),
    ):
        with Tree(*given, **options) as tree:
            found.append(tree.forces(eps=0.1))
    for one, other in itertools.pairwise(found):
        assert all(map(np.array_equal, one, other))
    with Tree(1.0, pos) as light, Tree(pos, 1.0) as other:
        assert np.array_equal(light.forces(eps=0.1).acc, other.forces(eps=0.1).acc)


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((3, 3), (3, 3)), ((2,), (5,))], ids=str)
def test_shapes_that_tell_no_order_are_refused(shapes):
    with pytest.raises(ArgumentError, match=r"mass has shape .* or Tree\(pos, mass\)"):
        Tree(*map(np.ones, shapes))
