"""The command line where little is as usual: closed or full streams, odd names, mistakes, and
`python -OO`, which drops docstrings and assertions."""

import os
import subprocess
import sys
from unittest import mock

import capi
from grape6py.cli import _EXAMPLES, main, selftest
from runs import COMMAND, process, times
from tools import run

QUICK = ["--n", "20", "--t-end", "0.01"]


def started(folder, redirections, *words, **env):
    """A finished run from a shell: its exit status and its stderr."""
    command = ["sh", "-c", f'exec "$@" {redirections}', "sh", *COMMAND, *QUICK, *words]
    env = capi.clean_environment({"PYTHONPATH": str(capi.ROOT), "PYTHONUNBUFFERED": "", **env})
    done = subprocess.run(command, cwd=folder, env=env, timeout=60, capture_output=True)
    return done.returncode, done.stderr


def test_a_run_with_closed_streams_writes_its_files_and_nothing_into_them(here):
    code, _ = started(here, "<&- >&- 2>&-", "--out", "a.h5", GRAPE6_LOG="info")
    assert code == 0
    assert times("a.h5")[-1] == 0.01


def test_a_full_disk_behind_stdout_is_one_line(here):
    code, err = started(here, ">/dev/full")
    assert code == 1
    assert err.startswith(b"grape6: ")
    assert err.endswith(b"No space left on device\n")
    assert err.count(b"\n") == 1


def test_a_reader_that_goes_away_ends_the_run_without_a_word(here):
    assert started(here, "| true") == (0, b"")


def test_names_that_are_no_text_are_printed_as_they_are(here):
    (here / os.fsdecode(b"b\xff.dat")).write_text("1 0 0 0 0 0 0\n1 1 0 0 0 0 0\n")
    words = ["b\udcff.dat", "--out", "\udcff.h5", "--out", "\udcff.txt"]
    done = subprocess.run([*COMMAND, *QUICK[2:], *words], capture_output=True, check=False,
                          env=capi.clean_environment({"PYTHONPATH": str(capi.ROOT)}))  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"written: \xff.h5\nwritten: \xff.txt\n" in done.stdout


def test_a_client_that_uses_no_jerk_does_not_take_it_from_a_run(here):
    done = process(*QUICK, folder=here, GRAPE6_CLIENT="bhtree")
    assert (done.returncode, done.stderr) == (0, "")


def test_too_large_a_model_is_one_line(capsys, monkeypatch):
    monkeypatch.setattr(selftest, "judge", mock.Mock(side_effect=MemoryError("128 TiB")))
    assert main(["selftest"]) == 1
    assert capsys.readouterr().err == "grape6: out of memory: 128 TiB\n"


PROGRAM = """
import contextlib, io
from grape6py import Hermite, plummer
from grape6py.cli import main
from grape6py.errors import ArgumentError
for command in ([], *([name] for name in {commands!r})):
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as shown:
        main([*command, "--help"])
    assert False, "not run"
    if "usage: grape6" not in shown.getvalue():
        raise RuntimeError(command)
if main(["run", "plummer", "--n", "32", "--t-end", "0.0625", "--backend", "cpu", "--out", "a.h5"]):
    raise RuntimeError("run")
cluster = Hermite.load("a.h5")
cluster.evolve(0.125)
cluster.save("a.h5")
try:
    Hermite(*plummer(3, seed=1), ids=[1, 1, 2])
except ArgumentError:
    print("done")
"""


def test_the_command_and_an_integration_run_under_oo(tmp_path):
    program = PROGRAM.format(commands=[name for name in _EXAMPLES if name])
    done = run([sys.executable, "-OO", "-c", program], cwd=tmp_path)
    assert done.stdout.endswith("done\n")
