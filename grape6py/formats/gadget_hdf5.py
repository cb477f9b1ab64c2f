"""Gadget's snapshots in HDF5, which Arepo, GIZMO, SWIFT and this project's runs write, too.

Groups PartType0 to PartType5 have Coordinates, Velocities, Masses (or a number of the header's
MassTable) and ParticleIDs. The units stand in the group Units, or among Gadget-4's Parameters, as
UnitLength_in_cm, UnitMass_in_g and UnitVelocity_in_cm_per_s; SWIFT and GIZMO have names of their
own. Known: the user guide of GADGET-4, and the codes' documentation.
"""

from __future__ import annotations

from collections.abc import Iterator

import h5py
import numpy as np

from grape6py._arrays.kinds import HDF5
from grape6py._io import output_file
from grape6py.formats import hdf5, parts
from grape6py.formats.bodies import Snapshot
from grape6py.formats.source import Source
from grape6py.units import Units

_TYPES = 6
_UNITS = ("UnitMass_in_g", "UnitLength_in_cm", "UnitVelocity_in_cm_per_s")
_GIZMO = ("UnitMass_In_CGS", "UnitLength_In_CGS", "UnitVelocity_In_CGS")
_SWIFT = ("Unit mass in cgs (U_M)", "Unit length in cgs (U_L)", "Unit time in cgs (U_t)")


def recognises(source: Source) -> bool:
    """Whether it has the header of Gadget's."""
    return hdf5.kind(source) == "gadget"


def read(source: Source, which: int) -> Snapshot:
    """Particles of all types, in the order of types, of all files of a snapshot."""
    del which
    first, files = _one(source)
    return parts.joined(source, first, files, lambda part: _one(part)[0])


def _one(source: Source) -> tuple[Snapshot, int]:
    with hdf5.opened(source) as file:
        header = file["Header"].attrs
        counts = [int(hdf5.scalar(count)) for count in np.ravel(header["NumPart_ThisFile"])]
        if _is_cosmological(file):
            parts.warn_of_cosmology(source.name)
        table = [
            hdf5.scalar(mass) for mass in np.ravel(header.get("MassTable", np.zeros(len(counts))))
        ]
        groups = [file[f"PartType{k}"] if count else None for k, count in enumerate(counts)]
        bodies, ids = [], []
        for group, n, mass in zip(groups, counts, table, strict=True):
            if group is None:
                continue
            pos = hdf5.floats(source, group["Coordinates"], (n, 3))  # or there are not so many
            vel = hdf5.floats(source, group["Velocities"], (n, 3))
            masses = (
                hdf5.floats(source, group["Masses"], (n,))
                if "Masses" in group
                else np.full(n, mass)
            )
            bodies.append((masses, pos, vel))
            if "ParticleIDs" in group:
                ids.append(hdf5.ints(source, group["ParticleIDs"], n))
        time = hdf5.scalar(header["Time"]) if "Time" in header else None
        files = int(hdf5.scalar(header.get("NumFilesPerSnapshot", 1)))
        units = units_of(file)
    if not bodies:
        bodies = [(np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3)))]
    all_ids = None
    if ids and len(ids) == len(bodies):
        all_ids = parts.joined_ids(ids)
    columns = zip(*bodies, strict=True)
    arrays = [column[0] if len(column) == 1 else np.concatenate(column) for column in columns]
    return Snapshot(*arrays, time=time, ids=all_ids, units=units), files


def _is_cosmological(file: HDF5) -> bool:
    """Whether one of the places where codes say so says that space expands."""
    names = ("Omega0", "Omega_Matter", "ComovingIntegrationOn", "Cosmological run")
    said = [
        hdf5.scalar(file[group].attrs[name])
        for group in ("Header", "Parameters", "Cosmology")
        for name in names
        if group in file and name in file[group].attrs
    ]
    redshift = hdf5.scalar(file["Header"].attrs.get("Redshift", 0.0))
    return parts.is_cosmological(max(said, default=0.0), redshift)


def units_of(file: HDF5) -> Units | None:
    """The units that a file names, by any of the codes."""
    for name in ("Units", "Parameters", "Header"):
        attributes = file[name].attrs if name in file else {}
        for names in (_UNITS, _GIZMO, _SWIFT):
            if all(key in attributes for key in names):
                mass, length, third = (hdf5.scalar(attributes[key]) for key in names)
                velocity = length / third if names is _SWIFT else third
                return Units.from_cgs(mass, length, velocity)
    return None


def write(content: Snapshot, comment: str) -> Iterator[bytes]:
    """A file of dark matter."""

    def fill(file: HDF5) -> None:
        if comment:
            file.attrs["comment"] = comment
        n = len(content.mass)
        output_file.write_header(file.create_group("Header"), content.time or 0.0, n)
        bodies = file.create_group("PartType1")
        bodies["Coordinates"], bodies["Velocities"] = content.pos, content.vel
        bodies["Masses"] = content.mass
        bodies["ParticleIDs"] = np.arange(1, n + 1) if content.ids is None else content.ids
        if content.units is not None:
            output_file.write_units(file, content.units)

    with h5py.File("memory", "w", driver="core", backing_store=False, block_size=1 << 20) as file:
        fill(file)
        file.flush()
        yield file.id.get_file_image()
