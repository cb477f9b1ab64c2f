"""``grape6 info FILE`` says what is in a file; nothing out of a file commands the terminal."""

import json
import warnings

import numpy as np
import pytest

import hand_made
from grape6py import Grape6Warning, Hermite, Units, archive, plummer, read_snapshot, write_snapshot
from grape6py.cli import main
from grape6py.errors import SnapshotError, printable
from grape6py.files.formats import FORMATS


def info(capsys, *words):
    capsys.readouterr()
    assert main(["info", *map(str, words)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", FORMATS)
def test_it_says_what_a_file_has(here, capsys, name):
    keeps = FORMATS[name].keeps.split()
    more = {"time": 0.375, "ids": np.arange(3, 23), "units": Units("5e4 Msun", "1.2 pc")}
    path = f"a{FORMATS[name].endings[0]}"
    write_snapshot(path, plummer(20, seed=1), **{key: more[key] for key in keeps})
    said = json.loads(info(capsys, path, "--json"))
    found = read_snapshot(path)
    assert said == {
        "file": path, "format": found.format, "title": FORMATS[found.format].title, "moments": 1,
        "number": 0, "time": 0.375 if "time" in keeps else None,
        "sets": [["data", 20]] if name == "amuse" else [], "bodies": 20,
        "units": str(found.units) if "units" in keeps else None,
        "ids": [3, 22] if "ids" in keeps else None,
    }  # fmt: skip
    lines = info(capsys, path).splitlines()
    assert "bodies:   20" in lines
    assert ("ids:      3 to 22" if "ids" in keeps else "ids:      -") in lines


def test_it_counts_moments_and_sets(here, capsys):
    (here / "a.dyn").write_bytes(hand_made.dyn(scales="") * 3)
    said = json.loads(info(capsys, "a.dyn", "--json", "--which", -3))
    assert (said["moments"], said["number"], said["ids"]) == (3, 0, [1, 3])

    def change(file):
        file.move("data", "gas")
        file.copy("gas", "stars")

    (here / "a.amuse").write_bytes(hand_made.amuse(change=change))
    assert "sets:     gas 3, stars 3\nbodies:   6\n" in info(capsys, "a.amuse")
    assert "sets:     gas 3\nbodies:   3\n" in info(capsys, "a.amuse", "--set", "gas")


# ---- what a terminal obeys ----
ESCAPE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e"


def is_harmless(text):
    return all(c.isprintable() or c in "\n\t" for c in text)


def test_names_out_of_files_command_no_terminal(here, capsys):
    archive.save("a.h5", Hermite(*plummer(8, seed=1), eps=1), about={"name": f"name{ESCAPE}"})
    assert main(["run", "a.h5", "--restart", "--t-end", "0.125"]) == 0
    out, _ = capsys.readouterr()
    assert "name\\x1b]0;title\\x07" in out
    assert is_harmless(out)

    def change(file):
        file.move("data", f"gas{ESCAPE}")

    for path in (f"a{ESCAPE}.amuse", "b.amuse"):
        (here / path).write_bytes(hand_made.amuse(change=change))
        assert is_harmless(info(capsys, path))
        assert main(["convert", path, f"out{ESCAPE}.csv"]) == 0
        assert main(["info", path, "--set", f"none{ESCAPE}"]) == 1
        assert main(["info", f"nowhere{ESCAPE}"]) == 1
        assert all(map(is_harmless, capsys.readouterr()))


def test_errors_and_warnings_have_nothing_that_a_terminal_obeys():
    assert printable(f"\t\n\u00e9{ESCAPE}") == "\t\n\u00e9\\x1b]0;title\\x07\\x1b[2J\\x9b31m\\u202e"
    assert is_harmless(str(SnapshotError(ESCAPE)))
    with warnings.catch_warnings(record=True, action="always") as said:
        warnings.warn(ESCAPE, Grape6Warning, stacklevel=1)
    assert is_harmless(str(said[0].message))


def test_an_orbit_may_begin_with_a_negative_number(here, capsys):
    words = "run --n 8 --t-end 0.125 --field nfw,mass=1,scale=2 --orbit -8,0,0,0,.3,0"
    assert main(words.split()) == 0
    assert "orbit" in capsys.readouterr().out
