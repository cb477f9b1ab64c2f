"""Hermite integrations whose bodies live on a device. What is promised: the bits of the same
integration with bodies on the host and forces of the device, and files that either reads.
"""

import ctypes
import sys

import numpy as np
import pytest

import backends
import fake_arrays
from fake_device import driver, fail
from grape6py import Grape6, Hermite, archive, errors, fields, plummer, two_body
from grape6py._lib.library import ffi, lib
from grape6py.events import Encounter
from grape6py.integrators import blocks
from grape6py.integrators.hermite_arrays import HostArrays
from grape6py.integrators.hermite_device import DeviceArrays

pytestmark = pytest.mark.backends("cuda")

N = 200


def on_gpu(call, *arguments, **options):
    cluster = call(*arguments, **options)
    assert isinstance(cluster._blocks.bodies, DeviceArrays)
    return cluster


def calls_of_driver():
    """Letters of what was asked of the fake driver since the last time: see fake_gpu.cc."""
    call = driver().fake_gpu_calls
    call.restype = ctypes.c_char_p
    return call().decode()


@pytest.fixture
def on_host(cupy, monkeypatch):
    """Makes integrations with bodies on the host."""

    def make(call, *arguments, **options):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "cupy", None)
            cluster = call(*arguments, **options)
        assert type(cluster._blocks.bodies) is HostArrays
        return cluster

    return make


def assert_equal(device, host):
    for name, values in host.state().items():
        assert np.array_equal(device.state()[name], values), name
    assert np.array_equal(device.pos, host.pos)
    assert np.array_equal(device.vel, host.vel)
    for name in ("time", "steps", "blocks"):
        assert getattr(device, name) == getattr(host, name)
    assert device._blocks.clamped == host._blocks.clamped


@pytest.mark.backends("cuda gpu")
@pytest.mark.parametrize(
    "options",
    [{"eps": 0.02}, {"eps": 0.02, "passes": 2, "precision": "double"}, {"dt": 1 / 37, "eps": 0.1},
     {"eta": 0.1, "dt_max": 1 / 256, "precision": "single"}],
)  # fmt: skip
def test_the_bits_are_those_of_bodies_on_the_host(cupy, on_host, options):
    bodies = plummer(3000 if backends.has_gpu else N, 1)
    device, host = (make(Hermite, *bodies, **options) for make in (on_gpu, on_host))
    for time in (0.01, 0.1, 0.2):
        for cluster in (device, host):
            cluster.evolve(time)
        assert_equal(device, host)


@pytest.mark.backends("cuda gpu")
@pytest.mark.parametrize("precision", ["grape", "single", "double"])
@pytest.mark.parametrize("field", [None, fields.plummer(3.0, 2.0)])
@pytest.mark.parametrize("n", [20, 200])
def test_errors_of_forces_shorten_the_same_steps_as_on_the_host(cupy, on_host, precision, field, n):
    device, host = (
        make(Hermite, *plummer(n, 1), eta=1e-4, precision=precision, field=field)
        for make in (on_gpu, on_host)
    )
    for cluster in (device, host):
        cluster.evolve(2.0**-9)
    assert_equal(device, host)


@pytest.mark.backends("cuda gpu")
@pytest.mark.parametrize("acting", [0, 1, 60])
def test_encounters_are_those_of_the_host(cupy, on_host, acting):
    mass, pos, vel = plummer(90, 1)
    mass[np.random.default_rng(1).permutation(90)[acting:]] = 0
    found = []
    for place in (on_gpu, on_host):
        cluster = place(Hermite, mass, pos, vel, dt_max=1 / 16, eps=0.01)
        cluster.evolve(0.1, events=[Encounter(0.1, lambda c, e: None)])
        found.append(cluster.events)
    assert len(found[0]) > 3
    assert found[0] == found[1]


@pytest.mark.parametrize("how", ["cupy", "dlpack", "both", "interface"])
def test_arrays_of_the_device_are_taken(cupy, how):
    """Also those that another library is still writing."""

    def late(array):
        return cupy.asarray(array) if how == "cupy" else fake_arrays.Late(cupy, array, how)

    given = on_gpu(Hermite, *map(late, plummer(N, 1)), eps=0.02)
    put = on_gpu(Hermite, *plummer(N, 1), eps=0.02)
    for cluster in (given, put):
        cluster.evolve(0.1)
    assert_equal(given, put)


