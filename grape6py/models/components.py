"""The components of a galaxy: an exponential disk, and Hernquist's spheres for bulge and halo.

Each has its mass inside spheres, and draws its bodies in the field of all. Densities, dispersions
and galaxies.py names their sources.
"""

import math
from collections.abc import Callable

import numpy as np

from grape6py._arrays.kinds import Bools, Floats, Int64s
from grape6py.models.sampling import Particles, centred, directions, fill, fill_each

_SUN = 8.5 / 3.5  # radius, in scale lengths, where Toomre's Q is as asked for
_OF_ESCAPE = 0.95  # speeds of the spheres end there


class Disk:
    """An exponential disk of scale length 1."""

    def __init__(self, mass: float, height: float, toomre_q: float, cut: float) -> None:
        self._mass, self._height, self._toomre_q, self._cut = mass, height, toomre_q, cut
        self._share: float = 1 - (1 + cut) * np.exp(-cut)  # of the mass of a disk without an end

    def inside(self, r: Floats) -> Floats:
        """Mass within spheres of some radii."""
        angle = (np.arange(512) + 0.5) * (math.pi / 1024)
        r = np.minimum(r, 2 * self._cut)
        radius, height = np.multiply.outer(r, np.sin(angle)), np.multiply.outer(r, np.cos(angle))
        shells = radius * height * np.exp(-radius) * np.tanh(height / self._height)
        mass = np.where(radius <= self._cut, shells, 0).sum(axis=-1) * (math.pi / 1024)
        inside: Floats = self._mass * mass / self._share
        return inside

    def draw(
        self, random: np.random.Generator, n: int, spheres: Callable[[Floats], Floats]
    ) -> Particles:
        """Draw bodies that circle in the field of the disk and of spheres of that mass inside."""

        def radii(count: int) -> Floats:
            drawn = -np.log((1 - random.random(count)) * (1 - random.random(count)))
            return drawn[drawn < self._cut]

        radius, angle = fill(radii, n), 2 * math.pi * random.random(n)
        height = self._height * np.arctanh(2 * (random.random(n) - 0.5) * (1 - 1e-12))
        cosine, sine = np.cos(angle), np.sin(angle)
        sigma, mean = self._moments(radius, spheres)
        outward, along, up = sigma * random.standard_normal((3, n))
        along += mean
        pos = np.column_stack([radius * cosine, radius * sine, height])
        vel = np.column_stack(
            [outward * cosine - along * sine, outward * sine + along * cosine, up]
        )
        return centred(np.full(n, self._mass / n), pos, vel)

    def _moments(
        self, radius: Floats, spheres: Callable[[Floats], Floats]
    ) -> tuple[Floats, Floats]:
        """Dispersions (radial, azimuthal, vertical) and mean velocity along the circle."""
        grid = np.geomspace(1e-4, max(self._cut, _SUN), 1024)
        thin = _thin_disk(grid, self._mass)
        # Two layers lie z0 apart, on the mean. To first order that takes z0 R M exp(-R) away.
        own2 = thin / (1 + self._height * grid * self._mass * np.exp(-grid) / thin)
        circular2 = own2 + spheres(grid) / grid
        epicyclic = np.gradient(np.log(grid**2 * circular2), np.log(grid))  # (kappa / Omega)^2

        kappa = math.sqrt(np.interp(_SUN, grid, epicyclic * circular2)) / _SUN
        at_sun = 3.36 * self._toomre_q * self._surface_density(_SUN) / kappa
        sigma_r2 = at_sun**2 * np.exp(_SUN - radius)
        circular2, epicyclic = (np.interp(radius, grid, y) for y in (circular2, epicyclic))
        mean2 = circular2 + sigma_r2 * (1 - epicyclic / 4 - 2 * radius)

        z0, z2 = self._height, (math.pi * self._height) ** 2 / 12  # scale and mean of z^2
        reach = np.sqrt(radius**2 + 4.2 * z2)  # <z^4> / <z^2> is 4.2 <z^2>
        bend = spheres(reach) / reach**3 - np.interp(radius, grid, np.gradient(own2, grid) / grid)
        sigma_z2 = math.pi * self._surface_density(radius) * z0 + bend * z2
        sigma = np.sqrt([sigma_r2, sigma_r2 * epicyclic / 4, sigma_z2])
        return sigma, np.sqrt(np.maximum(mean2, 0))

    def _surface_density(self, radius: Floats | float) -> Floats:
        return self._mass * np.exp(-radius) / (2 * math.pi * self._share)


