"""``grape6 convert``, and ``grape6 run`` from and to files of the field's formats."""

import functools

import numpy as np
import pytest

import hand_made
from as_read import bits
from grape6py import Units, plummer, read_snapshot, write_snapshot
from grape6py.files.formats import FORMATS
from runs import command, last_group, run

HENON = Units("5e4 Msun", "1.2 pc")
convert = functools.partial(command, "convert")


def said(capsys, *arguments):
    """What a command that succeeds prints, line by line."""
    capsys.readouterr()
    assert convert(*arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


@pytest.fixture
def cluster(here):
    """A file with time, ids and units: the bodies, and its name."""
    model = plummer(100, seed=1)
    write_snapshot("cluster.h5", model, time=0.375, ids=np.arange(100)[::-1], units=HENON)
    return model, "cluster.h5"


# ---- what it does ----------------------------------------------------------------------
@pytest.mark.parametrize("name", FORMATS)
def test_it_says_what_was_written_and_what_was_lost(cluster, capsys, name):
    model, source = cluster
    target = f"out{FORMATS[name].endings[0]}"
    *before, last = said(capsys, source, target)
    keeps = FORMATS[name].keeps.split()
    if name == "petar":  # which has ids from 1 on
        keeps.remove("ids")
    lost = [what for what in ("time", "ids", "units") if what not in keeps]
    assert last.startswith(f"written: {target}, {FORMATS[name].title}: 100 bodies")
    for what, words in {"time": "time 0.375", "ids": "ids", "units": "units 50000 Msun"}.items():
        assert (words in last) == (what in keeps)
    if lost:
        (line,) = before
        assert line.startswith(f"grape6: {target}: ")
        assert all(what in line for what in lost)
        assert not any(what in line.replace(target, "") for what in keeps)
    else:
        assert before == []
    found = read_snapshot(target)
    assert np.allclose(found.pos, model.pos, rtol=1e-7, atol=0)
    assert found.time == (0.375 if "time" in keeps else None)


def test_neither_a_run_nor_what_was_converted_over_it_is_ever_lost(here, capsys):
    assert run("--n", 40, "--t-end", 0.0625, "--out", "a.h5") == 0
    before = read_snapshot("a.h5")
    write_snapshot("b.txt", plummer(20, seed=2))
    for number, more in ((1, ()), (2, ("--files", 2))):
        lines = said(capsys, "b.txt", "a.h5", *more)
        assert f"grape6: a.h5 was there, and is a.h5.~{number}~ now" in lines
        assert len(read_snapshot("a.h5").mass) == 20
    assert bits(read_snapshot("a.h5.~1~")) == bits(before)
    assert len(read_snapshot("a.h5.~2~").mass) == 20
    assert run("a.h5.~1~", "--restart", "--t-end", 0.125, "--out", "c.h5") == 0


def test_an_open_file_of_the_process_is_not_renamed(here, capsys):
    """As /dev/stdout, if that goes to a file: a link to /proc/self/fd/1."""
    write_snapshot("a.txt", plummer(20, seed=2))
    with open("real.csv", "wb") as file:
        (here / "stdout.csv").symlink_to(f"/proc/self/fd/{file.fileno()}")
        assert convert("a.txt", "stdout.csv") == 0
        assert (here / "stdout.csv").is_symlink()
    assert len(read_snapshot("real.csv").mass) == 20


def test_a_file_may_be_converted_to_its_own_name(here, capsys):
    model = plummer(20, seed=1)
    write_snapshot("a.dat", model, format="nemo")
    assert any("a.dat.~1~" in line for line in said(capsys, "a.dat", "a.dat"))
    assert read_snapshot("a.dat").format == "text"
    assert read_snapshot("a.dat.~1~").format == "nemo"
    assert bits(read_snapshot("a.dat")) == bits(read_snapshot("a.dat.~1~")) == bits(model)


def test_numbered_files_are_written_kept_and_read(cluster, capsys):
    """Under backup names they are one snapshot as well, and so are they without their number."""
    model, source = cluster
    for files in (3, 2):
        *before, last = said(capsys, source, "out.h5", "--files", files)
        assert last.startswith(f"written: out.0.h5 to out.{files - 1}.h5, Gadget HDF5: 100 bodies")
    assert before == ["grape6: out.0.h5 to out.2.h5 were there, and are out.0.h5.~1~ to "
                      "out.2.h5.~1~ now"]  # fmt: skip
    for name in ("out.h5", "out", "out.1.h5", "out.h5.~1~", "out.2.h5.~1~"):
        said(capsys, name, "again.h5")
        assert bits(read_snapshot("again.h5")) == bits(model)
    assert run("out", "--t-end", 0.0625, "--out", "run.h5") == 0
    assert last_group("run.h5")[1]["mass"].shape == (100,)


def test_which_chooses_a_snapshot(here, capsys):
    (here / "two.nemo").write_bytes(hand_made.nemo_of_two())
    for words, x in (([], 101), (["--which", 0], 1), (["--which", -2], 1), (["--which", "1"], 101)):
        said(capsys, "two.nemo", "out.txt", *words)
        assert read_snapshot("out.txt").pos[0, 0] == x
    assert convert("two.nemo", "a.txt", "--which", 2) == 1
    assert "two.nemo: it has 2 snapshots" in capsys.readouterr().err
    assert run("--n", 40, "--t-end", 0.25, "--dt-out", 0.125, "--out", "a.h5") == 0
    assert "time 0.125" in said(capsys, "a.h5", "b.nemo", "--which", 1)[-1]
    assert read_snapshot("b.nemo").time == 0.125


def test_format_and_from_overrule_names_and_contents(cluster, capsys):
    """And a folder that is missing is made."""
    said(capsys, cluster[1], "new/folder/out.bin", "--format", "tipsy")
    assert read_snapshot("new/folder/out.bin").format == "tipsy"
    said(capsys, "new/folder/out.bin", "out.txt", "--from", "tipsy")
    assert convert("new/folder/out.bin", "other.txt", "--from", "nemo") == 1
    assert "out.bin" in capsys.readouterr().err


# ---- units -----------------------------------------------------------------------------
def test_units_convert_what_has_units(cluster, capsys):
    model, source = cluster
    assert "units Msun pc Myr" in said(capsys, source, "out.h5", "--units", "Msun pc Myr")[-1]
    found = read_snapshot("out.h5")
    assert np.allclose(found.mass, 5e4 * model.mass, rtol=1e-12)
    assert np.allclose(found.pos, 1.2 * model.pos, rtol=1e-12)
    assert np.allclose(found.vel, model.vel * 1.2 / HENON.value("time", "Myr"), rtol=1e-12)
    assert found.time == pytest.approx(0.375 * HENON.value("time", "Myr"), rel=1e-12)
    assert found.ids.tolist() == list(range(100))[::-1]
    first, last = said(capsys, source, "out.txt", "--units", "Msun pc")  # which has no place for it
    assert "units" in first
    assert "units" not in last
    assert np.allclose(read_snapshot("out.txt").pos, 1.2 * model.pos, rtol=1e-12)
