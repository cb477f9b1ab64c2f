"""``grape6 run`` stopped by signals, and gone on with: the same bits as if left alone."""

import re
import signal

import pytest

from grape6py import Hermite, Leapfrog
from grape6py.integrators.blocks import Blocks
from runs import assert_same_end, last_group, run, stopped, times

LEAPFROG = "--integrator leapfrog --n 300 --eps 0.05"
KINDS = {
    "grape": (signal.SIGINT, "--n 700 --passes 2"),
    "leapfrog": (signal.SIGTERM, f"{LEAPFROG} --dt-max 0.125 --eta 0.01 --backend cpu-tree"),
}


@pytest.mark.parametrize("kind", ["grape", pytest.param("leapfrog", marks=pytest.mark.full)])
def test_a_run_stopped_twice_ends_with_the_bits_of_one_left_alone(kind, tmp_path):
    """Stopped long before its end, then again after a restart into another file."""
    by, words = KINDS[kind]
    options = words.split()
    backend = options[-2:] if "--backend" in options else []
    start = ["plummer", *options, "--seed", "3", "--dt-out", "1000"]
    status, out, err = stopped(*start, "--t-end", "1000", "--out", "one.h5", folder=tmp_path, by=by)
    assert status == 128 + by
    about_the_stop = [line for line in err.splitlines() if "energy error" not in line]
    assert len(about_the_stop) == 1  # a fast machine comes to where block steps have an error
    assert by.name in err
    assert "Traceback" not in out + err
    time = last_group(tmp_path / "one.h5")[0]["time"]
    assert 0 < time < 1000
    assert f"time {time:g}" in err
    again = re.search(r"grape6 run (.*)", err).group(1).split()
    assert again == ["one.h5", "--restart", "--t-end", "1000"]

    again += [*backend, "--out", "two.h5"]
    status, _, err = stopped(*again, folder=tmp_path, by=by, after=0.05)
    assert status == 128 + by
    assert times(tmp_path / "one.h5") == [0.0, time]
    later = last_group(tmp_path / "two.h5")[0]["time"]
    assert time < later < 1000
    end = ["--t-end", repr(float(later) + 0.1)]
    assert run(tmp_path / "two.h5", "--restart", *backend, *end) == 0
    assert len(times(tmp_path / "two.h5")) == 3

    assert run(*start, *end, "--out", tmp_path / "whole.h5") == 0
    which = Leapfrog if kind.startswith("leapfrog") else Hermite
    assert_same_end(tmp_path / "two.h5", tmp_path / "whole.h5", which)


def test_a_run_without_an_hdf5_file_leaves_one_when_stopped(tmp_path):
    start = ["plummer", "--n", "1000", "--t-end", "30", "--dt-out", "10"]
    kept = tmp_path / "grape6-restart.h5"
    kept.write_text("an older one")
    status, out, err = stopped(*start, "--out", "last.txt", folder=tmp_path)
    assert status == 130
    assert "grape6-restart.h5 --restart --t-end 30" in err
    assert "written: grape6-restart.h5" in out
    assert 0 < last_group(kept)[0]["time"] < 30
    assert (tmp_path / "grape6-restart.h5.~1~").read_text() == "an older one"
    assert f"time = {float(last_group(kept)[0]['time'])!r}" in (tmp_path / "last.txt").read_text()


@pytest.mark.parametrize(("when", "number", "status", "written"), [
    (0.5, signal.SIGTERM, 0, [0, 0.25, 0.5]), (0.25, signal.SIGINT, 130, [0, 0.25]),
])  # fmt: skip
def test_a_signal_in_the_block_of_an_output_writes_that_output_once(
    tmp_path, monkeypatch, when, number, status, written
):
    """It comes in the block that ends at a time: in the last one it is too late."""
    advance = Blocks.advance

    def interrupted(self, target, stop, *, most):
        moved = advance(self, target, stop, most=1)
        if self.latest() == when:
            signal.raise_signal(number)
        return moved

    monkeypatch.setattr(Blocks, "advance", interrupted)
    arguments = ["plummer", "--n", "50", "--t-end", "0.5", "--dt-out", "0.25", "--dt", "0.125"]
    assert run(*arguments, "--out", tmp_path / "a.h5") == status
    assert times(tmp_path / "a.h5") == written


def test_the_command_to_go_on_has_every_digit_of_the_end(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Hermite, "evolve", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    out = tmp_path / "a b.h5"
    assert run("--n", "20", "--t-end", "1234567.8901", "--dt", "1", "--out", out) == 130
    assert f"'{out}' --restart --t-end 1234567.8901" in capsys.readouterr().err


def test_a_second_ctrl_c_ends_at_once_and_says_so(tmp_path, monkeypatch, capsys):
    def interrupted(*_, **__):
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Blocks, "advance", interrupted)
    assert run("plummer", "--n", "50", "--out", tmp_path / "a.h5") == 130
    assert "interrupted" in capsys.readouterr().err
    assert times(tmp_path / "a.h5") == [0]


def test_the_handlers_of_the_host_are_back_after_a_run():
    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    assert run("plummer", "--n", "10", "--t-end", "0.1") == 0
    assert run("plummer", "--n", "10", "--threads", "9999") != 0
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_run_that_cannot_save_when_it_is_stopped_says_so_in_one_line(tmp_path):
    """As in a read-only folder: root may write anywhere, so its outputs' folder is a file."""
    (tmp_path / "grape6-restart").write_text("")
    status, _, err = stopped("--n", "60", "--t-end", "1e6", folder=tmp_path, by=signal.SIGTERM)
    assert status == 1
    (line,) = [line for line in err.splitlines() if "energy error" not in line]
    assert line.startswith("grape6: stopped at time ")
    assert f" by SIGTERM, and that is not saved: {tmp_path}/grape6-restart: the outputs of" in line
    assert line.endswith("; what was written before is whole")
