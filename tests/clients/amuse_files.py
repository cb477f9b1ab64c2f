"""AMUSE writes files of bodies and reads them, as its user would; the Python is AMUSE's own.

    amuse_files.py write      into the working folder, a file a format
    amuse_files.py read       those of `ours.*`; leaves SI numbers of each in answer.json

N-body units of the files are 1000 Msun and 2 parsec, except where their format has no units."""

import json
import sys
import warnings

import numpy as np
from amuse.datamodel import Particles
from amuse.io import read_set_from_file, write_set_to_file
from amuse.units import nbody_system, units

warnings.simplefilter("ignore")
N = 20
CONVERT = nbody_system.nbody_to_si(1000 | units.MSun, 2 | units.parsec)
OF_OURS = {"ours.amuse": "amuse", "ours.dyn": "starlab", "ours.nemo": "nemobin"}


def answer(found):
    with open("answer.json", "w", encoding="ascii") as file:  # at its end AMUSE prints, too
        json.dump(found, file)


def bodies():
    rng = np.random.default_rng(2)
    stars = Particles(N, mass=rng.random(N) | nbody_system.mass)
    stars.position = rng.standard_normal((N, 3)) | nbody_system.length
    stars.velocity = rng.standard_normal((N, 3)) | nbody_system.speed
    return stars


def in_parsecs(stars):
    made = Particles(len(stars))
    made.mass = CONVERT.to_si(stars.mass).as_quantity_in(units.MSun)
    made.position = CONVERT.to_si(stars.position).as_quantity_in(units.parsec)
    made.velocity = CONVERT.to_si(stars.velocity).as_quantity_in(units.kms)
    return made


def write():
    stars = bodies()
    physical = in_parsecs(stars)
    np.save("keys.npy", physical.key)
    for version in ("1.0", "2.0"):
        write_set_to_file(stars, f"nbody-{version}.amuse", "amuse", version=version)
        write_set_to_file(physical.savepoint(3 | units.Myr), f"si-{version}.amuse", "amuse",
                          version=version)  # fmt: skip
    write_set_to_file(stars, "a.dyn", "starlab")
    write_set_to_file(stars, "a.nemo", "nemobin")
    write_set_to_file(stars, "a.csv", "csv")


def read():
    found = {}
    for name, kind in OF_OURS.items():
        stars = read_set_from_file(name, kind)
        if str(stars.mass.unit) != "kg" and stars.mass.unit.base[0][1].system.name != "S.I.":
            stars = in_parsecs(stars)
        found[name] = {"mass": stars.mass.value_in(units.kg).tolist(),
                       "pos": stars.position.value_in(units.m).tolist(),
                       "vel": stars.velocity.value_in(units.m / units.s).tolist(),
                       "key": stars.key.tolist()}  # fmt: skip
    answer(found)


{"write": write, "read": read}[sys.argv[1]]()
