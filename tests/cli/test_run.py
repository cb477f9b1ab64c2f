"""``grape6 run``: what it reads, prints and writes."""

import json
import os
import pty
import subprocess
import termios
import warnings

import h5py
import matplotlib.image
import numpy as np
import pytest

import capi
from grape6py import plummer, reference, snapshot
from runs import COMMAND, assert_same_end, last_group, outputs, process, rows, run, times

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


def test_text_snapshots_can_be_fed_back(here):
    assert run(*QUICK, "--out", "a.h5", "--out", "a.txt") == 0
    mass, pos, vel = snapshot.read_snapshot("a.txt")
    arrays = last_group("a.h5")[1]
    assert np.array_equal(mass, arrays["mass"])
    assert np.array_equal(pos, arrays["pos"])
    assert np.array_equal(vel, arrays["vel"])
    for start in "a.txt", "a.h5":
        assert run(start, "--eps", 0.1, "--t-end", 0.1, "--out", f"{start}-on.h5") == 0
    assert_same_end("a.txt-on.h5", "a.h5-on.h5")


def test_text_with_comments_is_understood(here, capsys):
    text = "# two bodies\n\n0.5 -0.5 0 0  0 -.5D0 0 # left\n 0.5 0.5 0 0 0 5e-1 0\n"
    (here / "two.dat").write_text(text)
    assert run("two.dat", "--t-end", 0.5, "--out", "two.h5") == 0
    assert "two.dat, N = 2" in capsys.readouterr().out
    assert last_group("two.h5")[1]["mass"].tolist() == [0.5, 0.5]


def test_files_that_are_there_are_kept(here, capsys):
    for name in "a.h5", "a.txt", "a.png":
        (here / name).write_text(f"old {name}")
    assert run(*QUICK, "--out", "a.h5", "--out", "a.txt", "--plot", "a.png") == 0
    err = capsys.readouterr().err
    for name in "a.h5", "a.txt", "a.png":
        assert (here / f"{name}.~1~").read_text() == f"old {name}"
        assert f"grape6: {name} was there, and is {name}.~1~ now\n" in err
    assert times("a.h5")[-1] == 0.25


def test_the_runs_before_are_kept_with_their_outputs(here):
    for n in 64, 8, 9:
        assert run("--n", n, "--t-end", 0.25, "--out", "r.h5") == 0
    for name, n in ("r.h5", 9), ("r.h5.~2~", 8), ("r.h5.~1~", 64):
        assert len(last_group(name)[1]["mass"]) == n
    assert sorted(p.name for p in here.iterdir()) == [
        "r", "r.h5", "r.h5.~1~", "r.h5.~2~", "r.~1~", "r.~2~"
    ]  # fmt: skip
    assert run("r.h5.~1~", "--restart", "--t-end", 0.5, "--out", "on.h5") == 0
    assert times("on.h5")[-1] == 0.5


@pytest.mark.parametrize("n", [1, 2, 50])
def test_the_picture_is_a_picture(here, n):
    assert run("--n", n, "--t-end", 0.25, "--plot", "deep/in/a.png") == 0
    image = matplotlib.image.imread(here / "deep/in/a.png")
    assert 500 < image.shape[0] < 3000
    assert 500 < image.shape[1] < 3000
    assert (here / "deep/in/a.png").stat().st_size < 1e6
    assert image[..., :3].std() > 0.01


@pytest.mark.parametrize(("name", "magic"), [("a.pdf", b"%PDF"), ("a.svg", b"<?xml")])
def test_pictures_of_other_kinds(here, name, magic):
    assert run(*QUICK, "--plot", name) == 0
    assert (here / name).read_bytes().startswith(magic)


def strict(text):
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("n", [1, 40])
def test_json_is_json_and_nothing_else(here, capsys, n):
    assert run("--n", n, "--t-end", 0.25, "--dt-out", 0.125, "--json", "--out", "a.h5",
               "--plot", "a.png", "--profile") == 0  # fmt: skip
    printed = capsys.readouterr()
    report = strict(printed.out)
    assert printed.err == ""
    assert [record["time"] for record in report["history"]] == [0, 0.125, 0.25]
    assert report["seconds"][0] == 0
    assert len(report["seconds"]) == 3
    assert report["seconds"] == sorted(report["seconds"])
    assert report["settings"]["eps"] == 4 / n
    if n > 1:
        start = report["initial_energy"]
        arrays = last_group("a.h5")[1]
        error = float((energy(arrays, 4 / n) - start) / abs(start))
        assert report["history"][-1]["error"] == pytest.approx(error, abs=1e-13)