def test_few_bodies_and_none(cupy, on_host):
    device, host = (make(Hermite, *two_body(0.9), eta=0.003) for make in (on_gpu, on_host))
    for cluster in (device, host):
        cluster.evolve(1.0)
    assert_equal(device, host)
    for n in (0, 1):
        few = on_gpu(Hermite, np.ones(n), np.zeros((n, 3)), np.ones((n, 3)))
        few.evolve(0.5)
        assert np.array_equal(few.pos, np.full((n, 3), 0.5))


def test_a_body_held_at_the_smallest_step_is_told(cupy, on_host):
    bodies = [1.0, 1.0], [[0, 0, 0], [1e-7, 0, 0]], np.zeros((2, 3))
    clusters = [make(Hermite, *bodies, dt_max=1.0) for make in (on_gpu, on_host)]
    for cluster in clusters:
        with pytest.warns(errors.Grape6Warning, match="needs a step below"):
            cluster.evolve(2.0**-24)
    assert clusters[0]._blocks.clamped == clusters[1]._blocks.clamped > 0


def test_files_are_read_by_either(cupy, on_host, tmp_path):
    device, host = (make(Hermite, *plummer(N, 2), eps=0.02) for make in (on_gpu, on_host))
    for name, cluster in (("device", device), ("host", host)):
        cluster.evolve(0.05)
        cluster.save(tmp_path / f"{name}.h5")
    host.evolve(0.15)
    for name in ("device", "host"):
        for make in (on_gpu, on_host):
            cluster = make(archive.restore, tmp_path / f"{name}.h5")
            cluster.evolve(0.15)
            assert_equal(cluster, host)


@pytest.mark.parametrize("passes", [1, 2])
def test_an_interruption_between_two_calls_does_no_harm(cupy, monkeypatch, passes):
    broken, whole = (on_gpu(Hermite, *plummer(100, 6), eps=0.04, passes=passes) for _ in range(2))
    done, calls = broken._blocks.advance, []
    monkeypatch.setattr(blocks, "_SECONDS", 1e-9)

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        moved = done(*arguments, **options)
        if len(calls) == 11:
            raise KeyboardInterrupt
        return moved

    monkeypatch.setattr(broken._blocks, "advance", interrupted)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            broken.evolve(0.1)
    broken.evolve(0.1)
    whole.evolve(0.1)
    assert np.array_equal(broken.pos, whole.pos)
    assert np.array_equal(broken.state()["dt"], whole.state()["dt"])
    assert broken.blocks == whole.blocks


def test_a_block_of_few_bodies_takes_two_launches_or_three_and_no_copy(cupy):
    cluster = on_gpu(Hermite, *plummer(N, 6), eps=0.04, precision="grape")
    cluster.evolve(0.01)
    calls_of_driver()
    before = cluster.blocks
    cluster.evolve(0.1)
    calls, blocks = calls_of_driver(), cluster.blocks - before
    assert blocks > 30
    assert 2 * blocks <= calls.count("l") <= 2.5 * blocks  # some predict by a launch of their own
    assert not set(calls) & set("io")


@pytest.mark.backends("cuda gpu")
def test_close_pairs_are_summed_as_ever(cupy, on_host):
    """What the device leaves to the host is no block in turn."""
    mass, pos, vel = plummer(N, 6)
    pos[:40:2] = pos[1:40:2] + 1e-13
    vel[:40:2] = vel[1:40:2]
    clusters = [make(Hermite, mass, pos, vel, eps=1e-3) for make in (on_gpu, on_host)]
    for cluster in clusters:
        cluster.evolve(0.02)
    assert_equal(*clusters)


