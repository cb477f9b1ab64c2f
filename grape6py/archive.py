"""HDF5 files of a run: a group for each output time, any of which can be gone on from.

Layout. The root's attributes are the settings of the integration (:attr:`Hermite.settings`),
`integrator` if it is "leapfrog", `precision`, `backend`, `initial_energy`, and what the writer
adds. Groups ``000000``, ``000001``, ... hold

    mass (n), pos (n, 3), vel (n, 3)            all bodies at the attribute `time`
    state/t, dt (n), pos, vel, acc, jerk (n, 3)  each body at its own time t: Hermite.state()
                                                 (Leapfrog.state() has no jerk)

and as attributes `time`, `steps`, `blocks`, `kinetic`, `potential` and `radii` (of
``diagnostics.FRACTIONS`` of the mass). The file is closed between two groups, so that a run
that is killed leaves what it had written.
"""

import math
import os
import warnings

import h5py
import numpy as np

from grape6py import _inputs
from grape6py._library import PRECISIONS
from grape6py.diagnostics import Energy
from grape6py.errors import ArgumentError, Grape6Warning, SnapshotError
from grape6py.hermite import Hermite
from grape6py.leapfrog import Leapfrog
from grape6py.models import Particles

_FORMAT = "grape6py run 1"
_INTEGRATORS = {"hermite": Hermite, "leapfrog": Leapfrog}

# What h5py, and the reading of what it gives, raise if a file is not what it should be.
_DAMAGE = (KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError, OSError)


def save(path, cluster, *, about=None):
    """Add the present state of an integration to a file; make the file if there is none.

    Parameters
    ----------
    path : path-like
    cluster : Hermite or Leapfrog
    about : dict of str to str, int or float, optional
        Attributes of the root, if the file is made.

    Raises
    ------
    SnapshotError
        (a ValueError) if the file is there and is not such a file, one of other settings, or
        one that goes on to a later time.
    OSError
        If it cannot be written.
    """
    if os.path.exists(path) and not h5py.is_hdf5(path):
        raise SnapshotError(f"{os.fspath(path)} is there and is not an HDF5 file: nothing written")
    found = cluster.particles()._asdict()
    numbers = describe(cluster)
    with h5py.File(path, "a") as file:
        if not len(file.attrs) and not len(file):
            file.attrs["format"] = _FORMAT
            file.attrs["precision"], file.attrs["backend"] = cluster.precision, cluster.backend
            start = {"initial_energy": numbers["kinetic"] + numbers["potential"]}
            file.attrs.update(cluster.settings | start | (about or {}))
        else:
            _check_same(file, cluster)
        name = f"{len(file):06d}"
        try:
            _write(file.create_group(name), found, cluster.state(), numbers)
        except BaseException:  # Ctrl-C too: half a group would spoil the file
            del file[name]
            raise


def _check_same(file, cluster):
    if file.attrs.get("format") != _FORMAT:
        raise SnapshotError(f"{file.filename} is no file of snapshots made by grape6py")
    wanted = {"precision": cluster.precision} | cluster.settings
    other = [name for name, value in wanted.items() if file.attrs.get(name) != value]
    if other:
        raise SnapshotError(f"{file.filename} has other settings: {', '.join(other)}")
    last = file[max(file)].attrs.get("time", -math.inf)
    if last > cluster.time:
        raise SnapshotError(
            f"{file.filename} goes on to time {last}, and this is {cluster.time}: take another name"
        )


def describe(cluster):
    """The attributes of a group: time, counters, energies and Lagrangian radii, by name."""
    energy = cluster.energy()
    return {
        "time": cluster.time,
        "steps": cluster.steps,
        "blocks": cluster.blocks,
        "kinetic": energy.kinetic,
        "potential": energy.potential,
        "radii": cluster.lagrangian_radii(),
    }


