"""Several GPUs in one session: the bits are those of one, and a GPU that fails is left
out. On the stand-in of tests/c/fake_gpu.h, of which there are as many as GRAPE6_DEVICES names."""

import functools
import gc

import pytest

import capi
import fake_device
from grape6py import Grape6
from grape6py._lib import cluster

SCRIPT = """
import hashlib
import pytest
import fake_arrays
from fake_device import FakeGpu
from grape6py import Grape6, Hermite, Leapfrog, errors, plummer
from grape6py.cuda.tree import device_tree
N = 2200  # more than two blocks
MASS, POS, VEL = plummer(N, seed=5)
FAKE_GPU = ctypes.CDLL(os.environ["GRAPE6_TEST_FAKE_GPU"])
cupy = sys.modules["cupy"] = fake_arrays.Module()

def filled(precision):
    grape = Grape6(precision=precision)
    grape.set_particles(MASS, POS, VEL, acc=-POS)
    return grape

def digest(*forces):
    hashed = hashlib.sha256()
    for part in forces:
        for array in [*part[:5], *(part.neighbours or [])]:
            hashed.update(b"" if array is None else array.tobytes())
    return hashed.hexdigest()

def fail(call):
    FAKE_GPU.fake_gpu_fail(ctypes.c_long(call), 719, 0)
"""

# Steps of blocks and of all, with particles that move in between, lists, and a close pair.
STEPS = """
for mode in {modes!r}.split():
    MASS, POS, VEL = plummer(N, seed=5)
    with filled(mode) as grape:
        found, rng = [], np.random.default_rng(6)
        for step in range(2):
            found.append(grape.forces(nn=True, time=step / 64, eps=0.01 * (step % 2)))
            moved = rng.choice(N, 50, replace=False)
            grape.set_particles(MASS[moved], POS[moved] * 1.01, VEL[moved], address=moved,
                                time=step / 64)
            rows = np.arange(step, step + 90)
            found.append(grape.forces(POS[rows], VEL[rows], rows, nn=True, h=0.05))
        POS[2077] = POS[5] + 1e-15
        grape.set_particles(MASS, POS, VEL)
        found.append(grape.forces())  # rows are handed over while others are being summed
        found.append(grape.forces(nn=True))
        found.append(grape.forces(POS[:77], VEL[:77], np.arange(77), nn=True))
        print(grape.backend, mode, digest(*found), sep="; ")
"""


@pytest.fixture(scope="module")
def run(fake_gpu, library_of):
    """What a script prints, by lines, with the library that reads variables for tests."""
    settings = {"GRAPE6_TEST_FAKE_GPU": str(fake_gpu), "GRAPE6_BACKEND": "cuda",
                "GRAPE6_TEST_LIBRARY": str(library_of("cuda-tree")),
                "GRAPE6_TEST_GPU_THRESHOLD": "20000"}  # fmt: skip  # pairs; truly some ten millions

    @functools.cache
    def run(script, devices, **env):
        env = settings | {"GRAPE6_DEVICES": devices} | env
        return capi.run_python(SCRIPT + script, timeout=300, **env).stdout.splitlines()

    return run


@pytest.mark.parametrize(("modes", "devices", "env"), [
    ("grape", "0,1,2", {}), *(pytest.param(*case, marks=pytest.mark.full) for case in (
        ("double", "0,1,2", {}), ("grape", "0,1,2", {"GRAPE6_TEST_MERGES_EARLY": "1"}),
        ("grape", "0,1", {"GRAPE6_TEST_GPU_THRESHOLD": "10000000"}))),  # small calls
])  # fmt: skip
def test_bits_do_not_depend_on_the_number_of_devices(run, modes, devices, env):
    steps = STEPS.format(modes=modes)
    for line, one in zip(run(steps, devices, **env), run(steps, "0"), strict=True):
        assert line.split("; ")[1:] == one.split("; ")[1:]
        assert line.partition("; ")[0].endswith(f", {devices.count(',') + 1} of them")


