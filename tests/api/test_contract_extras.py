"""Calls of the other libraries: treecode, multi-GPU, low-level and debugging forms."""

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


def test_1_3_mxonly_particles_are_at_rest_and_not_extrapolated(session):
    session.put(0, 1, 1.0, (5, 5, 5), v=(1, 1, 1), a2=(1, 1, 1), j6=(1, 1, 1), k18=(1, 1, 1))
    done("g6_set_j_particle_mxonly", session.cluster, 0, 8, 4.0, np.array([2.0, 0, 0]))
    session.set_ti(1e6)
    found = session.force(1, ORIGIN)
    assert found.acc[0].tolist() == pytest.approx([1, 0, 0])
    assert found.jerk[0].tolist() == [0, 0, 0]
    assert found.nearest[0] == 8


@pytest.mark.parametrize("name", ["g6_set_j_particle_multisend_mxfast_",
                                  "g6_set_j_particle_multisend_mxfast__"])  # fmt: skip
def test_1_3_multisend_reaches_every_cluster_of_the_range(new_session, name):
    three = [new_session() for _ in range(3)]
    after = new_session()
    first = three[0].cluster
    assert [s.cluster for s in three] == [first, first + 1, first + 2]
    cells = [np.array([n], np.int32) for n in (first, 3, 0, 8)]
    mass, x = np.array([4.0]), np.array([2.0, 0, 0])
    function = capi.library()[name]
    function.argtypes, function.restype = [ctypes.c_void_p] * 6, ctypes.c_int
    assert function(*[a.ctypes.data for a in [*cells, mass, x]]) == 0
    assert [s.force(1, ORIGIN).acc[0, 0] for s in three] == pytest.approx([1, 1, 1])
    assert after.force(1, ORIGIN).acc[0, 0] == 0
    done("g6_flush_jp_buffer_and_multisend", first, 3)


def test_1_3_all_forms_have_one_memory_of_their_own(session):
    session.put(0, 99, 1e6, (1, 0, 0))
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
        assert session.first(40, X, V, INDEX, eps2, 0.8, name=first, more=mode) == 0
        forces[form] = session.last(40, X, V, INDEX, eps2, name=last, more=mode)
        assert_force(forces[form], expected, 1e-5)
    assert (forces["2"].nearest == expected[3]).all()
    assert forces["2"].bits() == forces[""].bits()
    done("g6_read_neighbour_list_all")
    done("g6_get_neighbour_list_all", 2, 40, ctypes.byref(length), found)
    assert found[: length.value].tolist() == lists(X, V, INDEX, source, 0.8, eps2=0.01)[2]
    done("g6_close_all")
    assert session.force(1, ORIGIN).acc[0, 0] == pytest.approx(1e6)


def per_particle(session, eps2, mode=0):
    args = 40, X, V, INDEX, eps2
    assert session.first(*args, name="g6calc_firsthalf0", more=[mode]) == 0
    return session.last(*args, name="g6calc_lasthalf0", more=[mode])


@pytest.mark.parametrize("mode", [0, 3])
def test_1_3_firsthalf0_softens_each_i_particle_by_itself(exact, mode):
    exact.put_cloud(SOURCE)
    eps2 = np.array([0.0, 1e-4, 0.01, 1.0, 100.0])
    assert_force(per_particle(exact, eps2, mode), direct(X, V, INDEX, SOURCE, eps2=eps2), 1e-12)


def test_1_3_firsthalf0_with_one_softening_has_the_bits_of_firsthalf(session):
    session.put_cloud(SOURCE)
    expected = session.force(40, X, V, INDEX, eps2=0.01)
    assert per_particle(session, np.full(5, 0.01)).bits() == expected.bits()


@pytest.mark.parametrize("name", ["g6calc_lasthalf2p", "g6calc_lasthalf2np"])
def test_1_3_neighbour_distance_comes_in_single_precision(session, name):
    """And is zero without a neighbour."""
    session.put_cloud(SOURCE)
    for nj, index in (40, INDEX), (1, np.zeros(5, np.int32)):
        distance = np.full(7, 777, np.float32)
        assert session.first(nj, X, V, index) == 0
        out = session.last(nj, X, V, index, name=name, more=[distance])
        assert out.code == 0
        assert (out.nearest == direct(X, V, index, SOURCE.take(range(nj)))[3]).all()
        truth = np.linalg.norm(SOURCE.x[out.nearest] - X, axis=1) * (nj > 1)
        assert distance.tolist() == pytest.approx([*truth, 777, 777], rel=1e-6)


