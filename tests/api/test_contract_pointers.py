"""The Fortran forms: every call with every argument by pointer does what the C form does.

The tests of the other libraries' calls and of null pointers run once more, their calls turned into
pointer forms; then each scalar in turn is a null pointer.
"""

import ctypes

import numpy as np
import pytest

import capi
from particles import assert_nan
from test_contract_extras import *  # noqa: F403
from test_contract_neighbours import test_lists_follow_either_lasthalf  # noqa: F401
from test_contract_predictor import test_2_1_each_derivative_has_its_coefficient  # noqa: F401
from test_contract_symbols import HISTORICAL
from test_faults_codes import test_a_null_pointer_is_named_not_followed  # noqa: F401

pytestmark = pytest.mark.backends("cpu cuda gpu")

by_value = capi.call


@pytest.fixture(autouse=True)
def calls_by_pointer(monkeypatch):
    def call(name, *args):
        only = name.startswith("g6x_") or name.endswith("_")
        return by_value(name, *args) if only else capi.by_pointer(f"{name}_", *args)

    monkeypatch.setattr(capi, "call", call)


@pytest.fixture
def isa():
    """One is enough: the calls are the same in all."""


@pytest.fixture
def mode():
    return "grape"


def address(name):
    return ctypes.cast(capi.library()[name], ctypes.c_void_p).value


@pytest.mark.parametrize("name", [name for name in HISTORICAL if not name.endswith("_")])
def test_one_underscore_and_two_are_one_function(name):
    assert address(f"{name}_") == address(f"{name}__") != address(name)


# Arguments that are never looked at, so that they may point nowhere.
IGNORED = {
    "g6_open_special2": [2],
    "g6_set_j_particle": [4],
    "g6_set_j_particle_all": [3],
    "g6_initialize_jp_buffer": [1],
    "g6_initialize_jp_buffer_all": [0],
    "g6_flush_jp_buffer_and_multisend": [1],
    "g6_setup_njdata": [1],
    "g6_set_i_particle_scales_from_real_value": [1, 4, 5, 6],
    "g6calc_firsthalf0": [11],
    "g6calc_firsthalf0_all": [10],
    "g6calc_lasthalf0": [6, 11],
    "g6calc_lasthalf0_all": [5, 10],
    "g6_set_overflow_flag_test_mode": [0, 1, 2],
    **{name: [0] for name in ("g6_reset", "g6_reset_fofpga", "g6_reinitialize", "g6_set_tunit",
                              "g6_set_xunit", "g6_changed_index")},
    **{name: [5 if name.endswith("_all") else 6] for name in HISTORICAL
       if name.startswith("g6calc_lasthalf") and "0" not in name},
}  # fmt: skip
# A null pointer in these stands for cluster 0.
CLUSTER_0 = ["g6_open", "g6_close"]


def scalars():
    for name in HISTORICAL:
        for k, letter in enumerate(capi.SIGNATURES[name]):
            if letter != "p" and name not in CLUSTER_0:
                yield pytest.param(name, k, id=f"row26-{name}-{k}")


@pytest.mark.backends("cpu gpu")
@pytest.mark.parametrize(("name", "null"), list(scalars()))
def test_a_scalar_by_null_pointer_is_named_unless_it_is_ignored(plain, name, null):
    plain.put(0, 1, 1.0, (1, 1, 1))
    by_value("g6_open_all")
    zero3, index = np.zeros((1, 3)), np.zeros(1, np.int32)
    plain.first(1, zero3, zero3, index)
    by_value("g6calc_firsthalf_all", 1, 1, index, *[zero3] * 5, 0.0, np.zeros(1))
    letters = capi.SIGNATURES[name]
    args = [np.zeros(64) if letter == "p" else 1 for letter in letters]
    if letters[0] == "i" and not name.endswith("_all"):
        args[0] = plain.cluster
    if name.startswith("g6_get_neighbour_list"):
        args[0 if name.endswith("_all") else 1] = 0
    args[null] = None
    good = -1 if name == "g6_changed_index" else 0  # no row
    assert capi.by_pointer(f"{name}_", *args) == (good if null in IGNORED.get(name, []) else -26)
    by_value("g6_close_all")


@pytest.mark.parametrize("variant", ["2_", "2p_", "2np__"])
def test_row26_a_force_call_without_counts_leaves_nan(plain, variant):
    """And no neighbours, whether there is a place for their distances or not."""
    out, distance = capi.Force.blank(2), np.ones(2, np.float32)
    args = [None, None, 2, *[None] * 5, out.acc, out.jerk, out.pot, out.nearest]
    more = [distance] if "p" in variant else []
    assert capi.by_pointer(f"g6calc_lasthalf{variant}", *args, *more) == -26
    assert_nan(out)
    assert (out.nearest == -1).all()
    assert not more or np.isnan(distance).all()


def test_row26_a_firsthalf_without_a_scalar_leaves_no_force_call(plain):
    plain.put(0, 1, 1.0, (1, 1, 1))
    zero3, index = np.zeros((1, 3)), np.zeros(1, np.int32)
    plain.first(1, zero3, zero3, index)
    assert capi.by_pointer("g6calc_firsthalf_", plain.cluster, *[None] * 10) == -26
    assert plain.last(1, zero3, zero3, index).code == -18
