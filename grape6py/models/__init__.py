"""Initial models: star clusters, galaxies, and two bodies or models on an orbit.

Spheres and two bodies are in Henon units (G = M = 1, E = -1/4); a galaxy's units are the mass
and the scale length of its disk (G = 1). The same seed gives the same model.

spheres.py has Plummer's and the uniform sphere, king.py King's, isotropic.py those of Elson, Fall
and Freeman, of Hernquist, and of Navarro, Frenk and White, fractal.py sub-structure.
mass_functions.py draws masses, stars.py gives them to a model, binaries.py makes pairs of its
bodies, tidal.py has a cluster's tidal radius. galaxies.py has the galaxy, components.py what it
consists of, orbits.py Kepler's two bodies and the merger of two models, sampling.py what they
share.
"""

from grape6py.models.binaries import with_binaries
from grape6py.models.fractal import fractal
from grape6py.models.galaxies import galaxy, galaxy_merger
from grape6py.models.isotropic import SphereProfile, eff, eff_profile, hernquist, nfw, nfw_profile
from grape6py.models.king import KingProfile, king, king_profile
from grape6py.models.mass_functions import kroupa, maschberger, salpeter
from grape6py.models.orbits import merger, two_body
from grape6py.models.sampling import Component, Labelled, Particles
from grape6py.models.spheres import plummer, uniform
from grape6py.models.stars import stars
from grape6py.models.tidal import tidal_radius

__all__ = [
    "Component",
    "KingProfile",
    "Labelled",
    "Particles",
    "SphereProfile",
    "eff",
    "eff_profile",
    "fractal",
    "galaxy",
    "galaxy_merger",
    "hernquist",
    "king",
    "king_profile",
    "kroupa",
    "maschberger",
    "merger",
    "nfw",
    "nfw_profile",
    "plummer",
    "salpeter",
    "stars",
    "tidal_radius",
    "two_body",
    "uniform",
    "with_binaries",
]
