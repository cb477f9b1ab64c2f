"""Calls of the other libraries: treecode, multi-card, low-level and debugging forms."""

import ctypes

import numpy as np
import pytest

import capi
from particles import assert_force, cloud, direct

pytestmark = pytest.mark.backends("cpu cuda gpu")

ORIGIN = np.zeros((1, 3))
SOURCE = cloud(40, seed=21)
X, V, INDEX = SOURCE.x[:5].copy(), SOURCE.v[:5].copy(), SOURCE.index[:5].copy()


def test_1_3_mxonly_particles_are_at_rest_and_not_extrapolated(session):
    session.put(0, 1, 1.0, (5, 5, 5), v=(1, 1, 1), a2=(1, 1, 1), j6=(1, 1, 1), k18=(1, 1, 1))
    x = np.array([2.0, 0, 0])
    assert capi.call("g6_set_j_particle_mxonly", session.cluster, 0, 8, 4.0, x) == 0
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
    assert capi.call("g6_flush_jp_buffer_and_multisend", first, 3) == 0


def test_1_3_all_forms_have_one_memory_of_their_own(session):
    session.put(0, 99, 1e6, (1, 0, 0))
    zero, out, length = np.zeros(3), capi.Force.blank(5), ctypes.c_int()
    assert capi.call("g6_open_all") == 0
    assert capi.call("g6_reset_all") == 0
    assert capi.call("g6_reset_fofpga_all") == 0
    assert capi.call("g6_initialize_jp_buffer_all", 1000) == 0
    for a in range(39):
        assert capi.call("g6_set_j_particle_all", a, a, 0.0, 0.1, SOURCE.mass[a], zero, zero,
                         zero, SOURCE.v[a], SOURCE.x[a]) == 0  # fmt: skip
    assert capi.call("g6_set_j_particle_mxonly_all", 39, 39, SOURCE.mass[39], SOURCE.x[39]) == 0
    assert capi.call("g6_flush_jp_buffer_all") == 0
    assert capi.call("g6_set_ti_all", 0.0) == 0
    source = SOURCE.take(range(40))
    source.v[39] = 0
    expected = direct(X, V, INDEX, source, eps2=0.01)
    head, old, h2 = [40, 5, INDEX, X, V], [np.zeros((5, 3))] * 2 + [np.zeros(5)], np.full(5, 0.8)
    assert capi.call("g6calc_firsthalf_all", *head, *old, 0.01, h2) == 0
    assert capi.call("g6calc_lasthalf2_all", *head, 0.01, h2, out.acc, out.jerk, out.pot,
                     out.nearest) == 0  # fmt: skip
    assert_force(out, expected, 1e-5)
    assert (out.nearest == expected[3]).all()
    assert capi.call("g6_read_neighbour_list_all") == 0
    found = np.zeros(40, np.int32)
    assert capi.call("g6_get_neighbour_list_all", 2, 40, ctypes.byref(length), found) == 0
    assert length.value > 0
    assert 2 not in found[: length.value]
    plain = capi.Force.blank(5)
    assert capi.call("g6calc_firsthalf_all", *head, *old, 0.01, h2) == 0
    last = [plain.acc, plain.jerk, plain.pot]
    assert capi.call("g6calc_lasthalf_all", *head, 0.01, h2, *last) == 0
    assert plain.bits() == out.bits()
    eps2 = np.full(5, 0.01)
    assert capi.call("g6calc_firsthalf0_all", *head, *old, eps2, h2, 0) == 0
    assert capi.call("g6calc_lasthalf0_all", *head, eps2, h2, *last, 0) == 0
    assert_force(plain, expected, 1e-5)
    assert capi.call("g6_close_all") == 0
    assert session.force(1, ORIGIN).acc[0, 0] == pytest.approx(1e6)


def per_particle(session, eps2, mode=0):
    ni = len(eps2)
    head, out = [session.cluster, 40, ni, INDEX[:ni], X[:ni], V[:ni]], capi.Force.blank(ni)
    zero3, zero = np.zeros((ni, 3)), np.zeros(ni)
    assert capi.call("g6calc_firsthalf0", *head, zero3, zero3, zero, eps2, zero, mode) == 0
    out.code = capi.call("g6calc_lasthalf0", *head, eps2, zero, out.acc, out.jerk, out.pot, mode)
    return out


@pytest.mark.parametrize("mode", [0, 3])
def test_1_3_firsthalf0_softens_each_i_particle_by_itself(exact, mode):
    exact.put_cloud(SOURCE)
    eps2 = np.array([0.0, 1e-4, 0.01, 1.0, 100.0])
    assert_force(per_particle(exact, eps2, mode), direct(X, V, INDEX, SOURCE, eps2=eps2), 1e-12)


def test_1_3_firsthalf0_with_one_softening_has_the_bits_of_firsthalf(session):
    session.put_cloud(SOURCE)
    expected = session.force(40, X, V, INDEX, eps2=0.01)
    assert per_particle(session, np.full(5, 0.01)).bits() == expected.bits()


def test_1_3_neighbour_distance_comes_in_single_precision(session):
    session.put_cloud(SOURCE)
    for name in ("g6calc_lasthalf2p", "g6calc_lasthalf2np"):
        assert session.first(40, X, V, INDEX) == 0
        out, distance = capi.Force.blank(5), np.full(7, 777, np.float32)
        assert capi.call(name, session.cluster, 40, 5, INDEX, X, V, 0.0, np.zeros(5), out.acc,
                         out.jerk, out.pot, out.nearest, distance) == 0  # fmt: skip
        expected = direct(X, V, INDEX, SOURCE)
        assert (out.nearest == expected[3]).all()
        assert (distance[5:] == 777).all()
        truth = np.linalg.norm(SOURCE.x[out.nearest] - X, axis=1)
        assert distance[:5] == pytest.approx(truth, rel=1e-6)


