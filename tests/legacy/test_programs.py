"""benchmarks/programs.py on its small cases: every program runs with two builds, and is right."""

import json
import subprocess
import sys

import pytest

import capi
import tools
from grape6py import paths

HERE = capi.ROOT / "benchmarks"
BUILDS = ("one", "two")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """What it writes, for this build under two names."""
    tools.need("gcc")
    out = tmp_path_factory.mktemp("programs")
    tree = paths.LIBRARY.parents[2]
    builds = [f"{name}={tree}" for name in BUILDS]
    subprocess.run(
        [sys.executable, HERE / "programs.py", "programs", "--builds", *builds, "--backends", "cpu",
         "--quick", "--n", "0", "1024", "2048", "--out", out, "--name", "here"],
        check=True, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    return json.loads((out / "programs-here.json").read_text())


def test_every_program_runs_with_every_build(result):
    found = {(f["what"], f["n"], f["group"], f["library"]) for f in result["figures"]}
    assert not [f for f in result["figures"] if "failed" in f]
    assert {f["program"] for f in result["figures"]} == {
        "hermite", "binaries", "treecode", "treecode_g5", "treecode_walks"
    }  # fmt: skip
    one, two = ({row[:3] for row in found if row[3] == name} for name in BUILDS)
    assert one == two
    assert len(one) == 2 + 5 + 4 + 7


def test_energies_are_kept_and_are_those_of_the_first_build(result):
    assert len([f for f in result["figures"] if "off" in f]) >= 20
    for f in result["figures"]:
        assert f["error"] <= 1e-4
        assert f.get("off", 0) <= 1e-8
