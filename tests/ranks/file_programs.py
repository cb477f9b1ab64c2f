"""What the ranks of a test of files do: `mpirun -n P python file_programs.py NAME [argument ...]`.
Every rank knows all bodies, and gives those that are its own."""

import os
import resource
import signal
import sys
from pathlib import Path

import numpy as np

from grape6py import Units, plummer, read_snapshot, write_snapshot
from grape6py.files.storage import atomic_files
from rank_programs import ALL, COMM, LAST, RANK, SIZE, main, of_last, on_some, refused

N = 1000
UNITS = Units("5e4 Msun", "1.2 pc")
MODEL = plummer(N, seed=1)
IDS = np.arange(N)[::-1] + 2**33
NUMBERS = (1, 2, 3)  # of ranks
NAMES = {"a.hdf5": "gadget-hdf5", "b.gadget": "gadget", "c.gadget2": "gadget2"}


def contents(pattern="*"):
    """All files of the folder, and of those in it, when no rank is writing."""
    COMM.barrier()
    found = {str(path): path.read_bytes() for path in Path().rglob(pattern) if path.is_file()}
    COMM.barrier()
    return found


def filling_the_disk(call):
    """The disk of the last rank is full while it writes."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    if LAST:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, old[1]))
    try:
        call()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


def die_when_it_is_written():
    """The last rank is killed when it has written its file, which has not got its name."""
    write = atomic_files._write_synced

    def and_die(path, pieces):
        write(path, pieces)
        os.kill(os.getpid(), signal.SIGKILL)

    if LAST:
        atomic_files._write_synced = and_die


def mine(time=0.5, ids=IDS, comm=COMM, **options):
    """Write the bodies of this rank; the middle one of three or more has none."""
    rank, size = comm.Get_rank(), comm.Get_size()
    cuts = np.linspace(0, N, size + 1).astype(int)
    if size > 2:
        cuts[size // 2] = cuts[size // 2 + 1]
    some = slice(*cuts[rank : rank + 2])
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
        on_some(writers, write)
        for readers in NUMBERS:
            on_some(readers, read)
        os.chdir("..")
    for ranks in NUMBERS:
        on_some(ranks, others)


def rows_of(comm):
    """Those that a rank is to read."""
    return slice(N * comm.rank // comm.size, N * (comm.rank + 1) // comm.size)


def write(comm):
    """Sets of all formats."""
    for name in NAMES:
        mine(comm=comm, **({"units": UNITS} if name == "a.hdf5" else {}))(name)
    mine(comm=comm, ids=None)("d.hdf5")


def read(comm):
    """What any number of ranks has written, here and there by one of the files' names."""
    some = rows_of(comm)
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


def others(comm):
    """Formats that are one file: the first rank reads, and deals out; and few bodies."""
    some = rows_of(comm)
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
    differ = f"{ALL}the arguments of %s differ"
    first, no = "RankError: on rank 0 of 3: ", "FileNotFoundError"
    for call in (
        (lambda: write_snapshot("a.hdf5", MODEL.mass, given, comm=COMM),
         *of_last(f"{ALL}x of body 3 is nan")),
        (lambda: mine(time=1.0 + LAST)("a.hdf5"),
         f"{ALL}time differs between the ranks: 1.0 on rank 0", f"{ALL}time differs.* 2.0"),
        (lambda: mine()("b.hdf5" if LAST else "a.hdf5"), differ % r"write_snapshot\(\)"),
        (lambda: mine(ids=None if LAST else IDS)("a.hdf5"), f"{ALL}ids are given on some ranks"),
        (lambda: mine(ids=(IDS - 2**34 if LAST else IDS.astype("u8") + 2**63))("a.hdf5"),
         f"{ALL}some ids are below zero, and some above"),
        (lambda: mine()("a.nemo"), f"{ALL}a.nemo: NEMO snapshot is one file"),
        (lambda: mine(files=2)("a.hdf5"), f"{ALL}files= is for one process"),
        (lambda: mine()("no/folder/a.hdf5"), f"{no}.*no/folder/a.0.hdf5", f"RankError|{no}"),
        (lambda: read_snapshot("a.hdf5", comm=COMM) if LAST else mine()("a.hdf5"),
         f"{ALL}the ranks make different calls"),
        (lambda: read_snapshot("no.hdf5", comm=COMM), f"{no}.*no.hdf5", first + no),
        (lambda: read_snapshot("a.hdf5", which=RANK, comm=COMM), differ % r"read_snapshot\(\)"),
        (lambda: filling_the_disk(lambda: mine(time=2.0)("a.hdf5")),
         of_last("OSError: .*File too large: 'a.2.hdf5'")[0], "OSError: .*File too large"),
    ):  # fmt: skip
        refused(*call)
        assert contents() == before, call
    mine(time=3.0)("a.hdf5")
    assert read_snapshot("a.hdf5").time == 3.0
    COMM.barrier()
    if RANK == 0:
        os.truncate(f"a.{SIZE - 1}.hdf5", 3000)
    COMM.barrier()
    damaged = r"SnapshotError: a\.2\.hdf5"
    refused(lambda: read_snapshot("a.hdf5", comm=COMM), f"{damaged} is damaged", first + damaged)
    write_snapshot("empty.hdf5", [], np.zeros((0, 3)), comm=COMM)
    assert len(read_snapshot("empty.hdf5", comm=COMM).mass) == 0


def killed(folder):
    os.chdir(folder)
    mine()("a.hdf5")
    die_when_it_is_written()
    mine(time=2.0)("a.hdf5")


if __name__ == "__main__":
    main(globals(), *sys.argv[1:])
