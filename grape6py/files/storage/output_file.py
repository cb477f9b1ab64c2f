"""One output of a run, or its part of one rank: an HDF5 file in memory, with a checksum behind it.

Layout, that of Gadget with its group `grape6py` more:

    Header                    attributes of Gadget: Time, NumPart_ThisFile, MassTable, ...
    PartType1/Coordinates, Velocities (n, 3), Masses, ParticleIDs (n)
    grape6py/mass, pos, vel, ids                   the same by our names
    grape6py/component                             of models.Labelled, (n), if the run has such
    grape6py/state/t, dt (n), pos, vel, acc, jerk  each body at its own time t: Hermite.state()
                                                   (Leapfrog.state() has no jerk)
    grape6py/counts                                bodies of each file, if there are several

The attributes of `grape6py` are what ``archive.describe`` gives, those of the root what all outputs
of a run share. In Gadget's units G is not 1; here it is.

The last line of a file is the SHA-256 of what stands before it. HDF5 does not read beyond the end
that its first bytes name.
"""

import contextlib
import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence

import h5py
import numpy as np

from grape6py._arrays.kinds import HDF5, AnyArray, Attributes, Floats, Int8s
from grape6py.errors import SnapshotError
from grape6py.files.storage import hdf5_storage
from grape6py.units import Units

FORMAT = "grape6py output 2"
_LINE = b"\ngrape6py sha256 %s\n"
_LINE_LENGTH = len(_LINE % bytes(64))
MARK = "part of snapshot"  # attribute of the root of one of several files: parts.mark
_DARK_MATTER = "PartType1"  # Gadget's name for bodies without gas

# What h5py, and the reading of what it gives, raise if a file is not what it should be.
DAMAGE = (KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError, OSError,
          OverflowError)  # fmt: skip


def seal(image: bytes) -> bytes:
    """The bytes of a file with its checksum behind them."""
    return image + _LINE % hashlib.sha256(image).hexdigest().encode()


def is_sealed(data: bytes) -> bool:
    """Whether the last line of a file is the checksum of what stands before it."""
    image = memoryview(data)[: max(0, len(data) - _LINE_LENGTH)]
    return data[len(image) :] == _LINE % hashlib.sha256(image).hexdigest().encode()


def image(fill: Callable[[HDF5], object]) -> bytes:
    """The bytes of an HDF5 file that fill(file) has written to."""
    with h5py.File("memory", "w", driver="core", backing_store=False, block_size=1 << 20) as file:
        fill(file)
        file.flush()
        found: bytes = file.id.get_file_image()
    return found


def changed(data: bytes, change: Callable[[HDF5], object]) -> bytes:
    """The sealed bytes of such a file that change(file) has written to."""
    file = io.BytesIO(data[:-_LINE_LENGTH])
    with h5py.File(file, "r+") as opened:
        change(opened)
    return seal(file.getvalue())


def opened(data: bytes) -> HDF5:
    """An HDF5 file that was read into memory."""
    return h5py.File(io.BytesIO(data), "r")


def own(group: HDF5, name: str) -> HDF5:
    """What has a name in a group, or in a group of it; a link to another file is a KeyError."""
    for part in name.split("/"):
        link = group.get(part, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise KeyError(f"{name} is not in it" if link is None else f"{name} is a link")
        group = group[part]
    return group


def stored(group: HDF5, name: str) -> HDF5:
    """An array of numbers that is in the file itself, as this project writes it."""
    found = own(group, name)
    if not isinstance(found, h5py.Dataset) or found.dtype.kind not in "fiub":
        raise TypeError(f"{name} is no array of numbers")
    if wrong := hdf5_storage.fault(found):
        raise ValueError(f"{name} {wrong}")
    return found


def written(
    about: Attributes,
    numbers: Attributes,
    ids: AnyArray,
    particles: dict[str, Floats],
    state: Mapping[str, AnyArray],
    component: Int8s | None = None,
    binaries: Mapping[str, AnyArray] | None = None,
    *,
    counts: Sequence[int] | None = None,
    mark: str = "",
) -> bytes:
    """The bytes of an output: `about` is what the outputs of the run share, `numbers` this one's
    attributes, `time` among them; particles, state and binaries are arrays by name. `units` in
    `about`, a text of Units.from_text, are those of the numbers. Of several files `counts` are the
    bodies of each, and `mark` says which one this is: parts.mark."""

    def fill(file: HDF5) -> None:
        file.attrs.update(about | {"format": FORMAT} | ({MARK: mark} if mark else {}))
        all_ = [len(ids)] if counts is None else counts
        header = file.create_group("Header")
        write_header(header, float(numbers["time"]), len(ids), total=sum(all_), files=len(all_))
        if "units" in about:
            write_units(file, Units.from_text(str(about["units"])))
        bodies = file.create_group(_DARK_MATTER)
        ours = file.create_group("grape6py")
        ours.attrs.update(numbers)
        if counts is not None:
            ours["counts"] = np.array(counts, np.int64)
        found = particles | {"ids": ids}
        theirs = {"mass": "Masses", "pos": "Coordinates", "vel": "Velocities", "ids": "ParticleIDs"}
        for name, array in found.items():
            bodies[theirs[name]] = array
            ours[name] = bodies[theirs[name]]  # a link
        if component is not None:
            ours["component"] = component
        for name, array in (binaries or {}).items():
            ours[f"binaries/{name}"] = array
        for name, array in state.items():
            shared = name in particles and np.array_equal(particles[name], array)
            ours[f"state/{name}"] = ours[name] if shared else array

    return seal(image(fill))


def write_header(header: HDF5, time: float, n: int, *, total: int, files: int) -> None:
    """Gadget's attributes of a file of n bodies, of `total` in some files."""
    counts, low, high = np.zeros((3, 6), dtype=np.uint32)
    counts[1], low[1], high[1] = n & 0xFFFFFFFF, total & 0xFFFFFFFF, total >> 32
    header.attrs.update({
        "NumPart_ThisFile": counts, "NumPart_Total": low, "NumPart_Total_HighWord": high,
        "MassTable": np.zeros(6), "Time": time, "Redshift": 0.0, "BoxSize": 0.0,
        "NumFilesPerSnapshot": files, "Omega0": 0.0, "OmegaLambda": 0.0, "HubbleParam": 1.0,
        "Flag_Sfr": 0, "Flag_Cooling": 0, "Flag_StellarAge": 0, "Flag_Metals": 0,
        "Flag_Feedback": 0, "Flag_DoublePrecision": 1, "Flag_IC_Info": 0,
    })  # fmt: skip


def write_units(file: HDF5, units: Units) -> None:
    """Gadget's group of units, and what makes yt read it: it takes these files for Arepo's then.

    (yt 4.4, ArepoHDF5Dataset: AMR or VORONOI in Config. Of Gadget's files it reads no units.)
    """
    sizes = {"UnitMass_in_g": "mass", "UnitLength_in_cm": "length",
             "UnitVelocity_in_cm_per_s": "velocity"}  # fmt: skip
    group = file.create_group("Units")
    group.attrs.update({name: units.in_cgs(dimension) for name, dimension in sizes.items()})
    file.create_group("Config").attrs["AMR"] = "no; with this yt reads the group Units"


@contextlib.contextmanager
def explained(name: str) -> Iterator[None]:
    """Context in which damage of the file of a name is a SnapshotError."""
    try:
        yield
    except SnapshotError:
        raise
    except DAMAGE as error:
        raise SnapshotError(f"{name} is damaged or incomplete: {error}") from error
