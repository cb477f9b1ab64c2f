"""Gadget's snapshots in HDF5, which Arepo, GIZMO, SWIFT and this project's runs write, too.

Groups PartType0 to PartType5 have Coordinates, Velocities, Masses (or a number of the header's
MassTable) and ParticleIDs; all lie in the file itself. A snapshot may be in several files. The
units stand in the group Units, or among Gadget-4's Parameters, as UnitLength_in_cm, UnitMass_in_g
and UnitVelocity_in_cm_per_s; SWIFT and GIZMO have names of their own. Known: the user guide of
GADGET-4, and the codes' documentation.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from grape6py._arrays.kinds import HDF5, Untyped
from grape6py.files.formats import hdf5, parts
from grape6py.files.formats.bodies import Expansion, Snapshot, joined
from grape6py.files.formats.source import Source
from grape6py.files.storage import output_file
from grape6py.units import Units

# Of masses, positions and velocities: of Gadget, EAGLE, and of black holes in SWIFT.
_NAMES = (("Masses", "Mass", "DynamicalMasses", "SubgridMasses"), ("Coordinates",),
          ("Velocities", "Velocity"))  # fmt: skip
_PLACES = ("Header", "Parameters", "Cosmology")
_STATED = ("ComovingIntegrationOn", "Cosmological run")
_EXPANDING = ("Redshift", "Omega0", "Omega_Matter", "HubbleParam", *_STATED)
_UNITS = ("UnitMass_in_g", "UnitLength_in_cm", "UnitVelocity_in_cm_per_s")
_GIZMO = ("UnitMass_In_CGS", "UnitLength_In_CGS", "UnitVelocity_In_CGS")
_SWIFT = ("Unit mass in cgs (U_M)", "Unit length in cgs (U_L)", "Unit time in cgs (U_t)")


def head(source: Source) -> parts.Head:
    """What a file says of itself and of its snapshot."""
    with hdf5.opened(source) as file:
        header = hdf5.attributes(source, file, "Header")
        counts = _integers(header["NumPart_ThisFile"])
        groups = [hdf5.member(source, file, f"PartType{k}") for k, n in enumerate(counts) if n]
        files = int(hdf5.scalar(header.get("NumFilesPerSnapshot", 1)))
        time = hdf5.scalar(header["Time"]) if "Time" in header else None
        names, sizes = _units(source, file)
        expansion = _expansion(source, file, time, names)
        if sizes is not None and expansion is not None:
            sizes = tuple(s * f for s, f in zip(sizes, expansion[2:], strict=True))
        return parts.Head(
            name=source.name,
            counts=counts,
            totals=_integers(header.get("NumPart_Total", ())) if files > 1 else (),
            files=files,
            time=time,
            units=Units.from_cgs(*sizes) if sizes is not None else None,
            expansion=expansion,
            has_ids=all(hdf5.member(source, group, "ParticleIDs") is not None for group in groups),
            mark=str(file.attrs.get(output_file.MARK, "")),
        )


def _integers(values: Untyped) -> tuple[int, ...]:
    return tuple(int(hdf5.scalar(value)) for value in np.ravel(values))


def rows(source: Source, begin: int, end: int) -> Snapshot:
    """Particles of all types, in the order of types, from one number to another."""
    with hdf5.opened(source) as file:
        header = hdf5.attributes(source, file, "Header")
        counts = _integers(header["NumPart_ThisFile"])
        table = np.ravel(header.get("MassTable", np.zeros(len(counts))))
        if len(table) != len(counts):
            raise source.wrong(f"{len(counts)} types of particles, and {len(table)} masses of them")
        found = []
        for k, some in parts.overlap(counts, begin, end):
            name, n = f"PartType{k}", counts[k]
            group = hdf5.member(source, file, name)
            masses, here, motion = (_first(source, group, names) for names in _NAMES)
            if here is None:
                raise source.wrong(f"there is no {name}/Coordinates, of {n} bodies")
            pos = hdf5.floats(source, here, (n, 3), some)  # or it has not so many
            if motion is not None:
                vel = hdf5.floats(source, motion, (n, 3), some)
            else:
                vel = source.absent_velocities(len(pos), f"{name}/Velocities")
            if masses is not None:
                mass = hdf5.floats(source, masses, (n,), some)
            elif own := hdf5.scalar(table[k]):
                mass = np.full(len(pos), own)
            else:
                mass = source.absent_masses(len(pos), f"{name}/Masses, nor a mass in MassTable")
            numbers = hdf5.member(source, group, "ParticleIDs")
            ids = None if numbers is None else hdf5.ints(source, numbers, n, some)
            found.append(Snapshot(mass, pos, vel, ids=ids))
    return joined(found, source.wrong)


LAYOUT = parts.Layout(head, rows)


def _first(source: Source, group: HDF5, names: Sequence[str]) -> Untyped | None:
    """The first of some names that a group has."""
    found = (hdf5.member(source, group, name) for name in names)
    return next((dataset for dataset in found if dataset is not None), None)


def _units(source: Source, file: HDF5) -> tuple[Sequence[str], tuple[float, ...] | None]:
    """Sizes of units of mass, length and velocity in cgs, by the names of any of the codes."""
    for place in ("Units", "Parameters", "Header"):
        attributes = hdf5.attributes(source, file, place)
        for names in (_UNITS, _GIZMO, _SWIFT):
            if all(key in attributes for key in names):
                mass, length, third = (hdf5.scalar(attributes[key]) for key in names)
                velocity = third if names is not _SWIFT else length / (third or np.inf)
                return names, (mass, length, velocity)
    return _UNITS, None


def _expansion(
    source: Source, file: HDF5, time: float | None, units: Sequence[str]
) -> Expansion | None:
    """That of the universe, by what any of the codes says, and in units of their names."""
    parameters = {
        key: hdf5.scalar(attributes[key])
        for attributes in (hdf5.attributes(source, file, place) for place in _PLACES)
        for key in _EXPANDING
        if key in attributes
    }
    of_run = [parameters[key] for key in _STATED if key in parameters]
    omega = max(parameters.get("Omega0", 0.0), parameters.get("Omega_Matter", 0.0))
    # GIZMO's units have it in them.
    h = parameters.get("HubbleParam", 1.0) if units is _UNITS else 1.0
    found = parts.expansion(
        source, time, parameters.get("Redshift"), omega, h, max(of_run, default=None)
    )
    if found is not None and units is _SWIFT:  # whose velocities are peculiar ones
        found = found._replace(velocity=1.0)
    return found


def write(content: Snapshot, comment: str, place: parts.Place | None = None) -> Iterator[bytes]:
    """A file of dark matter."""

    def fill(file: HDF5) -> None:
        if comment:
            file.attrs["comment"] = comment
        if place is not None:
            file.attrs[output_file.MARK] = parts.mark(place.digest, place.number)
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
