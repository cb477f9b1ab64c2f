"""``grape6 run`` refuses what is wrong: at once, by name, without a traceback."""

import h5py
import numpy as np
import pytest

from runs import process, run, times

QUICK = ["--n", "40", "--t-end", "0.25"]
LEAPFROG = "--n 20 --t-end 0.1 --integrator leapfrog"
TREE = f"{LEAPFROG} --backend cpu-tree"

# What the error names, and options that it is about: of the command line,
USAGE = [
    ("--n", "--n 0; --n many; two.dat --n 5"), ("--t-end", "--t-end -1; --t-end nan"),
    ("--eps", "--eps -1"), ("--eta", "--eta 0; --eta inf"), ("--eta-start", "--eta-start -1"),
    ("--passes", "--passes 0"), ("--dt", "--dt 0; --dt 0.1 --dt-max 0.1"),
    ("--dt-out", "--dt-out 0"), ("--precision", "--precision half"), ("--wurst", "--wurst"),
    ("--backend", "--backend abacus"), ("--plot", "--plot a.gif"), ("--seed", "--seed -1"),
    ("--threads", "--threads -1; --threads 99999"), ("--restart", "--restart"),
    ("--integrator", "--integrator euler"), ("--theta: not of --integrator hermite", "--theta 0.5"),
    ("--passes: not of --integrator leapfrog", f"{TREE} --dt 0.1 --passes 2"),
    ("needs --dt", TREE), ("--dt", f"{TREE} --dt 0.1 --dt-max 0.1"),
    ("--theta", f"{TREE} --dt 0.1 --theta -1"),
    ("--w0", "king --w0 0.5; king --w0 13; king --w0 deep; two.dat --w0 5"),
    ("--w0", "two.dat --restart --w0 5"), ("--black-hole", "galaxy --black-hole -1"),
    ("--virial-ratio", "uniform --virial-ratio 1; uniform --virial-ratio -1; --virial-ratio 0"),
    ("--mass-ratio", "merger --mass-ratio 0; king --mass-ratio 5"),
    ("--pericentre", "merger --pericentre 0"), ("--separation", "merger --separation -3"),
    ("plummer has no --w0", "plummer --w0 5"), ("HDF5", "king --restart"),
    ("--w0, --pericentre", "galaxy --pericentre 5 --w0 3"),
]  # fmt: skip
# of models and integrations.
IMPOSSIBLE = [
    ("order = 9", f"{TREE} --dt 0.1 --order 9"), ("eps = 0", f"{TREE} --dt-max 0.1 --eps 0"),
    ("theta is a tree's", f"{LEAPFROG} --backend cpu --dt 0.1 --theta 0.5"),
    ("--n 51", "merger --n 51"), ("separation", "merger --separation 1"),
    ("needs bodies", "merger --n 2; galaxy --n 1 --black-hole 1"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "named", "words"), [
    (status, named, words) for status, table in ((2, USAGE), (1, IMPOSSIBLE))
    for named, some in table for words in some.split("; ")
])  # fmt: skip
def test_wrong_options_are_refused_by_name(here, capsys, status, named, words):
    (here / "two.dat").write_text("1 0 0 0 0 0 0\n1 1 0 0 0 0 0\n")
    assert run(*words.split()) == status
    *usage, line = capsys.readouterr().err.splitlines()
    assert named in line
    assert status == 2 or (line.startswith("grape6: ") and not usage)


def test_who_misspells_a_model_is_told_which_there_are(here, capsys):
    for more in ([], ["--n", "40"]):
        assert run("plumer", *more) == 1
        err = capsys.readouterr().err
        assert err.startswith(
            "grape6: plumer is no file, and no model (did you mean plummer?): those are "
        )
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


@pytest.mark.parametrize(("named", "words", "env"), [
    ("GRAPE6_CONFIG=nope: it must be a regular file", "", {"GRAPE6_CONFIG": "nope"}),
    ("no NVIDIA driver", "--backend cuda", {}),
    ("no NVIDIA driver", "--backend cuda", {"GRAPE6_LOG": "none"}),
    ("order = 9", f"{TREE} --dt 0.1 --order 9", {}),
])  # fmt: skip
def test_what_the_library_says_is_said_once(here, named, words, env):
    (here / "libcuda.so.1").touch()  # no driver, whatever the machine has
    done = process(*words.split(), folder=here, LD_LIBRARY_PATH=str(here), **env)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"grape6: {named}")
