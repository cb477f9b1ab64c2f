"""Faults of the CUDA backend: no memory, a GPU that is lost, a fork.

Those named test_auto_... are run with the backend auto, the others with cuda.
"""

import os
import signal

import numpy as np
import pytest

import capi
import fake_device
from fake_device import driver, fail
from grape6py._lib import codes
from on_gpu import SOURCE, TIME, N, V, X, bits, fill, on_gpu, run
from particles import cloud
from walking import by_copies, by_numbers, by_pointers, random_walks

pytestmark = pytest.mark.backends("cuda")

DEVICE_MEMORY, DEVICE_LOST, FORKED, RUNTIME = (
    capi.CONSTANTS[f"G6X_E_{name}"] for name in ("DEVICE_MEMORY", "DEVICE_LOST", "FORK", "RUNTIME")
)
NO_MEMORY = codes.from_code(DEVICE_MEMORY, "the device is out of memory: a test says so")
NEVER = 1 << 40


# ---- faults: asked for --------------------------------------------------------------------


def refuse_memory(monkeypatch, fits):
    """Allocations fail unless `fits(size)`."""
    allocate = fake_device.Device.allocate

    def checked(self, pinned, size):
        if not fits(size):
            raise NO_MEMORY
        return allocate(self, pinned, size)

    monkeypatch.setattr(fake_device.Device, "allocate", checked)


def assert_refused(found, code):
    assert found.code == code
    for name in ("acc", "jerk", "pot"):
        assert np.isnan(getattr(found, name)).all()


def test_row01_no_memory_at_open(monkeypatch):
    refuse_memory(monkeypatch, lambda size: False)
    assert capi.call("g6_open", 77) == DEVICE_MEMORY
    assert "out of memory" in capi.text("g6x_last_error", 77)[1]
    monkeypatch.undo()
    assert capi.call("g6_open", 77) == 0
    assert capi.call("g6_close", 77) == 0


@pytest.mark.parametrize("rows", [slice(0, 40), slice(0, 1500)], ids=["few", "many"])
def test_row01_no_memory_at_growth(make, monkeypatch, rows):
    session = make()
    expected = bits(run(session, rows))
    more = SOURCE.take(np.r_[0:N, 0:N])
    more.index[:] = np.arange(2 * N)
    assert session.put_cloud(more) == 0
    refuse_memory(monkeypatch, lambda size: False)
    assert_refused(session.force(2 * N, X[rows], V[rows]), DEVICE_MEMORY)
    assert_refused(session.force(2 * N, X[rows], V[rows]), DEVICE_MEMORY)
    monkeypatch.undo()
    assert session.put_cloud(SOURCE) == 0
    assert bits(run(session, rows)) == expected


@pytest.mark.parametrize("n", range(1, 14))
def test_row01_the_nth_allocation_fails(new_session, monkeypatch, n):
    """Whichever it is, the call is refused, and the next one is right."""
    count = iter(range(1, NEVER))
    with monkeypatch.context() as patch:
        session = new_session()
        refuse_memory(patch, lambda size: next(count) != n)
        session.put_cloud(SOURCE)
        session.set_ti(TIME)
        found = session.force(N, X[:300], V[:300], SOURCE.index[:300], eps2=1e-6, h2=0.1)
        if not found.code:
            listed = session.neighbours(0)[0]
            assert next(count) <= n or listed == DEVICE_MEMORY
        else:
            assert_refused(found, DEVICE_MEMORY)
    fresh = fill(new_session())
    assert bits(run(session, slice(0, 300))) == bits(run(fresh, slice(0, 300)))


@pytest.fixture(scope="module")
def walks():
    """The second needs more space than the first. And what is right."""
    jobs = random_walks(sizes=(5, 70)), random_walks(sizes=(3,), lengths=(150_000,), n=200_000)
    session = capi.Session(900)
    expected = [by_numbers(session, job).bits() for job in jobs]
    session.close()
    return jobs, expected


@pytest.mark.parametrize("form", [by_numbers, by_copies, by_pointers])
@pytest.mark.parametrize("n", range(1, 15))
def test_row01_the_nth_allocation_of_walks_fails(new_session, monkeypatch, walks, n, form):
    (jobs, expected), session = walks, new_session()
    count, refused = iter(range(1, NEVER)), 0
    with monkeypatch.context() as patch:
        refuse_memory(patch, lambda size: next(count) != n)
        for job in jobs:
            found = form(session, job)
            refused += found.code != 0
            if found.code:
                assert found.code == session.error()[0] == DEVICE_MEMORY
                assert np.isnan(found.acc).all()
                assert np.isnan(found.pot).all()
    assert refused == (next(count) > n)
    assert [form(session, job).bits() for job in jobs] == expected


