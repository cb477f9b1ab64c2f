"""Hermite integrations whose bodies live on a device. What is promised: the bits of the same
integration with bodies on the host and forces of the device, and files that either reads."""

import sys
import warnings

import numpy as np
import pytest

import backends
import fake_arrays
from fake_device import fail
from grape6py import Grape6, Hermite, archive, errors, fields, plummer, two_body, with_binaries
from grape6py._lib.library import ffi, lib
from grape6py.events import Encounter, Escape
from grape6py.integrators.hermite_arrays import HostArrays
from grape6py.integrators.hermite_device import DeviceArrays
from integrations import assert_same, evolve

pytestmark = pytest.mark.backends("cuda")
on_both = pytest.mark.backends("cuda gpu")
full = [pytest.mark.full]
passes = pytest.mark.parametrize("passes", [1, 2])  # by the fused step, and by operations
N = 200
GALAXY = fields.mwpotential2014(8000, 33.5)
ORBIT = [8000, 0, 0, 0, 33.5, 0]


def on_gpu(call, *arguments, **options):
    cluster = call(*arguments, **options)
    assert isinstance(cluster._blocks.bodies, DeviceArrays)
    return cluster


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
    assert_same(device, host)
    assert np.array_equal(device.vel, host.vel)
    assert device._blocks.clamped == host._blocks.clamped


def assert_close(device, host):
    """Sine, logarithm and power of a true device may differ in the last bit."""
    if not backends.has_gpu:
        assert_equal(device, host)
    for name in ("pos", "vel"):
        one, other = getattr(device, name), getattr(host, name)
        assert np.abs(one - other).max() < 1e-9 * np.abs(other).max()
    assert device.energy().total == pytest.approx(host.energy().total, rel=1e-9)
    # In a rotating frame the host takes it at corrected velocities.
    assert np.abs(device.acc - host.acc).max() < 1e-4 * np.abs(host.acc).max()


# ---- the same bits -----------------------------------------------------------------------
def bodies(n=150):
    """A third of them has no mass."""
    mass, pos, vel = plummer(3000 if backends.has_gpu else n, seed=3)
    return np.where(np.arange(len(mass)) % 3 == 1, 0.0, mass), pos, vel


def few_act(acting, n=90):
    mass, pos, vel = plummer(n, 1)
    mass[np.random.default_rng(1).permutation(n)[acting:]] = 0
    return mass, pos, vel


def close_pairs():
    """What the device leaves to the host is no fused step."""
    mass, pos, vel = plummer(N, 6)
    pos[:40:2], vel[:40:2] = pos[1:40:2] + 1e-13, vel[1:40:2]
    return mass, pos, vel


def changed(cluster):
    cluster.add([0.01, 0.0], np.ones((2, 3)), np.zeros((2, 3)))
    cluster.kick(1, vel=[1, 0, 0])  # without mass
    cluster.remove([3, 4])


NOTHING = lambda c, e: None  # noqa: E731
MANY = plummer(3000 if backends.has_gpu else 100, 1)
HELD = [1.0, 1.0], [[0, 0, 0], [1e-7, 0, 0]], np.zeros((2, 3))
CASES = {
    "blocks": (MANY, {"eps": 0.02}, (0.01, 0.1), {}),
    "passes": (MANY, {"eps": 0.02, "passes": 2, "precision": "double"}, (0.01, 0.1), {}),
    "shared": (MANY, {"dt": 1 / 37, "eps": 0.1}, (0.01, 0.1, 0.2), {}),
    "single": (MANY, {"eta": 0.1, "dt_max": 1 / 256, "precision": "single"}, (0.01, 0.1), {}),
    **{f"errors of forces {mode} {n}":  # shorten the same steps
       (plummer(n, 1), {"eta": 1e-4, "precision": mode, "field": field}, (2.0**-9,), {})
       for mode, n, field in (("grape", 20, fields.plummer(3.0, 2.0)), ("single", 200, None),
                              ("double", 200, None))},
    **{f"encounters of {acting}": (few_act(acting), {"dt_max": 1 / 16, "eps": 0.01}, (0.1,),
                                   {"events": [Encounter(0.1, NOTHING)]}) for acting in (0, 60)},
    **{f"{n} bodies": ((np.ones(n), np.zeros((n, 3)), np.ones((n, 3))), {}, (0.5,), {})
       for n in (0, 1)},
    "hard pairs": (with_binaries(plummer(12, 1), 0.7, seed=1, separation=(1e-3, 1e-2)),
                   {"field": fields.plummer(3.0, 2.0), "dt_max": 1 / 64}, (1 / 64,), {}),
    "two": (two_body(0.9), {"eta": 0.003}, (1.0,), {}),
    "held at the smallest step": (HELD, {"dt_max": 1.0}, (2.0**-24,), {}),
    "close pairs": (close_pairs(), {"eps": 1e-3}, (0.01,), {}),
    "massless": (bodies(), {"eps": 0.02}, (0.1,), {}),
    "merged": (bodies(), {}, (0.15,), {"events": [Encounter(0.05, "merge"), Escape(2.5)]}),
    "changed": (bodies(), {"eps": 0.02}, (0.07, changed, 0.1), {}),
}  # fmt: skip
LESS = "shared", "single", "errors of forces double 200", "two", "massless"


