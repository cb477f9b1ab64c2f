"""``Hermite(comm=...)`` of bodies that all ranks have, ``Leapfrog(comm=...)`` of their own ones."""

import functools
import os
import shutil
import warnings

import h5py
import numpy as np
import pytest

import capi
import on_ranks
from grape6py import Leapfrog, archive, read_snapshot
from grape6py.errors import ArgumentError, Grape6Warning, SnapshotError

PROGRAM = capi.TESTS / "ranks" / "integration_programs.py"
full = pytest.mark.full
kinds = pytest.mark.parametrize("kind", ["Hermite", "Leapfrog"])


def said(ranks, name, *arguments):
    return on_ranks.said(ranks, name, *arguments, program=PROGRAM)


@functools.cache
def alone(name, kind):
    """What a program without ranks says."""
    return said(1, name, kind, 0)


@kinds
def test_two_ranks_have_the_bits_of_one(kind):
    assert said(2, "changes", kind, 1) == alone("changes", kind)


@full
@kinds
@pytest.mark.parametrize(("name", "ranks"), [
    ("runs", 1), ("runs", 2), ("runs", 5), ("changes", 1), ("changes", 3),
])  # fmt: skip
def test_any_number_of_ranks_has_the_bits_of_one(name, ranks, kind):
    assert said(ranks, name, kind, 1) == alone(name, kind)


@full
@kinds
def test_a_run_goes_on_with_the_same_bits_on_other_numbers_of_ranks(tmp_path, kind):
    first = said(2, "restarts", kind, 1, tmp_path)
    for ranks, shared in ((1, 0), (5, 1)):
        assert said(ranks, "restarts", kind, shared, tmp_path) == first


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """What three ranks have saved, and said of it."""
    folder = tmp_path_factory.mktemp("saved")
    return folder, said(3, "saves", folder)


def parts(*numbers):
    return [f"a/{number:06d}.{k}.hdf5" for number in numbers for k in range(3)]


@full
def test_each_rank_writes_its_own_file_and_a_full_disk_leaves_those_before(saved):
    _, (two, full, three, end, again) = saved
    assert two["names"] == ["a.h5", *parts(0, 1)]
    first, middle, last = full["texts"]
    told = "RankError: on rank 2 of 3: OSError: .*File too large: '.*000002.2.hdf5'"
    assert on_ranks.matches(told, first)
    assert on_ranks.matches(told, middle)
    assert on_ranks.matches("OSError: .*File too large", last)
    assert three["names"] == ["a.h5", *parts(0, 1, 3)]  # 2 was at the same time as 3
    assert end == {"n": [700, 233], "time": 0.125}
    files = [f"again/b/00000{number}.{k}.hdf5" for number in range(2) for k in range(3)]
    assert again["again"] == ["again/b.h5", *files]


@full
def test_numbered_outputs_are_gadgets_snapshots_and_the_index_has_links(saved):
    folder, _ = saved
    alone = read_snapshot(folder / "a.h5")
    for name in ("a/000003.hdf5", "a/000003.1.hdf5"):
        found = read_snapshot(folder / name)
        assert [x.tobytes() for x in found] == [x.tobytes() for x in alone]
        assert found.time == alone.time == 0.125
        assert found.ids.tolist() == list(range(700))
    assert [record["time"] for record in archive.history(folder / "a.h5")[1]] == [0, 0.0625, 0.125]
    with h5py.File(folder / "a.h5") as index:
        counts = index["index/counts"][-3:].tolist()
        assert [len(index[f"000003/{k}/mass"]) for k in range(3)] == counts
        header = index["000003/2"].parent["Header"].attrs
        assert header["NumFilesPerSnapshot"] == 3
        assert header["NumPart_Total"][1] == sum(counts) == 700


@pytest.fixture
def copied(saved, here):
    for name in ("a.h5", "a"):
        (shutil.copytree if name == "a" else shutil.copy)(saved[0] / name, name)
    return here


def loaded():
    with pytest.warns(Grape6Warning) as said:
        found = Leapfrog.load("a.h5", backend="cpu")
    return found, " ".join(str(warning.message) for warning in said)


def missing(_):
    os.unlink("a/000003.1.hdf5")


def damaged(_):
    with open("a/000003.1.hdf5", "r+b") as file:
        file.seek(4000)
        file.write(b"?")


