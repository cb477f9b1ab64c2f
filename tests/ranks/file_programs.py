"""What the ranks of a test of files do: `mpirun -n P python file_programs.py NAME [argument ...]`.

Every rank knows all bodies, gives those that are its own, and rank 0 prints lines of JSON.
"""

import os
import resource
import signal
import sys
import traceback
from pathlib import Path

import numpy as np
from mpi4py import MPI

from grape6py import Units, plummer, read_snapshot, write_snapshot
from grape6py.files.storage import atomic_files
from rank_programs import COMM, RANK, SIZE, complaint, say

LAST = RANK == SIZE - 1
N = 1000
UNITS = Units("5e4 Msun", "1.2 pc")
MODEL = plummer(N, seed=1)
IDS = np.arange(N)[::-1] + 2**33
NUMBERS = (1, 2, 3)  # of ranks
NAMES = {"a.hdf5": "gadget-hdf5", "b.gadget": "gadget", "c.gadget2": "gadget2"}


def contents():
    """All files of the folder, when no rank is writing."""
    COMM.barrier()
    found = {path.name: path.read_bytes() for path in Path().iterdir()}
    COMM.barrier()
    return found


def cuts(size):
    """Where the bodies of each rank begin; the middle one of three or more has none."""
    found = np.linspace(0, N, size + 1).astype(int)
    if size > 2:
        found[size // 2] = found[size // 2 + 1]
    return found


def mine(time=0.5, ids=IDS, comm=COMM, **options):
    """Write the bodies of this rank."""
    rank, size = comm.Get_rank(), comm.Get_size()
    some = slice(*cuts(size)[rank : rank + 2])
    bodies = [array[some] for array in MODEL]
    ids = None if ids is None else ids[some]
    return lambda name: write_snapshot(name, *bodies, time=time, ids=ids, comm=comm, **options)


def files(folder):
    """Sets that 1, 2 and 3 ranks write, and other numbers read."""
    os.chdir(folder)
    for writers in NUMBERS:
        if RANK == 0:
            os.mkdir(str(writers))
        COMM.barrier()
        os.chdir(str(writers))
        for size, call in ((writers, write), *((readers, read) for readers in NUMBERS)):
            on_some(size, call)
        os.chdir("..")
    for ranks in NUMBERS:
        on_some(ranks, others)
    say(ok=True)


def on_some(size, call):
    """A call on a number of ranks, with their communicator and the bodies that each is to get."""
    comm = COMM.Split(0 if size > RANK else MPI.UNDEFINED)
    if comm != MPI.COMM_NULL:
        call(comm, slice(N * RANK // size, N * (RANK + 1) // size))
        comm.Free()
    COMM.barrier()


def write(comm, _):
    """Sets of all formats."""
    for name in NAMES:
        mine(comm=comm, **({"units": UNITS} if name == "a.hdf5" else {}))(name)
    mine(comm=comm, ids=None)("d.hdf5")


def read(comm, some):
    """What any number of ranks has written, here and there by one of the files' names."""
    for name in [*NAMES, "d.hdf5"]:
        one = next(file for file in sorted(os.listdir()) if file.startswith(name[0] + "."))
        for given in (name, one):
            found = read_snapshot(given, comm=comm)
            for array, wanted in zip(found, MODEL, strict=True):
                kind = "f8" if name.endswith("hdf5") else "f4"
                assert np.array_equal(array, wanted.astype(kind)[some]), name
            assert np.array_equal(found.ids, (IDS if name[0] != "d" else np.arange(1, N + 1))[some])
            assert found.time == 0.5
            assert found.units == (UNITS if name == "a.hdf5" else None)
            assert found.format == NAMES.get(name, "gadget-hdf5")


def others(comm, some):
    """Formats that are one file: the first rank reads, and deals out; and few bodies."""
    if comm.Get_rank() == 0:
        write_snapshot("a.nemo", MODEL, time=0.25, ids=IDS)
        write_snapshot("a.txt", MODEL)
        write_snapshot("few.hdf5", *(array[:2] for array in MODEL))
        write_snapshot("none.hdf5", [], np.zeros((0, 3)))
    comm.barrier()
    for name, time, ids in (("a.nemo", 0.25, IDS[some].tolist()), ("a.txt", None, None)):
        found = read_snapshot(name, comm=comm)
        assert [x.tobytes() for x in found] == [x[some].tobytes() for x in MODEL]
        assert found.time == time
        assert found.ids is None if ids is None else found.ids.tolist() == ids
    few = read_snapshot("few.hdf5", comm=comm)
    assert comm.allreduce(len(few.mass)) == 2
    assert few.ids.shape == few.mass.shape
    assert read_snapshot("none.hdf5", comm=comm).pos.shape == (0, 3)


def broken(folder):
    """What fails on one rank fails on all, and leaves the files that were there."""
    os.chdir(folder)
    mine()("a.hdf5")
    before = contents()
    wrong = np.array(MODEL.pos)
    wrong[3] = np.nan
    given = wrong if LAST else MODEL.pos
    calls = {
        "nan": lambda: write_snapshot("a.hdf5", MODEL.mass, given, comm=COMM),
        "time": lambda: mine(time=1.0 + LAST)("a.hdf5"),
        "units": lambda: mine(units=UNITS if LAST else None)("a.hdf5"),
        "path": lambda: mine()("b.hdf5" if LAST else "a.hdf5"),
        "ids": lambda: mine(ids=None if LAST else IDS)("a.hdf5"),
        "sign": lambda: mine(ids=(IDS - 2**34 if LAST else IDS.astype("u8") + 2**63))("a.hdf5"),
        "format": lambda: mine()("a.nemo"),
        "files": lambda: mine(files=2)("a.hdf5"),
        "folder": lambda: mine()("no/folder/a.hdf5"),
        "call": lambda: read_snapshot("a.hdf5", comm=COMM) if LAST else mine()("a.hdf5"),
        "read": lambda: read_snapshot("no.hdf5", comm=COMM),
        "which": lambda: read_snapshot("a.hdf5", which=RANK, comm=COMM),
        "full": full,
        "damage": lambda: read_snapshot("a.hdf5", comm=COMM),
    }
    for name, call in [*calls.items()][:-1]:
        say(call=name, texts=COMM.gather(complaint(call)))
        assert contents() == before, name
    mine(time=3.0)("a.hdf5")
    assert read_snapshot("a.hdf5").time == 3.0
    COMM.barrier()
    if RANK == 0:
        os.truncate(f"a.{SIZE - 1}.hdf5", 3000)
    COMM.barrier()
    say(call="damage", texts=COMM.gather(complaint(calls["damage"])))
    write_snapshot("empty.hdf5", [], np.zeros((0, 3)), comm=COMM)
    assert len(read_snapshot("empty.hdf5", comm=COMM).mass) == 0


def full():
    """The disk of one rank is full while it writes."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    if LAST:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, old[1]))
    try:
        mine(time=2.0)("a.hdf5")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


def killed(folder):
    """A rank is killed when it has written its file, which has not got its name."""
    os.chdir(folder)
    mine()("a.hdf5")
    if LAST:
        write = atomic_files._write_synced

        def and_die(path, pieces):
            write(path, pieces)
            os.kill(os.getpid(), signal.SIGKILL)

        atomic_files._write_synced = and_die
    mine(time=2.0)("a.hdf5")


if __name__ == "__main__":
    try:
        globals()[sys.argv[1]](*sys.argv[2:])
    except BaseException:
        traceback.print_exc()
        COMM.Abort(1)  # or the others would wait for this one
