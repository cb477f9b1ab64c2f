"""Bodies as text, a line a body: m x y z vx vy vz (NBODY6's dat.10), or as a header names them.

The header is the first line, with or without a ``#``: names of columns, as m or mass, x, pos_x or
pos.x, vx, vel_x or vel.x (or all of u v w), id or name, each perhaps with a unit, as ``m [Msun]``
or McLuster's ``Mass_[Msun]``. AMUSE has the units in a second line. Columns of other names, or of
none, are left out, whatever is in them. Written with 17 significant digits, so that what is read
back has the same bits; CSV with a header, and ids.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from grape6py._arrays.unit_sizes import size_of
from grape6py.errors import ArgumentError, SnapshotError
from grape6py.files.formats.bodies import Snapshot
from grape6py.files.formats.source import Source
from grape6py.files.formats.table import Table, cells, lines_of
from grape6py.units import Units

COLUMNS = ("m", "x", "y", "z", "vx", "vy", "vz")
_DIMENSIONS = {"mass": COLUMNS[:1], "length": COLUMNS[1:4], "velocity": COLUMNS[4:]}
_ALIASES = {
    "m": "m mass masses", "id": "id ids particleid particleids key name index",
    **{a: f"{a} pos_{a} pos.{a} position_{a}" for a in "xyz"},
    **{f"v{a}": f"v{a} v_{a} vel_{a} vel.{a} velocity_{a}" for a in "xyz"},
}  # fmt: skip
_KNOWN = {alias: name for name, aliases in _ALIASES.items() for alias in aliases.split()}
_UVW = {"u": "vx", "v": "vy", "w": "vz"}
_EXAMPLE = "as '# id m x y z vx vy vz'"
_BOM = b"\xef\xbb\xbf"
_BRACKETED = re.compile(r"[\s_]*[\[(]([^\[\]()]*)[\])]$")
# Of units: what says that there is none, other spellings of a few, and powers of -1.
_NO_UNIT = re.compile(
    r"\d*|-|none|nbody|nb|n-body|code|mass|length|length/time|(n-?body|code) units"
)
_SPELT = {"msol": "Msun", "m_sol": "Msun", "msun": "Msun", "m_sun": "Msun", "kms": "km/s"}
_INVERSE = re.compile(r"[ .*]*\b([A-Za-z]+) ?(?:\^|\*\*)?[({]?-1[)}]?$")
_LONGEST = 200  # of a name or a unit that may be known


class _Header(NamedTuple):
    """Columns by their names, None for those left out; units; where the lines of bodies begin."""

    names: Sequence[str | None]
    units: Units | None
    offset: int
    line: int


def recognises(source: Source) -> bool:
    """Whether the file is text: it may be wrong in some line."""
    return not re.search(rb"[\x00-\x08\x0e-\x1f]", source.head)


def read(source: Source, _which: int) -> Snapshot:
    """Bodies of the one snapshot of a text."""
    header = _header(source)
    at = {name: k for k, name in enumerate(header.names) if name is not None}
    hint = f": name them in a first line, {_EXAMPLE}" if header.names is COLUMNS else ""
    table = Table(source, header.names, header.offset, header.line, lambda _: at.get("id"), hint)
    motion = [at[f"v{a}"] for a in "xyz" if f"v{a}" in at]
    (mass, pos, *vel), ids = table.columns(
        at["m"], [at[a] for a in "xyz"], *([motion] if motion else [])
    )
    if not vel:
        vel = [source.absent_velocities(len(mass), "column of vx, vy and vz")]
    return Snapshot(mass, pos, vel[0], ids=ids if "id" in at else None, units=header.units)


def _header(source: Source) -> _Header:
    """What the first line says, that is no remark."""
    offset = start = len(_BOM) if source.head.startswith(_BOM) else 0
    lines = source.head[start:].split(b"\n")
    for number, line in enumerate(lines, 1):
        text = line.decode("utf-8", "replace").strip()
        is_remark = text.startswith("#")
        words = _words(text)
        if is_remark:  # which may go on in words
            texts = (
                other.decode("utf-8", "replace").partition("#")[0].strip()
                for other in lines[number:]
            )
            words = words[: next((len(cells(other)) for other in texts if other), 0)]
        names = _names([name for name, _ in words])
        is_header = {"x", "y", "z"} <= set(names)
        if not is_remark and re.match(r"[A-Za-z_\",;]", text):
            is_header |= not re.match(r"(nan|inf)", text, re.IGNORECASE)
        if is_header:
            _check(source, number, names)
            units = [unit for _, unit in words]
            if is_remark and not any(units) and number < len(lines):
                units = _next_line(lines[number], names) or units
            found = _units(source, number, names, units)
            return _Header(names, found, offset + len(line) + 1, number + 1)
        if text and not is_remark:
            break
        offset += len(line) + 1
    return _Header(COLUMNS, None, start, 1)


def _words(text: str) -> list[tuple[str, str]]:
    """Names in a header, and their units, "" if there is none."""
    text = " ".join(text.lstrip("# ").split())
    if re.search(r"[,;]", text):
        words = re.split(r"[,;]", text)
    else:
        words = re.findall(r"(?:[^ \[(]| ?[\[(][^\])]{0,99}[\])])+", text)
    found = []
    for word in words:
        word = word.strip(" \"'")[:_LONGEST]
        unit = _BRACKETED.search(word)
        found.append((word[: unit.start()] if unit else word, unit[1].strip() if unit else ""))
    return found


def _names(words: Sequence[str]) -> list[str | None]:
    """Our names of columns; of several that may be ids the first in the order of aliases."""
    lower = [word.lower() for word in words]
    names: list[str | None] = [_KNOWN.get(word) for word in lower]
    if not any(name in COLUMNS[4:] for name in names) and set(_UVW) <= set(lower):
        names = [_UVW.get(word, name) for word, name in zip(lower, names, strict=True)]
    ids = [word for word in _ALIASES["id"].split() if word in lower]
    return [
        None if name == "id" and word != ids[0] else name
        for word, name in zip(lower, names, strict=True)
    ]


def _check(source: Source, line: int, names: Sequence[str | None]) -> None:
    """Refuse a header that names too few columns, or one twice."""
    known = [name for name in names if name is not None]
    missing = [name for name in COLUMNS[:4] if name not in known]
    if missing:
        what = f"as a header it names no column of {', '.join(missing)}"
    elif twice := [name for name in dict.fromkeys(known) if known.count(name) > 1]:
        what = f"as a header it has two columns of {', '.join(twice)}"
    elif sum(name in known for name in COLUMNS[4:]) in (1, 2):
        what = "as a header it names not all of vx, vy and vz"
    else:
        return
    raise SnapshotError(f"{source.name}:{line}: {what}: write one {_EXAMPLE}")


def _next_line(line: bytes, names: Sequence[str | None]) -> list[str] | None:
    """Units that stand in a line of their own, if there is one for each column."""
    text = line.decode("utf-8", "replace").strip()
    words = [word.strip() for word in text.lstrip("# ").split(",")]
    if not text.startswith("#") or len(words) != len(names):
        return None
    for dimension, of in _DIMENSIONS.items():
        for word in (word for name, word in zip(names, words, strict=True) if name in of):
            with contextlib.suppress(ArgumentError):
                if size_of(dimension, _spelt(word)):
                    return words
    return None


def _spelt(text: str) -> str:
    """A unit as Units has it; "" if it says that there is none."""
    text = " ".join(text[:_LONGEST].split()).replace(" / ", "/")
    text = _INVERSE.sub(r"/\1", text)
    number, _, name = text.rpartition(" ")
    if _NO_UNIT.fullmatch(text.lower()):
        return ""
    return f"{number} {_SPELT.get(name.lower(), name)}".strip()


def _units(
    source: Source, line: int, names: Sequence[str | None], units: Sequence[str]
) -> Units | None:
    """Those of the columns, which must be of one system: of all that are read, or of none."""
    found: dict[str, str] = {}
    try:
        for dimension, of in _DIMENSIONS.items():
            pairs = zip(names, units, strict=True)
            texts = {name: _spelt(unit) for name, unit in pairs if name in of}
            if len({size_of(dimension, text) if text else 0.0 for text in texts.values()}) > 1:
                each = (f"{name} [{text}]" for name, text in texts.items())
                raise ArgumentError(
                    f"columns of one {dimension} unit are needed: {', '.join(each)}"
                )
            if texts:
                found[dimension] = next(iter(texts.values()))
        if not any(found.values()):
            return None
        if not all(found.values()):
            missing = [dimension for dimension, text in found.items() if not text]
            raise ArgumentError(
                f"no unit of {' and '.join(missing)}: give all columns one, or none"
            )
        return Units(found["mass"], found["length"], velocity=found.get("velocity"))
    except ArgumentError as error:
        raise SnapshotError(f"{source.name}:{line}: {error}") from None


def write(content: Snapshot, comment: str) -> Iterator[bytes]:
    """The lines of a file, which is not empty if there are no bodies."""
    for line in comment.splitlines():
        yield f"# {line}\n".encode()
    if not len(content.mass):
        yield f"# {' '.join(COLUMNS)}\n".encode()
    row = " ".join(["{:23.16e}"] * len(COLUMNS)) + "\n"
    yield from lines_of(content, lambda _, numbers: row.format(*numbers))


def write_csv(content: Snapshot, _comment: str) -> Iterator[bytes]:
    """The lines of a file with a header, without the comment: most readers of CSV know none."""
    has_ids = content.ids is not None
    yield (",".join(["id"] * has_ids + list(COLUMNS)) + "\n").encode()
    yield from lines_of(
        content, lambda number, row: f"{number}," * has_ids + ",".join(map(repr, row)) + "\n"
    )
