"""GRAPE-5's calls on other backends: a graphics card (one made of the CPU) and trees, which are
built for any number of particles, and there open all their cells."""

import pytest

import capi
from cards import pytest_on

DIRECT = ["tests/test_g5_forces.py", "tests/test_g5_clusters.py"]
CHOSEN = "direct_sum or itself or apart or repeated or change or i_particle or may_be"
# A tree's bits depend on the company of targets, and its pairs are summed in single precision.
BITS = "bits or one_array or fewer or after_the_run or be_many"


@pytest.mark.parametrize("backend", ["cuda", "cpu-tree", "cuda-tree"])
def test_the_semantics_are_the_same(card, backend):
    chosen = f"({CHOSEN}) and not ({BITS})" if "tree" in backend else f"{CHOSEN} or {BITS}"
    text, cases = pytest_on(card, *DIRECT, "-k", chosen, GRAPE6_TEST_BACKEND=backend,
                            GRAPE6_TEST_TREE="always")  # fmt: skip
    assert len(cases) > 12, text
    assert set(cases.values()) == {"PASSED"}, text


@pytest.mark.parametrize("backend", ["cpu-tree", "cuda-tree"])
def test_a_tree_counts_each_particle_itself_once(card, backend):
    """Softened so that its own term outweighs all others in a particle's potential, and without."""
    env = {"GRAPE6_TEST_CARD": str(card), "GRAPE6_TEST_TREE": "always", "GRAPE6_THETA": "0.3"}
    capi.run_python("""
from grape5 import *
n = 6000
m, x = stars(n)
rows = np.arange(0, n, 20)
board = Board(0)
board.load(m, x)
for eps in (0.1 / n, 0.0):
    board("set_eps_to_all", eps)
    code, a, p = board.calculate(x)
    expected = direct(x[rows], m, x, eps)
    wrong = np.linalg.norm(a[rows] - expected.a, axis=1) / expected.pull
    assert code == 0
    assert 1e-8 < np.median(wrong) and wrong.max() < 1e-3  # a tree's, not those of all pairs
    assert (np.abs(p[rows] - expected.p) < 1e-4 * np.abs(expected.p)).all()
""", GRAPE6_BACKEND=backend, timeout=300, **env)  # fmt: skip