class Sphere:
    """Hernquist's sphere, cut off."""

    def __init__(self, mass: float, scale: float, cut: float) -> None:
        self._mass, self._scale, self._cut = mass, scale, cut

    def inside(self, r: Floats) -> Floats:
        """Mass within a radius."""
        x = np.minimum(r / self._scale, self._cut)
        inside: Floats = self._mass * (x / (1 + x) * (1 + self._cut) / self._cut) ** 2
        return inside

    def draw(
        self, random: np.random.Generator, n: int, radius: Floats, inside: Floats
    ) -> Particles:
        """Draw bodies in the field of spherical masses `inside` of the ascending `radius`."""
        root = np.sqrt(random.random(n)) * self._cut / (1 + self._cut)
        r = self._scale * root / (1 - root)
        sigma = np.sqrt(np.interp(r, radius, self._dispersion2(radius, inside)))
        most = _OF_ESCAPE * np.sqrt(2 * np.interp(r, radius, _depth(radius, inside)))
        width = _width(sigma, most)

        def velocities(rows: Int64s) -> tuple[Floats, Bools]:
            vel = width[rows, None] * random.standard_normal((len(rows), 3))
            return vel, (vel**2).sum(axis=1) <= most[rows] ** 2

        pos = directions(random, n) * r[:, None]
        return centred(np.full(n, self._mass / n), pos, fill_each(velocities, n))

    def _dispersion2(self, radius: Floats, inside: Floats) -> Floats:
        """Of each coordinate, by the spherical and isotropic Jeans equation."""
        x = radius / self._scale
        density = np.where(x <= self._cut, 1 / (x * (1 + x) ** 3), 0)
        slope = density * inside / radius**2
        parts = np.diff(radius) * (slope[1:] + slope[:-1]) / 2
        pressure: Floats = np.append(np.cumsum(parts[::-1])[::-1], 0)  # from each to the last
        return np.divide(pressure, density, out=np.zeros_like(x), where=density > 0)


def _width(sigma: Floats, most: Floats) -> Floats:
    """Width of the Gaussian that has the dispersion `sigma` once it is cut at the speed `most`."""
    width = np.geomspace(0.02, 2, 256)[:, None]  # in units of `most`, as is v
    v = (np.arange(512) + 0.5) / 512
    weight = v**2 * np.exp(-((v / width) ** 2) / 2)
    left = np.sqrt((weight * v**2).sum(axis=1) / (3 * weight.sum(axis=1)))
    return most * np.interp(sigma / most, left, width[:, 0])


def _thin_disk(r: Floats, mass: float) -> Floats:
    """Square of the circular velocity of a razor-thin exponential disk."""
    y = r[:, None] / 2
    angle = (np.arange(256) + 0.5) * (math.pi / 256)
    t = np.arange(512) / 32  # trapezoids are exact to rounding for both integrals
    weight = np.where(t == 0, 0.5, 1.0) / 32
    grows, falls = np.exp(y * np.cos(angle)) / 256, np.exp(-y * np.cosh(t)) * weight
    i0, i1 = grows.sum(axis=1), (grows * np.cos(angle)).sum(axis=1)
    k0, k1 = falls.sum(axis=1), (falls * np.cosh(t)).sum(axis=1)
    speed2: Floats = 2 * mass * y[:, 0] ** 2 * (i0 * k0 - i1 * k1)
    return speed2


def _depth(radius: Floats, inside: Floats) -> Floats:
    """Minus the potential of spherical shells; all of the mass is within the last radius."""
    shells = np.diff(inside) * 2 / (radius[1:] + radius[:-1])
    depth: Floats = inside / radius + np.append(np.cumsum(shells[::-1])[::-1], 0)
    return depth
