"""Arrays of a CUDA device on the card of tests/c/card.h; test_device_arrays.py runs these tests in
processes of their own, with that backend: pytest does not collect them by itself.

What is promised: the bits of the same call with NumPy's arrays, and the same errors.
"""

import ctypes
import itertools
import os

import numpy as np
import pytest

import capi
import fake_arrays
from grape6py import Grape6, errors, plummer
from grape6py.cuda import standin

N = 1500
MASS, POS, VEL = plummer(N, seed=11)
RNG = np.random.default_rng(12)
ACC, JERK, SNAP = (RNG.standard_normal((N, 3)) for _ in range(3))
TIME = RNG.random(N) / 64
CARD = ctypes.CDLL(os.environ["GRAPE6_TEST_CARD"])
NAMES = ("acc", "jerk", "pot", "nearest", "distance")


pytestmark = pytest.mark.filterwarnings("ignore:.* pairs of different particles at one place")


@pytest.fixture(autouse=True)
def sound():
    """After each test the card works again."""
    yield
    CARD.card_fail(ctypes.c_long(0), 0, 0)
    CARD.card_stream(None, None, 0)


@pytest.fixture
def cupy(monkeypatch):
    return fake_arrays.install(monkeypatch)


@pytest.fixture
def pair():
    """Makes two sessions: one for a device's arrays, one for NumPy's."""
    made = []

    def make(**options):
        made.extend([Grape6(**options), Grape6(**options)])
        return made[-2:]

    yield make
    for session in made:
        session.close()


def assert_same(found, expected):
    """All results are a device's arrays with these bits."""
    for name in NAMES:
        ours, theirs = getattr(found, name), getattr(expected, name)
        if theirs is None:
            assert ours is None
            continue
        assert isinstance(ours, fake_arrays.Array), name
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        assert ours.memory.tobytes() == theirs.tobytes(), name
    assert (found.neighbours is None) == (expected.neighbours is None)
    for ours, theirs in zip(found.neighbours or [], expected.neighbours or [], strict=True):
        assert ours.dtype == np.int32
        assert np.array_equal(ours.memory, theirs)


def fill(cupy, device, host, **more):
    """The same particles in both."""
    given = {"mass": MASS, "pos": POS, "vel": VEL, **more}
    host.set_particles(**given)
    device.set_particles(
        **{name: cupy.on(0, v) if isinstance(v, np.ndarray) else v for name, v in given.items()}
    )


def compare(cupy, device, host, rows=None, **call):
    """One force call in both: on the particles themselves, or on some targets."""
    targets = {}
    if rows is not None:
        targets = {"pos": POS[rows] + 0.01, "vel": VEL[rows], "index": np.asarray(rows, np.int32)}
    expected = host.forces(**targets, **call)
    found = device.forces(**{k: cupy.on(0, v) for k, v in targets.items()}, **call)
    assert_same(found, expected)
    return expected


# ---- equal bits ------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(capi.MODES))
@pytest.mark.parametrize("eps", [0.0, 1e-2])
def test_bits_are_those_of_numpys_arrays(cupy, pair, mode, eps):
    device, host = pair(precision=mode)
    fill(cupy, device, host, acc=ACC, jerk=JERK, snap=SNAP, time=TIME)
    compare(cupy, device, host, eps=eps, nn=True, time=0.03)
    for rows in (np.arange(7), np.arange(90), np.arange(900)):
        compare(cupy, device, host, rows, eps=eps, time=0.03)
        compare(cupy, device, host, rows, eps=eps, nn=True)


@pytest.mark.parametrize("mode", list(capi.MODES))
def test_without_jerk(cupy, pair, mode):
    device, host = pair(precision=mode, jerk=False)
    fill(cupy, device, host)
    for rows in (None, np.arange(30), np.arange(700)):
        assert compare(cupy, device, host, rows, eps=1e-3, nn=True).jerk is None


def test_nearest_neighbours_after_calls_without_them(cupy, pair):
    device, host = pair()
    fill(cupy, device, host)
    device.forces(POS)
    compare(cupy, device, host, np.arange(900), nn=True)
    device.forces(cupy.on(0, POS))
    compare(cupy, device, host, np.arange(900), nn=True)


def test_without_snap(cupy, pair):
    device, host = pair(snap=False)
    fill(cupy, device, host, snap=SNAP)
    compare(cupy, device, host, time=0.1, nn=True)


