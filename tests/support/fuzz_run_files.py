"""Damaged files of a run, sealed again, so that readers come to what is in them: fuzz_formats.py.

An index or an output of a small run is changed, and the run read in every way. What comes is sound
bodies, or a SnapshotError that names a file of the run. Input `index` of a seed is
always the same: `made(seed, index, runs)`.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import h5py
import numpy as np

import fuzz_formats
from grape6py import Hermite, Leapfrog, archive, fields, plummer, read_snapshot
from grape6py.errors import Grape6Warning, SnapshotError
from grape6py.files.storage import atomic_files, output_file

SEED = 20261127
KILLED = 5  # seconds of the processor
SEAL = len(output_file.seal(b""))


def runs_in(folder):
    """Small runs: Hermite with units, Leapfrog in a field."""
    options = {"eps": 0.1, "backend": "cpu"}
    found = {}
    for name, cluster, about in (
        ("a", Hermite(*plummer(6, 1), **options), {"units": "50000.0 Msun 1.2 pc"}),
        ("b", Leapfrog(*plummer(7, 1), dt=1 / 8, field=fields.plummer(2.0, 1.0), **options), {}),
    ):
        found[name] = folder / f"{name}.h5"
        with archive.Writer(found[name]) as writer:
            for time_ in (0.0, 0.125, 0.25):
                cluster.evolve(time_)
                writer.save(cluster, about=about, component=np.arange(len(cluster)) % 3)
    return found


def made(seed, index, valid):
    """Input `index` of a seed: the name of a run, the file of it that is changed, its bytes."""
    rng = random.Random(f"{seed} run {index}")
    name = rng.choice(sorted(valid))
    outputs = sorted((valid[name].parent / name).glob("*.hdf5"))
    target = rng.choice([valid[name], outputs[-1], rng.choice(outputs)])
    data = target.read_bytes()[:-SEAL]
    changes = rng.choice([1, 1, 1, 2, 3])
    if rng.random() < 0.7:
        data = fuzz_formats.within(data, changes, _of_run, rng)
    else:
        for _ in range(changes):
            data = fuzz_formats._changed(data, rng, [data])
    return name, target, output_file.seal(data) if rng.random() < 0.95 else data


def _of_run(file, rng):
    """As fuzz_formats, and the attributes of the root, and links to other files."""
    kind = rng.random()
    if kind < 0.35:
        key = rng.choice(list(file.attrs))
        old = file.attrs.pop(key)
        if rng.random() < 0.8:
            words = ["", "{", "[1]", "plummer", "plummer,1", "nan", "Msun", "1 2 3", "{}" * 9]
            file.attrs[key] = rng.choice([*fuzz_formats._ODD, *words, old])
    elif kind < 0.45:
        names = []
        file.visit(names.append)
        name = rng.choice(names)
        del file[name]
        file[name] = rng.choice([h5py.ExternalLink("/dev/zero", "/a"), h5py.SoftLink("/index"),
                                 h5py.ExternalLink("../victim/fifo", "/a")])  # fmt: skip
    else:
        fuzz_formats._of_hdf5(file, rng)


def _sound(arrays):
    n = len(arrays[0])
    shapes = [array.shape for array in arrays] == [(n,), (n, 3), (n, 3)]
    return shapes and all(a.dtype == np.float64 and np.isfinite(a).all() for a in arrays)


def _history(path):
    for record in archive.history(path)[1]:
        assert np.isfinite(record["time"]), "time"


def _bodies(path):
    found = read_snapshot(path)
    assert _sound(found), "bodies"
    assert found.ids is None or found.ids.shape == found.mass.shape, "ids"
    assert _sound(archive.read_particles(path, 0)), "bodies"
    assert found.component is None or found.component.shape == found.mass.shape, "components"


def _load(path):
    with archive.restore(path, threads=1) as cluster:
        assert np.isfinite(cluster.time), "time"
        assert _sound(cluster.particles()), "bodies"
        cluster.save(path)


def _read_all(path):
    """Each way to read a run: a SnapshotError that names it is as good as sound bodies."""
    for way in _history, _bodies, _load:
        try:
            way(path)
        except (SnapshotError, FileNotFoundError) as error:
            if path.stem not in str(error):
                return f"{way.__name__}: no file is named: {error}"
        except Exception as error:
            if "a function, which no file has: give it as field=" not in str(error):
                return f"{way.__name__}: {''.join(traceback.format_exception(error)[-2:])}"
    return None


def attempt(valid, name, target, data):
    """What went wrong, or None. The run is as it was before, after that."""
    folder, began = valid[name].parent, time.process_time()
    kept = {path: path.read_bytes() for path in [valid[name], *(folder / name).glob("*.hdf5")]}
    before = {path.name for path in folder.iterdir()}
    target.write_bytes(data)
    try:
        with warnings.catch_warnings(action="error"):
            warnings.simplefilter("ignore", Grape6Warning)
            wrong = _read_all(valid[name])
        if {path.name for path in folder.iterdir()} != before or (
            (folder / "victim/precious").read_text() != "precious"
        ):
            wrong = wrong or "a file outside was changed"
    finally:
        shutil.rmtree(folder / name)
        (folder / name).mkdir()
        for path, content in kept.items():
            path.write_bytes(content)
    took = time.process_time() - began
    return wrong or (f"{took:.1f} s of the processor" if took > 3 else None)


def _child(seed, first, count, progress):
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="grape6-fuzz-") as name:
        folder = Path(name)
        atomic_files.os.fsync = lambda _: None
        valid = runs_in(folder)
        (folder / "victim").mkdir()
        (folder / "victim" / "precious").write_text("precious")
        os.mkfifo(folder / "victim" / "fifo")
        for run in valid:
            wrong = attempt(valid, run, valid[run], valid[run].read_bytes())
            assert wrong is None, wrong
        fuzz_formats.limit_memory()
        for index in fuzz_formats.noted(progress, first, count):
            of = made(int(seed), index, valid)
            signal.setitimer(signal.ITIMER_PROF, KILLED)
            signal.setitimer(signal.ITIMER_REAL, 20 * KILLED)  # of a pipe it waits for
            if wrong := attempt(valid, *of):
                print(repr((index, str(of[1].relative_to(folder)), wrong)), flush=True)
            signal.setitimer(signal.ITIMER_PROF, 0)


def run(count, seed=SEED):
    """What went wrong: (index, file, what) for each."""
    return fuzz_formats.watched(__file__, [seed], count, of_hdf5=True)


if __name__ == "__main__":
    _child(*sys.argv[2:])
