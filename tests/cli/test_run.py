"""``grape6 run``: what it reads, prints and writes."""

import json
import os
import pty
import re
import sys
import termios
import warnings

import h5py
import matplotlib.image
import numpy as np
import pytest

from grape6py import Leapfrog, plummer, reference
from grape6py.cli import main
from runs import assert_same_end, last_group, outputs, rows, run, times

QUICK = ["--n", "40", "--t-end", "0.25"]


def energy(arrays, eps):
    return reference.energy(arrays["mass"], arrays["pos"], arrays["vel"], eps2=eps**2,
                            extended=True).total  # fmt: skip


def test_the_log_says_what_the_file_holds(here, capsys):
    assert run("plummer", "--n", 60, "--t-end", 0.5, "--dt-out", 0.125, "--out", "a.h5") == 0
    out = capsys.readouterr().out
    log = rows(out)
    assert [row[0] for row in log] == times("a.h5") == [0, 0.125, 0.25, 0.375, 0.5]
    with h5py.File("a.h5") as file:
        groups = [{k: file[g][k][()] for k in ("mass", "pos", "vel")} for g in outputs("a.h5")]
        counts = [(file[g].attrs["steps"], file[g].attrs["blocks"]) for g in outputs("a.h5")]
    start = energy(groups[0], 4 / 60)
    for row, group, count in zip(log, groups, counts, strict=True):
        error = float(energy(group, 4 / 60) / start - 1)
        assert row[1] == pytest.approx(-error, rel=0.01, abs=2e-13)  # dE / |E|, and E < 0
        assert tuple(row[6:8]) == count
    final = float(out.splitlines()[-1].split()[-1])
    assert final == pytest.approx(log[-1][1], rel=0.01)
    assert np.array_equal(groups[0]["pos"], plummer(60, 1).pos)


def test_a_run_is_defined_by_its_options(here):
    for name, more in {"a": [], "b": ["--threads", "1"], "c": ["--seed", "2"]}.items():
        assert run(*QUICK, "--out", f"{name}.h5", *more) == 0
    assert_same_end("a.h5", "b.h5")
    with pytest.raises(AssertionError):
        assert_same_end("a.h5", "c.h5")


def test_files_and_runs_that_are_there_are_kept(here, capsys):
    (here / "a.png").write_text("old")
    for n in 8, 9:
        assert run("--n", n, "--t-end", 0.25, "--out", "r.h5", "--out", "a.txt", "--plot",
                   "a.png") == 0  # fmt: skip
    err = capsys.readouterr().err
    for name in "a.png.~1~", "a.png.~2~", "a.txt.~1~", "r.h5.~1~":
        assert f"grape6: {name[:-4]} was there, and is {name} now\n" in err
    assert (here / "a.png.~1~").read_text() == "old"
    for name, n in ("r.h5", 9), ("r.h5.~1~", 8):
        assert len(last_group(name)[1]["mass"]) == n
    assert sorted(p.name for p in here.glob("r*")) == ["r", "r.h5", "r.h5.~1~", "r.~1~"]
    assert run("r.h5.~1~", "--restart", "--t-end", 0.5, "--out", "on.h5") == 0
    assert times("on.h5")[-1] == 0.5
    there, words = sorted(here.rglob("*")), ["--out", "r.h5", "--out", "a.txt", "--plot", "a.png"]
    assert run("--n", 8, "--t-end", 0.25, *words, "--overwrite") == 0
    assert sorted(here.rglob("*")) == there
    assert "was there" not in capsys.readouterr().err


def test_the_picture_is_a_picture_of_any_kind(here):
    for n, name, magic in ((50, "deep/in/a.png", b"\x89PNG"), (1, "a.pdf", b"%PDF"),
                           (2, "a.svg", b"<?xml")):  # fmt: skip
        assert run("--n", n, "--t-end", 0.125, "--plot", name) == 0
        assert (here / name).read_bytes().startswith(magic)
    image = matplotlib.image.imread(here / "deep/in/a.png")
    assert all(500 < size < 3000 for size in image.shape[:2])
    assert (here / "deep/in/a.png").stat().st_size < 1e6
    assert image[..., :3].std() > 0.01


