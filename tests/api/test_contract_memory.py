"""The j memory: addresses, nj, slots never written, and what survives what."""

import numpy as np
import pytest

import capi
from particles import assert_force, assert_same, assert_zero, cloud, direct

pytestmark = pytest.mark.backends("cpu cuda cpu-tree:grape cuda-tree:grape gpu")

ORIGIN = np.zeros((1, 3))


def test_3_11_3_37_only_addresses_below_nj_pull(exact):
    source = cloud(50)
    exact.put_cloud(source)
    for nj in (50, 10, 3, 50, 1, 49):
        found = exact.force(nj, ORIGIN, h2=np.inf)
        assert_force(found, direct(ORIGIN, ORIGIN, [-1], source.take(range(nj))), 1e-13)
        assert exact.neighbours(0) == (0, nj, list(range(nj)))


def test_2_3_the_last_write_to_an_address_wins(session):
    session.put(0, 1, 1.0, (1, 0, 0))
    session.put(0, 2, 4.0, (0, 2, 0))
    session.put(0, 3, 9.0, (0, 0, 3))
    found = session.force(1, ORIGIN)
    assert found.acc[0].tolist() == pytest.approx([0, 0, 1])
    assert found.nearest[0] == 3
    session.put_cloud(cloud(3), [0, 0, 0])
    assert session.force(1, ORIGIN).nearest[0] == 2


@pytest.mark.backends("cpu cuda gpu")
def test_many_rewritten_particles_have_the_bits_of_a_new_session(new_session):
    """Most keep their index and the exponents of their numbers; every 97th does not."""
    source, odd = cloud(40_000, seed=5), np.arange(0, 40_000, 97)
    rows, old = np.arange(0, 40_000, 2), new_session()
    old.put_cloud(source)
    old.force(40_000, source.x[:3], source.v[:3], source.index[:3])
    source.x[rows] *= 1.0 + 2.0**-20
    source.mass[odd] *= 1e3
    source.x[odd] *= 0.25
    source.index[odd] = source.index[odd][::-1].copy()
    rows = np.union1d(rows, odd)
    old.put_cloud(source.take(rows), rows)
    new = new_session()
    new.put_cloud(source)
    targets = source.x[:5], source.v[:5], source.index[:5]
    assert_same(old.force(40_000, *targets), new.force(40_000, *targets))


@pytest.mark.parametrize("address", [1, 1023, 1024, 200000], ids=lambda a: f"row14-row15-{a}")
def test_unset_slots_have_no_mass_and_are_nobodys_neighbour(session, address):
    session.put(address, 77, 1.0, (2, 0, 0))
    found = session.force(address + 1, ORIGIN, h2=np.inf)
    assert found.code == 0
    assert found.acc[0, 0] == pytest.approx(0.25)
    assert found.nearest[0] == 77
    assert session.neighbours(0) == (0, 1, [77])


@pytest.mark.parametrize("nj", [5000, 2147483647], ids=["row15", "row27"])
def test_nj_above_the_highest_address_set_counts_nothing(session, nj):
    source = cloud(20)
    session.put_cloud(source)
    expected = session.force(20, source.x, source.v, source.index)
    found = session.force(nj, source.x, source.v, source.index, h2=np.inf)
    assert found.code == 0
    assert_same(found, expected)
    assert session.neighbours(0)[1] == 19


def test_row15_an_unset_slot_does_not_exclude_an_index_zero_or_minus_one(session):
    session.put(5, 0, 1.0, (2, 0, 0))
    session.put(7, -1, 1.0, (0, 2, 0))
    found = session.force(10, np.zeros((3, 3)), index=[-2, 0, 9])
    assert found.acc.tolist() == pytest.approx(
        np.array([[0.25, 0.25, 0], [0, 0.25, 0], [0.25, 0.25, 0]])
    )


def test_row17_nj_zero_gives_zeros_and_the_own_index(session):
    session.put_cloud(cloud(5))
    found = session.force(0, np.ones((3, 3)), index=[4, 17, 4], h2=np.inf)
    assert found.code == 0
    assert found.nearest.tolist() == [4, 17, 4]
    assert_zero(found)
    assert session.neighbours(1) == (0, 0, [])


def test_row17_ni_zero_is_legal_and_writes_nothing(session):
    session.put_cloud(cloud(5))
    out = capi.Force.blank(2)
    empty = np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, np.int32)
    assert session.first(5, *empty) == 0
    args = [session.cluster, 5, 0, empty[2], empty[0], empty[1], 0.0, np.zeros(0)]
    assert capi.call("g6calc_lasthalf2", *args, out.acc, out.jerk, out.pot, out.nearest) == 0
    assert (out.acc == capi.UNTOUCHED).all()
    assert (out.nearest == -777).all()


def test_3_29_massless_particles_pull_nothing_but_are_there(session):
    session.put(0, 10, 0.0, (1, 0, 0))
    session.put(1, 11, 4.0, (0, 2, 0))
    found = session.force(2, ORIGIN, h2=1.5)
    assert found.acc[0].tolist() == pytest.approx([0, 1, 0])
    assert found.nearest[0] == 10
    assert session.neighbours(0)[2] == [10]
    only_massless = session.force(1, ORIGIN)
    assert only_massless.code == 0
    assert_zero(only_massless)


def test_2_5_signs_of_a_single_pair(session):
    session.put(0, 1, 8.0, (2, 0, 0), v=(1, 1, 0))
    found = session.force(1, ORIGIN)
    assert found.acc[0] == pytest.approx([2, 0, 0], rel=1e-6)
    assert found.jerk[0] == pytest.approx([-2, 1, 0], rel=1e-6)
    assert found.pot[0] == pytest.approx(-4, rel=1e-6)


def test_2_9_recovery_calls_change_nothing(session):
    source = cloud(30)
    session.put_cloud(source)
    expected = session.force(30, source.x, source.v, source.index).bits()
    for name in ("g6_reset", "g6_reset_fofpga", "g6_reinitialize"):
        assert capi.call(name, session.cluster) == 0
    assert capi.call("g6_setup_njdata", session.cluster, 30) == 0
    assert session.force(30, source.x, source.v, source.index).bits() == expected


def test_2_11_buffered_particles_are_seen_without_a_flush(session):
    assert capi.call("g6_initialize_jp_buffer", session.cluster, 10000) == 0
    session.put(0, 1, 1.0, (1, 0, 0))
    assert session.force(1, ORIGIN).acc[0, 0] == pytest.approx(1)
    assert capi.call("g6_flush_jp_buffer", session.cluster) == 0
    assert session.force(1, ORIGIN).acc[0, 0] == pytest.approx(1)
