"""Pictures and movies of runs with units are in these, and say so; those without have none."""

import numpy as np
import pytest
from astropy import constants
from astropy import units as u

from grape6py import movie, picture, plummer
from runs import run

# What a run is made with, and what the axes have: the units, and what the run's numbers 1 are.
MYR = np.sqrt((1.2 * u.pc) ** 3 / (constants.G * 5e4 * u.Msun)).to_value(u.Myr)
SHOWN = {
    None: ("", 1, "", 1),
    "5e4 Msun 1.2 pc": ("Myr", MYR, "pc", 1.2),
}


def texts(figure):
    return [
        text
        for axes in figure.axes
        for text in (axes.get_xlabel(), axes.get_ylabel(), axes.get_title("left"), axes.get_title())
    ]


@pytest.fixture
def figures(monkeypatch):
    made, figure_of = [], picture.figure_of
    monkeypatch.setattr(picture, "figure_of", lambda *a: made.append(figure_of(*a)) or made[-1])
    stage = movie._stage
    monkeypatch.setattr(movie, "_stage", lambda *a: made.append((r := stage(*a))[0]) or r)
    return made


def check(figure, units, end, is_movie=False):
    time, of_time, length, of_length = SHOWN[units]
    found, title = texts(figure), figure.texts[0].get_text()
    in_length = f" [{length}]" if length else ""
    assert f"x{in_length}" in found
    assert f"y{in_length}" in found
    assert f"eps = {float(f'{0.02 * of_length:.6g}'):g} {length}".strip() in title
    last = next(t for t in found[::-1] if "t = " in t)
    number, *unit = last.partition("t = ")[2].split(" ")
    assert float(number) == pytest.approx(end * of_time, rel=1e-3)
    assert unit == [time] * bool(time)
    if not is_movie:
        assert f"Lagrangian radii{in_length}" in found
        assert found.count(f"time [{time}]" if time else "time") == 2


def extent(figure):
    return figure.axes[0].get_xlim()[1], figure.axes[2].collections[0].get_offsets()


@pytest.mark.parametrize("units", SHOWN)
def test_a_picture_and_a_movie_are_in_the_units_of_the_run(units, here, figures):
    given = () if units is None else ("--units", units)
    t, out = 0.25, ("--out", "a.h5", "--plot", "a.png")
    np.savetxt("a.dat", np.column_stack(plummer(20, seed=1)), "%.17g")  # a model's have G = 1
    assert run("a.dat", "--eps", 0.02, "--t-end", t, *given, *out) == 0
    picture.draw_file("b.png", "a.h5")
    assert run("a.h5", "--restart", "--t-end", 2 * t, "--out", "b.h5", "--plot", "c.png") == 0
    movie.draw("a.gif", "a.h5", size=3)
    by_command, by_file, restarted, of_movie = figures
    for figure, end in (by_command, t), (by_file, t), (restarted, 2 * t):
        check(figure, units, end)
        longest, pos = extent(figure)
        assert longest == pytest.approx(1.02 * end * SHOWN[units][1], rel=0.01)
        assert np.allclose(pos, plummer(20, seed=1).pos[:, :2] * SHOWN[units][3])
    check(of_movie, units, t, is_movie=True)
    assert np.ptp(of_movie.axes[0].get_xlim()) == pytest.approx(6)
