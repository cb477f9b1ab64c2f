"""Random call sequences, valid and not, do what g6lib.h says: codes, forces, lists, NaN, bounds."""

import pytest

import capi
import fuzzing


def test_random_sequences_keep_the_contract():
    fuzz = capi.compile_c("fuzz", True, *map(str, fuzzing.PARTS))
    assert fuzzing.run(fuzz, fuzzing.SEED, 8_000) is None


@pytest.mark.full
def test_under_sanitizers_too(variants):
    assert fuzzing.run(fuzzing.program(variants), fuzzing.SEED, 3_000) is None
