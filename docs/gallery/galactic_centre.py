"""Stars round a massive black hole.

Two hundred stars on ellipses about a black hole of four million solar masses, as in the centre of
the Galaxy, are added by their orbits. Encounters change these, fastest where the stars are dense.
"""

import matplotlib.pyplot as plt
import numpy as np
from astropy import units as u

from grape6py import Hermite, Units

random, n = np.random.default_rng(2), 200
units = Units("4e6 Msun", "0.02 pc")
hole = Hermite([4e6] * u.Msun, [[0, 0, 0]] * u.pc, [[0, 0, 0]] * u.km / u.s, units=units,
               subsystems=False, eps=1 * u.AU)  # fmt: skip
inc, Omega, omega, M = np.arccos(2 * random.random(n) - 1), *(2 * np.pi * random.random((3, n)))
hole.add(np.full(n, 200) * u.Msun, a=np.geomspace(0.005, 0.05, n) * u.pc, e=0.5,
         inc=inc, Omega=Omega, omega=omega, M=M)  # fmt: skip
start = hole.energy().total
before = hole.orbits()
hole.evolve(10 * u.kyr)
after = hole.orbits()
print("energy error", hole.energy().total / start - 1)

figure, axes = plt.subplots(figsize=(6, 4), layout="tight")
a = before.a.to_value(u.pc)
axes.semilogx(a, abs(after.a / before.a - 1).value, ".", label="semi-major axis")
axes.semilogx(a, abs(after.e - before.e), ".", label="eccentricity")
axes.set(xlabel="semi-major axis [pc]", ylabel="change", yscale="log", ylim=(1e-4, 1))
axes.legend(title="10 000 years")
figure.savefig("galactic_centre.png", dpi=120)
