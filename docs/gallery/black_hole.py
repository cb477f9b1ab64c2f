"""A black hole in a cluster.

It swallows each star that comes near. This is an event, for which a function merges the two; the
integration continues. The energy of the cluster jumps with each merger. Without what the mergers
have added it is conserved.
"""

import matplotlib.pyplot as plt
import numpy as np

from grape6py import Hermite, plummer
from grape6py.events import Encounter

mass, pos, vel = plummer(256, seed=3)
at_rest = np.zeros((1, 3))
cluster = Hermite([0.05, *mass], np.r_[at_rest, pos], np.r_[at_rest, vel], eta=0.01)
hole = 0  # its id
times, total, change, hole_mass = [], [], [], []


def swallow(c, event):
    if hole in event.ids:
        c.merge(event.ids)


def look(c):
    times.append(c.time)
    total.append(c.energy().total)
    change.append(c.energy_change)
    hole_mass.append(c.mass[0])


look(cluster)
events = [Encounter(0.01, on_encounter=swallow)]
cluster.evolve(6.0, look, every=1 / 32, events=events)

figure, (above, below) = plt.subplots(2, sharex=True, figsize=(6, 6), layout="tight")
above.step(times, hole_mass, where="post")
above.set_ylabel("mass of the black hole")
below.step(times, total, where="post", label="energy")
below.plot(times, np.subtract(total, change), label="without the mergers' part")
below.set(xlabel="time", ylabel="energy")
below.legend()
figure.savefig("black_hole.png", dpi=120)
