"""A planet stirs a disk of planetesimals.

Bodies without mass start on circles about a star; a planet on an ellipse excites them in its
resonances and clears its neighbourhood. Bodies are added by their orbits, in astronomical units.
"""

import matplotlib.pyplot as plt
import numpy as np
from astropy import units as u

from grape6py import Hermite

random = np.random.default_rng(1)
star = Hermite([1.0] * u.Msun, [[0, 0, 0]] * u.AU, [[0, 0, 0]] * u.km / u.s)
star.add(1 * u.jupiterMass, a=5.2 * u.AU, e=0.05)
angles = 2 * np.pi * random.random(400)
star.add(a=np.linspace(2, 9, 400) * u.AU, inc=0.5 * u.deg, Omega=angles, f=angles[::-1])
star.evolve(1000 * u.yr)

found = star.orbits()
figure, axes = plt.subplots(figsize=(6, 4), layout="tight")
axes.plot(found.a[1:], found.e[1:], ".", ms=4)
axes.plot(found.a[0], found.e[0], "o")
for p, q in ((3, 1), (2, 1), (3, 2), (2, 3), (1, 2)):
    resonance = 5.2 * (q / p) ** (2 / 3)
    axes.axvline(resonance, color="0.8", lw=0.8, zorder=0)
    axes.text(resonance, 0.41, f"{p}:{q}", ha="center")
axes.set(xlabel="semi-major axis [AU]", ylabel="eccentricity", xlim=(2, 9), ylim=(0, 0.4))
figure.savefig("planetesimals.png", dpi=120)