def test_a_snap_that_comes_later(cupy, pair):
    device, host = pair()
    fill(cupy, device, host)
    compare(cupy, device, host, np.arange(50))
    rows = np.arange(100, 300)
    for session, put in ((host, lambda a: a), (device, lambda a: cupy.on(0, a))):
        session.set_particles(put(MASS[rows]), put(POS[rows]), snap=put(SNAP[rows]),
                              address=put(rows))  # fmt: skip
    compare(cupy, device, host, time=0.1, nn=True)


@pytest.mark.parametrize("mode", list(capi.MODES))
def test_neighbour_lists(cupy, pair, mode):
    device, host = pair(precision=mode)
    fill(cupy, device, host)
    radii = np.linspace(0, 0.4, 80)
    expected = compare(cupy, device, host, np.arange(80), h=radii, nn=True)
    assert len(expected.neighbours[79]) > 3
    found = device.forces(cupy.on(0, POS[:80]), h=cupy.on(0, radii))
    assert_same(found, host.forces(POS[:80], h=radii))
    compare(cupy, device, host, h=0.05)


@pytest.mark.parametrize("unit", [1e-30, 1e18])
@pytest.mark.parametrize("mode", list(capi.MODES))
def test_any_units(cupy, pair, mode, unit):
    device, host = pair(precision=mode)
    fill(cupy, device, host, pos=POS * unit, mass=MASS / unit, vel=VEL * unit**0.5)
    compare(cupy, device, host, nn=True)
    compare(cupy, device, host, np.arange(60), nn=True)


@pytest.mark.parametrize("mode", list(capi.MODES))
def test_what_the_card_leaves_to_the_host(cupy, pair, mode):
    pos = POS.copy()
    pos[1::2] = pos[::2] + 1e-13  # closer than the low halves tell
    pos[77] *= 1e60  # beyond single precision
    device, host = pair(precision=mode)
    fill(cupy, device, host, pos=pos)
    index = np.arange(N, dtype=np.int32)
    for rows in (slice(0, 20), slice(0, 300), slice(0, N)):
        for nn, times in itertools.product((False, True), range(2)):
            targets = pos[rows], VEL[rows], index[rows]
            expected = host.forces(*targets, nn=nn)
            assert times or np.abs(expected.acc).max() > 1e10
            assert_same(device.forces(*(cupy.on(0, t) for t in targets), nn=nn), expected)
    compare(cupy, device, host, nn=True, h=0.02)


def test_pairs_at_one_place_are_warned_of(cupy, pair):
    device, host = pair()
    pos = POS.copy()
    pos[4] = pos[9]
    fill(cupy, device, host, pos=pos)
    with pytest.warns(errors.Grape6Warning, match="2 pairs"):
        expected = host.forces(nn=True)
    with pytest.warns(errors.Grape6Warning, match="2 pairs"):
        assert_same(device.forces(nn=True), expected)


def test_row40_verified_rows(cupy, pair, monkeypatch):
    memory, allocate = [], standin.Device.allocate

    def allocated(self, pinned, size):
        address = allocate(self, pinned, size)
        memory.append(self._memory[address])
        return address

    device, host = pair(verify=1.0)
    monkeypatch.setattr(standin.Device, "allocate", allocated)
    fill(cupy, device, host)
    slots = next(m for m in memory if m.size >= 15 * 8 * N)  # word by word: csrc/cuda_job.h
    compare(cupy, device, host, np.arange(40), nn=True)
    device.set_particles(cupy.on(0, MASS), cupy.on(0, POS))
    words = slots.view(np.float64).reshape(15, -1)
    assert np.array_equal(words[3, :N], MASS)
    words[3, :N] *= 1.5
    with pytest.raises(errors.BackendError, match="GRAPE6_VERIFY"):
        device.forces()


def test_distances_over_many_orders_of_magnitude(cupy, pair):
    device, host = pair(precision="double")
    pos = np.array([[0.0, 0, 0], [1, 2, 3], [1e30, 0, 0], [1e250, 0, 1], [1e-30, 0, 0]])
    fill(cupy, device, host, mass=np.ones(5), pos=pos, vel=np.zeros((5, 3)))
    targets = np.concatenate([pos * 1.25, pos - 1e-7, POS * 1e3])
    for eps in (0.0, 1.0):
        assert_same(device.forces(cupy.on(0, targets), nn=True, eps=eps),
                    host.forces(targets, nn=True, eps=eps))  # fmt: skip