@pytest.mark.parametrize("n", [1, 40])
def test_json_is_json_and_nothing_else(here, capsys, n):
    assert run("--n", n, "--t-end", 0.25, "--dt-out", 0.125, "--json", "--out", "a.h5",
               "--plot", "a.png", "--profile") == 0  # fmt: skip
    printed = capsys.readouterr()
    report = json.loads(printed.out, parse_constant=pytest.fail)  # as NaN, which is none
    assert printed.err == ""
    assert [record["time"] for record in report["history"]] == [0, 0.125, 0.25]
    assert report["seconds"][0] == 0
    assert len(report["seconds"]) == 3
    assert report["seconds"] == sorted(report["seconds"])
    assert report["settings"]["eps"] == 4 / n
    if n > 1:
        start = report["initial_energy"]
        error = float((energy(last_group("a.h5")[1], 4 / n) - start) / abs(start))
        assert report["history"][-1]["error"] == pytest.approx(error, abs=1e-13)


def test_profile_adds_up_to_the_time_it_took(here, capsys):
    assert run(*QUICK, "--profile") == 0
    assert re.search(r"^profile[^-\n]* forces [^-\n]*$", capsys.readouterr().out, re.MULTILINE)


def test_a_run_of_leapfrog_is_the_class(here, capsys):
    end = ["--t-end", "0.5", "--dt-out", "0.25"]
    leapfrog = ["--integrator", "leapfrog", "--backend", "cpu-tree", "--n", "300", "--eps", "0.05",
                "--dt", "0.015625", "--theta", "0.6"]  # fmt: skip
    assert run(*leapfrog, *end, "--boundary", "9", "--json", "--out", "b.h5") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["settings"] == {"integrator": "leapfrog", "eps": 0.05, "dt": 1 / 64,
                                  "method": "fmm", "theta": 0.6, "order": 5,
                                  "boundary": 9.0}  # fmt: skip
    assert report["backend"].startswith("cpu-tree")
    assert run(*leapfrog, *end, "--out", "a.h5", "--out", "a.txt", "--plot", "a.png") == 0
    out = capsys.readouterr().out
    galaxy = Leapfrog(*plummer(300, 1), eps=0.05, dt=1 / 64, theta=0.6, backend="cpu-tree")
    start = galaxy.energy().total
    galaxy.evolve(0.5)
    assert np.array_equal(last_group("a.h5")[1]["pos"], galaxy.pos)
    log = rows(out)
    assert [row[0] for row in log] == times("a.h5") == [0, 0.25, 0.5]
    assert log[-1][1] == pytest.approx((galaxy.energy().total - start) / -start, rel=0.01)
    assert log[-1][6:8] == [300 * 32, 32]
    assert "leapfrog, eps 0.05, dt 0.015625, fmm, theta 0.6, order 5" in out
    assert (here / "a.png").stat().st_size > 20000
    with h5py.File("a.h5") as file:
        assert file.attrs["integrator"] == "leapfrog"


# ---- bar ----------------------------------------------------------------------


def test_a_terminal_shows_a_bar_with_the_time_left(here, monkeypatch):
    for words in "run --n 100 --t-end 0.25 --out a.h5", "movie a.h5 --size 3":
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (24, 80))
        with monkeypatch.context() as patch, os.fdopen(theirs, "w") as terminal:
            patch.setattr(sys, "stderr", terminal)
            assert main(words.split()) == 0
            terminal.flush()
            shown = os.read(ours, 1 << 16)
        assert b"%" in shown
        assert b"left" in shown
        os.close(ours)


# ---- odd clusters --------------------------------------------------------------------


@pytest.mark.parametrize("text", [
    "1 0 0 0 1 0 0\n", "0 0 0 0 1 0 0\n0 1 0 0 0 0 0\n", "1 0 0 0 0 0 0\n0 1 0 0 0 1 0\n",
    "1 0 0 0 0 0 0\n1 0 0 0 0 0 0\n",
], ids=["one", "massless", "a-massless-one", "coincident"])  # fmt: skip
def test_odd_clusters_get_through(here, capsys, text):
    (here / "odd.dat").write_text(text)
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
        assert run("odd.dat", "--t-end", 1, "--out", "a.h5") == 0
    printed = capsys.readouterr()
    assert len(rows(printed.out)) == 9
    assert len(printed.err.splitlines()) <= 1  # of coincident ones, once
    assert times("a.h5")[-1] == 1
