"""Fresh processes: calls before open, what is printed and what is not, abort, memory."""

import signal

import pytest

import capi

pytestmark = pytest.mark.backends("cpu cuda cpu-tree cuda-tree")

FAULTS = """
s = Session(0)
source = cloud(20); s.put_cloud(source)
x = np.zeros((3, 3)); index = np.zeros(3, np.int32)
def all_faults():
    s.put(-4, 1, 1.0, (1, 0, 0))
    s.put(3, 1, float("nan"), (1, 0, 0)); s.force(20, x)
    s.put(3, 1, 1.0, (1, 0, 0)); s.force(20, x * np.nan)
    s.force(20, x, eps2=-1.0)
    s.first(20, x, x, index); s.last(19, x, x, index)
    s.force(20, x); s.neighbours(99)
    s.last(20, x, x, index)
    call("g6_get_predicted_j_particles", 0, 1, None, None)
"""
ALLOWED = """
assert call("g6_npipes") == 48
for name in ("g6_reset", "g6_reset_fofpga", "g6_reinitialize"): assert call(name, 0) == 0
assert call("g6_set_tunit", 51) == 0 and call("g6_set_xunit", 51) == 0
assert call("get_device_count") >= 1
assert call("g6_set_neighbour_list_sort_mode", 2) == 0
assert call("g6_get_neighbour_list_sort_mode") == 2
assert call("g6_set_overflow_flag_test_mode", 1, 1, 1) == 0
assert text("g6x_version")[0] > 0
assert text("g6x_last_error", 0) == (0, "") and text("g6x_last_warning", 0) == (0, "")
assert call("g6x_clear_error", 0) == 0
"""
CLOSED = """
def refused():
    s = object.__new__(Session); s.cluster = 0
    assert s.put(0, 1, 1.0, (1, 0, 0)) == -21
    assert s.put_cloud(cloud(3)) == -21 and s.set_ti(0.0) == -21
    f = s.force(1, [[0, 0, 0]])
    assert f.code == -21 and np.isnan(f.acc).all() and np.isnan(f.pot).all(), f
    assert np.isnan(f.jerk).all()
    assert s.neighbours(0)[:2] == (-21, 0)
    for name in ("g6_read_neighbour_list", "g6_flush_jp_buffer"): assert call(name, 0) == -21, name
    assert s.error()[0] == -21 and "open" in s.error()[1]
"""


def test_row21_calls_before_the_first_open_are_refused():
    capi.run_python(CLOSED + "refused()")


@pytest.mark.parametrize("when", ["", "call('g6_open', 0); call('g6_close', 0)\n"],
                         ids=["row21-before-open", "row21-after-close"])  # fmt: skip
def test_probes_and_settings_are_legal_while_nothing_is_open(when):
    done = capi.run_python(when + ALLOWED)
    assert done.stdout == done.stderr == ""


@pytest.mark.backends("cpu")
def test_row21_open_special_is_legal_before_open_and_opens():
    capi.run_python("""
assert call("g6_open_special", 1, np.zeros(1, np.int32)) == 0
s = object.__new__(Session); s.cluster = 0
assert s.put(0, 1, 1.0, (1, 0, 0)) == 0 and s.force(1, [[0, 0, 0]]).code == 0
""")


def test_row21_calls_after_all_are_closed_are_refused():
    capi.run_python(CLOSED + "call('g6_open', 0); call('g6_open', 5)\n"
                    "call('g6_close', 0); refused()\ncall('g6_close', 5); refused()\n"
                    "call('g6_open', 9); s = Session(0)\n"
                    "assert s.put(0, 1, 1., (1, 0, 0)) == 0")  # fmt: skip


def test_3_31_nothing_is_printed_in_a_run_without_faults():
    done = capi.run_python("""
s = Session(0); source = cloud(2000, moving=True); s.put_cloud(source); s.set_ti(0.5)
for mode in (0, 1, 2):
    s.set_int("G6X_PRECISION", mode)
    s.force(2000, source.x, source.v, source.index, h2=0.1, eps2=1e-4); s.neighbours(3)
s.put(5, 5, 1.0, (1, 1, 1)); s.put(6, 6, 1.0, (1, 1, 1))
s.force(2000, [[1, 1, 1]], index=[5]); s.neighbours(0, 0)
call("g6_print_chip_status", 0); call("g6_reset", 0); s.close(); s.close()
import ctypes; ctypes.CDLL(None).fflush(None)
""")
    assert (done.stdout, done.stderr) == ("", "")


def test_faults_print_one_line_a_kind_on_stderr_only():
    done = capi.run_python(FAULTS + "for _ in range(4): all_faults()")
    lines = done.stderr.splitlines()
    assert done.stdout == ""
    assert len(lines) == len(set(lines))
    assert 6 <= len(lines) <= 8, done.stderr
    assert all("grape6" in line.lower() for line in lines)