# ---- kinds of arrays -------------------------------------------------------------------


@pytest.mark.parametrize("how", ["interface", "dlpack"])
def test_other_libraries_arrays(cupy, pair, how):
    device, host = pair()
    host.set_particles(MASS, POS, VEL)
    foreign = (fake_arrays.Foreign(cupy.on(0, a), how) for a in (MASS, POS, VEL))
    device.set_particles(*foreign)
    targets = fake_arrays.Foreign(cupy.on(0, POS[:50]), how)
    assert_same(device.forces(targets, nn=True), host.forces(POS[:50], nn=True))


def test_strided_arrays_and_other_kinds_of_numbers(cupy, pair):
    device, host = pair()
    wide = RNG.standard_normal((N, 8))
    kinds = [
        (MASS.astype(np.float32), wide[:, 1:4], VEL.astype(np.float32)[::-1]),
        (np.ones(N, np.int16), np.asfortranarray(POS), wide[::1, ::3]),
        (np.repeat(MASS, 2)[::2], POS[::-1], np.repeat(VEL, 2, axis=0)[::2]),
    ]
    for mass, pos, vel in kinds:
        host.set_particles(mass, pos, vel)
        device.set_particles(*(fake_arrays.Array(a, 0) for a in (mass, pos, vel)))
        compare(cupy, device, host)
        for index in (np.arange(80)[::2], np.arange(40, dtype=np.uint8)):
            args = pos[:80:2], vel[:80:2], index
            found = device.forces(*(fake_arrays.Array(a, 0) for a in args), nn=True)
            assert_same(found, host.forces(*args, nn=True))


def test_a_device_wins_over_the_host(cupy, pair):
    device, host = pair()
    host.set_particles(1 / N, POS, VEL, time=0.25)
    device.set_particles(1 / N, POS, cupy.on(0, VEL), time=0.25)
    assert_same(device.forces(nn=True), host.forces(nn=True))
    for given in ({"pos": POS[:9], "index": cupy.on(0, np.arange(9))},
                  {"pos": cupy.on(0, POS[:9]), "vel": VEL[:9].tolist(), "index": range(9)},
                  {"pos": POS[:9], "vel": cupy.on(0, VEL[:9])},
                  {"pos": POS[:9], "h": cupy.on(0, np.full(9, 0.2))}):  # fmt: skip
        same = {k: v.memory if isinstance(v, fake_arrays.Array) else v for k, v in given.items()}
        assert_same(device.forces(**given), host.forces(**same))


def test_results_live_where_the_targets_or_else_the_particles_do(cupy, pair):
    device, _ = pair()
    device.set_particles(cupy.on(0, MASS), POS)
    assert isinstance(device.forces(POS[:5]).acc, np.ndarray)
    assert isinstance(device.forces(cupy.on(0, POS[:5])).acc, fake_arrays.Array)
    assert isinstance(device.forces().acc, fake_arrays.Array)
    device.set_particles(MASS[:5], POS[:5], address=np.arange(5))
    assert isinstance(device.forces().acc, np.ndarray)


def test_no_array_goes_to_the_host(cupy, pair):
    device, _ = pair()
    device.set_particles(cupy.on(0, MASS), cupy.on(0, POS), cupy.on(0, VEL))
    device.forces(nn=True)
    device.forces(cupy.on(0, POS), nn=True)
    assert cupy.copies == 0


# ---- the current stream ----------------------------------------------------------------


def test_what_the_current_stream_has_to_do_comes_first(cupy, pair):
    device, host = pair()
    host.set_particles(MASS, POS, VEL)
    cupy.stream = 4321
    late = [(cupy.on(0, a), a) for a in (MASS, POS, VEL, POS[:70])]
    for array, _ in late:
        array.memory[:] = np.nan

    @ctypes.CFUNCTYPE(None)
    def work():
        for array, values in late:
            array.memory[:] = values

    CARD.card_stream(ctypes.c_void_p(4321), work, 0)
    device.set_particles(*(array for array, _ in late[:3]))
    late[3][0].memory[:] = np.nan
    assert_same(device.forces(late[3][0], nn=True), host.forces(POS[:70], nn=True))


