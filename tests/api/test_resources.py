"""Resources: open and close, allocations that fail, memory that lies, a million particles."""

import functools

import numpy as np
import pytest

import capi
from grape6py import reference
from particles import cloud, relative
from variants import clean


@pytest.mark.backends("cpu cpu-tree")
def test_row22_3_25_opening_and_closing_leaves_memory_threads_and_descriptors(on_backend):
    ids = "same" if on_backend == "cpu" else "many"
    printed = capi.run_c("open_close", "100000", ids).stdout
    kilobytes, threads, descriptors = map(int, printed.split())
    assert (threads, descriptors) == (0, 0)
    assert kilobytes <= 512, "6 bytes a round and more are seen"


def test_ids_opened_by_use_and_closed_keep_no_session():
    """30 kB each until the next g6_open, but closed they stay."""
    capi.run_python("""
def memory():
    return int(open("/proc/self/statm").read().split()[1]) * 4
assert call("g6_open", 0) == 0
ids, used = range(1, 20001), []
for k in ids:
    assert call("g6_set_ti", k, 0.5) == 0 and call("g6_close", k) == 0
    if k in (2000, 20000):
        used.append(memory())
assert used[1] - used[0] < 4000, used
assert {call("g6_set_ti", k, 0.5) for k in ids} == {-21}
assert call("g6_open", 20000) == call("g6_set_ti", 1, 0.5) == 0
""")


@pytest.mark.parametrize("backend", ["cpu", "cpu-tree"])
def test_row29_every_allocation_may_fail(variants, backend):
    program = variants["address"].program("nth_allocation")
    done = clean([program], printed=True, GRAPE6_BACKEND=backend, GRAPE6_TEST_TREE="always")
    allocations, reported = map(int, done.stdout.split())
    assert done.stderr == ""
    assert allocations > 40
    assert reported > allocations // 2, "the others did without, as a thread fewer"


def test_row40_a_wrong_row_is_found(variants):
    program = variants["address"].program("mutated_row")
    done = clean([program], printed=True, GRAPE6_VERIFY="1", GRAPE6_LOG="faults")
    assert done.stdout.split() == ["0", "-40", "-40", "-40", "0"]
    assert len(done.stderr.splitlines()) == 1
    assert "GRAPE6_VERIFY" in done.stderr


def test_row40_without_verification_a_wrong_row_passes(variants):
    done = clean([variants["address"].program("mutated_row")], printed=True, code=3)
    assert done.stdout.split() == ["0"] * 5


@pytest.fixture(scope="module")
def million():
    return cloud(1000000, seed=71)


@pytest.fixture(scope="module")
def truth(million):
    """Forces of the first nj on some of them, the same for all modes."""

    def compute(nj):
        rows = np.linspace(0, nj - 1, 48).astype(int)
        of_nj = reference.direct_sum(million.mass[:nj], million.x[:nj], million.v[:nj], rows=rows,
                                     eps2=1e-6, nearest=True)  # fmt: skip
        return rows, of_nj

    return functools.cache(compute)


@pytest.mark.parametrize("nj", [1000000, 999999], ids=lambda n: f"row28-{n}")
def test_a_million_particles_pull_48_as_they_should(new_session, million, truth, mode, nj):
    source, (rows, right) = million, truth(nj)
    session = new_session(precision=mode)
    assert session.put_cloud(source) == 0
    found = session.force(nj, source.x[rows], source.v[rows], source.index[rows], eps2=1e-6)
    assert found.code == 0
    assert (found.nearest == right.nearest).all()
    limit = {"grape": 1e-6, "double": 1e-13, "single": 1e-4}[mode]
    for name, times in (("acc", 1), ("jerk", 10), ("pot", 1)):
        error = relative(getattr(found, name), getattr(right, name))
        assert error.max() < limit * times, name
