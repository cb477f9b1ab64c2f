"""``Grape6(comm=...)``: the sums of any number of ranks have the bits of one session."""

import functools

import pytest

import on_ranks


@functools.cache
def alone(n, precision):
    """What a session without ranks says."""
    return on_ranks.said(1, "sums", n, precision, 0)


@pytest.mark.parametrize(("n", "precision", "ranks"), [
    *((5000, "grape", ranks) for ranks in (1, 2, 3, 5)), (3333, "double", 3), (7, "grape", 3),
    (1024, "single", 2),
])  # fmt: skip
def test_forces_of_ranks_have_the_bits_of_one_session(n, precision, ranks):
    assert on_ranks.said(ranks, "sums", n, precision, 1) == alone(n, precision)


@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks_without_bodies_take_part(ranks):
    assert on_ranks.said(ranks, "nobody") == [{"n": 3}]


def test_an_error_of_one_rank_is_told_by_all():
    found = on_ranks.said(3, "errors")
    assert found[-1] == {"call": "after", "texts": []}
    wanted = [r"NotFiniteError: pos\[0\]", r"AddressError: address\[0\] = 3000", None, None, None,
              None, "ArgumentError: h has shape"]  # fmt: skip
    for (first, second, last), text in zip((x["texts"] for x in found), wanted, strict=False):
        if text is None:
            assert all(x.startswith("ArgumentError") for x in (first, second, last))
        else:
            assert on_ranks.matches(text, last)
            assert on_ranks.matches(f"RankError: on rank 2 of 3: {text}", first)
            assert first == second


def test_a_communicator_is_one_of_mpi4py():
    pytest.importorskip("mpi4py", reason="SKIP: mpi4py")
    from grape6py import Grape6
    from grape6py.errors import ArgumentError

    with pytest.raises(ArgumentError, match="communicator of mpi4py"):
        Grape6(comm=3)