def test_a_stream_of_another_device_is_refused(cupy, pair):
    device, host = pair()
    fill(cupy, device, host)
    cupy.stream = 4321
    CARD.card_stream(ctypes.c_void_p(4321), None, 400)
    for call in (lambda: device.forces(cupy.on(0, POS)), device.forces,
                 lambda: device.set_particles(cupy.on(0, MASS), cupy.on(0, POS))):  # fmt: skip
        with pytest.raises(errors.ArgumentError, match="the stream is none of the session's"):
            call()
    cupy.stream = 0
    compare(cupy, device, host)


# ---- writing ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(capi.MODES))
def test_updates_by_address_from_anywhere(cupy, pair, mode):
    device, host = pair(precision=mode)
    fill(cupy, device, host)
    rng = np.random.default_rng(5)
    for step in range(12):
        n = int(rng.integers(1, 400))
        address = rng.permutation(N)[:n] if step % 3 else rng.integers(0, N, n)  # some twice
        index = address + 10000 if step % 2 else None
        arrays = MASS[:n] * step, rng.standard_normal((n, 3)), rng.standard_normal((n, 3))
        host.set_particles(*arrays, time=step, index=index, address=address)
        if step % 4 == 3:
            device.set_particles(*arrays, time=step, index=index, address=address)
        else:
            device.set_particles(*(cupy.on(0, a) for a in arrays), time=step, index=index,
                                 address=cupy.on(0, address))  # fmt: skip
        if step % 5:
            compare(cupy, device, host, np.arange(step * 9), nn=True, eps=1e-3)
    assert np.array_equal(device.index, host.index)
    compare(cupy, device, host, np.arange(200), nn=True)


def test_an_update_at_the_same_time_counts(cupy, pair):
    device, host = pair()
    fill(cupy, device, host)
    for n in (1, 70, 300):
        compare(cupy, device, host, np.arange(50))
        for session, put in ((host, lambda a: a), (device, lambda a: cupy.on(0, a))):
            session.set_particles(put(MASS[:n] * 1.1), put(POS[:n]), address=put(np.arange(n)))
    compare(cupy, device, host, np.arange(50))


def test_of_two_rows_for_one_address_the_last_counts(cupy, pair, monkeypatch):
    monkeypatch.setenv("GRAPE6_TEST_CARD_ORDER", "1")  # backwards
    device, host = pair()
    fill(cupy, device, host)
    compare(cupy, device, host, np.arange(50))
    address = np.r_[7:207, 7:107, 300:400, 3]
    new = np.full(len(address), 1 / N), RNG.standard_normal((len(address), 3))
    host.set_particles(*new, address=address)
    device.set_particles(*(cupy.on(0, a) for a in new), address=address)
    compare(cupy, device, host, np.arange(50))


def test_the_memory_grows_and_shrinks(cupy, pair):
    device, host = pair()
    for n in (3, 1024, 1025, 1500, 40, 1200):
        for session, put in ((host, lambda a: a), (device, lambda a: cupy.on(0, a))):
            session.set_particles(put(MASS[:n]), put(POS[:n]), put(VEL[:n]))
        compare(cupy, device, host, np.arange(20), nn=True)
    far = np.array([5000, 9000])
    for session, put in ((host, lambda a: a), (device, lambda a: cupy.on(0, a))):
        session.set_particles(put(MASS[:2]), put(POS[:2]), address=put(far))
    assert device.n == 1202
    for rows in (None, np.arange(90)):
        if rows is None:
            device.set_particles(cupy.on(0, MASS[:1]), POS[:1], address=[5000])
            host.set_particles(MASS[:1], POS[:1], address=[5000])
        compare(cupy, device, host, rows, nn=True)


def test_the_host_has_a_copy(cupy, pair):
    """Which is what a call with NumPy's arrays on the CPU, or after a fault, goes by."""
    device, host = pair()
    fill(cupy, device, host, acc=ACC, jerk=JERK, snap=SNAP, time=TIME)
    for session in (device, host):
        session._board.set_time(0.5)
    for ours, theirs in zip(device._board.predicted(N), host._board.predicted(N), strict=True):
        assert np.array_equal(ours, theirs)


