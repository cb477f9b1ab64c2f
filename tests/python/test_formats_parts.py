"""Snapshots in numbered files: read as one, refused if they are not of one, whole or not there."""

import io
import itertools
import os
import struct
import warnings

import h5py
import numpy as np
import pytest

import hand_made
from endings import Ending, Killed
from grape6py import Grape6Warning, Units, plummer, read_snapshot, write_snapshot
from grape6py.cli import main
from grape6py.errors import ArgumentError, SnapshotError
from grape6py.files.formats import FORMATS, Snapshot, Source, numbered, parts
from grape6py.files.storage import atomic_files
from hand_made import IDS, MASS, POS, VEL

N = 100
NAMES = {"gadget-hdf5": "snap_010.hdf5", "gadget": "snap_010", "gadget2": "snap_010"}
UNITS = Units("5e4 Msun", "1.2 pc")


@pytest.fixture
def model():
    return plummer(N, seed=1)


def part(name, number):
    return f"snap_010.{number}.hdf5" if name == "gadget-hdf5" else f"snap_010.{number}"


def written(name, content, files=3, **options):
    write_snapshot(NAMES[name], content, format=name, files=files, **options)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def bits(name, content):
    kind = "double" if name == "gadget-hdf5" else "single"
    return [array.astype(kind).tobytes() for array in content]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("n", "files"), [(N, 2), (3, 5), (0, 2)])
def test_any_name_of_a_snapshot_in_files_is_that_of_all(here, name, n, files):
    mass, pos, vel = (array[:n] for array in plummer(max(n, 1), seed=1))
    ids = np.arange(n)[::-1] + 7
    keeps_units = {"units": UNITS} if name == "gadget-hdf5" else {}
    written(name, mass, files=files, pos=pos, vel=vel, time=0.25, ids=ids, **keeps_units)
    for given in (*(part(name, k) for k in range(files)), NAMES[name], "snap_010"):
        found = read_snapshot(given)
        assert found.format == name
        assert bits(name, found) == bits(name, (mass, pos, vel))
        assert found.time == 0.25
        assert found.ids is None if n == 0 else found.ids.tolist() == ids.tolist()
        assert (found.units == UNITS) == bool(keeps_units)
    with open(part(name, 1), "rb") as file:
        assert len(read_snapshot(file).mass) == n


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("masses", [(0.0, 0.25, 0.0), (0.5, 0.0, 0.125), (0.0, 0.0, 0.0)])
def test_rows_of_files_of_others_are_those_of_the_whole(here, name, masses):
    """Types of particles, masses of the header and of blocks: any cut gives the same bodies."""
    bodies = list(zip((0, 1, 4), masses, strict=True))
    for k, of in enumerate([(0, 2), (1,)]):
        if name == "gadget-hdf5":
            data = hand_made.gadget_hdf5(bodies, of, NumFilesPerSnapshot=2)
        else:
            data = hand_made.gadget(labels=name == "gadget2", bodies=bodies, of=of, files=2)
        with open(part(name, k), "wb") as file:
            file.write(data)
    layout = FORMATS[name].layout
    with open(part(name, 0), "rb") as file:
        heads = layout.heads(Source(file, file.name))
    order = [0, 2, 1]
    for begin in range(4):
        for end in range(begin, 4):
            found, some = layout.between(heads, slice(begin, end), parts.NOTHING), order[begin:end]
            assert found.mass.tolist() == [masses[k] or MASS[k] for k in some]
            assert found.pos.tolist() == [POS[k] for k in some]
            assert found.vel.tolist() == [VEL[k] for k in some]
            assert found.ids.tolist() == [IDS[k] for k in some]


def test_a_name_without_a_number_is_no_other_file(here, model):
    """Of a series of snapshots none is the one that was not there."""
    for number in (0, 1):
        write_snapshot(f"galaxy.{number}.hdf5", model, time=number)
        write_snapshot(f"dat.{number}", model, format="text")
    for given in ("galaxy.hdf5", "galaxy", "dat", "nothing", "no/folder/galaxy"):
        with pytest.raises(FileNotFoundError) as caught:
            read_snapshot(given)
        assert caught.value.filename == given
    write_snapshot("galaxy.hdf5", model, time=9)
    assert [read_snapshot(f"galaxy.{k}.hdf5").time for k in (0, 1)] == [0, 1]  # they are no parts


