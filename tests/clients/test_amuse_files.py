"""Files that AMUSE's own io writes are read, it reads ours, and its quantities are understood."""

import json
import os

import numpy as np
import pytest

import amuse_environment
import capi
from grape6py import Units, read_snapshot, write_snapshot
from tools import run

MSUN, PC = 1.98892e30, 3.08567758128e16  # AMUSE's, in kg and m
MASS, LENGTH = 1000 * MSUN, 2 * PC  # 1 of the N-body units of amuse_files.py
SPEED = np.sqrt(6.67428e-11 * MASS / LENGTH)  # with the G of AMUSE
pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def amuse(folder):
    """Calls amuse_files.py in the folder, which this returns."""
    python = amuse_environment.environment() / "bin/python"
    variables = {**amuse_environment.ACTIVATED, "PYTHONPATH": str(capi.ROOT)}

    def call(what):
        program = capi.TESTS / "clients/amuse_files.py"
        run([python, program, what], cwd=folder, env=variables, timeout=120)
        return folder

    return call


def bodies():
    """Those of amuse_files.py."""
    rng = np.random.default_rng(2)
    n = 20
    return rng.random(n), rng.standard_normal((n, 3)), rng.standard_normal((n, 3))


def test_what_amuse_writes_is_read(amuse):
    folder = amuse("write")
    expected = bodies()
    names = [name for name in sorted(os.listdir(folder)) if name.startswith(("a.", "nbody", "si"))]
    assert len(names) == 7
    for name in names:
        found = read_snapshot(folder / name)
        if name.startswith("si"):
            assert found.ids.tolist() == np.load(folder / "keys.npy").tolist()
            assert found.time * found.units.value("time", "Myr") == pytest.approx(3, rel=1e-4)
            cgs = [found.units.in_cgs(kind) for kind in ("mass", "length", "velocity")]
            sizes = np.array([1e3 * MASS, 1e2 * LENGTH, 1e2 * SPEED]) / cgs
        else:
            assert found.units is None
            sizes = [1.0] * 3
        for array, other, size in zip(found, expected, sizes, strict=True):
            assert np.allclose(array, other * size, rtol=1e-12 if size == 1 else 1e-6), name
            assert size != 1 or name.endswith((".csv", ".dyn")) or np.array_equal(array, other)


def test_amuse_reads_what_is_written(amuse, folder):
    units, expected = Units(f"{MASS!r} kg", f"{LENGTH!r} m"), bodies()
    for name in ("ours.amuse", "ours.dyn", "ours.nemo"):
        more = {} if name.endswith("nemo") else {"units": units}
        write_snapshot(folder / name, *expected, ids=np.arange(5, 25), **more)
    found = json.loads((amuse("read") / "answer.json").read_text())
    assert len(found) == 3
    for name, numbers in found.items():
        for key, other, size in zip(("mass", "pos", "vel"), expected, (MASS, LENGTH, SPEED),
                                    strict=True):  # fmt: skip
            # A dyn file has solar units, and its reader G, which in AMUSE 2024 are others by 3e-4.
            rtol = 1e-3 if name.endswith("dyn") else 1e-5
            assert np.allclose(numbers[key], other * size, rtol=rtol), (name, key)
    assert found["ours.amuse"]["key"] == list(range(5, 25))