def test_prediction_on_the_host():
    """Then the card's slots hold predicted particles: what comes from a device is sent again."""
    capi.run_python(
        """
import sys
import arrays_on_card as on_card, fake_arrays
cupy = sys.modules["cupy"] = fake_arrays.Module()
with on_card.Grape6() as device, on_card.Grape6() as host:
    assert device.backend.startswith("cuda ")
    on_card.fill(cupy, device, host, snap=on_card.SNAP, time=on_card.TIME)
    for step in range(3):
        on_card.compare(cupy, device, host, time=0.1 + step, nn=True)
        rows = np.arange(step, 300)
        new = on_card.MASS[rows], on_card.POS[rows] + 1
        host.set_particles(*new, time=step, address=rows)
        device.set_particles(*(cupy.on(0, a) for a in new), time=step, address=rows)
        on_card.compare(cupy, device, host, rows, time=0.1 + step, nn=True)
""",
        GRAPE6_PREDICT="host",
    )


def test_nobody(cupy, pair):
    device, host = pair()
    nothing = cupy.on(0, np.zeros((0, 3)))
    assert_same(device.forces(cupy.on(0, POS[:50]), nn=True, h=1.0),
                host.forces(POS[:50], nn=True, h=1.0))  # fmt: skip
    device.set_particles(cupy.on(0, np.zeros(0)), nothing)
    host.set_particles([], np.zeros((0, 3)))
    assert_same(device.forces(nn=True, h=1.0), host.forces(nn=True, h=1.0))
    fill(cupy, device, host)
    assert_same(device.forces(nothing, nn=True, h=1.0),
                host.forces(np.zeros((0, 3)), nn=True, h=1.0))  # fmt: skip
    device.set_particles(cupy.on(0, np.zeros(0)), nothing, address=cupy.on(0, np.zeros(0, int)))
    compare(cupy, device, host)


# ---- wrong arguments -------------------------------------------------------------------

BAD = {
    "shape": {"pos": POS[:, :2]},
    "length": {"mass": MASS[:-1]},
    "kind": {"pos": POS.astype(complex)},
    "pos": {"pos": np.where(np.arange(3 * N).reshape(N, 3) == 3 * 9 + 1, np.nan, POS)},
    "vel": {"vel": np.where(np.arange(3 * N).reshape(N, 3) >= 3 * (N - 40), np.inf, VEL)},
    "snap": {"snap": np.where(np.arange(3 * N).reshape(N, 3) == 5, -np.inf, SNAP)},
    "mass": {"mass": np.where(np.arange(N) == N - 1, np.nan, MASS)},
    "time": {"time": np.where(np.arange(N) == 8, np.nan, TIME), "index": np.arange(N) + 7},
    "index": {"index": np.arange(N) * 0.5},
    "large": {"index": np.arange(N) + 2**40},
    "address": {"address": np.arange(N) - 3},
    "none": {"address": np.arange(N - 1)},
}


@pytest.mark.parametrize("name", BAD)
def test_errors_of_set_particles_are_those_for_numpys(cupy, pair, name):
    device, host = pair()
    fill(cupy, device, host)
    given = {"mass": MASS * 3, "pos": -POS, **BAD[name]}
    with pytest.raises(errors.Grape6Error) as expected:
        host.set_particles(**given)
    with pytest.raises(type(expected.value)) as found:
        device.set_particles(**{k: cupy.on(0, v) for k, v in given.items()})
    assert str(found.value) == str(expected.value)
    compare(cupy, device, host, nn=True)
    shrunk = {k: cupy.on(0, v[:1500]) for k, v in given.items()}
    if name == "pos":  # a smaller set would empty the session first
        with pytest.raises(errors.NotFiniteError, match=r"pos\[9\] \(the particle of index 9\)"):
            device.set_particles(**shrunk)
        compare(cupy, device, host, nn=True)


TARGETS = {
    "shape": {"pos": POS[0]},
    "pos": {"pos": np.where(np.arange(3 * N).reshape(N, 3) == 3 * 70 + 1, np.nan, POS)},
    "vel": {"pos": POS, "vel": np.where(np.arange(3 * N).reshape(N, 3) == 9, np.inf, VEL)},
    "velocity": {"pos": POS, "vel": VEL[:-1]},
    "index": {"pos": POS, "index": np.arange(N - 1)},
    "radii": {"pos": POS, "h": np.ones(N + 1)},
    "alone": {"vel": VEL},
}


