"""Two star clusters merge.

A King model falls with a third of its mass into another, on an ellipse. Below: the distance between
the centres of density.
"""

import matplotlib.pyplot as plt
import numpy as np

from grape6py import Hermite, diagnostics, king, merger

both = merger(
    king(240, w0=6, seed=1), king(80, w0=4, seed=2),
    pericentre=1.0, separation=6.0, eccentricity=0.8, mass_ratio=1 / 3,
)  # fmt: skip
clusters = Hermite(*both.particles, eps=0.02, eta=0.04)
first = both.component == 0
times, distance = [], []


def look(c):
    centres = [diagnostics.density_centre(c.mass[k], c.pos[k]) for k in (first, ~first)]
    times.append(c.time)
    distance.append(np.linalg.norm(centres[0] - centres[1]))


figure = plt.figure(figsize=(12, 6), layout="tight")
for k, time in enumerate((0, 10, 16, 32)):
    clusters.evolve(time, look, every=0.25)
    x, y, _ = clusters.pos.T
    axis = figure.add_subplot(2, 4, k + 1)
    axis.plot(x[first], y[first], ".", ms=2)
    axis.plot(x[~first], y[~first], ".", ms=2)
    axis.set(title=f"t = {time}", xlim=(-6, 6), ylim=(-6, 6), aspect="equal")
axis = figure.add_subplot(2, 1, 2)
axis.plot(times, distance)
axis.set(xlabel="time", ylabel="distance of the centres", ylim=(0, None))
figure.savefig("cluster_merger.png", dpi=120)
