"""Any damage of files of bodies or of a run is sound bodies or a typed error, at once."""

import pytest

import fuzz_formats
import fuzz_run_files

COUNT = 1000  # `python tests/support/fuzz_formats.py 100000` tries more


def check(name, found):
    assert not fuzz_formats.failures(found), fuzz_formats.told(name, found)


@pytest.mark.parametrize("name", fuzz_formats.FORMATS)
def test_damaged_files_are_sound_snapshots_or_typed_errors(name):
    check(name, fuzz_formats.run(name, COUNT // 5))


@pytest.mark.full
@pytest.mark.parametrize("name", fuzz_formats.FORMATS)
def test_many_damaged_files_are_sound_snapshots_or_typed_errors(name):
    check(name, fuzz_formats.run(name, COUNT))


@pytest.mark.full
def test_damaged_files_of_a_run_are_sound_bodies_or_typed_errors():
    check("runs", fuzz_run_files.run(COUNT // 4))
