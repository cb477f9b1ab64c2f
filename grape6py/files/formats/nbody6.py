"""NBODY6's conf.3 (OUT3): unformatted Fortran records, in single precision.

A first record has NTOT, MODEL, NRUN and NK, a second one AS(NK) and then, for each body, its mass,
position, velocity and NAME, with densities and potentials between them in NBODY4 and NBODY6++. AS
has the time, the number of pairs, and the units: RBAR in pc and VSTAR in km/s. Behind the bodies
stand the centres of mass of the pairs, which are left out. A file may have many snapshots; this
writes the layout of NBODY6++. dat.10 is text. Known: Aarseth 2003, Gravitational N-Body
Simulations, appendix, and output.f of these codes.
"""

import struct
from collections.abc import Iterator

import numpy as np

from grape6py.errors import ArgumentError
from grape6py.files.formats.bodies import Snapshot, check_g_one, narrowed, narrowed_pieces
from grape6py.files.formats.source import Source, chosen, of_this_machine
from grape6py.units import Units

_FIRST = 16  # bytes of the first record
_NK = 20
_TIME, _PAIRS, _RBAR, _ZMBAR, _TSTAR, _VSTAR = 0, 1, 2, 3, 10, 11  # of AS
# Words of a body before its positions, and between its velocities and NAME.
_NBODY6, _NBODY4, _NBODY6PP = (1, 0), (1, 2), (3, 1)


def recognises(source: Source) -> bool:
    """Whether it begins with a record of four numbers, of bodies and of AS."""
    for order in "<>":
        mark = struct.pack(order + "i", _FIRST)
        if source.head[:4] == mark == source.head[20:24] and len(source.head) >= 28:
            n, _, _, nk, _, second = struct.unpack(order + "6i", source.head[4:28])
            if n > 0 and 12 <= nk <= 1000 and second in (4 * (nk + w * n) for w in (8, 11)):
                return True
    return False


def read(source: Source, which: int) -> Snapshot:
    """One of the snapshots."""
    if len(source.head) < 4:
        raise source.wrong("it has no record")
    swapped = source.head[:1] == b"\0"
    records = _records(source, ">" if swapped else "<")
    return chosen(source, records, which, lambda record: _snapshot(source, swapped, *record))


def _records(source: Source, order: str) -> Iterator[tuple[int, int, int, int]]:
    """Of each snapshot the number of bodies, NK, where AS begins, and the size of that record."""
    offset = 0
    while offset < source.size:
        size, at = source.record(offset, order + "i", "record", "a record")
        if size != _FIRST:
            raise source.wrong(f"the record at byte {offset} has {size} bytes, not NTOT ... NK")
        n, _, _, nk = struct.unpack(order + "4i", source.read(at, _FIRST, "a record"))
        offset = at + size + 4
        size, at = source.record(offset, order + "i", "record", "a record")
        if n < 0 or nk < 12 or size not in (4 * (nk + 8 * n), 4 * (nk + 11 * n)):
            raise source.wrong(f"the record at byte {offset} has {size} bytes, for {n} bodies")
        yield n, nk, at, size
        offset = at + size + 4


def _snapshot(source: Source, swapped: bool, n: int, nk: int, at: int, size: int) -> Snapshot:
    real, integer = (of_this_machine(kind, swapped) for kind in ("f4", "i4"))
    of_run = source.floats(at, real, (nk,), "AS").tolist()
    begin = at + 4 * nk
    layout = _NBODY6
    if size == 4 * (nk + 11 * n):
        # NAME of NBODY4 stands where NBODY6++ has potentials: whole numbers or negative reals.
        words = source.values(begin + 4 * 9 * n, integer, n, "names")
        layout = _NBODY4 if n and (np.abs(words) < 2**24).all() else _NBODY6PP
    before, skipped = layout
    pairs = of_run[_PAIRS]
    if not (0 <= pairs <= n / 3 and pairs == int(pairs)):
        raise source.wrong(f"the number of pairs is {pairs}, of {n} bodies")
    bodies = n - int(pairs)
    mass = source.floats(begin, real, (bodies,), "masses")
    pos = source.floats(begin + 4 * before * n, real, (bodies, 3), "positions")
    vel = source.floats(begin + 4 * (before + 3) * n, real, (bodies, 3), "velocities")
    names = source.ints(begin + 4 * (before + 6 + skipped) * n, integer, bodies, "names")
    units = None
    if 0 < of_run[_RBAR] < 1e30 and 0 < of_run[_VSTAR] < 1e30:
        # VSTAR^2 = G M / RBAR has the mass; that of ZMBAR differs between the codes.
        length, velocity = f"{of_run[_RBAR]!r} pc", f"{of_run[_VSTAR]!r} km/s"
        solar = Units("Msun", length, velocity=velocity)
        units = Units(f"{1 / solar.G!r} Msun", length)
    return Snapshot(mass, pos, vel, time=float(of_run[_TIME]), ids=names, units=units)


def write(content: Snapshot, _comment: str) -> Iterator[bytes]:
    """A file of one snapshot."""
    n = len(content.mass)
    size = 4 * (_NK + 11 * n)
    if size >= 2**31:
        raise ArgumentError(f"{n} bodies are too many for a record of conf.3: take HDF5")
    of_run = np.zeros(_NK)
    of_run[_TIME] = content.time or 0.0
    check_g_one(content.units, "conf.3")
    if content.units is not None:
        of_run[_RBAR] = content.units.value("length", "pc")
        of_run[_ZMBAR] = content.units.value("mass", "Msun")
        of_run[_TSTAR] = content.units.value("time", "Myr")
        of_run[_VSTAR] = content.units.value("velocity", "km/s")
    ids = np.arange(1, n + 1) if content.ids is None else content.ids
    yield struct.pack("<6i", _FIRST, n, 1, 1, _NK, _FIRST) + struct.pack("<i", size)
    yield narrowed(of_run, "<f4", "AS").tobytes()
    yield from narrowed_pieces(content.mass, "<f4", "mass")
    yield bytes(8 * n)  # densities and numbers of neighbours
    yield from narrowed_pieces(content.pos, "<f4", "pos")
    yield from narrowed_pieces(content.vel, "<f4", "vel")
    yield np.full(n, -1.0, "<f4").tobytes()  # potentials, which no NAME of NBODY4 can be
    yield ids.astype("<i4").tobytes() + struct.pack("<i", size)