def test_profile_adds_up_to_the_time_it_took(here, capsys):
    assert run(*QUICK, "--profile") == 0
    line = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("profile"))
    assert "forces" in line
    assert "-" not in line


# ---- bar, pipes ----------------------------------------------------------------------


def test_there_is_no_bar_without_a_terminal(here):
    done = process("--n", "500", "--t-end", "0.5", folder=here)
    assert done.returncode == 0
    assert done.stderr == ""
    assert len(rows(done.stdout)) == 9


def test_a_terminal_shows_a_bar_with_the_time_left(here):
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    env = capi.clean_environment({"PYTHONPATH": str(capi.ROOT), "TERM": "xterm"})
    command = [*COMMAND, "--n", "1000", "--t-end", "0.5"]
    run = subprocess.Popen(command, env=env, stderr=theirs, stdout=subprocess.PIPE)
    os.close(theirs)
    out, shown = run.communicate(timeout=60)[0], b""
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:
            break
    os.close(ours)
    assert run.returncode == 0
    assert b"%" in shown
    assert b"left" in shown
    assert len(rows(out.decode())) == 9


def test_a_reader_that_goes_away_is_no_catastrophe(here):
    command = " ".join([*COMMAND, "--n", "300", "--t-end", "0.5", "--out", "a.h5"])
    env = capi.clean_environment({"PYTHONPATH": str(capi.ROOT)})
    done = subprocess.run(f"{command} | head -4", shell=True, env=env, check=False, text=True,
                          capture_output=True, timeout=60)  # fmt: skip
    assert done.stdout.startswith("Plummer sphere")
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert times("a.h5")[0] == 0


# ---- odd clusters --------------------------------------------------------------------


@pytest.mark.parametrize("text", [
    "1 0 0 0 1 0 0\n", "0 0 0 0 1 0 0\n0 1 0 0 0 0 0\n", "1 0 0 0 0 0 0\n0 1 0 0 0 1 0\n",
    "1 0 0 0 0 0 0\n1 0 0 0 0 0 0\n",
], ids=["one", "massless", "a-massless-one", "coincident"])  # fmt: skip
def test_odd_clusters_get_through(here, capsys, text):
    (here / "odd.dat").write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert run("odd.dat", "--t-end", 1, "--out", "a.h5", "--plot", "a.png") == 0
    printed = capsys.readouterr()
    assert len(rows(printed.out)) == 9
    assert len(printed.err.splitlines()) <= 1  # of coincident ones, once
    assert times("a.h5")[-1] == 1


@pytest.mark.parametrize("unit", [1e12, 1e-12])
def test_the_log_keeps_its_columns_in_any_units(here, capsys, unit):
    (here / "si.dat").write_text(f"{unit**3} 0 0 0 0 0 0\n0 {unit} 0 0 0 {unit} 0\n")
    assert run("si.dat", "--t-end", 0.25, "--dt-out", 0.125) == 0
    log = rows(capsys.readouterr().out)
    assert len(log) == 3
    (here / "slow.dat").write_text(f"1 0 0 0 0 0 0\n0 {1e8} 0 0 0 1e-4 0\n")
    assert run("slow.dat", "--t-end", 1e12, "--dt-out", 5e11) == 0
    assert [row[0] for row in rows(capsys.readouterr().out)] == [0, 5e11, 1e12]


def test_a_collision_prints_each_warning_once(here, capsys):
    (here / "fall.dat").write_text(".5 -.5 0 0 0 0 0\n.5 .5 0 0 0 0 0\n")
    assert run("fall.dat", "--t-end", 1.2, "--precision", "double") == 0
    err = capsys.readouterr().err
    step, energy = err.splitlines()
    assert step.startswith("grape6: at time 1.11")
    assert energy.startswith("grape6: at time 1.125 the relative energy error is ")
