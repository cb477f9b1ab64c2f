"""Damaged files of each format: what is read is a sound snapshot, or is refused by a typed error.

Each input is made out of valid files by random changes, and read with the format left open and with
it named. Whatever else comes is a failure: another exception, a number that is none, shapes that do
not fit, two seconds of the processor, 512 MiB of memory, the end of the process.

Each format has a process of its own, whose memory and time are limited; input `index` of a seed is
always the same: `python -c "import fuzz_formats as f; f.made(format, seed, index)"`."""

import contextlib
import io
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import h5py
import numpy as np

import hand_made
import tools
from grape6py import Units, plummer, read_snapshot, write_snapshot
from grape6py.errors import ArgumentError, SnapshotError
from grape6py.files.formats import FORMATS

SEED = 20261126
SLOW = 2.0  # seconds of the processor
KILLED = 3.0  # seconds after which an input that goes on is the end of its process
MEMORY = 512 << 20  # bytes more than the process has at its beginning
HDF5 = ("gadget-hdf5", "amuse")


def _written(name, n, **more):
    file = io.BytesIO()
    kept = {k: v for k, v in more.items() if k in FORMATS[name].keeps.split()}
    write_snapshot(file, plummer(n, seed=n), format=name, **kept)
    return file.getvalue()


def _compressed(**how):
    """HDF5 whose arrays are in compressed pieces."""

    def change(file):
        for group in [g for name, g in file.items() if name.startswith("PartType")]:
            for key in list(group):
                array = np.repeat(group[key][()], 50, axis=0)
                del group[key]
                group.create_dataset(key, data=array, chunks=(16, *array.shape[1:]), **how)
        counts = 50 * file["Header"].attrs["NumPart_ThisFile"]
        file["Header"].attrs["NumPart_ThisFile"] = counts

    return hand_made.gadget_hdf5(change=change)


def _units(file):
    file.create_group("Units").attrs.update(hand_made.GADGET)


def _sets():
    return hand_made.amuse(change=lambda file: file.copy("data", "gas"))


def _expanding(file):
    _units(file)
    file["Header"].attrs.update({"Redshift": 1.0, "Time": 0.5, "Omega0": 0.3, "HubbleParam": 0.7})
    file["PartType1/Velocities"].attrs.update({"a_scaling": 0.5, "h_scaling": 0.0})
    file.move("PartType1", "dark")
    file["PartType1"] = h5py.SoftLink("dark")


_BY_HAND = {
    "nemo": lambda: [
        hand_made.nemo_of_two(), hand_made.nemo(">", real="f", form="Position", keys="l")],
    "starlab": lambda: [hand_made.dyn(scales=hand_made.SCALES), hand_made.dyn() * 2],
    "tipsy": lambda: [hand_made.tipsy("<", 28), hand_made.tipsy(">", 32), hand_made.bonsai()],
    "gadget": lambda: [hand_made.gadget(">", real="d", integer="Q"), hand_made.gadget()],
    "gadget2": lambda: [hand_made.gadget(">", labels=True), hand_made.gadget(labels=True)],
    "gadget-hdf5": lambda: [
        hand_made.gadget_hdf5(), hand_made.gadget_hdf5(change=_units),
        _compressed(compression="gzip", shuffle=True), _compressed(compression="lzf"),
        _compressed(scaleoffset=2), hand_made.gadget_hdf5(change=_expanding),
        hand_made.gadget_hdf5(of=(0, 1), NumFilesPerSnapshot=2)],
    "amuse": lambda: [hand_made.amuse(2, states=2), hand_made.amuse(1), _sets()],
    "nbody6": lambda: [
        hand_made.nbody6("nbody4", ">"),
        hand_made.nbody6("nbody6") + hand_made.nbody6("nbody6++", time=2.5)],
    "petar": lambda: [
        hand_made.petar_text(24), hand_made.petar_binary(20), hand_made.petar_binary(34)],
    "csv": lambda: [
        b"#mass,vx,vy,vz,x,y,z,id\n#kg,m / s,m / s,m / s,m,m,m,\n" + b"1,2,3,4,5,6,7,8\n" * 3,
        b'\xef\xbb\xbf,"m",x,y,z,u,v,w,type\n' + b"0,1,2,3,4,5,6,7,MS\n1,1,2,3,4,5,6,7,\n" * 3],
    "text": lambda: [
        b"# m x y z vx vy vz id\n 1.5D-3 1.0-103 2+10 3q1 4Q-2 5e7 6 7 # end\r\n",
        b"Mass_[Msun] x_[pc] y_[pc] z_[pc] vx_[km/s] vy_[km/s] vz_[km/s] name\n"
        + b"1 2 3 4 5 6 7 9007199254740993\n2 2 3 4 5 6 7 18446744073709551615\n"],
}  # fmt: skip