@pytest.mark.parametrize("name", ["g6calc_lasthalfn", "g6calc_lasthalf2n"])
def test_1_3_n_variants_are_the_plain_calls(session, name):
    session.put_cloud(SOURCE)
    expected = session.force(40, X, V, INDEX, h2=1.0)
    lists = [session.neighbours(i) for i in range(5)]
    session.first(40, X, V, INDEX, h2=1.0)
    found = session.last(40, X, V, INDEX, name=name)
    assert found.code == 0
    assert found.bits() == expected.bits()
    assert [session.neighbours(i) for i in range(5)] == lists


def set_pipe(session, pipe, i):
    done("g6_set_i_particle", session.cluster, pipe, int(INDEX[i]), X[i], V[i], 0.01, 0.5)


@pytest.mark.parametrize("etc", [False, True])
def test_1_3_low_level_calls_give_the_force_of_firsthalf(session, etc):
    session.put_cloud(SOURCE)
    expected, cluster = session.force(40, X, V, INDEX, eps2=0.01), session.cluster
    done("g6_set_nip", cluster, 5)
    done("g6_set_njp", cluster, 40)
    scales = "g6_set_i_particle_scales_from_real_value"
    for pipe in (3, 1, 4, 0, 2):
        done(scales, cluster, pipe, X[0], X[0], 1.0, 2.0, 2.0)
        set_pipe(session, pipe, pipe)
    out, flag = capi.Force.blank(5), np.full(5, -777, np.int32)
    if etc:
        done("g6_get_force_etc", cluster, out.acc, out.jerk, out.pot, out.nearest, flag)
        assert (out.nearest == expected.nearest).all()
    else:
        done("g6_get_force", cluster, out.acc, out.jerk, out.pot, flag)
    assert out.bits() == expected.bits()
    assert not flag.any()


def test_1_3_pipes_set_before_keep_their_particles_when_more_come(plain):
    plain.put_cloud(SOURCE)
    expected = plain.force(40, X, V, INDEX, eps2=0.01)
    for pipe, i in (*((i, i) for i in range(5)), (700, 3)):
        set_pipe(plain, pipe, i)
    done("g6_set_njp", plain.cluster, 40)
    for nip in (5, 701, 2000):
        done("g6_set_nip", plain.cluster, nip)
        out, flag = capi.Force.blank(nip), np.zeros(nip, np.int32)
        done("g6_get_force", plain.cluster, out.acc, out.jerk, out.pot, flag)
        assert (out.acc[:5] == expected.acc).all()
        assert (out.jerk[:5] == expected.jerk).all()
        assert nip == 5 or (out.acc[700] == expected.acc[3]).all()


@pytest.mark.parametrize("pipe", [-1, 2147483647])
def test_1_3_a_pipe_that_cannot_be_is_refused(plain, pipe):
    args = plain.cluster, pipe, 0, X[0], V[0], 0.0, 0.0
    assert capi.call("g6_set_i_particle", *args) == -13
    assert str(pipe) in plain.error()[1]


def test_1_3_particles_can_be_read_back(session):
    session.put_cloud(SOURCE)
    session.force(40, X, V, INDEX)
    found = np.zeros((10, 6))
    done("get_j_part_data", 7, 10, found)
    assert (found == np.hstack([SOURCE.x, SOURCE.v])[7:17]).all()


def test_1_3_there_is_space_for_ten_million(session):
    assert capi.call("g6_getnjmax", session.cluster) >= 10**7


def test_1_2_the_sort_mode_is_given_back_and_lists_stay_sorted(session):
    for mode in (3, 0, 1):
        done("g6_set_neighbour_list_sort_mode", mode)
        assert capi.call("g6_get_neighbour_list_sort_mode") == mode
    session.put_cloud(SOURCE, np.arange(40)[::-1])
    session.force(40, X, V, INDEX, h2=np.inf)
    assert session.neighbours(2)[2] == [0, 1, *range(3, 40)]


def test_1_2_dormant_calls_return_zero(session, capfd):
    done("g6_set_overflow_flag_test_mode", 1, 1, 1)
    done("g6_print_chip_status", session.cluster)
    done("force_j_particle_send")
    assert capi.call("get_device_count") >= 1
    assert capi.call("g6_changed_index", session.cluster) == -1  # no row's scale was changed
    assert capfd.readouterr() == ("", "")
