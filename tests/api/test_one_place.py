"""All bodies at one place: with eps = 0 zeros, else the potentials -m / eps; never an error."""

from dataclasses import replace

import numpy as np
import pytest

from particles import cloud
from walking import FORMS, one_walk

PLACES = [(0, 0, 0), (0.1, 0.2, 0.3), (-3e20, 1e-20, 7)]
CASES = [(PLACES[0], 1, 0.5), (PLACES[1], 2, 0.0), (PLACES[2], 70, 0.5), (PLACES[0], 70, 0.0),
         (PLACES[1], 1100, 0.0), (PLACES[2], 1100, 0.5)]  # fmt: skip


@pytest.mark.backends("cpu cpu-tree cuda cuda-tree:grape gpu")
def test_force_calls(new_session, mode):
    for place, n, eps in CASES:
        x, v = np.tile(np.array(place, float), (n, 1)), np.zeros((n, 3))
        source = replace(cloud(n), x=x, v=v)
        session = new_session(precision=mode)
        assert session.put_cloud(source) == 0
        found = session.force(n, source.x, source.v, source.index, eps2=eps**2)
        assert found.code == 0, session.error()
        assert not found.acc.any()
        assert not found.jerk.any()
        mass = source.mass
        right = (mass - mass.sum()) / eps if eps else np.zeros(n)  # of all other bodies
        np.testing.assert_allclose(found.pot, right, rtol=2e-6, atol=1e-15)


@pytest.mark.backends("cpu cuda gpu")
@pytest.mark.parametrize("form", FORMS)
def test_walks(new_session, mode, form):
    """A zero-distance pair of a walk adds nothing, with a softening either."""
    session = new_session(precision=mode)
    for place, n, eps in CASES:
        x, mass = np.tile(np.array(place, float), (n, 1)), cloud(n).mass
        found = form(session, one_walk(x, x, mass, eps**2))
        assert found.code == 0
        assert not found.acc.any()
        assert not found.pot.any()


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree gpu")
def test_grape5(boards):
    for place, n, eps in CASES:
        board = boards()
        x, mass = np.tile(np.array(place, float), (n, 1)), cloud(n).mass
        board.load(mass, x)
        assert board("set_eps_to_all", eps) == 0
        code, acc, pot = board.calculate(x)
        assert code == 0
        assert not acc.any()
        np.testing.assert_allclose(np.abs(pot), mass.sum() / eps if eps else 0, rtol=2e-6)