def seeds(name):
    """Valid files of a format, of this project and by hand."""
    units = Units("5e4 Msun", "1.2 pc")
    ours = [_written(name, 5, time=0.375, ids=np.arange(5), units=units),
            _written(name, 40, time=2.0, ids=np.arange(40)[::-1] + 2**20),
            _written(name, 1)]  # fmt: skip
    return ours + _BY_HAND[name]()


_WORDS = [0, 1, 2, 3, 7, 8, 255, 256, 257, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE,
          0x7F800000, 0x7FC00000, 0xFF800000, 0x00010000, 0x10000000, 0x40000000]  # fmt: skip
_LONGS = [0, 1, 2**31, 2**32, 2**33, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 0x7FF0000000000000,
          0x7FF8000000000000, 0x7FEFFFFFFFFFFFFF, 0x0010000000000000]  # fmt: skip
_PHRASES = [
    b"nan", b"inf", b"-", b"1e999", b"-1e308", b"1e308 ", b"1e-400", b"9" * 30, b"9" * 5000, b"#",
    b"\n", b"\r", b"\0", b",", b";;",  b"\t", b"\xff", b"\xc3", b"\xd9\xa1", b"1_0", b"0x1p3",
    b"(Particle\n", b")Particle\n", b"(Log\n", b")Log\n", b"(Star\n", b"m  =  nan\n",
    b"system_time  =  1e308\n", b"mass_scale = 5e-324\n", b"size_scale = 1e300\n",
    b"time_scale = 1e-300\n", b"i = 9e9\n", b"i = 99999999999999999999\n",
    b"r = 1e308 1e308 1e308\n", b"id x y z m\n", b"m m m\n", b"\x92\x09(\0Particles\0",
    b"[", b"(pc)", b" [Msun] ", b"\xef\xbb\xbf", b"\"", b"u v w",
    b"\x92\x09)\0", b"\x92\x0bd\0Mass\0",
]  # fmt: skip


def _overwritten(data, rng, form, values):
    size = struct.calcsize(form)
    if len(data) < size:
        return data
    at = rng.randrange(0, len(data) - size + 1)
    at -= at % 4 if rng.random() < 0.9 else 0
    made = struct.pack(rng.choice("<>") + form, rng.choice(values))
    return data[:at] + made + data[at + size :]


def _changed(data, rng, others):
    """One change of bytes."""
    kind, n = rng.randrange(12), len(data)
    at, end = sorted((rng.randrange(n + 1), rng.randrange(n + 1)))
    end = min(end, at + rng.choice([1, 4, 8, 64, 1024]))
    if kind <= 1:
        made = bytearray(data)
        for _ in range(rng.choice([1, 1, 2, 8])):
            if made:
                made[rng.randrange(n)] = rng.randrange(256)
        return bytes(made)
    if kind == 2 and n:
        place = rng.randrange(n)
        return data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
    if kind <= 5:
        return _overwritten(data, rng, "I", _WORDS)
    if kind == 6:
        return _overwritten(data, rng, "Q", _LONGS)
    if kind == 7:
        return data[:at]
    if kind == 8:
        return data[:at] + rng.choice([rng.randbytes(end - at), *_PHRASES]) + data[at:]
    if kind == 9:
        return data[:at] + data[end:]
    if kind == 10:  # two pieces change places
        size = end - at
        other = rng.randrange(n + 1)
        made = bytearray(data)
        made[at:end], made[other : other + size] = data[other : other + size], data[at:end]
        return bytes(made)
    other = rng.choice(others)
    place = rng.randrange(len(other) + 1)
    return rng.choice([data[:at] + other[place:], data[:at] + rng.choice(_PHRASES) + data[end:]])


