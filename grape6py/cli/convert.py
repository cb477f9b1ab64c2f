"""``grape6 convert``: bodies from a file of one format to one of another."""

import argparse
import contextlib
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from grape6py import snapshot
from grape6py.errors import ArgumentError, Grape6Warning, printable
from grape6py.files import formats
from grape6py.files.formats import numbered
from grape6py.files.runs import index as run_index
from grape6py.files.runs import writer as runs
from grape6py.files.storage import atomic_files
from grape6py.units import Units

_EPILOG = """
The format of IN is known by its contents, that of OUT by its ending:
{}.
What a format has no place for, as ids, time or units, is named and left out. What is there is never
replaced: it is renamed to OUT.~1~, OUT.~2~, ... A snapshot in numbered files is read by the name of
one of them, or without the number: snap_010 for snap_010.0.hdf5, snap_010.1.hdf5, ...
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the subcommand takes."""
    parser.description = __doc__
    parser.epilog = _EPILOG.format(textwrap.fill(formats.listed(), 95))
    add = parser.add_argument
    names = ", ".join(formats.FORMATS)
    add("source", metavar="IN", type=Path, help="a file of bodies, or a run of grape6")
    add("target", metavar="OUT", type=Path, help="the file to write")
    add("--from", dest="given", metavar="FORMAT", help=f"format of IN: {names}")
    add("--format", metavar="FORMAT", help="format of OUT, of the same names")
    add("--which", type=int, metavar="K",
        help="which snapshot, if IN has several; from the end if negative (-1)")  # fmt: skip
    add("--set", metavar="NAME",
        help="of an AMUSE file one of its sets, or 'all' (see grape6 info IN)")  # fmt: skip
    add_lacking(parser)
    add("--files", type=int, metavar="N",
        help="write N numbered files, OUT.0, OUT.1, ..., in the formats of Gadget")  # fmt: skip
    add("--units", metavar="TEXT",
        help="units of OUT, as 'Msun pc' (with G = 1) or 'Msun kpc km/s'; those of IN, if it names "
        "none")  # fmt: skip


LACKING = ("mass", "velocities")


def add_lacking(parser: argparse.ArgumentParser) -> None:
    """Add the options for what a file of bodies lacks."""
    parser.add_argument("--mass", type=float, metavar="M",
        help="of each body of a file that has no mass of it, in the file's units")  # fmt: skip
    parser.add_argument("--velocities", choices=("zero",),
        help="bodies of a file without velocities are at rest")  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Convert, and return the exit status."""
    format_ = formats.named(options.format) if options.format else formats.by_name(options.target)
    files = 1 if options.files is None else options.files
    if files < 1:
        raise ArgumentError(f"--files {files}: at least one")
    units = None if options.units is None else Units.from_text(options.units)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", Grape6Warning)
        given = {name: getattr(options, name) for name in ("set", *LACKING)}
        found = snapshot.read_snapshot(options.source, options.which, format=options.given, **given)
        if units is not None:
            found = found.in_units(units)
        atomic_files.check_place(options.target)
        kept: list[str] = []
        with _keeper(options.target, kept) as keep:
            if files > 1:
                written = numbered.write(options.target, found.cut(files), format_, keep=keep)
            else:
                written = [str(options.target)]
                pieces = snapshot.encoded(found, format_, *written)
                numbered.write_one(options.target, pieces, format_, keep)
    lines = [f"grape6: {warning.message}" for warning in caught] + kept
    lost = " ".join(format_.lost(found))
    named = {"time": f"time {found.time}", "ids": "ids", "units": f"units {found.units}"}
    also = [words for what, words in named.items() if getattr(found, what) is not None]
    lines.append(
        f"written: {_shown(written)}, {format_.title}: "
        + ", ".join([f"{len(found.mass)} bodies", *(x for x in also if x.split()[0] not in lost)])
    )
    to_screen = atomic_files.is_stream(options.target)  # which has the bodies
    print(printable("\n".join(lines)), file=sys.stderr if to_screen else sys.stdout)
    return 0


def _shown(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


@contextlib.contextmanager
def _keeper(target: Path, lines: list[str]) -> Iterator[Callable[[list[str]], None]]:
    """What renames files that are there, a run with its outputs, and adds lines that say so."""
    is_run = run_index.outputs_in(atomic_files.outputs_folder(target))
    with runs.Writer(target) if is_run else contextlib.nullcontext() as writer:

        def rename(names: list[str]) -> None:
            if str(target) in names:
                now = writer.keep() if writer else atomic_files.keep(target, stays=True)
                if now is not None:
                    lines.append(f"grape6: {target} was there, and is {now} now")
            parts = [name for name in names if name != str(target)]
            if parts:
                kept = _shown(atomic_files.keep_all(parts, stays=True))
                verbs = ("was", "is") if len(parts) == 1 else ("were", "are")
                lines.append(f"grape6: {_shown(parts)} {verbs[0]} there, and {verbs[1]} {kept} now")

        yield rename  # no run writes to it meanwhile
