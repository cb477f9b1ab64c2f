"""Mistakes on purpose: the tests that protect a promise fail when it is broken.

support/mutants.py has the mistakes, variants["counted"] is the library that makes the chosen one.
Each is the habit of an earlier library, or a short cut that most clients do not notice."""

import json
import re
import sys

import pytest

import capi
import mutants
from grape6py import paths
from tools import run

NOTICED_BY = {
    "predict_in_set_ti": """
        test_contract_predictor.py::"""
    "test_2_2_3_12_ti_is_zero_at_first_and_holds_for_particles_before_and_after_set_ti",
    "velocity_power": """
        test_contract_predictor.py::test_2_1_predictor_follows_the_formula_to_the_snap
        test_contract_predictor.py::test_2_1_forces_use_predicted_positions_and_velocities""",
    "self_by_distance": """
        test_contract_self.py::test_row10_3_5_3_36_own_index_is_excluded_at_a_nonzero_distance
        test_contract_self.py::test_row09_a_distinct_particle_at_the_same_place_adds_nothing""",
    "self_by_address": """
        test_contract_self.py::test_row10_3_5_3_36_own_index_is_excluded_at_a_nonzero_distance
        test_contract_self.py::test_those_of_another_index_pull
        test_contract_neighbours.py::test_2_7_ties_go_to_the_lowest_address""",
    "lists_empty": """
        test_contract_neighbours.py::test_3_38_2_6_lists_are_those_of_brute_force
        test_contract_neighbours.py::"""
    "test_2_6_lists_follow_either_lasthalf_and_stay_until_the_next_firsthalf",
    "lists_truncated": """
        test_contract_neighbours.py::test_row24_lists_of_any_length_fit""",
    "nj_ignored": """
        test_contract_memory.py::test_3_11_3_37_only_addresses_below_nj_pull""",
    "stale_outputs": """
        test_faults_codes.py::test_row18_lasthalf_without_firsthalf
        test_faults_codes.py::test_row20_lasthalf_with_other_counts_gives_nan
        test_faults_codes.py::test_row06_a_j_particle_with_nan_spoils_forces_until_rewritten
        test_faults_output.py::"""
    "test_row21_calls_before_the_first_open_and_after_the_last_close_are_refused",
    "open_by_exported_name": """
        test_contract_symbols.py::test_the_host_may_define_one_spelling_itself""",
}

# Each in a child of a process that has imported all: the library reads its variables once. Plain
# assertions: where CI is set, pytest would explain how two lists of 500 lists differ, for minutes.
RUN = """
import json, os, sys
sys.path[:0] = ["tests/support", "packaging"]
import pytest, capi, backends, embedding, fake_gpu, grape5, legacy, octrees, on_gpu, packages, runs
from grape6py import Grape6
for mistake, tests in json.loads(sys.argv[1]).items():
    print(f"\\n== {mistake}", flush=True)
    if not os.fork():
        os.environ["GRAPE6_TEST_MISTAKE"] = mistake
        options = ["-q", "-rA", "--assert=plain", "-p", "no:cacheprovider", "-k",
                   "not avx and not double and not single and not cuda and not tree"]
        code = pytest.main([*options, *(f"tests/api/{test}" for test in tests)])
        sys.stdout.flush()
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.wait()[1]) in (0, 1)
"""


@pytest.fixture(scope="module")
def outcomes(variants):
    """Of tests with a library that makes a mistake: {mistake: {test: outcomes of its cases}}."""
    jobs = {mistake: tests.split() for mistake, tests in NOTICED_BY.items()}
    jobs["none"] = sorted(set(" ".join(NOTICED_BY.values()).split()))
    env = capi.clean_environment({"GRAPE6_TEST_LIBRARY": str(variants["counted"].library)})
    command = [sys.executable, "-c", RUN, json.dumps(jobs)]
    done = run(command, cwd=capi.ROOT, env=env, timeout=900)
    found = {}
    for text in done.stdout.split("\n== ")[1:]:
        mistake = text.partition("\n")[0]
        lines = re.findall(r"^([A-Z]+) tests/api/([^[ \n]+)", text, re.MULTILINE)
        found[mistake] = {t: {what for what, name in lines if name == t} for t in jobs[mistake]}
    return found


@pytest.mark.full
def test_each_mistake_is_noticed_and_without_one_the_same_tests_pass(outcomes):
    missed = [(mistake, test) for mistake in NOTICED_BY
              for test, how in outcomes[mistake].items() if "FAILED" not in how]  # fmt: skip
    assert missed == []
    assert all(how == {"PASSED"} for how in outcomes["none"].values())


def test_every_mistake_of_the_library_is_here():
    inserted = " ".join(text for patches in mutants.PATCHES.values() for _, text in patches)
    assert set(re.findall(r"\bMUTANT\((\w+)\)", inserted)) == set(NOTICED_BY)


def test_the_product_has_no_hooks_for_tests():
    for path in [p for p in paths.PREFIX.rglob("*") if p.is_file() and p.suffix != ".pyc"]:
        assert b"GRAPE6_TEST" not in path.read_bytes(), path
