"""Faults of the CUDA backend: no memory, a GPU that is lost, a fork. If CUDA was asked for the call
is refused; with the backend auto the CPU goes on, with the bits of its own."""

import contextlib
import functools
import os
import signal
from unittest import mock

import numpy as np
import pytest

import backends
import capi
from fake_device import Device, driver, fail
from grape6py._lib import codes
from on_gpu import TIME, bits, fill, on_gpu
from particles import cloud
from test_lists_at_rest import Board
from walking import FORMS, Flight, by_pointers, random_walks

pytestmark = pytest.mark.backends("cuda")
NAMES = "DEVICE_MEMORY DEVICE_LOST FORK RUNTIME"
DEVICE_MEMORY, DEVICE_LOST, FORKED, RUNTIME = map(capi.CODES.get, NAMES.split())
N = 700
SOURCE = cloud(N, seed=71, moving=True)
X, V = (a.astype(float) for a in SOURCE.at(TIME))
FEW, MANY = np.arange(40), np.arange(900) % N
WALKS = random_walks(sizes=(5, 70), eps2=1e-6)


def arguments(rows):
    return N, X[rows], V[rows], SOURCE.index[rows], 1e-6


@contextlib.contextmanager
def failing(name, code, words, is_wrong):
    """A method of the device raises where `is_wrong(*arguments)`."""
    method = getattr(Device, name)

    def checked(self, *given):
        if is_wrong(*given):
            raise codes.from_code(code, words)
        return method(self, *given)

    with mock.patch.object(Device, name, checked):
        yield


@contextlib.contextmanager
def no_memory(number=None):
    """The allocation of this number fails, or each; gives the numbers of all."""
    asked = []

    def fails(*_):
        asked.append(len(asked) + 1)
        return number in (None, asked[-1])

    with failing("allocate", DEVICE_MEMORY, "the device is out of memory: a test says so", fails):
        yield asked


def no_kernels(beginning):
    """Those whose names begin so do not compile."""
    words = f"the kernels do not compile: {beginning}"
    return failing("kernels", RUNTIME, words,
                   lambda _, names: any(n.startswith(beginning) for n in names))  # fmt: skip


@contextlib.contextmanager
def lost(number):
    """From this call of the driver on."""
    fail(number, for_ever=False)
    yield
    fail(0)


# ---- whatever fails ------------------------------------------------------------------------
def steps(session):
    """What a client does: code, and bits or whether there are but NaNs, of each."""
    for rows in (FEW, MANY):
        found = session.force(*arguments(rows), h2=0.1)
        is_nan = all(np.isnan(a).all() for a in (found.acc, found.jerk, found.pot))
        yield found.code, is_nan if found.code else bits(found)
        code, _, listed = session.neighbours(3)
        yield code, bool(code) or listed
    words = np.zeros((len(FEW), capi.CONSTANTS["G6X_PARTIAL_WORDS"]), np.int64)
    first = session.first(*arguments(FEW))
    code = first or capi.call("g6x_get_partial", session.cluster, len(FEW), words)
    yield code, bool(code) or words.tobytes()
    for form in FORMS:
        found = form(session, WALKS)
        is_nan = np.isnan(found.acc).all() and np.isnan(found.pot).all()
        yield found.code, is_nan if found.code else found.bits()


@functools.cache
def right(mode, backend):
    """Without a fault. The device's are the same in auto."""
    with backends.chosen("cpu") if backend == "cpu" else contextlib.nullcontext():
        session = capi.Session(900, precision=mode)
        found = [*steps(fill(session, SOURCE))]
        session.close()
    return found


FAULTS = {f"row01-{n}": (DEVICE_MEMORY, lambda n=n: no_memory(n)) for n in range(1, 18, 2)}
FAULTS |= {f"row02-{n}": (DEVICE_LOST, lambda n=n: lost(n)) for n in (*range(1, 9), 11, 14, 17, 20)}
FAULTS |= {f"row04-{n}": (RUNTIME, lambda: no_kernels("middle")) for n in range(1, 4)}
MODES = [*capi.MODES] * len(FAULTS)