def test_a_rank_of_mpi_takes_its_own_device(run):
    found = run("print(filled('grape').backend)", "0,1", SLURM_LOCALID="1")
    assert found == ["cuda stand-in for a GPU"]


SAME = """
# Partial sums, asked for once and twice, with a pair left to the host.
POS[77] = POS[5] + 1e-15
INDEX = np.arange(N, dtype=np.int32)
for mode in ("grape", "double", "single"):
    with filled(mode) as grape:
        forces, found = grape.forces(POS[:90], VEL[:90], INDEX[:90]), []
        for _ in range(2):
            words = Session.unopened(grape._board.cluster).partial(90)
            found.append(words.tobytes())
        assert found[0] == found[1]
        acc, jerk, pot = np.zeros((90, 3)), np.zeros((90, 3)), np.zeros(90)
        assert call("g6x_from_partial", 90, words, acc, jerk, pot) == 0
        assert np.array_equal(acc, forces.acc) and np.array_equal(pot, forces.pot)
        print(hashlib.sha256(found[0]).hexdigest())
# Lists are the first device's alone; what is asked for then is again that of all.
session = Session(5)
for i in range(N):
    session.put(i, i, MASS[i], POS[i], VEL[i])
arguments = N, POS, VEL, INDEX  # so many that nearest neighbours are not found unasked
for nj in (100, 101, N, N):  # the call of 101 has one device, and the lists searched for ahead
    assert session.first(nj, *arguments[1:], h2=0.5) == 0
    plain, _ = session.last(nj, *arguments[1:], nearest=False), nj == 100 and session.neighbours(3)
listed = session.neighbours(3)
found = session.last(*arguments)
assert np.array_equal(plain.acc, found.acc)
print(hashlib.sha256(found.bits() + found.nearest.tobytes() + repr(listed).encode()).hexdigest())
# Arrays of the first device: shared calls go by the host, with NaN rows, nearest neighbours, lists.
with filled("grape") as grape:
    number = grape._board.option("DEVICE")
    given = [cupy.on(number, a[:90]) for a in (POS, VEL, INDEX)]
    for more in (dict(nn=True), dict(h=0.05, eps=0.01), dict()):
        print(digest(grape.forces(*given, **more)))
    given[0].memory[3, 1] = np.nan
    try:
        grape.forces(*given)
    except errors.NotFiniteError as error:
        print(error)
# An integration is the first device's.
cluster = Hermite(MASS[:500], POS[:500], VEL[:500], eps=0.01)
cluster.evolve(1 / 256)
assert type(cluster._blocks.bodies).__name__ == "DeviceArrays"
print(cluster.steps, hashlib.sha256(cluster.pos.tobytes() + cluster.vel.tobytes()).hexdigest())
# No targets are no call to share, though the prediction alone would be worth it.
with filled("grape") as grape:
    none = cupy.on(number, np.zeros((0, 3)))
    print(len(grape.forces(np.zeros((0, 3))).pot), len(grape.forces(none).pot.memory))
# A host that keeps Python's lock (an extension of f2py's, say) is not held up.
library, out = ctypes.PyDLL(os.environ["GRAPE6_TEST_LIBRARY"]), Force.blank(90)
found = {name: function(library, name, SIGNATURES[name])
         for name in ("g6calc_firsthalf", "g6calc_lasthalf")}
zero3, zero, start = np.zeros((90, 3)), np.zeros(90), [session.cluster, N, 90, INDEX, POS, VEL]
for name, more in (("g6calc_firsthalf", [zero3, zero3, zero, 0.0, zero]),
                   ("g6calc_lasthalf", [0.0, zero, out.acc, out.jerk, out.pot])):
    assert found[name](*map(pointer, start + more)) == 0
print(np.array_equal(out.acc, session.force(N, POS[:90], VEL[:90], INDEX[:90]).acc))
# Leapfrogs of arrays compute where these lie, though sessions take turns of the devices.
with pytest.MonkeyPatch.context() as patch:
    cupy = fake_arrays.install(patch)
    patch.setattr(device_tree, "gpu_of", lambda device: FakeGpu(FAKE_GPU, cupy))
    for _ in range(3):
        arrays = (cupy.on(0, array[:200]) for array in (MASS, POS, VEL))
        print(Leapfrog(*arrays, backend="cuda", dt=0.1).pos.device.id)
"""


