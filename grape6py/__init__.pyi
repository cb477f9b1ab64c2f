"""The names of the package, which ``__init__.py`` imports when they are first used."""

from grape6py import archive as archive
from grape6py import bound_pairs as bound_pairs
from grape6py import diagnostics as diagnostics
from grape6py import errors as errors
from grape6py import events as events
from grape6py import fields as fields
from grape6py import models as models
from grape6py import paths as paths
from grape6py import picture as picture
from grape6py import reference as reference
from grape6py import snapshot as snapshot
from grape6py import units as units
from grape6py._arrays import quantities as quantities
from grape6py.bound_pairs import binaries as binaries
from grape6py.errors import Grape6Error as Grape6Error
from grape6py.errors import Grape6Warning as Grape6Warning
from grape6py.files import formats as formats
from grape6py.forces import partial as partial
from grape6py.forces import tree as tree
from grape6py.forces.grape6 import Forces as Forces
from grape6py.forces.grape6 import Grape6 as Grape6
from grape6py.forces.sums import accelerations as accelerations
from grape6py.forces.tree import Tree as Tree
from grape6py.integrators import hermite as hermite
from grape6py.integrators import leapfrog as leapfrog
from grape6py.integrators.hermite import Hermite as Hermite
from grape6py.integrators.leapfrog import Leapfrog as Leapfrog
from grape6py.models import Particles as Particles
from grape6py.models import fractal as fractal
from grape6py.models import galaxy as galaxy
from grape6py.models import galaxy_merger as galaxy_merger
from grape6py.models import king as king
from grape6py.models import kroupa as kroupa
from grape6py.models import limepy as limepy
from grape6py.models import maschberger as maschberger
from grape6py.models import merger as merger
from grape6py.models import plummer as plummer
from grape6py.models import salpeter as salpeter
from grape6py.models import stars as stars
from grape6py.models import tidal_radius as tidal_radius
from grape6py.models import two_body as two_body
from grape6py.models import uniform as uniform
from grape6py.models import with_binaries as with_binaries
from grape6py.picture import movie as movie
from grape6py.snapshot import Snapshot as Snapshot
from grape6py.snapshot import read_snapshot as read_snapshot
from grape6py.snapshot import write_snapshot as write_snapshot
from grape6py.units import Units as Units

__version__: str
__all__ = [
    "Forces",
    "Grape6",
    "Grape6Error",
    "Grape6Warning",
    "Hermite",
    "Leapfrog",
    "Particles",
    "Snapshot",
    "Tree",
    "Units",
    "accelerations",
    "archive",
    "binaries",
    "diagnostics",
    "errors",
    "events",
    "fields",
    "fractal",
    "galaxy",
    "galaxy_merger",
    "king",
    "kroupa",
    "limepy",
    "maschberger",
    "merger",
    "models",
    "movie",
    "picture",
    "plummer",
    "read_snapshot",
    "reference",
    "salpeter",
    "stars",
    "tidal_radius",
    "two_body",
    "uniform",
    "with_binaries",
    "write_snapshot",
]
