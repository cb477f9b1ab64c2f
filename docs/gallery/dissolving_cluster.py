"""A cluster dissolves in the Milky Way.

It moves on an orbit in galpy's model of the Milky Way, whose tide draws out two tails. The
bodies are integrated in a frame that moves on this orbit. Most of them have no mass: they show the
tails, and cost little. The unit of length is 8 kpc, that of velocity 220 km/s.
"""

import matplotlib.pyplot as plt
import numpy as np

from grape6py import Hermite, fields, plummer

n, heavy, cluster_mass, radius = 1200, 120, 1e-5, 0.006
_, pos, vel = plummer(n, seed=4)
mass = np.where(np.arange(n) < heavy, cluster_mass / heavy, 0.0)
cluster = Hermite(
    mass,
    pos * radius,
    vel * np.sqrt(cluster_mass / radius),
    field=fields.mwpotential2014(),
    orbit=[1.0, 0.0, 0.0, 0.0, 0.9, 0.1],
    eps=0.2 * radius,
    eta=0.05,
)

times, path = (0.0, 4.0, 8.0, 12.0), []
figure, axes = plt.subplots(1, 4, figsize=(12, 3.3), sharex=True, sharey=True, layout="tight")
for axis, time in zip(axes, times, strict=True):
    cluster.evolve(time, lambda c: path.append(c.origin[0]), every=0.1)
    x, y, _ = (cluster.pos + cluster.origin[0]).T
    if path:
        axis.plot(*np.transpose(path)[:2], color="0.8", lw=0.8)
    axis.plot(x, y, ".", ms=2.5, mew=0, alpha=0.5)
    axis.plot(0, 0, "k+")
    axis.set(title=f"t = {time:g}", xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal")
figure.savefig("dissolving_cluster.png", dpi=120)
