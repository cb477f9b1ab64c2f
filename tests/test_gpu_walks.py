"""Many walks on a true card: pytest -m gpu. Skipped where there is none.

The tests are those of the CPU, and walks_on_card.py, in processes of their own with that backend;
on a stand-in test_cuda_walks.py runs them.
"""

import pytest

from cards import pytest_on

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", ["walks_on_card", "test_walks", "test_walks_faults"])
def test_the_walks_are_right_on_a_true_card(name):
    text, outcomes = pytest_on(None, f"tests/{name}.py", "-k", "not base and not avx512")
    assert outcomes, text
    assert set(outcomes.values()) == {"PASSED"}, text[-10000:]
