"""Snapshots as they are read from bytes, compared with the bodies of hand_made.py."""

import io
import warnings

import numpy as np

from grape6py import read_snapshot
from hand_made import IDS, MASS, POS, TIME, VEL


def read(data, which=-1, **options):
    """A snapshot from bytes; nothing is warned of."""
    with warnings.catch_warnings(action="error"):
        return read_snapshot(io.BytesIO(data), which, **options)


def bits(particles):
    return [array.tobytes() for array in particles]


def assert_bodies(found, mass=MASS, pos=POS, vel=VEL):
    assert found.mass.tolist() == list(mass)
    assert found.pos.tolist() == [list(row) for row in pos]
    assert found.vel.tolist() == [list(row) for row in vel]
    assert {array.dtype for array in found} == {np.dtype(float)}


def assert_all(found, name, time=TIME, ids=IDS, **bodies):
    """The bodies of hand_made, in their order."""
    assert found.format == name
    assert_bodies(found, **bodies)
    assert found.time == time
    assert (found.ids if found.ids is None else found.ids.tolist()) == ids


def sizes(units):
    """Grams, centimetres and centimetres a second."""
    return [units.in_cgs(name) for name in ("mass", "length", "velocity")]