@pytest.mark.parametrize("name", TARGETS)
def test_errors_of_forces_are_those_for_numpys(cupy, pair, name):
    device, host = pair()
    fill(cupy, device, host)
    with pytest.raises(errors.ArgumentError) as expected:
        host.forces(**TARGETS[name])
    with pytest.raises(type(expected.value)) as found:
        device.forces(**{k: cupy.on(0, v) for k, v in TARGETS[name].items()})
    assert str(found.value) == str(expected.value)
    compare(cupy, device, host, np.arange(40))


def test_arrays_of_another_device_are_refused(cupy, pair):
    device, _ = pair()
    words = r"pos lies on CUDA device 1, but the session computes on device 0"
    with pytest.raises(errors.ArgumentError, match=words):
        device.set_particles(cupy.on(0, MASS), cupy.on(1, POS))
    with pytest.raises(errors.ArgumentError, match=words):
        device.forces(cupy.on(1, POS))
    assert device.n == 0


def test_a_closed_session(cupy, pair):
    device, _ = pair()
    device.close()
    with pytest.raises(errors.NotOpenError):
        device.set_particles(cupy.on(0, MASS), cupy.on(0, POS))
    with pytest.raises(errors.NotOpenError):
        device.forces(cupy.on(0, POS))


# ---- the C calls -----------------------------------------------------------------------


def force(session, ni, h2=None, **changed):
    """g6x_forces_device on the first ni particles: its code and outputs."""
    out = capi.Force.blank(ni)
    distance = np.full(ni, capi.UNTOUCHED, np.float32)
    index = np.arange(ni, dtype=np.int32)
    given = {"nj": N, "ni": ni, "index": index, "x": POS[:ni].copy(), "v": VEL[:ni].copy(),
             "eps2": 1e-4, "h2": h2, "acc": out.acc, "jerk": out.jerk, "pot": out.pot,
             "nearest": out.nearest, "distance": distance, "stream": None} | changed  # fmt: skip
    return capi.call("g6x_forces_device", session.cluster, *given.values()), out


@pytest.fixture
def filled(new_session):
    session = new_session()
    arguments = [None, None, None, MASS, None, None, None, VEL, POS, None]
    assert capi.call("g6x_set_j_particles_device", session.cluster, N, *arguments) == 0
    return session


def test_the_number_of_the_device(filled):
    assert filled.get_int("G6X_DEVICE") == 0


def test_with_radii_the_call_is_as_any_other(filled, new_session):
    other = new_session()
    assert capi.call("g6x_set_j_particles", other.cluster, N, *[None] * 4, MASS, *[None] * 3, VEL,
                     POS) == 0  # fmt: skip
    args = N, POS[:70], VEL[:70], np.arange(70, dtype=np.int32)
    expected = other.force(*args, eps2=1e-4, h2=0.01)
    code, found = force(filled, 70, np.full(70, 0.01))
    assert code == 0
    assert found.bits() == expected.bits()
    assert [filled.neighbours(i) for i in range(70)] == [other.neighbours(i) for i in range(70)]
    again = filled.last(*args, eps2=1e-4)
    assert (again.code, again.bits()) == (0, expected.bits())
    words = [np.zeros((70, capi.CONSTANTS["G6X_PARTIAL_WORDS"]), np.int64) for _ in range(2)]
    for session, w in zip((filled, other), words, strict=True):
        assert capi.call("g6x_get_partial", session.cluster, 70, w) == 0
    assert np.array_equal(*words)
    assert force(filled, 70)[0] == 0
    assert filled.neighbours(0)[0] == capi.CONSTANTS["G6X_E_NO_FIRSTHALF"]
    assert filled.last(*args, eps2=1e-4).code == capi.CONSTANTS["G6X_E_NO_FIRSTHALF"]


