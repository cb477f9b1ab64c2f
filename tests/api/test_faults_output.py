"""Fresh processes: calls before open, what is printed and what is not, abort, memory."""

import signal

import pytest

import capi

BOARD = """
s = Session(0); s.put_cloud(cloud(20))
x = np.zeros((3, 3)); index = np.zeros(3, np.int32)
"""
FAULTS = {  # by rows of docs/errors.md
    18: "s.last(20, x, x, index)",
    6: "s.put(3, 1, float('nan'), (1, 0, 0)); s.force(20, x); s.put(3, 1, 1.0, (1, 0, 0))",
    7: "s.force(20, x * np.nan)", 11: "s.force(20, x, eps2=-1.0)",
    13: "s.put(-4, 1, 1.0, (1, 0, 0))", 20: "s.first(20, x, x, index); s.last(19, x, x, index)",
    25: "s.force(20, x); s.neighbours(99)", 26: "call('g6x_set_j_particles', 0, 1, *[None] * 10)",
}  # fmt: skip


def test_row21_calls_before_the_first_open_and_after_the_last_close_are_refused():
    """But for probes and settings, which print nothing. With what codes: test_fuzz.py."""
    done = capi.run_python("""
s = Session.unopened(0)
def check():
    print("[", file=sys.stderr, flush=True)
    for name in ("g6_reset", "g6_reset_fofpga", "g6_set_tunit"): assert call(name, 0) == 0
    assert call("g6_npipes") == 48 and text("g6x_version")[0] > 0
    print("]", file=sys.stderr, flush=True)
    found = s.force(1, [[0, 0, 0]])
    assert found.code == s.error()[0] == -21 and "open" in s.error()[1]
    assert_nan(found)
    assert call("g6x_clear_error", 0) == 0
check()
assert call("g6_open", 0) == call("g6_open", 5) == call("g6_close", 0) == 0
check()
assert call("g6_close", 5) == 0
check()
""")
    assert done.stderr.count("[\n]\n") == 3


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
def test_3_31_nothing_is_printed_in_a_run_without_faults():
    done = capi.run_python("""
s = Session(0); source = cloud(700, moving=True); s.put_cloud(source); s.set_ti(0.5)
for mode in (0, 1, 2):
    s.set_int("G6X_PRECISION", mode)
    s.force(700, source.x, source.v, source.index, h2=0.1, eps2=1e-4); s.neighbours(3)
s.put(5, 5, 1.0, (1, 1, 1)); s.put(6, 6, 1.0, (1, 1, 1))
s.force(700, [[1, 1, 1]], index=[5]); s.neighbours(0, 0)
call("g6_print_chip_status", 0); call("g6_reset", 0); s.close(); s.close()
import ctypes; ctypes.CDLL(None).fflush(None)
""")
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.backends("cpu cuda-tree")
def test_each_kind_of_fault_prints_exactly_one_line_on_stderr():
    script = "".join(f"for _ in range(3): {statement}\nassert s.error()[0] == {-row}\n"
                     f"print({row}, file=sys.stderr, flush=True)\n"
                     for row, statement in FAULTS.items())  # fmt: skip
    done = capi.run_python(BOARD + script)
    lines = done.stderr.splitlines()
    assert done.stdout == ""
    assert lines[1::2] == [str(row) for row in FAULTS]
    assert all(line.startswith("grape6: ") for line in lines[::2])
    assert len(set(lines)) == len(lines) == 2 * len(FAULTS)


def test_log_can_be_silenced_and_an_error_may_end_the_program():
    done = capi.run_python(BOARD + "s.set_int('G6X_LOG', 0)\n" + "\n".join(FAULTS.values()))
    assert done.stdout == done.stderr == ""
    script = "s = Session(0); s.set_int('G6X_ON_ERROR', 1); print('alive', flush=True)\n"
    done = capi.start_python(script + FAULTS[13])
    assert done.returncode == -signal.SIGABRT
    assert done.stdout == "alive\n"
    assert "-4" in done.stderr


