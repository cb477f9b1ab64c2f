"""What the models share: their types, and random numbers of a few distributions.

The same seed gives the same bits on every machine: only the generator's uniform numbers
and operations that IEEE 754 rounds correctly (+ - * / and the square root) are used, and
no sine, cosine or power, whose last bits differ between processors.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from grape6py import reference
from grape6py._arrays import quantities, validate
from grape6py._arrays.kinds import Bools, Floats, Int8s, Int64s, Seed
from grape6py._arrays.particles import Particles as Particles
from grape6py.errors import ArgumentError

if TYPE_CHECKING:
    from grape6py.forces import energies

    Energy = reference.Energy | energies.Energy


class Component(enum.IntEnum):
    """What a body of a galaxy belongs to."""

    DISK = 0
    BULGE = 1
    HALO = 2
    BLACK_HOLE = 3


class Labelled(NamedTuple):
    """A model of several components.

    Attributes
    ----------
    particles : Particles
    component : ndarray of int8, shape (n,)
        Of each body: a :class:`Component`; in a merger ``component % 4`` is that, and
        ``component // 4`` the galaxy, 0 or 1.
    """

    particles: Particles
    component: Int8s


def generator(seed: Seed, purpose: str = "") -> np.random.Generator:
    """Random numbers of a seed; None for others each time.

    Numbers for different purposes are independent: masses drawn with the seed of a sphere must
    not depend on the radii of its bodies.
    """
    if quantities.holds_quantity(seed):
        raise ArgumentError(f"seed = {seed!r} is a quantity, not an integer")
    if purpose:
        root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        seed = np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *purpose.encode()))
    return np.random.Generator(np.random.PCG64(seed))


def check_size(n: int, rescale: bool) -> int:
    """`n` as an int. Raises ArgumentError if a sphere cannot have n bodies."""
    n = validate.integer("n", n)
    if n < 1:
        raise ArgumentError(f"n = {n}: a model needs at least one body")
    if rescale and n < 2:
        raise ArgumentError("rescale needs at least two bodies, one has no energy")
    return n


def cube_root(x: Floats) -> Floats:
    """Cube root of x > 0 by Newton steps, to a unit in the last place or so."""
    fraction, exponent = np.frexp(x)
    third = -(-exponent // 3)
    fraction = np.ldexp(fraction, exponent - 3 * third)  # in [1/8, 1)
    y = 0.5 + 0.5 * fraction
    for _ in range(6):
        y -= (y * y * y - fraction) / (3 * y * y)
    root: Floats = np.ldexp(y, third)
    return root


def directions(random: np.random.Generator, n: int) -> Floats:
    """Draw n unit vectors (Marsaglia 1972, Ann. Math. Stat. 43, 645)."""

    def draw(count: int) -> Floats:
        u = 2 * random.random((count, 2)) - 1
        s = u[:, 0] * u[:, 0] + u[:, 1] * u[:, 1]
        u, s = u[s < 1], s[s < 1]
        return np.column_stack([2 * u * np.sqrt(1 - s)[:, None], 1 - 2 * s])

    return fill(draw, n)


def fill(draw: Callable[[int], Floats], n: int) -> Floats:
    """Call draw(count), which gives up to count values, until there are n."""
    parts, have = [], 0
    while have < n:
        parts.append(draw(n - have))
        have += len(parts[-1])
    return np.concatenate(parts)


def fill_each(draw: Callable[[Int64s], tuple[Floats, Bools]], n: int) -> Floats:
    """Call draw(rows) until each of n rows has its value.

    draw gives a value for each row, and whether that value counts.
    """
    rows, values = np.arange(n), np.empty(0)
    while len(rows):
        drawn, good = draw(rows)
        if len(values) != n:
            values = np.empty((n, *drawn.shape[1:]))
        values[rows[good]] = drawn[good]
        rows = rows[~good]
    return values


def interpolated(x: Floats, nodes: Floats, values: Floats) -> Floats:
    """`values` at x, linear between ascending nodes; each operation is rounded by itself."""
    k = np.clip(np.searchsorted(nodes, x, side="right") - 1, 0, len(nodes) - 2)
    return values[k] + (x - nodes[k]) / (nodes[k + 1] - nodes[k]) * (values[k + 1] - values[k])


def centred(mass: Floats, pos: Floats, vel: Floats) -> Particles:
    total = math.fsum(mass)
    for vectors in (pos, vel):
        for k in range(3):  # fsum: rounded once, so equal bits everywhere
            vectors[:, k] -= math.fsum(mass * vectors[:, k]) / total
    return Particles(mass, pos, vel)


def sphere(pos: Floats, vel: Floats, rescale: bool, virial_ratio: float = 0.5) -> Particles:
    """Equal masses there, of total mass 1, with their centre at rest in the origin.

    If rescaled, the total energy is -1/4, of which the kinetic one is its share exactly.
    """
    particles = centred(np.full(len(pos), 1 / len(pos)), pos, vel)
    if not rescale:
        return particles
    return rescaled(particles, virial_ratio, reference.energy(*particles))


def rescaled(
    particles: Particles, virial_ratio: float = 0.5, energy: Energy | None = None
) -> Particles:
    """With lengths and velocities scaled so that E = -1/4, of which T / |W| is this.

    The energy is summed in C, unless it is given.
    """
    mass, pos, vel = particles
    if energy is None:
        from grape6py.forces import energies  # opens the library

        energy = energies.energy(mass, pos, vel, backend="cpu")
    potential = -0.25 / (1 - virial_ratio)
    faster = math.sqrt(-virial_ratio * potential / energy.kinetic) if energy.kinetic else 0.0
    return Particles(mass, pos * (energy.potential / potential), vel * faster)
