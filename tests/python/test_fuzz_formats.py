"""Any damage of files of bodies or of a run is sound bodies or a typed error, at once."""

import os
import re

import pytest

import fuzz_formats
import fuzz_run_files
import tools
from fuzzing import SEED, snapshot_corpus, snapshot_program
from tools import run

COUNT = int(os.environ.get("GRAPE6_TEST_INPUTS", "250"))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [
    ("gadget-hdf5", 60), ("text", 60),
    *(pytest.param(name, COUNT, marks=pytest.mark.full) for name in fuzz_formats.FORMATS),
])  # fmt: skip
def test_damaged_files_are_sound_snapshots_or_typed_errors(name, count):
    assert fuzz_formats.run(name, count) == []


@pytest.mark.full
def test_damaged_files_of_a_run_are_sound_bodies_or_typed_errors():
    assert fuzz_run_files.run(COUNT // 3) == []


@pytest.mark.slow
def test_any_bytes_are_bodies_or_a_reason_in_the_example_programs(tmp_path):
    """By libFuzzer, which finds nothing, and reaches more of the reader than the corpus does."""
    tools.need("clang")
    options = ["-runs=40000", f"-seed={SEED}", "-max_len=400", f"-artifact_prefix={tmp_path}/"]
    command = [snapshot_program(tmp_path), *options, snapshot_corpus(tmp_path)]
    done = run(command, timeout=120, errors="replace")
    reached = [int(n) for n in re.findall(r"cov: (\d+)", done.stderr)]
    assert "Done 40000" in done.stderr
    assert reached[-1] > reached[0]
