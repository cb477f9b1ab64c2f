"""``Hermite(comm=...)``, each rank with all bodies on a GPU, which share the sums of large blocks:
the bits are those of one rank. On the stand-in of tests/c/fake_gpu.h."""

import functools

import numpy as np
import pytest

import capi
import on_ranks
from particles import cloud

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
cluster = made(precision="grape", eps=0, dt=2.0**-92)
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


@pytest.mark.parametrize(("script", "ranks"), [
    (MORE, 2),
    # The first has more ranks than blocks of particles, and sums alone.
    pytest.param("MASS, POS, VEL = plummer(1100, seed=5)\n" + ALL.format(mode="grape") +
                 "MASS, POS, VEL = plummer(2200, seed=5)\n" + ALL.format(mode="single") + CLOSE,
                 3, marks=pytest.mark.full),
])  # fmt: skip
def test_bits_are_those_of_one_rank(run, script, ranks):
    alone, shared = (run(script, k) for k in (0, ranks))
    assert [each["bits"] for each in shared] == [each["bits"] for each in alone]
    assert (shared[0]["gathered"] > 0) == (script is MORE)
    assert shared[-1]["gathered"] > shared[-2]["gathered"] or script is MORE


@pytest.mark.full
def test_row02_a_device_that_fails_ends_all_ranks(run):
    """Whichever call of the driver fails, and on whichever rank: nobody waits or goes on alone."""
    found = run("""
for work, calls, backend in (
    (lambda: cluster.evolve(1 / 512), (*range(1, 80, 13), 41), "cuda"),
    (lambda: cluster._blocks.at(1e-5), (1, 6), "cuda"),
    (lambda: cluster.evolve(1 / 512), (40,), "auto"),
):
    outcomes = []
    for call in calls:
        cluster = Hermite(MASS, POS, VEL, eps=0.01, backend=backend, comm=comm)
        if rank == call % 2:
            FAKE_GPU.fake_gpu_fail(ctypes.c_long(call), 719, int(backend == "auto"))
        try:
            work()
            outcomes.append("done")
        except errors.Grape6Error as error:
            outcomes.append(type(error).__name__)
        FAKE_GPU.fake_gpu_fail(ctypes.c_long(0), 0, 0)
        cluster.close()
    outcomes = comm.allgather(outcomes)
    if rank == 0:
        print(json.dumps([*zip(*outcomes)]))
""", 2)  # fmt: skip
    assert len(found) == 3
    for outcomes in found:
        for one, other in outcomes:
            assert {one, other} <= {"BackendError", "RankError", "done"}
            assert (one == "done") == (other == "done")
        assert "RankError" in outcomes[0]


@pytest.mark.backends("cuda")
def test_nearest_neighbours_of_other_shares(new_session):
    """Of particles that only their own share has predicted, with indices that are no addresses."""
    n, ni, call = 2200, 200, capi.call
    source, sessions = cloud(n, seed=5), [new_session() for _ in range(3)]
    source.index[:] = np.arange(n)[::-1] + 7
    for session in sessions:
        session.put_cloud(source)
    whole, *shares = sessions
    index, x, v = source.index[:ni], source.x[:ni], source.v[:ni]
    targets, right = (n, ni, index, x, v, 1e-4), whole.force(n, x, v, index, 1e-4)
    parts, size, end = np.zeros(2 * ni * 24, np.int64), np.zeros(1, np.int64), 0
    for k, share in enumerate(shares):
        more = 1, k, 2, parts[end:], size, None
        assert call("g6x_force_part_device", share.cluster, *targets, *more) == 0
        end += int(size[0]) // 8
    for share in shares:
        out, far = capi.Force.blank(ni), np.zeros(ni, np.float32)
        outputs = out.acc, out.jerk, out.pot, out.nearest, far, None
        merge = "g6x_merge_parts_device", share.cluster, ni, parts, 2, *outputs
        assert call(*merge) == 0
        assert out.bits() == right.bits()
        assert (out.nearest == right.nearest).all()
        apart = np.linalg.norm(source.x[n + 6 - out.nearest] - x, axis=1)
        assert far == pytest.approx(apart, rel=1e-5)
        assert call(*merge) < 0  # there is no part any more
    for of in ((0, 1), (2, 2), (-1, 2), (0, 5), (0, 2)):
        more = 0, *of, parts, size, None
        code = call("g6x_force_part_device", share.cluster, *targets, *more)
        assert code == (0 if of == (0, 2) else capi.CONSTANTS["G6X_E_ARGUMENT"])
    assert call(*merge) == capi.CONSTANTS["G6X_E_MISMATCH"]
