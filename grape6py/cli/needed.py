"""Programs that may need a library: ELF files that name it."""

import mmap
import os
from pathlib import Path

from grape6py import paths


def programs(folder: Path, library: str) -> list[Path]:
    """Programs and libraries below `folder`, but for this package, that name `library`.

    Also those that find it elsewhere: none is taken for one that does not need it.
    """
    files = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    return sorted(path for path in files if _names(path, library))


def _names(path: Path, library: str) -> bool:
    if path.is_symlink() or not path.is_file() or path.resolve().is_relative_to(paths.PREFIX):
        return False
    try:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
                return whole.find(b"\0%s\0" % library.encode()) >= 0
    except OSError:
        return False