@pytest.mark.backends("cpu")
@pytest.mark.parametrize(
    ("row", "statement"),
    [
        (6, "s.put(3, 1, float('nan'), (1, 0, 0)); s.force(20, x)"),
        (7, "s.force(20, x * np.nan)"),
        (11, "s.force(20, x, eps2=-1.0)"),
        (13, "s.put(-4, 1, 1.0, (1, 0, 0))"),
        (18, "s.last(20, x, x, index)"),
        (20, "s.first(20, x, x, index); s.last(19, x, x, index)"),
        (25, "s.force(20, x); s.neighbours(99)"),
        (26, "call('g6x_set_j_particles', 0, 1, *[None] * 10)"),
    ],
    ids=lambda v: f"row{v:02}" if isinstance(v, int) else "",
)
def test_each_kind_of_fault_prints_exactly_one_line(row, statement):
    done = capi.run_python(FAULTS + f"for _ in range(3): {statement}\nprint(s.error()[0])")
    assert done.stdout.strip() == str(-row)
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.backends("cpu")
def test_log_none_silences_everything():
    done = capi.run_python(FAULTS + "all_faults()", GRAPE6_LOG="none")
    assert done.stdout == done.stderr == ""


@pytest.mark.backends("cpu")
def test_log_can_be_silenced_by_an_option():
    done = capi.run_python(FAULTS + "s.set_int('G6X_LOG', 0); all_faults()")
    assert done.stdout == done.stderr == ""


@pytest.mark.backends("cpu")
def test_log_info_writes_to_stderr_only():
    done = capi.run_python("s = Session(0); s.put_cloud(cloud(9)); s.force(9, [[0, 0, 0]])\n"
                           "s.close()", GRAPE6_LOG="info")  # fmt: skip
    assert done.stdout == ""
    assert done.stderr != ""


@pytest.mark.backends("cpu")
@pytest.mark.parametrize("by", ["environment", "option"])
def test_on_error_abort_ends_the_program(by):
    env = {"GRAPE6_ON_ERROR": "abort"} if by == "environment" else {}
    option = "" if env else "s.set_int('G6X_ON_ERROR', 1)\n"
    script = FAULTS + option + "print('alive', flush=True); s.put(-4, 1, 1.0, (1, 0, 0))"
    done = capi.start_python(script, **env)
    assert done.returncode == -signal.SIGABRT
    assert done.stdout == "alive\n"
    assert "-4" in done.stderr


def test_row29_out_of_memory_leaves_the_old_particles_intact():
    done = capi.run_python("""
import resource
s = Session(0); source = cloud(300); s.put_cloud(source)
before = s.force(300, source.x, source.v, source.index)
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (400 << 20),) * 2)
assert s.put(200000000, 1, 1.0, (1, 0, 0)) == -29
code, message = s.error()
assert code == -29 and any(c.isdigit() for c in message), message
assert s.force(300, source.x, source.v, source.index).bits() == before.bits()
assert s.put(2147483647, 1, 1.0, (1, 0, 0)) in (-29, -27)
assert s.put(400, 1, 1.0, (1, 0, 0)) == 0
assert s.force(401, source.x, source.v, source.index).code == 0
""")
    assert done.stdout == ""


LIMITED = """
import resource
s = Session(0); source = cloud(300); s.put_cloud(source)
i = (source.x, source.v, source.index)
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
limit(100)
"""


def test_row29_a_refused_j_particle_makes_forces_nan_until_it_is_written():
    """It was forgotten: the next force had code 0 and lacked it."""
    capi.run_python(
        LIMITED
        + """
for address in (700000, 700001, 900000):
    assert s.put(address, 7, 1.0, (9, 9, 9)) == -29
refused(700001, 700000)
refused(2000000000, 700000)
unchanged(700000)
limit(0)
assert s.put(700001, 8, 0.0, (9, 9, 9)) == 0
refused(700002, 700000)
assert s.put(700000, 7, 0.0, (9, 9, 9)) == 0
unchanged(900000)
refused(900001, 900000)
assert s.put(900000, 9, 0.0, (9, 9, 9)) == 0
unchanged(900001)
"""
    )


def test_row29_what_a_bulk_write_could_not_store_is_known():
    capi.run_python(
        LIMITED
        + """
many = cloud(200)
assert s.put_cloud(many, np.r_[1600000:1600100, 0:100]) == -29
limit(0)
assert s.force(1600000, *i).code == 0  # the later ones had space
refused(1600001, 1600000)
assert s.put_cloud(many.take(range(99)), np.arange(1600000, 1600099)) == 0
refused(1600100, 1600099)
s.close(); s = Session(0); s.put_cloud(source)
assert s.force(1600100, *i).bits() == before.bits()
"""
    )


def test_row29_a_refused_fourth_derivative_does_not_leave_the_old_particle():
    capi.run_python(
        LIMITED.replace("limit(100)", "")
        + """
assert s.put(700000, 7, 0.0, (9, 9, 9)) == 0
used = int(open("/proc/self/statm").read().split()[0]) * 4096
limit(4)
assert s.put(5, 5, 1.0, source.x[5], k18=(1, 1, 1)) == -29
refused(6, 5)
limit(0)
assert s.force(5, *i).code == 0
assert s.put(5, 5, source.mass[5], source.x[5], source.v[5]) == 0
assert s.force(300, *i).bits() == before.bits()
"""
    )


@pytest.mark.backends("cpu cpu-tree")
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


@pytest.mark.backends("cpu")
@pytest.mark.parametrize(("name", "value"), [("GRAPE6_PRECISION", "quadruple"),
                                             ("GRAPE6_THREADS", "-7"),
                                             ("GRAPE6_ISA", "mmx"),
                                             ("GRAPE6_LOG", "loud")])  # fmt: skip
def test_nonsense_in_the_environment_is_survived(name, value):
    done = capi.run_python("print(call('g6_open', 0)); call('g6_npipes')", **{name: value})
    assert int(done.stdout) in (0, -11)
