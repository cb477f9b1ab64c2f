"""Several GPUs in one session: the bits are those of one, and a GPU that fails is left
out. On the stand-in of tests/c/fake_gpu.h, of which there are as many as GRAPE6_DEVICES names.
"""

import pytest

import capi
import on_ranks

SCRIPT = """
import hashlib
from grape6py import Grape6, errors, plummer
N = 4200
MASS, POS, VEL = plummer(N, seed=5)
FAKE_GPU = ctypes.CDLL(os.environ["GRAPE6_TEST_FAKE_GPU"])

def filled(precision):
    grape = Grape6(backend="cuda", precision=precision)
    grape.set_particles(MASS, POS, VEL, acc=-POS)
    return grape

def digest(*forces):
    hashed = hashlib.sha256()
    for part in forces:
        for array in [*part[:5], *(part.neighbours or [])]:
            hashed.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()
"""

# Steps of blocks and of all, with particles that move in between, lists, and a close pair.
STEPS = """
found = []
with filled({mode!r}) as grape:
    print(grape.backend)
    rng = np.random.default_rng(6)
    for step in range(2):
        found.append(grape.forces(nn=True, time=step / 64, eps=0.01 * (step % 2)))
        moved = rng.choice(N, 50, replace=False)
        grape.set_particles(MASS[moved], POS[moved] * 1.01, VEL[moved], address=moved,
                            time=step / 64)
        rows = np.arange(step, step + 90)
        found.append(grape.forces(POS[rows], VEL[rows], rows, nn=True, h=0.05))
    for close in (False, True):
        if close:
            POS[4077] = POS[5] + 1e-15
        grape.set_particles(MASS, POS, VEL)
        found.append(grape.forces())  # rows are handed over while others are being summed
        found.append(grape.forces(nn=True))
        found.append(grape.forces(POS[:77], VEL[:77], np.arange(77), nn=True))
print(digest(*found))
"""


@pytest.fixture(scope="module")
def run(fake_gpu, library_of):
    """What a script prints, by lines, with the library that reads variables for tests."""
    made = {
        "GRAPE6_TEST_FAKE_GPU": str(fake_gpu),
        "GRAPE6_TEST_LIBRARY": str(library_of("cuda-tree")),
    }
    made["GRAPE6_TEST_GPU_THRESHOLD"] = "100000"  # pairs; truly some ten millions

    def run(script, devices, **env):
        env = made | {"GRAPE6_DEVICES": devices} | env
        return capi.run_python(SCRIPT + script, timeout=300, **env).stdout.split("\n")

    return run


@pytest.fixture(scope="module")
def on_one(run):
    return {mode: run(STEPS.format(mode=mode), "0")[1] for mode in capi.MODES}


def test_bits_do_not_depend_on_the_number_of_devices(run, on_one, mode):
    name, bits, _ = run(STEPS.format(mode=mode), "0,1,2,3,4")
    assert name.endswith(", 5 of them")
    assert bits == on_one[mode]


def test_bits_of_rows_that_are_merged_while_devices_work(run, on_one):
    found = run(STEPS.format(mode="grape"), "0,1,2", GRAPE6_TEST_MERGES_EARLY="1")
    assert found[1] == on_one["grape"]


def test_small_calls_are_one_devices(run, on_one):
    name, bits, _ = run(STEPS.format(mode="grape"), "0,1", GRAPE6_TEST_GPU_THRESHOLD="10000000")
    assert name.endswith("2 of them")
    assert bits == on_one["grape"]


def test_a_rank_of_mpi_takes_its_own_device(run):
    name, _ = run("print(filled('grape').backend)", "0,1", SLURM_LOCALID="1")
    assert name == "cuda stand-in for a GPU"


