"""What ranks of MPI promise of sums, of snapshots, and when one ends. The programs assert it."""

import os
import subprocess
import sys

import pytest

import capi
import on_ranks
from grape6py import plummer, read_snapshot

FILES, ENDS = (capi.TESTS / f"ranks/{name}_programs.py" for name in ("file", "end"))


def ends(ranks, name, folder):
    return on_ranks.run(ranks, ENDS, name, cwd=folder, timeout=60)


def test_sums():
    assert on_ranks.said(
        3, "forces_of_ranks_have_the_bits_of_one_session", "ranks_without_bodies_take_part",
        "an_error_of_one_rank_is_told_by_all", "partial_sums_of_a_program_of_its_own",
    ) == []  # fmt: skip


def test_a_process_of_its_own_knows_nothing_of_mpi():
    program = """if True:
        import sys
        from grape6py import Hermite, Leapfrog, Tree, plummer
        bodies = plummer(20, seed=1)
        for made in Hermite(*bodies, eps=0.1), Leapfrog(*bodies, eps=0.1, dt=1 / 64):
            made.evolve(1 / 16)
            made.energy()
        Tree(*bodies).forces(eps=0.1)
        assert "mpi4py" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", program], check=True)


# ---- snapshots in numbered files: each rank writes its own bodies, and reads its share -----------
@pytest.mark.full
def test_any_number_of_ranks_reads_what_another_has_written(tmp_path):
    """1, 2 and 3 of them; one of three has no bodies."""
    assert on_ranks.said(3, "files", tmp_path, program=FILES) == []
    for writers in (1, 2, 3):
        names = os.listdir(tmp_path / str(writers))
        assert len(names) == 4 * writers
        assert ("a.hdf5" in names) == (writers == 1)
        alone = read_snapshot(tmp_path / str(writers) / "a.hdf5")
        assert [x.tobytes() for x in alone] == [x.tobytes() for x in plummer(1000, seed=1)]


def test_what_fails_on_one_rank_fails_on_all_and_leaves_the_files(tmp_path):
    assert on_ranks.said(3, "broken", tmp_path, program=FILES) == []


def test_a_rank_that_is_killed_leaves_the_snapshot_before(tmp_path):
    assert on_ranks.run(3, FILES, "killed", tmp_path).returncode != 0
    assert sorted(n for n in os.listdir(tmp_path) if n[0] != ".") == [f"a.{k}.hdf5" for k in "012"]
    found = read_snapshot(tmp_path / "a.hdf5")
    assert (found.time, len(found.mass)) == (0.5, 1000)


# ---- one rank ends, by whatever: the others do not wait for it, and hear why ---------------------
def test_sys_exit_and_ctrl_c_on_one_rank_end_a_call_on_all_and_the_ranks_go_on(tmp_path):
    assert on_ranks.said(3, "errors", program=ENDS, cwd=tmp_path) == []


@pytest.mark.full
def test_who_waits_for_a_rank_whose_program_has_ended_hears_so(tmp_path):
    done = ends(6, "ends", tmp_path)
    assert done.stdout.count("heard") == 3, done.stderr
    assert done.stderr.count("Traceback") == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.full
def test_a_rank_that_ends_first_ends_no_other(tmp_path):
    done = ends(2, "first", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "heard\n", "")


def test_a_rank_that_leaves_a_call_in_its_midst_ends_all(tmp_path):
    done = ends(2, "twice", tmp_path)
    assert done.returncode != 0
    assert "grape6: this rank has left a call of all ranks: KeyboardInterrupt; all" in done.stderr


@pytest.mark.full
def test_a_rank_that_waits_for_one_without_comm_says_so(tmp_path):
    done = ends(2, "alone", tmp_path)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "grape6: rank 0 of 2 waits for others: all ranks make a call with comm=, and none of them "
        "gives comm=None"
    ]
