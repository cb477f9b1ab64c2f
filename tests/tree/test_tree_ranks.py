"""``Tree(comm=...)``: what is special to ranks, here threads of one process."""

import numpy as np
import pytest

from grape6py import Tree
from samples import bodies

pytestmark = pytest.mark.parametrize("where", ["ranks"], indirect=True)


@pytest.mark.parametrize("name", ["plummer", "fractal", "apart"])
def test_ranks_get_the_same_share_of_the_work(where, name):
    mass, pos, _ = bodies(name, 6000)
    crew, rows, work = where.crew, np.array_split(np.arange(6000), [1000, 6000]), None
    for _ in range(4):

        def step(rank):
            mine = rows[rank]
            own = None if work is None else work[rank]  # noqa: B023
            tree = Tree(mass[mine], pos[mine], comm=crew.ranks[rank], work=own)
            tree.forces(eps=0.01, accuracy=1e-3)
            return tree.work, tree._tree._work * len(tree._tree._domain.pos), tree.seconds

        work, total, seconds = zip(*crew.call(step), strict=True)
    assert max(total) < 1.1 * np.mean(total)
    assert all(stages["sum"] > 0 for stages in seconds)


def test_a_bound_is_that_of_one_tree(where):
    mass, pos, _ = bodies("clustered", 600)
    one, shared = Tree(mass, pos), where.tree(mass, pos)
    assert shared.bound(1e-3, eps=0.01) == one.bound(1e-3, eps=0.01)
    assert [tree.first for tree in shared.trees] == [0, 150, 600]
    assert len(shared.trees[2]) == 600
