"""``grape6 plot``: the picture of a run, or of the bodies of a snapshot."""

import argparse
import math
from pathlib import Path

from grape6py import diagnostics, snapshot
from grape6py.cli.movie import beside_old
from grape6py.cli.numbers import picture_name

_EPILOG = """
Of a run: energy error, virial ratio and Lagrangian radii against time, and the bodies at four of
its outputs, the last one among them, as by grape6 run --plot. Of a file of bodies in any format:
the bodies from two sides. What is there is never replaced: it is renamed to NAME.~1~, ...
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the subcommand takes."""
    parser.description, parser.epilog = __doc__, _EPILOG
    add = parser.add_argument
    add("file", metavar="FILE", type=Path, help="a run of grape6, or a file of bodies")
    add("-o", "--out", metavar="NAME", type=picture_name,
        help="the picture: .png, .pdf or .svg (FILE's name, .png)")  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Draw it, and return the exit status."""
    from grape6py import picture  # matplotlib takes its time

    source: Path = options.file
    with beside_old(options.out or Path(f"{source.stem}.png")) as made:
        found = snapshot.read_snapshot(source)
        if found.is_of_a_run:
            picture.draw_file(made, source)
        else:
            time = math.nan if found.time is None else found.time
            shown = [picture.Moment(time, found.mass, found.pos)]
            title = f"{source.name}, N = {len(found.mass)}"
            picture.draw(made, title, [], diagnostics.FRACTIONS, shown, units=found.units)
    return 0
