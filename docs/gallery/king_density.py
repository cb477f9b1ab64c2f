"""The density of a King model.

Each star's density from the distance to its sixth neighbour (Casertano and Hut 1985, ApJ 298, 80),
found with a tree, against its distance from the centre.
"""

import matplotlib.pyplot as plt
import numpy as np

from grape6py import Tree, king

stars = king(20_000, w0=7.0, seed=1)
with Tree(stars.pos, stars.mass) as tree:
    sixth = tree.nearest(6).distance[:, 5]
density = 5 * stars.mass / (4 / 3 * np.pi * sixth**3)  # without the sixth itself
radius = np.linalg.norm(stars.pos, axis=1)

plt.loglog(radius, density, ",")
plt.xlabel("radius")
plt.ylabel("density")
plt.savefig("king_density.png", dpi=120)
