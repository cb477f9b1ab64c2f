"""``grape6 run --integrator leapfrog``: its files, restarts, signals, picture and refusals."""

import json

import h5py
import numpy as np
import pytest

from grape6py import Leapfrog, plummer
from runs import edited, last_group, rows, run, times

TREE = ["--integrator", "leapfrog", "--backend", "cpu-tree"]
SHARED = [*TREE, "--n", "300", "--eps", "0.05", "--dt", "0.015625", "--theta", "0.6"]


def test_a_run_is_the_class(here, capsys):
    end = ["--t-end", "0.5", "--dt-out", "0.25"]
    assert run(*SHARED, *end, "--out", "a.h5", "--out", "a.txt", "--plot", "a.png") == 0
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


def test_json_has_the_settings(here, capsys):
    assert run(*SHARED, "--t-end", "0.125", "--boundary", "9", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["settings"] == {"integrator": "leapfrog", "eps": 0.05, "dt": 1 / 64,
                                  "method": "fmm", "theta": 0.6, "order": 5,
                                  "boundary": 9.0}  # fmt: skip
    assert report["backend"].startswith("cpu-tree")


@pytest.mark.parametrize(("wrong", "status", "words"), [
    (["--theta", "0.5"], 2, "--theta: not of --integrator hermite"),
    ([*TREE, "--dt", "0.1", "--passes", "2"], 2, "--passes: not of --integrator leapfrog"),
    (TREE, 2, "needs --dt"), ([*TREE, "--dt", "0.1", "--dt-max", "0.1"], 2, "--dt"),
    ([*TREE, "--dt", "0.1", "--order", "9"], 1, "order = 9"),
    ([*TREE, "--dt", "0.1", "--theta", "-1"], 2, "--theta"),
    ([*TREE, "--dt-max", "0.1", "--eps", "0"], 1, "eps = 0"),
    ([*TREE[:2], "--dt", "0.1", "--theta", "0.5", "--backend", "cpu"], 1, "theta is a tree's"),
    (["--integrator", "euler"], 2, "--integrator"),
], ids=str)  # fmt: skip
def test_wrong_options_are_refused_by_name(here, capsys, wrong, status, words):
    assert run("--n", "20", "--t-end", "0.1", *wrong) == status
    assert words in capsys.readouterr().err.splitlines()[-1]


def test_a_restart_takes_its_settings_from_the_file(here, capsys):
    assert run(*SHARED, "--t-end", "0.125", "--out", "a.h5") == 0
    for option in (["--integrator", "leapfrog"], ["--theta", "0.5"]):
        assert run("a.h5", "--restart", "--t-end", "0.25", *option) == 2
        assert option[0] in capsys.readouterr().err
    assert run("a.h5", "--restart", "--t-end", "0.25", "--backend", "cpu") == 1
    assert "a tree" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["theta", "method", "order", "dt", "eps", "integrator"])
def test_broken_files_are_refused_by_name(here, capsys, what):
    assert run(*SHARED, "--t-end", "0.125", "--out", "a.h5") == 0

    def change(file):
        if what == "theta":
            file.attrs[what] = -1.0
        elif what == "integrator":
            file.attrs[what] = "euler"
        else:
            del file.attrs[what]

    edited(here / "a.h5", change)
    capsys.readouterr()
    assert run("a.h5", "--restart", "--t-end", "0.25") == 1
    err = capsys.readouterr().err
    assert err.startswith("grape6: a.h5 is damaged")
    assert len(err.splitlines()) == 1
