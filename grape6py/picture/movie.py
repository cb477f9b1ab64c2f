"""The movie of a run: its bodies at every output, as an animated GIF or, by ffmpeg, as MP4."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator

import matplotlib as mpl
from matplotlib.animation import FFMpegWriter, PillowWriter
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from grape6py import progress
from grape6py._arrays.kinds import PathLike, Untyped
from grape6py.errors import ArgumentError, SnapshotError
from grape6py.files.runs import moments
from grape6py.files.runs.outputs import outputs_of
from grape6py.files.storage import atomic_files
from grape6py.picture import STYLE, title_of, write_title
from grape6py.picture.bodies import Bodies
from grape6py.picture.scale import Scale, distinct

SUFFIXES = (".gif", ".mp4")
_DPI = 100
_SIDE = 5.4  # of the axes, in inches
_WIDTH, _LEFT, _BOTTOM, _ABOVE = 6.2, 0.66, 0.5, 0.62
_LEGEND = 0.3


def draw(
    path: PathLike,
    source: PathLike,
    *,
    fps: float = 15,
    size: float | None = None,
    plane: str = "xy",
    shown: bool = False,
) -> None:
    """Draw the movie of the run that an HDF5 file holds (``archive.py``), a frame an output.

    Axes, colours and brightness are the same in all frames. From 50 000 bodies on, density is
    drawn, as by :func:`picture.draw`. The file is written when the movie is whole.

    Parameters
    ----------
    path : path-like
        Of the movie; it ends in .gif or .mp4. For MP4 there must be ffmpeg. A GIF is made in
        memory, a megabyte a frame: take MP4 for a thousand outputs.
    source : path-like
        Of the file.
    fps : float
        Frames a second.
    size : float, optional
        Half of the width of what is seen, as its axes count; by default nearly all stars are.
    plane : str
        "xy", "xz" or "yz": what is seen.
    shown : bool
        Show a progress bar on a terminal.

    Raises
    ------
    ArgumentError
        (a ValueError) for another ending, without ffmpeg, or for a value out of range.
    SnapshotError
        (a ValueError) if the file has one output only, or a damaged one.
    OSError
        If a file cannot be opened or written.
    """
    kind = os.path.splitext(path)[1].lower()
    if not 0.01 <= fps <= 1000:  # a frame of GIF lasts at most 655 s
        raise ArgumentError(f"fps = {fps}: frames a second are 0.01 to 1000")
    writer = _writer(kind, fps)
    run = outputs_of(source)
    records = run.records()
    if len(records) < 2:
        raise SnapshotError(
            f"{os.fspath(source)} has one output, and a movie needs two: run longer, or with a "
            "smaller --dt-out"
        )
    scale = Scale.of(run.units)
    times = [record["time"] for record in scale.history(records)]
    sample = [scale.moment(moments.read(run, k)) for k in moments.spread(times)]
    name = title_of(run.about, len(sample[0].mass))
    bodies = Bodies(
        sample, name, plane=plane, size=size, pixels=int(_SIDE * _DPI), unit=scale.of_length
    )
    del sample
    with (
        tempfile.TemporaryDirectory(prefix="grape6-movie-") as folder,
        mpl.rc_context(STYLE),
        progress.bar(0, len(records), shown) as reached,
    ):
        made = os.path.join(folder, f"movie{kind}")
        figure, axes = _stage(bodies, name)
        with _ended(writer):
            writer.setup(figure, made, _DPI)
            for k, label in enumerate(distinct(times)):
                drawn = bodies.draw(axes, scale.moment(moments.read(run, k)), 72 * _SIDE)
                axes.set_title(f"{bodies.groups.noun} at {scale.at(label)}")
                writer.grab_frame()
                for artist in drawn:
                    artist.remove()
                reached(k + 1)
            writer.finish()
        with open(made, "rb") as file:
            data = file.read()
    atomic_files.write_whole(path, data)


def _writer(kind: str, fps: float) -> PillowWriter | FFMpegWriter:
    rate: Untyped = fps  # matplotlib takes what its types call int
    if kind not in SUFFIXES:
        raise ArgumentError(f"{kind!r}: the name of a movie ends in .gif or .mp4")
    if kind == ".gif":
        return PillowWriter(rate)
    if not FFMpegWriter.isAvailable():
        raise ArgumentError(
            "an MP4 is made by ffmpeg, which is not found: install it (Debian: apt-get install "
            "ffmpeg), or take a name that ends in .gif"
        )
    return FFMpegWriter(rate, codec="h264")


@contextlib.contextmanager
def _ended(writer: PillowWriter | FFMpegWriter) -> Iterator[None]:
    """Context in which what ffmpeg says is an OSError, and after which it waits for nothing."""
    try:
        yield
    except subprocess.CalledProcessError as error:
        words = error.stderr or error.output or b""
        text = words.decode(errors="replace") if isinstance(words, bytes) else str(words)
        last = (text.strip().splitlines() or ["no message"])[-1]
        raise OSError(f"ffmpeg ended with status {error.returncode}: {last}") from error
    except BaseException:  # Ctrl-C too
        if isinstance(writer, FFMpegWriter):
            with contextlib.suppress(Exception):
                writer.finish()  # or ffmpeg waits for more
        raise


def _stage(bodies: Bodies, name: str) -> tuple[Figure, Axes]:
    """The figure of all frames, and the axes of the bodies."""
    above = _ABOVE + (_LEGEND if bodies.groups.are_told else 0)
    height = _BOTTOM + _SIDE + above
    figure = Figure(figsize=(_WIDTH, height), dpi=_DPI)
    FigureCanvasAgg(figure)
    write_title(figure, name)
    place = (_LEFT / _WIDTH, _BOTTOM / height, _SIDE / _WIDTH, _SIDE / height)
    axes = figure.add_axes(place)
    bodies.prepare(axes, 72 * _SIDE)
    if bodies.groups.are_told:
        bottom = _BOTTOM + _SIDE + 0.27
        bodies.legend(figure.add_axes((place[0], bottom / height, place[2], 0.25 / height)))
    return figure, axes
