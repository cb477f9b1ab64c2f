"""Direct sums whose particles have their own softening, or splines, are plain sums in double."""

import numpy as np
import pytest

import softened
from grape6py import Grape6, plummer
from grape6py._arrays.modules import on_host
from grape6py.errors import ArgumentError

pytestmark = pytest.mark.backends("cpu cuda gpu")
LAWS = pytest.mark.parametrize("law", ["plummer", "spline"])


@pytest.fixture(autouse=True)
def xp(request, on_backend):
    """The module of arrays of a device; NumPy for the host."""
    return np if on_backend == "cpu" else request.getfixturevalue("cupy")


def cluster(n=150, scale=1.0):
    rng = np.random.default_rng(n)
    mass, pos, vel = plummer(n, seed=n)
    return mass * scale, pos * scale, vel, 10 ** rng.uniform(-3, 0.5, n) * scale


def agree(found, true):
    """acc, jerk and pot, to the rounding of the largest."""
    for mine, right in zip((found.acc, found.jerk, found.pot), true, strict=True):
        mine = on_host(mine)
        assert np.abs(mine - right).max() <= 3e-13 * np.abs(right).max()


@LAWS
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e25])
@pytest.mark.parametrize("n", [1, 2, 150, 1500])
def test_particles_and_targets(xp, law, scale, n):
    """Particles themselves, in arrays of the device, and some by their index, and others."""
    mass, pos, vel, eps = cluster(n, scale)
    pos[n // 2] = pos[0]  # with softening
    with Grape6(softening=law) as grape:
        given = map(xp.asarray, (mass, pos, vel))
        grape.set_particles(*given, eps=xp.asarray(eps), index=np.arange(n)[::-1] + 7)
        agree(grape.forces(), softened.forces(mass, pos, vel, eps, spline=law == "spline"))
        at, at_vel = pos[: n // 2 + 1] * 1.1, -vel[: n // 2 + 1]
        own = np.arange(len(at))
        own[::2] = -1
        index = np.where(own < 0, -5, n - 1 - own + 7)
        each = np.where(own < 0, 0.2 * scale, eps[own])
        found = grape.forces(at, at_vel, index, eps=0.2 * scale, nn=True, h=scale)
        agree(found, softened.forces(mass, pos, vel, eps, spline=law == "spline", at=at,
                                     at_vel=at_vel, at_eps=each, own=own))  # fmt: skip
        plain = grape.forces(at, at_vel, index, nn=True, h=scale)
        assert (found.nearest == plain.nearest).all()
        assert (found.neighbours.index == plain.neighbours.index).all()
        assert isinstance(found.acc, np.ndarray)


@LAWS
def test_updates_prediction_and_one_eps_for_all(law):
    """The particles are those of the last writes, at the time of the call."""
    mass, pos, vel, eps = cluster()
    with Grape6(softening=law) as grape:
        grape.set_particles(mass, pos, vel, eps=eps)
        grape.set_particles(mass[:3] * 2, pos[:3] + 1, vel[:3], address=[5, 150, 151], eps=eps[:3])
        grape.set_particles(mass[:1], pos[:1] - 1, vel[:1], address=[9])
        found = grape.forces(time=0.5)
        at = np.r_[np.arange(150), 0, 0]
        m, x, v, e = mass[at], pos[at], vel[at], eps[at]
        for rows, k, new in (([5, 150, 151], slice(0, 3), 1), ([9], slice(0, 1), 0)):
            m[rows], x[rows] = mass[k] * (1 + new), pos[k] + 2 * new - 1
            v[rows], e[rows] = vel[k], eps[k] * new
        agree(found, softened.forces(m, x + v / 2, v, e, spline=law == "spline"))
        grape.set_particles(mass, pos, vel)
        found = grape.forces(eps=0.3)
        if law == "spline":
            agree(found, softened.forces(mass, pos, vel, np.full(150, 0.3), spline=True))
        else:
            with Grape6() as other:
                other.set_particles(mass, pos, vel)
                assert (on_host(other.forces(eps=0.3).acc) == on_host(found.acc)).all()
            with pytest.raises(ArgumentError, match="without eps"):  # whose masses are not kept
                grape.set_particles(mass[:2], pos[:2], vel[:2], address=[0, 1], eps=eps[:2])


def test_what_is_refused():
    mass, pos, vel, eps = cluster(10)
    with pytest.raises(ArgumentError, match="plummer, spline"):
        Grape6(softening="gauss")
    with pytest.raises(ArgumentError, match="direct sums"):
        Grape6(softening="spline", backend="cpu-tree")
    with Grape6(softening="spline") as grape:
        for bad in (eps[:9], -eps, eps * np.nan, 0.1):
            with pytest.raises(ValueError, match="eps"):
                grape.set_particles(mass, pos, vel, eps=bad)
        grape.set_particles(mass, pos, vel, eps=eps)
        with pytest.raises(ArgumentError, match="their own eps"):
            grape.forces(eps=0.1)
        with pytest.raises(ArgumentError, match="one Plummer softening"):
            grape.partial(pos)
        grape.set_particles(mass, pos, vel, index=[1, 1, *range(2, 10)], eps=eps)
        with pytest.raises(ArgumentError, match="one index"):
            grape.forces()