@pytest.mark.backends("cuda auto")
@pytest.mark.parametrize(("fault", "mode"), [*zip(FAULTS, MODES, strict=False)])
def test_calls_are_refused_or_the_cpu_goes_on_and_all_others_are_right(make, on_backend, fault,
                                                                       mode):  # fmt: skip
    session, other, on_device = make(SOURCE), make(SOURCE), right(mode, "cuda")
    code, broken = FAULTS[fault]
    was_on_gpu, refused = True, 0
    with broken() as asked:
        session.put_cloud(SOURCE)
        session.set_ti(TIME)
        for found, here, there in zip(steps(session), on_device, right(mode, "cpu"), strict=True):
            if on_backend == "auto":
                assert was_on_gpu or not on_gpu(session)
                was_on_gpu = on_gpu(session)
                assert found == (here if was_on_gpu else there)
            elif found[0] or (refused and code == DEVICE_LOST):
                assert found == (code, True)
                assert session.error()[0] == code
                refused += 1
            else:
                assert found == here
    struck = asked is None or int(fault.partition("-")[2]) in asked
    assert struck == (not was_on_gpu if on_backend == "auto" else refused > 0)
    assert code != DEVICE_LOST or on_backend == "auto" or "not used any more" in session.error()[1]
    assert [*steps(other)] == on_device
    if on_backend == "cuda" and code != DEVICE_LOST:
        assert [*steps(session)] == on_device


# ---- no memory, no kernels -----------------------------------------------------------------
@pytest.mark.parametrize(("fault", "code", "words"), [
    (no_memory, DEVICE_MEMORY, "out of memory"),
    (lambda: no_kernels("predict"), RUNTIME, "do not compile"),
], ids=["row01", "row04"])  # fmt: skip
def test_an_open_that_fails(fault, code, words):
    with fault():
        assert capi.call("g6_open", 77) == code
        assert words in capi.text("g6x_last_error", 77)[1]
    assert capi.call("g6_open", 77) == 0
    assert capi.call("g6_close", 77) == 0


@pytest.mark.backends("auto")
def test_auto_row01_no_memory_at_open(mode, new_session):
    with no_memory():
        session = new_session(precision=mode)
        assert not on_gpu(session)
        assert [*steps(fill(session, SOURCE))] == right(mode, "cpu")


def test_row01_no_memory_at_growth(make, mode):
    session = make(SOURCE)
    more = SOURCE.take(np.arange(8 * N) % N)
    more.index[:] = np.arange(8 * N)
    assert session.put_cloud(more) == 0
    with no_memory():
        for rows in (FEW, MANY):
            found = session.force(8 * N, *arguments(rows)[1:])
            assert found.code == DEVICE_MEMORY
            assert np.isnan(found.acc).all()
    assert session.put_cloud(SOURCE) == 0
    assert [*steps(session)] == right(mode, "cuda")


# ---- a lost GPU ----------------------------------------------------------------------------
def test_row02_a_result_that_never_comes_is_a_lost_gpu(make):
    session = make(SOURCE)
    session.force(*arguments(FEW))
    session.put_cloud(SOURCE.take(np.arange(3)))
    driver().fake_gpu_skip(1)
    try:
        found = session.force(*arguments(FEW))
    finally:
        driver().fake_gpu_skip(0)
    assert found.code == DEVICE_LOST
    assert np.isnan(found.acc).all()


@pytest.mark.backends("auto")
def test_auto_row02_what_was_set_meanwhile_does_not_reach_the_call(make, cpu, mode):
    def halves(session):
        assert session.first(*arguments(FEW), h2=0.1) == 0
        session.set_ti(10.0)
        session.set_int("G6X_PRECISION", (capi.MODES[mode] + 1) % 3)
        session.set_int("G6X_JERK", 0)
        session.set_int("G6X_SNAP", 0)
        assert session.neighbours(3)[0] == 0
        fail(1)
        words = session.partial(40)
        return words.tobytes() + bits(session.last(*arguments(FEW)))

    session = make(SOURCE)
    found = halves(session)
    assert not on_gpu(session)
    assert found.endswith(right(mode, "cpu")[0][1])
    with cpu(precision=mode) as other:
        assert halves(fill(other, SOURCE)) == found


