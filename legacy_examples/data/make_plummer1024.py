"""Makes plummer1024.dat: a Plummer sphere of 1024 equal masses in Henon units."""

from pathlib import Path

from grape6py.models import plummer
from grape6py.snapshot import write_snapshot

N, SEED = 1024, 1

write_snapshot(
    Path(__file__).with_name("plummer1024.dat"),
    plummer(N, seed=SEED, mass_fraction=0.999, rescale=True),
    comment=f"Plummer sphere, N = {N}, G = M = 1, E = -1/4, cut at 0.999 of the mass\n"
    "m x y z vx vy vz",
)