@pytest.mark.backends("cuda gpu")
@pytest.mark.parametrize("passes", [1, 2])  # block after block in turn, and by parts
@pytest.mark.parametrize("dt", [0.0, 1e-30])
def test_a_step_that_ends_when_it_begins_is_an_error(cupy, on_host, passes, dt):
    for make in (on_gpu, on_host):
        cluster = make(Hermite, *plummer(50, 6), eps=0.04, passes=passes)
        cluster.evolve(0.1)
        state = cluster._blocks.state()
        state["dt"][7] = dt
        cluster._blocks.put(state)
        with pytest.raises(errors.ArgumentError, match="step of particle 7 ends when it begins"):
            cluster.evolve(0.2)


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_step_without_end_is_an_error(cupy, passes, value):
    cluster = on_gpu(Hermite, *plummer(50, 6), eps=0.04, passes=passes)
    with cluster._blocks.bodies.using():
        cluster._blocks.bodies.own["dt"][7] = value
    with pytest.raises(errors.ArgumentError, match="step of particle 7 ends when it begins, or t"):
        cluster.evolve(0.2)


@pytest.mark.parametrize("passes", [1, 2])
def test_row06_a_bad_j_particle_is_an_error(cupy, passes):
    cluster = on_gpu(Hermite, *plummer(50, 6), eps=0.04, passes=passes)
    cluster.evolve(0.1)
    nowhere = ffi.new("double[3]", [np.nan] * 3)
    id = cluster._blocks._board.cluster
    lib.g6_set_j_particle(id, 3, 3, 0.1, 1.0, 0.02, *[nowhere] * 5)
    with pytest.raises(errors.NotFiniteError, match="j particle at address 3"):
        cluster.evolve(0.2)


@pytest.mark.backends("cuda gpu")
def test_a_call_of_the_host_is_over_when_an_integration_begins(cupy):
    """Also if no block ends in time."""
    cluster = on_gpu(Hermite, *plummer(50, 6), eps=0.04)
    cluster.evolve(0.1)
    board = cluster._blocks._board
    index, nobody = np.arange(50, dtype=np.int32), np.full(50, -1.0)
    board.forces(50, index, cluster.pos, cluster.vel, 1e-3, nobody, nn=False, lists=False)
    cluster._blocks.advance(cluster.time, None)
    with pytest.raises(errors.Grape6Error, match="without a force call"):
        board.lists(50)


# ---- GPUs that fail -------------------------------------------------------------------


@pytest.mark.backends("auto")
@pytest.mark.parametrize("n", [1, 3, 4, 7, 10, 12, 15, 18, 20, 50])
def test_auto_row02_the_integration_goes_on_with_the_cpu(cupy, n):
    cluster, whole = (on_gpu(Hermite, *plummer(100, 3), eps=0.04) for _ in range(2))
    whole.evolve(0.1)
    cluster.evolve(0.02)
    fail(n, for_ever=False)
    cluster.evolve(0.1)
    assert type(cluster._blocks.bodies) is HostArrays
    assert cluster.backend.startswith("cpu ")
    assert cluster.time == 0.1
    assert np.abs(cluster.pos - whole.pos).max() < 1e-6
    assert abs(cluster.steps - whole.steps) < 100


@pytest.mark.parametrize("n", [1, 4, 12])
def test_row02_a_gpu_that_fails(cupy, n):
    cluster = on_gpu(Hermite, *plummer(100, 3), eps=0.04)
    fail(n, for_ever=False)
    with pytest.raises(errors.BackendError, match="is not used any more"):
        cluster.evolve(0.1)
    assert (cluster.state()["t"] < 0.1).all()


@pytest.mark.backends("auto")
def test_auto_row02_bodies_that_cannot_be_read_any_more(cupy, monkeypatch):
    cluster = on_gpu(Hermite, *plummer(100, 3), eps=0.04)

    def refused(self, array):
        raise RuntimeError("cudaErrorIllegalAddress")

    monkeypatch.setattr(fake_arrays.Module, "asnumpy", refused)
    fail(5, for_ever=False)
    with pytest.raises(errors.BackendError, match=r"cannot be read any more .* last file"):
        cluster.evolve(0.1)


@pytest.mark.backends("auto")
def test_auto_row02_a_look_at_the_bodies(cupy):
    cluster, whole = (on_gpu(Hermite, *plummer(100, 3), eps=0.04) for _ in range(2))
    for one in (cluster, whole):
        one.evolve(0.0101)
    fail(2, for_ever=False)
    assert np.abs(cluster.pos - whole.pos).max() < 1e-9


# ---- the library's calls ---------------------------------------------------------------


