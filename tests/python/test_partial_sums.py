"""Partial sums in Python: shares of the particles add up to the bits of one session with all."""

import numpy as np
import pytest

from grape6py import Grape6, partial, plummer
from grape6py.errors import ArgumentError, NotFiniteError

N = 5000
MASS, POS, VEL = plummer(N, seed=3)
POS = POS + np.array([1000, 0, -3])  # so that the origin counts
TARGETS, SPEED = POS[::7] + 0.01, VEL[::7]
BLOCKS = [slice(0, 1024), slice(1024, 4096), slice(4096, None)]


def bits(forces):
    return [array.tobytes() for array in (forces.acc, forces.jerk, forces.pot)]


def whole(**options):
    session = Grape6(backend="cpu", **options)
    session.set_particles(MASS, POS, VEL)
    return session


def rows_of(shares, scale, **options):
    found = []
    for share in shares:
        with Grape6(backend="cpu", **options) as part:
            part.set_particles(MASS[share], POS[share], VEL[share])
            part.scale = scale
            assert part.scale == scale
            found.append(part.partial(TARGETS, SPEED, eps=0.01, time=0.125))
    return found


@pytest.mark.parametrize("precision", ["grape", "double", "single"])
def test_shares_have_the_bits_of_all(precision):
    with whole(precision=precision) as all_:
        rows = rows_of(BLOCKS, all_.scale, precision=precision)
        right = bits(all_.forces(TARGETS, SPEED, eps=0.01, time=0.125))
    assert bits(partial.forces(partial.merged(rows))) == right
    assert bits(partial.forces(partial.merged(rows[::-1]))) == right
    assert bits(partial.forces(partial.merged([partial.merged(rows[1:]), rows[0]]))) == right


def test_index_and_jerk():
    with whole(jerk=False) as session:
        number = np.arange(50)
        rows = session.partial(POS[:50], VEL[:50], number, eps=0.0)
        right = session.forces(POS[:50], VEL[:50], number)
        found = partial.forces(rows)
        assert found.jerk is None
        assert np.array_equal(found.acc, right.acc)
        assert np.array_equal(found.pot, right.pot)
        assert partial.forces(rows[:0]).acc.shape == (0, 3)
        assert session.partial(POS[:0]).shape == (0, 32)


def test_a_scale_is_kept_until_it_is_given_up():
    with whole() as session:
        own = session.scale
        session.scale = own._replace(length=own.length + 3)
        session.set_particles(MASS, 2 * POS)
        assert session.scale.length == own.length + 3
        session.scale = None
        assert session.scale.length != own.length + 3
        with pytest.raises(ArgumentError, match="mass = 100000"):
            session.scale = own._replace(mass=100000)


def test_what_does_not_fit_together_is_refused():
    with whole() as session:
        rows, scale = session.partial(TARGETS), session.scale
        session.scale = scale._replace(length=scale.length + 1)
        other = session.partial(TARGETS)
        with pytest.raises(NotFiniteError, match=r"pos\[2\]"):
            session.partial(np.where(np.arange(9).reshape(3, 3) == 6, np.nan, 1.0))
    with pytest.raises(ArgumentError, match="scale"):
        partial.merged([rows, other])
    with pytest.raises(ArgumentError, match="rows of 715 and of 5 targets"):
        partial.merged([rows, rows[:5]])
    with pytest.raises(ArgumentError, match="of no parts"):
        partial.merged([])
    for wrong in (rows[:, :5], rows.astype(float), [1, 2]):
        with pytest.raises(ArgumentError, match="partial rows are int64"):
            partial.forces(wrong)
