"""The tidal radius: potentials for which it is known."""

import math

import numpy as np
import pytest

from grape6py import tidal_radius


def power_law(power, strength=1.0):
    """A field whose acceleration is -strength r^power towards the origin."""

    def field(t, pos, vel):
        r = np.linalg.norm(pos, axis=1)[:, None]
        return -strength * pos * r ** (power - 1), np.zeros_like(pos), np.zeros(len(pos))

    return field


PLACE = np.array([3.0, -1.0, 2.0])
R = math.sqrt(14)
AROUND = np.cross([0, 1, 1], PLACE) / np.linalg.norm(np.cross([0, 1, 1], PLACE))


@pytest.mark.parametrize(("field", "mass", "vel", "G", "cube"), [
    # About a point mass it is Hill's radius; in a logarithmic potential there are 2 Omega^2.
    (power_law(-2, 1e3), 2.0, AROUND * math.sqrt(1e3 / R), 1.0, R**3 * 2 / (3 * 1e3)),
    (power_law(-1, 220.0**2), 1e5, AROUND * 220, 4.3e-3, 4.3e-3 * 1e5 * R**2 / (2 * 220**2)),
    *((power_law(-2), 1e-4, vel, 1.0,  # on an eccentric orbit the angular velocity counts
       1e-4 / ((np.cross(PLACE, vel) ** 2).sum() / R**4 + 2 / R**3))
      for vel in ([0.1, 0.2, 0.3], [0, 0, 0], PLACE)),
])  # fmt: skip
def test_it_is_that_of_potentials_for_which_it_is_known(field, mass, vel, G, cube):
    found = tidal_radius(field, mass, PLACE, vel, G=G)
    assert found == pytest.approx(cube ** (1 / 3), rel=1e-10)


def test_the_field_is_asked_at_the_time_with_velocities():
    asked = []

    def field(t, pos, vel):
        asked.append((t, pos.shape, vel.tolist()))
        return power_law(-2)(t, pos, vel)

    tidal_radius(field, 1, [1, 0, 0], [0, 1, 0], time=2.5)
    ((t, shape, vel),) = asked
    assert t == 2.5
    assert vel == [[0, 1, 0]] * shape[0]


@pytest.mark.parametrize(("wrong", "words"), [
    ({"field": power_law(1), "vel": [0, 0, 0]}, "compresses the cluster .*no tidal radius"),
    ({"mass": 0}, "mass = 0.0 is not above zero"),
    ({"pos": [0, 0, 0]}, "pos is the galaxy's centre"),
    ({"pos": [1, 2]}, r"pos has shape \(2,\), not \(3,\)"),
    ({"vel": [math.nan, 0, 0]}, r"vel\[0\] is not finite"),
    ({"G": -1}, "G = -1.0 is not above zero"),
    ({"time": math.inf}, "time = inf is not a finite number"),
    ({"field": lambda t, pos, vel: pos}, "gives ndarray, not a tuple of acc, jerk, pot"),
    ({"field": lambda t, pos, vel: (pos[:2], 0, 0)}, "acc of field has shape"),
    ({"field": lambda t, pos, vel: (pos * math.nan, 0, 0)}, "acc of field.* is not finite"),
])  # fmt: skip
def test_tides_that_cannot_be_are_refused_in_words(wrong, words):
    right = {"field": power_law(-2), "mass": 1, "pos": [1, 0, 0], "vel": [0, 1, 0]}
    with pytest.raises(ValueError, match=words):
        tidal_radius(**right | wrong)
