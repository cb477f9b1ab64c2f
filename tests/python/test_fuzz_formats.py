"""Any damage of a file of bodies is a sound snapshot or a typed error, at once: fuzz_formats.py."""

import pytest

import fuzz_formats

COUNT = 1000  # `python tests/support/fuzz_formats.py 100000` tries more


@pytest.mark.parametrize("name", fuzz_formats.FORMATS)
def test_damaged_files_are_sound_snapshots_or_typed_errors(name):
    found = fuzz_formats.run(name, COUNT)
    failures = [one for one in found if not one[2].startswith(fuzz_formats.WARNED)]
    assert not failures, "\n".join(fuzz_formats.told(name, failures, fuzz_formats.SEED))
