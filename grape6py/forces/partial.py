"""Sums of shares of the particles, as integers that add up to the bits of one session with all.

For programs with a decomposition of their own; ``Grape6(comm=...)`` does all of it over the ranks
of MPI. Each session has whole blocks of 1024 addresses, and all have one :class:`Scale`::

    whole = Grape6(); whole.set_particles(mass, pos, vel)      # once, for its scale
    rows = []
    for share in slice(0, 2048), slice(2048, None):
        with Grape6() as part:
            part.set_particles(mass[share], pos[share], vel[share])
            part.scale = whole.scale
            rows.append(part.partial(targets, eps=0.01))
    forces = partial.forces(partial.merged(rows))              # the bits of whole.forces(targets)

docs/reproducibility.md says why, and what the words of a row are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from grape6py._arrays.kinds import AnyArray, Int64s, Untyped
from grape6py._lib.cluster import Forces, empty_forces
from grape6py._lib.library import check, lib, pointers
from grape6py._lib.partial_rows import WORDS, words_pointer
from grape6py.errors import ArgumentError
from grape6py.ranks.ranks import Ranks


class Scale(NamedTuple):
    """Scale and origin of a sum, from which its bits follow.

    Attributes
    ----------
    length, mass, velocity : int
        Powers of two, in the caller's units.
    origin, drift : tuple of 3 floats
        Position and velocity that others are taken relative to.
    """

    length: int
    mass: int
    velocity: int
    origin: tuple[float, ...] = (0.0, 0.0, 0.0)
    drift: tuple[float, ...] = (0.0, 0.0, 0.0)


def merged(parts: Sequence[AnyArray]) -> Int64s:
    """Rows of :meth:`Grape6.partial` of several sessions for the same targets, in any order.

    Parameters
    ----------
    parts : sequence of ndarray of int64, shape (ni, 32)

    Returns
    -------
    ndarray of int64, shape (ni, 32)

    Raises
    ------
    ArgumentError
        (a ValueError) for rows of different targets, or made with another backend, instruction
        set, precision, scale or origin.
    """
    if not len(parts):
        raise ArgumentError("merged() of no parts: give the rows of one session or more")
    first, *others = (_rows(part) for part in parts)
    found = first.copy()
    for other in others:
        if len(other) != len(found):
            raise ArgumentError(
                f"rows of {len(found)} and of {len(other)} targets: they must be the same"
            )
        check(lib.g6x_add_partial(len(found), words_pointer(found), words_pointer(other)))
    return found


def merged_over(comm: Untyped, rows: AnyArray) -> Int64s:
    """The same of the rows of all ranks of a communicator of mpi4py's; all ranks get them.

    Raises ArgumentError as :func:`merged`, on all ranks, and RankError for an error of another one.
    """
    from grape6py.ranks.sums import merge_rows

    ranks = Ranks(comm)
    with ranks.agreement("merged_over()") as agreement:
        found = _rows(rows).copy()
        agreement.same("the number of targets", len(found))
    merge_rows(ranks, found)
    return found


def forces(rows: AnyArray) -> Forces:
    """The forces that rows stand for: acc, jerk (None if the sessions had none) and pot.

    Parameters
    ----------
    rows : ndarray of int64, shape (ni, 32)

    Raises
    ------
    ArgumentError
        (a ValueError) for what are no rows.
    RangeError
        (an OverflowError) for a force that does not fit a double.
    """
    rows = _rows(rows)
    found = empty_forces(len(rows))
    sums = pointers(found.acc, found.jerk, found.pot)
    check(lib.g6x_from_partial(len(rows), words_pointer(rows), *sums))
    has_jerk = not len(rows) or bool((rows[:, 0] & lib.WORD_JERK).all())
    return found if has_jerk else found._replace(jerk=None)


def _rows(given: AnyArray) -> Int64s:
    rows = np.asarray(given)
    if rows.ndim != 2 or rows.shape[1] != WORDS or rows.dtype != np.int64:
        raise ArgumentError(
            f"an array of {rows.dtype}, shape {rows.shape}: partial rows are int64, (ni, {WORDS})"
        )
    return np.ascontiguousarray(rows)
