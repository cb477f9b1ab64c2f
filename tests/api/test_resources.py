"""Resources: open and close, allocations that fail, memory that lies, a million particles."""

import numpy as np
import pytest

import capi
from grape6py import reference
from particles import cloud, relative
from variants import clean


@pytest.mark.backends("cpu cpu-tree cuda-tree")
def test_row22_3_25_opening_and_closing_leaves_memory_threads_and_descriptors(on_backend):
    """With one id for all rounds or one for each; 20 bytes a round and more are seen."""
    rounds = 400 if "cuda" in on_backend else 8000
    done = capi.run_python(f"""
source = cloud(200)
def state():
    kilobytes = open("/proc/self/status").read().split("VmRSS:")[1].split()[0]
    return int(kilobytes), *(len(os.listdir("/proc/self/" + what)) for what in ("task", "fd"))
def work(rounds):
    for k in range(rounds):
        s = Session.unopened(k * {7919 * (on_backend != "cpu")} + 3)
        assert call("g6_open", s.cluster) == 0
        if k % 16 == 0:
            s.put_cloud(source); s.force(200, source.x[:64], index=source.index[:64], h2=1.0)
        if k % 5 == 0: call("g6_set_ti", s.cluster + 1, 0.5)  # opened by its first use
        assert s.close() == 0
    return state()
before, after = work({rounds // 2}), work({rounds})
assert after[0] - before[0] < {4000 if "cuda" in on_backend else 160}, (before, after)
assert after[1:] == before[1:], (before, after)
""")
    assert done.stderr == ""


def test_ids_opened_by_use_and_closed_keep_no_session():
    """30 kB each until the next g6_open, but closed they stay."""
    capi.run_python("""
def memory():
    return int(open("/proc/self/statm").read().split()[1]) * 4
assert call("g6_open", 0) == 0
ids, used = range(1, 8001), []
for k in ids:
    assert call("g6_set_ti", k, 0.5) == 0 and call("g6_close", k) == 0
    if k in (2000, 8000):
        used.append(memory())
assert used[1] - used[0] < 4000, used
assert {call("g6_set_ti", k, 0.5) for k in ids} == {-21}
assert call("g6_open", 8000) == call("g6_set_ti", 1, 0.5) == 0
""")


@pytest.mark.full
@pytest.mark.parametrize("backend", ["cpu", "cpu-tree"])
def test_row29_every_allocation_may_fail(variants, backend):
    program = variants["address"].program("nth_allocation")
    done = clean([program], printed=True, GRAPE6_BACKEND=backend, GRAPE6_TEST_TREE="always")
    allocations, reported = map(int, done.stdout.split())
    assert done.stderr == ""
    assert allocations > 60
    assert reported > allocations // 2, "the others did without, as a thread fewer"


@pytest.mark.full
def test_row40_a_wrong_row_is_found_by_verification_alone(variants):
    program = variants["address"].program("mutated_row")
    done = clean([program], printed=True, GRAPE6_VERIFY="1", GRAPE6_LOG="faults")
    assert done.stdout.split() == ["0", "-40", "-40", "-40", "0"]
    assert len(done.stderr.splitlines()) == 1
    assert "GRAPE6_VERIFY" in done.stderr
    assert clean([program], printed=True, code=3).stdout.split() == ["0"] * 5


@pytest.mark.full
def test_row28_a_million_particles_pull_48_as_they_should(new_session):
    source = cloud(1000000, seed=71)
    session = new_session()
    for nj in (1000000, 999999):
        rows = np.linspace(0, nj - 1, 48).astype(int)
        right = reference.direct_sum(source.mass[:nj], source.x[:nj], source.v[:nj], rows=rows,
                                     eps2=1e-6, nearest=True)  # fmt: skip
        assert session.put_cloud(source) == 0
        for mode, limit in ("grape", 1e-6), ("double", 1e-13), ("single", 1e-4):
            session.set_int("G6X_PRECISION", capi.MODES[mode])
            found = session.force(nj, source.x[rows], source.v[rows], source.index[rows], eps2=1e-6)
            assert found.code == 0
            assert (found.nearest == right.nearest).all()
            for name, times in (("acc", 1), ("jerk", 10), ("pot", 1)):
                error = relative(getattr(found, name), getattr(right, name))
                assert error.max() < limit * times, (mode, name)