@on_both
@pytest.mark.parametrize("case", [pytest.param(c, marks=full * (c in LESS)) for c in CASES])
def test_the_bits_are_those_of_bodies_on_the_host(cupy, on_host, case):
    given, options, steps, watched = CASES[case]
    options = options | {"subsystems": False}  # which are integrated on the host
    device, host = (make(Hermite, *given, **options) for make in (on_gpu, on_host))
    for step in steps:
        for cluster in (device, host):
            with warnings.catch_warnings(record=True) as caught:
                step(cluster) if callable(step) else cluster.evolve(step, **watched)
            told = any("needs a step below" in str(w.message) for w in caught)
            assert told == case.startswith("held")
        assert_equal(device, host)
    assert device._blocks.clamped > 0 or not case.startswith("held")
    assert device._blocks.acting == np.count_nonzero(device.mass)
    assert [event[:3] for event in device.events] == [event[:3] for event in host.events]
    assert {e.kind for e in device.events} == {type(e).__name__.lower()
                                               for e in watched.get("events", ())}  # fmt: skip
    assert device.energy_change == pytest.approx(host.energy_change, rel=1e-12)


@on_both
@pytest.mark.parametrize("options", [
    {"field": fields.plummer(1, 1) + fields.miyamoto_nagai(1, 1, 0.2) + fields.logarithmic(1, 0.1)},
    {"field": fields.nfw(1, 1) + fields.power_law_cutoff(1, 1.8, 0.5), "passes": 2},
    {"field": fields.plummer(2, 1) + fields.rotation(0.3)},
    pytest.param({"field": GALAXY, "orbit": ORBIT}, marks=full),
    pytest.param({"field": lambda t, x, v: (-x, -v, (x * x).sum(axis=1) / 2)}, marks=full),
    {"field": lambda t, x, v: GALAXY(t, x, v), "orbit": ORBIT},
])  # fmt: skip
def test_a_field_is_that_of_the_host(cupy, on_host, options):
    device, host = (make(Hermite, *bodies(), eps=0.02, **options) for make in (on_gpu, on_host))
    for time in (0.05, 0.11):
        evolve((device, host), time)
        assert_close(device, host)


@on_both
def test_arrays_of_the_device_go_into_a_field(cupy):
    field = GALAXY + fields.rotation(0.1) + fields.point_mass(3)
    pos, vel = np.random.default_rng(1).normal(size=(2, 40, 3))
    there = field(0.0, cupy.asarray(pos), cupy.asarray(vel))
    for one, other in zip(there, field(0.0, pos, vel), strict=True):
        assert np.abs(one.get() - other).max() <= 1e-13 * np.abs(other).max()


@pytest.mark.parametrize("how", ["cupy", "both"])
def test_arrays_of_the_device_are_taken(cupy, how):
    """Also those that another library is still writing."""

    def late(array):
        return cupy.asarray(array) if how == "cupy" else fake_arrays.Late(cupy, array, how)

    given = on_gpu(Hermite, *map(late, plummer(N, 1)), eps=0.02)
    put = on_gpu(Hermite, *plummer(N, 1), eps=0.02)
    evolve((given, put), 0.1)
    assert_equal(given, put)


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


# ---- faults -----------------------------------------------------------------------------
@on_both
@passes
def test_a_step_that_ends_when_it_begins_is_an_error(cupy, on_host, passes):
    for make in (on_gpu, on_host):
        cluster = make(Hermite, *plummer(50, 6), eps=0.04, passes=passes)
        cluster.evolve(0.1)
        state = cluster._blocks.state()
        state["dt"][7] = 1e-30
        cluster._blocks.put(state)
        with pytest.raises(errors.ArgumentError, match="step of particle 7 ends when it begins"):
            cluster.evolve(0.2)


@passes
def test_row06_a_bad_j_particle_is_an_error(cupy, passes):
    cluster = on_gpu(Hermite, *plummer(50, 6), eps=0.04, passes=passes)
    cluster.evolve(0.1)
    nowhere = ffi.new("double[3]", [np.nan] * 3)
    id = cluster._blocks._board.cluster
    lib.g6_set_j_particle(id, 3, 3, 0.1, 1.0, 0.02, *[nowhere] * 5)
    with pytest.raises(errors.NotFiniteError, match="j particle at address 3"):
        cluster.evolve(0.2)


@pytest.mark.backends("auto")
@pytest.mark.parametrize("n", [1, 7, 20])
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


@pytest.mark.parametrize("n", [1, 12])
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
    evolve((cluster, whole), 0.0101)
    fail(2, for_ever=False)
    assert np.abs(cluster.pos - whole.pos).max() < 1e-9


