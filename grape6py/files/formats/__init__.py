"""Formats of files of bodies: which there are, and which one a file is of.

Each module reads and writes one of them: `recognises`, `read` and `write` of a
:class:`~.source.Source` and a :class:`~.bodies.Snapshot`. A file is known by its contents first,
by its name second.
"""

import os
import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from grape6py._arrays.kinds import PathLike
from grape6py.errors import ArgumentError, Grape6Warning, SnapshotError, meant
from grape6py.files.formats import (
    amuse_hdf5,
    gadget,
    gadget_hdf5,
    hdf5,
    nbody6,
    nemo,
    parts,
    petar,
    starlab,
    text,
    tipsy,
)
from grape6py.files.formats.bodies import Snapshot
from grape6py.files.formats.source import Source

__all__ = ["FORMATS", "Format", "Snapshot", "Source", "by_name", "format_of", "listed", "named"]


class Format(NamedTuple):
    """A format."""

    name: str  # in commands and calls
    title: str  # what it is called
    endings: tuple[str, ...]  # of names of such files; of two of one ending the first is written
    pattern: str  # of whole names of files that have no ending of their own
    keeps: str  # what it has a place for beside the bodies: time, ids, units
    ids: tuple[int, int]  # the least and the largest id that it keeps
    recognises: Callable[[Source], bool]  # whether a source is of it (of HDF5 `hdf5.kind` knows)
    read: Callable[..., Snapshot]  # the snapshot of a number
    write: Callable[..., Iterator[bytes]]  # the pieces of a file and a comment
    # If it may be in numbered files: `write` then takes the place of a file among them, too.
    layout: parts.Layout | None = None
    # Whether it has sets with names: `read` then takes one, or None, and None for no number.
    has_sets: bool = False

    def lost(self, content: Snapshot) -> list[str]:
        """What a snapshot has and the format no place for."""
        there = [what for what in ("time", "ids", "units") if getattr(content, what) is not None]
        lost = [what for what in there if what not in self.keeps.split()]
        ids = content.ids
        if ids is not None and len(ids) and "ids" not in lost:
            least, largest = int(ids.min()), int(ids.max())
            if least < self.ids[0] or largest > self.ids[1]:
                lost.append(f"ids from {least} to {largest} (they are 1, 2, ... now)")
        return lost

    def warn(self, name: str, lost: list[str]) -> None:
        """Name what a file of a name does not keep, by a warning of three calls above."""
        text = f"{name}: {self.title} has no place for {', '.join(lost)}: not kept"
        warnings.warn(text, Grape6Warning, stacklevel=4)


_BITS_32, _BITS_64, _UNSIGNED = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1), (0, 2**64 - 1)
_ANY = (_BITS_64[0], _UNSIGNED[1])
_FROM_ONE = (1, 2**63 - 1)  # PeTar ends with a failed assertion at an id below
FORMATS = {
    format_.name: format_
    for format_ in (
        Format("gadget-hdf5", "Gadget HDF5", (".hdf5", ".h5"), "", "time ids units", _ANY,
               lambda _: False, gadget_hdf5.LAYOUT.read, gadget_hdf5.write, gadget_hdf5.LAYOUT),
        Format("amuse", "AMUSE HDF5", (".amuse",), "", "time ids units", _UNSIGNED,
               lambda _: False, amuse_hdf5.read, amuse_hdf5.write, None, True),
        Format("nemo", "NEMO snapshot", (".nemo", ".snap"), "", "time ids", _BITS_64,
               nemo.recognises, nemo.read, nemo.write),
        Format("gadget", "Gadget binary, format 1", (".gadget", ".gad"), "", "time ids", _UNSIGNED,
               gadget.recognises, gadget.LAYOUT.read, gadget.write, gadget.LAYOUT),
        Format("gadget2", "Gadget binary, format 2", (".gadget2",), "", "time ids", _UNSIGNED,
               partial(gadget.recognises, has_labels=True), gadget.LAYOUT.read,
               partial(gadget.write, has_labels=True), gadget.LAYOUT),
        Format("nbody6", "NBODY6 conf.3", (".conf3",), r"conf\.3(_.*)?|out3", "time ids units",
               _BITS_32, nbody6.recognises, nbody6.read, nbody6.write),
        Format("starlab", "Starlab dyn", (".dyn",), "", "time ids units", _BITS_64,
               starlab.recognises, starlab.read, starlab.write),
        Format("petar", "PeTar", (".petar",), r"data\.\d+", "time ids", _FROM_ONE,
               petar.recognises, petar.read, petar.write),
        Format("tipsy", "Tipsy", (".tipsy", ".std", ".tip"), "", "time", (0, 0),
               tipsy.recognises, tipsy.read, tipsy.write),
        Format("csv", "CSV", (".csv",), "", "ids", _ANY,
               lambda _: False, text.read, text.write_csv),
        Format("text", "text (NBODY6 dat.10)", (".txt", ".dat"), r"[^.]+|(dat|fort)\.\d+", "",
               (0, 0), text.recognises, text.read, text.write),
    )
}  # fmt: skip


def listed() -> str:
    """The formats with their endings, for messages."""
    return ", ".join(f"{f.title} ({' '.join(f.endings)})" for f in FORMATS.values())


def named(name: str) -> Format:
    """The format of a name; an ArgumentError lists them."""
    if name in FORMATS:
        return FORMATS[name]
    hint = meant(str(name), FORMATS)
    raise ArgumentError(f"there is no format {name!r}{hint}; there are: {', '.join(FORMATS)}")


def by_name(path: PathLike) -> Format:
    """The format in which a file of a name is written; an ArgumentError lists the endings."""
    found = _by_name(path)
    if found is None:
        raise ArgumentError(
            f"{os.fspath(path)}: no format has names with this ending; there are {listed()}"
        )
    return found


def _by_name(path: PathLike) -> Format | None:
    name = os.path.basename(os.fspath(path)).lower()
    fits = (
        f for f in FORMATS.values() if name.endswith(f.endings) or re.fullmatch(f.pattern, name)
    )
    return next(fits, None)


def format_of(source: Source) -> Format:
    """The format of a file that is there; a SnapshotError if it is of none."""
    of_hdf5 = hdf5.kind(source)
    if of_hdf5 == "":
        raise source.wrong("an HDF5 file that is neither of Gadget's layout nor of AMUSE's")
    known = FORMATS.get(of_hdf5 or "") or next(
        (f for f in FORMATS.values() if f.recognises(source)), None
    )
    supposed = _by_name(source.name)
    columns, csv = FORMATS["text"], FORMATS["csv"]
    if known is columns and supposed is csv:
        return csv
    if known is None and supposed not in (None, columns, csv):
        return supposed  # whose reader says what is wrong
    if known is None:
        raise SnapshotError(f"{source.name}: unknown format; there are {listed()}")
    return known
