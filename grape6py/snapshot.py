"""Files of bodies, in the formats of the field: read_snapshot and write_snapshot.

The formats are listed in docs/formats.md; ``formats/`` has a module for each.
"""

import contextlib
import io
import os
from collections.abc import Iterator
from typing import IO

import numpy as np
from numpy.typing import ArrayLike

from grape6py import in_units
from grape6py._arrays import validate
from grape6py._arrays.kinds import AnyArray, PathLike, Untyped
from grape6py.errors import ArgumentError, SnapshotError
from grape6py.files import formats
from grape6py.files.formats import Snapshot, Source, hdf5, numbered, parts
from grape6py.files.formats.bodies import joined_ids, shares
from grape6py.files.formats.source import NOTHING, Given
from grape6py.files.runs import reader as run_reader
from grape6py.files.storage import atomic_files
from grape6py.models import Particles
from grape6py.ranks.one_rank import ranks_of
from grape6py.ranks.ranks import Ranks
from grape6py.units import Units

__all__ = ["Snapshot", "read_snapshot", "write_snapshot"]


def read_snapshot(
    source: PathLike | IO[str] | IO[bytes] | io.BufferedIOBase,
    which: int | None = None,
    *,
    format: str | None = None,
    set: str | None = None,
    mass: float | None = None,
    velocities: str | None = None,
    comm: Untyped = None,
) -> Snapshot:
    """Read bodies from a file of any of the formats, or from numbered files.

    Parameters
    ----------
    source : path-like or file object
        Opened in text or binary mode, if a file object; it is not closed. The format is known by
        the contents. A path may also be that of an HDF5 file of a run (``archive.py``). Of Gadget's
        snapshots in numbered files, a.0.hdf5, a.1.hdf5, ..., all are read, by the name of one of
        them, or by a.hdf5 or a, if there is no such file.
    which : int
        Which of the snapshots of a file, if it has several; by default the last one.
    set : str, optional
        The name of one of the sets of particles of an AMUSE file; by default those of one moment,
        one behind the other. "all" also takes those together of which the file does not say whether
        they are sets or moments; these are refused by default.
    format : str, optional
        The name of a format, if its contents are not to be asked.
    mass : float, optional
        Of each body that the file has no mass of, in the file's units.
    velocities : "zero", optional
        Bodies of a file without velocities are at rest.
    comm : mpi4py's communicator, optional
        All of its ranks make this call, with the same path. Each gets an equal share of the bodies,
        in the order of the file: bodies ``n * rank // size`` to ``n * (rank + 1) // size``.

    Returns
    -------
    Snapshot
        Mass, positions and velocities, and as attributes `time`, `ids`, `units` and `expansion`, or
        None where the file does not say.

    Raises
    ------
    SnapshotError
        (a ValueError) that says what is wrong in which file, in text for each malformed line (the
        first 20 in full). If numbered files are missing, or not those of one snapshot; if bodies
        have no masses or velocities, and neither is given.
    OSError
        If the file cannot be opened.
    RankError
        If another rank has failed.

    Warns
    -----
    Grape6Warning
        For a file of a cosmological run, whose lengths are comoving; `Snapshot.in_units` makes the
        numbers physical.
    """
    ranks, is_open = ranks_of(comm), hasattr(source, "read")
    found, name, heads, run = None, "", [], ""
    with ranks.agreement("read_snapshot()"):
        with ranks.agreement("a look at the file") as agreement:
            if comm is not None and is_open:
                raise ArgumentError(
                    "with comm= a snapshot is read from a path, and not an open file"
                )
            given = Given.checked(mass, velocities)
            path: Untyped = "" if is_open else source
            words = os.fspath(path), which, format, given, set
            agreement.same_contents("the arguments of read_snapshot()", *map(str, words))
            if ranks.rank == 0:
                with opened(source, given) as file:
                    format_ = format_of(file, format, not is_open)
                    has_rows = ranks.size > 1 and set is None and os.path.isfile(file.name)
                    if has_rows and format_ is None:
                        run = file.name
                    elif has_rows and format_ is not None and format_.layout is not None:
                        file.check_which(-1 if which is None else which, 1)
                        name, heads = format_.name, format_.layout.heads(file)
                    else:
                        found = whole(file, format_, which, set)
        if ranks.size == 1 and found is not None:
            return found
        name, heads, run = ranks.broadcast((name, heads, run))
        if heads:
            return _rows_of(ranks, name, heads, given)
        if not run:
            return _dealt(ranks, found)
        with ranks.agreement("a run"):
            return run_reader.read_snapshot(run, -1 if which is None else which, ranks)


@contextlib.contextmanager
def opened(source: Untyped, given: Given = NOTHING) -> Iterator[Source]:
    """Context with what is read: a file of a path, or an open one."""
    if not hasattr(source, "read"):
        name = file_of(source)
        is_found = name != os.fspath(source)  # a pipe is read if it is named
        with atomic_files.opened(name) if is_found else open(name, "rb") as file:
            yield Source(file, name, given)
        return
    name = str(getattr(source, "name", "snapshot"))
    if isinstance(source, io.TextIOBase):
        source = io.BytesIO(source.read().encode("utf-8", "replace"))
    yield Source(source, name, given)


