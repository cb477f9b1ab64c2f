"""``Hermite(comm=...)`` of bodies that all ranks have, ``Leapfrog(comm=...)`` of their own ones."""

import os
import shutil
import warnings

import h5py
import pytest

import capi
import on_ranks
from grape6py import Leapfrog, archive, read_snapshot
from grape6py.errors import ArgumentError, Grape6Warning, SnapshotError

PROGRAM = capi.TESTS / "ranks" / "integration_programs.py"
full = pytest.mark.full


def said(ranks, name, *arguments):
    return on_ranks.said(ranks, name, *arguments, program=PROGRAM)


@pytest.mark.parametrize(("name", "ranks"), [("changes", 2), pytest.param("runs", 3, marks=full)])
def test_any_number_of_ranks_has_the_bits_of_one(name, ranks):
    assert said(ranks, name, 1) == said(1, name, 0)


@full
def test_a_run_goes_on_with_the_same_bits_on_other_numbers_of_ranks(tmp_path):
    assert said(2, "restarts", tmp_path) == said(3, "restarts", tmp_path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Where each of three ranks has saved its own files, and a full disk has left those before."""
    folder = tmp_path_factory.mktemp("saved")
    assert said(3, "saves", folder) == []
    return folder


@full
def test_numbered_outputs_are_gadgets_snapshots_and_the_index_has_links(saved):
    alone = read_snapshot(saved / "a.h5")
    for name in ("a/000003.hdf5", "a/000003.1.hdf5"):
        found = read_snapshot(saved / name)
        assert [x.tobytes() for x in found] == [x.tobytes() for x in alone]
        assert found.time == alone.time == 0.125
        assert found.ids.tolist() == list(range(700))
    assert [record["time"] for record in archive.history(saved / "a.h5")[1]] == [0, 0.0625, 0.125]
    with h5py.File(saved / "a.h5") as index:
        counts = index["index/counts"][-3:].tolist()
        assert [len(index[f"000003/{k}/mass"]) for k in range(3)] == counts
        header = index["000003/2"].parent["Header"].attrs
        assert header["NumFilesPerSnapshot"] == 3
        assert header["NumPart_Total"][1] == sum(counts) == 700


@pytest.fixture
def copied(saved, here):
    for name in ("a.h5", "a"):
        (shutil.copytree if name == "a" else shutil.copy)(saved / name, name)
    return here


def loaded():
    with pytest.warns(Grape6Warning) as said:
        found = Leapfrog.load("a.h5", backend="cpu")
    return found, " ".join(str(warning.message) for warning in said)


def damaged(_):
    with open("a/000003.1.hdf5", "r+b") as file:
        file.seek(4000)
        file.write(b"?")


def of_another_output(_):
    shutil.copy("a/000001.1.hdf5", "a/000003.1.hdf5")


WRONG_FILES = {damaged: "is damaged", of_another_output: "another output"}


@full
@pytest.mark.parametrize("spoil", WRONG_FILES)
@pytest.mark.parametrize("index", [True, False])
def test_files_that_are_not_those_of_one_output_are_not_read(copied, spoil, index):
    spoil(copied)
    if index:
        with pytest.raises(SnapshotError, match=WRONG_FILES[spoil]):
            read_snapshot("a.h5")
    else:
        os.unlink("a.h5")
    found, told = loaded()
    assert found.time == 0.0625
    assert ("gone on from time 0.0625" if index else "read from its outputs") in told
    found.evolve(0.25)
    with warnings.catch_warnings(action="ignore", category=Grape6Warning):  # the same again
        found.save("a.h5")
    assert read_snapshot("a.h5").time == 0.25


@full
def test_a_lost_index_is_made_again_from_numbered_outputs(copied):
    os.unlink("a.h5")
    shutil.copy("a/000003.0.hdf5", "a/000004.0.hdf5")  # of a rank, and others had none
    found, _ = loaded()
    assert found.time == 0.125
    os.rename("a/000003.0.hdf5", "b.hdf5")
    with pytest.raises((SnapshotError, ArgumentError), match="one of 3 files, and not named"):
        read_snapshot("b.hdf5")


@full
def test_a_rank_that_is_killed_leaves_the_output_before(tmp_path):
    assert on_ranks.run(3, PROGRAM, "killed", tmp_path).returncode != 0
    assert read_snapshot(tmp_path / "a.h5").time == 0
    names = [name for name in os.listdir(tmp_path / "a") if name[0] != "."]
    assert sorted(names) == [f"000000.{k}.hdf5" for k in range(3)]
    galaxy = Leapfrog.load(tmp_path / "a.h5")
    galaxy.evolve(0.0625)
    galaxy.save(tmp_path / "a.h5")  # in one file, and what was left aside is removed
    assert read_snapshot(tmp_path / "a.h5").time == 0.0625
    assert [name for name in os.listdir(tmp_path / "a") if name[0] == "." and "hdf5" in name] == []


@full
def test_few_bodies_and_none():
    assert said(3, "few") == []


@full
def test_what_fails_on_one_rank_fails_on_all_and_nothing_is_lost(tmp_path):
    assert said(3, "broken", tmp_path) == []
