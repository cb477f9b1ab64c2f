"""Many walks from Python."""

import numpy as np
import pytest

from grape6py import Grape6
from grape6py.errors import AddressError, ArgumentError, NotFiniteError, NotOpenError
from walking import expected, random_walks


@pytest.fixture
def job():
    return random_walks(sizes=(40, 0, 70), eps2=1e-4)


def call(grape, job, **changed):
    arguments = {"i_start": job.i_start, "pos": job.x, "j_start": job.j_start,
                 "source_pos": job.xj, "source_mass": job.mj, "chosen": job.chosen, "eps": 0.01,
                 **changed}  # fmt: skip
    return grape.walks(**arguments)


@pytest.mark.parametrize(("precision", "limit"), [("grape", 2e-6), ("double", 1e-13)])
def test_python_has_the_sums_of_the_lists(job, precision, limit):
    with Grape6(precision=precision) as grape:
        acc, pot = call(grape, job)
        copied, _ = call(grape, job, source_pos=job.xj[job.chosen],
                         source_mass=job.mj[job.chosen], chosen=None)  # fmt: skip
    right_acc, right_pot, size = expected(job)
    assert (np.abs(acc - right_acc).max(1) <= limit * size).all()
    assert np.abs(pot / right_pot - 1).max() <= limit
    assert (copied == acc).all()


def test_targets_of_no_walk_are_nan(job):
    with Grape6() as grape:
        acc, _ = call(grape, job, pos=np.vstack([job.x, [[0, 0, 0]]]))
    assert np.isnan(acc[-1]).all()
    assert np.isfinite(acc[:-1]).all()


@pytest.mark.parametrize(
    ("error", "changed"),
    [
        (ArgumentError, {"i_start": [0, 40, 40, 111]}),
        (ArgumentError, {"i_start": [0, 40, 30, 110]}),
        (ArgumentError, {"i_start": [0, 110]}),
        (ArgumentError, {"i_start": []}),
        (ArgumentError, {"j_start": [-1, 2, 3, 4]}),
        (ArgumentError, {"j_start": [0.0, 2, 3, 4]}),
        (ArgumentError, {"eps": -1}),
        (ArgumentError, {"pos": np.zeros((110, 2))}),
        (ArgumentError, {"source_mass": [1.0, 2.0]}),
        (NotFiniteError, {"source_mass": np.full(4000, np.nan)}),
        (NotFiniteError, {"pos": np.full((110, 3), np.inf)}),
        (AddressError, {"chosen": np.full(10**5, 4000), "j_start": [0, 5, 5, 10]}),
    ],
)
def test_misuse_is_told(job, error, changed):
    with Grape6() as grape, pytest.raises(error):
        call(grape, job, **changed)


def test_a_closed_session_says_so(job):
    grape = Grape6()
    grape.close()
    with pytest.raises(NotOpenError):
        call(grape, job)
