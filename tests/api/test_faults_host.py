"""Hosts with habits of their own: traps, rounding, forks, threads, signals, small stacks."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import capi
from particles import assert_force, assert_same, cloud, direct


@pytest.mark.parametrize("how", ["traps 1", "traps 3", "rounding 2", "stack"],
                         ids="row32-one-thread row32-three row33-row41 row37".split())  # fmt: skip
def test_the_state_of_the_host_stays_as_it_is_and_changes_no_bits(how):
    """Traps, rounding, flush to zero, a small stack."""
    assert capi.run_c("host", *how.split(), GRAPE6_LOG="none").stderr == ""


@pytest.mark.parametrize("how", ["plain", "unclosed", "atexit", "thread", "deepbind"],
                         ids=lambda h: f"row36-{h}")  # fmt: skip
def test_loading_late_and_ending_in_odd_orders(how):
    assert capi.run_c("load_late", str(capi.library_path()), how, linked=False).stderr == ""


def test_row30_a_forked_child_works_on():
    done = capi.run_python(
        """
source = cloud(3000); args = source.x[:200], source.v[:200], source.index[:200]
for where in range(3):
    s = Session(0, threads=2); s.put_cloud(source)
    expected = s.force(3000, *args).bits()
    if where == 1: s.first(3000, *args)
    if where == 2: s.close()
    child = os.fork()
    if where == 2: s = Session(0); s.put_cloud(source)
    if child == 0:
        good = s.force(3000, *args).bits() == expected and s.put(5, 5, 1.0, (9, 9, 9)) == 0
        good = good and s.force(3000, *args).code == 0
        other = Session(7); other.put_cloud(source)
        good = good and other.force(3000, *args).bits() == expected and s.close() == 0
        sys.exit(0 if good else 9)
    assert s.force(3000, *args).bits() == expected
    assert os.waitpid(child, 0)[1] == 0
    s.close()
""",
        timeout=60,
    )
    assert done.stderr == ""


@pytest.mark.full
def test_row30_a_fork_at_any_moment():
    """What another thread was changing is refused in the child, which can open it again."""
    assert int(capi.run_c("fork_storm", "30", GRAPE6_LOG="none", GRAPE6_THREADS="1").stdout) > 0


def test_row31_signals_keep_their_handlers_and_do_not_disturb_a_call():
    capi.run_python("""
import re, signal
def dispositions():
    return re.findall(r"Sig(?:Blk|Ign|Cgt):.*", open("/proc/self/status").read())
before = dispositions()
s = Session(0); source = cloud(3000); s.put_cloud(source)
expected = s.force(3000, source.x, source.v, source.index).bits()
assert dispositions() == before
hits = []
signal.signal(signal.SIGALRM, lambda *_: hits.append(1))
signal.siginterrupt(signal.SIGALRM, True)
before = dispositions()
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while len(hits) < 20:
    found = s.force(3000, source.x, source.v, source.index)
    assert found.code == 0 and found.bits() == expected
signal.setitimer(signal.ITIMER_REAL, 0)
s.close(); assert dispositions() == before
""")


def in_threads(count, work):
    """Runs work(k) in `count` threads at once and raises what they raise."""
    gate = threading.Barrier(count)

    def together(k):
        gate.wait()
        work(k)

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(together, range(count), timeout=60))


def test_row35_sessions_work_side_by_side(new_session):
    source = cloud(600, seed=3)
    sessions = [new_session() for _ in range(6)]
    for session in sessions:
        session.put_cloud(source)
    expected = sessions[0].force(600, source.x, source.v, source.index, h2=0.1)
    lists = sessions[0].neighbours(7)

    def work(k):
        for block in (None, 100, 333):
            found = sessions[k].force(600, source.x, source.v, source.index, h2=0.1, block=block)
            assert found.bits() == expected.bits()
        sessions[k].force(600, source.x[:9], source.v[:9], source.index[:9], h2=0.1)
        assert sessions[k].neighbours(7) == lists

    in_threads(6, work)


def test_row35_eight_first_opens_at_once():
    capi.run_python("""
from test_faults_host import in_threads
def work(k):
    s, source = Session(k), cloud(300)
    assert s.put_cloud(source) == 0
    assert s.force(300, source.x, source.v, source.index).code == 0 == s.close()
in_threads(8, work)
""")


def test_row40_verification_accepts_right_results_and_changes_no_bits(session):
    source = cloud(300, seed=9)
    mirror = source.take(np.r_[0:300, 0:300])  # cancelling forces at the origin
    mirror.x[300:] *= -1
    mirror.index[300:] += 300
    session.put_cloud(mirror)
    x, v = np.vstack([np.zeros((2, 3)), source.x]), np.vstack([np.zeros((2, 3)), source.v])
    index = np.r_[-1, -1, source.index]
    expected = session.force(600, x, v, index, eps2=1e-8)
    for fraction in (0.5, 1.0):
        assert session.set_double("G6X_VERIFY", fraction) == 0
        found = session.force(600, x, v, index, eps2=1e-8)
        assert found.code == 0
        assert_same(found, expected)


def test_row41_denormal_inputs_are_harmless(exact):
    source = cloud(100)
    for tiny in (5e-324, 1e-310, 1e-300):
        source.mass[50:], source.x[60:70, 1], source.v[70:] = tiny, tiny, tiny
        exact.put_cloud(source)
        found = exact.force(100, source.x, source.v, source.index)
        assert_force(found, direct(source.x, source.v, source.index, source), 1e-11)