def test_row02_other_devices_go_on(run):
    """Whichever driver call fails: the forces are right, or the first device has failed."""
    outcomes = run("""
SOME = POS[:500], VEL[:500], np.arange(500)
with filled("grape") as grape:
    expected = digest(grape.forces(*SOME, nn=True, time=0.5))
for call in range(1, 60):
    with filled("grape") as grape:
        FAKE_GPU.fake_gpu_fail(ctypes.c_long(call), 719, 0)
        try:
            found = digest(grape.forces(*SOME, nn=True, time=0.5))
            print(grape.backend[-9:], found == expected)
        except errors.BackendError as error:
            print("lost" if "not used any more" in str(error) else error)
        FAKE_GPU.fake_gpu_fail(ctypes.c_long(0), 0, 0)
""", "0,1,2")  # fmt: skip
    assert set(outcomes) <= {"2 of them True", "3 of them True", "lost", ""}
    assert outcomes.count("2 of them True") > 3
    assert "lost" in outcomes  # how often depends on which thread calls first
    assert outcomes.count("3 of them True") > 3  # there are not that many calls


def test_partial_sums_are_those_of_all_devices(run, mode):
    """Asked for once or twice, before the results or after, and with a pair left to the host."""
    script = f"""
POS[77] = POS[5] + 1e-15
INDEX = np.arange(N, dtype=np.int32)
with filled({mode!r}) as grape:
    grape.set_particles(MASS, POS, VEL)
    forces, found = grape.forces(POS[:90], VEL[:90], INDEX[:90]), []
    cluster = grape._board.cluster
    for _ in range(2):
        words = np.zeros((90, CONSTANTS["G6X_PARTIAL_WORDS"]), np.int64)
        assert call("g6x_get_partial", cluster, 90, words) == 0
        found.append(words.tobytes())
    assert found[0] == found[1]
    acc, jerk, pot = np.zeros((90, 3)), np.zeros((90, 3)), np.zeros(90)
    assert call("g6x_from_partial", 90, words, acc, jerk, pot) == 0
    assert np.array_equal(acc, forces.acc) and np.array_equal(pot, forces.pot)
    print(hashlib.sha256(found[0]).hexdigest())
"""
    assert run(script, "0") == run(script, "0,1,2")


def test_a_host_that_keeps_pythons_lock_is_not_held_up(run):
    """An extension module (f2py's, say) that calls the library and does not release the lock."""
    script = """
library = ctypes.PyDLL(os.environ["GRAPE6_TEST_LIBRARY"])
def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)
number = ctypes.c_double
assert library.g6_open(5) == 0
zero = np.zeros(3)
for i in range(N):
    library.g6_set_j_particle(5, i, i, number(0), number(0), number(MASS[i]), pointer(zero),
                              pointer(zero), pointer(zero), pointer(VEL[i]), pointer(POS[i]))
index, h2 = np.arange(90, dtype=np.int32), np.zeros(90)
acc, jerk, pot = np.zeros((90, 3)), np.zeros((90, 3)), np.zeros(90)
start = [5, N, 90, pointer(index), pointer(POS), pointer(VEL)]
assert library.g6calc_firsthalf(*start, pointer(acc), pointer(jerk), pointer(pot), number(0),
                                pointer(h2)) == 0
assert library.g6calc_lasthalf(*start, number(0), pointer(h2), pointer(acc), pointer(jerk),
                               pointer(pot)) == 0
with filled("grape") as grape:
    print(np.array_equal(acc, grape.forces(POS[:90], VEL[:90], index).acc))
"""
    assert run(script, "0,1", GRAPE6_BACKEND="cuda")[0] == "True"


def test_nearest_neighbours_after_the_lists_of_a_call_without_them(run):
    """The lists are the first device's alone; what is asked for then is again that of all."""
    script = """
session = Session(5)
for i in range(N):
    session.put(i, i, MASS[i], POS[i], VEL[i])
rows = slice(0, 3000)  # so many that nearest neighbours are not found unasked
arguments = N, POS[rows], VEL[rows], np.arange(3000, dtype=np.int32)
for _ in range(2):
    assert session.first(*arguments, h2=0.01) == 0
    plain = session.last(*arguments, nearest=False)
listed = session.neighbours(3)
found = session.last(*arguments)
assert np.array_equal(plain.acc, found.acc)
print(hashlib.sha256(found.bits() + found.nearest.tobytes() + repr(listed).encode()).hexdigest())
"""
    on_one, on_three = (run(script, d, GRAPE6_BACKEND="cuda") for d in ("0", "0,1,2"))
    assert on_one == on_three
    assert len(on_one[0]) == 64


