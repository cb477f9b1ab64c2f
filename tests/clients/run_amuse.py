"""Integrates a snapshot with a code of AMUSE, as its user would; the Python is AMUSE's own.

    run_amuse.py FOLDER CODE SUMS RANKS SNAPSHOT T_END RESULT [ETA EPS]

FOLDER/src/amuse/community has the code with its workers; SUMS is `own` (the code's own, on the CPU)
or `linked` (the library's). RESULT is a snapshot, too; the seconds that the steps took are printed.
Units: N-body; softening: by default 4 / N."""

import sys
import time

import amuse.community
import numpy as np
from amuse.datamodel import Particles
from amuse.units import nbody_system as unit

folder, name, sums, ranks, snapshot, end, result, *more = sys.argv[1:]
amuse.community.__path__.append(f"{folder}/src/amuse/community")
options = {"number_of_workers": int(ranks), "channel_type": "sockets", "redirection": "none"}
if name == "ph4":
    from amuse.community.ph4.interface import ph4

    code = ph4(mode="gpu", **options)
    code.parameters.use_gpu = int(sums == "linked")
else:
    from amuse.community.phigrape.interface import PhiGRAPE

    # The worker of mode g6lib is linked to AMUSE's sums if it is for one rank: see test_amuse.py.
    code = PhiGRAPE(mode="grape" if (sums, ranks) == ("linked", "1") else "g6lib", **options)

mass, *x_and_v = np.loadtxt(snapshot, unpack=True)
stars = Particles(len(mass), mass=mass | unit.mass, radius=0 | unit.length)
stars.position = np.transpose(x_and_v[:3]) | unit.length
stars.velocity = np.transpose(x_and_v[3:]) | unit.speed
eps = 4 / len(mass)
if more:
    code.parameters.timestep_parameter, eps = map(float, more)
code.parameters.epsilon_squared = eps**2 | unit.length**2
code.particles.add_particles(stars)
code.commit_particles()
if name == "ph4":  # else a GRAPE or GPU has j particles at rest until each has made its first step
    code.recompute_timesteps()
start = time.perf_counter()
code.evolve_model(float(end) | unit.time)
print("seconds", time.perf_counter() - start)
assert code.model_time == float(end) | unit.time
pos, vel = code.particles.position.number, code.particles.velocity.number
code.stop()
np.savetxt(result, np.column_stack([mass, pos, vel]), fmt="%.17g")