def test_three_devices_give_what_one_gives(run):
    found = run(SAME, "0")
    assert found == run(SAME, "0,1,2")
    assert [len(line.split()[-1]) for line in found].count(64) == 8
    assert found[-5:] == ["0 0", "True", "0", "0", "0"]


def test_row02_other_devices_go_on_and_follow_the_particles(run):
    """Whichever call of the driver fails, or use of a device, also before it has taken part: the
    forces are right, or the first device has failed."""
    outcomes = run("""
SOME = POS[-200:], VEL[-200:], np.arange(N - 200, N)

def uses(grape):
    yield digest(grape.forces(*SOME, nn=True, time=0.5))
    FAKE_GPU.fake_gpu_fail(ctypes.c_long(0), 0, 0)
    FAKE_GPU.fake_gpu_vanish(ctypes.c_long(0))
    grape.set_particles(100 * MASS[-300:], -POS[-300:], VEL[-300:], time=0.5,
                        address=np.arange(N - 300, N))
    yield digest(grape.forces(*SOME, nn=True, time=0.5))

with filled("grape") as grape:
    expected = [*uses(grape)]
for call in [*range(1, 60, 3), *range(-1, -16, -2)]:
    with filled("grape") as grape:
        fail(call) if call > 0 else FAKE_GPU.fake_gpu_vanish(ctypes.c_long(-call))
        try:
            assert [*uses(grape)] == expected
            print(grape.backend[-9:])
        except errors.BackendError as error:
            print("lost" if "not used any more" in str(error) else error)
        fail(0)
        FAKE_GPU.fake_gpu_vanish(ctypes.c_long(0))
""", "0,1,2")  # fmt: skip
    # how often one is lost depends on which thread calls
    assert set(outcomes) == {"2 of them", "3 of them", "lost"}


def test_auto_row02_a_shared_call_with_arrays_of_the_device(run):
    script = """
rows = np.arange(90, dtype=np.int32)
outcomes = set()
for call in range(1, 40, 3):
    with Grape6() as grape:
        grape._board.prepare_for(0, 0)
        number = grape._board.option("DEVICE")
        given = [cupy.on(number, a) for a in (POS[rows], VEL[rows], rows)]
        grape.set_particles(MASS, POS, VEL)
        fail(call)
        try:
            found = grape.forces(*given)
            outcomes.add("found")
            assert np.isfinite(found.acc.memory).all()
        except errors.BackendError as error:
            outcomes.add("failed")
            assert "fail" in str(error), error
        fail(0)
        assert np.isfinite(grape.forces(*given).acc.memory).all()
print(*sorted(outcomes))
"""
    assert run(script, "0,1,2", GRAPE6_BACKEND="auto") == ["failed found"]


@pytest.mark.backends("cuda")
def test_a_session_that_is_forgotten_while_another_opens_is_closed_after_that(monkeypatch):
    """Python's garbage collector finds it inside the call, which holds the library's locks."""
    find, waiting = fake_device.Device.kernels, []

    def kernels(self, *wanted):
        gc.collect()
        waiting.extend(cluster._forgotten)
        return find(self, *wanted)

    one = Grape6()
    number, circle = one._board.cluster, [one]
    circle.append(circle)
    gc.disable()
    del one, circle
    monkeypatch.setattr(fake_device.Device, "kernels", kernels)
    with Grape6():
        gc.enable()
        assert number in waiting
        assert number in cluster._released_ids
        assert not cluster._forgotten
