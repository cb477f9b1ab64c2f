"""legacy_examples/board.py: an integrator of sixty lines, by Grape6's own calls."""

import functools
import importlib.util

import pytest

import capi
from grape6py import Grape6, Hermite, plummer

PROGRAM = capi.ROOT / "legacy_examples" / "board.py"


def test_its_steps_and_its_energy_are_those_of_the_integrator(capsys, monkeypatch):
    spec = importlib.util.spec_from_file_location("board", PROGRAM)
    board = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(board)
    monkeypatch.setattr(board, "Grape6", functools.partial(Grape6, precision="double"))
    board.main(64, 0.3)  # ends where all bodies meet
    t, _, steps, error = map(float, capsys.readouterr().out.splitlines()[-1].split())
    cluster = Hermite(*plummer(64, seed=1), eps=4 / 64, eta_start=0.0025, dt_max=1 / 8,
                      precision="double")  # fmt: skip
    start = cluster.energy().total
    cluster.evolve(0.375)
    assert t == cluster.time
    assert steps == pytest.approx(cluster.steps, rel=0.1)
    assert error == pytest.approx(cluster.energy().total / start - 1, rel=0.5, abs=1e-8)
