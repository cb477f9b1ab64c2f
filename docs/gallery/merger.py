"""Two galaxies merge.

Two Plummer spheres on a parabolic orbit, by the leapfrog with forces from a tree.
"""

import matplotlib.pyplot as plt

from grape6py import Leapfrog, merger, plummer

sphere = plummer(2000, seed=5)
both = merger(sphere, plummer(2000, seed=6), pericentre=1.0, separation=8.0)
galaxies = Leapfrog(*both.particles, dt=1 / 32, eps=0.05, theta=0.7)
figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), sharex=True, sharey=True)
for axis, time in zip(axes, (0, 12, 18, 30), strict=True):
    galaxies.evolve(time)
    x, y, _ = galaxies.pos.T
    axis.plot(x, y, ",")
    axis.set(title=f"t = {time}", xlim=(-8, 8), ylim=(-8, 8), aspect="equal")
figure.savefig("merger.png", dpi=120)
