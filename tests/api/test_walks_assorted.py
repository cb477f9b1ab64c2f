"""Many walks: random groups, lists of any length. The bits
of a walk's forces depend on that walk alone. Force calls before, between and after."""

import numpy as np
import pytest

import capi
from grape6py import Grape6
from particles import assert_nan, cloud
from walking import (
    FORMS,
    LIMITS,
    Flight,
    Walks,
    by_copies,
    by_numbers,
    by_pointers,
    expected,
    starts,
    together,
)

pytestmark = pytest.mark.backends("cuda gpu")
ON_THE_CPU_TOO = pytest.mark.backends("cpu cuda gpu")

# Errors as shares of the sizes of the terms: of 99 in a hundred forces, and of any. Places have an
# error of 2^-24 of the group's radius, and pairs as far apart as a 64th of it are summed so: two
# places, and the square of their distance, make 2 * 2 * 64 * 2^-24 of a pair's force.
LARGEST = {"grape": 1.6e-5, "single": 1.6e-5, "double": 1e-13}


def random_groups(seed, sizes, lengths, n=120_000, eps2=0.0):
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
    return Walks(starts(xs), np.concatenate(xs), starts(lists),
                 np.concatenate(lists).astype(np.int32), xj, mj, eps2)  # fmt: skip


@pytest.fixture(scope="module")
def assorted():
    """Lists of 0, 1, a few, thousands and 100k entries, and groups about the sizes of tiles."""
    words = "0 1 2 3 5 31 63 64 65 128 700 1999 3000 5000 64 1 0 100_000 100_001"
    lengths = [int(word) for word in words.split()]
    sizes = [3, 1, 2, 64, 65, 1, 7, 128, 63, 200, 255, 256, 257, 40, 513, 600, 0, 5, 33]
    return random_groups(7, sizes, lengths)


def assert_sums(found, job, mode):
    acc, pot, size = expected(job)
    errors = np.abs(found.acc - acc).max(axis=1), np.abs(found.pot - pot)
    assert found.code == 0
    for error, of in zip(errors, (size, np.abs(pot)), strict=True):
        assert (error[of == 0] == 0).all()
        shares = error[of > 0] / of[of > 0]
        assert np.quantile(shares, 0.99) <= LIMITS[mode]
        assert shares.max() <= LARGEST[mode]


def bits_by_walk(found, job):
    return [found.bits(job.targets(w)) for w in range(len(job))]


# ---- forces -------------------------------------------------------------------------------


@ON_THE_CPU_TOO
@pytest.mark.parametrize("eps2", [0.0, 1e-3])
def test_forces_are_those_of_a_plain_sum(session, mode, assorted, eps2):
    assorted.eps2 = eps2
    numbers, *others = [form(session, assorted) for form in FORMS]
    assert_sums(numbers, assorted, mode)
    for each in others:
        assert each.code == 0
        assert each.bits() == numbers.bits()


@ON_THE_CPU_TOO
def test_cells_are_entries_as_particles_are(session, mode, assorted):
    assert_sums(by_pointers(session, assorted, cells=77), assorted, mode)


@pytest.mark.parametrize("seed", range(6))
def test_random_walks(session, mode, seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 60))
    lengths = (10 ** rng.uniform(-0.5, 3.5, count)).astype(int)
    sizes = (10 ** rng.uniform(-0.3, 2.5, count)).astype(int)
    job = random_groups(seed, sizes, lengths, n=20_000, eps2=rng.choice([0.0, 1e-8, 0.1]))
    assert_sums(by_numbers(session, job), job, mode)


def test_python_gives_the_same(plain, assorted):
    with Grape6() as python:
        acc, pot = python.walks(assorted.i_start, assorted.x, assorted.j_start, assorted.xj,
                                 assorted.mj, assorted.chosen, eps=0.25)  # fmt: skip
    assorted.eps2 = 0.0625
    assert acc.tobytes() + pot.tobytes() == by_numbers(plain, assorted).bits()


# ---- equal bits ---------------------------------------------------------------------------


@ON_THE_CPU_TOO
@pytest.mark.parametrize("form", FORMS)
def test_bits_do_not_depend_on_the_order_or_the_cut(session, assorted, form):
    whole = bits_by_walk(form(session, assorted), assorted)
    rng = np.random.default_rng(3)
    for pieces in (2, len(assorted)):
        for part in np.array_split(rng.permutation(len(assorted)), pieces):
            job = assorted.take(part)
            assert bits_by_walk(form(session, job), job) == [whole[w] for w in part]


@ON_THE_CPU_TOO
def test_bits_do_not_depend_on_threads_or_on_the_run(session, assorted):
    first = by_numbers(session, assorted).bits()
    for threads in (1, 16, 0):
        session.set_int("G6X_THREADS", threads)
        assert by_numbers(session, assorted).bits() == first
        assert by_pointers(session, assorted).bits() == first


@ON_THE_CPU_TOO
def test_bits_do_not_depend_on_other_flights(session, assorted):
    jobs = [assorted.take(part) for part in np.array_split(np.arange(len(assorted)), 8)]
    alone = [by_numbers(session, job).bits() for job in jobs]
    for order in (range(8), range(7, -1, -1), (3, 1, 6, 0, 7, 2, 5, 4)):
        flights = [Flight(session, 50 + k, job) for k, job in enumerate(jobs)]
        assert by_numbers(session, jobs[2]).bits() == alone[2]
        for k in order:
            assert flights[k].retrieve().bits() == alone[k]


