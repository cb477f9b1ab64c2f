"""The new calls: bulk writes, options, texts, version and backend."""

import ctypes
import os
import re
from pathlib import Path

import numpy as np
import pytest

import capi
from particles import assert_force, cloud, direct

ORIGIN = np.zeros((1, 3))
INT_OPTIONS = {
    "G6X_PRECISION": (0, [0, 1, 2, 3], [-1, 4, 99]),
    "G6X_THREADS": (0, [0, 1, 2, 3, 7], [-1]),
    "G6X_JERK": (1, [0, 1], [-1]),
    "G6X_SNAP": (1, [0, 1], [-1]),
    "G6X_NEIGHBOUR_SELF": (0, [0, 1], [-1]),
    "G6X_SCALE_LENGTH": (capi.CONSTANTS["G6X_AUTO"], [-100, 0, 100], []),
    "G6X_SCALE_MASS": (capi.CONSTANTS["G6X_AUTO"], [-100, 0, 100], []),
    "G6X_SCALE_VELOCITY": (capi.CONSTANTS["G6X_AUTO"], [-100, 0, 100], []),
    "G6X_TREE_METHOD": (0, [1, 0], [-1, 2]),
    "G6X_TREE_ORDER": (5, [2, 6, 4], [1, 7, -1]),
}


@pytest.mark.parametrize("key", INT_OPTIONS)
def test_integer_options_have_a_default_a_range_and_a_memory(new_session, key):
    session, other = new_session(), new_session()
    default, good, bad = INT_OPTIONS[key]
    assert session.get_int(key) == default
    for value in good:
        session.set_int(key, value)
        assert session.get_int(key) == value
    for value in bad:
        assert session.set_int(key, value, check=False) == -11
        assert session.get_int(key) == good[-1]
    assert other.get_int(key) == default


@pytest.mark.parametrize(("key", "default"), [("G6X_VERIFY", 0.0), ("G6X_THETA", 0.5)])
def test_verify_and_theta_are_fractions(plain, key, default):
    assert plain.get_double(key) == default
    for fraction, code in ((0.25, 0), (1.0, 0), (1.5, -11), (-0.1, -11), (np.nan, -11), (0.0, 0)):
        assert plain.set_double(key, fraction) == code
    assert plain.get_double(key) == 0


def test_unknown_options_are_refused(plain):
    cell = np.zeros(1)
    for key in (0, -1, 24, 9999):
        for kind, value in ("int", 0), ("double", 0.0):
            assert capi.call(f"g6x_set_{kind}", plain.cluster, key, value) == -11
            assert capi.call(f"g6x_get_{kind}", plain.cluster, key, cell) == -11


def test_npipes_can_be_read_but_not_written(plain):
    assert plain.get_int("G6X_NPIPES") == capi.call("g6_npipes") == 48
    assert plain.set_int("G6X_NPIPES", 64, check=False) == -11
    assert capi.call("g6_npipes") == 48


def test_instruction_sets_that_the_machine_lacks_are_refused(plain):
    cpuinfo = Path("/proc/cpuinfo").read_text() + "flags:"
    flags = set(re.search(r"flags\s*:(.*)", cpuinfo)[1].split())
    has = {"avx2": {"avx2", "fma"} <= flags, "avx512": "avx512f" in flags, "base": True}
    has["neon"] = os.uname().machine == "aarch64"
    for name, code in capi.ISAS.items():
        result = plain.set_int("G6X_ISA", code, check=False)
        assert result == (0 if has[name] else -11), name
        if result == 0:
            assert plain.get_int("G6X_ISA") == code
            assert capi.text("g6x_backend", plain.cluster) == (0, f"cpu {name}")
    assert plain.set_int("G6X_ISA", 17, check=False) == -11


def test_the_rate_that_benchmarks_divide_by_is_that_of_vectors():
    rate = capi.library().g6x_fma_rate
    rate.restype, rate.argtypes = ctypes.c_double, [ctypes.c_int] * 2
    for code in capi.ISAS.values():
        for mode in capi.MODES.values():
            assert rate(code, mode) == 0 or rate(code, mode) > 1e6
    assert rate(0, 0) > 1e6
    assert rate(17, 0) == 0


def test_precision_takes_effect_at_the_next_force(plain):
    source = cloud(300)
    plain.put_cloud(source)
    expected = direct(source.x, source.v, source.index, source)
    limits = {"double": (0, 1e-11), "grape": (1e-11, 1e-4), "single": (1e-9, 1e-2)}
    for mode in ("grape", "double", "single", "double"):
        plain.set_int("G6X_PRECISION", capi.MODES[mode])
        found = plain.force(300, source.x, source.v, source.index)
        error = abs(found.acc - expected[0]).max() / abs(expected[0]).max()
        assert limits[mode][0] <= error < limits[mode][1], mode