def file_of(path: PathLike) -> str:
    """The file that is opened for a path: the first of its numbered files, if there is no other."""
    name = os.fspath(path)
    first = None if os.path.lexists(name) else parts.first_of(name)
    if first is None:
        return name
    try:
        with parts.opened(first) as source:
            layout = formats.format_of(source).layout
            return first if layout is not None and layout.head(source).files > 1 else name
    except (SnapshotError, OSError):
        return first  # whose reader says what is wrong


def format_of(source: Source, name: str | None, is_path: bool) -> formats.Format | None:
    """The format of a name, or of what is there; None if that is a file of a run."""
    if name is not None:
        return formats.named(name)
    is_of_a_run = is_path and source.head.startswith(hdf5.MAGIC) and _is_of_a_run(source)
    return None if is_of_a_run else formats.format_of(source)


def whole(
    source: Source, format_: formats.Format | None, which: int | None, only: str | None = None
) -> Snapshot:
    """All bodies of a snapshot, or those of a set of it."""
    number = -1 if which is None else validate.integer("which", which)
    if only is not None and (format_ is None or not format_.has_sets):
        title = "a run" if format_ is None else format_.title
        raise source.wrong(f"set {only!r}: there are no sets in files of {title}")
    if format_ is None:
        return run_reader.read_snapshot(source.name, number)
    if format_.has_sets:
        found = format_.read(source, None if which is None else number, only)
    else:
        found = format_.read(source, number)
        source.check_which(number, found.moments)
    if format_.layout is None:  # which checks each file by its own name
        found.check(source.name)
    found.format = format_.name
    return found


def _is_of_a_run(source: Source) -> bool:
    try:
        return hdf5.kind(source) in ("grape6py", "")
    except ValueError:
        return True  # damaged: archive.py can say more, and finds the outputs of a run


def _rows_of(ranks: Ranks, name: str, heads: list[parts.Head], given: Given) -> Snapshot:
    """What this rank reads of files of a format: its own rows alone."""
    with ranks.agreement("own rows"):
        layout = formats.FORMATS[name].layout
        assert layout is not None
        found = layout.between(heads, ranks.rows(parts.total(heads)), given)
    if found.ids is not None:  # on all ranks alike
        extremes = np.array([found.ids.min(initial=0), found.ids.max(initial=0)], found.ids.dtype)
        with ranks.agreement("ids"):
            of_all = joined_ids(ranks.from_each(extremes), heads[0].wrong)
        found.ids = found.ids.astype(of_all.dtype, copy=False)
    found.format = name
    return found


def _dealt(ranks: Ranks, found: Snapshot | None) -> Snapshot:
    """What this rank gets of a snapshot that the first one has, which deals the bodies out."""
    none = None if found is None else (found.rows(slice(0)), found.format, found.is_of_a_run)
    mine, name, is_of_a_run = ranks.broadcast(none)
    found = mine if found is None else found
    cuts = np.array(shares(len(found), ranks.size), np.int64)
    columns = [ranks.exchanged(array, cuts)[0] for array in found]
    ids = None if found.ids is None else ranks.exchanged(found.ids, cuts)[0]
    mine = Snapshot(*columns, time=mine.time, ids=ids, units=mine.units)
    mine.format, mine.is_of_a_run = name, is_of_a_run
    return mine


