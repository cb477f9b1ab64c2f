"""``Leapfrog(comm=...)``: ranks that have bodies of their own integrate them together."""

import functools

import numpy as np
import pytest

import capi
import on_ranks

PROGRAM = capi.TESTS / "ranks" / "leapfrog_programs.py"


def said(ranks, name, *arguments):
    return on_ranks.said(ranks, name, *arguments, program=PROGRAM)


@functools.cache
def alone(name):
    """What a program without ranks says."""
    return said(1, name, 0)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_direct_sums_have_the_bits_of_one_rank(ranks):
    assert said(ranks, "direct", 1) == alone("direct")


@pytest.mark.parametrize("ranks", [1, 3])
def test_bodies_may_change_and_events_are_those_of_one_rank(ranks):
    assert said(ranks, "changes", 1) == alone("changes")


def test_a_run_goes_on_with_the_same_bits_on_other_numbers_of_ranks(tmp_path):
    first = said(2, "restarts", 1, tmp_path)
    for ranks, shared in ((1, 0), (3, 1), (5, 1)):
        assert said(ranks, "restarts", shared, tmp_path) == first


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_trees_have_the_errors_of_one_tree_and_keep_energy_and_momentum(ranks):
    for row in said(ranks, "trees"):
        ours, theirs = row["errors"]
        assert ours < 1.5 * theirs
        assert row["energy"] < 1e-3
        assert row["jerk"] < 0.01
        if row["shared"]:
            assert row["drift"] < 1e-15


@pytest.mark.parametrize("ranks", [1, 4])
def test_few_bodies_and_none(ranks):
    assert said(ranks, "few") == [{"ok": True}]


@pytest.mark.parametrize("shape", ["collapse", "merger"])
def test_after_three_steps_ranks_have_the_same_share_of_the_work(shape):
    (found,) = said(4, "balance", shape, 5000)
    assert np.median(found["largest"][3:]) < 1.1


ALL, LAST = "ArgumentError: ", "RankError: on rank 2 of 3: "
WRONG = {  # what rank 0 and rank 2 say
    "nan": (LAST + "NotFiniteError: vel", "NotFiniteError: vel"),
    "shape": (LAST + "ArgumentError: pos", "ArgumentError: pos has shape"),
    "dt": (ALL + "the settings differ",) * 2,
    "tree": (ALL + "the settings differ",) * 2,
    "t": (ALL + "t differs", ALL + "t differs.* 0.05"),
    "call": (ALL + "the ranks make different calls: .*momentum", ALL + ".*energy"),
    "look": (ALL + "the ranks make different calls",) * 2,
    "callback": (LAST + "KeyError: 'a callback'", "KeyError: 'a callback'"),
    "field": (LAST + "ValueError: a field of one", "ValueError: a field of one rank fails"),
    "id": (LAST + "AddressError: no body of rank 2", "AddressError: no body of rank 2 has the id"),
    "same ids": (ALL + "ids: two ranks give",) * 2,
    "merge": (ALL + "merge.. is of bodies that one rank has", ".* that one rank has"),
    "binaries": (ALL + "binaries.. are of bodies", ".* that one rank has"),
    "folder": (".*no/folder", "RankError: on rank 0 of 3: "),
}


def test_what_fails_on_one_rank_fails_on_all_and_nothing_is_lost(tmp_path):
    found = {line["call"]: line["texts"] for line in said(3, "broken", tmp_path)}
    assert list(found) == list(WRONG)
    for name, (first, last) in WRONG.items():
        texts = found[name]
        assert on_ranks.matches(first, texts[0]), (name, texts)
        assert on_ranks.matches(last, texts[2]), (name, texts)
        assert texts[1].startswith(("RankError: on rank", "ArgumentError: ")), (name, texts)