@pytest.mark.backends("auto")
def test_row02_a_gpu_that_fails_between_dispatch_and_retrieve(plain):
    job = random_walks(sizes=(300, 40, 700), eps2=1e-6)
    flights = [Flight(plain, k, job) for k in range(2)]
    fail(1)
    for flight in flights:
        found = flight.retrieve()
        assert found.code == DEVICE_LOST
        assert np.isnan(found.acc).all()
        assert np.isnan(found.pot).all()
    assert by_pointers(plain, job).code == 0


@pytest.mark.backends("auto")
@pytest.mark.parametrize("nearest", [None, False, True])
def test_auto_row02_walks_that_lose_a_gpu_leave_the_force_call_whole(make, mode, nearest):
    """Before its last half, and after one with neighbours or without."""
    session, done = make(SOURCE), right(mode, "cpu")
    assert session.first(*arguments(FEW), h2=0.1) == 0
    if nearest is not None:
        assert session.last(*arguments(FEW), nearest=nearest).code == 0
    fail(1)
    assert by_pointers(session, WALKS).code == 0
    fail(0)
    assert not on_gpu(session)
    assert (0, bits(session.last(*arguments(FEW)))) == done[0]
    assert session.neighbours(3)[2] == done[1][1]


def test_row01_partial_sums_without_memory_are_refused_again(make, mode):
    session, words = make(SOURCE), np.zeros((len(FEW), 32), np.int64)
    assert session.force(*arguments(FEW)).code == 0
    for memory in (no_memory(), contextlib.nullcontext()):
        with memory:
            code = capi.call("g6x_get_partial", session.cluster, len(FEW), words)
            assert code == session.last(*arguments(FEW)).code == DEVICE_MEMORY
    assert [*steps(session)] == right(mode, "cuda")


@pytest.mark.backends("auto")
def test_auto_row02_pairs_at_one_place_are_counted_once_when_a_gpu_is_lost(new_session):
    session, source = new_session(), cloud(1100, seed=32)
    source.x[[100, 1050]] = source.x[3]
    session.put_cloud(source)
    args = 1100, source.x[:10], source.v[:10], source.index[:10]
    for call in (1, 2, 3):
        assert session.first(*args, h2=0.1) == 0
        assert session.last(*args).code == 0
        if call == 2:
            fail(1)
            assert session.neighbours(3)[0] == 0
            fail(0)
        text = capi.text("g6x_last_warning", session.cluster)[1]
        assert text.startswith("2 pairs"), (call, text)
    assert not on_gpu(session)


@pytest.mark.backends("cuda auto")
def test_row30_a_forked_child_may_not_use_the_gpu(make, mode, on_backend):
    """With auto it goes on with the CPU; the parent with the GPU."""
    session, on_device, on_cpu = make(SOURCE), right(mode, "cuda"), right(mode, "cpu")
    refused = [(FORKED, True)] * len(on_cpu)
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit([*steps(session)] != (on_cpu if on_backend == "auto" else refused))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert on_gpu(session)
    assert [*steps(session)] == on_device


@pytest.mark.backends("auto")
@pytest.mark.parametrize("n", [1, 3, 5])
def test_auto_row02_a_gpu_that_fails_loses_no_particle_of_a_list_at_rest(new_session, n):
    board, x = Board(new_session, 5), np.arange(15.0).reshape(5, 3)
    for length in (1400, 1200):
        assert on_gpu(board.session)
        board.list(0, length)
        if length == 1200:
            fail(n)
        found = board.session.force(1300, x, None, np.arange(5), 1e-2)
        assert found.code == 0
    fail(0)
    right = board.twin().force(1300, x, None, np.arange(5), 1e-2)
    assert found.acc == pytest.approx(right.acc, rel=1e-4)
    assert found.pot == pytest.approx(right.pot, rel=1e-5)
