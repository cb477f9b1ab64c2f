"""g6x_hermite_predict and g6x_hermite_correct: faults, and odd hosts."""

import numpy as np
import pytest

import capi
from capi import CONSTANTS, SIGNATURES
from test_block_calls import Bodies


@pytest.mark.parametrize("name", ["g6x_hermite_predict", "g6x_hermite_correct"])
def test_null_pointers_are_refused_and_named_by_their_code(name):
    places = [i for i, letter in enumerate(SIGNATURES[name]) if letter == "p"]
    b = Bodies(4)
    before = b.copies()
    correct = name.endswith("correct")
    names = "address acc jerk t x v a j xi vi" if correct else "address t x v a j xi vi"
    assert len(places) == len(names.split()) + 2 * correct  # noise and dt may be null
    for null in names.split():
        assert (b.correct if correct else b.predict)(**{null: None}) == CONSTANTS["G6X_E_NULL"]
    assert b.same(before, "address t dt x v a j xi vi")


@pytest.mark.parametrize("wrong", [
    {"ni": -1}, {"time": np.nan}, {"time": np.inf}, {"eta": np.nan}, {"eta": -0.02}, {"eta": 0.0},
    {"dtmin": np.nan}, {"dtmax": np.nan}, {"dtmin": -1.0}, {"dtmax": -1.0},
    {"dtmin": 1.0, "dtmax": 0.5}, {"eta": np.inf},
], ids=str)  # fmt: skip
def test_bad_numbers_are_refused_before_anything_is_written(wrong):
    b = Bodies(4)
    before = b.copies()
    assert b.correct(**wrong) == CONSTANTS["G6X_E_ARGUMENT"]
    if wrong.keys() & {"ni", "time"}:
        assert b.predict(**wrong) == CONSTANTS["G6X_E_ARGUMENT"]
    assert b.same(before, "address t dt x v a j xi vi")


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan], ids=str)
@pytest.mark.parametrize("name", ["t", "dt"])
def test_an_infinite_time_or_step_is_refused_before_anything_is_written(name, value):
    """An infinite step was halved for ever."""
    b = Bodies(4)
    getattr(b, name)[b.address[2]] = value
    before = b.copies()
    assert b.correct() == CONSTANTS["G6X_E_ARGUMENT"]
    if name == "t":
        assert b.predict() == CONSTANTS["G6X_E_ARGUMENT"]
    others = "address t dt x v a j xi vi".split()
    others.remove(name)  # NaN is not what it was
    assert b.same(before, " ".join(others))


def test_a_negative_address_is_refused_before_anything_is_written():
    b = Bodies(4)
    b.address[2] = -1
    before = b.copies()
    assert b.predict() == CONSTANTS["G6X_E_ADDRESS"]
    assert b.correct() == CONSTANTS["G6X_E_ADDRESS"]
    assert b.same(before, "address t dt x v a j xi vi")


def test_an_empty_block_is_nothing_to_do():
    b = Bodies(4)
    before = b.copies()
    assert b.predict(ni=0) == 0
    assert b.correct(ni=0) == 0
    assert b.same(before, "address t dt x v a j xi vi")


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300], ids=str)
def test_a_bad_force_gives_no_endless_or_senseless_step(bad):
    b = Bodies(4)
    b.acc[1] = bad
    b.correct(dtmin=2.0**-20)
    assert ((b.dt >= 2.0**-20) & (b.dt <= 0.125)).all()
    assert np.isfinite(np.delete(b.x, b.address[1], 0)).all()


def test_block_calls_are_legal_before_any_open():
    capi.run_python("""
from test_block_calls import Bodies
b = Bodies(5)
assert b.predict() == 0 and b.correct() == 0
assert text("g6x_last_error", 0)[0] == 0
""")


def test_a_host_that_traps_or_rounds_its_own_way_is_left_alone():
    assert capi.run_c("block_step").stderr == ""