def refuse_kernels(monkeypatch, refused):
    """Those whose names begin so do not compile."""
    kernels = fake_device.Device.kernels

    def checked(self, precision, names):
        if any(name.startswith(refused) for name in names):
            raise codes.from_code(RUNTIME, f"the kernels do not compile: {refused}")
        return kernels(self, precision, names)

    monkeypatch.setattr(fake_device.Device, "kernels", checked)


def test_row04_a_kernel_that_does_not_compile_at_open(monkeypatch):
    refuse_kernels(monkeypatch, "predict")
    assert capi.call("g6_open", 77) == RUNTIME
    assert "do not compile" in capi.text("g6x_last_error", 77)[1]


def test_row04_a_kernel_that_does_not_compile_when_it_is_wanted(make, monkeypatch):
    """The call is refused; others, and the same one later, are right."""
    session = make()
    expected = bits(run(session, slice(0, 40)))
    with monkeypatch.context() as patch:
        refuse_kernels(patch, "wide")
        assert_refused(session.force(N, X[:1500], V[:1500]), RUNTIME)
        assert bits(run(session, slice(0, 40))) == expected
    fresh = make()
    assert bits(run(session, slice(0, 1500))) == bits(run(fresh, slice(0, 1500)))


@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("rows", [slice(0, 40), slice(0, 1500)], ids=["few", "many"])
def test_row02_a_gpu_that_fails_is_not_used_any_more(make, mode, n, rows):
    session, other = make(), make()
    run(other, slice(0, 10))
    fail(n, for_ever=False)
    session.set_ti(TIME / 2)
    for _ in range(9):
        first = session.force(N, X[rows], V[rows], h2=0.1)
        if first.code:
            break
    assert_refused(first, DEVICE_LOST)
    assert "is not used any more" in session.error()[1]
    fail(0)
    assert_refused(session.force(N, X[rows], V[rows]), DEVICE_LOST)
    assert session.neighbours(0)[0] == DEVICE_LOST
    assert run(other, rows).code == 0


def test_row02_a_result_that_never_comes_is_a_lost_gpu(make, monkeypatch):
    session = make()
    receive = SOURCE.take(np.arange(3))
    run(session, slice(0, 40))
    session.put_cloud(receive)
    driver().fake_gpu_skip(1)
    try:
        found = session.force(N, X[:40], V[:40])
    finally:
        driver().fake_gpu_skip(0)
    assert_refused(found, DEVICE_LOST)


