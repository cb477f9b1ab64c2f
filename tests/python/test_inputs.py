"""Arrays that NumPy would turn into numbers without a word: every public call refuses them."""

import io
import re
import warnings

import numpy as np
import pytest

from grape6py import Grape6, Hermite, Tree, diagnostics, merger, models, plummer, write_snapshot
from grape6py.errors import ArgumentError
from in_quantities import by_hand
from test_quantities import REFUSING

N = 12
MASS, POS, VEL = plummer(N, seed=1)
BODIES = {"mass": MASS, "pos": POS, "vel": VEL}
ROWS = np.arange(N, dtype=np.int32)


def _forces(**given):
    with Grape6(backend="cpu") as grape:
        grape.set_particles(MASS, POS)
        grape.forces(**given)


def _merger(**given):
    merger(models.Particles(**given), models.Particles(**BODIES), pericentre=1, separation=9)


def _restored(**state):
    settings = Hermite(**BODIES, eps=0.1).settings
    Hermite.restored(settings, MASS, state, time=0.0).close()


# Those of the table of public calls, with numbers alone, and what more takes arrays.
CALLS = {
    name: (make, by_hand(given)) for name, (how, make, given) in REFUSING.items() if how is by_hand
} | {name: (lambda _, call=call: call, given) for name, call, given in [
    ("forces", _forces, {"pos": POS, "vel": VEL, "index": ROWS, "h": MASS}),
    ("restored", _restored, {"t": 0 * MASS, "dt": MASS, "pos": POS, "vel": VEL, "acc": VEL,
                             "jerk": VEL}),
    ("write_snapshot", lambda **given: write_snapshot(io.StringIO(), **given), BODIES),
    ("merger of arrays", _merger, BODIES),
    ("set_particles", lambda **given: Grape6(backend="cpu").set_particles(**given),
     BODIES | {"acc": VEL, "jerk": VEL, "snap": VEL, "time": MASS, "index": ROWS, "address": ROWS}),
    ("energy with pot", lambda mass, vel, pot: diagnostics.energy(mass, POS, vel, pot=pot),
     {"mass": MASS, "vel": VEL, "pot": -MASS}),
]}  # fmt: skip
ARGUMENTS = [
    (call, name) for call, (_, given) in CALLS.items() for name, value in given.items()
    if isinstance(value, np.ndarray) and value.ndim
]  # fmt: skip


def _hiding(values):
    array = np.ma.array(values)
    array[-1] = np.ma.masked
    return array


def _call(call, name, change):
    make, given = CALLS[call]
    return make(by_hand)(**given | {name: change(given[name])})


@pytest.mark.parametrize(("call", "name"), ARGUMENTS)
def test_dates_and_values_that_a_mask_hides_are_refused(call, name):
    """A masked array that hides nothing is an array."""
    _call(call, name, np.ma.array)
    with pytest.raises(ArgumentError, match=f"^{name} is a masked array that hides values"):
        _call(call, name, _hiding)
    for kind in ("M8[s]", "m8[s]"):
        with pytest.raises(ArgumentError, match=f"^{name} .*{re.escape(np.dtype(kind).name)}"):
            _call(call, name, lambda values, kind=kind: np.asarray(values).astype(int).astype(kind))


def test_masks_in_lists_are_seen():
    rows = [np.ma.array(row) for row in POS + 1]
    _forces(pos=rows)
    rows[3][1] = np.ma.masked
    with pytest.raises(ArgumentError, match="pos is a masked array"):
        _forces(pos=rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's
        with pytest.raises(ArgumentError, match="pos is a masked array"):
            _forces(pos=[[0, 0, np.ma.masked]])


WRONG = [np.ma.masked, np.ma.array(1, mask=True), np.timedelta64(1, "ns"), np.array(1, "m8[ns]"),
         np.datetime64(1, "ns")]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
def test_scalars_are_refused_too(wrong):
    with pytest.raises(ArgumentError, match=r"(?s)eps = .* is not a number"):
        _forces(eps=wrong)
    with (
        Tree(POS, MASS) as tree,
        pytest.raises(ArgumentError, match=r"(?s)k = .* is not an integer"),
    ):
        tree.nearest(wrong)