@pytest.fixture
def session():
    with Grape6() as grape:
        yield grape._board.cluster


def given(n, /, **more):
    """A struct g6x_hermite whose arrays are NumPy's, and these."""
    shapes = dict.fromkeys("x v a j xi vi acc jerk".split(), (n, 3))
    shapes |= dict.fromkeys("mass t dt pot".split(), (n,))
    arrays = {name: np.zeros(shape) for name, shape in shapes.items()}
    arrays["address"] = np.zeros(n, np.int32)
    arrays |= {k: v for k, v in more.items() if isinstance(v, np.ndarray)}
    numbers = {"n": n, "eta": 0.02, "dtmin": 1e-9, "dtmax": 1.0}
    numbers |= {k: v for k, v in more.items() if not isinstance(v, np.ndarray)}
    kinds = {1: "double *", 2: "double (*)[3]"}
    pointers = {
        name: ffi.cast("int *" if array.dtype == np.int32 else kinds[array.ndim], array.ctypes.data)
        for name, array in arrays.items()
    }
    return ffi.new("struct g6x_hermite *", pointers | numbers), arrays


@pytest.mark.parametrize("n", [1, 31, 32, 33, 255, 8192, 8193, 70_001])
@pytest.mark.parametrize("levels", [1, 3, 12])
def test_the_next_block_is_all_whose_steps_end_first(session, n, levels):
    rng = np.random.default_rng(n + levels)
    dt = 2.0 ** -rng.integers(1, levels + 1, n)
    t = np.where(rng.random(n) < 0.5, 0.0, 0.5 - dt)
    h, arrays = given(n, t=t, dt=dt)
    time = ffi.new("double *")
    count = lib.g6x_hermite_next_device(session, h, time, ffi.NULL)
    expected = np.flatnonzero(t + dt == (t + dt).min())
    assert time[0] == (t + dt).min()
    assert np.array_equal(arrays["address"][:count], expected)
    assert count == len(expected)


def test_nonsense_is_refused(session):
    time, argument, null = ffi.new("double *"), lib.G6X_E_ARGUMENT, lib.G6X_E_NULL
    following, predict, correct = (
        lib.g6x_hermite_next_device,
        lib.g6x_hermite_predict_device,
        lib.g6x_hermite_correct_device,
    )
    good, _ = given(5)
    assert following(session, ffi.NULL, time, ffi.NULL) == null
    assert following(session, good, ffi.NULL, ffi.NULL) == null
    for wrong in ({"n": -1}, {"eta": 0.0}, {"dtmin": 2.0}, {"dtmax": np.inf}, {"dtmin": np.nan}):
        assert following(session, given(5, **wrong)[0], time, ffi.NULL) == argument
    for ni, when in ((-1, 0.0), (6, 0.0), (5, np.nan)):
        assert predict(session, good, ni, when, ffi.NULL) == argument
        assert correct(session, good, ni, when, 3, ffi.NULL) == argument
    lacking, _ = given(5)
    lacking.xi = ffi.NULL
    assert predict(session, lacking, 5, 0.0, ffi.NULL) == null
    assert following(session, given(0)[0], time, ffi.NULL) == 0
    assert time[0] == np.inf
    assert predict(session, good, 0, 0.0, ffi.NULL) == 0
    assert correct(session, good, 0, 0.0, 3, ffi.NULL) == 0


def test_row08_a_body_that_flies_out_of_range(session):
    n = 3
    h, arrays = given(n, t=np.zeros(n), dt=np.ones(n), v=np.full((n, 3), 1e308), dtmax=1e10)
    arrays["address"][:] = range(n)
    assert lib.g6x_hermite_correct_device(session, h, n, 1e5, 3, ffi.NULL) == lib.G6X_E_RANGE


def test_row06_a_mass_that_is_none(session):
    h, arrays = given(2, t=np.zeros(2), dt=np.ones(2), mass=np.array([1.0, np.nan]))
    arrays["address"][:] = range(2)
    assert lib.g6x_hermite_correct_device(session, h, 2, 1.0, 3, ffi.NULL) == lib.G6X_E_RANGE
    assert lib.g6x_hermite_correct_device(session, h, 1, 1.0, 3, ffi.NULL) == 0
