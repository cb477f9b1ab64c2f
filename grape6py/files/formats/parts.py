"""Snapshots of Gadget's kind in numbered files: NAME.0, NAME.1, ... or NAME.0.hdf5, ...

Each file has bodies of its own, and a header that says how many there are in all. Files whose
headers contradict each other are refused. Those of this project also have a mark: a digest of the
whole snapshot, the same in all of them, and the number of the file. So files of two snapshots,
which a crash can leave under names of one, are never taken for one.
"""

import contextlib
import itertools
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from grape6py._arrays.kinds import PathLike
from grape6py.errors import Grape6Warning, SnapshotError
from grape6py.files.formats.bodies import MOST_FILES, Expansion, Snapshot, joined
from grape6py.files.formats.source import NOTHING, Given, Source
from grape6py.files.storage import atomic_files
from grape6py.units import Units

_ENDING = re.compile(r"((?:\.h5|\.hdf5)?)((?:\.~\d+~)?)$", re.IGNORECASE)  # of any name
_NUMBER = re.compile(r"\.(0|[1-9]\d{0,6})$")


class Head(NamedTuple):
    """What a file says of itself, and of the snapshot that it is of."""

    name: str  # of the file
    counts: tuple[int, ...]  # bodies of each type in the file
    totals: tuple[int, ...]  # and in all files; none if it does not say
    files: int  # of the snapshot
    time: float | None
    units: Units | None
    expansion: Expansion | None
    has_ids: bool
    mark: str  # digest of the snapshot and number of the file; "" if another code wrote it

    @property
    def n(self) -> int:
        """Bodies in the file."""
        return sum(self.counts)

    def wrong(self, what: str) -> SnapshotError:
        """An error that names the file."""
        return SnapshotError(f"{self.name}: {what}")


class Place(NamedTuple):
    """Of a file that is written, among those of its snapshot."""

    number: int
    files: int
    total: int  # bodies of all files
    largest_id: int  # of all files
    digest: bytes  # 8, of the snapshot


def mark(digest: bytes, number: int) -> str:
    """What a file of this project says of its set."""
    return f"{digest.hex()} {number}"


class Layout(NamedTuple):
    """How a format that may be in numbered files is read."""

    head: Callable[[Source], Head]  # what a source says of itself
    rows: Callable[[Source, int, int], Snapshot]  # its bodies from one number to another

    def read(self, source: Source, which: int) -> Snapshot:
        """All bodies of all files of a snapshot, in their order."""
        heads = self.heads(source)
        return self.between(heads, slice(0, total(heads)), source.given, source)

    def heads(self, source: Source) -> list[Head]:
        """Of all files of a snapshot, of which the source is one.

        If its writer has ended midway, some are found by names aside.
        """
        try:
            return self._heads(source)
        except SnapshotError:
            found = self._half_named(source)
            if found is None:
                raise
            return found

    def _half_named(self, source: Source) -> list[Head] | None:
        """Of a snapshot whose files are all there, each by its name or one aside; or None."""
        stem, _, ending = split_number(source.name)
        folder, stem = os.path.split(stem)

        def named(k: int) -> Iterator[Head]:
            own = f"{stem}.{k}{ending}"
            for one in (os.path.join(folder, own), *atomic_files.asides(folder, re.escape(own))):
                with contextlib.suppress(SnapshotError, OSError), opened(one, source.given) as part:
                    yield self.head(part)

        for first in filter(lambda head: head.mark, named(0)):
            digest = first.mark.split(" ")[0]
            numbers = range(min(first.files, MOST_FILES))
            found: list[Head] = []
            for k in numbers:
                found += [head for head in named(k) if head.mark == f"{digest} {k}"][:1]
            names = [os.path.join(folder, f"{stem}.{k}{ending}") for k in numbers]
            if len(found) == len(names) and [head.name for head in found] != names:
                _check_set(found)
                return found
        return None

    def _heads(self, source: Source) -> list[Head]:
        first = self.head(source)
        _check(first)
        if (of := first.expansion) is not None:  # numbers are not what this project integrates
            warnings.warn(
                f"{source.name}: of a cosmological run, with a = {of.a:.6g} and h = {of.h:.6g}; "
                "positions are comoving, and the numbers are those of the file; in units that are "
                f"asked for masses are times {of.mass:.6g}, lengths {of.length:.6g} and velocities "
                f"{of.velocity:.6g}: physical",
                Grape6Warning,
                stacklevel=1,
            )
        if first.files <= 1:
            return [first]
        stem, number, ending = split_number(source.name)
        if number is None or first.files > MOST_FILES or not os.path.isfile(source.name):
            raise source.wrong(
                f"it is one of {first.files} files, and not named like the others: NAME.0"
            )
        if number >= first.files:
            raise source.wrong(f"it is one of {first.files} files, and has the number {number}")
        found = []
        for k in range(first.files):
            if k == number:
                found.append(first)
                continue
            name = f"{stem}.{k}{ending}"
            try:
                with opened(name, source.given) as part:
                    found.append(self.head(part))
            except FileNotFoundError:
                raise source.wrong(
                    f"it is one of {first.files} files, and {name} is not there"
                ) from None
            _check_alike(found[-1], first)
        _check_set(found)
        return found

    def between(
        self, heads: Sequence[Head], rows: slice, given: Given, source: Source | None = None
    ) -> Snapshot:
        """Bodies of a snapshot, from one number to another; `source` is open already."""
        found = []
        for k, some in overlap([head.n for head in heads], rows.start, rows.stop):
            name = heads[k].name
            is_open = source is not None and source.name == name
            with contextlib.nullcontext(source) if is_open else opened(name, given) as part:
                assert part is not None
                if part is not source and self.head(part) != heads[k]:
                    raise part.wrong("it has changed while it was read")
                found.append(self.rows(part, some.start, some.stop))
                found[-1].check(name, some.start)
        none = Snapshot(np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3)), ids=np.zeros(0, np.int64))
        made = joined(found or [none], heads[0].wrong)
        if not (total(heads) and all(head.has_ids for head in heads if head.n)):
            made.ids = None
        made.units, made.expansion = heads[0].units, heads[0].expansion
        made.time = heads[0].time if made.expansion is None else None  # that is a scale factor
        return made


