"""GRAPE-5's calls with a tree that opens only some of its cells."""

import pytest

import capi


@pytest.mark.backends("cpu-tree cuda-tree")
def test_a_tree_counts_each_particle_itself_once():
    """Softened so that its own term outweighs all others in a particle's potential, and without."""
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
""", GRAPE6_THETA="0.3", timeout=300)  # fmt: skip
