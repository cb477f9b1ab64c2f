"""Core collapse.

A small cluster with a mass function and no softening. Heavy stars sink, the core collapses, and a
binary forms in it, which becomes harder in encounters.
"""

import matplotlib.pyplot as plt
import numpy as np

from grape6py import Hermite, plummer, salpeter, stars

masses = salpeter(192, seed=2, lowest=1.0, highest=10.0)
cluster = Hermite(*stars(masses, plummer, seed=2, virial_ratio=0.5))
times, radii, hardness = [], [], []
fractions = [0.05, 0.2, 0.5]


def look(c):
    found = c.binaries().hardness
    times.append(c.time)
    radii.append(c.lagrangian_radii(fractions, "density"))
    hardness.append(found[0] if len(found) else np.nan)


cluster.evolve(16.0, look, every=0.25)

figure, (above, below) = plt.subplots(2, sharex=True, figsize=(6, 6), layout="tight")
above.semilogy(times, radii, label=[f"{100 * f:g} %" for f in fractions])
above.set(ylabel="radius", ylim=(0.02, 5))
above.legend(title="mass inside", loc="upper left", ncols=3)
below.semilogy(times, hardness, ".")
below.set(xlabel="time", ylabel="hardness of the hardest binary", ylim=(0.01, 200))
figure.savefig("core_collapse.png", dpi=120)