def total(heads: Sequence[Head]) -> int:
    """Bodies of a snapshot."""
    return sum(head.n for head in heads)


def overlap(counts: Sequence[int], begin: int, end: int) -> Iterator[tuple[int, slice]]:
    """Which of several pieces, one behind the other, have rows from begin to end, and which."""
    for k, n in enumerate(counts):
        some = slice(max(begin, 0), min(end, n))
        if some.start < some.stop:
            yield k, some
        begin, end = begin - n, end - n


# ---- names -----------------------------------------------------------------------------


def _split(name: str) -> tuple[str, str, str]:
    """A name without its ending of HDF5 and that of a backup, and these; they may be empty."""
    found = _ENDING.search(name)
    assert found is not None
    return name[: found.start()], found[1], found[2]


def part_name(path: PathLike, number: int) -> str:
    """The name of a numbered file: a.3.hdf5 of a.hdf5, a.gadget.3 of a.gadget."""
    stem, *ending = _split(os.fspath(path))
    return f"{stem}.{number}{''.join(ending)}"


def split_number(name: str) -> tuple[str, int | None, str]:
    """A name before its number, that, if it has one, and what comes after."""
    stem, *ending = _split(name)
    number = _NUMBER.search(stem)
    if number is None:
        return stem, None, "".join(ending)
    return stem[: number.start()], int(number[1]), "".join(ending)


def first_of(path: PathLike) -> str | None:
    """The first of the numbered files of a name, which may lack the ending of HDF5, too."""
    folder, name = os.path.split(os.fspath(path))
    stem, of_hdf5, backup = _split(name)
    endings = [of_hdf5 + backup] if of_hdf5 else [backup, ".h5" + backup, ".hdf5" + backup]
    found = []
    with contextlib.suppress(OSError):
        for other in os.listdir(folder or "."):
            its_stem, number, its_ending = split_number(other)
            if its_stem == stem and number is not None and its_ending in endings:
                found.append((number, other))
    return os.path.join(folder, min(found)[1]) if found else None


@contextlib.contextmanager
def opened(name: str, given: Given = NOTHING) -> Iterator[Source]:
    """Context with one of the files."""
    with atomic_files.opened(name) as file:
        yield Source(file, name, given)


# ---- which belong together -------------------------------------------------------------


def _check(head: Head) -> None:
    if min(head.counts, default=0) < 0:
        raise head.wrong(f"the numbers of particles are {list(head.counts)}")
    if head.time is not None and not np.isfinite(head.time):
        raise head.wrong(f"its time is {head.time}")


def _check_alike(head: Head, first: Head) -> None:
    """Refuse a file that is of another snapshot than the first one."""
    _check(head)
    for what, mine, other in (
        ("number of files", head.files, first.files),
        ("number of types of particles", len(head.counts), len(first.counts)),
        ("time", head.time, first.time),
        ("numbers of particles in all files", list(head.totals), list(first.totals)),
        ("units", head.units, first.units),
        ("digest", head.mark.split(" ")[0], first.mark.split(" ")[0]),
    ):
        if mine != other:
            raise head.wrong(
                f"it is of another snapshot than {first.name}: {what} {mine} instead of {other}"
            )


def _check_set(heads: Sequence[Head]) -> None:
    """Refuse files that are not those of one snapshot, each once and in their order."""
    for number, head in enumerate(heads):
        _, _, its_number = head.mark.partition(" ")
        if head.mark and its_number != str(number):
            raise head.wrong(f"it was written as file {its_number}, and renamed")
    first = heads[0]
    there = [sum(counts) for counts in zip(*(head.counts for head in heads), strict=True)]
    if any(first.totals) and any(
        (n - of_all) % 2**32
        for n, of_all in itertools.zip_longest(there, first.totals, fillvalue=0)
    ):  # the upper half of the numbers is elsewhere, or nowhere
        raise first.wrong(
            f"it and the other {len(heads) - 1} files have {there} particles, and "
            f"should have {list(first.totals)}: they are not of one snapshot, or not whole"
        )


def expansion(
    source: Source,
    time: float | None,
    redshift: float | None,
    omega: float,
    h: float,
    is_stated: float | None = None,
) -> Expansion | None:
    """That of a snapshot, with Gadget's factors; None if space does not expand.

    It does if the file says so; or by its density, if the redshift is not 0, or the time is a = 1;
    or if the time is the scale factor of a redshift that is not 0.
    """
    z = redshift or 0.0
    is_scale_factor = time is None or abs(time * (1 + z) - 1) < 1e-5
    if is_stated is None:
        is_stated = (omega > 0 or z != 0) and (is_scale_factor or (omega > 0 and z != 0))
    if not is_stated:
        return None
    a = (time or 0.0) if redshift is None else 1 / (1 + z) if z > -1 else 0.0
    if not (0 < a < np.inf and 0 < h < np.inf):
        raise source.wrong(f"of a cosmological run with a = {a:g}, z = {z:g}, HubbleParam = {h:g}")
    return Expansion(a, h, mass=1 / h, length=a / h, velocity=a**0.5)
