"""``Tree``: gravity and neighbours of many particles, from an octree.

Nothing is computed here: one object is one tree of libgrape6.so.
"""

import warnings
import weakref
from typing import NamedTuple

import numpy as np

from grape6py import _inputs
from grape6py._library import ISAS, check, ffi, lib, pointer, text
from grape6py.errors import ArgumentError, Grape6Warning, NotOpenError

METHODS = {"fmm": lib.G6X_TREE_FMM, "bh": lib.G6X_TREE_BARNES_HUT}

# The median error that an opening angle has, c theta^p: c, p and the widest angle of each method,
# not below what was measured on Plummer spheres of 5000 and 10^5 bodies (docs/accuracy.md).
_ERROR_BY_ANGLE = {"fmm": (3.2e-3, 4.3, 0.85), "bh": (1.7e-3, 3.7, 0.9)}
_LEAST_ERROR = 1e-6


class TreeForces(NamedTuple):
    """Forces on targets, row by row.

    Attributes
    ----------
    acc : ndarray, shape (ni, 3)
        Acceleration.
    pot : ndarray, shape (ni,)
        Potential, negative.
    jerk : ndarray, shape (ni, 3), or None
        Time derivative of `acc`; None if the tree has no velocities.
    """

    acc: np.ndarray
    pot: np.ndarray
    jerk: np.ndarray | None


class Neighbours(NamedTuple):
    """Neighbours of all targets in one array (compressed sparse rows).

    Attributes
    ----------
    start : ndarray of int64, shape (ni + 1,)
        Those of target i are ``index[start[i]:start[i + 1]]``.
    index : ndarray of int32, shape (start[-1],)
        Their numbers, ascending in each row.
    """

    start: np.ndarray
    index: np.ndarray


class Nearest(NamedTuple):
    """Nearest particles of each target, nearest first.

    Attributes
    ----------
    index : ndarray of int32, shape (ni, k)
        Their numbers; -1 where there are fewer than k.
    distance : ndarray, shape (ni, k)
        How far they are; infinite where there are fewer.
    """

    index: np.ndarray
    distance: np.ndarray


