"""libFuzzer on grape6py.snapshot, by atheris: any bytes give Particles or a SnapshotError.

    python tests/support/fuzz_snapshot.py [libFuzzer's options] corpus

Particles have finite numbers, as many of each, and are the same bits when written and read back.
"""

import io
import sys

import atheris

with atheris.instrument_imports(include=["grape6py"]):
    from grape6py import read_snapshot, write_snapshot
    from grape6py.errors import SnapshotError

import numpy as np


def one_input(data):
    try:
        found = read_snapshot(io.BytesIO(data))
    except SnapshotError:
        return
    n = len(found.mass)
    assert (found.mass.shape, found.pos.shape, found.vel.shape) == ((n,), (n, 3), (n, 3))
    assert all(np.isfinite(array).all() for array in found)
    file = io.StringIO()
    write_snapshot(file, *found)
    file.seek(0)
    again = read_snapshot(file)
    assert [a.tobytes() for a in again] == [a.tobytes() for a in found]


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
