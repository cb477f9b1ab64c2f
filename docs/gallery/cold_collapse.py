"""Cold collapse.

A uniform sphere of bodies at rest falls together, bounces, and ejects a part of its mass
(van Albada 1982, MNRAS 201, 939). The radii hold 10, 50 and 90 % of the mass.
"""

import matplotlib.pyplot as plt

from grape6py import Hermite, uniform

n = 512
cluster = Hermite(*uniform(n, seed=3, virial_ratio=0.0), eps=0.05)
times, radii = [], []


def look(c):
    times.append(c.time)
    radii.append(c.lagrangian_radii([0.1, 0.5, 0.9]))


look(cluster)
cluster.evolve(6.0, look, every=0.125)

plt.semilogy(times, radii, label=["10 %", "50 %", "90 %"])
plt.xlabel("time")
plt.ylabel("radius")
plt.legend(title="mass inside")
plt.savefig("cold_collapse.png", dpi=120)
