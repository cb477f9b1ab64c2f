"""``OneRank`` answers at once what a communicator of one process answers by MPI."""

import inspect
import subprocess
import sys

import numpy as np
import pytest

from grape6py.ranks.one_rank import ONE, ranks_of
from grape6py.ranks.ranks import Ranks

ROWS = np.arange(12.0).reshape(4, 3)
CALLS = {
    "counts": (7,), "numbered": (7,), "broadcast": ("a",), "from_each": ((1, "b"),),
    "summed": (ROWS,), "largest": (ROWS,), "total": ([0.1] * 10,), "rows": (9,),
    "gathered": (ROWS,), "to_first": (ROWS,), "looked_up": (ROWS, np.array([3, 0, 3])),
    "swapped": (np.array([4]),), "exchanged": (ROWS, np.array([0, 4])), "connect": (None,),
    "check": ("a call",),
}  # fmt: skip
CONTEXTS = {"agreement": ("a call",), "sharing_errors": ()}
BY_MPI = {"gather", "leave"}  # of devices, and of the end of a program


@pytest.fixture(scope="module")
def by_mpi():
    return ranks_of(pytest.importorskip("mpi4py.MPI", reason="SKIP: mpi4py").COMM_SELF)


def test_every_call_of_ranks_is_tried():
    public = {name for name, _ in inspect.getmembers(Ranks, inspect.isfunction) if name[0] != "_"}
    assert public == CALLS.keys() | CONTEXTS.keys() | BY_MPI


def equal(one, other):
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other) and one.dtype == other.dtype
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("name", CALLS)
def test_answers_are_those_of_a_communicator_of_one(by_mpi, name):
    assert equal(getattr(ONE, name)(*CALLS[name]), getattr(by_mpi, name)(*CALLS[name]))


def test_an_agreement_is_kept_and_an_error_passes(by_mpi):
    assert (ONE.rank, ONE.size, ONE.comm) == (by_mpi.rank, by_mpi.size, None)
    for ranks in ONE, by_mpi:
        with ranks.sharing_errors(), ranks.agreement("a call") as agreement:
            agreement.same("x", 1.0, None)
            agreement.same_contents("rows", ROWS, "text")
            most, least = agreement.maximum(2), agreement.minimum(-3.5)
        assert (most.value, least.value) == (2.0, -3.5)
        with pytest.raises(KeyError), ranks.sharing_errors(), ranks.agreement("a call"):
            raise KeyError


def test_a_process_of_its_own_knows_nothing_of_mpi():
    program = """if True:
        import sys
        from grape6py import Hermite, Leapfrog, Tree, plummer
        bodies = plummer(20, seed=1)
        for made in Hermite(*bodies, eps=0.1), Leapfrog(*bodies, eps=0.1, dt=1 / 64):
            made.evolve(1 / 16)
            made.energy()
        Tree(*bodies).forces(eps=0.1)
        assert "mpi4py" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", program], check=True)
