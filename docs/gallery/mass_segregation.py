"""Mass segregation.

A tenth of the stars has ten times the mass of the others, and sinks to the centre. Half-mass radii
of both kinds.
"""

import matplotlib.pyplot as plt
import numpy as np

from grape6py import Hermite, plummer

n = 512
_, pos, vel = plummer(n, seed=7)
heavy = np.arange(n) < n // 10
mass = np.where(heavy, 10.0, 1.0)
cluster = Hermite(mass / mass.sum(), pos, vel, eps=1 / 64)
times, radii = [], []


def look(c):
    radius = np.linalg.norm(c.pos - np.average(c.pos, axis=0, weights=c.mass), axis=1)
    times.append(c.time)
    radii.append([np.median(radius[heavy]), np.median(radius[~heavy])])


look(cluster)
cluster.evolve(15.0, look, every=0.5)

plt.plot(times, radii, label=["heavy", "light"])
plt.xlabel("time")
plt.ylabel("half-mass radius")
plt.legend()
plt.savefig("mass_segregation.png", dpi=120)
