"""Binaries in a cluster.

A thousand stars in pc and Myr, two thirds of them in binaries that are 3 to 3000 AU wide. Hard
binaries stay, those softer than the stars are fast are torn apart or become harder (Heggie 1975,
MNRAS 173, 729). Below: the energy error.
"""

import matplotlib.pyplot as plt
import numpy as np

from grape6py import Hermite, Units, kroupa, stars, with_binaries

AU, units = 4.848e-6, Units("Msun", "pc", time="Myr")
systems = stars(kroupa(667, seed=5, lowest=0.1, highest=20.0), seed=5, virial_ratio=0.5)
scale = 500 * units.G, 0.5  # the model's mass and length: 500 solar masses, 0.5 pc
bodies = with_binaries(systems, 0.5, seed=5, separation=(3 * AU / 0.5, 3000 * AU / 0.5))
mass, pos, vel = bodies.mass * 500, bodies.pos * 0.5, bodies.vel * np.sqrt(scale[0] / 0.5)
cluster = Hermite(mass, pos, vel, G=units.G)
start, times, error = cluster.energy().total, [], []


def look(c):
    times.append(c.time)
    error.append(abs(c.energy().total / start - 1))


def axes_of(c):
    return np.array([s.semi_major_axis for s in c.subsystems if s.semi_major_axis > 0]) / AU


cluster.evolve(0.01)
before = axes_of(cluster)
cluster.evolve(1.0, look, every=1 / 64)

figure, (above, below) = plt.subplots(2, figsize=(6, 6), layout="tight")
bins = np.geomspace(1, 1e4, 25)
above.hist(before, bins, histtype="step", label="0.01 Myr")
above.hist(axes_of(cluster), bins, histtype="step", label="1 Myr")
above.set(xscale="log", xlabel="semi-major axis / AU", ylabel="binaries")
above.legend()
below.semilogy(times, error)
below.set(xlabel="time / Myr", ylabel="|dE/E|")
figure.savefig("binaries_in_a_cluster.png", dpi=120)
