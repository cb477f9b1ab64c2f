"""Core collapse.

512 equal stars without softening. Encounters carry heat out of the core, which shrinks faster and
faster, until a binary forms in it; what the binary gives in encounters makes the core expand again.
"""

import matplotlib.pyplot as plt
import numpy as np

from grape6py import Hermite, plummer

cluster = Hermite(*plummer(512, seed=1))
times, core, radii, hardness = [], [], [], []
fractions = [0.01, 0.1, 0.5]


def look(c):
    found = c.binaries().hardness
    times.append(c.time)
    core.append(c.core_radius())
    radii.append(c.lagrangian_radii(fractions, "density"))
    hardness.append(found[0] if len(found) else np.nan)


cluster.evolve(240.0, look, every=0.5)


def smooth(values):
    """The median of five time units."""
    windows = np.lib.stride_tricks.sliding_window_view(np.array(values), 11, axis=0)
    return np.median(windows, axis=-1)


figure, (above, below) = plt.subplots(2, sharex=True, figsize=(6, 6), layout="tight")
above.semilogy(times[5:-5], smooth(radii), label=[f"{100 * f:g} % of the mass" for f in fractions])
above.semilogy(times[5:-5], smooth(core), "k", label="core")
above.set(ylabel="radius", ylim=(0.02, 6))
above.legend(ncols=2, loc="upper left")
below.semilogy(times, hardness, ".", ms=3)
below.axhline(1, color="0.7", lw=0.8)
below.set(xlabel="time", ylabel="hardness of the hardest binary")
figure.savefig("core_collapse.png", dpi=120)