def test_walks_larger_than_a_piece_of_a_call_among_small_ones(plain):
    few = random_groups(5, [64, 1, 30, 65, 300, 0, 2], [9, 1, 64, 33, 5, 80, 0], n=1000)
    base = together(few, random_groups(6, [2, 1], [900_000, 700_000], n=1_000_000))
    walks = np.random.default_rng(8).integers(0, 7, 2_000)
    walks[[100, 1_500]] = 7, 8
    job, right = base.take(walks), by_numbers(plain, base)
    assert_sums(right, base, "grape")
    alone = bits_by_walk(right, base)
    for form in FORMS:
        found = form(plain, job)
        assert found.code == 0
        assert bits_by_walk(found, job) == [alone[w] for w in walks]


# ---- numbers of any size, and none --------------------------------------------------------


@ON_THE_CPU_TOO
@pytest.mark.parametrize(
    ("length", "mass"),
    [(200, 0), (-200, -300), (0, 900), (30, -900), (-560, -900), (700, 1000), (-900, -980),
     (1000, 1015)],
)  # fmt: skip
def test_numbers_beyond_single_precision(session, mode, length, mass):
    """The same forces as in other units; the same bits, but where lengths are beyond 2^1000."""
    job = random_groups(9, [30, 100, 600], [1000, 64, 90], n=3000)
    found, scaled = by_numbers(session, job), by_numbers(session, job.scaled(length, mass))
    assert found.code == scaled.code == 0
    scaled.acc = np.ldexp(scaled.acc, 2 * length - mass)
    scaled.pot = np.ldexp(scaled.pot, length - mass)
    assert_sums(scaled, job, mode)
    assert length >= 1000 or scaled.bits() == found.bits()


def test_entries_far_beyond_the_rest(session, mode):
    job = random_groups(10, [70, 300], [500, 2000], n=3000)
    job.xj[job.entries(0)[7]] = 1e60, -1e58, 3e-70
    job.mj[job.entries(1)[9]] = 1e45
    job.mj[job.entries(1)[11]] = 1e-45
    assert_sums(by_numbers(session, job), job, mode)


@ON_THE_CPU_TOO
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


@ON_THE_CPU_TOO
@pytest.mark.parametrize("form", FORMS)
def test_row07_targets_with_nan_among_good_ones(session, assorted, form):
    job = assorted.take(range(len(assorted)))
    job.eps2 = 0.0
    bad_walks = (4, 9, 14)
    bad = np.concatenate([np.arange(*job.i_start[w : w + 2])[::7] for w in bad_walks])
    good = form(session, job)
    job.x[bad, np.arange(len(bad)) % 3] = np.resize([np.nan, np.inf, -np.inf], len(bad))
    found = form(session, job)
    assert found.code == session.error()[0] == -7
    assert "walk 4" in session.error()[1]
    spoilt = np.isin(np.arange(len(job.x)), bad)
    assert (np.isnan(found.acc) == spoilt[:, None]).all()
    assert (np.isnan(found.pot) == spoilt).all()
    for w in set(range(len(job))) - set(bad_walks):
        assert found.bits(job.targets(w)) == good.bits(job.targets(w))


@ON_THE_CPU_TOO
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("field", "bad"), [("xj", np.nan), ("xj", -np.inf), ("mj", np.inf)])
def test_row06_one_bad_entry_of_a_hundred_thousand(plain, assorted, form, field, bad):
    job = assorted.take(range(len(assorted)))
    setattr(job, field, getattr(job, field).copy())
    getattr(job, field)[job.entries(17)[99_998]] = bad
    found = form(plain, job)
    assert found.code == plain.error()[0] == -6
    assert "list of walk" in plain.error()[1]
    assert_nan(found)
    assert form(plain, assorted).code == 0


# ---- force calls of the same session --------------------------------------------------------


@ON_THE_CPU_TOO
def test_force_calls_before_between_and_after_have_their_bits(session, assorted):
    source, backend = cloud(1500, seed=12, moving=True), capi.text("g6x_backend", session.cluster)
    session.put_cloud(source)
    session.set_ti(0.25)
    calls = [(1500, source.x[rows], source.v[rows], source.index[rows])
             for rows in (slice(3), slice(40, 200), slice(0, 1500))]  # fmt: skip
    walks = by_numbers(session, assorted).bits()

    def forces():
        found = []
        for call in calls:
            force = session.force(*call, eps2=1e-6, h2=0.01)
            found.append((force.code, force.bits(), force.nearest.tobytes(), session.neighbours(2)))
        return found

    right = forces()
    assert [each[0] for each in right] == [0, 0, 0]
    assert by_numbers(session, assorted).bits() == walks
    assert forces() == right
    flight = Flight(session, 0, assorted)
    assert forces() == right
    assert flight.retrieve().bits() == walks
    for call, (_, bits, nearest, _) in zip(calls, right, strict=True):
        flight = Flight(session, 1, assorted)
        assert session.first(*call, eps2=1e-6, h2=np.full(len(call[1]), 0.01)) == 0
        assert by_copies(session, assorted).bits() == walks
        force = session.last(*call, eps2=1e-6)
        assert (force.code, force.bits(), force.nearest.tobytes()) == (0, bits, nearest)
        assert flight.retrieve().bits() == walks
    assert forces() == right
    assert capi.text("g6x_backend", session.cluster) == backend


def test_sessions_do_not_disturb_each_other(new_session, assorted):
    sessions = {mode: new_session(precision=mode) for mode in LIMITS}
    alone = {mode: by_numbers(session, assorted).bits() for mode, session in sessions.items()}
    flights = {mode: Flight(session, 4, assorted) for mode, session in sessions.items()}
    other = new_session()
    by_copies(other, assorted)
    other.close()
    assert {mode: flight.retrieve().bits() for mode, flight in flights.items()} == alone
