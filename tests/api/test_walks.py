"""Many walks in one call: their forces are the plain sums of their lists, however these lie, and
the bits of a walk's forces depend on that walk alone.

Small calls of any kind: test_fuzz.py. Bodies at one place: test_one_place.py."""

import numpy as np
import pytest

import capi
import walking
from grape6py import Grape6
from grape6py.errors import AddressError, ArgumentError, NotFiniteError, NotOpenError
from particles import assert_nan
from walking import FORMS, LIMITS, Walks, by_numbers, by_pointers, expected, one_walk, random_walks

pytestmark = pytest.mark.backends("cpu cuda gpu")

# Errors as shares of the sizes of the terms: LIMITS of 99 in a hundred forces, and of any. Places
# have an error of 2^-24 of the group's radius, and pairs as far apart as a 64th of it are summed
# so: two places, and the square of their distance, make 2 * 2 * 64 * 2^-24 of a pair's force.
LARGEST = {"grape": 1.6e-5, "single": 1.6e-5, "double": 1e-13}


def random_groups(seed, sizes, lengths, n=30_000, eps2=0.0):
    """Targets of every other walk are bodies of its own list, of the others any places."""
    rng = np.random.default_rng(seed)
    xj, mj = rng.standard_normal((n, 3)) ** 3, rng.random(n) / n
    xs, lists = [], []
    for k, (size, length) in enumerate(zip(sizes, lengths, strict=True)):
        chosen = rng.choice(n, length, replace=False)
        places = rng.standard_normal((size, 3)) * rng.choice([1e-3, 1.0, 30.0])
        if k % 2 and length:
            places[: length // 2] = xj[chosen[: min(size, length // 2)]]
        xs.append(places)
        lists.append(chosen)
    return Walks(walking.starts(xs), np.concatenate(xs), walking.starts(lists),
                 np.concatenate(lists).astype(np.int32), xj, mj, eps2)  # fmt: skip


@pytest.fixture(scope="module")
def assorted():
    words = "0 1 2 3 5 31 63 64 65 128 700 1999 1000 1100 64 1 0 25_000 25_001"
    lengths = [int(word) for word in words.split()]
    sizes = [3, 1, 2, 64, 65, 1, 7, 128, 63, 200, 255, 256, 257, 40, 513, 600, 0, 5, 33]
    return random_groups(7, sizes, lengths)


def assert_sums(found, job, mode, most=None):
    """Errors as shares of the sizes of the terms; all below `most` times LIMITS, if it is given."""
    acc, pot, size = expected(job)
    errors = np.abs(found.acc - acc).max(axis=1), np.abs(found.pot - pot)
    assert found.code == 0
    for error, of in zip(errors, (size, np.abs(pot)), strict=True):
        assert (error[of == 0] == 0).all()
        shares = error[of > 0] / of[of > 0]
        if most is not None:
            assert shares.max(initial=0) <= most * LIMITS[mode]
            continue
        assert np.median(shares) <= LIMITS[mode] / 2
        assert np.quantile(shares, 0.99) <= LIMITS[mode]
        assert shares.max() <= LARGEST[mode]


def bits_by_walk(found, job):
    return [found.bits(job.targets(w)) for w in range(len(job))]


def test_forces_are_those_of_a_plain_sum(session, mode, assorted):
    for assorted.eps2 in (1e-3, 0.0):
        numbers, *others = [form(session, assorted) for form in FORMS]
        assert_sums(numbers, assorted, mode)
        for each in others:
            assert each.code == 0
            assert each.bits() == numbers.bits()
    assert_sums(by_pointers(session, assorted, cells=77), assorted, mode)  # as particles are


def close_pairs(eps2):
    """Down to separations that single precision beside the group's size does not show."""
    job = random_walks(sizes=(300,), lengths=(200,), eps2=eps2)
    pairs = job.chosen[:40].reshape(20, 2)
    for k, (a, b) in enumerate(pairs):
        job.xj[b] = job.xj[a] + np.array([10.0, 7, 3]) ** -(1 + k % 12)
    job.x = job.xj[np.isin(np.arange(len(job.xj)), job.chosen[:300])]
    job.i_start[:] = 0, len(job.x)
    return job


def tiny_group(k):
    """As small as doubles can be: its centre may not be one."""
    x = 1 + np.random.default_rng(k).integers(0, 4, (3, 3)) * 2.0**-52
    return one_walk(x, x, np.ones(3), (0.0, 2.0**-104)[k % 2])


def far_group():
    """Of size 1e-5 at 1e3 from the origin, with neighbours and a distant mass."""
    job = random_walks(sizes=(150,), lengths=(100,))
    job.xj = job.xj * 1e-5 + np.array([1e3, -700, 20])
    job.x = job.x * 1e-5 + np.array([1e3, -700, 20])
    job.xj[job.chosen[-1]] = 0, 0, 0
    return job


def wide_ranges():
    job = random_groups(10, [70, 300], [500, 2000], n=3000)
    job.xj[job.entries(0)[7]] = 1e60, -1e58, 3e-70
    job.mj[job.entries(1)[9]] = 1e45
    job.mj[job.entries(1)[11]] = 1e-45
    return job


def test_odd_groups_are_as_accurate(session, mode):
    for job, most in (
        *((close_pairs(eps2), 5) for eps2 in (0.0, 1e-12, 0.04)),
        *((tiny_group(k), 1) for k in range(8)), (far_group(), 4), (wide_ranges(), None),
    ):  # fmt: skip
        assert_sums(by_numbers(session, job), job, mode, most)


def test_a_body_next_to_another_is_not_taken_for_it(session):
    """At a distance whose square is zero in double precision."""
    x, near = np.array([[0.0, 0, 0]]), np.array([[0.0, 0, 0], [0, 1e-170, 0], [1, 0, 0]])
    for form in FORMS:
        job = one_walk(x, near, np.array([5.0, 3, 0.5]), 0.01)
        found = form(session, job)
        assert found.code == 0
        assert found.pot[0] == pytest.approx(-30 - 0.5 / np.sqrt(1.01), rel=1e-6)
        job.eps2 = 0.0
        assert form(session, job).code == -8
        job.mj[1] = 0.0
        found = form(session, job)
        assert found.code == 0
        assert found.acc[0].tolist() == [0.5, 0, 0]


def test_masses_of_any_sign_and_size(session, mode):
    job = random_walks()
    job.mj *= np.random.default_rng(3).choice([-1.0, 0.0, 1.0, 1e-20, 1e6], len(job.mj))
    acc, pot, size = expected(job)
    found = by_numbers(session, job)
    job.mj = np.abs(job.mj)
    assert (np.abs(found.acc - acc).max(1) <= LIMITS[mode] * size).all()
    assert (np.abs(found.pot - pot) <= LIMITS[mode] * np.abs(expected(job)[1])).all()


def test_numbers_beyond_single_precision(session, mode):
    """The same forces as in other units; the same bits, but where lengths are beyond 2^1000."""
    job = random_groups(9, [30, 100, 600], [1000, 64, 90], n=3000)
    found = by_numbers(session, job)
    for length, mass in ((200, 0), (-200, -300), (0, 900), (30, -900), (-560, -900), (700, 1000),
                         (-900, -980), (1000, 1015)):  # fmt: skip
        scaled = by_numbers(session, job.scaled(length, mass))
        assert found.code == scaled.code == 0
        scaled.acc = np.ldexp(scaled.acc, 2 * length - mass)
        scaled.pot = np.ldexp(scaled.pot, length - mass)
        assert_sums(scaled, job, mode)
        assert length >= 1000 or scaled.bits() == found.bits()


def test_rows_of_no_walk_are_left_alone(plain):
    job = random_walks(sizes=(40, 50))
    first, last = job.i_start[0], job.i_start[-1]
    padded = Walks(job.i_start + 3, np.pad(job.x, ((3, 4), (0, 0))), job.j_start + 2,
                   np.pad(job.chosen, 2, constant_values=-9), job.xj, job.mj)  # fmt: skip
    found, right = by_numbers(plain, padded), by_numbers(plain, job)
    assert found.bits(slice(first + 3, last + 3)) == right.bits()
    assert (found.pot[[0, 1, 2, -4, -3, -2, -1]] == capi.UNTOUCHED).all()


def test_bits_do_not_depend_on_order_cut_threads_or_other_flights(session, assorted):
    first = by_numbers(session, assorted).bits()
    whole, rng = bits_by_walk(by_numbers(session, assorted), assorted), np.random.default_rng(3)
    for form, pieces in zip(FORMS, (2, len(assorted), 5), strict=True):
        for part in np.array_split(rng.permutation(len(assorted)), pieces):
            job = assorted.take(part)
            assert bits_by_walk(form(session, job), job) == [whole[w] for w in part]
    for threads, form in ((1, by_numbers), (16, by_pointers)):
        session.set_int("G6X_THREADS", threads)
        assert form(session, assorted).bits() == first
    far = walking.together(assorted, random_walks(seed=2).scaled(100, 80))
    far.eps2 = assorted.eps2
    assert by_numbers(session, far).bits(slice(len(assorted.x))) == first
    jobs = [assorted.take(part) for part in np.array_split(np.arange(len(assorted)), 4)]
    alone = [by_numbers(session, job).bits() for job in jobs]
    flights = [walking.Flight(session, 50 + k, job) for k, job in enumerate(jobs)]
    assert by_numbers(session, jobs[2]).bits() == alone[2]
    for k in (3, 1, 0, 2):
        assert flights[k].retrieve().bits() == alone[k]


def test_row08_forces_that_do_not_fit(session):
    job = random_groups(11, [70, 5, 300], [64, 9, 400], n=3000)
    good = by_numbers(session, job)
    rows = job.targets(1)
    job.x[rows], job.chosen[job.j_start[1] :][:9] = 1e-200, job.chosen[job.j_start[2] :][:9]
    job.xj[job.chosen[job.j_start[1] + 3]] = 2e-200, 1e-200, 1e-200
    found = by_numbers(session, job)
    assert found.code == session.error()[0] == -8
    assert "walk 1" in session.error()[1]
    assert np.isnan(found.acc[rows]).all()
    assert found.bits(job.targets(0)) == good.bits(job.targets(0))


@pytest.mark.parametrize("form", FORMS)
def test_row06_row07_targets_with_nan_are_alone_and_an_entry_spoils_all(plain, assorted, form):
    job = assorted.take(range(len(assorted)))
    bad_walks = (4, 9, 14)
    bad = np.concatenate([np.arange(*job.i_start[w : w + 2])[::7] for w in bad_walks])
    good = form(plain, job)
    job.x[bad, np.arange(len(bad)) % 3] = np.resize([np.nan, np.inf, -np.inf], len(bad))
    found = form(plain, job)
    assert found.code == plain.error()[0] == -7
    assert "walk 4" in plain.error()[1]
    spoilt = np.isin(np.arange(len(job.x)), bad)
    assert (np.isnan(found.acc) == spoilt[:, None]).all()
    assert (np.isnan(found.pot) == spoilt).all()
    for w in set(range(len(job))) - set(bad_walks):
        assert found.bits(job.targets(w)) == good.bits(job.targets(w))
    for field, wrong in ("xj", np.nan), ("xj", -np.inf), ("mj", np.inf):
        job = assorted.take(range(len(assorted)))
        setattr(job, field, getattr(job, field).copy())
        getattr(job, field)[job.entries(17)[24_998]] = wrong
        found = form(plain, job)
        assert found.code == plain.error()[0] == -6
        assert "list of walk" in plain.error()[1]
        assert_nan(found)
    assert form(plain, assorted).code == 0


def call(grape, job, **changed):
    arguments = {"i_start": job.i_start, "pos": job.x, "j_start": job.j_start,
                 "source_pos": job.xj, "source_mass": job.mj, "chosen": job.chosen, "eps": 0.01,
                 **changed}  # fmt: skip
    return grape.walks(**arguments)


def test_python_has_the_bits_of_c(plain):
    job = random_walks(sizes=(40, 0, 70), eps2=1e-4)
    with Grape6() as grape:
        acc, pot = call(grape, job)
        padded, _ = call(grape, job, pos=np.vstack([job.x, [[0, 0, 0]]]))
    assert acc.tobytes() + pot.tobytes() == by_numbers(plain, job).bits()
    assert np.isnan(padded[-1]).all()  # a target of no walk
    assert (padded[:-1] == acc).all()
    with pytest.raises(NotOpenError):
        call(grape, job)


def test_misuse_is_told_in_python():
    job = random_walks(sizes=(40, 0, 70), eps2=1e-4)
    with Grape6() as grape:
        for error, changed in (
            *((ArgumentError, {"i_start": bad}) for bad in
              ([0, 40, 40, 111], [0, 40, 30, 110], [0, 110], [])),
            *((ArgumentError, {"j_start": bad}) for bad in ([-1, 2, 3, 4], [0.0, 2, 3, 4])),
            (ArgumentError, {"eps": -1}), (ArgumentError, {"pos": np.zeros((110, 2))}),
            (ArgumentError, {"source_mass": [1.0, 2.0]}),
            (NotFiniteError, {"source_mass": np.full(4000, np.nan)}),
            (NotFiniteError, {"pos": np.full((110, 3), np.inf)}),
            (AddressError, {"chosen": np.full(10**5, 4000), "j_start": [0, 5, 5, 10]}),
        ):  # fmt: skip
            with pytest.raises(error):
                call(grape, job, **changed)