def of_another_output(_):
    shutil.copy("a/000001.1.hdf5", "a/000003.1.hdf5")


def of_another_number(_):
    shutil.copy("a/000003.0.hdf5", "a/000003.1.hdf5")


WRONG_FILES = {missing: "No such file", damaged: "is damaged", of_another_output: "another output",
               of_another_number: "another output"}  # fmt: skip


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Grape6Warning)  # the same again
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
    left = [name for name in os.listdir(tmp_path / "a") if name[0] == "." and "hdf5" in name]
    assert left == []


@full
@pytest.mark.parametrize("ranks", [1, 5])
def test_trees_have_the_errors_of_one_tree_and_keep_energy_and_momentum(ranks):
    for row in said(ranks, "trees"):
        ours, theirs = row["errors"]
        assert ours < 1.5 * theirs
        assert row["energy"] < 1e-3
        assert row["jerk"] < 0.01
        if row["shared"]:
            assert row["drift"] < 1e-15


@full
@pytest.mark.parametrize("ranks", [1, 4])
def test_few_bodies_and_none(ranks):
    assert said(ranks, "few") == [{"ok": True}]


@full
@pytest.mark.parametrize("shape", ["collapse", "merger"])
def test_after_three_steps_ranks_have_the_same_share_of_the_work(shape):
    (found,) = said(4, "balance", shape, 5000)
    assert np.median(found["largest"][3:]) < 1.1


ALL, LAST = "ArgumentError: ", "RankError: on rank 2 of 3: "
CALLS, DIFFER = (f"{ALL}the {words}" for words in ("ranks make different calls: ", "bodies differ"))


def of_last(words):
    return LAST + words, words


WRONG = {  # what rank 0 and rank 2 say
    "nan": of_last("NotFiniteError: vel"), "shape": of_last("ArgumentError: (pos|vel)"),
    "dt": (ALL + "the settings differ",) * 2, "eta": of_last("ArgumentError: eta = -1"),
    "backend": of_last("ArgumentError: backend = 'nothing'"),
    "folder": (".*no/folder", "RankError: on rank 0 of 3: "),
    "no file": of_last("FileNotFoundError"),
    "t": (ALL + "t differs between the ranks: 0.04.* on rank 0", ALL + "t differs.* 0.05"),
    "t past": of_last("ArgumentError: t = 0.0 is before"),
    "every": (ALL + "every differs.* 0.001", ALL + "every differs between the ranks: None"),
    "events": (ALL + "events differ",) * 2, "event": (ALL + "events differ",) * 2,
    "call": (CALLS, CALLS + ".*kick()"), "kick": of_last("NotFiniteError"),
    "add": of_last("ArgumentError: vel has shape"),
    "remove": of_last("AddressError: no body .*9999"),
    "callback": of_last("KeyError: 'a callback'"),
    "last callback": of_last("KeyError: 'a callback'"),
    "field": of_last("ValueError: a field of one rank fails"),
}  # fmt: skip
OF_KIND = {
    "Hermite": {
        "bodies": (DIFFER + " between the ranks; this is rank 0", DIFFER + ".* rank 2"),
        "other kick": (DIFFER,) * 2, "kick of other": (DIFFER,) * 2, "set_mass": (DIFFER,) * 2,
        "merge": of_last("ArgumentError: merge needs two"),
    },
    "Leapfrog": {
        "tree": (ALL + "the settings differ",) * 2,
        "sums": (CALLS + ".*momentum", ALL + ".*energy"),
        "look": (CALLS,) * 2, "same ids": (ALL + "ids: two ranks give",) * 2,
        "merge": (ALL + "merge.. is of bodies that one rank has",) * 2,
        "binaries": (ALL + "binaries.. are of bodies that one rank has",) * 2,
    },
}  # fmt: skip


@full
@kinds
def test_what_fails_on_one_rank_fails_on_all_and_nothing_is_lost(tmp_path, kind):
    found = {line["call"]: line["texts"] for line in said(3, "broken", kind, tmp_path)}
    wrong = WRONG | OF_KIND[kind]
    assert found.keys() == wrong.keys()
    for name, (first, last) in wrong.items():
        texts = found[name]
        assert on_ranks.matches(first, texts[0]), (name, texts)
        assert on_ranks.matches(last, texts[2]), (name, texts)
        assert texts[1].startswith(("RankError: on rank", "ArgumentError: ")), (name, texts)
