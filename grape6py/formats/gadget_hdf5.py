"""Gadget's snapshots in HDF5, which Arepo, GIZMO, SWIFT and this project's runs write, too.

Groups PartType0 to PartType5 have Coordinates, Velocities, Masses (or a number of the header's
MassTable) and ParticleIDs. A snapshot may be in several files. The units stand in the group Units,
or among Gadget-4's Parameters, as UnitLength_in_cm, UnitMass_in_g and UnitVelocity_in_cm_per_s;
SWIFT and GIZMO have names of their own. Known: the user guide of GADGET-4, and the codes'
documentation.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grape6py._arrays.kinds import HDF5, Untyped
from grape6py._io import output_file
from grape6py.formats import hdf5, parts
from grape6py.formats.bodies import Snapshot
from grape6py.formats.source import Source
from grape6py.units import Units

_UNITS = ("UnitMass_in_g", "UnitLength_in_cm", "UnitVelocity_in_cm_per_s")
_GIZMO = ("UnitMass_In_CGS", "UnitLength_In_CGS", "UnitVelocity_In_CGS")
_SWIFT = ("Unit mass in cgs (U_M)", "Unit length in cgs (U_L)", "Unit time in cgs (U_t)")


def recognises(source: Source) -> bool:
    """Whether it has the header of Gadget's."""
    return hdf5.kind(source) == "gadget"


def head(source: Source) -> parts.Head:
    """What a file says of itself and of its snapshot."""
    with hdf5.opened(source) as file:
        header = file["Header"].attrs
        counts = _counts(header)
        groups = [file[f"PartType{k}"] for k, count in enumerate(counts) if count]
        files = int(hdf5.scalar(header.get("NumFilesPerSnapshot", 1)))
        return parts.Head(
            name=source.name,
            counts=counts,
            totals=_integers(header.get("NumPart_Total", ())) if files > 1 else (),
            files=files,
            time=hdf5.scalar(header["Time"]) if "Time" in header else None,
            units=units_of(file),
            has_ids=all("ParticleIDs" in group for group in groups),
            is_cosmological=_is_cosmological(file),
            mark=str(file.attrs.get(output_file.MARK, "")),
        )


def _counts(header: HDF5) -> tuple[int, ...]:
    return _integers(header["NumPart_ThisFile"])


def _integers(values: Untyped) -> tuple[int, ...]:
    return tuple(int(hdf5.scalar(value)) for value in np.ravel(values))


def rows(source: Source, begin: int, end: int) -> Snapshot:
    """Particles of all types, in the order of types, from one number to another."""
    with hdf5.opened(source) as file:
        header = file["Header"].attrs
        counts = _counts(header)
        table = np.ravel(header.get("MassTable", np.zeros(len(counts))))
        if len(table) != len(counts):
            raise source.wrong(f"{len(counts)} types of particles, and {len(table)} masses of them")
        bodies, ids = [], []
        for k, some in parts.overlap(counts, begin, end):
            group, n = file[f"PartType{k}"], counts[k]
            pos = hdf5.floats(source, group["Coordinates"], (n, 3), some)  # or it has not so many
            vel = hdf5.floats(source, group["Velocities"], (n, 3), some)
            masses = (
                hdf5.floats(source, group["Masses"], (n,), some)
                if "Masses" in group
                else np.full(len(pos), hdf5.scalar(table[k]))
            )
            bodies.append((masses, pos, vel))
            if "ParticleIDs" in group:
                ids.append(hdf5.ints(source, group["ParticleIDs"], n, some))
        all_ids = parts.joined_ids(ids) if ids and len(ids) == len(bodies) else None
    columns = zip(*bodies, strict=True)
    arrays = [column[0] if len(column) == 1 else np.concatenate(column) for column in columns]
    return Snapshot(*arrays, ids=all_ids)


LAYOUT = parts.Layout(head, rows)


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


def write(content: Snapshot, comment: str, place: parts.Place | None = None) -> Iterator[bytes]:
    """A file of dark matter."""

    def fill(file: HDF5) -> None:
        if comment:
            file.attrs["comment"] = comment
        if place is not None:
            file.attrs[output_file.MARK] = place.mark
        n = len(content.mass)
        total, files = (n, 1) if place is None else (place.total, place.files)
        output_file.write_header(
            file.create_group("Header"), content.time or 0.0, n, total=total, files=files
        )
        bodies = file.create_group("PartType1")
        bodies["Coordinates"], bodies["Velocities"] = content.pos, content.vel
        bodies["Masses"] = content.mass
        bodies["ParticleIDs"] = np.arange(1, n + 1) if content.ids is None else content.ids
        if content.units is not None:
            output_file.write_units(file, content.units)

    yield output_file.image(fill)
