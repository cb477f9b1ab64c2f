"""Many walks in one call: their forces are the plain sums of their lists, however these lie."""

import numpy as np
import pytest

import capi
from particles import assert_nan
from walking import (
    FORMS,
    LIMITS,
    Flight,
    Walks,
    by_numbers,
    by_pointers,
    expected,
    one_walk,
    random_walks,
    together,
)

pytestmark = pytest.mark.backends("cpu cuda gpu")


def assert_sums(found, job, limit):
    """Errors as shares of the sizes of the terms."""
    acc, pot, size = expected(job)
    assert found.code == 0
    assert (np.abs(found.acc - acc).max(1) <= limit * size).all()
    assert (np.abs(found.pot - pot) <= limit * np.abs(pot)).all()


def test_typical_errors_are_small(plain):
    job = random_walks(sizes=(600, 800), lengths=(3000, 2500))
    acc, pot, _ = expected(job)
    found = by_numbers(plain, job)
    error = np.linalg.norm(found.acc - acc, axis=1) / np.linalg.norm(acc, axis=1)
    assert np.median(error) < 1e-6
    assert np.median(np.abs(found.pot / pot - 1)) < 1e-6


def test_bits_do_not_depend_on_far_walks_of_another_size(session):
    job, other = random_walks(), random_walks(seed=2).scaled(100, 80)
    both = by_numbers(session, together(job, other))
    assert both.bits(slice(len(job.x))) == by_numbers(session, job).bits()


@pytest.mark.parametrize("eps2", [0.0, 1e-12, 0.04])
def test_close_pairs_are_resolved(session, mode, eps2):
    """Down to separations that single precision beside the group's size does not show."""
    job = random_walks(sizes=(300,), lengths=(200,), eps2=eps2)
    pairs = job.chosen[:40].reshape(20, 2)
    for k, (a, b) in enumerate(pairs):
        job.xj[b] = job.xj[a] + np.array([10.0, 7, 3]) ** -(1 + k % 12)
    job.x = job.xj[np.isin(np.arange(len(job.xj)), job.chosen[:300])]
    job.i_start[:] = 0, len(job.x)
    assert_sums(by_numbers(session, job), job, 5 * LIMITS[mode])


def test_what_is_at_distance_zero_adds_nothing(session, mode):
    x, xj = np.array([[1.0, 2, 3]]), np.array([[1.0, 2, 3], [1, 2, 3], [2, 2, 3]])
    for eps2 in (0.0, 1.0):
        job = one_walk(x, xj, np.array([5.0, -7, 1]), eps2)
        assert_sums(by_numbers(session, job), job, LIMITS[mode])


def test_a_body_is_left_out_of_its_own_list_only(plain):
    """With softening the potential has no term of its own, and that of every other body."""
    x = np.array([[0.0, 0, 0], [1e-9, 0, 0], [1, 1, 1]])
    found = by_numbers(plain, one_walk(x, x, np.ones(3), 0.01))
    assert found.pot[0] == pytest.approx(-10 - 1 / np.sqrt(3.01), rel=1e-6)
    assert found.acc[1, 0] == pytest.approx(-1e-9 / 0.1**3 + 1 / 3.01**1.5, rel=1e-6)


@pytest.mark.parametrize("eps2", [0.0, 2.0**-104])
def test_groups_as_small_as_doubles_can_be(session, mode, eps2):
    """Their centre may not be a double."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        x = 1 + rng.integers(0, 4, (3, 3)) * 2.0**-52
        job = one_walk(x, x, np.ones(3), eps2)
        assert_sums(by_numbers(session, job), job, LIMITS[mode])


@pytest.mark.parametrize("form", FORMS)
def test_a_body_next_to_another_is_not_taken_for_it(session, form):
    """At a distance whose square is zero in double precision."""
    x, near = np.array([[0.0, 0, 0]]), np.array([[0.0, 0, 0], [0, 1e-170, 0], [1, 0, 0]])
    job = one_walk(x, near, np.array([5.0, 3, 0.5]), 0.01)
    found = form(session, job)
    assert found.code == 0
    assert found.pot[0] == pytest.approx(-30 - 0.5 / np.sqrt(1.01), rel=1e-6)
    job.eps2 = 0.0
    found = form(session, job)
    assert found.code == -8
    assert_nan(found)
    job.mj[1] = 0.0
    found = form(session, job)
    assert found.code == 0
    assert found.acc[0].tolist() == [0.5, 0, 0]


def test_far_groups_keep_their_resolution(session, mode):
    """A group of size 1e-5 at 1e3 from the origin, with neighbours and a distant mass."""
    job = random_walks(sizes=(150,), lengths=(100,))
    job.xj = job.xj * 1e-5 + np.array([1e3, -700, 20])
    job.x = job.x * 1e-5 + np.array([1e3, -700, 20])
    job.xj[job.chosen[-1]] = 0, 0, 0
    assert_sums(by_numbers(session, job), job, 4 * LIMITS[mode])


def test_masses_of_any_sign_and_size(session, mode):
    job = random_walks()
    job.mj *= np.random.default_rng(3).choice([-1.0, 0.0, 1.0, 1e-20, 1e6], len(job.mj))
    acc, pot, size = expected(job)
    found = by_numbers(session, job)
    job.mj = np.abs(job.mj)
    assert (np.abs(found.acc - acc).max(1) <= LIMITS[mode] * size).all()
    assert (np.abs(found.pot - pot) <= LIMITS[mode] * np.abs(expected(job)[1])).all()


def test_nothing_to_do(plain):
    none, empty, number = np.zeros(1, np.longlong), np.zeros((0, 3)), np.zeros(1, np.int32)
    for name, *args in [
        ("", 0, none, empty, none, None, 0, empty, empty, 0.0, empty, empty),
        ("", 0, *[None] * 4, 0, None, None, 0.0, None, None),
        ("", 0, none, None, none, number, -1, empty, None, 0.0, None, None),
        ("_dispatch", 0, 0, *[None] * 8, 0.0), ("_retrieve", 0, 0, None, None, None),
    ]:  # fmt: skip
        assert capi.call(f"g6x_walks{name}", plain.cluster, *args) == 0


def test_lists_of_nothing(plain):
    job = random_walks(sizes=(5, 70), lengths=(0, 0))
    job.j_start[:] = 0
    found = [form(plain, job) for form in FORMS]
    job.mj = None
    for each in (*found, by_numbers(plain, job)):
        assert each.code == 0
        assert (each.acc == 0).all()
        assert (each.pot == 0).all()


def test_rows_of_no_walk_are_left_alone(plain):
    job = random_walks(sizes=(40, 50))
    first, last = job.i_start[0], job.i_start[-1]
    padded = Walks(job.i_start + 3, np.pad(job.x, ((3, 4), (0, 0))), job.j_start + 2,
                   np.pad(job.chosen, 2, constant_values=-9), job.xj, job.mj)  # fmt: skip
    found, right = by_numbers(plain, padded), by_numbers(plain, job)
    assert found.bits(slice(first + 3, last + 3)) == right.bits()
    assert (found.pot[[0, 1, 2, -4, -3, -2, -1]] == capi.UNTOUCHED).all()


def test_a_tag_can_be_used_again_at_once(plain):
    job, other = random_walks(sizes=(30, 40)), random_walks(seed=2, sizes=(11,))
    Flight(plain, 5, other)
    found = by_pointers(plain, job, tag=5)
    assert found.bits() == by_numbers(plain, job).bits()
