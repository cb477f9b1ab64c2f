"""Calls of the other libraries: treecode, multi-GPU, low-level and debugging forms.

Each in any order, by value and by pointer, with null pointers among them: test_fuzz.py."""

import ctypes

import numpy as np
import pytest

import capi
from particles import assert_force, cloud, direct, lists

pytestmark = pytest.mark.backends("cpu cuda gpu")

ORIGIN = np.zeros((1, 3))
SOURCE = cloud(40, seed=21)
X, V, INDEX = SOURCE.x[:5].copy(), SOURCE.v[:5].copy(), SOURCE.index[:5].copy()


def done(name, *args):
    assert capi.call(name, *args) == 0, name


def test_1_3_mxonly_particles_are_at_rest_and_not_extrapolated(plain):
    plain.put(0, 1, 1.0, (5, 5, 5), v=(1, 1, 1), a2=(1, 1, 1), j6=(1, 1, 1), k18=(1, 1, 1))
    done("g6_set_j_particle_mxonly", plain.cluster, 0, 8, 4.0, np.array([2.0, 0, 0]))
    plain.set_ti(1e6)
    found = plain.force(1, ORIGIN)
    assert found.acc[0].tolist() == pytest.approx([1, 0, 0])
    assert found.jerk[0].tolist() == [0, 0, 0]
    assert found.nearest[0] == 8


def test_1_3_multisend_reaches_every_cluster_of_the_range(new_session):
    *three, after = [new_session() for _ in range(4)]
    first = three[0].cluster
    assert [s.cluster for s in three] == [first, first + 1, first + 2]
    for underscores, mass in ("_", 4.0), ("__", 8.0):
        cells = [np.array([n], np.int32) for n in (first, 3, 0, 8)]
        function = capi.library()[f"g6_set_j_particle_multisend_mxfast{underscores}"]
        function.argtypes, function.restype = [ctypes.c_void_p] * 6, ctypes.c_int
        body = np.array([mass]), np.array([2.0, 0, 0])
        assert function(*[a.ctypes.data for a in [*cells, *body]]) == 0
        assert [s.force(1, ORIGIN).acc[0, 0] for s in three] == pytest.approx([mass / 4] * 3)
        assert after.force(1, ORIGIN).acc[0, 0] == 0
    done("g6_flush_jp_buffer_and_multisend", first, 3)


def test_1_3_all_forms_have_one_memory_of_their_own(plain):
    plain.put(0, 99, 1e6, (1, 0, 0))
    zero, length, found = np.zeros(3), ctypes.c_int(), np.zeros(40, np.int32)
    for name in ("g6_open_all", "g6_reset_all", "g6_reset_fofpga_all"):
        done(name)
    done("g6_initialize_jp_buffer_all", 1000)
    for a in range(39):
        done("g6_set_j_particle_all", a, a, 0.0, 0.1, SOURCE.mass[a], zero, zero, zero,
             SOURCE.v[a], SOURCE.x[a])  # fmt: skip
    done("g6_set_j_particle_mxonly_all", 39, 39, SOURCE.mass[39], SOURCE.x[39])
    done("g6_flush_jp_buffer_all")
    done("g6_set_ti_all", 0.0)
    source = SOURCE.take(range(40))
    source.v[39] = 0
    expected, forces = direct(X, V, INDEX, source, eps2=0.01), {}
    for form, eps2, mode in ("2", 0.01, []), ("", 0.01, []), ("0", np.full(5, 0.01), [0]):
        first, last = f"g6calc_firsthalf{form.strip('2')}_all", f"g6calc_lasthalf{form}_all"
        assert plain.first(40, X, V, INDEX, eps2, 0.8, name=first, more=mode) == 0
        forces[form] = plain.last(40, X, V, INDEX, eps2, name=last, more=mode)
        assert_force(forces[form], expected, 1e-5)
    assert (forces["2"].nearest == expected[3]).all()
    assert forces["2"].bits() == forces[""].bits()
    done("g6_read_neighbour_list_all")
    done("g6_get_neighbour_list_all", 2, 40, ctypes.byref(length), found)
    assert found[: length.value].tolist() == lists(X, V, INDEX, source, 0.8, eps2=0.01)[2]
    done("g6_close_all")
    assert plain.force(1, ORIGIN).acc[0, 0] == pytest.approx(1e6)


