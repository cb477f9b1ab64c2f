"""The backend cuda-tree, its kernels run on the CPU: the tests of cpu-tree, in processes of their
own, where a tree is built for any number of particles."""

import pytest

import capi
from cards import pytest_on

# Left out of the contract: what test_tree_backend_contract.py leaves out, modes that are not the
# card's tree's, and memory so short that the kernels' host has none.
FILES = {
    "test_tree_backend": "not few_particles and not names and not threads",
    "test_contract_neighbours": "test",
    "test_contract_self": "grape",
    "test_contract_memory": "grape",
    "test_contract_clusters": "not own_memory and not add_up",
    "test_faults_corners": "grape or not single and not double",
    "test_faults_scaling": "grape and not beyond_the_range and not massless and not underflows",
    "test_faults_output": "not out_of_memory_in_a_force_call",
}


@pytest.mark.parametrize("name", FILES)
def test_the_tests_of_the_tree_pass_on_a_card(card, name):
    chosen = f"({FILES[name]}) and not base and not avx512"
    text, outcomes = pytest_on(
        card, f"tests/{name}.py", "-k", chosen, GRAPE6_TEST_BACKEND="cuda-tree",
        GRAPE6_TEST_TREE="always", GRAPE6_TEST_THETA="0.5" if "backend" in name else "0.001",
    )  # fmt: skip
    wrong = {case: how for case, how in outcomes.items() if how not in ("PASSED", "SKIPPED")}
    assert outcomes, text[-3000:]
    assert not wrong, text[-8000:]
    assert "PASSED" in outcomes.values()


def test_a_tree_is_on_the_card_where_there_is_one(card):
    program = "print(call('g6x_open', 3, 3), text('g6x_backend', 3)[1], call('g6_close', 3))"
    found = capi.run_python(program, GRAPE6_TEST_CARD=str(card)).stdout
    assert found.split() == ["0", "cuda-tree", "stand-in", "for", "a", "graphics", "card", "0"]