def record(numbers, initial_energy):
    """A line of a run's log from the attributes of a group.

    Returns
    -------
    dict
        `time`, `error` (relative, of the energy; NaN if there is none), `virial_ratio`,
        `radii`, `steps`, `blocks`, as Python's own numbers.
    """
    energy = Energy(float(numbers["kinetic"]), float(numbers["potential"]))
    change = energy.total - initial_energy
    return {
        "time": float(numbers["time"]),
        "error": change / abs(initial_energy) if initial_energy else math.nan,
        "virial_ratio": energy.virial_ratio,
        "radii": [float(radius) for radius in numbers["radii"]],
        "steps": int(numbers["steps"]),
        "blocks": int(numbers["blocks"]),
    }


def _write(group, found, state, attributes):
    group.attrs.update(attributes)
    for name, array in found.items():
        group[name] = array
    for name, array in state.items():
        shared = name in found and np.array_equal(found[name], array)
        group[f"state/{name}"] = group[name] if shared else array  # a link, if shared


def restore(path, **options):
    """The integration that a file ends with; it continues with the same bits.

    Parameters
    ----------
    path : path-like
    **options
        backend, precision, threads, as in :class:`Hermite`; the mode is the file's by
        default.

    Returns
    -------
    Hermite or Leapfrog

    Raises
    ------
    SnapshotError
        (a ValueError) if it is not a file of :func:`save`.
    OSError
        If it cannot be opened.

    Warns
    -----
    Grape6Warning
        If backend, instruction set or mode differ from the file's: so will the bits.
    """
    with _opened(path) as file:
        about = dict(file.attrs)
        mode, backend = str(about["precision"]), str(about["backend"])
        _inputs.choice("precision", mode, PRECISIONS)
        kind = _INTEGRATORS[str(about.get("integrator", "hermite"))]
        settings = kind.settings_from(about)
        group = file[max(file)]
        mass = _inputs.floats("mass", group["mass"][()], (None,))
        state = {
            name: _inputs.floats(name, group[f"state/{name}"][()], (len(mass), *shape))
            for name, shape in kind.STATE.items()
        }
        if not (state["dt"] > 0).all():
            raise ArgumentError("a step is not above zero")
        counts = {name: int(group.attrs[name]) for name in ("steps", "blocks")}
        time = float(group.attrs["time"])
    wishes = {"precision": mode} | options
    cluster = kind.restored(settings, mass, state, time=time, **counts, **wishes)
    for name, was in (("backend", backend), ("precision", mode)):
        if getattr(cluster, name) != was:
            warnings.warn(
                f"{os.fspath(path)} was made with {name} {was}; this is "
                f"{getattr(cluster, name)}: the numbers will differ in the last digits",
                Grape6Warning,
                stacklevel=2,
            )
    return cluster


def read_particles(path, which=-1):
    """The bodies of one output time of a file, by default the last.

    Returns
    -------
    Particles

    Raises
    ------
    SnapshotError
        (a ValueError) if there is no such group.
    OSError
        If the file cannot be opened.
    """
    with _opened(path) as file:
        group = file[sorted(file)[which]]
        return Particles(*(group[name][()] for name in Particles._fields))


def history(path):
    """Attributes of a file's root, and a :func:`record` of each of its groups.

    Raises
    ------
    SnapshotError, OSError
        As :func:`read_particles`.
    """
    with _opened(path) as file:
        start = float(file.attrs["initial_energy"])
        return dict(file.attrs), [record(file[name].attrs, start) for name in sorted(file)]


class _opened:
    """An open file of :func:`save`; whatever is missing in it is named."""

    def __init__(self, path):
        self._path = os.fspath(path)

    def __enter__(self):
        with open(self._path, "rb"):  # its own words if there is none, or no permission
            pass
        try:
            self._file = h5py.File(self._path, "r")
        except OSError as error:
            raise SnapshotError(f"{self._path} is not an HDF5 file: {error}") from error
        try:
            ours = self._file.attrs.get("format") == _FORMAT and len(self._file) > 0
        except _DAMAGE:
            ours = False
        if not ours:
            self._file.close()
            raise SnapshotError(f"{self._path} is no file of snapshots made by grape6py")
        return self._file

    def __exit__(self, kind, error, _):
        self._file.close()
        if isinstance(error, _DAMAGE) and not isinstance(error, SnapshotError):
            raise SnapshotError(f"{self._path} is broken or incomplete: {error}") from error
