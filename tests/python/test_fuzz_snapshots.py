"""Any bytes are a snapshot or are refused: libFuzzer on both readers, from valid files."""

import re
import subprocess
import sys

import pytest

import capi
import tools
from fuzzing import SEED, snapshot_corpus, snapshot_program


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


def test_any_bytes_are_particles_or_a_snapshot_error(tmp_path):
    pytest.importorskip("atheris", reason="SKIP: atheris not found: pip install '.[test]'")
    fuzz([sys.executable, capi.SUPPORT / "fuzz_snapshot.py"], 4000, tmp_path)


def test_any_bytes_are_bodies_or_a_reason_in_the_example_programs(tmp_path):
    tools.need("clang")
    fuzz([snapshot_program(tmp_path)], 40000, tmp_path)
