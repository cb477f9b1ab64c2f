"""thesis_programs.py with a script in place of kira: its result grows, and says what failed."""

import json
import subprocess
import sys

import pytest

import capi

KIRA = """#!/bin/sh
echo "$2 $4" >> {folder}/log
case "$2" in *-1024-*) echo too many >&2; exit 3;; esac
echo "Energies: -0.5 0.25 -0.25  de = 0" >&2
echo "block steps = 1.20e+02  total steps = 4.8e+03  steps/block = 40" >&2
echo "Energies: -0.5 0.25 -0.3125  de = 1" >&2
echo "Total CPU time for this segment = 0.5" >&2
"""


@pytest.fixture
def measure(tmp_path):
    """Runs the script; returns its figures, and how often kira was started."""
    for name, text in (("kira", KIRA), ("makeplummer", "#!/bin/sh\necho sphere\n")):
        (tmp_path / name).write_text(text.format(folder=tmp_path))
        (tmp_path / name).chmod(0o755)

    def measure(*words):
        subprocess.run(
            [sys.executable, capi.ROOT / "benchmarks/thesis_programs.py", "kira", "--name", "here",
             "--programs", tmp_path, "--out", tmp_path, *map(str, words)],
            check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        log = tmp_path / "log"
        figures = json.loads((tmp_path / "thesis-kira-here.json").read_text())["figures"]
        return figures, len(log.read_text().splitlines()) if log.exists() else 0

    return measure


def test_a_result_grows_by_what_it_has_not(measure):
    first, starts = measure("--largest", 256, "--seeds", 1)
    assert len(first) == starts == 6  # three accuracies, two softenings
    assert {(f["error"], f["blocks"], f["steps"]) for f in first} == {(-0.25, 120.0, 4800.0)}
    more, starts = measure("--largest", 512, "--seeds", 1, 2)
    assert more[:6] == first
    assert len(more) == starts == 24
    assert {(f["n"], f["seed"]) for f in more} == {(256, 1), (256, 2), (512, 1), (512, 2)}


def test_what_failed_is_told_and_nothing_larger_begun(measure):
    figures, starts = measure("--smallest", 1024, "--largest", 4096, "--seeds", 1, 2)
    assert len(figures) == starts == 8  # not the second sphere
    assert {f["failed"] for f in figures} == {"status 3: too many"}
    assert measure("--smallest", 1024, "--largest", 4096) == (figures, starts)