_ODD = [
    0, -1, 2**31, 2**40, 2**62, 5, np.nan, np.inf, -np.inf, 1e308, 5e-324, True, 1j, b"x", b"\xff",
    "\u00b5", "nan", np.zeros(0), np.zeros((2, 3)), np.arange(6), np.full(6, 2**40), np.full(6, -3),
    np.array([3, 0, 0, 0, 0, 0]), np.array([3.5] * 6), np.array(["a", "b"], "S1"), np.void(b"abc"),
    h5py.Empty("f8"), "(" * 300, "9" * 3000, "1e3 * system.get('S.I.').base('length')",
    "10**10**10 * system.get('S.I.').base('mass')", "system.get('generic').base('time')",
]  # fmt: skip
_ARRAYS = [
    lambda old: old[:-1], lambda old: old.reshape(-1), lambda old: old[None],
    lambda old: old.astype("f4"), lambda old: old.astype(bool), lambda old: old * 1j,
    lambda old: old.astype("S9"), lambda old: old * np.nan, lambda old: old.astype(">i2"),
    lambda _: np.float64(3), lambda _: h5py.Empty("f8"), lambda _: np.zeros(0),
    lambda _: h5py.SoftLink("/"), lambda _: h5py.SoftLink("/nowhere"), lambda _: np.dtype("f8"),
    lambda _: h5py.ExternalLink(__file__, "/"), lambda _: h5py.SoftLink("/PartType1/Masses"),
]  # fmt: skip


def _of_hdf5(file, rng):
    """One change of what is in a file: an object or an attribute is put away, or is another."""
    objects = []
    file.visititems(lambda _, found: objects.append(found))
    if not objects:
        return
    some, kind = rng.choice(objects), rng.randrange(6)
    if kind <= 2 and len(some.attrs):
        key = rng.choice(list(some.attrs))
        del some.attrs[key]
        if kind:
            some.attrs[key] = rng.choice(_ODD)
        return
    if isinstance(some, h5py.Dataset) and (
        some.is_virtual or some.external or (some.size or 0) > 10**5
    ):
        return
    name = some.name
    old = some[()] if isinstance(some, h5py.Dataset) else np.arange(3.0)
    attributes = dict(some.attrs)
    del file[name]
    if kind == 4:
        file[name] = rng.choice(_ARRAYS)(old)
    elif kind == 5 and (isinstance(some, h5py.Dataset) or rng.random() < 0.1):  # nothing is stored
        shape = (rng.choice([2**20, 2**33, 2**40]), *np.shape(old)[1:])
        pieces = (1024, *shape[1:]) if rng.random() < 0.5 else None
        file.create_dataset(name, shape, rng.choice(["f4", "f8", "u8"]), chunks=pieces)
    if isinstance(file.get(name, getlink=True), h5py.HardLink):
        for key, value in attributes.items():
            file[name].attrs[key] = value


def within(data, changes, change, rng):
    """An HDF5 file that was changed some times."""
    file = io.BytesIO(data)
    with h5py.File(file, "r+") as opened, warnings.catch_warnings(action="ignore"):
        for _ in range(changes):
            with contextlib.suppress(Exception):  # some changes make no sense
                change(opened, rng)
    return file.getvalue()


