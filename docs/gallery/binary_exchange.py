"""A star takes the place of another in a binary.

A heavy star meets a binary. The three go round each other for some time, as one subsystem; then the
lightest is thrown out, and the binary that is left is another one. The energy is kept.
"""

import matplotlib.pyplot as plt
import numpy as np

from grape6py import Hermite

mass = [0.5, 0.3, 0.8]
pos = np.array([[-0.375, 0.0, 0.0], [0.625, 0.0, 0.0], [-8.0, 3.0, 0.0]])
speed = np.sqrt(0.8)
vel = np.array([[0.0, -0.375 * speed, 0.0], [0.0, 0.625 * speed, 0.0], [0.6, -0.05, 0.0]])
cluster = Hermite(mass, pos, vel, dt_max=1 / 64)
start, path, times, error = cluster.energy().total, [], [], []


def look(c):
    path.append(c.pos)
    times.append(c.time)
    error.append(abs(c.energy().total / start - 1))


look(cluster)
cluster.evolve(40.0, look, every=1 / 32)

figure, (above, below) = plt.subplots(2, figsize=(6, 8), height_ratios=(3, 1), layout="tight")
for star, m in zip(np.swapaxes(path, 0, 1), mass, strict=True):
    above.plot(*star[:, :2].T, lw=0.8, label=f"{m}")
above.set(aspect="equal", xlim=(-6, 6), ylim=(-6, 6))
above.legend(title="mass")
below.semilogy(times, np.maximum(error, 1e-16))
below.set(xlabel="time", ylabel="|dE/E|")
figure.savefig("binary_exchange.png", dpi=120)
