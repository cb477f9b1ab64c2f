"""The j memory: addresses, nj, slots never written, and what survives what.

Any writes in any order, on the CPU: test_fuzz.py."""

import numpy as np
import pytest

import capi
from particles import assert_force, assert_same, assert_zero, cloud, direct

pytestmark = pytest.mark.backends("cpu cuda cpu-tree:grape cuda-tree:grape gpu")
ORIGIN = np.zeros((1, 3))


@pytest.mark.backends("cpu cuda gpu")
def test_3_11_3_37_only_addresses_below_nj_pull(in_double):
    source = cloud(50)
    in_double.put_cloud(source)
    for nj in (50, 10, 3, 50, 1, 49):
        found = in_double.force(nj, ORIGIN, h2=np.inf)
        assert_force(found, direct(ORIGIN, ORIGIN, [-1], source.take(range(nj))), 1e-13)
        assert in_double.neighbours(0) == (0, nj, list(range(nj)))


@pytest.mark.backends("cpu cuda gpu")
def test_2_3_many_rewritten_particles_have_the_bits_of_a_new_session(new_session):
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
def test_unset_slots_have_no_mass_and_are_nobodys_neighbour(plain, address):
    """Nor do they exclude an index 0 or -1; whatever nj is (row 27)."""
    plain.put(address, 0, 1.0, (2, 0, 0))
    plain.put(address + 2, -1, 1.0, (0, 2, 0))
    for nj in (address + 3, 2147483647):
        found = plain.force(nj, np.zeros((3, 3)), index=[-2, 0, 9], h2=np.inf)
        assert found.code == 0
        assert found.acc == pytest.approx(0.25 * np.array([[1, 1, 0], [0, 1, 0], [1, 1, 0]]))
        assert [plain.neighbours(pipe)[2] for pipe in range(3)] == [[-1, 0], [-1], [-1, 0]]


def test_row17_nothing_is_legal(plain):
    """nj = 0 gives zeros and the own index; ni = 0 writes nothing."""
    plain.put_cloud(cloud(5))
    found = plain.force(0, np.ones((3, 3)), index=[4, 17, 4], h2=np.inf)
    assert found.code == 0
    assert found.nearest.tolist() == [4, 17, 4]
    assert_zero(found)
    assert plain.neighbours(1) == (0, 0, [])
    out = capi.Force.blank(2)
    empty = np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, np.int32)
    assert plain.first(5, *empty) == 0
    assert plain.last(5, *empty, out=out).code == 0
    assert (out.acc == capi.UNTOUCHED).all()
    assert (out.nearest == -777).all()