def write_snapshot(
    target: PathLike | IO[str] | IO[bytes],
    mass: ArrayLike | Particles,
    pos: ArrayLike | None = None,
    vel: ArrayLike | None = None,
    *,
    comment: str | None = None,
    time: float | None = None,
    ids: ArrayLike | None = None,
    units: Units | None = None,
    format: str | None = None,
    files: int | None = None,
    comm: Untyped = None,
) -> None:
    """Write bodies to a file of any of the formats, or to numbered files.

    Parameters
    ----------
    target : path-like or file object
        The ending of a name decides on the format: text, if it has none. A file that is there is
        replaced when the new one is whole. A file object gets text by default, and is opened in
        binary mode for all other formats; it is not closed.
    mass : array_like, shape (n,), or Particles
        With `Particles` or a `Snapshot`, leave out `pos` and `vel`.
    pos, vel : array_like, shape (n, 3)
        Velocities default to zero.
    comment : str, optional
        Kept where the format has a place: in text on top, each line after a ``#``.
    time : float, optional
    ids : array_like of int, shape (n,), optional
    units : Units, optional
        In which the numbers are; these three are by default those of a `Snapshot`.
    format : str, optional
        The name of a format, instead of the ending's.
    files : int, optional
        In how many files, for the formats of Gadget: a.0.hdf5, a.1.hdf5, ... of a.hdf5, with equal
        shares of the bodies. With 1 it is one file, without a number.
    comm : mpi4py's communicator, optional
        All of its ranks make this call, each with its own bodies and the rest the same, and each
        writes the file of its number. One rank alone writes one file, without a number.

    Numbered files are written aside, all of them, before the first one gets its name: what fails,
    on any rank, leaves what was there; what ends midway, the old files or the new ones. They take
    the place of a file without a number, and of all numbered files of the snapshot before; one
    without a number that of numbered ones of this project. Bodies without ids get 1, 2, ...
    through all.

    Raises
    ------
    ArgumentError
        (a ValueError) if shapes do not fit, a value is NaN, infinite, masked or too large for the
        format, or no format has this ending, or what must be the same differs between the ranks.
        Nothing is written then.
    OSError
        If it cannot be written. What was there is there still.
    RankError
        If another rank has failed.

    Warns
    -----
    Grape6Warning
        If the format has no place for time, ids or units that there are. If files of the snapshot
        before could not be removed.
    """
    file: Untyped = target
    is_open = hasattr(file, "write")
    ranks = ranks_of(comm)
    with ranks.agreement("write_snapshot()") as agreement:
        content = _content(mass, pos, vel, time, ids, units)
        if format is not None:
            format_ = formats.named(format)
        else:
            format_ = formats.FORMATS["text"] if is_open else formats.by_name(file)
        pieces_of = 1 if files is None else validate.integer("files", files)
        if pieces_of < 1:
            raise ArgumentError(f"files = {pieces_of}: at least one")
        if comm is not None and files is not None:
            raise ArgumentError("files= is for one process: with comm= each rank writes one file")
        if is_open and (comm is not None or pieces_of > 1):
            raise ArgumentError("numbered files have a name: files= and comm= need a path")
        words = "" if is_open else os.fspath(file), str(comment), repr(content.units), format_.name
        agreement.same_contents("the arguments of write_snapshot()", *words)
        agreement.same("time", content.time)
    if pieces_of > 1 or ranks.size > 1:
        with ranks.agreement("write_snapshot()"):
            numbered.write(file, content.cut(pieces_of), format_, comment or "", ranks=ranks)
        return
    name = str(getattr(file, "name", "the file")) if is_open else os.fspath(file)
    pieces = encoded(content, format_, name, comment or "")
    if not is_open:
        numbered.write_one(file, pieces, format_)
    elif isinstance(file, io.TextIOBase):
        if format_.name not in ("text", "csv", "starlab", "petar"):
            raise ArgumentError(f"{format_.title} goes to a file opened in binary mode")
        file.writelines([piece.decode() for piece in pieces])
    else:
        file.writelines(list(pieces))


def encoded(
    content: Snapshot, format_: formats.Format, name: str, comment: str = ""
) -> Iterator[bytes]:
    """The pieces of a file; a warning of two calls above names what the format does not keep."""
    lost = format_.lost(content)
    if lost:
        format_.warn(name, lost)
        if any(what.startswith("ids ") for what in lost):
            content = content.with_ids(np.arange(1, len(content.mass) + 1))
    return format_.write(content, comment)


def _content(
    mass: Untyped,
    pos: ArrayLike | None,
    vel: ArrayLike | None,
    time: float | None,
    ids: ArrayLike | None,
    units: Units | None,
) -> Snapshot:
    """What is to be written, checked."""
    if pos is None and isinstance(mass, tuple) and (hasattr(mass, "_fields") or len(mass) == 3):
        if isinstance(mass, Snapshot):
            time = mass.time if time is None else time
            ids = mass.ids if ids is None else ids
            units = mass.units if units is None else units
        mass, pos, vel = mass
    given = {"mass": mass, "pos": pos, "vel": vel, "time": time}
    converter = in_units.converter_for(units, given)
    if converter is not None:
        is_said, units = units is not None, converter.units
        dimensions = "mass", "length", "velocity", "time"
        mass, pos, vel, time = (
            converter.numbers(name, value, dimension, unitless=is_said)
            for (name, value), dimension in zip(given.items(), dimensions, strict=True)
        )
    mass, pos = validate.reals("mass", mass), validate.reals("pos", pos)
    vel = np.zeros_like(pos) if vel is None else validate.reals("vel", vel)
    n = mass.size
    if mass.shape != (n,) or pos.shape != (n, 3) or vel.shape != (n, 3):
        raise ArgumentError(
            f"a snapshot needs mass (n,), pos (n, 3) and vel (n, 3), "
            f"not {mass.shape}, {pos.shape} and {vel.shape}"
        )
    for names, array in (("m", mass[:, None]), ("x y z", pos), ("vx vy vz", vel)):
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            row, column = bad[0]
            raise ArgumentError(f"{names.split()[column]} of body {row} is {array[row, column]}")
    if time is not None:
        time = validate.number("time", time)
    return Snapshot(mass, pos, vel, time=time, ids=_ids(ids, n), units=units)


def _ids(given: ArrayLike | None, n: int) -> AnyArray | None:
    if given is None:
        return None
    found = validate.numbers("ids", given)
    if found.dtype.kind not in "iu" or found.shape != (n,):
        raise ArgumentError(f"ids are {found.dtype} of shape {found.shape}, not integers ({n},)")
    is_large = found.dtype.kind == "u" and n and found.max() >= 2**63
    return found.astype(np.uint64 if is_large else np.int64)
