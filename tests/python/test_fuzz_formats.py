"""Any damage of a file of bodies is a sound snapshot or a typed error, at once: fuzz_formats.py."""

import pytest

import fuzz_formats

# HDF5 needs some milliseconds a file, and `python tests/support/fuzz_formats.py 20000` tries more.
COUNTS = {name: 300 if name in fuzz_formats.HDF5 else 1000 for name in fuzz_formats.FORMATS}


@pytest.mark.parametrize("name", COUNTS)
def test_damaged_files_are_sound_snapshots_or_typed_errors(name):
    found = fuzz_formats.run(name, COUNTS[name])
    failures = [one for one in found if not one[2].startswith(fuzz_formats.WARNED)]
    assert not failures, "\n".join(fuzz_formats.told(name, failures, fuzz_formats.SEED))
