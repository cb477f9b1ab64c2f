"""The CUDA backend, its kernels run on the CPU: accuracy, equal bits, what the card leaves to the
host, and faults. The tests are those of on_card_*.py, which need a process with that backend.
"""

import re

import pytest

import capi
from cards import pytest_on

FILES = sorted(capi.TESTS.glob("on_card_*.py"))
TESTS = [name for path in FILES for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)]


@pytest.fixture(scope="module")
def outcomes(card):
    """{test: {case: outcome}, "text": what pytest printed}"""
    found = {"text": ""}
    for backend, chosen in (("cuda", "not test_auto"), ("auto", "test_auto")):
        text, cases = pytest_on(card, *FILES, "-k", chosen, GRAPE6_TEST_BACKEND=backend)
        found["text"] += text
        for name, outcome in cases.items():
            test = re.search(r"::(\w+)", name)[1]
            found.setdefault(test, {})[name] = outcome
    return found


@pytest.mark.parametrize("name", TESTS)
def test_on_a_card(outcomes, name):
    assert name in outcomes, outcomes["text"][-5000:]
    wrong = {case: how for case, how in outcomes[name].items() if how != "PASSED"}
    assert not wrong, outcomes["text"][-10000:]
