"""Errors by an angle are those of eps = 0 with any softening, and a sum has no more terms."""

import numpy as np
import pytest

from dominated import SHAPES, bodies
from grape6py._lib.tree_setting import Setting, Targets
from samples import bodies as samples
from samples import truth

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
    given = samples("plummer", where.n)
    tree, found = where.tree(*given), {}
    setting = {"order": order} if order else {"method": "bh"}
    for soft in (0.0, eps):
        true, forces = truth(*given, soft), tree.forces(eps=soft, theta=0.5, **setting)
        found[soft] = [np.percentile(true.errors(forces, of), q) for of in ("acc", "jerk")
                       for q in (50, 95)]  # fmt: skip
    more = 6 if order == 2 else 3  # whose forces know no quadrupoles, and have errors of one sign
    assert (np.array(found[eps]) < more * np.array(found[0.0])).all(), found


@pytest.mark.parametrize("where", ["device"], indirect=True)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_sum_costs_no_more_with_it(where, shape):
    """In terms; soft ones take up to twice as long."""
    given = bodies(shape, where.n, 0.0, seed=3)
    tree = where.tree(given.mass, given.pos).tree
    usual = cost(tree)
    assert all(cost(tree, eps) < 1.3 * usual for eps in EPS)
