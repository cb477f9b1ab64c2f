"""``grape6 run --integrator leapfrog``: its files, restarts and broken files."""

import json

import h5py
import numpy as np
import pytest

from grape6py import Leapfrog, plummer
from runs import last_group, rows, run, times

TREE = ["--integrator", "leapfrog", "--backend", "cpu-tree"]
SHARED = [*TREE, "--n", "300", "--eps", "0.05", "--dt", "0.015625", "--theta", "0.6"]


def test_a_run_is_the_class(here, capsys):
    end = ["--t-end", "0.5", "--dt-out", "0.25"]
    assert run(*SHARED, *end, "--boundary", "9", "--json", "--out", "b.h5") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["settings"] == {"integrator": "leapfrog", "eps": 0.05, "dt": 1 / 64,
                                  "method": "fmm", "theta": 0.6, "order": 5,
                                  "boundary": 9.0}  # fmt: skip
    assert report["backend"].startswith("cpu-tree")
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
