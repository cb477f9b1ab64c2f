"""Any damage of files of bodies or of a run is sound bodies or a typed error, at once."""

import os
import re
import subprocess
import sys

import pytest

import capi
import fuzz_formats
import fuzz_run_files
import tools
from fuzzing import SEED, snapshot_corpus, snapshot_program

COUNT = int(os.environ.get("GRAPE6_TEST_INPUTS", "250"))


@pytest.mark.parametrize(("name", "count"), [
    ("gadget-hdf5", 60), ("text", 60),
    *(pytest.param(name, COUNT, marks=pytest.mark.full) for name in fuzz_formats.FORMATS),
])  # fmt: skip
def test_damaged_files_are_sound_snapshots_or_typed_errors(name, count):
    assert fuzz_formats.run(name, count) == []


@pytest.mark.full
def test_damaged_files_of_a_run_are_sound_bodies_or_typed_errors():
    assert fuzz_run_files.run(COUNT // 3) == []


def fuzz(command, runs, folder):
    """Runs libFuzzer; it must find nothing, and reach more of the reader than the corpus does."""
    options = [f"-runs={runs}", f"-seed={SEED}", "-max_len=400", f"-artifact_prefix={folder}/"]
    corpus = snapshot_corpus(folder)
    done = subprocess.run([*command, *options, corpus], check=False, timeout=120,
                          capture_output=True, text=True, errors="replace")  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    reached = [int(n) for n in re.findall(r"cov: (\d+)", done.stderr)]
    assert f"Done {runs}" in done.stderr
    assert reached[-1] > reached[0]


@pytest.mark.full
def test_any_bytes_are_particles_or_a_snapshot_error(tmp_path):
    pytest.importorskip("atheris", reason="SKIP: atheris not found: pip install '.[test]'")
    fuzz([sys.executable, capi.SUPPORT / "fuzz_snapshot.py"], 4000, tmp_path)


def test_any_bytes_are_bodies_or_a_reason_in_the_example_programs(tmp_path):
    tools.need("clang")
    fuzz([snapshot_program(tmp_path)], 40000, tmp_path)
