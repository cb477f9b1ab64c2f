"""What the ranks of a test do: `mpirun -n P python rank_programs.py NAME [argument ...]`.

They assert what is promised. What rank 0 says are lines of JSON."""

import hashlib
import json
import re
import sys
import time
import traceback

import numpy as np
from mpi4py import MPI

from grape6py import Grape6, partial, plummer
from grape6py.diagnostics import potential

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()
LAST = RANK == SIZE - 1
FAR = np.array([1000.0, 0, -30])


def say(**found):
    if RANK == 0:
        print(json.dumps(found), flush=True)


def on_some(ranks, call):
    """What call(comm) gives on so many ranks; 0: on one without a communicator."""
    comm, found = COMM.Split(0 if max(ranks, 1) > RANK else MPI.UNDEFINED), None
    if comm != MPI.COMM_NULL:
        found = call(comm if ranks else None)
        comm.Free()
    ended = COMM.Ibarrier()
    while not ended.Test():
        time.sleep(0.01)
    return found


def mine(n, is_odd=True, comm=COMM):
    """Which of n rows this rank gives: no even shares, and sometimes none."""
    rank, size = (comm.rank, comm.size) if comm else (0, 1)
    cuts = np.linspace(0, n, size + 1).astype(int)
    if is_odd:
        cuts[1:-1] = np.sort(np.random.default_rng(size).integers(0, n + 1, size - 1))
    return slice(cuts[rank], cuts[rank + 1])


