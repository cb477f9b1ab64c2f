"""What one asks of a star cluster: energies, momenta, centres, radii, profiles, times, members.

Functions of arrays: mass (n,), pos and vel (n, 3), of NumPy or a GPU, in the caller's units; G = 1
unless it is given. With `where`, a mask of bodies or an array of their rows, they are about those
alone. With `ranks` arrays are those of this rank, and what is found is that of all ranks' bodies,
with the same bits on any number of them. All in double precision, sums rounded once
(``math.fsum``). Hermite and Leapfrog have the same as methods.
"""

from grape6py.diagnostics.bound import Bound as Bound
from grape6py.diagnostics.bound import bound as bound
from grape6py.diagnostics.centres import core_radius as core_radius
from grape6py.diagnostics.centres import density_centre as density_centre
from grape6py.diagnostics.masses import MassFunction as MassFunction
from grape6py.diagnostics.masses import Segregation as Segregation
from grape6py.diagnostics.masses import mass_function as mass_function
from grape6py.diagnostics.masses import mass_segregation as mass_segregation
from grape6py.diagnostics.profiles import Profile as Profile
from grape6py.diagnostics.profiles import profile as profile
from grape6py.diagnostics.radii import FRACTIONS as FRACTIONS
from grape6py.diagnostics.radii import half_mass_radius as half_mass_radius
from grape6py.diagnostics.radii import lagrangian_radii as lagrangian_radii
from grape6py.diagnostics.sums import angular_momentum as angular_momentum
from grape6py.diagnostics.sums import center_of_mass as center_of_mass
from grape6py.diagnostics.sums import centre_of_mass as centre_of_mass
from grape6py.diagnostics.sums import kinetic_energy as kinetic_energy
from grape6py.diagnostics.sums import momentum as momentum
from grape6py.diagnostics.sums import move_to_com as move_to_com
from grape6py.diagnostics.sums import total_energy as total_energy
from grape6py.diagnostics.sums import virial_ratio as virial_ratio
from grape6py.diagnostics.times import crossing_time as crossing_time
from grape6py.diagnostics.times import relaxation_time as relaxation_time
from grape6py.forces.energies import Energy as Energy
from grape6py.forces.energies import energy as energy
from grape6py.forces.energies import potential as potential
from grape6py.forces.energies import summed_potential as summed_potential