@pytest.mark.parametrize("far", [False, True], ids=["there", "far"])
def test_a_first_half_under_way_is_not_disturbed(filled, far):
    """Nor what can be read after it, also where the card's memory has to grow."""
    name = "g6x_set_j_particles_device"
    close = [None, None, None, MASS, None, None, None, VEL, POS[np.arange(N) // 2 * 2].copy(), None]
    close[8][1::2] += 1e-13  # left to the host
    assert capi.call(name, filled.cluster, N, *close) == 0
    args = N, close[8][:70], VEL[:70], np.arange(70, dtype=np.int32)
    expected = filled.force(*args, eps2=0.0, h2=0.01)
    lists = [filled.neighbours(i) for i in range(70)]
    assert filled.first(*args, eps2=0.0, h2=0.01) == 0
    address = np.arange(N, dtype=np.int32) + 70000 * far
    other = [address, None, None, 2 * MASS, None, None, None, VEL, -POS, None]
    assert capi.call(name, filled.cluster, N, *other) == 0
    assert filled.last(*args, eps2=0.0).bits() == expected.bits()
    assert [filled.neighbours(i) for i in range(70)] == lists
    again = filled.force(70000 + N if far else N, *args[1:], eps2=0.0)
    assert (again.code, again.bits() == expected.bits()) == (0, False)


@pytest.mark.parametrize("address", [3, 9], ids=["same-slot", "another"])
def test_what_waits_for_a_prediction_and_what_comes_from_the_device_both_arrive(filled, address):
    """A call with nj = 0 predicts nobody: a few particles stay on their way."""
    name, at = "g6x_set_j_particles_device", np.array([address], np.int32)
    rows = slice(address, address + 1)
    one = [at, None, None, MASS[rows], None, None, None, VEL[rows], POS[rows], None]
    assert filled.put(3, 3, 0.5, POS[9]) == 0
    assert force(filled, 40)[0] == 0
    assert capi.call(name, filled.cluster, 1, *one) == 0
    expected = force(filled, 40)[1].bits()
    assert filled.put(3, 3, 0.25, POS[9]) == 0
    assert force(filled, 40)[0] == 0
    assert filled.put(3, 3, 0.5, POS[9]) == 0
    assert force(filled, 40, nj=0)[0] == 0
    assert capi.call(name, filled.cluster, 1, *one) == 0
    assert force(filled, 40)[1].bits() == expected


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"nj": -1}, "ARGUMENT"),
        ({"eps2": -1.0}, "ARGUMENT"),
        ({"eps2": np.nan}, "ARGUMENT"),
        ({"x": None}, "NULL"),
        ({"index": None}, "NULL"),
        ({"acc": None}, "NULL"),
    ],
    ids=str,
)
def test_a_call_that_fails_gives_nan(filled, changed, code):
    found, out = force(filled, 40, **changed)
    assert found == capi.CONSTANTS[f"G6X_E_{code}"]
    assert np.isnan(out.pot).all()
    assert np.isnan(out.jerk).all()
    assert "acc" in changed or np.isnan(out.acc).all()
    assert (out.nearest == -1).all()
    assert force(filled, 40)[0] == 0


def test_a_bad_row_spoils_itself_only(filled):
    x = POS[:40].copy()
    x[7, 2] = np.nan
    good = force(filled, 40)[1]
    code, out = force(filled, 40, x=x, h2=np.full(40, 0.1))
    assert code == capi.CONSTANTS["G6X_E_I_NAN"]
    assert "i particle 7 (index 7)" in filled.error()[1]
    others = np.arange(40) != 7
    for name in ("acc", "jerk", "pot", "nearest"):
        assert np.array_equal(getattr(out, name)[others], getattr(good, name)[others])
    assert np.isnan(out.acc[7]).all()
    assert np.isnan(out.pot[7])
    assert out.nearest[7] == 7
    assert filled.neighbours(7)[0] == capi.CONSTANTS["G6X_E_I_NAN"]
    assert filled.neighbours(8)[0] == 0


def test_forces_that_do_not_fit_a_double(new_session):
    session = new_session(precision="double")
    x = np.array([[0.0, 0, 0], [1e-160, 0, 0]])
    arguments = [None, None, None, np.full(2, 1e10), None, None, None, None, x, None]
    assert capi.call("g6x_set_j_particles_device", session.cluster, 2, *arguments) == 0
    code, out = force(session, 2, nj=2, x=x, v=np.zeros((2, 3)), eps2=0.0)
    expected = session.force(2, x, np.zeros((2, 3)), np.arange(2, dtype=np.int32), 0.0)
    assert code == expected.code == capi.CONSTANTS["G6X_E_RANGE"]
    assert np.array_equal(out.acc, expected.acc, equal_nan=True)
    assert np.array_equal(out.pot, expected.pot, equal_nan=True)


