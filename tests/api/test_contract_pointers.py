"""Pointers: one argument of a call at a time is a null pointer, by value and in Fortran's forms.

That each of Fortran's forms does what the C form does: test_fuzz.py."""

import ctypes
import mmap

import numpy as np
import pytest

import capi
from capi import by_pointer, call
from particles import cloud
from test_contract_symbols import HISTORICAL

SOURCE = cloud(40, seed=21)
X, V, INDEX = SOURCE.x[:5].copy(), SOURCE.v[:5].copy(), SOURCE.index[:5].copy()


def address(name):
    return ctypes.cast(capi.library()[name], ctypes.c_void_p).value


def test_one_underscore_and_two_are_one_function():
    for name in [name for name in HISTORICAL if not name.endswith("_")]:
        assert address(f"{name}_") == address(f"{name}__") != address(name), name


# Arguments, by number, that may be null: they are never looked at, or NULL means something.
MAY_BE_NULL = {
    "g6_open_special": {1},  # a list that has no entries
    "g6_open_special2": {1, 2},
    "g6_set_j_particle": {4},
    "g6_initialize_jp_buffer": {1},
    "g6_flush_jp_buffer_and_multisend": {1},
    "g6_setup_njdata": {1},
    "g6_set_i_particle_scales_from_real_value": {1, 2, 3, 4, 5, 6},
    "g6calc_firsthalf": {6, 7, 8},
    "g6calc_firsthalf0": {6, 7, 8, 11},
    "g6_set_overflow_flag_test_mode": {0, 1, 2},
    **{name: {0} for name in ("g6_open", "g6_close", "g6_reset", "g6_reset_fofpga",
                              "g6_reinitialize", "g6_set_tunit", "g6_set_xunit",
                              "g6_changed_index")},
    "g6x_set_j_particles": {2, 3, 4, 5, 7, 8, 9, 10},
    "g6x_set_j_particles_device": {2, 3, 4, 6, 7, 8, 9, 11},
    "g6x_hermite_correct": {8, 10},
    "g6x_get_predicted_j_particles_device": {4},
    "g6x_forces_device": {7, 11, 12, 13},
    "g6x_hermite_next_device": {3},
    "g6x_force_part_device": {12},
    "g6x_merge_parts_device": {7, 8, 9},
    "g6x_hermite_predict_device": {4},
    "g6x_hermite_evolve_device": {3},
    "g6x_hermite_correct_device": {5},
    "g6x_field_add": {5, 6, 7},
    "g6x_hermite_work": {3},
    "g6x_hermite_unfold": {5, 6},
    "g6x_subsystems": {3},
    "g6x_subsystems_get": {3},
}  # fmt: skip
OWN_TESTS = ("g6x_tree_", "g6x_walks")  # of null pointers, elsewhere
TEXTS = ("g6x_last_error", "g6x_last_warning", "g6x_version", "g6x_backend")


def may_be_null(name):
    """Of a form for all clusters the arguments stand one before."""
    whole = name.removesuffix("_all")
    found = set(MAY_BE_NULL.get(whole, ()))
    if "lasthalf" in name:  # what the first half has had
        found = {3, 4, 5, 6, 7} | ({11} if "0" in name else set())
    return {k - (name != whole) for k in found}


def arguments(name, cluster, memory):
    """Such that nothing else than a null pointer is wrong."""
    letters, all_forms = capi.SIGNATURES[name], name.endswith("_all")
    args = [{"p": memory[k], "d": 0.0}.get(letter, 1) for k, letter in enumerate(letters)]
    sums = name.startswith(("g6x_add_", "g6x_from_", "g6x_raise_", "g6x_hermite_"))
    if letters[:1] in ("i", "l") and not all_forms and not (sums and "device" not in name):
        args[0] = cluster
    if name.startswith("g6_get_neighbour_list"):
        args[0 if all_forms else 1] = 0
    return args


@pytest.mark.backends("cpu cuda gpu")
def test_row26_a_null_pointer_is_named_not_followed(plain):
    """By value each pointer, by pointer each argument; unless it is ignored or means something."""
    plain.put_cloud(SOURCE)
    for name in capi.SIGNATURES:
        if not name.startswith(OWN_TESTS):
            refuse_nulls(plain, name)
    call("g6_close", 0)  # which a null pointer has opened


def refuse_nulls(plain, name):
    letters, by_address = capi.SIGNATURES[name], name in HISTORICAL
    memory = [np.zeros(64, np.int64) for _ in range(17)]
    memory[0][:], memory[1][:] = plain.cluster, 1
    half = "0" if "half0" in name else ""
    for null, letter in enumerate(letters):
        ignored = null in may_be_null(name)
        if ignored if letter == "p" else not by_address:
            continue
        call("g6_open_all")
        call("g6_set_nip", plain.cluster, 1)
        plain.first(1, X[:1], V[:1], INDEX[:1], *([np.zeros(1), None] if half else []),
                    name=f"g6calc_firsthalf{half}", more=[0] if half else [])  # fmt: skip
        plain.first(1, X[:1], V[:1], INDEX[:1], name="g6calc_firsthalf_all")
        args = arguments(name, plain.cluster, memory)
        args[null] = None
        code = call(name, *args) if letter == "p" else by_pointer(f"{name}_", *args)
        good = -1 if name == "g6_changed_index" else 0  # no row
        assert code == (good if ignored else -26) or name in TEXTS, (name, null)
        call("g6_close_all")


def test_3_30_3_32_arguments_may_lie_in_read_only_memory(plain):
    """Fortran passes constants by address."""
    page = mmap.mmap(-1, mmap.PAGESIZE)
    ints, doubles = np.frombuffer(page, np.int32, 32), np.frombuffer(page, np.float64, 32, 1024)
    where, zero = ctypes.addressof(ctypes.c_char.from_buffer(page)), doubles[8:32]
    ints[:6], doubles[:4] = (plain.cluster, 0, 1, 2, 70, 80), (1, 4, 1, 1)
    one, h2, x = doubles[:1], doubles[1:3], np.zeros((2, 3))
    protect = ctypes.CDLL(None).mprotect
    assert protect(ctypes.c_void_p(where), ctypes.c_size_t(mmap.PAGESIZE), 1) == 0
    cluster, none, _, two = (ints[k : k + 1] for k in range(4))
    out = capi.Force.blank(2)

    def done(name, *arrays):
        function = capi.function(capi.library(), f"{name}_", "p" * len(arrays))
        assert function(*[array.ctypes.data for array in arrays]) == 0

    for j in (0, 1):
        done("g6_set_j_particle", cluster, ints[1 + j :], ints[4 + j :], zero, zero, one,
             *[zero] * 4, doubles[8 + 8 * j :])  # fmt: skip
    done("g6calc_firsthalf", cluster, two, two, ints[4:], zero, *[zero] * 5, h2)
    done("g6calc_lasthalf2", cluster, two, two, ints[4:], zero, zero, zero, h2, out.acc, out.jerk,
         out.pot, out.nearest)  # fmt: skip
    done("g6_read_neighbour_list", cluster)
    done("g6_get_neighbour_list", cluster, none, two, x, out.acc)
    assert out.nearest.tolist() == [80, 70]
    assert protect(ctypes.c_void_p(where), ctypes.c_size_t(mmap.PAGESIZE), 3) == 0
