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


def circular(field, pos, axis):
    """The velocity of the circular orbit there."""
    acc = field(0.0, np.array([pos]), np.zeros((1, 3)))[0][0]
    speed = math.sqrt(np.linalg.norm(acc) * np.linalg.norm(pos))
    along = np.cross(axis, pos)
    return speed * along / np.linalg.norm(along)


PLACE = np.array([3.0, -1.0, 2.0])
RADIUS = math.sqrt(14)


def test_about_a_point_mass_it_is_hill_s_radius():
    field = power_law(-2, strength=1e3)
    radius = tidal_radius(field, 2.0, PLACE, circular(field, PLACE, [0, 1, 1]))
    assert radius == pytest.approx(RADIUS * (2 / (3 * 1e3)) ** (1 / 3), rel=1e-10)


def test_in_a_logarithmic_potential_there_are_two_omega_squared():
    field = power_law(-1, strength=220.0**2)
    radius = tidal_radius(field, 1e5, PLACE, circular(field, PLACE, [1, 0, 0]), G=4.30091e-3)
    expected = (4.30091e-3 * 1e5 * RADIUS**2 / (2 * 220**2)) ** (1 / 3)
    assert radius == pytest.approx(expected, rel=1e-10)


def test_on_an_eccentric_orbit_the_angular_velocity_counts():
    field = power_law(-2)
    for vel in ([0.1, 0.2, 0.3], [0, 0, 0], PLACE):
        spin2 = (np.cross(PLACE, vel) ** 2).sum() / RADIUS**4
        expected = (1e-4 / (spin2 + 2 / RADIUS**3)) ** (1 / 3)
        assert tidal_radius(field, 1e-4, PLACE, vel) == pytest.approx(expected, rel=1e-10)


def test_a_miyamoto_nagai_disk_has_the_derivative_of_its_formula():
    a, b = 1.0, 0.2

    def field(t, pos, vel):
        root = np.sqrt(pos[:, 2] ** 2 + b * b)
        depth = ((pos[:, :2] ** 2).sum(axis=1) + (a + root) ** 2)[:, None] ** -1.5
        height = np.column_stack([np.ones_like(root), np.ones_like(root), (a + root) / root])
        return [-pos * height * depth, None, None]

    # In the plane d^2 Phi / dR^2 is (c^2 - 2 R^2) / (R^2 + c^2)^(5/2) with c = a + b.
    second = (1.2**2 - 2 * 9) / (9 + 1.2**2) ** 2.5
    found = tidal_radius(field, 1e-3, [0, 3.0, 0], [0.4, 0, 0.1])
    assert found == pytest.approx((1e-3 / (0.17 / 9 - second)) ** (1 / 3), rel=1e-9)


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