def test_1_3_neighbour_distance_is_zero_without_a_neighbour(session):
    session.put(0, 7, 1.0, (1, 0, 0))
    x, index = np.zeros((1, 3)), np.array([7], np.int32)
    session.first(1, x, x, index)
    out, distance = capi.Force.blank(1), np.full(1, 777, np.float32)
    assert capi.call("g6calc_lasthalf2p", session.cluster, 1, 1, index, x, x, 0.0, np.zeros(1),
                     out.acc, out.jerk, out.pot, out.nearest, distance) == 0  # fmt: skip
    assert out.nearest[0] == 7
    assert distance[0] == 0


@pytest.mark.parametrize("name", ["g6calc_lasthalfn", "g6calc_lasthalf2n"])
def test_1_3_n_variants_are_the_plain_calls(session, name):
    session.put_cloud(SOURCE)
    expected = session.force(40, X, V, INDEX, h2=1.0)
    lists = [session.neighbours(i) for i in range(5)]
    out = capi.Force.blank(5)
    session.first(40, X, V, INDEX, h2=1.0)
    tail = [out.acc, out.jerk, out.pot, out.nearest][: 4 if "2" in name else 3]
    args = [session.cluster, 40, 5, INDEX, X, V, 0.0, np.ones(5), *tail]
    assert capi.call(name, *args) == 0
    assert out.bits() == expected.bits()
    assert [session.neighbours(i) for i in range(5)] == lists


@pytest.mark.parametrize("etc", [False, True])
def test_1_3_low_level_calls_give_the_force_of_firsthalf(session, etc):
    session.put_cloud(SOURCE)
    expected, cluster = session.force(40, X, V, INDEX, eps2=0.01), session.cluster
    assert capi.call("g6_set_nip", cluster, 5) == 0
    assert capi.call("g6_set_njp", cluster, 40) == 0
    for pipe in (3, 1, 4, 0, 2):
        assert capi.call("g6_set_i_particle_scales_from_real_value", cluster, pipe, X[0], X[0],
                         1.0, 2.0, 2.0) == 0  # fmt: skip
        assert capi.call("g6_set_i_particle", cluster, pipe, int(INDEX[pipe]), X[pipe], V[pipe],
                         0.01, 0.5) == 0  # fmt: skip
    out, flag = capi.Force.blank(5), np.full(5, -777, np.int32)
    if etc:
        last = [out.acc, out.jerk, out.pot, out.nearest, flag]
        assert capi.call("g6_get_force_etc", cluster, *last) == 0
        assert (out.nearest == expected.nearest).all()
    else:
        assert capi.call("g6_get_force", cluster, out.acc, out.jerk, out.pot, flag) == 0
    assert out.bits() == expected.bits()
    assert not flag.any()


def test_1_3_pipes_set_before_keep_their_particles_when_more_come(plain):
    plain.put_cloud(SOURCE)
    expected, cluster = plain.force(40, X, V, INDEX, eps2=0.01), plain.cluster
    for pipe in range(5):
        assert capi.call("g6_set_i_particle", cluster, pipe, int(INDEX[pipe]), X[pipe], V[pipe],
                         0.01, 0.5) == 0  # fmt: skip
    assert capi.call("g6_set_i_particle", cluster, 700, 3, X[3], V[3], 0.01, 0.5) == 0
    assert capi.call("g6_set_njp", cluster, 40) == 0
    for nip in (5, 701, 2000):
        assert capi.call("g6_set_nip", cluster, nip) == 0
        out, flag = capi.Force.blank(nip), np.zeros(nip, np.int32)
        assert capi.call("g6_get_force", cluster, out.acc, out.jerk, out.pot, flag) == 0
        assert (out.acc[:5] == expected.acc).all()
        assert (out.jerk[:5] == expected.jerk).all()
        if nip > 700:
            assert (out.acc[700] == expected.acc[3]).all()


@pytest.mark.parametrize("pipe", [-1, 2147483647])
def test_1_3_a_pipe_that_cannot_be_is_refused(plain, pipe):
    args = plain.cluster, pipe, 0, X[0], V[0], 0.0, 0.0
    assert capi.call("g6_set_i_particle", *args) == -13
    assert str(pipe) in plain.error()[1]


def test_1_3_particles_can_be_read_back(session):
    session.put_cloud(SOURCE)
    session.force(40, X, V, INDEX)
    found = np.zeros((10, 6))
    assert capi.call("get_j_part_data", 7, 10, found) == 0
    assert (found == np.hstack([SOURCE.x, SOURCE.v])[7:17]).all()


def test_1_3_there_is_room_for_ten_million(session):
    assert capi.call("g6_getnjmax", session.cluster) >= 10**7


def test_1_2_the_sort_mode_is_given_back_and_lists_stay_sorted(session):
    for mode in (3, 0, 1):
        assert capi.call("g6_set_neighbour_list_sort_mode", mode) == 0
        assert capi.call("g6_get_neighbour_list_sort_mode") == mode
    session.put_cloud(SOURCE, np.arange(40)[::-1])
    session.force(40, X, V, INDEX, h2=np.inf)
    assert session.neighbours(2)[2] == [0, 1, *range(3, 40)]


def test_1_2_dormant_calls_return_zero(session, capfd):
    assert capi.call("g6_set_overflow_flag_test_mode", 1, 1, 1) == 0
    assert capi.call("g6_print_chip_status", session.cluster) == 0
    assert capi.call("force_j_particle_send") == 0
    assert capi.call("get_device_count") >= 1
    assert capfd.readouterr() == ("", "")
