"""``Tree``: gravity and neighbours of many particles, from an octree.

Nothing is computed here: one object is one tree of libgrape6.so (_lib/tree.py), or one on a
GPU (cuda/tree/device_tree.py).
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, cast, overload

from grape6py._arrays import libraries, validate
from grape6py._arrays.closed import Closed
from grape6py._arrays.kinds import Attributes, Floats, Int32s, Numbers, Untyped
from grape6py._lib import tree_setting
from grape6py._lib.memory_space import first_on_device
from grape6py._lib.neighbours import Neighbours
from grape6py._lib.tree import HostTree, are_few, bound_of
from grape6py._lib.tree_setting import LEAST_ERROR, SOFTENINGS, WIDEST_BY_BOUND, Setting, Targets
from grape6py.errors import ArgumentError, Grape6Warning, NotOpenError
from grape6py.forces import tree_backends
from grape6py.in_units import takes_quantities
from grape6py.ranks.one_rank import ranks_of
from grape6py.units import Units

if TYPE_CHECKING:
    from grape6py._lib.memory_space import Place
    from grape6py.cuda.tree.device_tree import DeviceTree
    from grape6py.ranks.tree import SharedTree


class TreeForces(NamedTuple):
    """Forces on targets, row by row, in NumPy's arrays or CuPy's; see :class:`Tree`.

    Attributes
    ----------
    acc : ndarray, shape (ni, 3)
        Acceleration.
    pot : ndarray, shape (ni,)
        Potential, negative.
    jerk : ndarray, shape (ni, 3), or None
        Time derivative of `acc`; None if the tree has no velocities.
    """

    acc: Floats
    pot: Floats
    jerk: Floats | None


class Nearest(NamedTuple):
    """Nearest particles of each target, nearest first.

    Attributes
    ----------
    index : ndarray of int32, shape (ni, k)
        Their numbers; -1 where there are fewer than k.
    distance : ndarray, shape (ni, k)
        How far they are; infinite where there are fewer.
    """

    index: Int32s  # type: ignore[assignment]  # a method of other tuples
    distance: Floats


@takes_quantities
class Tree(Closed):
    """An octree of particles.

    It does not change after it was made: when particles have moved, make a new one, which takes
    a small part of the time that their forces take. Use it in a ``with`` statement, or call
    :meth:`close`, or leave it to the garbage collector. Any number of threads may use it at once.

    If one of its arrays lies on a CUDA device (CuPy's, or with ``__cuda_array_interface__`` or
    DLPack), so does the tree, which is made and used there on CuPy's current stream. Results are
    CuPy arrays if one of the arguments lies on a device or, without `targets`, if the particles do;
    what lies elsewhere than the tree is copied.

    Parameters
    ----------
    mass : float or array_like, shape (n,)
        Of any sign.
    pos : array_like, shape (n, 3)
        In any units with G = 1. `mass` and `pos` may also come in the other order.
    vel : array_like, shape (n, 3), optional
        Without, there is no jerk.
    eps : array_like, shape (n,), optional
        Each particle's own softening length; a pair has the larger one of "spline", and of
        "plummer" the root of the sum of both squares. Without, all pairs of a sum have one.
    softening : {"plummer", "spline"}
        The law of force: the potential 1/sqrt(r^2 + eps^2); or the compact spline of Gadget [1]_,
        GIZMO and others, Newtonian from r = h = 2.8 eps on, with the potential 1/eps at its centre.
    units : Units, optional
        Units of the numbers: then, or if mass and pos are quantities (of astropy or AMUSE), all
        that has a unit may be given as a quantity, and comes out as such. See docs/formats.md.
    backend : {"auto", "cpu", "cuda"}
        Where the tree of NumPy's arrays is; also "tree", "cpu-tree" and "cuda-tree", as in
        :class:`Grape6`. "auto": as GRAPE6_BACKEND says; by default on a GPU, if there is one, CuPy
        and 16384 particles or more, unless `threads` or `isa` is given. The first tree on a GPU
        that a release has no machine code for waits some seconds for compiled kernels, which are
        kept.
    threads : int, optional
        0 for as many as the process may use; by default as GRAPE6_THREADS says. Results do not
        depend on it.
    isa : {"best", "base", "avx2", "avx512", "neon"}, optional
        Instruction set; by default as GRAPE6_ISA says. Neither says anything about a CUDA device.
    comm : Intracomm of mpi4py, optional
        All of its ranks make the same calls, each with particles and targets of its own, none
        perhaps; forces are those of the particles of all ranks, and no rank has all of them.
        Particles are numbered through the ranks: see :attr:`first`. See docs/parallel.md.
    work : array_like, shape (n,), optional
        With `comm`, what the forces on each particle cost: :attr:`work` of the
        tree before. Each rank gets the same share of it.

    Raises
    ------
    ArgumentError, NotFiniteError
        (ValueErrors) for wrong shapes, NaN and infinities, and arrays of another CUDA device.
    OutOfMemoryError
        (a MemoryError).
    BackendError
        (a RuntimeError) if the CUDA device does not work, or if there is none for `backend` "cuda".

    References
    ----------
    .. [1] Springel, Yoshida & White 2001, New Astronomy 6, 79.

    Examples
    --------
    >>> from grape6py import Tree, plummer
    >>> mass, pos, vel = plummer(10000, seed=1)
    >>> with Tree(mass, pos) as tree:
    ...     acc, pot, _ = tree.forces(eps=0.01)
    ...     index, distance = tree.nearest(6)

    On a GPU, with CuPy's arrays::

        with Tree(cupy.asarray(mass), cupy.asarray(pos)) as tree:
            acc, pot, _ = tree.forces(eps=0.01)
    """

    def __init__(
        self,
        mass: Numbers,
        pos: Numbers,
        vel: Numbers | None = None,
        *,
        eps: Numbers | None = None,
        softening: str = "plummer",
        units: Units | None = None,
        backend: str = "auto",
        threads: int | None = None,
        isa: str | None = None,
        comm: Untyped = None,
        work: Numbers | None = None,
    ) -> None:
        del units  # of takes_quantities
        mass, pos = self._in_order({"mass": mass, "pos": pos}).values()
        given = {"pos": pos, "mass": mass, "vel": vel, "eps": eps}
        self._warned = False
        self._options: Attributes = {"softening": softening, "backend": backend}
        self._options |= {"threads": threads, "isa": isa}
        self._is_spline = validate.choice("softening", softening, SOFTENINGS)
        with contextlib.ExitStack() as stack:
            ranks = ranks_of(comm)
            stack.enter_context(ranks.agreement("Tree()"))
            if ranks.comm is not None and (self._is_spline or eps is not None):
                raise ArgumentError("a tree of several ranks has one Plummer softening for all")
            self._library = libraries.library_of(given.values())
            options = tree_backends.options_of(threads, isa)
            self._tree: HostTree | DeviceTree | SharedTree = (
                tree_backends.find(given, backend, options, validate.length(pos))
                if ranks.comm is None
                else tree_backends.shared(ranks, given, backend, options)
            )
            using: contextlib.AbstractContextManager[Place] = self._tree.using(given)
            place = stack.enter_context(using)
            try:
                pos = place.floats("pos", pos, (None, 3))
            except ArgumentError:
                if hasattr(mass, "shape") or first_on_device({"mass": mass}) is None:
                    raise
                mass, pos = pos, place.floats("pos", mass, (None, 3))  # no array shows its shape
            self._n = n = len(pos)
            mass = place.floats("mass", mass, (n,))
            vel = None if vel is None else place.floats("vel", vel, (n, 3))
            self._eps = None if eps is None else validate.lengths_of(place, eps, n)
            own = {} if eps is None else {"eps": self._eps}
            if work is not None:
                self._shared_tree().work_before(place.floats("work", work, (n,)))
            self._tree.build(place, pos, mass, vel, **own)

    @staticmethod
    def _in_order(given: Attributes) -> Attributes:
        """Arguments by name, of which mass and pos may have been exchanged."""
        both = given["mass"], given["pos"]
        shapes = [validate.shape(getattr(value, "number", value)) for value in both]  # of AMUSE
        depths = [len(shape) for shape in shapes]
        if depths in ([1, 1], [2, 2]) and shapes[0] != (0,):
            raise ArgumentError(
                f"mass has shape {shapes[0]} and pos has {shapes[1]}: the order is Tree(mass, pos) "
                "or Tree(pos, mass), with shapes (n,) or () and (n, 3)"
            )
        return given | {"mass": given["pos"], "pos": given["mass"]} if depths[0] == 2 else given

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._tree)

    @property
    def first(self) -> int:
        """With `comm`, the number of this rank's first particle; else 0."""
        return self._tree.first

    @property
    def work(self) -> Floats:
        """With `comm`: what the last forces on each particle cost, in pairs; shape (n,)."""
        self._check_open()
        shared = self._shared_tree()
        with shared.using({}) as place:
            found: Untyped = place.give(shared.work())
        return found  # type: ignore[no-any-return]

    @property
    def seconds(self) -> dict[str, float]:
        """With `comm`: how long each stage has taken on this rank; see docs/parallel.md."""
        self._check_open()
        return dict(self._shared_tree().seconds)

    def _shared_tree(self) -> SharedTree:
        if self._tree.ranks is None:
            raise ArgumentError("work is what ranks share out: this tree is on one")
        return cast("SharedTree", self._tree)

    def __repr__(self) -> str:
        state = f"{len(self)} particles" if self._tree.is_open else "closed"
        return f"<Tree: {state}>"

    def close(self) -> None:
        """Free the tree. Closing twice is fine."""
        self._tree.close()

    def forces(
        self,
        targets: Numbers | None = None,
        vel: Numbers | None = None,
        *,
        eps: float = 0.0,
        accuracy: float | None = None,
        method: str = "fmm",
        theta: float | None = None,
        order: int | None = None,
        self_index: Numbers | None = None,
        last_acc: Numbers | None = None,
        bound: float = 0.0,
        momentum: bool = False,
    ) -> TreeForces:
        """Acceleration, potential and jerk on some targets.

        Parameters
        ----------
        targets, vel : array_like, shape (ni, 3), optional
            Positions, and velocities for the jerk (zero by default). Without `targets`: the
            particles themselves, none of which acts on itself.
        eps : float
            Softening length. If particles have their own, that of targets which are none.
        accuracy : float, optional
            Wanted relative error of the accelerations, from 1e-6 to 0.1, whatever the shape of the
            system and its heaviest body; 1e-3 by default, if neither `theta` nor `bound` is given.
            Half of the errors are below 1.5 times that, 99 % below four times, the largest below a
            hundred times, relative to the acceleration or a twentieth of the sum of absolute values
            of all pairs. Cells stand for their particles as far as what their terms can come to
            allows [5]_. Pairs of up to 4096 particles (8192 on a GPU), or 2^24 pairs, take no
            longer one by one: they are summed so, unless there is a `theta`.
        method : {"fmm", "bh"}
            "fmm": far cells act on groups of targets through expansions [1]_ [2]_. "bh": cells
            with quadrupoles act on each target [3]_ [4]_.
        theta : float, optional
            Opening angle, above 0 and at most 1.5. Towards 0 the forces become those of the direct
            sum, in the time of a direct sum. Errors then depend on the shape of the system.
        order : int, optional
            Order of the expansions of "fmm", 2 to 6, by default 5.
        self_index : array_like of int, shape (ni,), optional
            Number of the particle that each target is, which does not act on it, or -1. By default
            none is one. With `comm`, of this rank's own particles.
        last_acc : array_like, shape (ni,), optional
            Absolute values of the targets' accelerations, roughly, as from the step before. Below
            a millionth of their mean, they count as that.
        bound : float
            If above 0, a cell also counts as near where its estimated error is a larger share of
            `last_acc` than this; `theta` is then 1.4 by default. See :meth:`bound`.
        momentum : bool
            Let forces add up to zero, and jerks, but for rounding in double precision: the momentum
            of a closed system is then conserved where all bodies are moved at once. Every
            acceleration is changed by the same small share of its length, 1e-5 in a usual sum of
            10^5 bodies. Only without `targets`.

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
        .. [5] Dehnen 2014, Comput. Astrophys. 1, 1.
        """
        given = {"targets": targets, "vel": vel, "self_index": self_index, "last_acc": last_acc}
        with self._call(given) as place:
            _, eps2 = validate.softening(eps)
            if eps2 and self._eps is not None and targets is None:
                raise ArgumentError("the particles have their own eps: give none for all of them")
            setting = _setting(method, theta, accuracy, order, bound)
            setting = setting.replaced(eps2=eps2, momentum=bool(momentum), spline=self._is_spline)
            ni, on = self._targets(place, targets, self_index)
            if vel is not None and targets is None:
                raise ArgumentError("vel describes targets: give their positions too")
            vel = None if vel is None else place.floats("vel", vel, (ni, 3))
            if last_acc is not None:
                last_acc = place.floats("last_acc", last_acc, (ni,))
            elif setting.bound > 0:
                raise ArgumentError("bound is a share of last_acc: give that too")
            if momentum and targets is not None:
                raise ArgumentError("momentum is that of all particles: give no targets")
            place.check()
            if theta is None and bound > 0 and are_few(len(self)):  # as any accuracy takes them
                setting = setting.replaced(theta=0.0, bound=0.0, accuracy=LEAST_ERROR)
            is_used = setting.bound > 0 or setting.accuracy > 0
            on = on._replace(vel=vel, last_acc=last_acc if is_used else None)
            self._tree.check(on)
            found = self._tree.forces(setting, on)
            arrays = TreeForces(*map(place.give, found[:3]))
            forces: TreeForces = libraries.all_given_to(self._library_of(given, targets), arrays)
        if found.warning and not self._warned:
            self._warned = True
            warnings.warn(found.warning, Grape6Warning, stacklevel=2)
        return forces

    def bound(
        self,
        accuracy: float,
        *,
        eps: float = 0.0,
        method: str = "fmm",
        order: int | None = None,
        last_acc: Numbers | None = None,
    ) -> float:
        """The bound of :meth:`forces` that gives an accuracy.

        It depends on accuracy, method and order alone.

        Parameters
        ----------
        accuracy, eps, method, order
            As in :meth:`forces`, where they have to be the same.
        last_acc : array_like, shape (n,), optional
            Not used; it may be given.

        Returns
        -------
        float
            For forces with `last_acc`, and without `theta`.

        Raises
        ------
        ArgumentError, NotFiniteError, NotOpenError, OutOfMemoryError
            As :meth:`forces`.

        Examples
        --------
        >>> import numpy as np
        >>> from grape6py import Tree, plummer
        >>> mass, pos, vel = plummer(10000, seed=1)
        >>> with Tree(mass, pos) as tree:
        ...     size = np.linalg.norm(tree.forces().acc, axis=1)
        ...     bound = tree.bound(1e-3, last_acc=size)
        >>> with Tree(mass, pos + vel / 1000) as tree:
        ...     acc, pot, _ = tree.forces(order=4, bound=bound, last_acc=size)
        """
        with self._call({"last_acc": last_acc}) as place:
            _, eps2 = validate.softening(eps)
            setting = Setting.of(tree_setting.checked(method, None, accuracy, order), eps2=eps2)
            if last_acc is not None:
                last_acc = place.floats("last_acc", last_acc, (self._n,))
            place.check()
            self._tree.check_bound(setting, last_acc)
            return bound_of(setting.order, setting.accuracy)

    @overload
    def neighbours(
        self,
        radius: Numbers,
        targets: Numbers | None = None,
        *,
        self_index: Numbers | None = None,
        csr: Literal[False] = False,
    ) -> list[Int32s]: ...

    @overload
    def neighbours(
        self,
        radius: Numbers,
        targets: Numbers | None = None,
        *,
        self_index: Numbers | None = None,
        csr: Literal[True],
    ) -> Neighbours: ...

    @overload
    def neighbours(
        self,
        radius: Numbers,
        targets: Numbers | None = None,
        *,
        self_index: Numbers | None = None,
        csr: bool,
    ) -> list[Int32s] | Neighbours: ...

    def neighbours(
        self,
        radius: Numbers,
        targets: Numbers | None = None,
        *,
        self_index: Numbers | None = None,
        csr: bool = False,
    ) -> list[Int32s] | Neighbours:
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
            Give them in one array, for many targets, as :meth:`Grape6.forces` does.

        Returns
        -------
        list of ndarray of int32, or Neighbours
            Numbers of the particles, ascending.

        Raises
        ------
        ArgumentError, NotFiniteError, AddressError, NotOpenError
            As :meth:`forces`.
        """
        with self._call({"radius": radius, "targets": targets, "self_index": self_index}) as place:
            ni, on = self._targets(place, targets, self_index)
            h2 = place.squared_radii("radius", radius, ni)
            place.check()
            self._tree.check(on)
            start, index = map(place.give, self._tree.within(on, h2))
        found = Neighbours(start, index)
        return found if csr else list(found)

    def nearest(
        self, k: int = 1, targets: Numbers | None = None, *, self_index: Numbers | None = None
    ) -> Nearest:
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
        given = {"targets": targets, "self_index": self_index}
        with self._call(given) as place:
            if validate.integer("k", k) < 0:
                raise ArgumentError(f"k = {k} is negative")
            _, on = self._targets(place, targets, self_index)
            place.check()
            self._tree.check(on)
            found = Nearest(*map(place.give, self._tree.nearest(on, k)))
            nearest: Nearest = libraries.all_given_to(self._library_of(given, targets), found)
            return nearest

    def _library_of(self, given: Mapping[str, object], targets: object) -> str | None:
        """Whose arrays results are to be."""
        return libraries.library_of(given.values()) or (self._library if targets is None else None)

    def copy(self) -> Tree:
        """Another tree of the same particles, which gives the same bits."""
        make, particles = self.__reduce__()
        return cast("Tree", make(*particles))

    def __reduce__(self) -> tuple[Untyped, tuple[Untyped, ...]]:
        self._check_open()
        if self._tree.ranks is not None:
            raise ArgumentError("a tree of several ranks has no copies: make a new one")
        pos, mass, vel = self._tree.particles()
        return functools.partial(Tree, eps=self._eps, **self._options), (mass, pos, vel)

    @contextlib.contextmanager
    def _call(self, given: Mapping[str, object]) -> Iterator[Place]:
        """A call with these arguments, which the place checks."""
        using: contextlib.AbstractContextManager[Place] = self._tree.using(given)
        with using as place:
            self._check_open()
            yield place

    def _check_open(self) -> None:
        if not self._tree.is_open:
            raise NotOpenError("this tree is closed; make a new Tree()")

    def _targets(
        self, place: Place, targets: Numbers | None, self_index: Numbers | None
    ) -> tuple[int, Targets]:
        """How many targets there are, and their positions and numbers."""
        if targets is None:
            if self_index is not None:
                raise ArgumentError("self_index describes targets: give their positions too")
            return self._n, Targets()
        pos = place.floats("targets", targets, (None, 3))
        if self_index is not None:
            self_index = place.ints("self_index", self_index, len(pos))
        return len(pos), Targets(pos, number=self_index)


def _setting(
    method: str, theta: float | None, accuracy: float | None, order: int | None, bound: float
) -> Setting:
    """Arguments of :meth:`Tree.forces` checked."""
    bound = validate.number("bound", bound, negative=False)
    if accuracy is not None and (bound > 0 or theta is not None):
        other = "bound" if bound > 0 else "theta"
        raise ArgumentError(f"give {other} or accuracy, not both")
    if theta is None and bound > 0:
        theta = WIDEST_BY_BOUND
    return Setting.of(tree_setting.checked(method, theta, accuracy, order), bound=bound)
