"""Any damage of files of bodies or of a run is sound bodies or a typed error, at once."""

import os

import pytest

import fuzz_formats
import fuzz_run_files

COUNT = int(os.environ.get("GRAPE6_TEST_INPUTS", "600"))


@pytest.mark.parametrize(("name", "count"), [
    ("gadget-hdf5", 60), ("nemo", 60), ("text", 60),
    *(pytest.param(name, COUNT, marks=pytest.mark.full) for name in fuzz_formats.FORMATS),
])  # fmt: skip
def test_damaged_files_are_sound_snapshots_or_typed_errors(name, count):
    assert fuzz_formats.run(name, count) == []


@pytest.mark.full
def test_damaged_files_of_a_run_are_sound_bodies_or_typed_errors():
    assert fuzz_run_files.run(COUNT // 3) == []
