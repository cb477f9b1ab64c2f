"""``Hermite(comm=...)``: any number of ranks integrate the same bodies, with the bits of one."""

import functools

import pytest

import on_ranks

RANKS = [1, 2, 3, 5]


@functools.cache
def alone(name):
    """What a program without ranks says."""
    return on_ranks.said(1, name, 0)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", ["integrations", "changes"])
def test_ranks_integrate_with_the_bits_of_one(name, ranks):
    assert on_ranks.said(ranks, name, 1) == alone(name)


def test_a_run_goes_on_with_the_same_bits_on_other_numbers_of_ranks(tmp_path):
    path = tmp_path / "a.h5"
    first = on_ranks.said(2, "restarts", 1, path)
    for ranks, shared in ((1, 0), (1, 1), (3, 1), (5, 1)):
        found = on_ranks.said(ranks, "restarts", shared, path)
        assert found[0]["bits"][:4] == first[0]["bits"][:4]
        assert found[0]["run"]


def test_what_fails_on_one_rank_fails_on_all(tmp_path):
    (found,) = on_ranks.said(3, "broken", tmp_path)
    (first, *others) = found["texts"]
    assert "no/folder" in first[0]
    assert all(text[0].startswith("RankError: on rank 0 of 3:") for text in others)
    assert all("different arguments" in text[1] for text in found["texts"])
    assert found["texts"][2][2] == "ValueError: a field of one rank fails"
    assert all("RankError: on rank 2 of 3: ValueError" in text[2] for text in found["texts"][:2])
