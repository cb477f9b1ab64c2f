"""All bodies at one place: with eps = 0 zeros, else the potentials -m / eps; never an error."""

from dataclasses import replace

import numpy as np
import pytest

from particles import cloud
from walking import FORMS, one_walk

pytestmark = pytest.mark.backends("cpu cuda gpu")
PLACES = pytest.mark.parametrize("place", [(0, 0, 0), (0.1, 0.2, 0.3), (-3e20, 1e-20, 7)], ids=str)
SIZES = pytest.mark.parametrize("n", [1, 2, 70, 1100])
SOFTENED = pytest.mark.parametrize("eps", [0.0, 0.5])


def potentials(mass, eps):
    """Of all other bodies; without softening a pair adds nothing."""
    return (mass - mass.sum()) / eps if eps else np.zeros(len(mass))


@pytest.mark.backends("cpu cpu-tree cuda cuda-tree gpu")
@PLACES
@SIZES
@SOFTENED
def test_force_calls(new_session, mode, place, n, eps):
    x, v = np.tile(np.array(place, float), (n, 1)), np.zeros((n, 3))
    source = replace(cloud(n), x=x, v=v)
    session = new_session(precision=mode)
    assert session.put_cloud(source) == 0
    found = session.force(n, source.x, source.v, source.index, eps2=eps**2)
    assert found.code == 0, session.error()
    assert not found.acc.any()
    assert not found.jerk.any()
    np.testing.assert_allclose(found.pot, potentials(source.mass, eps), rtol=2e-6, atol=1e-15)


@pytest.mark.parametrize("form", FORMS)
@PLACES
@SIZES
@SOFTENED
def test_walks(new_session, mode, form, place, n, eps):
    """A zero-distance pair of a walk adds nothing, with a softening either."""
    x, mass = np.tile(np.array(place, float), (n, 1)), cloud(n).mass
    found = form(new_session(precision=mode), one_walk(x, x, mass, eps**2))
    assert found.code == 0
    assert not found.acc.any()
    assert not found.pot.any()


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree gpu")
@PLACES
@SIZES
@SOFTENED
def test_grape5(board5, place, n, eps):
    x, mass = np.tile(np.array(place, float), (n, 1)), cloud(n).mass
    board5.load(mass, x)
    assert board5("set_eps_to_all", eps) == 0
    code, acc, pot = board5.calculate(x)
    assert code == 0
    assert not acc.any()
    np.testing.assert_allclose(np.abs(pot), mass.sum() / eps if eps else 0, rtol=2e-6)
