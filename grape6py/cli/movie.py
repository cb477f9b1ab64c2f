"""``grape6 movie``: the movie of a run, a frame for each of its outputs."""

import argparse
import contextlib
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from grape6py.errors import printable
from grape6py.files.storage import atomic_files

_EPILOG = """
FILE is the HDF5 file of a run (grape6 run --out FILE). More outputs make a smoother movie:
give grape6 run a small --dt-out. Stars of galaxies are drawn in colours, dark matter faintly;
from 50 000 bodies on, their density is drawn. What is there is never replaced: it is renamed to
NAME.~1~, NAME.~2~, ... Ctrl-C ends with nothing written.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the subcommand takes."""
    parser.description, parser.epilog = __doc__, _EPILOG
    add = parser.add_argument
    add("file", metavar="FILE", type=Path, help="what grape6 run has saved")
    add("--out", metavar="NAME", type=Path, help="the movie, .gif or .mp4 (FILE's name, .gif); "
        "MP4 needs ffmpeg")  # fmt: skip
    add("--fps", type=float, default=15, help="frames a second (15)")
    add("--size", type=float, metavar="R",
        help="half of the width of what is seen, as its axes count")  # fmt: skip
    add("--plane", choices=("xy", "xz", "yz"), default="xy", help="what is seen (xy)")


def run(options: argparse.Namespace) -> int:
    """Draw it, and return the exit status."""
    from grape6py.picture import movie  # matplotlib takes its time

    try:
        with beside_old(options.out or Path(f"{options.file.stem}.gif")) as made:
            movie.draw(made, options.file, fps=options.fps, size=options.size,
                       plane=options.plane, shown=True)  # fmt: skip
    except KeyboardInterrupt:
        print("grape6: interrupted; no movie was written", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0


@contextlib.contextmanager
def beside_old(path: Path) -> Iterator[Path]:
    """Context with the place of a file that is to be made: it is written, and said; what is there
    is renamed."""
    atomic_files.check_place(path)
    with tempfile.TemporaryDirectory(prefix="grape6-picture-") as folder:
        made = Path(folder, f"made{path.suffix}")
        yield made
        data = made.read_bytes()
    kept: list[str | None] = []
    atomic_files.write_whole(path, data, lambda: kept.append(atomic_files.keep(path, stays=True)))
    for name in filter(None, kept):
        print(printable(f"grape6: {path} was there, and is {name} now"), file=sys.stderr)
    print(printable(f"written: {path}"))
