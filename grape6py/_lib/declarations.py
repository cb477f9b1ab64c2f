"""The declarations of C headers, as cffi reads them: no structure or number of C stands in Python.

``ffi`` knows those of g6lib.h; ``constants`` has its numbers, without opening the library.
"""

import re
from pathlib import Path

import cffi

from grape6py import errors, paths


def without_comments(text: str) -> str:
    """C text without its comments and preprocessor lines."""
    text = re.sub(r"#ifdef __cplusplus.*?#endif|/\*.*?\*/", " ", text, flags=re.DOTALL)
    return re.sub(r"^[ \t]*#.*$", " ", text, flags=re.MULTILINE)


def structures(text: str) -> str:
    """The structures and numbers of a C or CUDA text, without its functions."""
    kinds = re.compile(r"^(?:struct \w+|enum) \{(?:[^\n]*\};|.*?^\};)", re.DOTALL | re.MULTILINE)
    return "\n".join(kinds.findall(without_comments(text)))


def defined(text: str) -> dict[str, float]:
    """The floating-point numbers that a C text defines, by their names."""
    found = re.findall(r"^#define (\w+) ([0-9]\S*)$", text, re.MULTILINE)
    read = {True: float.fromhex, False: float}
    return {name: read[number.startswith("0x")](number) for name, number in found}


def _with_prefix(prefix: str) -> dict[str, int]:
    """Numbers of the header by their names in Python, ascending."""
    found = {
        name.removeprefix(prefix).lower().replace("_", "-"): getattr(constants, name)
        for name in dir(constants)
        if name.startswith(prefix)
    }
    return dict(sorted(found.items(), key=lambda item: item[1]))


def built(path: Path) -> Path:
    """The path of a file that the build makes, if it is there."""
    if not path.exists():
        raise errors.LibraryError(
            f"{path} does not exist: the C library was not built. "
            "Install the package again: pip install ."
        )
    return path


ffi = cffi.FFI()
ffi.cdef(without_comments(built(paths.HEADER).read_text(encoding="ascii")))
_tree_numbers, _terms = (
    (paths.SHARED / name).read_text(encoding="ascii") for name in ("tree_numbers.h", "pair_terms.h")
)
ffi.cdef(structures(_tree_numbers + _terms))
ffi.cdef(without_comments((paths.SHARED / "package.h").read_text(encoding="ascii")))
constants = ffi.dlopen(None)

DEFINED = defined(_tree_numbers)
BACKENDS, ISAS = _with_prefix("G6X_BACKEND_"), _with_prefix("G6X_ISA_")
PRECISIONS = {
    name: getattr(constants, f"G6X_{name.upper()}") for name in ("grape", "double", "single")
} | {"auto": constants.G6X_AUTO_MODE}
