"""``grape6 convert``, and ``grape6 run`` from and to files of the field's formats."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import capi
import hand_made
from grape6py import Units, plummer, read_snapshot, write_snapshot
from grape6py.cli import main
from grape6py.files.formats import FORMATS
from runs import last_group, run

ENDINGS = [end for format_ in FORMATS.values() for end in format_.endings]
HENON = Units("5e4 Msun", "1.2 pc")
EXACT = [name for name in FORMATS if FORMATS[name].digits == "double"]


def convert(*arguments):
    """Exit status of the command in this process."""
    try:
        return main(["convert", *map(str, arguments)])
    except SystemExit as leaving:
        return leaving.code


def said(capsys, *arguments):
    """What a command that succeeds prints, line by line."""
    capsys.readouterr()
    assert convert(*arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def refused(capsys, *arguments, status=1):
    """The line on which a command says why it does nothing; all files are as they were."""
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    capsys.readouterr()
    assert convert(*arguments) == status
    out, err = capsys.readouterr()
    assert out == ""
    *usage, line = err.splitlines()
    assert status == 2 or (line.startswith("grape6: ") and not usage)
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    return line


@pytest.fixture
def cluster(here):
    """A file with time, ids and units: the bodies, and its name."""
    model = plummer(100, seed=1)
    write_snapshot("cluster.h5", model, time=0.375, ids=np.arange(100)[::-1], units=HENON)
    return model, "cluster.h5"


def bits(particles):
    return [array.tobytes() for array in particles]


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


def test_bits_survive_a_chain_of_all_exact_formats(here):
    """The name says nothing of what is in a file."""
    model = plummer(50, seed=2)
    write_snapshot("last.unknown", model, format="text")
    for name in [*EXACT, "text"]:
        assert convert("last.unknown", f"next{FORMATS[name].endings[0]}") == 0
        (here / f"next{FORMATS[name].endings[0]}").rename("last.unknown")
    assert bits(read_snapshot("last.unknown")) == bits(model)


def test_a_file_that_is_there_is_kept_under_a_name_that_is_said(cluster, capsys):
    _, source = cluster
    for number in (1, 2):
        with open("out.nemo", "w", encoding="ascii") as file:
            file.write(f"old {number}")
        lines = said(capsys, source, "out.nemo")
        assert f"grape6: out.nemo was there, and is out.nemo.~{number}~ now" in lines
        with open(f"out.nemo.~{number}~", encoding="ascii") as file:
            assert file.read() == f"old {number}"
    assert read_snapshot("out.nemo").format == "nemo"


def test_neither_a_run_nor_what_was_converted_over_it_is_ever_lost(here):
    assert run("--n", 40, "--t-end", 0.0625, "--out", "a.h5") == 0
    before = read_snapshot("a.h5")
    write_snapshot("b.txt", plummer(20, seed=2))
    assert convert("b.txt", "a.h5") == 0
    assert len(read_snapshot("a.h5").mass) == 20
    assert bits(read_snapshot("a.h5.~1~")) == bits(before)
    assert run("a.h5.~1~", "--restart", "--t-end", 0.125, "--out", "c.h5") == 0
    assert run("--n", 10, "--t-end", 0.0625, "--out", "a.h5") == 0
    sizes = []
    for path in here.glob("a.h5*"):
        with contextlib.suppress(ValueError):
            sizes.append(len(read_snapshot(path).mass))
    assert sorted(sizes) == [10, 20, 40]


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
    lines = said(capsys, "a.dat", "a.dat")
    assert any("a.dat.~1~" in line for line in lines)
    assert read_snapshot("a.dat").format == "text"
    assert read_snapshot("a.dat.~1~").format == "nemo"
    assert bits(read_snapshot("a.dat")) == bits(read_snapshot("a.dat.~1~")) == bits(model)


def test_numbered_files_are_written_kept_and_read(cluster, capsys):
    """Under backup names they are one snapshot as well, and so are they without their number."""
    model, source = cluster
    for target, files in (("out.h5", 3), ("out.h5", 2), ("snap", 4)):
        *before, last = said(capsys, source, target, "--files", files, "--format", "gadget-hdf5")
        first, end = (
            ("out.0.h5", f"out.{files - 1}.h5") if target == "out.h5" else ("snap.0", "snap.3")
        )
        assert last.startswith(f"written: {first} to {end}, Gadget HDF5: 100 bodies, time 0.375")
        if files == 2:
            assert before == ["grape6: out.0.h5 to out.2.h5 were there, and are out.0.h5.~1~ to "
                              "out.2.h5.~1~ now"]  # fmt: skip
    for name in ("out.h5", "out", "out.1.h5", "out.h5.~1~", "out.2.h5.~1~", "snap", "snap.3"):
        said(capsys, name, "again.h5")
        assert bits(read_snapshot("again.h5")) == bits(model)
    assert run("snap", "--t-end", 0.0625, "--out", "run.h5") == 0
    assert last_group("run.h5")[1]["mass"].shape == (100,)


def test_a_run_and_a_file_without_a_number_make_place_for_numbered_ones(here, capsys):
    write_snapshot("b.txt", plummer(20, seed=2))
    assert run("--n", 40, "--t-end", 0.0625, "--out", "a.h5") == 0
    lines = said(capsys, "b.txt", "a.h5", "--files", 2)
    assert "grape6: a.h5 was there, and is a.h5.~1~ now" in lines
    assert len(read_snapshot("a.h5").mass) == 20
    assert len(read_snapshot("a.h5.~1~").mass) == 40


def test_damaged_and_missing_files_of_a_snapshot_end_with_one_line(cluster, capsys):
    _, source = cluster
    said(capsys, source, "out.h5", "--files", 3)
    os.truncate("out.1.h5", 3000)
    assert "out.1.h5 is damaged" in refused(capsys, "out", "a.txt")
    os.unlink("out.1.h5")
    assert refused(capsys, "out.2.h5", "a.txt").endswith(
        "one of 3 files, and out.1.h5 is not there"
    )
    assert run("out", "--t-end", 0.0625) == 1
    assert "out.1.h5 is not there" in capsys.readouterr().err


def test_which_chooses_a_snapshot(here, capsys):
    (here / "two.nemo").write_bytes(hand_made.nemo_of_two())
    for words, x in (([], 101), (["--which", 0], 1), (["--which", -2], 1), (["--which", "1"], 101)):
        said(capsys, "two.nemo", "out.txt", *words)
        assert read_snapshot("out.txt").pos[0, 0] == x
    assert "two.nemo: it has 2 snapshots" in refused(capsys, "two.nemo", "a.txt", "--which", 2)
    assert run("--n", 40, "--t-end", 0.25, "--dt-out", 0.125, "--out", "a.h5") == 0
    for which, time in ((0, 0.0), (1, 0.125), (-1, 0.25)):
        line = said(capsys, "a.h5", f"{time}.nemo", "--which", which)[-1]
        assert f"time {time}" in line
        assert read_snapshot(f"{time}.nemo").time == time
    assert np.array_equal(read_snapshot("0.25.nemo").pos, last_group("a.h5")[1]["pos"])


def test_format_and_from_overrule_names_and_contents(cluster, capsys):
    """And a folder that is missing is made."""
    said(capsys, cluster[1], "new/folder/out.bin", "--format", "tipsy")
    assert read_snapshot("new/folder/out.bin").format == "tipsy"
    said(capsys, "new/folder/out.bin", "out.txt", "--from", "tipsy")
    line = refused(capsys, "new/folder/out.bin", "other.txt", "--from", "nemo")
    assert "out.bin" in line
    assert "item" in line


# ---- units -----------------------------------------------------------------------------


def test_units_convert_what_has_units(cluster, capsys):
    model, source = cluster
    line = said(capsys, source, "out.h5", "--units", "Msun pc Myr")[-1]
    assert "units Msun pc Myr" in line
    found = read_snapshot("out.h5")
    assert np.allclose(found.mass, 5e4 * model.mass, rtol=1e-12)
    assert np.allclose(found.pos, 1.2 * model.pos, rtol=1e-12)
    assert np.allclose(found.vel, model.vel * 1.2 / HENON.value("time", "Myr"), rtol=1e-12)
    assert found.time == pytest.approx(0.375 * HENON.value("time", "Myr"), rel=1e-12)
    assert found.ids.tolist() == list(range(100))[::-1]


def test_units_name_those_of_what_has_none(here, capsys):
    model = plummer(20, seed=1)
    write_snapshot("a.txt", model)
    line = said(capsys, "a.txt", "out.amuse", "--units", "5e4 Msun 1.2 pc")[-1]
    assert "units 5e4 Msun 1.2 pc" in line
    found = read_snapshot("out.amuse")
    assert bits(found) == bits(model)
    assert found.units.value("length", "pc") == pytest.approx(1.2, rel=1e-12)
    assert found.units.value("mass", "Msun") == pytest.approx(5e4, rel=1e-12)


def test_numbers_of_units_convert_even_if_the_format_has_no_place_for_them(cluster, capsys):
    model, source = cluster
    first, last = said(capsys, source, "out.txt", "--units", "Msun pc")
    assert "units" in first
    assert "units" not in last
    assert np.allclose(read_snapshot("out.txt").pos, 1.2 * model.pos, rtol=1e-12)


def test_a_cosmological_file_is_converted_with_a_word_of_warning(here, capsys):
    (here / "box.gadget").write_bytes(hand_made.gadget(cosmology=(0.3, 2.0)))
    lines = said(capsys, "box.gadget", "box.nemo")
    assert any(line.startswith("grape6: box.gadget") and "comoving" in line for line in lines)


def test_it_works_as_a_program_of_its_own(cluster, here):
    command = [sys.executable, "-W", "error", "-m", "grape6py", "convert"]
    env = capi.clean_environment({"PYTHONPATH": str(capi.ROOT)})
    done, helped = (
        subprocess.run([*command, *words], cwd=here, check=False, capture_output=True, text=True,
                       timeout=60, env=env)
        for words in (["cluster.h5", "out.txt"], ["--help"])
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "time, ids, units" in done.stdout
    for word in [*ENDINGS, "--from", "--format", "--which", "--units"]:
        assert word in helped.stdout


# ---- grape6 run ------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_a_run_begins_and_ends_with_a_file_of_any_format(here, name):
    write_snapshot("start", plummer(30, seed=1), format=name)
    words = ["--t-end", 0.0625, "--eps", 0.1]
    target = "b.hdf5" if name == "gadget-hdf5" else f"b{FORMATS[name].endings[0]}"
    assert run("start", *words, "--out", "a.h5", "--out", target) == 0
    begun = read_snapshot(io.BytesIO((here / "start").read_bytes()), format=name)
    assert bits(read_snapshot("a.h5", 0)) == bits(begun)
    found, arrays = read_snapshot(target), last_group("a.h5")[1]
    rtol = 0 if FORMATS[name].digits == "double" else 1e-7
    for array, key in zip(found, ("mass", "pos", "vel"), strict=True):
        assert np.allclose(array, arrays[key], rtol=rtol, atol=0)
    if "time" in FORMATS[name].keeps.split():
        assert found.time == 0.0625


def test_a_run_from_a_file_with_units_is_in_these(cluster, capsys):
    assert run(cluster[1], "--t-end", 0.0625, "--eps", 0.1, "--out", "a.h5") == 0
    assert "units: mass 50000 Msun, length 1.2 pc" in capsys.readouterr().out
    found = read_snapshot("a.h5")
    for kind in ("mass", "length", "time"):
        assert found.units.in_cgs(kind) == pytest.approx(HENON.in_cgs(kind), rel=1e-12)
    assert sorted(found.ids) == list(range(100))


def test_a_run_keeps_what_was_there_in_the_place_of_a_nemo_file(here, capsys):
    (here / "a.nemo").write_text("old")
    assert run("--n", 20, "--t-end", 0.0625, "--out", "a.nemo") == 0
    assert "a.nemo was there, and is a.nemo.~1~ now" in capsys.readouterr().err
    assert (here / "a.nemo.~1~").read_text() == "old"
    assert read_snapshot("a.nemo").format == "nemo"