def test_row02_devices_that_are_left_follow_the_particles(run):
    """Also if the one that failed had not yet taken part."""
    outcomes = run("""
SOME = POS[-500:], VEL[-500:], np.arange(N - 500, N)
for use in range(1, 16):
    with filled("grape") as grape, Grape6(backend="cpu") as cpu:
        FAKE_GPU.fake_gpu_vanish(ctypes.c_long(use))
        try:
            grape.forces(*SOME, nn=True, time=0.5)
        except errors.BackendError:
            continue
        finally:
            FAKE_GPU.fake_gpu_vanish(ctypes.c_long(0))
        cpu.set_particles(MASS, POS, VEL, acc=-POS)
        for one in (grape, cpu):
            one.set_particles(100 * MASS[-300:], -POS[-300:], VEL[-300:], time=0.5,
                              address=np.arange(N - 300, N))
        found, expected = (one.forces(*SOME, nn=True, time=0.5) for one in (grape, cpu))
        error = np.abs(found.pot / expected.pot - 1).max()
        print(grape.backend[-9:], bool(error < 1e-5))
""", "0,1,2")  # fmt: skip
    assert set(outcomes) == {"2 of them True", "3 of them True", ""}


ARRAYS = """
import fake_arrays
cupy = sys.modules["cupy"] = fake_arrays.Module()
"""


def test_arrays_of_the_first_device(run):
    """Calls that are shared go by the host, with NaN rows, nearest neighbours and lists."""
    script = f"""{ARRAYS}
rows = np.arange(90, dtype=np.int32)
with filled("grape") as grape:
    number = grape._board.option("DEVICE")
    given = [cupy.on(number, a) for a in (POS[rows], VEL[rows], rows)]
    for more in (dict(nn=True), dict(h=0.05, eps=0.01), dict()):
        found = grape.forces(*given, **more)
        arrays = [a.memory for a in found[:5] if a is not None]
        lists = [a.memory for a in found.neighbours or []]
        print(hashlib.sha256(b"".join(a.tobytes() for a in arrays + lists)).hexdigest())
    given[0].memory[3, 1] = np.nan
    try:
        grape.forces(*given)
    except errors.NotFiniteError as error:
        print(error)
"""
    assert run(script, "0") == run(script, "0,1,2")


def test_bodies_of_an_integration_are_on_the_first_device(run):
    script = f"""{ARRAYS}
from grape6py import Hermite
cluster = Hermite(*plummer(2500, seed=3), eps=0.01, backend="cuda")
cluster.evolve(1 / 256)
assert type(cluster._blocks.bodies).__name__ == "DeviceArrays"
print(cluster.steps, hashlib.sha256(cluster.pos.tobytes() + cluster.vel.tobytes()).hexdigest())
"""
    assert run(script, "0") == run(script, "0,1,2")


def test_ranks_of_mpi_have_all_bodies_on_their_devices(run, fake_gpu, library_of):
    """A run, a look at all bodies, a change, a field as function, an event, and a stop."""
    script = f"""{ARRAYS}
from mpi4py import MPI
from grape6py import Hermite
from grape6py.events import Escape
comm = MPI.COMM_WORLD if len(sys.argv) > 1 else None
rank = comm.rank if comm else 0
cluster = Hermite(*plummer(1500, seed=3), eps=0.01, backend="cuda", comm=comm)
assert type(cluster._blocks.bodies).__name__ == "DeviceArrays"
cluster.evolve(1 / 256)
seen = [cluster.pos, cluster.energy().total]
cluster.kick([3, 7], [[0.1, 0, 0], [0, 0.1, 0]])
cluster.evolve(1 / 128, events=[Escape(5.0)])
seen += [cluster.steps, cluster.n, cluster.pos, cluster.vel]
def stops(cluster):
    if rank == 0:
        cluster.stop()
cluster.evolve(1, stops, every=1 / 512)
seen += [cluster.time]
pull = lambda time, pos, vel: (-0.1 * pos, -0.1 * vel, 0 * pos[:, 0])
other = Hermite(*plummer(300, seed=4), eps=0.01, field=pull, backend="cuda", comm=comm)
other.evolve(1 / 64)
seen += [other.pos, other.steps]
if rank == 0:
    print(hashlib.sha256(b"".join(np.asarray(a).tobytes() for a in seen)).hexdigest())
"""
    alone = run(script, "0,1")[0]
    environment = {"GRAPE6_TEST_FAKE_GPU": str(fake_gpu), "GRAPE6_DEVICES": "0,1",
                   "GRAPE6_TEST_LIBRARY": str(library_of("cuda-tree"))}  # fmt: skip
    done = on_ranks.run(2, "-c", capi.PRELUDE + SCRIPT + script, "ranks", environment=environment)
    assert done.stdout.split() == [alone], done.stderr