LIMITED = """
import resource
s = Session(0); source = cloud(300); s.put_cloud(source)
i = (source.x[:30], source.v[:30], source.index[:30])
before = s.force(300, *i)
used = int(open("/proc/self/statm").read().split()[0]) * 4096
def limit(megabytes):
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20) if megabytes else hard, hard))
def refused(nj, address):
    found = s.force(nj, *i)
    code, message = s.error()
    assert found.code == code == -29 and str(address) in message, (found.code, code, message)
    assert np.isnan(found.acc).all() and np.isnan(found.jerk).all() and np.isnan(found.pot).all()
def unchanged(nj):
    found = s.force(nj, *i)  # a tree of more particles has other roundings
    assert found.code == 0 and np.allclose(found.acc, before.acc, rtol=1e-4, atol=1e-6)
limit(40)
"""


@pytest.mark.backends("cpu cuda-tree")
def test_row29_what_could_not_be_stored_makes_forces_nan_until_it_is_written():
    """It was forgotten: the next force had code 0 and lacked it. Of one particle, of many, of a
    fourth derivative: the old particle does not stay."""
    capi.run_python(LIMITED + """
for address in (300000, 300001, 400000):
    assert s.put(address, 7, 1.0, (9, 9, 9)) == -29
assert s.put(2147483647, 1, 1.0, (1, 0, 0)) in (-29, -27)
refused(300001, 300000)
refused(2000000000, 300000)
unchanged(300000)
assert s.put(400, 1, 0.0, (1, 0, 0)) == 0
limit(0)
assert s.put(300001, 8, 0.0, (9, 9, 9)) == 0
refused(300002, 300000)
assert s.put(300000, 7, 0.0, (9, 9, 9)) == 0
unchanged(400000)
refused(400001, 400000)
assert s.put(400000, 9, 0.0, (9, 9, 9)) == 0
unchanged(400001)
s.close(); s = Session(0); s.put_cloud(source)
used = int(open("/proc/self/statm").read().split()[0]) * 4096
limit(4)
many = cloud(200)
assert s.put_cloud(many, np.r_[600000:600100, 0:100]) == -29
limit(0)
assert s.force(600000, *i).code == 0  # the later ones had space
refused(600001, 600000)
assert s.put_cloud(many.take(range(99)), np.arange(600000, 600099)) == 0
refused(600100, 600099)
s.close(); s = Session(0); s.put_cloud(source)
assert s.force(600100, *i).bits() == before.bits()
assert s.put(700000, 7, 0.0, (9, 9, 9)) == 0
used = int(open("/proc/self/statm").read().split()[0]) * 4096
limit(4)
assert s.put(5, 5, 1.0, source.x[5], k18=(1, 1, 1)) == -29
refused(6, 5)
limit(0)
assert s.force(5, *i).code == 0
assert s.put(5, 5, source.mass[5], source.x[5], source.v[5]) == 0
assert s.force(300, *i).bits() == before.bits()
""")  # fmt: skip


def test_row29_out_of_memory_in_a_force_call_gives_nan_and_a_code():
    capi.run_python("""
import resource
s = Session(0); s.put_cloud(cloud(10))
ni = 400000
x, index, h2 = np.ones((ni, 3)), np.zeros(ni, np.int32), np.zeros(ni)
out = Force.blank(ni)
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 20),) * 2)
a = call("g6calc_firsthalf", 0, 10, ni, index, x, x, x, x, h2, 0.1, h2)
b = call("g6calc_lasthalf", 0, 10, ni, index, x, x, 0.1, h2, out.acc, out.jerk, out.pot)
assert b == -29, (a, b)
assert np.isnan(out.acc).all() and np.isnan(out.pot).all()
assert s.force(10, [[1, 1, 1]]).code == 0
""")