# ---- the library's calls ---------------------------------------------------------------
@pytest.fixture
def session():
    with Grape6() as grape:
        yield grape._board.cluster


def given(n, /, **more):
    """A struct g6x_hermite whose arrays are NumPy's, and these."""
    arrays = {name: np.zeros((n, 3)) for name in "x v a j xi vi acc jerk".split()}
    arrays |= {name: np.zeros(n) for name in "mass t dt pot".split()}
    arrays["address"] = np.arange(n, dtype=np.int32)
    numbers = {"n": n, "eta": 0.02, "dtmin": 1e-9, "dtmax": 1.0}
    for name, value in more.items():
        (arrays if isinstance(value, np.ndarray) else numbers)[name] = value
    kinds = {1: "double *", 2: "double (*)[3]"}
    pointers = {
        name: ffi.cast("int *" if array.dtype == np.int32 else kinds[array.ndim], array.ctypes.data)
        for name, array in arrays.items()
    }
    return ffi.new("struct g6x_hermite *", pointers | numbers), arrays


@pytest.mark.parametrize("n", [1, 33, 8193, 70_001])
@pytest.mark.parametrize("levels", [1, 12])
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


def test_nonsense_is_refused(session):
    time, argument = ffi.new("double *"), lib.G6X_E_ARGUMENT
    following, predict, correct = (getattr(lib, f"g6x_hermite_{name}_device")
                                   for name in ("next", "predict", "correct"))  # fmt: skip
    good, _ = given(5)
    for wrong in ({"n": -1}, {"eta": 0.0}, {"dtmin": 2.0}, {"dtmax": np.inf}, {"dtmin": np.nan}):
        assert following(session, given(5, **wrong)[0], time, ffi.NULL) == argument
    for ni, when in ((-1, 0.0), (6, 0.0), (5, np.nan)):
        assert predict(session, good, ni, when, ffi.NULL) == argument
        assert correct(session, good, ni, when, 3, ffi.NULL) == argument
    lacking, _ = given(5)
    lacking.xi = ffi.NULL
    assert predict(session, lacking, 5, 0.0, ffi.NULL) == lib.G6X_E_NULL
    assert following(session, given(0)[0], time, ffi.NULL) == 0
    assert time[0] == np.inf
    assert predict(session, good, 0, 0.0, ffi.NULL) == 0
    assert correct(session, good, 0, 0.0, 3, ffi.NULL) == 0


def test_row08_a_body_that_flies_out_of_range_and_row06_a_mass_that_is_none(session):
    ones = {"t": np.zeros(3), "dt": np.ones(3)}
    h, _ = given(3, **ones, v=np.full((3, 3), 1e308), dtmax=1e10)
    assert lib.g6x_hermite_correct_device(session, h, 3, 1e5, 3, ffi.NULL) == lib.G6X_E_RANGE
    h, _ = given(3, **ones, mass=np.array([1.0, np.nan, 1.0]))
    assert lib.g6x_hermite_correct_device(session, h, 2, 1.0, 3, ffi.NULL) == lib.G6X_E_RANGE
    assert lib.g6x_hermite_correct_device(session, h, 1, 1.0, 3, ffi.NULL) == 0


def test_wrong_fields_are_refused_by_the_library():
    def code(n=1, time=0.0, **changes):
        field = ffi.new("struct g6x_field *", {"terms": 1})
        field.term[0].kind, field.term[0].p = lib.G6X_FIELD_NFW, [1.0, 1.0, 1.0]
        for name, value in changes.items():
            setattr(field.term[0] if name in ("kind", "p") else field, name, value)
        x, v, acc = (ffi.new("double[1][3]", [[1.0, 2.0, 3.0]]) for _ in range(3))
        return lib.g6x_field_add(field, n, time, x, v, acc, ffi.NULL, ffi.NULL)

    assert code() == 0
    orbit = ffi.new("double[2][13]", [[0.0] * 13, [1.0] * 13])
    wrong = [{"terms": 9}, {"terms": -1}, {"kind": 77}, {"p": [1.0, -1.0, 1.0]}, {"n": -1},
             {"p": [np.nan, 1.0, 1.0]}, {"omega": np.inf}, {"nodes": 1}, {"time": np.nan},
             {"nodes": 2, "orbit": orbit, "omega": 1.0}, {"nodes": 2, "orbit": orbit, "time": 3.0},
             {"kind": lib.G6X_FIELD_PLUMMER, "p": [1.0, -1.0, 0.0]},
             {"kind": lib.G6X_FIELD_MIYAMOTO_NAGAI, "p": [1.0, 1.0, 0.0]},
             {"kind": lib.G6X_FIELD_LOGARITHMIC, "p": [1.0, 1.0, 0.0]},
             {"kind": lib.G6X_FIELD_CUTOFF, "p": [1.0, 2.0, 1.0]}]  # fmt: skip
    assert all(code(**changes) == lib.G6X_E_ARGUMENT for changes in wrong)
    assert lib.g6x_field_origin(ffi.NULL, 0.0, ffi.NULL) == lib.G6X_E_NULL