def test_auto_row02_a_shared_call_with_arrays_of_the_device(run):
    script = f"""{ARRAYS}
rows = np.arange(90, dtype=np.int32)
outcomes = set()
for call in range(1, 40):
    with Grape6() as grape:
        grape._board.prepare_for(0, 0)
        number = grape._board.option("DEVICE")
        given = [cupy.on(number, a) for a in (POS[rows], VEL[rows], rows)]
        grape.set_particles(MASS, POS, VEL)
        FAKE_GPU.fake_gpu_fail(ctypes.c_long(call), 719, 0)
        try:
            found = grape.forces(*given)
            outcomes.add("found")
            assert np.isfinite(found.acc.memory).all()
        except errors.BackendError as error:
            outcomes.add("failed")
            assert "fail" in str(error), error
        FAKE_GPU.fake_gpu_fail(ctypes.c_long(0), 0, 0)
        assert np.isfinite(grape.forces(*given).acc.memory).all()
print(*sorted(outcomes))
"""
    assert run(script, "0,1,2", GRAPE6_BACKEND="auto")[0] == "failed found"


def test_no_targets_are_no_call_to_share(run):
    """Though the prediction of many particles alone would be worth it."""
    script = f"""{ARRAYS}
with filled("grape") as grape:
    number = grape._board.option("DEVICE")
    none = cupy.on(number, np.zeros((0, 3)))
    print(len(grape.forces(np.zeros((0, 3))).pot), len(grape.forces(none).pot.memory))
"""
    assert run(script, "0,1", GRAPE6_TEST_GPU_THRESHOLD="1000")[0] == "0 0"


def test_leapfrogs_of_arrays_compute_where_these_lie(run):
    """Though sessions take turns of the devices."""
    script = """
import fake_arrays
import pytest
from grape6py import Leapfrog
from grape6py.cuda.tree import device_tree
from fake_device import FakeGpu
patch = pytest.MonkeyPatch()
cupy = fake_arrays.install(patch)
patch.setattr(device_tree, "gpu_of", lambda device: FakeGpu(FAKE_GPU, cupy))
made = [Leapfrog(*(cupy.on(0, array[:200]) for array in (MASS, POS, VEL)), backend="cuda", dt=0.1)
        for _ in range(3)]
print(*(galaxy.pos.device.id for galaxy in made))
"""
    assert run(script, "0,1") == ["0 0 0", ""]


def test_a_session_that_is_forgotten_while_another_opens_is_closed_after_that(run):
    """Python's garbage collector finds it inside the call, which holds the library's locks."""
    lines = run("""
import fake_device, gc
from grape6py._lib import cluster
found = fake_device.Device.kernels
def kernels(self, *wanted):
    gc.collect()
    print(cluster._forgotten)
    return found(self, *wanted)
gc.disable()
one = filled("grape")
number, circle = one._board.cluster, [one]
circle.append(circle)
del one, circle
fake_device.Device.kernels = kernels
with filled("double") as other:
    print(other.forces().pot.max() < 0, number in cluster._released_ids, cluster._forgotten)
""", "0")  # fmt: skip
    assert (lines[0], lines[-2]) == ("deque([1000000])", "True True deque([])")
