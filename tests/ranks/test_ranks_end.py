"""Ranks of which one ends, by whatever: the others do not wait for it, and hear why."""

import os

import capi
import on_ranks

PROGRAM = capi.TESTS / "ranks" / "end_programs.py"


def run(ranks, name, cwd):
    return on_ranks.run(ranks, PROGRAM, name, cwd=cwd, timeout=60)


def test_sys_exit_and_ctrl_c_on_one_rank_end_a_call_on_all_and_the_ranks_go_on(tmp_path):
    found = on_ranks.said(3, "errors", program=PROGRAM, cwd=tmp_path)
    assert len(found) == 7
    for line in found:
        error = ("SystemExit", "seen enough")
        if line["case"].startswith("Ctrl-C"):
            error = ("KeyboardInterrupt", "")
        told = "RankError: on rank 2 of 3: " + ": ".join(filter(None, error))
        assert line["texts"] == [told, told, ": ".join(error)], line
        assert line["time"] == 0.1


def test_who_waits_for_a_rank_whose_program_has_ended_hears_so(tmp_path):
    done = run(6, "ends", tmp_path)
    found = {line["case"]: line for line in on_ranks.lines(done)}
    assert sorted(found) == [0, 1, 2], done.stderr
    for case, line in found.items():
        why = " (ZeroDivisionError: of the program)" if case == 0 else ""
        assert line["text"] == f"RankError: rank 1 of 2 has ended its program{why}"
        assert line["again"], case
    assert done.stderr.count("Traceback") == 1
    assert os.listdir(tmp_path) == []


def test_a_rank_that_ends_first_ends_no_other(tmp_path):
    done = run(2, "first", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert on_ranks.lines(done) == [{"alone": None}]


def test_a_rank_that_leaves_a_call_in_its_midst_ends_all(tmp_path):
    done = run(2, "twice", tmp_path)
    assert done.returncode != 0
    assert "grape6: this rank has left a call of all ranks: KeyboardInterrupt; all" in done.stderr


def test_a_rank_that_waits_for_one_without_comm_says_so(tmp_path):
    done = run(2, "alone", tmp_path)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "grape6: rank 0 of 2 waits for others: all ranks make a call with comm=, and none of them "
        "gives comm=None"
    ]