def test_jerk_not_wanted_comes_back_as_nan(session):
    source = cloud(300)
    session.put_cloud(source)
    full = session.force(300, source.x, source.v, source.index, h2=0.1)
    session.set_int("G6X_JERK", 0)
    found = session.force(300, source.x, source.v, source.index, h2=0.1)
    assert found.code == 0
    assert np.isnan(found.jerk).all()
    assert (found.acc == full.acc).all()
    assert (found.pot == full.pot).all()
    assert (found.nearest == full.nearest).all()


def test_environment_gives_the_first_values():
    values = {"PRECISION": ("double", 1), "THREADS": ("1", 1), "ISA": ("base", 1),
              "JERK": ("0", 0), "SNAP": ("0", 0), "NEIGHBOUR_SELF": ("1", 1), "LOG": ("none", 0),
              "ON_ERROR": ("abort", 1), "TREE_METHOD": ("bh", 1),
              "TREE_ORDER": ("3", 3)}  # fmt: skip
    done = capi.run_python(f"""
call("g6_open", 0)
print(*(Session.unopened(0).get_int("G6X_" + key) for key in {list(values)}))
""", **{f"GRAPE6_{key}": word for key, (word, _) in values.items()})  # fmt: skip
    assert done.stdout.split() == [str(number) for _, number in values.values()]
    assert done.stderr == ""


def test_bulk_writes_take_null_for_what_is_zero_or_in_order(exact):
    source = cloud(50)
    none = [None] * 5
    assert capi.call("g6x_set_j_particles", exact.cluster, 50, None, None, *none[:2], source.mass,
                     *none[:3], None, source.x) == 0  # fmt: skip
    source.v[:] = 0
    exact.set_ti(3.0)
    found = exact.force(50, source.x, source.v, source.index)
    assert_force(found, direct(source.x, source.v, source.index, source, time=3.0), 1e-11)
    assert (found.nearest == direct(source.x, source.v, source.index, source)[3]).all()


def test_bulk_index_defaults_to_the_address(session):
    source = cloud(3)
    addresses = np.array([7, 3, 5], np.int32)
    assert capi.call("g6x_set_j_particles", session.cluster, 3, addresses, None, None, None,
                     source.mass, None, None, None, None, source.x) == 0  # fmt: skip
    session.force(8, ORIGIN, h2=np.inf)
    assert session.neighbours(0)[2] == [3, 5, 7]


def test_version_text_and_number_agree():
    number, name = capi.text("g6x_version")
    found = re.fullmatch(r"grape6py (\d+)\.(\d+)\.(\d+)\S*", name)
    major, minor, patch = map(int, found.groups())
    assert number == 10000 * major + 100 * minor + patch > 0


@pytest.mark.parametrize("length", [1, 2, 10])
def test_texts_are_cut_to_the_buffer(plain, length):
    plain.put(-5, 1, 1.0, (1, 0, 0))
    whole = plain.error()[1]
    buffer = ctypes.create_string_buffer(b"#" * 20, 21)
    code = capi.call("g6x_last_error", plain.cluster, ctypes.addressof(buffer), length)
    assert code == -13
    assert buffer.raw[:length] == whole.encode()[: length - 1] + b"\0"
    assert buffer.raw[length:20] == b"#" * (20 - length)


def test_errors_are_kept_until_cleared(new_session):
    session, other = new_session(), new_session()
    assert session.error() == (0, "")
    session.put(-5, 1, 1.0, (1, 0, 0))
    session.put(0, 1, 1.0, (1, 0, 0))
    code, message = session.error()
    assert code == -13
    assert "-5" in message
    assert "\n" not in message
    assert other.error() == (0, "")
    assert capi.call("g6x_clear_error", session.cluster) == 0
    assert session.error() == (0, "")


def test_row09_coincident_pairs_leave_a_warning(session):
    assert capi.text("g6x_last_warning", session.cluster) == (0, "")
    session.put(0, 1, 1.0, (0, 0, 0))
    session.force(1, ORIGIN, index=[1])
    assert capi.text("g6x_last_warning", session.cluster)[1] == ""
    assert session.force(1, ORIGIN, index=[2]).code == 0
    assert capi.text("g6x_last_warning", session.cluster)[1] != ""
    assert session.error() == (0, "")
