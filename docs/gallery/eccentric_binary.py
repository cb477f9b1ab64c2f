"""An eccentric binary.

Two bodies with e = 0.9 over ten orbits in block steps, without a subsystem: the steps follow the
distance, and the energy error comes at the pericentres.
"""

import matplotlib.pyplot as plt
import numpy as np

from grape6py import Hermite, two_body

pair = Hermite(*two_body(eccentricity=0.9, apocentre=True), eta=0.005, subsystems=False)
start = pair.energy().total
times, distance, step, error = [], [], [], []


def look(c):
    pos = c.pos
    times.append(c.time / (2 * np.pi))
    distance.append(np.linalg.norm(pos[0] - pos[1]))
    step.append(c.step_sizes.min())
    error.append(abs(c.energy().total / start - 1))


pair.evolve(20 * np.pi, look, every=0.05)

figure, axes = plt.subplots(3, sharex=True, figsize=(6, 7))
for axis, (name, values) in zip(
    axes, {"distance": distance, "step": step, "|dE/E|": error}.items(), strict=True
):
    axis.semilogy(times, np.maximum(values, 1e-16))
    axis.set_ylabel(name)
axes[-1].set_xlabel("orbits")
figure.savefig("eccentric_binary.png", dpi=120)
