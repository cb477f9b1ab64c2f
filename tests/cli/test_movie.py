"""``grape6 movie``: what it draws, what it keeps, and what it says."""

import functools
import tempfile

import numpy as np
import pytest
from PIL import Image

import tools
from grape6py import Hermite, archive, movie, plummer
from grape6py.errors import ArgumentError
from runs import command

TIMES = (0.0, 0.25, 0.5)
film = functools.partial(command, "movie")


def saved(path, times=TIMES, model=None, component=None, backend="cpu"):
    cluster = Hermite(*(model or plummer(30, 1)), eps=0.1, backend=backend)
    for time in times:
        cluster.evolve(time)
        archive.save(path, cluster, component=component)


@pytest.fixture
def run(here, monkeypatch):
    """A run of three outputs, and a folder of its own for what is written on the way."""
    saved("run.h5")
    (here / "aside").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(here / "aside"))
    return here


def names(folder):
    assert not list((folder / "aside").iterdir())
    return sorted({path.name for path in folder.iterdir()} - {"run", "run.h5", "aside"})


def frames(path):
    with Image.open(path) as image:
        found = []
        for k in range(image.n_frames):
            image.seek(k)
            found.append((np.asarray(image.convert("RGB"), int), image.info["duration"]))
    return found


def test_a_gif_has_a_frame_for_each_output_which_differ_in_bodies_and_time(run, capsys):
    (run / "run.gif").write_text("old")
    assert film("run.h5", "--fps", 4) == 0
    printed = capsys.readouterr()
    assert printed.out == "written: run.gif\n"
    assert printed.err == "grape6: run.gif was there, and is run.gif.~1~ now\n"
    assert (run / "run.gif.~1~").read_text() == "old"
    found = frames("run.gif")
    assert len(found) == len(TIMES)
    assert {duration for _, duration in found} == {250}
    assert names(run) == ["run.gif", "run.gif.~1~"]
    (first, _), *others = found
    for image, _ in others:  # axes are fixed: ticks and labels are the same
        other = abs(image - first) > 64  # each frame has its own palette of a GIF
        assert not other[:, :60].any()
        assert not other[-45:].any()
        assert other[:60].any()  # the time
        assert other[100:-60].any()


def test_what_is_seen_depends_on_plane_and_size(run):
    for name, *more in ("a", "--plane", "xy"), ("b", "--plane", "yz"), ("c", "--size", "9"):
        assert film("run.h5", "--out", f"{name}.gif", *more) == 0
    a, b, c = (frames(f"{name}.gif")[0][0][100:-60, 70:-10] for name in "abc")
    assert (a != b).any()
    assert (c > 128).sum() < (a > 128).sum()  # bodies lie on each other, if seen from afar


def test_ctrl_c_leaves_nothing_and_keeps_what_was_there(run, capsys, monkeypatch):
    read, calls = movie.moments.read, []

    def interrupted(source, which):
        calls.append(which)
        if len(calls) > len(TIMES) + 1:  # after the sample, within the film
            raise KeyboardInterrupt
        return read(source, which)

    monkeypatch.setattr(movie.moments, "read", interrupted)
    (run / "run.gif").write_text("old")
    assert film("run.h5") == 130
    assert capsys.readouterr().err == "grape6: interrupted; no movie was written\n"
    assert names(run) == ["run.gif"]
    assert (run / "run.gif").read_text() == "old"


@pytest.mark.parametrize(("arguments", "words"), [
    ("broken.h5", "000001.hdf5 is damaged"),
    ("run.h5 --out a.mp4", "apt-get install ffmpeg), or take a name that ends in .gif"),
    ("run.h5 --out a.mp4 with ffmpeg", "ffmpeg ended with status 3: no encoder h264"),
])  # fmt: skip
def test_errors_say_what_to_do(run, capsys, monkeypatch, arguments, words):
    path, _, ffmpeg = arguments.partition(" with")
    if arguments.startswith("broken"):
        (run / "run/000001.hdf5").write_bytes(b"nothing")
    if "mp4" in arguments:
        fake = run / "run/ffmpeg"
        fake.write_text("#!/bin/sh\ncat >/dev/null\necho 'no encoder h264' >&2\nexit 3\n")
        fake.chmod(0o755)
        monkeypatch.setenv("PATH", f"{fake.parent}:/usr/bin:/bin" if ffmpeg else str(run))
    assert film(*path.replace("broken", "run").split()) == 1
    error = capsys.readouterr().err
    assert words in error
    assert error.startswith("grape6: ")
    assert names(run) == []


def test_an_mp4_is_one(run):
    tools.need("ffmpeg")
    assert film("run.h5", "--out", "a.mp4") == 0
    assert (run / "a.mp4").read_bytes()[4:8] == b"ftyp"


def test_from_python_a_movie_replaces(run):
    (run / "a.gif").write_text("old")
    movie.draw("a.gif", "run.h5", plane="yz")
    assert len(frames("a.gif")) == len(TIMES)
    assert names(run) == ["a.gif"]
    with pytest.raises(ArgumentError, match="plane = 'yx'"):
        movie.draw("b.gif", "run.h5", plane="yx")