def bits(comm, *arrays):
    """A number made of the bits of all ranks' rows, one rank's behind the other's."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.concatenate(comm.allgather(array) if comm else [array]).tobytes())
    return found.hexdigest()


def of_forces(comm, forces):
    """Bits of all that they have."""
    found = [bits(comm, forces.acc, forces.jerk, forces.pot)]
    if forces.nearest is not None:
        found.append(bits(comm, forces.nearest, forces.distance))
    if forces.neighbours is not None:
        lengths = np.array([len(row) for row in forces.neighbours], np.int64)
        rows = np.concatenate([*forces.neighbours, np.empty(0, np.int32)])
        found.append(bits(comm, lengths, rows))
    return found


# ---- what fails ----------------------------------------------------------------------------------
def complaint(call):
    """What a call says that must fail."""
    try:
        call()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


ALL = "ArgumentError: "
DIFFERENT = f"{ALL}the ranks make different calls: "


def of_last(words):
    """What ranks 0 and 2 say of an error of rank 2."""
    return f"RankError: on rank 2 of 3: {words}", words


def refused(call, first, last=None):
    """A call fails on all three ranks; rank 0 says one thing, and rank 2 another or the same."""
    texts = COMM.gather(complaint(call))
    if RANK == 0:
        assert re.match(first, texts[0]), (first, texts)
        assert re.match(last or first, texts[2]), (last, texts)
        assert texts[1].startswith(("RankError: on rank", ALL, "FileNot")), texts


# ---- sums ----------------------------------------------------------------------------------------
def far_and_uneven(n):
    """Bodies of all masses, far from the origin."""
    rng = np.random.default_rng(1)
    _, pos, vel = plummer(n, seed=3)
    return rng.random(n), pos + FAR, vel + np.array([0, 5.0, 0])


def sums(n, precision, comm):
    """Forces of all kinds: bits, numbers of particles, and times."""
    mass, pos, vel = far_and_uneven(n)
    found, kinds = [], {"eps": 0.01, "nn": True, "h": 0.3}
    with Grape6(comm=comm, backend="cpu", precision=precision, threads=1) as grape:

        def note(*targets, **call):
            forces = grape.forces(*targets, **call)
            if "same" in call and comm.rank:  # each rank has all
                forces = type(forces)(*(a if a is None else a[:0] for a in forces))
            found.append((of_forces(comm, forces), grape.n, grape.time))

        rows, few = mine(n, comm=comm), mine(n // 2, comm=comm)
        grape.set_particles(mass[rows], pos[rows], vel[rows])
        note(**kinds)
        targets = np.random.default_rng(5).normal(size=(77, 3)) + FAR
        note(targets[mine(77, comm=comm)], **kinds)
        note(targets, **kinds, **({"same": True} if comm else {}))
        address = np.random.default_rng(6).permutation(n)[: n // 3]
        changed = address[mine(len(address), comm=comm)]
        grape.set_particles(mass[changed], 2 * pos[changed], vel[changed], time=0.25,
                            acc=pos[changed], jerk=vel[changed], address=changed)  # fmt: skip
        note(eps=0.01, time=0.5)
        grape.set_particles(mass[rows], pos[rows], index=np.arange(n)[::-1][rows])
        note(time=3.0, nn=True)
        grape.set_particles(mass[few], pos[few], vel[few], time=-1.0)
        note(nn=True)
    return found


def forces_of_ranks_have_the_bits_of_one_session():
    for n, precision, numbers in (
        (4200, "grape", (1, 2, 3)), (1500, "double", (3,)), (7, "grape", (3,)),
        (1024, "single", (2,)),
    ):  # fmt: skip
        alone = on_some(0, lambda comm, what=(n, precision): sums(*what, comm))
        for ranks in numbers:
            found = on_some(ranks, lambda comm, what=(n, precision): sums(*what, comm))
            assert found == alone or RANK, (n, ranks)


def ranks_without_bodies_take_part():
    with Grape6(comm=COMM, backend="cpu") as grape:
        grape.set_particles(np.zeros(0), np.zeros((0, 3)))
        assert grape.forces(nn=True, h=1.0).acc.shape == (0, 3)
        n = 3 if LAST else 0
        grape.set_particles(np.ones(n), np.arange(9.0).reshape(3, 3)[:n])
        found = grape.forces(np.ones((RANK, 3)), nn=True, h=100.0)
        assert len(found.acc) == RANK
        assert all(sorted(row) == [0, 1, 2] for row in found.neighbours)
        assert grape.n == 3


def an_error_of_one_rank_is_told_by_all():
    """And nothing is lost."""
    from astropy import units

    mass, pos, vel = far_and_uneven(3000)
    rows = mine(3000, is_odd=False)
    wrong, one = np.array(pos[rows]), slice(0, 1)
    if LAST:
        wrong[0] = np.nan
    time, targets, given = (f"{ALL}{words}" for words in (
        "time differs", "the targets differ", "whether pos, index, h, nn and same are given differs"
    ))  # fmt: skip
    with Grape6(comm=COMM, backend="cpu", threads=1) as grape:
        grape.set_particles(mass[rows], pos[rows], vel[rows])
        before = of_forces(COMM, grape.forces())
        put, forces = grape.set_particles, grape.forces
        for wrong_call in (
            (lambda: put(mass[rows], wrong, vel[rows]), *of_last(r"NotFiniteError: pos\[0\]")),
            (lambda: put(mass[one], pos[one], address=[3000 if LAST else 0]),
             *of_last(r"AddressError: address\[0\] = 3000")),
            (lambda: put(mass[one], pos[one], index=[7] if LAST else None),
             f"{ALL}whether address and index are given differs between the ranks"),
            (lambda: forces(vel=vel, index=None), f"{ALL}vel and index describe targets"),
            (lambda: forces(eps=0.1 if LAST else 0.2),
             f"{ALL}eps differs between the ranks: 0.[12]0*.? on rank"),
            *((lambda eps=eps: forces(eps=eps if LAST else 0.2), *of_last(f"{ALL}{words}"))
              for eps, words in ((np.nan, "eps = nan"), (1e200, r"eps\^2 = inf"))),
            (lambda: forces(time=0.5 if LAST else 0.25), time),
            (lambda: forces(time=np.inf if LAST else 0.25), *of_last(f"{ALL}time = inf")),
            (lambda: forces(None if LAST else pos), given),
            (lambda: forces(pos[LAST : 2 + LAST], same=True), targets),
            (lambda: forces(same=True), f"{ALL}same=True"),
            (lambda: forces(pos, h=[1.0] if LAST else 1.0), *of_last(f"{ALL}h has shape")),
            (lambda: forces() if LAST else put(mass[rows], pos[rows]),
             f"{DIFFERENT}.*_?(forces|particles)"),
            (lambda: Grape6(comm=COMM, backend="nothing" if LAST else "cpu"),
             *of_last(f"{ALL}backend = 'nothing'")),
            (lambda: Grape6(comm=3), f"{ALL}.*communicator of mpi4py"),
            (lambda: potential(mass, pos * (1 + LAST), comm=COMM), f"{ALL}the particles differ"),
            (lambda: potential(mass, pos * units.m if LAST else pos, comm=COMM),
             *of_last(f"{ALL}pos ")),
        ):  # fmt: skip
            refused(*wrong_call)
        assert of_forces(COMM, forces()) == before
        if LAST:
            grape.close()
        refused(forces, *of_last("NotOpenError"))


def partial_sums_of_a_program_of_its_own():
    mass, pos, vel = plummer(2000, seed=8)
    with Grape6(backend="cpu") as all_, Grape6(backend="cpu") as part:
        all_.set_particles(mass, pos, vel)
        for comm in (COMM, MPI.COMM_SELF):
            mine = np.arange(2000) // 1024 % comm.size == comm.rank  # whole blocks
            part.set_particles(mass[mine], pos[mine], vel[mine])
            part.scale = all_.scale
            rows = partial.merged_over(comm, part.partial(pos[:90] + 0.1, eps=0.01))
            right = all_.forces(pos[:90] + 0.1, eps=0.01)
            for one, other in zip(partial.forces(rows)[:3], right, strict=False):
                assert np.array_equal(one, other)
        fewer = rows[: 80 + (RANK == 0)]
        text = complaint(lambda: partial.merged_over(COMM, fewer))
        assert "the number of targets differs" in text
    COMM.Barrier()


def main(programs, name, *arguments):
    """Runs the function of this name. The others would wait for a rank that fails."""
    try:
        programs[name](*arguments)
    except BaseException:
        traceback.print_exc()
        COMM.Abort(1)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        main(globals(), name)
