"""Any damage of a run's files is sound bodies or a SnapshotError that names them."""

import fuzz_formats
import fuzz_run_files

COUNT = 300  # `python tests/support/fuzz_run_files.py 100000` tries more


def test_damaged_files_of_a_run_are_sound_bodies_or_typed_errors():
    found = fuzz_run_files.run(COUNT)
    assert [one for one in found if not one[2].startswith(fuzz_formats.WARNED)] == []