def test_1_3_firsthalf0_softens_each_i_particle_by_itself(in_double):
    """With one softening for all it has the bits of firsthalf."""
    in_double.put_cloud(SOURCE)
    same = np.full(5, 0.01)
    for eps2, mode in (np.array([0.0, 1e-4, 0.01, 1.0, 100.0]), 3), (same, 0):
        args = 40, X, V, INDEX, eps2
        assert in_double.first(*args, name="g6calc_firsthalf0", more=[mode]) == 0
        found = in_double.last(*args, name="g6calc_lasthalf0", more=[mode])
        assert_force(found, direct(X, V, INDEX, SOURCE, eps2=eps2), 1e-12)
    assert found.bits() == in_double.force(40, X, V, INDEX, eps2=0.01).bits()


def test_1_3_forms_of_lasthalf_are_the_plain_one(plain):
    """Those with p have the neighbour's distance in single precision, zero without a neighbour."""
    plain.put_cloud(SOURCE)
    for nj, index in (40, INDEX), (1, np.zeros(5, np.int32)):
        expected = plain.force(nj, X, V, index, h2=1.0)
        found = [plain.neighbours(i) for i in range(5)]
        true = np.linalg.norm(SOURCE.x[expected.nearest] - X, axis=1) * (nj > 1)
        for form in ("n", "2n", "2p", "2np"):
            distance = np.full(7, 777, np.float32)
            more = [distance] if form.endswith("p") else []
            assert plain.first(nj, X, V, index, h2=1.0) == 0
            out = plain.last(nj, X, V, index, name=f"g6calc_lasthalf{form}", more=more)
            assert (out.code, out.bits()) == (0, expected.bits())
            assert form == "n" or (out.nearest == expected.nearest).all()
            assert not more or distance.tolist() == pytest.approx([*true, 777, 777], rel=1e-6)
            assert [plain.neighbours(i) for i in range(5)] == found


def test_1_3_low_level_calls_give_the_force_of_firsthalf(plain):
    """Pipes that were set before keep their particles when more come."""
    plain.put_cloud(SOURCE)
    expected, cluster = plain.force(40, X, V, INDEX, eps2=0.01), plain.cluster
    done("g6_set_njp", cluster, 40)
    for pipe, i in (3, 3), (1, 1), (4, 4), (0, 0), (2, 2), (700, 3):
        done("g6_set_i_particle_scales_from_real_value", cluster, pipe, X[0], X[0], 1.0, 2.0, 2.0)
        done("g6_set_i_particle", cluster, pipe, int(INDEX[i]), X[i], V[i], 0.01, 0.5)
    for nip in (5, 701, 2000):
        done("g6_set_nip", cluster, nip)
        for etc in (False, True):
            out, flag = capi.Force.blank(nip), np.full(nip, -777, np.int32)
            nearest = [out.nearest] if etc else []
            name = "g6_get_force_etc" if etc else "g6_get_force"
            done(name, cluster, out.acc, out.jerk, out.pot, *nearest, flag)
            assert (out.acc[:5] == expected.acc).all()
            assert (out.jerk[:5] == expected.jerk).all()
            assert (out.pot[:5] == expected.pot).all()
            assert not etc or (out.nearest[:5] == expected.nearest).all()
            assert nip == 5 or (out.acc[700] == expected.acc[3]).all()
            assert not flag.any()


def test_1_2_1_3_what_else_may_be_asked_for(plain, capfd):
    plain.put_cloud(SOURCE, np.arange(40)[::-1])
    plain.force(40, X, V, INDEX, h2=np.inf)
    assert plain.neighbours(2)[2] == [0, 1, *range(3, 40)]  # sorted in any mode
    found = np.zeros((10, 6))
    done("get_j_part_data", 7, 10, found)
    assert (found == np.hstack([SOURCE.x, SOURCE.v])[32:22:-1]).all()
    for mode in (3, 0, 1):
        done("g6_set_neighbour_list_sort_mode", mode)
        assert capi.call("g6_get_neighbour_list_sort_mode") == mode
    done("g6_set_overflow_flag_test_mode", 1, 1, 1)
    done("g6_print_chip_status", plain.cluster)
    done("force_j_particle_send")
    assert capi.call("g6_getnjmax", plain.cluster) >= 10**7
    assert capi.call("get_device_count") >= 1
    assert capi.call("g6_changed_index", plain.cluster) == -1  # no row's scale was changed
    assert capfd.readouterr() == ("", "")
