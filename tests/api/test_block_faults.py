"""g6x_hermite_predict and g6x_hermite_correct: faults, and odd hosts."""

import numpy as np
import pytest

import capi
from capi import CONSTANTS, SIGNATURES
from test_block_calls import Bodies

ARRAYS = "address t dt x v a j xi vi"
BAD = [np.nan, np.inf, -np.inf]


@pytest.mark.parametrize("name", ["g6x_hermite_predict", "g6x_hermite_correct"])
def test_null_pointers_are_refused_and_named_by_their_code(name):
    b = Bodies(4)
    before, correct = b.copies(), name.endswith("correct")
    names = "address acc jerk t x v a j xi vi" if correct else "address t x v a j xi vi"
    assert (
        SIGNATURES[name].count("p") == len(names.split()) + 2 * correct
    )  # roundoff, dt may be null
    for null in names.split():
        assert (b.correct if correct else b.predict)(**{null: None}) == CONSTANTS["G6X_E_NULL"]
    assert b.same(before, ARRAYS)


@pytest.mark.parametrize(
    ("wrong", "calls", "code"),
    [({"ni": 0}, "predict correct", 0),
     *[({"ni": -1}, "predict correct", -11), ({"address": -1}, "predict correct", -13)],
     *[({name: bad}, "predict correct", -11) for name in ("time", "t") for bad in BAD],
     *[({name: bad}, "correct", -11) for name in ("eta", "dt") for bad in BAD],
     *[({name: bad}, "correct", -11) for name in ("dtmin", "dtmax") for bad in (np.nan, -1.0)],
     ({"eta": -0.02}, "correct", -11), ({"eta": 0.0}, "correct", -11),
     ({"dtmin": 1.0, "dtmax": 0.5}, "correct", -11)],
    ids=str,
)  # fmt: skip
def test_what_is_wrong_is_refused_before_anything_is_written(wrong, calls, code):
    """An infinite step was halved for ever. Of an array, one body's number is wrong."""
    b = Bodies(4)
    given = dict(wrong)
    for name in given.keys() & {"address", "t", "dt"}:
        at = 2 if name == "address" else b.address[2]
        getattr(b, name)[at] = given.pop(name)
    before = b.copies()
    assert [getattr(b, call)(**given) for call in calls.split()] == [code] * len(calls.split())
    assert b.same(before, ARRAYS)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300], ids=str)
def test_a_bad_force_gives_no_endless_or_senseless_step(bad):
    b = Bodies(4)
    b.acc[1] = bad
    time = b.t[b.address[1]]
    code = b.correct(dtmin=2.0**-20)
    assert ((b.dt >= 2.0**-20) & (b.dt <= 0.125)).all()
    assert np.isfinite(b.x).all()
    if not np.isfinite(bad):
        assert code == capi.CONSTANTS["G6X_E_RANGE"]
        assert b.t[b.address[1]] == time  # stays where it is


def test_block_calls_are_legal_before_any_open():
    capi.run_python("""
from test_block_calls import Bodies
b = Bodies(5)
assert b.predict() == 0 and b.correct() == 0
assert text("g6x_last_error", 0)[0] == 0
""")
