"""What a file of bodies says: the bodies, and beside them time, ids and units."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from grape6py._arrays import html
from grape6py._arrays.closed import Closed
from grape6py._arrays.kinds import AnyArray, Floats, Int8s, Untyped
from grape6py._arrays.particles import Particles
from grape6py.errors import ArgumentError, Grape6Warning, SnapshotError
from grape6py.units import Units

MOST_FILES = 1 << 16  # of a snapshot
_PIECE = 1 << 16  # rows written at a time


def narrowed(array: AnyArray, dtype: npt.DTypeLike, what: str) -> AnyArray:
    """Numbers in another precision; an ArgumentError names `what` has one that is beyond it."""
    with np.errstate(over="ignore"):
        found: AnyArray = array.astype(dtype)
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise ArgumentError(f"a number of {what} is beyond single precision")
    return found


def narrowed_pieces(array: AnyArray, dtype: npt.DTypeLike, what: str) -> Iterator[bytes]:
    """The bytes of such numbers, some rows at a time."""
    for first in range(0, len(array), _PIECE):
        yield narrowed(array[first : first + _PIECE], dtype, what).tobytes()


def check_g_one(units: Units | None, title: str) -> None:
    """Raise an ArgumentError for units that a format cannot have: G is 1 in all of its files."""
    if units is not None and abs(units.G - 1) > 1e-6:
        raise ArgumentError(
            f"{title} has units in which G = 1, and of {units} it is not: convert them first, by "
            f"--units '{units.with_g_one()}' or in_units(units.with_g_one())"
        )


def check_files(number: int) -> None:
    """Raise an ArgumentError for more files than a snapshot may have."""
    if number > MOST_FILES:
        raise ArgumentError(f"{number} files are too many: a snapshot has at most {MOST_FILES}")


def shares(n: int, k: int) -> list[int]:
    """Where k shares of n bodies begin, and where the last one ends."""
    return [n * share // k for share in range(k + 1)]


def joined_ids(ids: Sequence[AnyArray], error: Callable[[str], Exception]) -> AnyArray:
    """Ids one behind the other; an error of what is wrong if 64 bits cannot hold them all."""
    if len({part.dtype for part in ids}) > 1:  # NumPy would make doubles of int64 and uint64
        if min(int(part.min(initial=0)) for part in ids) < 0:
            raise error("some ids are below zero, and some above 2^63")
        ids = [part.astype(np.uint64) for part in ids]
    return ids[0] if len(ids) == 1 else np.concatenate(ids)


class Expansion(NamedTuple):
    """Of a snapshot of an expanding universe: what its numbers are multiplied by to be physical."""

    a: float  # scale factor
    h: float  # Hubble constant over 100 km/s/Mpc; 1 if the file does not use it
    mass: float  # the factors: of Gadget 1/h,
    length: float  # a/h
    velocity: float  # and sqrt(a): they are then peculiar ones


def _knowing_bodies(name: str) -> Callable[..., Untyped] | None:
    """The function of what one asks of bodies that has this name as a method."""
    home, name = {"binaries": ("bound_pairs", name), "plot": ("picture", "draw_bodies")}.get(
        name, ("diagnostics", name)
    )
    if name.startswith("_"):
        return None
    found = getattr(importlib.import_module(f"grape6py.{home}"), name, None)
    return found if inspect.isfunction(found) else None


class Snapshot(Closed, Particles):
    """Bodies of a file: :class:`Particles`, and what else the file says.

    The functions of :mod:`grape6py.diagnostics`, :func:`grape6py.binaries` and
    :func:`grape6py.picture.draw_bodies` (as `plot`) are methods that know bodies and units:
    ``snapshot.bound(eps=0.01).mass``. They take and give numbers in these units.

    Attributes
    ----------
    mass : ndarray of float64, shape (n,)
    pos, vel : ndarray of float64, shape (n, 3)
    time : float or None
        None if the format has no place for it, or of a cosmological run, whose time is `a`.
    ids : ndarray of int64, shape (n,), or None
        uint64 if one of them is larger.
    units : Units or None
        In which the numbers are: physical ones, also of a cosmological run.
    component : ndarray of int8, shape (n,), or None
        What each body belongs to (:class:`models.Labelled`), if it is of a run that says so.
    origin : ndarray, shape (2, 3)
        Position and velocity of the frame of the bodies of a run: :attr:`Hermite.origin`.
    external : float
        The energy that the bodies of a run have in a field.
    expansion : Expansion or None
        Of a cosmological run: positions are comoving, until units are asked for.
    format : str
        Its name in the table of formats.
    moments : int
        How many snapshots the file has, as :func:`read_snapshot` finds it.
    sets : sequence of (str, int)
        Names and numbers of bodies of the sets that the file has of this moment, one behind the
        other; none in formats without such.
    """

    time: float | None = None
    ids: AnyArray | None = None
    units: Units | None = None
    component: Int8s | None = None
    expansion: Expansion | None = None
    format: str = ""
    moments: int = 1
    sets: Sequence[tuple[str, int]] = ()
    origin: Floats = np.zeros((2, 3))
    external: float = 0.0
    is_of_a_run = False  # a file that this project's runs have written

    def __new__(
        cls,
        mass: Floats,
        pos: Floats,
        vel: Floats,
        *,
        time: float | None = None,
        ids: AnyArray | None = None,
        units: Units | None = None,
    ) -> Self:
        made = super().__new__(cls, mass, pos, vel)
        made.time = None if time is None else float(time)
        made.ids, made.units = ids, units
        return made

    def __getattr__(self, name: str) -> Untyped:
        function = _knowing_bodies(name)
        if function is None:
            return super().__getattr__(name)
        if self.expansion is not None:
            raise ArgumentError(f"{name}() needs physical numbers: take in_units(...) of these")
        taken = inspect.signature(function).parameters
        more = {} if self.units is None else {"G": self.units.G, "units": self.units}
        more |= {"ids": self.ids, "time": self.time, "external": self.external}
        known = {k: v for k, v in more.items() if k in taken and v is not None}
        return functools.partial(
            function, *(getattr(self, k) for k in self._fields if k in taken), **known
        )

    def __dir__(self) -> list[str]:
        found = vars(importlib.import_module("grape6py.diagnostics"))
        return [*super().__dir__(), "binaries", "plot", *filter(_knowing_bodies, found)]

    def _repr_html_(self) -> str:
        facts = {"bodies": len(self), "time": self.time, "units": self.units, "format": self.format}
        return html.table("Snapshot", facts | {"mass": f"{self.mass.sum():g}"})

    def __len__(self) -> int:
        """Number of bodies."""
        return len(self.mass)

    @classmethod
    def _make(cls, columns: Iterable[Floats]) -> Self:  # type: ignore[override]
        return cls(*columns)

    def check(self, name: str, first: int = 0) -> None:
        """Raise a SnapshotError for what is no number: a file of a name has such.

        `first` is the number of the first body. Masses below zero are warned of.
        """
        if self.time is not None and not np.isfinite(self.time):
            raise SnapshotError(f"{name}: its time is {self.time}")
        for what, array in zip(self._fields, self, strict=True):
            finite = np.isfinite(array)
            if not finite.all():
                row = int(np.argmin(finite.reshape(len(array), -1).all(axis=1)))
                raise SnapshotError(f"{name}: {what} of body {first + row} is {array[row]}")
        below = np.flatnonzero(self.mass < 0)
        if len(below):
            warnings.warn(
                f"{name}: {len(below)} masses are below zero; of body {first + below[0]} it is "
                f"{self.mass[below[0]]:g}",
                Grape6Warning,
                stacklevel=2,
            )

    def with_ids(self, ids: AnyArray | None) -> Snapshot:
        """The same with other ids."""
        made = Snapshot(*self, time=self.time, ids=ids, units=self.units)
        made.format, made.expansion, made.component = self.format, self.expansion, self.component
        return made

    def rows(self, some: slice) -> Snapshot:
        """Some of the bodies, with time and units."""
        ids = None if self.ids is None else self.ids[some]
        return Snapshot(*(a[some] for a in self), time=self.time, ids=ids, units=self.units)

    def cut(self, k: int) -> list[Snapshot]:
        """K shares of the bodies, in their order, whose numbers differ by one at most."""
        check_files(k)
        return [self.rows(slice(*ends)) for ends in itertools.pairwise(shares(len(self.mass), k))]

    def in_units(self, units: Units) -> Snapshot:
        """The same in other units; in these, if the file names none. The numbers are physical."""
        factors = [1.0, 1.0, 1.0, 1.0]
        if self.units is not None:
            factors = [self.units.factor(k, units) for k in ("mass", "length", "velocity", "time")]
        elif self.expansion is not None:
            factors = [*self.expansion[2:], 1.0]
        arrays = [
            array if factor == 1 else array * factor
            for array, factor in zip(self, factors, strict=False)
        ]
        time = None if self.time is None else self.time * factors[3]
        made = Snapshot(*arrays, time=time, ids=self.ids, units=units)
        made.format, made.component = self.format, self.component
        return made


def joined(snapshots: Sequence[Snapshot], error: Callable[[str], Exception]) -> Snapshot:
    """Bodies of several, one behind the other, with ids if all have them, and the first's rest."""
    columns = zip(*snapshots, strict=True)
    arrays = [column[0] if len(column) == 1 else np.concatenate(column) for column in columns]
    ids = [part.ids for part in snapshots if part.ids is not None]
    all_ids = joined_ids(ids, error) if len(ids) == len(snapshots) else None
    return Snapshot(*arrays, time=snapshots[0].time, ids=all_ids, units=snapshots[0].units)
