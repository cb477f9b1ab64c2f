"""Times reading of files of bodies: lines of JSON.

    python benchmarks/formats.py [--n 10000000] [--folder /tmp] [--formats nemo tipsy] [--times 3]

For each format a file is written, with the time that this takes. Beside the time of `read_snapshot`
stand that of reading the bytes alone, from memory (`warm`) and, after their pages are dropped, from
the disk (`cold`), for HDF5 that of h5py's own reading of the same arrays, and for text NumPy's of
the same columns. Peak memory is that of a process that does nothing else, over what it has before,
in units of the bodies' 56 bytes (64 with ids).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from grape6py import formats, read_snapshot, write_snapshot

PIECE = 1 << 22


def bodies(n):
    rng = np.random.default_rng(1)
    return np.full(n, 1 / n), rng.standard_normal((n, 3)), rng.standard_normal((n, 3))


def drop(path):
    """Let the next reader wait for the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def bytes_alone(path):
    buffer = bytearray(PIECE)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def by_library(path, name):
    """What the library under a reader takes for the same arrays, or None."""
    if name in ("gadget-hdf5", "amuse"):
        import h5py

        def read():
            with h5py.File(path) as file:
                found = []
                file.visititems(
                    lambda _, x: found.append(x[()]) if isinstance(x, h5py.Dataset) else None
                )

        return read
    if name in ("text", "csv"):
        options = {"delimiter": ",", "skiprows": 1} if name == "csv" else {}
        return lambda: np.loadtxt(path, **options)
    return None


def seconds(call, times, before=lambda: None):
    took = []
    for _ in range(times):
        before()
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def peak(path):
    """Bytes that one reading takes, in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--peak", path], check=True,
                          capture_output=True, text=True)  # fmt: skip
    return int(done.stdout)


def print_peak(path):
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins here
    found = read_snapshot(path)
    print(resident("VmHWM") - before)
    del found


def resident(what):
    """Bytes of memory of this process, as its status has them."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith(what))
    return 1024 * int(line.split()[1])


def measured(name, given, folder, times):
    format_ = formats.FORMATS[name]
    path = str(Path(folder) / f"bodies{format_.endings[0]}")
    n = len(given[0])
    more = {"ids": np.arange(n)} if "ids" in format_.keeps.split() else {}
    began = time.perf_counter()
    write_snapshot(path, *given, **more)
    wrote = time.perf_counter() - began
    bytes_alone(path)
    found = {"format": name, "n": n, "bytes": os.path.getsize(path), "write": wrote}
    found["warm"] = seconds(lambda: bytes_alone(path), times)
    found["read"] = seconds(lambda: read_snapshot(path), times)
    found["cold"] = seconds(lambda: bytes_alone(path), times, lambda: drop(path))
    found["read_cold"] = seconds(lambda: read_snapshot(path), times, lambda: drop(path))
    library = by_library(path, name)
    if library:
        found["library"] = seconds(library, times)
    found["peak"] = peak(path) / (n * (64 if more else 56))
    os.unlink(path)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=10**7)
    parser.add_argument("--folder", default="/tmp")
    parser.add_argument("--formats", nargs="*", default=list(formats.FORMATS))
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--peak")
    options = parser.parse_args()
    if options.peak:
        print_peak(options.peak)
        return
    given = bodies(options.n)
    for name in options.formats:
        print(json.dumps(measured(name, given, options.folder, options.times)), flush=True)


if __name__ == "__main__":
    main()
