"""What a notebook shows: tables of facts, figures, and a bar."""

import contextlib
import re
import sys
from types import SimpleNamespace

import pytest
from astropy import units as u
from matplotlib.figure import Figure

import grape6py as g6
from grape6py import Hermite, Units, open_run, picture, plummer, progress

PARSECS = Units("Msun", "pc", velocity="km/s")


@pytest.mark.parametrize("units", [None, PARSECS])
def test_things_are_tables_and_pictures(units, tmp_path):
    cluster = Hermite(plummer(20, seed=1, units=units), dt=1 / 64, eps=0.01, units=units)
    for t in (1 / 64, 1 / 16) if units is None else ():
        cluster.evolve(t)
        cluster.save(tmp_path / "a&b.h5")
    g6.write_snapshot(tmp_path / "s.hdf5", cluster.particles(), time=2.0, units=units)
    shown = [cluster, g6.read_snapshot(tmp_path / "s.hdf5"), PARSECS]
    if units is None:
        run = open_run(tmp_path / "a&b.h5")
        shown.append(run)
        assert isinstance(run.plot(tmp_path / "run.png"), Figure)
        assert (tmp_path / "run.png").stat().st_size > 1000
    for one in shown:
        html = one._repr_html_()
        assert re.fullmatch(r"<table>.*</table>", html)
        assert "&b" not in html.replace("&amp;b", "")
    assert ("in Msun pc km/s</caption>" in shown[0]._repr_html_()) == (units is not None)
    figure = cluster.plot(plane="xz", size=3 if units is None else 3 * u.pc)
    assert isinstance(figure, Figure)
    axes = figure.axes[0]
    assert axes.get_xlabel() == ("x" if units is None else "x [pc]")
    assert axes.get_ylim()[1] - axes.get_ylim()[0] == pytest.approx(6)
    assert axes.get_title(loc="left").startswith("N = 20, t = ")
    mine = Figure().add_subplot()
    assert picture.draw_bodies(*plummer(3)[:2], axes=mine) is mine.get_figure()
    assert getattr(cluster[0].pos, "unit", None) == (None if units is None else u.pc)


def test_a_bar_is_shown_where_there_is_a_notebook(monkeypatch):
    made = []

    def bar(**options):
        made.append(options)
        return contextlib.nullcontext(SimpleNamespace(n=0.0, update=made.append))

    assert "tqdm.auto" in sys.modules
    monkeypatch.setattr(progress, "tqdm", bar)
    Hermite(plummer(8, seed=1), dt=1 / 16).evolve(0.5, progress=True)
    assert made[0]["total"] == 0.5
    assert sum(made[1:]) > 0
