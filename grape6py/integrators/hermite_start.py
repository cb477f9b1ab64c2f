"""How bodies of a Hermite integration begin: their forces and first steps, on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from grape6py._arrays.kinds import AnyArray, Bools, Floats, Int32s
    from grape6py.integrators.blocks import Blocks, Moment

# A body whose acceleration or jerk has changed by more than this when others came, went or changed
# takes its first step anew.
CHANGED = 0.01


def begin_all(blocks: Blocks, anew: Bools, before: Moment | None, eta_start: float) -> None:
    """Take forces at the epoch, where all bodies are; first steps for those that begin anew,
    and for those whose force is another one than `before`."""
    own, to_rows = blocks.bodies.own, blocks.to_rows
    first = _first_steps(blocks, None, 0.0, eta_start)
    takes_first = to_rows(anew).copy()
    if before is not None:
        for name, array in (("acc", before.acc), ("jerk", before.jerk)):
            old = to_rows(array)
            change, size = _squares(own[name] - old), _squares(old)
            takes_first |= (change > CHANGED**2 * size) & (first < own["dt"])
    own["dt"][:] = np.where(takes_first, first, own["dt"])


def begin_some(blocks: Blocks, bodies: Int32s, eta_start: float) -> None:
    """Take forces on some bodies, at their times; their steps are at most what they have."""
    own = blocks.bodies.own
    rows = np.sort(bodies if blocks.rows is None else blocks.rows[bodies])
    first = _first_steps(blocks, rows, float(own["t"][rows[0]]), eta_start)
    own["dt"][rows] = np.minimum(first, own["dt"][rows])


def _squares(vectors: Floats) -> Floats:
    squares: Floats = (vectors * vectors).sum(axis=1)
    return squares


def _first_steps(blocks: Blocks, rows: Int32s | None, time: float, eta_start: float) -> Floats:
    """Take forces on some bodies, or on all, at a time; their first steps.

    A step is the largest power-of-two fraction of the largest step that is not above
    eta_start min(|a| / |da/dt|, sqrt(-pot) / |a|); the second term is for bodies at rest,
    whose da/dt is zero, and is left out without potential; the time in which the field changes for
    one that falls takes its place if shorter.
    """
    _, smallest, largest = blocks.rule
    ni = _forces(blocks, rows, time)
    address, acc, jerk, pot = (
        blocks.bodies.block[name][:ni].copy() for name in ("address", "acc", "jerk", "pot")
    )
    blocks.bodies.own["acc"][address], blocks.bodies.own["jerk"][address] = acc, jerk
    blocks.bodies.begin_work(ni, time)
    falling = _falling(blocks, acc, jerk)
    a, j = np.sqrt(_squares(acc)), np.sqrt(_squares(jerk))
    with np.errstate(divide="ignore", invalid="ignore"):
        of_rest = np.where(pot != 0, np.sqrt(np.abs(pot)) / a, np.inf)
        of_rest = np.where(j == 0, np.fmin(of_rest, falling), of_rest)
        requested = eta_start * np.fmin(a / j, of_rest)
    level = np.frexp(np.where(requested < largest, requested, largest) / largest)[1] - 1
    steps: Floats = np.maximum(np.ldexp(largest, np.minimum(level, 0)), smallest)
    roundoff = blocks.bodies.rounding[address] * pot**2
    vanishing = np.flatnonzero(a <= roundoff)
    if len(vanishing):
        steps[vanishing] = _second_look(blocks, address[vanishing], time, roundoff[vanishing])
    return steps


def _forces(blocks: Blocks, rows: AnyArray | None, time: float) -> int:
    """All forces on some bodies, in the first rows of the block; how many these are."""
    ni = blocks.bodies.choose(rows)
    blocks.bodies.predict(ni, time)
    blocks.force(ni, time)
    return ni


def _second_look(blocks: Blocks, rows: Int32s, time: float, roundoff: Floats) -> Floats:
    """Steps of bodies without acceleration, which says nothing of how soon it will change:
    those at whose end the criterion asks for none that is shorter."""
    _, smallest, largest = blocks.rule
    steps, left, step = np.full(len(rows), largest), np.arange(len(rows)), largest
    while len(left) and step > smallest:
        _forces(blocks, rows[left], time + step)
        new = blocks.bodies.steps_if(step, time + step, rows[left], roundoff[left])
        steps[left] = np.minimum(new, step)
        left = left[steps[left] < step]
        step = float(steps[left].min(initial=step))
    return steps


def _falling(blocks: Blocks, acc: Floats, jerk: Floats) -> Floats:
    """Times in which the field changes for bodies of the block at rest that begin to fall."""
    external, time = blocks.external, np.full(len(acc), np.inf)
    rows = np.flatnonzero(~jerk.any(axis=1))
    if external is not None and len(rows):
        found = np.zeros((2, len(rows), 3))
        external.add(blocks.latest(), blocks.bodies.block["xi"][rows], acc[rows], *found)
        a, j = (np.sqrt(_squares(array)) for array in found)
        with np.errstate(divide="ignore", invalid="ignore"):
            time[rows] = np.where(j > 0, np.sqrt(a / j), np.inf)
    return time