def test_bad_j_particles_are_told_and_none_is_written(filled):
    before = force(filled, 50)[1].bits()
    mass = MASS[:3].copy()
    address, index = np.array([4, 5, 6], np.int32), np.array([1, 2, 3], np.int32)
    mass[1] = np.inf
    bad = [address, index, None, mass, None, None, None, None, POS, None]
    assert capi.call("g6x_set_j_particles_device", filled.cluster, 3, *bad) == -6
    assert "at address 5 (index 2)" in filled.error()[1]
    address[2] = -9
    bad[3] = MASS
    assert capi.call("g6x_set_j_particles_device", filled.cluster, 3, *bad) == -13
    assert "address -9 is negative" in filled.error()[1]
    for n, missing, code in ((-1, None, -11), (3, 3, -26), (3, 8, -26)):
        wrong = [None, None, None, MASS, None, None, None, None, POS, None]
        if missing:
            wrong[missing] = None
        assert capi.call("g6x_set_j_particles_device", filled.cluster, n, *wrong) == code
    assert force(filled, 50)[1].bits() == before


def test_predicted_particles(filled):
    x, v = (np.full((N + 9, 3), 7.0) for _ in range(2))
    ours = [x, v]
    filled.set_ti(0.5)
    name = "g6x_get_predicted_j_particles_device"
    assert capi.call(name, filled.cluster, N + 9, *ours, None) == 0
    theirs = [np.zeros_like(x), np.zeros_like(v)]
    assert capi.call("g6_get_predicted_j_particles", filled.cluster, N + 9, *theirs) == 0
    assert np.array_equal(ours, theirs)
    assert capi.call(name, filled.cluster, -1, *ours, None) == -11
    assert capi.call(name, filled.cluster, 5, None, v, None) == -26
    filled.set_ti(np.nan)
    assert capi.call(name, filled.cluster, 5, *ours, None) == -11


# ---- faults ----------------------------------------------------------------------------


def refuse_memory(monkeypatch):
    def refused(self, pinned, size):
        raise errors.from_code(-1, "the device is out of memory: a test says so")

    monkeypatch.setattr(standin.Device, "allocate", refused)


def assert_lost(use):
    """One of nine uses of a card finds that it is lost."""

    def repeat():
        for _ in range(9):
            use()

    with pytest.raises(errors.BackendError, match="is not used any more"):
        repeat()


@pytest.mark.parametrize("n", range(1, 14))
def test_row02_a_card_that_fails(cupy, pair, n):
    device, host = pair()
    fill(cupy, device, host)
    CARD.card_fail(ctypes.c_long(n), 719, 0)

    def use():
        device.set_particles(cupy.on(0, MASS), cupy.on(0, POS))
        device.forces(nn=True, h=0.1)

    assert_lost(use)
    CARD.card_fail(ctypes.c_long(0), 0, 0)
    with pytest.raises(errors.BackendError):
        device.forces(cupy.on(0, POS[:9]))
    host.forces()


def test_row01_no_memory(cupy, pair, monkeypatch):
    device, host = pair()
    fill(cupy, device, host)
    compare(cupy, device, host, np.arange(40))
    with monkeypatch.context() as patch:
        refuse_memory(patch)
        with pytest.raises(errors.OutOfMemoryError):
            device.forces(cupy.on(0, np.repeat(POS, 4, axis=0)))
    compare(cupy, device, host, np.arange(40), nn=True)
    empty = pair()[0]
    refuse_memory(monkeypatch)
    with pytest.raises(errors.OutOfMemoryError):
        empty.set_particles(cupy.on(0, MASS), cupy.on(0, POS))
    assert empty.n == 0
    monkeypatch.undo()
    fake = fake_arrays.install(monkeypatch)
    empty.set_particles(fake.on(0, MASS), fake.on(0, POS), fake.on(0, VEL))
    compare(fake, empty, host, np.arange(40))


@pytest.mark.parametrize("n", range(1, 12))
def test_auto_row02_the_session_goes_on_with_the_cpu(cupy, n):
    with Grape6() as device, Grape6(backend="cpu") as host:
        fill(cupy, device, host)
        assert device.backend.startswith("cuda ")
        CARD.card_fail(ctypes.c_long(n), 719, 0)
        assert_lost(lambda: device.forces(nn=True))
        assert device.backend == host.backend
        assert device._board.option("DEVICE") == -1
        compare(cupy, device, host, nn=True)
        compare(cupy, device, host, np.arange(50), h=0.1)
        device.set_particles(cupy.on(0, MASS[:5]), cupy.on(0, POS[:5]), address=range(5))
        host.set_particles(MASS[:5], POS[:5], address=range(5))
        compare(cupy, device, host)
