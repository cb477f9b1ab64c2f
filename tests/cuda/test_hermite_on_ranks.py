"""``Hermite(comm=...)``, each rank with all bodies on a GPU, which share the sums of large blocks:
the bits are those of one rank. On the stand-in of tests/c/fake_gpu.h.
"""

import functools

import pytest

import capi
import on_ranks

SCRIPT = """
import hashlib, json
import fake_arrays
cupy = sys.modules["cupy"] = fake_arrays.Module()
from mpi4py import MPI
from grape6py import Hermite, errors, plummer
from grape6py.events import Encounter
from grape6py.integrators import hermite_device as arrays
comm = MPI.COMM_WORLD if len(sys.argv) > 1 else None
rank = comm.rank if comm else 0
arrays._PAIRS = 2200 * 40  # small blocks are summed by each rank alone
arrays._ROWS = 1000
gathered = [0]
def count(of):
    def gather(self, *arrays):
        gathered[0] += 1
        of(self, *arrays)
    return gather
arrays.DeviceArrays.gather = count(arrays.DeviceArrays.gather)
FAKE_GPU = ctypes.CDLL(os.environ["GRAPE6_TEST_FAKE_GPU"])
MASS, POS, VEL = plummer(2200, seed=5)

def made(**options):
    return Hermite(MASS, POS, VEL, backend="cuda", comm=comm, **({"eps": 0.01} | options))

def say(*arrays):
    seen = hashlib.sha256(b"".join(np.asarray(a).tobytes() for a in arrays)).hexdigest()
    if rank == 0:
        print(json.dumps({"bits": seen, "gathered": gathered[0]}))

def of(cluster):
    state = cluster._blocks.state()
    return [state[name] for name in sorted(state)] + [cluster.steps]
"""

ALL = """
cluster = made(precision={mode!r})
cluster.evolve(1 / 512)
say(*of(cluster), cluster.energy().total, cluster.pos)
"""

CLOSE = """
POS[5], POS[2077] = 0, [1e-30, 0, 0]  # whose terms only the host sums, and one share has
cluster = made(precision={mode!r}, eps=0, dt=2.0**-92)
cluster.evolve(2.0**-91)
say(*of(cluster))
"""

MORE = """
MASS[::7] = 0                       # these do not act
pull = lambda time, pos, vel: (-0.1 * pos, -0.1 * vel, 0 * pos[:, 0])
cluster = made(passes=2, field=pull, dt=1 / 256)
cluster.evolve(1 / 128, events=[Encounter(1e-3)])
say(*of(cluster), [e.time for e in cluster.events] if hasattr(cluster, "events") else 0)
cluster.kick([3, 7], [[0.1, 0, 0], [0, 0.1, 0]])
cluster.evolve(3 / 256)
say(*of(cluster))
"""


@pytest.fixture(scope="module")
def run(fake_gpu, library_of):
    """What a script says on some ranks, 0 without MPI."""
    environment = {"GRAPE6_TEST_FAKE_GPU": str(fake_gpu), "GRAPE6_DEVICES": "0,1,2",
                   "GRAPE6_TEST_LIBRARY": str(library_of("cuda-tree"))}  # fmt: skip

    @functools.cache
    def run(script, ranks, **env):
        script = capi.PRELUDE + SCRIPT + script
        done = on_ranks.run(max(ranks, 1), "-c", script, *(["ranks"] if ranks else []),
                            environment=environment | env, timeout=300)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return [on_ranks.json.loads(line) for line in done.stdout.splitlines()]

    return run


SMALL = "MASS, POS, VEL = plummer(1100, seed=5)\n" + ALL


@pytest.mark.parametrize(("script", "mode", "ranks"), [
    (MORE, "grape", 2),
    *(pytest.param(*case, marks=pytest.mark.full) for case in (
        (ALL, "grape", 3), (ALL, "double", 2), (ALL, "single", 2), (CLOSE, "grape", 3),
        (SMALL, "grape", 3))),  # which have more ranks than blocks of particles, and sum alone
])  # fmt: skip
def test_bits_are_those_of_one_rank(run, script, mode, ranks):
    alone, shared = (run(script.replace("{mode!r}", repr(mode)), k) for k in (0, ranks))
    assert [each["bits"] for each in shared] == [each["bits"] for each in alone]
    assert (shared[0]["gathered"] > 0) == (script is not SMALL)


