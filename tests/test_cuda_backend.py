"""The CUDA backend, its kernels run on the CPU: accuracy, equal bits, what the card leaves to the
host, and faults. The tests are those of on_card_*.py, which need a process with that backend.
"""

import pytest

import capi
from cards import assert_passed, names_of, outcomes_on

FILES = sorted(capi.TESTS.glob("on_card_*.py"))


@pytest.fixture(scope="module")
def outcomes(card):
    return outcomes_on(card, FILES)


@pytest.mark.parametrize("name", names_of(FILES))
def test_on_a_card(outcomes, name):
    assert_passed(outcomes, name)
