"""Tidal tails of a cluster whose orbit is known today.

The orbit is followed 1.5 Gyr back, and the cluster put there. Most of its stars have no mass: they
show the tails and cost little. Units are parsecs and Myr, in astropy's quantities.
"""

import matplotlib.pyplot as plt
import numpy as np
from astropy import units as u

from grape6py import Hermite, Units, fields, plummer

units = Units("Msun", "pc", time="Myr")
galaxy = fields.mwpotential2014(units=units)
today = [8.5, 0, 0.1] * u.kpc, [40, 190, 15] * u.km / u.s
past = fields.orbit(galaxy, *today, -1.5 * u.Gyr, units=units)

n, heavy = 3000, 150
_, pos, vel = plummer(n, seed=4, units=Units("20000 Msun", "20 pc"))
mass = np.where(np.arange(n) < heavy, 20000 / heavy, 0.0) * u.Msun
cluster = Hermite(mass, pos, vel, units=units, field=galaxy, orbit=past[1:],
                  eps=3 * u.pc, eta=0.05)  # fmt: skip
cluster.evolve(1.5 * u.Gyr)

x, y, _ = (cluster.pos + cluster.origin[0]).to_value(u.kpc).T
path = fields.orbit(galaxy, *today, np.linspace(-0.1, 0.1, 200) * u.Gyr, units=units)
figure, axes = plt.subplots(figsize=(6, 6), layout="tight")
axes.plot(*path.pos.to_value(u.kpc).T[:2], color="0.7", lw=0.8)
axes.plot(x, y, ".", ms=2, mew=0)
axes.plot(0, 0, "k+")
axes.set(xlabel="x [kpc]", ylabel="y [kpc]", aspect="equal")
figure.savefig("tidal_tails.png", dpi=120)