def change_header(**attributes):
    def change(name):
        with h5py.File(name, "r+") as file:
            file["Header"].attrs.update(attributes)

    return change


def change_bytes(at, form, value):
    def change(name):
        with open(name, "r+b") as file:
            file.seek(at)
            file.write(struct.pack(form, value))

    return change


def cut(name):
    os.truncate(name, os.path.getsize(name) // 2)


def no_number(name):
    with h5py.File(name, "r+") as file:
        file["PartType1/Coordinates"][5] = np.nan


WRONG = [
    ("gadget-hdf5", os.unlink, r"snap_010\.1\.hdf5 is not there"),
    ("gadget-hdf5", cut, r"snap_010\.1\.hdf5 is damaged"),
    ("gadget-hdf5", no_number, r"snap_010\.1\.hdf5: pos of body 5 is \[nan"),
    ("gadget-hdf5", change_header(Time=2.0), r"1\.hdf5: .* another snapshot .*0\.hdf5: time 2\.0"),
    ("gadget-hdf5", change_header(NumFilesPerSnapshot=2), "number of files 2 instead of 3"),
    ("gadget-hdf5", change_header(NumFilesPerSnapshot=1), "number of files 1 instead of 3"),
    ("gadget-hdf5", change_header(NumPart_Total=np.arange(6)), "numbers of particles in all"),
    ("gadget-hdf5", change_header(NumPart_ThisFile=[0, 5, 0, 0, 0, 0]), r"should have \[0, 100"),
    ("gadget-hdf5", change_header(NumPart_ThisFile=[0, 33]), "number of types of particles 2"),
    ("gadget-hdf5", change_header(Time=np.nan), "its time is nan"),
    ("gadget", os.unlink, r"snap_010\.1 is not there"),
    ("gadget", cut, r"snap_010\.1: .* should end at byte"),
    ("gadget", change_bytes(76, "<d", 2.0), r"snap_010\.1: .* another .*010\.0: time 2\.0"),
    ("gadget", change_bytes(128, "<i", 9), "number of files 9 instead of 3"),
    ("gadget", change_bytes(104, "<i", 9), "numbers of particles in all files"),
    ("gadget", change_bytes(8, "<i", 9), r"should have \[0, 100"),
    ("gadget", change_bytes(8, "<i", -9), r"snap_010\.1: the numbers of particles"),
    ("gadget", change_bytes(268, "<f", np.inf), r"snap_010\.1: pos of body 0 is \[ *inf"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "words", "is_marked"), [
    (*row, k % 2 == 0) for k, row in enumerate(WRONG)
])  # fmt: skip
def test_missing_foreign_and_damaged_files_are_named(here, model, name, change, words, is_marked):
    """With and without the mark that files of this project have."""
    written(name, model, time=0.5)
    for k in range(3) if not is_marked else ():
        if name == "gadget":
            change_bytes(188, "<i", 0)(part(name, k))
        else:
            with h5py.File(part(name, k), "r+") as file:
                del file.attrs["part of snapshot"]
    assert read_snapshot(NAMES[name]).time == 0.5
    change(part(name, 1))
    for given in (part(name, 0), NAMES[name]):
        with pytest.raises(SnapshotError, match=words):
            read_snapshot(given)


@pytest.mark.parametrize("name", NAMES)
def test_files_of_two_snapshots_are_never_one(here, model, name):
    written(name, model, time=0.5)
    first = contents(here)
    written(name, plummer(N, seed=2), time=0.5)
    (here / part(name, 1)).write_bytes(first[part(name, 1)])
    for given in (part(name, 0), part(name, 1), "snap_010"):
        with pytest.raises(SnapshotError, match=r"of another snapshot than .*: digest"):
            read_snapshot(given)
    written(name, model, time=0.5)
    assert contents(here) == first
    (here / part(name, 1)).write_bytes(first[part(name, 2)])
    words = r"snap_010\.1.*: it was written as file 2, and renamed"
    with pytest.raises(SnapshotError, match=words):
        read_snapshot(part(name, 0))


@pytest.mark.parametrize("name", NAMES)
def test_files_that_are_replaced_while_they_are_read_or_renamed_are_refused(here, model, name):
    written(name, model, time=0.5)
    layout = FORMATS[name].layout
    with open(part(name, 0), "rb") as file:
        heads = layout.heads(Source(file, file.name))
    written(name, plummer(N, seed=2), time=0.5)
    with pytest.raises(SnapshotError, match=r"snap_010\.1.*has changed while it was read"):
        layout.between(heads, slice(40, 60), parts.NOTHING)
    for new, words in ((part(name, 7), "and has the number 7"), ("elsewhere", "and not named")):
        (here / part(name, 2)).rename(new)
        with pytest.raises(SnapshotError, match=f"{new}: it is one of 3 files, {words}"):
            read_snapshot(new)
        (here / new).rename(part(name, 2))


@pytest.mark.parametrize(("error", "old", "new", "kept"), [  # old and new numbers of files
    (OSError, 4, 2, False), (Killed, 3, 1, True),
    *(pytest.param(*way, marks=pytest.mark.full) for way in (
        (OSError, 1, 3, False), (OSError, 4, 2, True), (Killed, 4, 2, False), (Killed, 2, 4, False)
    )),
])  # fmt: skip
@pytest.mark.slow
def test_what_ends_midway_leaves_the_old_snapshot_or_the_new_one(
    here, model, monkeypatch, error, old, new, kept
):
    write_snapshot("new.nemo", Snapshot(*model, time=1.5))
    for times in itertools.count(1):
        for name in here.glob("*s.*"):
            name.unlink()
        write_snapshot("s.hdf5", Snapshot(*model, time=0.5), files=old)
        ending = Ending(error, times)
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore", Grape6Warning)
            patch.setattr(atomic_files, "os", ending)
            patch.setattr(numbered, "os", ending)
            try:
                if kept:
                    failed = main(["convert", "new.nemo", "s.hdf5", "--files", str(new)]) != 0
                else:
                    failed = write_snapshot("s.hdf5", read_snapshot("new.nemo"), files=new)
            except (OSError, Killed):
                failed = True
        found = read_snapshot("s.hdf5")
        assert found.pos.tobytes() == model.pos.tobytes()
        if error is OSError:
            assert found.time == (0.5 if failed else 1.5), times
            assert ending.failed not in ("write", "fsync") or not list(here.glob(".*"))
        assert found.time in (0.5, 1.5)
        if kept and found.time == 1.5:
            backup = "s.0.hdf5.~1~" if old > 1 else "s.hdf5.~1~"
            assert read_snapshot(backup).time == 0.5
        if ending.left > 0:
            break
    assert times > 4


@pytest.mark.parametrize("name", NAMES)
def test_new_files_take_the_place_of_the_old_snapshot_and_of_nothing_else(here, model, name):
    written(name, model, files=5, time=0.5)
    write_snapshot(NAMES[name], model, format=name, time=0.25)
    assert read_snapshot(NAMES[name]).time == 0.25
    others = {"snap_010x.3.hdf5", "snap_011.3", "snap_010.9.txt", "snap_010.8", "snap_010.8.hdf5"}
    for other in others:
        write_snapshot(other, model, format="gadget-hdf5")
    written(name, model, files=2, time=1.5)
    assert set(os.listdir()) == others | {part(name, 0), part(name, 1)}
    assert read_snapshot(NAMES[name]).time == 1.5


@pytest.mark.parametrize(("options", "complaint"), [
    ({"files": 0}, "files = 0: at least one"), ({"files": 2.5}, "files"),
    ({"files": 70000}, "70000 files are too many"), ({"files": 2, "format": "lost"}, "no format"),
    *(({"files": 2, "format": other}, "is one file; in several there are the formats gadget-hdf5")
      for other in FORMATS if other not in NAMES),
    ({"files": 2, "format": "gadget", "target": io.BytesIO()}, "need a path"),
    ({"files": 2, "format": "gadget", "target": "/dev/null"}, "a device has no numbers"),
])  # fmt: skip
def test_files_that_a_format_has_not_are_refused(here, model, options, complaint):
    with pytest.raises(ArgumentError, match=complaint):
        write_snapshot(**{"target": "a.hdf5", "mass": model} | options)
    assert os.listdir() == []


def test_what_files_do_not_keep_is_named_once(here, model):
    with pytest.warns(Grape6Warning, match="snap_010: .* no place for units, ids from -1") as said:
        written("gadget", model, ids=np.arange(N) - 1, units=UNITS)
    assert len(said) == 1
    assert said[0].filename == __file__
    assert read_snapshot("snap_010").ids.tolist() == list(range(1, N + 1))
