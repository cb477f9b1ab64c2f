"""Mistakes on purpose: some test of a promise fails when it is broken.

support/mutants.py has the mistakes, variants["counted"] is the library that makes the chosen one.
Each is the habit of an earlier library, or a short cut that most clients do not notice. The random
calls of test_fuzz.py notice all but those of BY_OTHERS."""

import re
import sys

import pytest

import capi
import fuzzing
import mutants
from grape6py import paths
from tools import started

INSERTED = " ".join(text for patches in mutants.PATCHES.values() for _, text in patches)
MISTAKES = sorted({*re.findall(r"\bMUTANT\((\w+)\)", INSERTED)})
BY_OTHERS = {
    "lists_truncated": "test_contract_neighbours.py::test_row24_all_lists_are_those_of_each",
    "open_by_exported_name":
        "test_contract_symbols.py::test_the_host_may_define_one_spelling_itself",
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("mistake", ["none", *MISTAKES])
def test_each_mistake_is_noticed_and_without_one_nothing_is(variants, mistake):
    counted = variants["counted"]
    command = [counted.program("fuzz", *fuzzing.PARTS), fuzzing.SEED, 0, 1000]
    if mistake in BY_OTHERS:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k",
                   "not cuda and not tree", f"tests/api/{BY_OTHERS[mistake]}"]  # fmt: skip
    env = {"GRAPE6_TEST_LIBRARY": str(counted.library), "GRAPE6_TEST_MISTAKE": mistake,
           "GRAPE6_LOG": "none"}  # fmt: skip
    done = started(command, cwd=capi.ROOT, env=capi.clean_environment(env), timeout=300)
    assert done.returncode == (mistake != "none"), done.stdout + done.stderr


def test_the_product_has_no_hooks_for_tests():
    for path in [p for p in paths.PREFIX.rglob("*") if p.is_file() and p.suffix != ".pyc"]:
        assert b"GRAPE6_TEST" not in path.read_bytes(), path
