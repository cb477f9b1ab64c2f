"""The way of rows to the ranks where they belong, and back: with threads in place of MPI."""

import numpy as np
import pytest

from grape6py.ranks.domains import Moves, Way
from thread_ranks import Crew

RANKS = 3


@pytest.fixture(scope="module")
def crew():
    return Crew(RANKS)


def mostly_own(rank, rng, n):
    return np.where(rng.random(n) < 0.8, rank, rng.integers(0, RANKS, n))


# How many rows each rank has, and to which ranks they belong.
CASES = {
    "most stay": ((50, 41, 60), mostly_own),
    "anywhere": ((50, 41, 60), lambda _, rng, n: rng.integers(0, RANKS, n)),
    "all to one": ((20, 30, 0), lambda *given: np.zeros(given[-1], int)),
    "none": ((7, 0, 9), lambda rank, _, n: np.full(n, rank)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", [Moves, Way])
def test_rows_come_where_they_belong_and_back(crew, case, kind):
    counts, owners = CASES[case]
    first = np.concatenate([[0], np.cumsum(counts)])
    rng = np.random.default_rng(4)
    owner = [owners(rank, rng, n) for rank, n in enumerate(counts)]

    def there_and_back(rank):
        rows = np.arange(first[rank], first[rank + 1])
        way = kind(crew.ranks[rank], owner[rank])
        came = way.there(rows)
        pairs = way.there(np.stack([rows, -rows], axis=1))
        assert np.array_equal(pairs[:, 0], came)
        assert np.array_equal(way.back(came), rows)
        return came, way.places() if kind is Moves else None

    found = crew.call(there_and_back)
    belongs = np.concatenate(owner)
    for rank, (came, _) in enumerate(found):
        assert np.array_equal(np.sort(came), np.flatnonzero(belongs == rank))
    if kind is Moves:
        for rank, (_, (ranks, places)) in enumerate(found):
            for row, (to, place) in enumerate(zip(ranks, places, strict=True)):
                assert found[to][0][place] == first[rank] + row


def test_what_stays_is_not_copied(crew):
    def stay(rank):
        rows = np.arange(5.0)
        return Moves(crew.ranks[rank], np.full(5, rank)).there(rows) is rows

    assert crew.call(stay) == [True] * RANKS


def test_an_error_in_one_thread_ends_all(crew):
    def fail(rank):
        if rank == 1:
            raise KeyError("one")
        return crew.ranks[rank].counts(rank)

    with pytest.raises(KeyError, match="one"):
        crew.call(fail)
    assert crew.call(lambda rank: crew.ranks[rank].counts(rank).tolist()) == [[0, 1, 2]] * RANKS
