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


WRONG = [  # whether it is the last rank's alone, and what that says
    (True, r"NotFiniteError: pos\[0\]"), (True, r"AddressError: address\[0\] = 3000"),
    (False, "ArgumentError: whether address and index are given differs between the ranks"),
    (False, "ArgumentError: vel and index describe targets"),
    (False, "ArgumentError: eps differs between the ranks: 0.[12]0*.? on rank"),
    (True, "ArgumentError: eps = -1.0"), (True, "ArgumentError: eps = nan"),
    (True, r"ArgumentError: eps\^2 = inf"), (False, "ArgumentError: time differs"),
    (True, "ArgumentError: time = inf"), (False, "ArgumentError: time differs"),
    (False, "ArgumentError: whether pos, index, h, nn and same are given differs"),
    (False, "ArgumentError: the targets differ"), (False, "ArgumentError: the targets differ"),
    (False, "ArgumentError: same=True"), (True, "ArgumentError: h has shape"),
    (False, "ArgumentError: the ranks make different calls: .*_?(forces|particles)"),
    (True, "ArgumentError: backend = 'nothing'"),
    (False, "ArgumentError: the particles differ"), (True, "ArgumentError: pos "),
    (True, "NotOpenError"),
]  # fmt: skip


def test_an_error_of_one_rank_is_told_by_all():
    found = [line["texts"] for line in on_ranks.said(3, "errors")]
    assert len(found) == len(WRONG)
    for texts, (is_of_one, text) in zip(found, WRONG, strict=True):
        first, second, last = texts
        assert on_ranks.matches(text, last), texts
        if is_of_one:
            assert on_ranks.matches(f"RankError: on rank 2 of 3: {text}", first), texts
            assert first == second
        else:
            assert all(on_ranks.matches(text, other) for other in (first, second)), texts


def test_a_communicator_is_one_of_mpi4py():
    pytest.importorskip("mpi4py", reason="SKIP: mpi4py")
    from grape6py import Grape6
    from grape6py.errors import ArgumentError

    with pytest.raises(ArgumentError, match="communicator of mpi4py"):
        Grape6(comm=3)


@pytest.mark.parametrize("ranks", [1, 3, 5])
def test_partial_sums_of_a_program_of_its_own(ranks):
    (found,) = on_ranks.said(ranks, "partials")
    assert found["same"] == [True] * 3
    assert ranks == 1 or "the number of targets differs" in found["text"]