class Tree:
    """An octree of particles.

    It does not change after it was made: when particles have moved, make a new one, which takes
    a small part of the time that their forces take. Use it in a ``with`` statement, or call
    :meth:`close`, or leave it to the garbage collector. Any number of threads may use it at once.

    Parameters
    ----------
    pos : array_like, shape (n, 3)
        In any units with G = 1.
    mass : float or array_like, shape (n,)
        Of any sign.
    vel : array_like, shape (n, 3), optional
        Without, there is no jerk.
    threads : int, optional
        0 for as many as the process may use; by default as GRAPE6_THREADS says. Results do not
        depend on it.
    isa : {"best", "base", "avx2", "avx512"}, optional
        Instruction set; by default as GRAPE6_ISA says.

    Raises
    ------
    ArgumentError, NotFiniteError
        (ValueErrors) for wrong shapes, NaN and infinities.
    OutOfMemoryError
        (a MemoryError).

    Examples
    --------
    >>> from grape6py import Tree, plummer
    >>> mass, pos, vel = plummer(10000, seed=1)
    >>> with Tree(pos, mass) as tree:
    ...     acc, pot, _ = tree.forces(eps=0.01)
    ...     index, distance = tree.nearest(6)
    """

    def __init__(self, pos, mass, vel=None, *, threads=None, isa=None):
        pos = _inputs.floats("pos", pos, (None, 3))
        n = len(pos)
        mass = _inputs.floats("mass", mass, (n,))
        vel = None if vel is None else _inputs.floats("vel", vel, (n, 3))
        options = {}
        if threads is not None:
            options[lib.G6X_THREADS] = _inputs.integer("threads", threads)
        if isa is not None:
            options[lib.G6X_ISA] = _inputs.choice("isa", isa, ISAS)
        self._n, self._moving, self._warned = n, vel is not None, False
        self._handle = check(
            lib.g6x_tree_open(n, _vectors(pos), _vectors(vel), pointer(mass, "double[]"))
        )
        self._closing = weakref.finalize(self, lib.g6x_tree_close, self._handle)
        for key, value in options.items():
            check(lib.g6x_tree_set_int(self._handle, key, value))

    def __enter__(self):
        self._check_open()
        return self

    def __exit__(self, *_):
        self.close()

    def __len__(self):
        return self._n

    def __repr__(self):
        state = f"{self._n} particles" if self._closing.alive else "closed"
        return f"<Tree: {state}>"

    def close(self):
        """Free the tree. Closing twice is fine."""
        self._closing()

    def forces(
        self,
        targets=None,
        vel=None,
        *,
        eps=0.0,
        accuracy=None,
        method="fmm",
        theta=None,
        order=5,
        self_index=None,
        last_acc=None,
        bound=0.0,
    ):
        """Acceleration, potential and jerk on some targets.

        Parameters
        ----------
        targets, vel : array_like, shape (ni, 3), optional
            Positions, and velocities for the jerk (zero by default). Without `targets`: the
            particles themselves, none of which acts on itself.
        eps : float
            Softening length.
        accuracy : float, optional
            Wanted median relative error of the acceleration, as on a Plummer sphere, from 1e-6 on;
            it stands for a `theta`. 1e-3 by default, if `theta` is not given either.
        method : {"fmm", "bh"}
            "fmm": far cells act on groups of targets through expansions [1]_ [2]_. "bh": cells
            with quadrupoles act on each target [3]_ [4]_.
        theta : float, optional
            Opening angle, above 0 and at most 1.5. Towards 0 the forces become those of the direct
            sum, in the time of a direct sum.
        order : int
            Order of the expansions of "fmm", 2 to 6.
        self_index : array_like of int, shape (ni,), optional
            Number of the particle that each target is, which does not act on it, or -1. By default
            none is one.
        last_acc : array_like, shape (ni,), optional
            Absolute values of the targets' accelerations, roughly, as from the step before.
        bound : float
            If above 0, a cell also counts as near ("fmm") where its error could be a larger share
            of `last_acc` than this.

        Returns
        -------
        TreeForces

        Raises
        ------
        ArgumentError, NotFiniteError
            (ValueErrors) for wrong shapes or values.
        AddressError
            (an IndexError) for a `self_index` that no particle has.
        NotOpenError
            (a RuntimeError) after `close`.
        RangeError
            (an OverflowError) for a force that does not fit a double.
        OutOfMemoryError
            (a MemoryError).

        Warns
        -----
        Grape6Warning
            Once, if particles lie at one place without softening: such a pair adds nothing.

        Notes
        -----
        Targets that are near each other share lists of cells: the last digits of a force depend
        on which other targets there are, within the error of the method. They do not depend on
        threads, and are the same for every call with the same arguments.

        References
        ----------
        .. [1] Dehnen 2002, J. Comput. Phys. 179, 27.
        .. [2] Warren & Salmon 1995, Comput. Phys. Commun. 87, 266.
        .. [3] Barnes & Hut 1986, Nature 324, 446.
        .. [4] Bedorf, Gaburov & Portegies Zwart 2012, J. Comput. Phys. 231, 2825.
        """
        self._check_open()
        eps = _inputs.number("eps", eps, negative=False)
        eps2 = _inputs.number("eps^2", eps * eps)
        kind = _inputs.choice("method", method, METHODS)
        theta = _opening_angle(method, theta, accuracy)
        pos, number, ni = self._targets(targets, self_index)
        if vel is not None and pos is None:
            raise ArgumentError("vel describes targets: give their positions too")
        vel = None if vel is None else _inputs.floats("vel", vel, (ni, 3))
        last_acc = None if last_acc is None else _inputs.floats("last_acc", last_acc, (ni,))
        bound = _inputs.number("bound", bound, negative=False)
        if bound > 0 and last_acc is None:
            raise ArgumentError("bound is a share of last_acc: give that too")
        acc, pot = np.empty((ni, 3)), np.empty(ni)
        jerk = np.empty((ni, 3)) if self._moving else None
        warnings_before = _warnings()
        check(
            lib.g6x_tree_forces(
                self._handle,
                ni,
                _vectors(pos),
                _vectors(vel),
                pointer(number, "int[]"),
                eps2,
                kind,
                _inputs.integer("order", order),
                theta,
                pointer(last_acc, "double[]"),
                bound,
                _vectors(acc),
                _vectors(jerk),
                pointer(pot, "double[]", written=True),
            )
        )
        if not self._warned and _warnings() > warnings_before:
            self._warned = True
            warnings.warn(text(lib.g6x_last_warning, -1), Grape6Warning, stacklevel=2)
        return TreeForces(acc, pot, jerk)

    def neighbours(self, radius, targets=None, *, self_index=None, csr=False):
        """All particles within a radius of each target, exactly.

        Parameters
        ----------
        radius : float or array_like, shape (ni,)
            A neighbour has r^2 <= radius^2 in double precision. Infinite: everybody, negative or
            NaN: nobody.
        targets : array_like, shape (ni, 3), optional
            Without: the particles themselves, none of which is its own neighbour.
        self_index : array_like of int, shape (ni,), optional
            Number of the particle that each target is, which is left out, or -1.
        csr : bool
            Give them in one array, for many targets.

        Returns
        -------
        list of ndarray of int32, or Neighbours
            Numbers of the particles, ascending.

        Raises
        ------
        ArgumentError, NotFiniteError, AddressError, NotOpenError
            As :meth:`forces`.
        """
        self._check_open()
        pos, number, ni = self._targets(targets, self_index)
        h2 = _inputs.squared_radii("radius", radius, ni)
        who = self._handle, ni, _vectors(pos), pointer(number, "int[]"), pointer(h2, "double[]")
        count, start = np.empty(ni, np.int32), np.zeros(ni + 1, np.int64)
        room = pointer(count, "int[]", written=True)
        check(lib.g6x_tree_within(*who, ffi.NULL, room, ffi.NULL))
        np.cumsum(count, out=start[1:])
        index = np.empty(start[-1], np.int32)
        places = pointer(start, "long long[]"), room, pointer(index, "int[]", written=True)
        check(lib.g6x_tree_within(*who, *places))
        if csr:
            return Neighbours(start, index)
        return [index[a:b] for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)]

    def nearest(self, k=1, targets=None, *, self_index=None):
        """The k nearest particles of each target, exactly.

        Parameters
        ----------
        k : int
        targets, self_index
            As in :meth:`neighbours`.

        Returns
        -------
        Nearest
            The nearest first; of particles at equal distance the one with the lowest number.

        Raises
        ------
        ArgumentError, NotFiniteError, AddressError, NotOpenError
            As :meth:`forces`.
        """
        self._check_open()
        if _inputs.integer("k", k) < 0:
            raise ArgumentError(f"k = {k} is negative")
        pos, number, ni = self._targets(targets, self_index)
        index, r2 = np.empty((ni, k), np.int32), np.empty((ni, k))
        out = pointer(index, "int[]", written=True), pointer(r2, "double[]", written=True)
        who = self._handle, ni, _vectors(pos), pointer(number, "int[]")
        check(lib.g6x_tree_nearest(*who, k, *out))
        return Nearest(index, np.sqrt(r2, out=r2))

    def _check_open(self):
        if not self._closing.alive:
            raise NotOpenError("this tree is closed; make a new Tree()")

    def _targets(self, targets, self_index):
        """Positions (None: the particles' own), the particles that the targets are, and ni."""
        if targets is None:
            if self_index is not None:
                raise ArgumentError("self_index describes targets: give their positions too")
            return None, None, self._n
        pos = _inputs.floats("targets", targets, (None, 3))
        if self_index is not None:
            self_index = _inputs.ints("self_index", self_index, len(pos))
        return pos, self_index, len(pos)


def _opening_angle(method, theta, accuracy):
    if theta is not None:
        if accuracy is not None:
            raise ArgumentError("give theta or accuracy, not both")
        return _inputs.positive("theta", theta)
    accuracy = _inputs.positive("accuracy", 1e-3 if accuracy is None else accuracy)
    if accuracy < _LEAST_ERROR:
        raise ArgumentError(
            f"accuracy = {accuracy}: pairs are summed in single precision, {_LEAST_ERROR} is the "
            "best that can be asked for; Grape6 sums directly"
        )
    factor, power, widest = _ERROR_BY_ANGLE[method]
    return min((accuracy / factor) ** (1 / power), widest)


def _warnings():
    return lib.g6x_last_warning(-1, ffi.NULL, 0)


def _vectors(array):
    return pointer(array, "double[][3]")
