"""``grape6 run`` refuses what is wrong: at once, by name, without a traceback."""

import h5py
import numpy as np
import pytest

from runs import run, times

QUICK = ["--n", "40", "--t-end", "0.25"]


@pytest.mark.parametrize(("wrong", "named"), [
    (["--n", "0"], "--n"), (["--n", "many"], "--n"), (["--t-end", "-1"], "--t-end"),
    (["--t-end", "nan"], "--t-end"), (["--eps", "-1"], "--eps"), (["--eta", "0"], "--eta"),
    (["--eta-start", "-1"], "--eta-start"),
    (["--eta", "inf"], "--eta"), (["--passes", "0"], "--passes"), (["--dt", "0"], "--dt"),
    (["--dt-out", "0"], "--dt-out"), (["--precision", "half"], "--precision"),
    (["--backend", "abacus"], "--backend"), (["--plot", "a.gif"], "--plot"),
    (["--seed", "-1"], "--seed"), (["--threads", "-1"], "--threads"),
    (["--threads", "99999"], "--threads"), (["--restart"], "--restart"), (["--wurst"], "--wurst"),
    (["--dt", "0.1", "--dt-max", "0.1"], "--dt"), (["two.dat", "--n", "5"], "--n"),
], ids=" ".join)  # fmt: skip
def test_wrong_arguments_end_with_status_two_and_their_name(here, capsys, wrong, named):
    (here / "two.dat").write_text("1 0 0 0 0 0 0\n1 1 0 0 0 0 0\n")
    assert run(*wrong) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert named in last


def test_who_misspells_a_model_is_told_which_there_are(here, capsys):
    for more in ([], ["--n", "40"]):
        assert run("plumer", *more) == 1
        err = capsys.readouterr().err
        assert err.startswith("grape6: plumer is no file, and no model: those are ")
        assert "plummer" in err
        assert "merger" in err


def bad_files(here):
    (here / "words.dat").write_text("these are no bodies\n")
    (here / "empty.dat").write_text("# nothing\n")
    (here / "garbage.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(range(256)) * 9)
    (here / "text.h5").write_text("not HDF5\n")
    (here / "binary.dat").write_bytes(bytes(range(256)) * 9)
    (here / "folder").mkdir()
    with h5py.File(here / "foreign.h5", "w") as file:
        file["stars"] = np.arange(3.0)
    assert run(*QUICK, "--out", "good.h5") == 0
    content = (here / "good.h5").read_bytes()
    (here / "cut.h5").write_bytes(content[: len(content) // 2])
    return ["words.dat", "empty.dat", "garbage.h5", "text.h5", "folder", "foreign.h5", "cut.h5",
            "nowhere.dat", "nowhere.h5", "binary.dat"]  # fmt: skip


def test_files_that_are_no_start_end_with_status_one_and_their_name(here, capsys):
    for name in bad_files(here):
        for more in ([], ["--restart"]):
            capsys.readouterr()
            assert run(name, *more, "--t-end", 1) == 1, name
            err = capsys.readouterr().err
            assert name in err
            assert err.startswith("grape6: ")
            assert len(err.splitlines()) == 1 or name in ("words.dat", "binary.dat"), err


@pytest.mark.parametrize("option", ["--out", "--plot"])
@pytest.mark.parametrize("place", ["a-file/a.png", "folder.png"])
def test_a_place_that_cannot_be_written_fails_at_once(here, capsys, monkeypatch, option, place):
    from grape6py import Hermite

    def started(*_, **__):
        raise AssertionError("an integration was begun")

    monkeypatch.setattr(Hermite, "evolve", started)
    (here / "a-file").write_text("")
    (here / "folder.png").mkdir()
    assert run(*QUICK, option, place) == 1
    err = capsys.readouterr().err
    assert "a-file" in err or "folder.png" in err
    assert len(err.splitlines()) == 1


def test_a_restart_to_an_earlier_time_is_refused_and_nothing_is_moved(here, capsys):
    assert run(*QUICK, "--out", "a.h5") == 0
    (here / "b.h5").write_text("keep me")
    capsys.readouterr()
    assert run("a.h5", "--restart", "--t-end", 0.25, "--out", "b.h5") == 1
    assert "0.25" in capsys.readouterr().err
    assert (here / "b.h5").read_text() == "keep me"


def test_a_file_named_twice_is_written_once(here):
    assert run(*QUICK, "--dt-out", 0.25, "--out", "a.h5", "--out", "a.h5") == 0
    assert times("a.h5") == [0, 0.25]
