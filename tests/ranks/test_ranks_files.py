"""Snapshots in numbered files: each rank writes its own bodies, and reads its share of all."""

import os

import pytest

import capi
import on_ranks
from grape6py import plummer, read_snapshot

PROGRAM = capi.TESTS / "ranks" / "file_programs.py"


def said(ranks, name, *arguments):
    return on_ranks.said(ranks, name, *arguments, program=PROGRAM)


@pytest.mark.full
def test_any_number_of_ranks_reads_what_another_has_written(tmp_path):
    """1, 2 and 3 of them; one of three has no bodies."""
    assert said(3, "files", tmp_path) == [{"ok": True}]
    for writers in (1, 2, 3):
        names = os.listdir(tmp_path / str(writers))
        assert len(names) == 4 * writers
        assert ("a.hdf5" in names) == (writers == 1)
        alone = read_snapshot(tmp_path / str(writers) / "a.hdf5")
        assert [x.tobytes() for x in alone] == [x.tobytes() for x in plummer(1000, seed=1)]


ALL, LAST, FIRST = "ArgumentError: ", "RankError: on rank 2 of 3: ", "RankError: on rank 0 of 3: "
WRONG = {  # what rank 0 and rank 2 say
    "nan": (LAST + "ArgumentError: x of body 3 is nan", ALL + "x of body 3 is nan"),
    "time": (ALL + "time differs between the ranks: 1.0 on rank 0", ALL + "time differs.* 2.0"),
    "units": (ALL + r"the arguments of write_snapshot\(\) differ",) * 2,
    "path": (ALL + r"the arguments of write_snapshot\(\) differ",) * 2,
    "ids": (ALL + "ids are given on some ranks",) * 2,
    "sign": (ALL + "some ids are below zero, and some above",) * 2,
    "format": (ALL + "a.nemo: NEMO snapshot is one file",) * 2,
    "files": (ALL + "files= is for one process",) * 2,
    "folder": ("FileNotFoundError.*no/folder/a.0.hdf5", "RankError|FileNotFoundError"),
    "call": (ALL + "the ranks make different calls",) * 2,
    "read": ("FileNotFoundError.*no.hdf5", FIRST + "FileNotFoundError"),
    "which": (ALL + r"the arguments of read_snapshot\(\) differ",) * 2,
    "full": (LAST + "OSError: .*File too large: 'a.2.hdf5'", "OSError: .*File too large"),
    "damage": (r"SnapshotError: a\.2\.hdf5 is damaged", FIRST + r"SnapshotError: a\.2\.hdf5"),
}


def test_what_fails_on_one_rank_fails_on_all_and_leaves_the_files(tmp_path):
    found = {line["call"]: line["texts"] for line in said(3, "broken", tmp_path)}
    assert list(found) == list(WRONG)
    for name, (first, last) in WRONG.items():
        texts = found[name]
        assert on_ranks.matches(first, texts[0]), (name, texts)
        assert on_ranks.matches(last, texts[2]), (name, texts)
        assert texts[1].startswith(("RankError: on rank", "ArgumentError: ", "FileNot")), texts


def test_a_rank_that_is_killed_leaves_the_snapshot_before(tmp_path):
    done = on_ranks.run(3, PROGRAM, "killed", tmp_path)
    assert done.returncode != 0
    assert sorted(n for n in os.listdir(tmp_path) if n[0] != ".") == [f"a.{k}.hdf5" for k in "012"]
    found = read_snapshot(tmp_path / "a.hdf5")
    assert found.time == 0.5
    assert len(found.mass) == 1000
