"""Exceptions and warnings of grape6py.

Every exception is a :class:`Grape6Error` and also what a Python programmer would expect
(ValueError, IndexError, ...), so both ways of catching work.
"""

import difflib
import re
from collections.abc import Iterable

# What a terminal obeys instead of showing it: control characters, and turns of the direction.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: object) -> str:
    """A text, names in which may come out of a file, with nothing in it that a terminal obeys."""
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], str(text))


# What is called otherwise in REBOUND, AMUSE, galpy, gala, pynbody, NBODY6 and elsewhere, by the
# names that it has here.
_ELSEWHERE = {
    "time": "t model_time get_time", "n": "N num_particles number_of_particles nbody n_bodies num",
    "pos": "x r position positions xyz", "vel": "v velocity velocities vxyz",
    "mass": "m masses", "acc": "a acceleration accelerations", "ids": "id iords key keys indices",
    "evolve": "integrate evolve_model evolve_to run step_to advance integrate_orbit",
    "add": "add_particle add_particles append add_body", "save": "write dump output saveas to_file",
    "remove": "remove_particle remove_particles delete pop", "load": "restore restart from_file",
    "energy": "E etot Etot get_energy", "half_mass_radius": "rh r_half r_hm half_mass rhalf",
    "core_radius": "rc r_core get_core", "centre_of_mass": "com", "tidal_radius": "jacobi_radius",
    "binaries": "get_binaries pairs", "relaxation_time": "trh t_rh t_relax", "backend": "device",
    "particles": "to_particles bodies stars", "close": "stop_model cleanup_code cleanup",
    "step_sizes": "dts time_steps", "crossing_time": "t_cross tcr",
    "eps": "softening epsilon epsilon_squared eps_soft rsoft soft", "field": "potential galaxy pot",
    "dt": "time_step timestep stepsize", "dt_max": "max_dt dtmax", "threads": "nthreads",
    "w0": "W0 W_0", "semi_major_axis": "a sma", "eccentricity": "e ecc", "comm": "communicator mpi",
    "theta": "opening_angle angle", "seed": "random_state rng", "units": "converter convert_nbody",
    "cuda": "gpu GPU", "cpu": "CPU host", "Encounter": "Collision CollisionDetection",
    "mwpotential2014": "MWPotential2014 MilkyWayPotential MilkyWay", "EnergyError": "Energy",
    "nfw": "NFW NFWPotential", "miyamoto_nagai": "MiyamotoNagai MiyamotoNagaiPotential",
    "logarithmic": "LogarithmicHaloPotential Logarithmic", "WallTime": "Timeout TimeLimit",
    "point_mass": "KeplerPotential Kepler PointMass", "plummer": "Plummer PlummerPotential "
    "new_plummer_model new_plummer_sphere", "king": "King new_king_model", "Hermite": "Simulation",
    "kroupa": "new_kroupa_mass_distribution Kroupa kroupa_imf", "Tree": "BHTree Octree PyTreeGrav",
    "salpeter": "new_salpeter_mass_distribution Salpeter", "fractal": "new_fractal_cluster_model",
    "open_run": "Simulationarchive SimulationArchive open_archive", "read_snapshot": "load read "
    "read_set_from_file", "write_snapshot": "write_set_to_file", "bound": "bound_subset members",
    "lagrangian_radii": "LagrangianRadii lagr", "orbits": "calculate_orbits get_orbital_elements",
    "orbit": "Orbit", "hernquist": "Hernquist", "eff": "EFF", "primary": "parent",
    "mass_segregation": "mass_segregation_ratio msr",
}  # fmt: skip


def meant(name: str, known: Iterable[str]) -> str:
    """What follows an unknown name, if a known one means the same elsewhere or is near it."""
    known = list(known)
    near = [ours for ours in known if name in _ELSEWHERE.get(ours, "").split()]
    near = near or difflib.get_close_matches(name, known, 1)
    return f" (did you mean {near[0]}?)" if near else ""


class Grape6Error(Exception):
    """Base of all errors raised by grape6py.

    Attributes
    ----------
    code : int or None
        The library's G6X_E_* code, None if the error was found before it was called.
    printed : bool
        Whether the library has printed the message on stderr, as it does with the first of a code.
    """

    printed = False

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(printable(message))
        self.code = code


class ArgumentError(Grape6Error, ValueError):
    """An argument is of the wrong shape, kind or range."""


class NotFiniteError(ArgumentError):
    """A particle has a NaN or an infinity in it."""


class UnitError(ArgumentError, TypeError):
    """A number without a unit where there are units."""


class ReadOnlyError(Grape6Error, AttributeError):
    """An attribute that is not there, or that only a call can change, was set."""


class AddressError(Grape6Error, IndexError):
    """An address or position is negative or outside what exists."""


class SizeError(Grape6Error, OverflowError):
    """A number is larger than the library can count."""


class RangeError(Grape6Error, OverflowError):
    """A force is too large for a double."""


class OutOfMemoryError(Grape6Error, MemoryError):
    """The host or the device is out of memory; what was stored before is intact."""


class CallOrderError(Grape6Error, RuntimeError):
    """A call came at a time when it makes no sense."""


class NotOpenError(CallOrderError):
    """The session is closed."""


class BackendError(Grape6Error, RuntimeError):
    """The backend asked for is missing, broken, lost, or gave a wrong result."""


class LibraryError(Grape6Error, OSError):
    """libgrape6.so is missing or cannot be opened."""


class MissingPackageError(Grape6Error, ImportError):
    """An optional Python package is not installed."""


class RankError(Grape6Error, RuntimeError):
    """A call that all ranks of MPI make has failed on another rank."""


class FileInUseError(Grape6Error, OSError):
    """Another run is writing to a file."""


class SnapshotError(Grape6Error, ValueError):
    """A snapshot file has lines that are no bodies."""


class NoOutputError(SnapshotError, IndexError):
    """A run has no output of this number."""


class Grape6Warning(UserWarning):
    """Something unusual that does not make a result wrong, if it is of no kind of its own."""

    def __init__(self, message: object = "") -> None:
        super().__init__(printable(message))


class AccuracyWarning(Grape6Warning):
    """An integration does not keep its energy: its result is wrong."""