def in_child(check):
    """What a forked child makes of it: the exit status is that of `check`."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if check() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_row30_a_forked_child_may_not_use_the_gpu(make):
    session = make()
    run(session, slice(0, 10))

    def check():
        found = session.force(N, X[:10], V[:10])
        return found.code == FORKED and np.isnan(found.acc).all()

    assert in_child(check) == 0
    assert run(session, slice(0, 10)).code == 0


# ---- faults: the library's choice --------------------------------------------------------


def cpu_bits(cpu, mode, rows, lists=None):
    with cpu(precision=mode) as session:
        fill(session)
        found = bits(run(session, rows, h2=0.1))
        return found if lists is None else (found, [session.neighbours(i) for i in lists])


@pytest.mark.backends("auto")
def test_auto_row01_no_memory_at_open(monkeypatch, cpu, mode, new_session):
    refuse_memory(monkeypatch, lambda size: False)
    session = new_session(precision=mode)
    assert not on_gpu(session)
    fill(session)
    found = run(session, slice(0, 20), h2=0.1)
    assert bits(found) == cpu_bits(cpu, mode, slice(0, 20))


@pytest.mark.backends("auto")
def test_auto_row04_a_kernel_that_does_not_compile_when_it_is_wanted(make, cpu, mode, monkeypatch):
    session = make()
    refuse_kernels(monkeypatch, "wide")
    found = run(session, slice(0, 1500), h2=0.1)
    assert not on_gpu(session)
    assert bits(found) == cpu_bits(cpu, mode, slice(0, 1500))


@pytest.mark.backends("auto")
@pytest.mark.parametrize("n", range(1, 11))
def test_auto_row01_the_nth_allocation_fails(new_session, cpu, monkeypatch, n):
    count = iter(range(1, NEVER))
    expected = cpu_bits(cpu, "grape", slice(0, 300))
    session = new_session()
    refuse_memory(monkeypatch, lambda size: next(count) < n)
    fill(session)
    found = run(session, slice(0, 300), h2=0.1)
    if not on_gpu(session):
        assert bits(found) == expected
    else:
        assert next(count) <= n


@pytest.mark.backends("auto")
@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("rows", [slice(0, 40), slice(0, 1500)], ids=["few", "many"])
def test_auto_row02_the_cpu_finishes_what_a_gpu_began(make, cpu, mode, n, rows):
    session, other = make(), make()
    fail(n, for_ever=False)
    lists = (0, 39)
    expected, expected_lists = cpu_bits(cpu, mode, rows, lists)
    for _ in range(9):
        found = run(session, rows, h2=0.1)
        if not on_gpu(session):
            break
    assert not on_gpu(session)
    assert bits(found) == expected
    assert [session.neighbours(i) for i in lists] == expected_lists
    assert bits(run(session, rows, h2=0.1)) == expected
    fail(0)
    assert on_gpu(other)
    assert run(other, rows).code == 0


@pytest.mark.backends("auto")
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_auto_row02_a_gpu_lost_at_the_lists(make, cpu, mode, n):
    session = make()
    expected = cpu_bits(cpu, mode, slice(0, 40), [3])[1]
    run(session, slice(0, 40), h2=0.1)
    fail(n)
    assert [session.neighbours(3)] == expected


@pytest.mark.backends("auto")
def test_auto_row02_what_was_set_meanwhile_does_not_reach_the_call(make, cpu, mode):
    session, out = make(), capi.Force.blank(40)
    expected = cpu_bits(cpu, mode, slice(0, 40))
    args = N, X[:40], V[:40], SOURCE.index[:40]
    assert session.first(*args, eps2=1e-6) == 0
    session.set_ti(10.0)
    session.set_int("G6X_PRECISION", (capi.MODES[mode] + 1) % 3)
    session.set_int("G6X_JERK", 0)
    session.set_int("G6X_SNAP", 0)
    assert session.neighbours(3)[0] == 0
    fail(1)
    words = np.zeros((40, capi.CONSTANTS["G6X_PARTIAL_WORDS"]), np.int64)
    assert capi.call("g6x_get_partial", session.cluster, 40, words) == 0
    assert not on_gpu(session)
    assert bits(session.last(*args, eps2=1e-6, out=out)) == expected


@pytest.mark.backends("auto")
def test_auto_row02_a_gpu_lost_at_the_partial_sums(make, cpu, mode):
    def partial(session):
        words = np.zeros((40, capi.CONSTANTS["G6X_PARTIAL_WORDS"]), np.int64)
        assert session.first(N, X[:40], V[:40], SOURCE.index[:40]) == 0
        fail(1)
        assert capi.call("g6x_get_partial", session.cluster, 40, words) == 0
        return words.tobytes()

    found = partial(make())
    with cpu(precision=mode) as session:
        fill(session)
        assert partial(session) == found


@pytest.mark.backends("auto")
def test_auto_row30_a_forked_child_goes_on_with_the_cpu(make, cpu, mode):
    session = make()
    run(session, slice(0, 10))
    expected = cpu_bits(cpu, mode, slice(0, 20))
    assert in_child(lambda: bits(run(session, slice(0, 20), h2=0.1)) == expected) == 0
    assert on_gpu(session)
    assert run(session, slice(0, 10)).code == 0


@pytest.mark.backends("auto")
@pytest.mark.parametrize("form", [by_numbers, by_copies, by_pointers])
def test_auto_row01_walks_without_memory_go_on_with_the_cpu(make, cpu, mode, monkeypatch, form):
    job, session = random_walks(sizes=(5, 70)), make()
    with cpu(precision=mode) as other:
        expected = by_numbers(other, job).bits()
    refuse_memory(monkeypatch, lambda size: False)
    found = form(session, job)
    assert (found.code, found.bits()) == (0, expected)
    assert not on_gpu(session)


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
