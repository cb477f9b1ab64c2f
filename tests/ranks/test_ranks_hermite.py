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


ALL, LAST = "ArgumentError: ", "RankError: on rank 2 of 3: "
OTHER_CALLS = ALL + "the ranks make different calls: "
WRONG = {  # what rank 0 and rank 2 say
    "folder": (".*no/folder", "RankError: on rank 0 of 3: "),
    "no file": (LAST + "FileNotFoundError", "FileNotFoundError"),
    "bodies": (ALL + "the bodies differ between the ranks; this is rank 0", ALL + ".* rank 2"),
    "number": (ALL + "the bodies differ",) * 2,
    "eta": (ALL + "the settings differ",) * 2,
    "no eta": (LAST + "ArgumentError: eta = -1", "ArgumentError: eta = -1"),
    "dt_max": (ALL + "the settings differ",) * 2,
    "backend": (LAST + "ArgumentError: backend", "ArgumentError: backend = 'nothing'"),
    "t": (ALL + "t differs between the ranks: 0.01.* on rank 0", ALL + "t differs.* 0.02"),
    "t past": (LAST + "ArgumentError: t = 0.0", "ArgumentError: t = 0.0 is before"),
    "t no number": (LAST + "ArgumentError: t = nan", "ArgumentError: t = nan"),
    "every": (ALL + "every differs", ALL + "every differs"),
    "no every": (ALL + "every differs.* 0.001", ALL + "every differs between the ranks: None"),
    "events": (ALL + "events differ",) * 2,
    "event": (ALL + "events differ",) * 2,
    "kick of one": (OTHER_CALLS, OTHER_CALLS + ".*kick()"),
    "kick or step": (OTHER_CALLS, OTHER_CALLS + ".*kick()"),
    "kick": (ALL + "the bodies differ",) * 2,
    "kick of other": (ALL + "the bodies differ",) * 2,
    "kick no number": (LAST + "NotFiniteError", "NotFiniteError"),
    "add": (LAST + "ArgumentError: vel", "ArgumentError: vel has shape"),
    "remove": (LAST + "AddressError: no body", "AddressError: no body has the id 9999"),
    "merge": (LAST + "ArgumentError: merge", "ArgumentError: merge needs two"),
    "set_mass": (ALL + "the bodies differ",) * 2,
    "callback": (LAST + "KeyError: 'a callback'", "KeyError: 'a callback'"),
    "last callback": (LAST + "KeyError: 'the last one'", "KeyError: 'the last one'"),
    "field": (LAST + "ValueError: a field of one", "ValueError: a field of one rank fails"),
}


def test_what_fails_on_one_rank_fails_on_all_and_nothing_is_lost(tmp_path):
    found = {line["call"]: line["texts"] for line in on_ranks.said(3, "broken", tmp_path)}
    assert list(found) == list(WRONG)
    for name, (first, last) in WRONG.items():
        texts = found[name]
        assert on_ranks.matches(first, texts[0]), (name, texts)
        assert on_ranks.matches(last, texts[2]), (name, texts)
        assert texts[1].startswith(("RankError: on rank", "ArgumentError: ")), (name, texts)
