"""``Leapfrog``: galaxies integrated with the leapfrog scheme, shared or block steps, by a tree."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from grape6py._arrays import libraries, validate
from grape6py._arrays.kinds import Attributes, DeviceArray, Floats, Numbers, State, UInt64s, Untyped
from grape6py._lib import memory_space
from grape6py._lib.tree import are_few
from grape6py._lib.tree_setting import SOFTENINGS, checked
from grape6py.errors import ArgumentError
from grape6py.forces.grape6 import Grape6
from grape6py.forces.tree import Tree
from grape6py.in_units import takes_quantities
from grape6py.integrators import external, gravity
from grape6py.integrators.base import Integration, kind_of, limits, no_others, outside_settings
from grape6py.integrators.blocks import power_of_two
from grape6py.integrators.leapfrog_arrays import STATE, Bodies
from grape6py.integrators.leapfrog_steps import Leaps
from grape6py.integrators.watch import Sighting
from grape6py.models import Particles
from grape6py.units import Units

# What a tree goes by, and of how many bodies, if neither theta nor accuracy is given: angles for a
# median error of 5e-4 to 1e-3 on spheres.
_USUAL: dict[str, Attributes] = {"fmm": {"theta": 0.75}, "bh": {"theta": 0.85}}
_WALK = ("theta", "accuracy", "method", "order", "few_bodies", "softening")


@takes_quantities
class Leapfrog(Integration):
    """N softened bodies, integrated with the leapfrog scheme, of second order.

    All bodies share one constant step, or every body has its own, a power of two times the
    largest (block steps), and only those whose steps end are the targets of a force call.

    With a tree for a backend, and a GPU, all of it is done there: arrays come to the
    host when one looks at them. Arrays that lie on a CUDA device (CuPy's, or with
    ``__cuda_array_interface__`` or DLPack) stay on theirs, and so does what :attr:`mass`,
    :attr:`pos`, :attr:`vel` and :meth:`potential` give; sums of them are NumPy's all the same.
    CuPy's current stream is used, and must not change. Errors are those of :class:`Hermite`.

    Parameters
    ----------
    mass, pos, vel, ids, G, units
        As in :class:`Hermite`.
    dt : float, optional
        Constant step shared by all bodies. Give it or `dt_max`.
    dt_max : float, optional
        Largest of block steps, rounded down to a power of two.
    eps : float or array_like, shape (n,)
        Softening length, or each body's own; above 0 for block steps, which go by it. A pair has
        sqrt(eps_i^2 + eps_j^2) if these are arrays, or the larger one of "spline". Bodies with
        their own stay the same, but for those beyond the `boundary`.
    softening : {"plummer", "spline"}
        As in :class:`Tree`, which alone has splines and an array of `eps`, on one rank.
    eta : float, optional
        Accuracy parameter of block steps, which are at most sqrt(2 eta eps / |a|) [2]_; by default
        0.025.
    backend : {"tree", "cpu-tree", "cuda-tree", "auto", "cpu", "cuda"}
        An octree made anew for each force call, on a GPU if there is one ("tree"); or the
        direct sum of :class:`Grape6`. "auto": as GRAPE6_BACKEND says.
    theta, accuracy, method, order
        Of a tree, as in :meth:`Tree.forces`: the opening angle, by default 0.75, or 0.85 for "bh",
        or the error of the accelerations, as a share of those of the step before. Pairs of up to
        4096 bodies (8192 on a GPU) are summed one by one, unless `theta` is given; of up to 2048 on
        the CPU, unless `backend` is "cuda-tree".
    field, orbit : optional
        A field from outside, and the frame of the bodies in it, as in :class:`Hermite`. Fields that
        depend on velocities get predicted ones; the scheme is then not reversible.
    boundary : float, optional
        Open boundary: a body farther than this from the origin is taken out, for good, and with its
        energy. One looks for such bodies every 16 (largest) steps. Without, space has no end.
    precision, threads
        Arithmetic of the direct sum, and threads on the CPU, as in :class:`Grape6`.
    comm : Intracomm of mpi4py, optional
        All of its ranks make the same calls, each with bodies of its own, none perhaps, and no rank
        has all of them. Arrays are of this rank's bodies, sums, as energies, of those of all ranks.
        Direct sums have the bits of one rank that has the bodies in the order of the ranks. See
        docs/parallel.md.

    Notes
    -----
    The predictor-corrector form of [1]_, which is that of kick, drift, kick. With shared steps it
    can be reversed, unless a tree goes by an accuracy. With a tree the potential, and so the
    energy, is the tree's own. How often, and when, one looks at the bodies does not change the bits
    of what is seen later.

    References
    ----------
    .. [1] Bedorf, Gaburov & Portegies Zwart 2012, J. Comput. Phys. 231, 2825.
    .. [2] Springel 2005, MNRAS 364, 1105, equation 34.

    Examples
    --------
    >>> from grape6py import Leapfrog, plummer
    >>> galaxy = Leapfrog(*plummer(2000, seed=1), eps=0.05, dt=1 / 64)
    >>> start = galaxy.energy().total
    >>> galaxy.evolve(0.5)
    >>> abs(galaxy.energy().total / start - 1) < 1e-3
    True
    """

    STATE, SEES_ENCOUNTERS, SHARES_BODIES = STATE, False, True
    _forces: gravity.Gravity
    _blocks: Leaps

    def __init__(
        self,
        mass: Numbers | Particles,
        pos: Numbers | None = None,
        vel: Numbers | None = None,
        *,
        ids: Numbers | None = None,
        G: float = 1.0,
        dt: float | None = None,
        dt_max: float | None = None,
        eps: Numbers = 0.0,
        softening: str = "plummer",
        eta: float | None = None,
        backend: str = "tree",
        theta: float | None = None,
        accuracy: float | None = None,
        method: str | None = None,
        order: int | None = None,
        boundary: float | None = None,
        field: external.AnyField | None = None,
        orbit: Numbers | None = None,
        units: Units | None = None,
        precision: str | None = None,
        threads: int | None = None,
        comm: Untyped = None,
    ) -> None:
        self._take_ranks(comm)
        with self._ranks.agreement("Leapfrog()"):
            with self._ranks.agreement("the arguments") as agreement:
                mass, pos, vel, ids = validate.bodies("Leapfrog", mass, pos, vel, ids)
                self._library = libraries.library_of((mass, pos, vel))
                if dt is not None:
                    no_others(eta=eta)
                each: Untyped = eps if validate.shape(getattr(eps, "number", eps)) else None
                values = each if hasattr(each, "max") else np.array([] if each is None else each)
                largest: Untyped = eps if each is None else values.max() if len(values) else 0.0
                self._settings = _steps(dt, dt_max, largest, 0.025 if eta is None else eta)
                self._settings |= _softening(softening, each is not None, backend, comm)
                walk = {"theta": theta, "accuracy": accuracy, "method": method, "order": order}
                self._settings |= _walk(backend, walk, precision)
                if boundary is not None:
                    self._settings["boundary"] = validate.positive("boundary", boundary)
                self._set_constant(G)
                outside = external.make(field, orbit, self.G, self._settings)
                agreement.same_contents("the settings", repr(sorted(self._settings.items())))
            given = {"mass": mass, "pos": pos, "vel": vel}
            self._open(given, validate.length(mass), outside, backend, precision, threads)
            with self._ranks.agreement("the bodies"), self._forces.arrays.place() as place:
                mass = place.floats("mass", mass, (None,))
                n = len(mass)
                pos, vel = (place.floats(name, given[name], (n, 3)) for name in ("pos", "vel"))
                place.check()
                mass, pos, vel = (array.copy() for array in (mass, pos, vel))
                own_eps = None if each is None else validate.lengths_of(place, each, n)
                if own_eps is not None and dt is None and n and not float(own_eps.min()):
                    raise ArgumentError("block steps go by the softening: an eps is 0")
            own_ids = None if ids is None else self._checked_ids(ids, n)
            self._blocks.start(Bodies(0.0, 0, 0, mass, pos, vel, None, ids=own_ids, eps=own_eps))

    def _restore(
        self, mass: Floats, state: State, outside: external.External | None, **options: Untyped
    ) -> None:
        tree, backend = self._has_tree, options["backend"]
        backend = "tree" if tree and backend == "auto" else backend
        if gravity.is_tree(backend) != tree:
            raise ArgumentError(
                f"backend = {backend!r}, but these bodies were integrated with "
                f"{'a tree' if tree else 'the direct sum'}"
            )
        precision = None if tree else options["precision"]
        self._open({}, len(mass), outside, backend, precision, options["threads"])
        self._blocks.put(mass, state)

    @staticmethod
    def settings_from(attributes: Mapping[str, Untyped]) -> Attributes:
        """Settings among the attributes of a file."""
        a = attributes
        settings = _steps(a.get("dt"), a.get("dt_max"), a["eps"], a.get("eta", 1.0))
        settings |= {k: str(a[k]) for k in ("softening", "eps_of") if k in a}
        if "theta" in a or "accuracy" in a:
            opening = a.get("theta"), a.get("accuracy")
            settings |= checked(str(a["method"]), *opening, int(a["order"]))
            if "few_bodies" in a:
                settings["few_bodies"] = str(a["few_bodies"])
        if "boundary" in a:
            settings["boundary"] = validate.positive("boundary", a["boundary"])
        return settings | outside_settings(a)

    def _open(
        self,
        given: Mapping[str, object],
        n: int,
        outside: external.External | None,
        backend: str,
        precision: str | None,
        threads: int | None,
    ) -> None:
        s = self._settings
        walk = {k: s[k] for k in _WALK if k in s} if self._has_tree else None
        requested: Attributes = {"backend": backend, "precision": precision, "threads": threads}
        eps, own = s["eps"], "eps_of" in s
        one = 0.0 if own else eps
        self._forces = gravity.find(given, n, one, walk, ranks=self._ranks, **requested)
        self._options = {"backend": kind_of(backend, self._forces.backend), "threads": threads}
        self._options["comm"] = self._ranks.comm
        rule = (s.get("eta", 0.0), *limits(s))
        scale = 1.0 if own else eps  # else of each body's
        self._blocks = Leaps(self._forces, rule, scale, s.get("boundary"), self.G, outside)
        self._given_on_device = memory_space.first_on_device(given) is not None
        self._begin()

    def _own_ids(self) -> UInt64s:
        return self._blocks.ids

    def _set_ids(self, ids: UInt64s) -> None:
        self._blocks.set_ids(ids)

    def _sighted(self) -> list[tuple[Sighting, tuple[int, ...]]]:
        return [(sighting, (sighting.body,)) for sighting in self._blocks.sighted]

    def potential(self) -> Floats:
        """Potential at each body at :attr:`time`; shape (n,).

        That of the tree; with the direct sum it is in mode double.
        """
        return self._array("pot") if self._has_tree else super().potential()

    def _array(self, name: str) -> Floats:
        """An array of all bodies for the caller."""
        return self._where_given(getattr(self._look(pot=name == "pot"), name))

    def _where_given(self, array: DeviceArray) -> Floats:
        """A copy of an array for the caller, where that has given the bodies."""
        arrays = self._forces.arrays
        if not self._given_on_device:
            return self._shown(arrays.fetch(array))
        with arrays.using():
            copy: Floats = libraries.given_to(self._library, array.copy())
            return copy

    @property
    def jerk(self) -> Floats:
        """Time derivatives of :attr:`acc`, which are summed when asked for; shape (n, 3)."""
        found: Untyped
        seen, arrays, eps = self._look(), self._forces.arrays, self._settings["eps"]
        with arrays.using():
            mass, pos, vel = seen.mass * self._G, seen.pos, seen.vel
            if self._has_tree:
                walk = {k: self._settings[k] for k in _WALK if k in self._settings}
                kind = "cpu" if self.backend.startswith("cpu") else "auto"
                law: Attributes = {"softening": walk.pop("softening", "plummer")}
                law |= {"backend": kind, "eps": seen.eps, "comm": self._ranks.comm}
                with Tree(mass, pos, vel, **law) as tree:
                    if walk.pop("few_bodies", None) and are_few(len(tree)):
                        del walk["theta"]
                    found = tree.forces(eps=0.0 if seen.eps is not None else eps, **walk)
            else:
                with Grape6(precision=self.precision, **self._options) as grape:
                    grape.set_particles(mass, pos, vel)
                    found = grape.forces(eps=eps)
            if self._blocks.external is not None and len(mass):
                self._blocks.external.add(self.time, pos, vel, found.acc, found.jerk, arrays.xp)
            return self._where_given(found.jerk)

    def _extra(self, blocks: Untyped) -> State:
        own = blocks.eps
        return super()._extra(blocks) | ({} if own is None else {"eps": own})

    def binaries(self) -> Untyped:
        """As :meth:`Hermite.binaries`, of bodies with one Plummer softening."""
        if "softening" in self._settings or "eps_of" in self._settings:
            raise ArgumentError("binaries() knows pairs with one Plummer softening for all alone")
        return super().binaries()

    def _energy_of(self, *given: Untyped) -> float:
        if "softening" in self._settings:
            raise ArgumentError(
                "bodies with spline softening stay as they are: make a new Leapfrog"
            )
        return super()._energy_of(*given)

    def _look(self, pot: bool = False) -> Untyped:
        with self._lock:
            return self._call("look", self.time, pot=pot)

    def _find_potential(self) -> Floats:
        if not self._has_tree:
            return super()._find_potential()
        return self._forces.arrays.fetch(self._look(pot=True).pot)

    @property
    def _has_tree(self) -> bool:
        return "method" in self._settings


def _steps(dt: float | None, dt_max: float | None, eps: float, eta: float) -> Attributes:
    """Settings of the steps, checked."""
    eps, _ = validate.softening(eps)
    settings = {"integrator": "leapfrog", "eps": eps}
    eta = validate.positive("eta", eta)
    if (dt is None) == (dt_max is None):
        raise ArgumentError("give dt, one step for all, or dt_max, the largest of block steps")
    if dt is not None:
        return settings | {"dt": validate.positive("dt", dt)}
    if not eps:
        raise ArgumentError("block steps go by the softening: eps = 0 needs dt, one step for all")
    return settings | {"eta": eta, "dt_max": power_of_two(validate.positive("dt_max", dt_max))}


def _softening(kind: str, has_own: bool, backend: str, comm: Untyped) -> Attributes:
    """Settings of the law of force, checked; none for one Plummer softening."""
    found = {"softening": kind} if validate.choice("softening", kind, SOFTENINGS) else {}
    found |= {"eps_of": "each body"} if has_own else {}
    if found and not gravity.is_tree(backend):
        raise ArgumentError(
            f"splines, and an eps of each body, are a tree's, which sums few bodies pair by pair, "
            f"but backend = {backend!r} is none"
        )
    if found and comm is not None:
        raise ArgumentError("bodies of several ranks have one Plummer softening")
    return found


def _walk(backend: str, given: Attributes, precision: str | None) -> Attributes:
    """Settings of the tree, checked; none for the direct sum."""
    if not gravity.is_tree(backend):
        wrong = [name for name, value in given.items() if value is not None]
        if wrong:
            raise ArgumentError(f"{wrong[0]} is a tree's, but backend = {backend!r} is none")
        return {}
    if precision is not None:
        raise ArgumentError("precision is that of direct sums: a tree has none; backend 'auto' has")
    method, order = given["method"] or "fmm", given["order"]
    theta, accuracy = given["theta"], given["accuracy"]
    if theta is not None and accuracy is not None:
        raise ArgumentError("give theta or accuracy, not both")
    usual: Attributes = {} if theta is not None or accuracy is not None else _USUAL.get(method, {})
    opening = {"theta": theta, "accuracy": accuracy} | usual
    few: Attributes = {"few_bodies": "directly"} if "theta" in usual else {}
    return checked(method, **opening, order=order) | few
