"""Random call sequences, valid and not, do what g6lib.h says: codes, forces, lists, NaN, bounds."""

import pytest

import fuzzing


@pytest.fixture(scope="module")
def fuzz(variants):
    return fuzzing.program(variants)


def test_fifty_thousand_random_sequences_keep_the_contract(fuzz):
    assert fuzzing.run(fuzz, fuzzing.SEED, 50_000) is None