@pytest.mark.full
@pytest.mark.parametrize(("work", "calls", "backend"), [
    ("cluster.evolve(1 / 512)", (*range(1, 80, 7), 40), "cuda"),
    ("cluster._blocks.at(1e-5)", (1, 6), "cuda"), ("cluster.evolve(1 / 512)", (40,), "auto"),
])  # fmt: skip
def test_row02_a_device_that_fails_ends_all_ranks(run, work, calls, backend):
    """Whichever call of the driver fails, and on whichever rank: nobody waits or goes on alone."""
    (found,) = run(f"""
outcomes = []
for call in {calls}:
    cluster = Hermite(MASS, POS, VEL, eps=0.01, backend={backend!r}, comm=comm)
    if rank == call % 2:
        FAKE_GPU.fake_gpu_fail(ctypes.c_long(call), 719, {int(backend == "auto")})
    try:
        {work}
        outcomes.append("done")
    except errors.Grape6Error as error:
        outcomes.append(type(error).__name__)
    FAKE_GPU.fake_gpu_fail(ctypes.c_long(0), 0, 0)
    cluster.close()
outcomes = comm.allgather(outcomes)
if rank == 0:
    print(json.dumps([*zip(*outcomes)]))
""", 2)  # fmt: skip
    for call, (one, other) in zip(calls, found, strict=True):
        assert {one, other} <= {"BackendError", "RankError", "done"}
        assert (one == "done") == (other == "done"), call
    assert "RankError" in found[0]


def test_nearest_neighbours_of_other_shares(run):
    """Of particles that only their own share has predicted, with indices that are no addresses."""
    found = run(
        """
from grape6py import Grape6
from grape6py._lib.library import ffi, lib
n, shares, ni = 2200, 2, 200
index = np.arange(n, dtype=np.int32)[::-1] + 7
whole = Grape6(backend="cuda")
whole.set_particles(MASS, POS, VEL, index=index)
right = whole.forces(POS[:ni], VEL[:ni], index[:ni], eps=0.01, nn=True)
parts = np.zeros(shares * ni * lib.G6X_PART_BYTES, np.uint8)
def at(array, kind="void *"):
    return ffi.cast(kind, array.ctypes.data)
size, none, end = ffi.new("long long *"), ffi.NULL, 0
boards = [Grape6(backend="cuda") for _ in range(shares)]
targets = at(index, "int *"), at(POS, "double (*)[3]"), at(VEL, "double (*)[3]")
for k, board in enumerate(boards):
    board.set_particles(MASS, POS, VEL, index=index)
    part = ffi.cast("void *", parts.ctypes.data + end)
    assert lib.g6x_force_part_device(board._board.cluster, n, ni, *targets, 1e-4, 1, k, shares,
                                     part, size, none) == 0
    end += size[0]
acc, jerk, pot = np.zeros((ni, 3)), np.zeros((ni, 3)), np.zeros(ni)
near, far = np.zeros(ni, np.int32), np.zeros(ni, np.float32)
outs = (at(acc, "double (*)[3]"), at(jerk, "double (*)[3]"), at(pot, "double *"),
        at(near, "int *"), at(far, "float *"))
for board in boards:
    merged = board._board.cluster, ni, at(parts), shares, *outs, none
    assert lib.g6x_merge_parts_device(*merged) == 0
    assert np.array_equal(near, right.nearest) and np.array_equal(far, right.distance)
    assert np.array_equal(acc, right.acc) and np.array_equal(pot, right.pot)
    assert lib.g6x_merge_parts_device(*merged) < 0  # there is no part any more
plain = merged[0], n, ni, *targets, 1e-4, 0
assert lib.g6x_force_part_device(*plain, 0, 2, at(parts), size, none) == 0
assert lib.g6x_merge_parts_device(merged[0], ni, at(parts), 2, *outs, none) == lib.G6X_E_MISMATCH
for share, of in ((0, 1), (2, 2), (-1, 2), (0, 5)):
    bad = lib.g6x_force_part_device(*plain, share, of, at(parts), size, none)
    assert bad == lib.G6X_E_ARGUMENT
print(json.dumps("right"))
""",
        0,
    )
    assert found == ["right"]