def made(name, seed, index, valid=None):
    """Input `index` of a seed: the bytes, and which snapshot is asked for."""
    rng = random.Random(f"{seed} {name} {index}")
    valid = seeds(name) if valid is None else valid
    data = rng.choice(valid)
    changes = rng.choice([1, 1, 1, 2, 2, 3, 6])
    if name in HDF5 and rng.random() < 0.6:
        data = within(data, changes, _of_hdf5, rng)
        changes = rng.choice([0, 0, 0, 1])
    for _ in range(changes):
        data = _changed(data, rng, valid)
    return data, rng.choice([-1, -1, 0, 1, 5])


def _unsound(found):
    """What is wrong with a snapshot, or None."""
    n, ids = len(found.mass), found.ids
    sound = {
        "shapes": [array.shape for array in found] == [(n,), (n, 3), (n, 3)],
        "types": all(array.dtype == np.float64 for array in found),
        "not finite": all(np.isfinite(array).all() for array in found),
        "time": found.time is None or np.isfinite(found.time),
        "ids": ids is None or (ids.shape == (n,) and ids.dtype.kind in "iu"),
        "G of units": found.units is None or 0 < found.units.G < np.inf,
        "format": found.format in FORMATS,
    }
    return next((what for what, is_so in sound.items() if not is_so), None)


def attempt(data, which, name=None):
    """What went wrong when a file was read, with its place; or None."""
    began = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        try:
            wrong = _unsound(read_snapshot(io.BytesIO(data), which, format=name))
        except (SnapshotError, ArgumentError):
            wrong = None
        except Exception as error:
            wrong = "".join(traceback.format_exception(error)[-2:])
    took = time.process_time() - began
    if wrong is None and took > SLOW:
        wrong = f"{took:.1f} s of the processor"
    return wrong


def limit_memory():
    with open("/proc/self/statm", encoding="ascii") as file:
        limit = int(file.read().split()[0]) * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def noted(progress, first, count):
    """The numbers of inputs, each written to a file before it is tried."""
    place = os.open(progress, os.O_WRONLY)
    for index in range(int(first), int(count)):
        os.pwrite(place, struct.pack("q", index), 0)
        yield index


def _child(name, seed, first, count, progress):
    """Runs inputs from `first` on; prints each failure as a line."""
    valid = seeds(name)
    for data in valid:
        for named in (None, name):
            assert attempt(data, -1, named) is None, attempt(data, -1, named)
    limit_memory()
    for index in noted(progress, first, count):
        data, which = made(name, int(seed), index, valid)
        signal.setitimer(signal.ITIMER_PROF, KILLED)  # whose signal ends the process
        for named in (None, name):
            if wrong := attempt(data, which, named):
                print(repr((index, named, wrong)), flush=True)
        signal.setitimer(signal.ITIMER_PROF, 0)


def watched(script, words, count, *, of_hdf5, first=0):
    """What a script prints as a child: (index, name, what) for each failure.

    An input that ends its process is one, too, and the next process begins behind it."""
    found = []
    with tempfile.NamedTemporaryFile(prefix="grape6-fuzz-") as progress:
        progress.write(struct.pack("q", first))
        progress.flush()
        while first < count:
            command = [sys.executable, script, "--child", *words, first, count, progress.name]
            done = tools.started(command)
            found += [eval(line) for line in done.stdout.splitlines()]
            if done.returncode == 0:
                break
            first = struct.unpack("q", Path(progress.name).read_bytes())[0]
            last = (done.stderr.strip().splitlines() or [""])[-1]
            # HDF5's own library (2.0) does not end, or crashes, for one such file in a thousand.
            if not of_hdf5 or done.returncode > 0:
                found.append((first, None, f"the process ended with {done.returncode}: {last}"))
            first += 1
            if done.returncode > 0:  # not by a signal: a fault of this program
                break
    return found


def run(name, count, seed=SEED):
    """What went wrong with a format."""
    return watched(__file__, [name, seed], count, of_hdf5=name in HDF5)


if __name__ == "__main__":
    _child(*sys.argv[2:])
