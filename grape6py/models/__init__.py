"""Initial models: star clusters, galaxies, and two bodies or models on an orbit.

Spheres and two bodies are in Henon units (G = M = 1, E = -1/4); a galaxy's units are the mass
and the scale length of its disk (G = 1). The same seed gives the same model.

spheres.py has Plummer's and the uniform sphere, king.py King's, galaxies.py the galaxy,
components.py what it consists of, orbits.py Kepler's two bodies and the merger of two models,
sampling.py what they share.
"""

from grape6py.models.galaxies import galaxy, galaxy_merger
from grape6py.models.king import KingProfile, king, king_profile
from grape6py.models.orbits import merger, two_body
from grape6py.models.sampling import Component, Labelled, Particles
from grape6py.models.spheres import plummer, uniform

__all__ = [
    "Component",
    "KingProfile",
    "Labelled",
    "Particles",
    "galaxy",
    "galaxy_merger",
    "king",
    "king_profile",
    "merger",
    "plummer",
    "two_body",
    "uniform",
]
