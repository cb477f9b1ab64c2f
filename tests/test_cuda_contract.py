"""The contract holds on a graphics card, too: its tests again, with the kernels run on the CPU.

Each file of tests goes through a process of its own whose sessions are opened with the CUDA backend
on the card of tests/c/card.h. Instruction sets do not matter there: one is enough.
"""

import pytest

from cards import pytest_on

ONE_SET = "not base and not avx2"
# What names the CPU's backend, counts its allocations or takes long without a card.
FILES = {
    "test_contract_neighbours": "",
    "test_contract_self": "",
    "test_contract_predictor": "",
    "test_contract_memory": "not 200000",
    "test_contract_partial": "",
    "test_contract_calls": "",
    "test_contract_extras": "",
    "test_contract_pointers": "not null_pointer",  # is told before any backend is asked
    "test_faults_codes": "grape or not single and not double",
    "test_faults_corners": "",
    "test_faults_scaling": "not (multiples_of_forty and (single or double))",
    "test_faults_output": "not out_of_memory_in_a_force_call",
    "test_lists_at_rest": "not longer and not threads",
    "test_bits": """callers_blocks and not 1 or few_rows_alone or order_of_writing or detour
        or order_of_the_i or company or unset_slots or wide_ranges_keep""",
}


@pytest.mark.parametrize("name", FILES)
def test_the_contract_holds_on_a_card(card, name):
    chosen = f"({ONE_SET}) and ({' '.join(FILES[name].split()) or 'test'})"
    text, outcomes = pytest_on(card, f"tests/{name}.py", "-k", chosen)
    assert outcomes, text
    assert set(outcomes.values()) == {"PASSED"}, text[-10000:]
