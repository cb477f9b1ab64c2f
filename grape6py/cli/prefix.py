"""Files that are put into a folder which other packages use, too, and taken away again.

A record in the folder says which files those are: before the first of them is written, so that
what an interrupted call leaves can be taken away, too. A file that somebody else has put there, or
has changed since, is left alone unless it is asked for; it is then kept, and comes back. What the
record says is believed of plain names inside the folder alone.
"""

import hashlib
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from grape6py._arrays.kinds import PathLike
from grape6py.errors import Grape6Error
from grape6py.files.storage import atomic_files

RECORD = "share/grape6/linked.json"
KEPT = "share/grape6/kept"

Files: TypeAlias = Mapping[str, str | bytes]  # target of a link or contents, by name


class Prefix:
    """A folder like /usr/local or an environment, and the record of what was put there."""

    def __init__(self, folder: PathLike) -> None:
        self.folder = Path(os.path.abspath(folder))
        self._record = self.folder / RECORD
        self.files: dict[str, str] = {}  # what identifies each, by name
        self._made: list[str] = []  # folders, outer ones first
        try:
            record = json.loads(self._record.read_text(encoding="utf-8"))
            self.files, self._made = dict(record["files"]), list(record["folders"])
            # Folders may also be the prefix itself, or one that it is in.
            own = [n for n in self._made if n != "." and set(n.split("/")) != {".."}]
            if not all(map(_is_inside, [*self.files, *own])):
                raise ValueError
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            raise _refused(error) from None
        except (ValueError, KeyError, TypeError):
            raise Grape6Error(f"{self._record} is broken: remove it, and link by --force") from None

    def foreign(self, files: Files) -> list[str]:
        """Those names of `files` that exist and are not as this record has them."""
        return [n for n in files if _state(self.folder / n) not in (None, self.files.get(n))]

    def put(self, files: Files) -> dict[str, str]:
        """Write `files`: contents (bytes) or target of a symbolic link (str) by name.

        Returns where files of others are now, by their names. Raises Grape6Error if one cannot be
        written; then there are only those that were before.
        """
        before, foreign = self.files, self.foreign(files)
        try:
            for name in [RECORD, *files, *(f"{KEPT}/{n}" for n in foreign)]:
                self._make((self.folder / name).parent)
            self.files = {**before, **{name: _state_of(what) for name, what in files.items()}}
            self._write_record()
            kept = {
                name: atomic_files.move_to_free(self.folder / name, self.folder / KEPT / name)
                for name in foreign
            }
            for name, what in files.items():
                _write(self.folder / name, what)
            return kept
        except OSError as error:
            with suppress(Grape6Error):
                self.remove([name for name in self.files if name not in before])
            raise _refused(error) from None

    def remove(self, names: Sequence[str]) -> list[str]:
        """Take files away that are as they were put, and the record with the last of them.

        Returns the names of those that are not, which are left.
        """
        try:
            left = [name for name in names if not self._remove(name)]
            self.files = {n: state for n, state in self.files.items() if n not in names}
            if self.files:
                self._write_record()
            else:
                self._record.unlink(missing_ok=True)
        except OSError as error:
            raise _refused(error) from None
        for name in reversed(self._made):  # what holds other files is left
            with suppress(OSError):
                Path(os.path.normpath(self.folder / name)).rmdir()
        return left

    def _remove(self, name: str) -> bool:
        path, kept = self.folder / name, self.folder / KEPT / name
        is_elsewhere = not path.parent.resolve().is_relative_to(self.folder.resolve())
        if is_elsewhere or _state(path) not in (None, self.files[name]):
            return False
        path.unlink(missing_ok=True)
        names = (kept.with_name(f"{kept.name}.~{k}~") if k else kept for k in itertools.count())
        if there := list(itertools.takewhile(os.path.lexists, names)):  # the last one comes back
            atomic_files.move_to_free(there[-1], path)
        return True

    def _make(self, folder: Path) -> None:
        for one in reversed([p for p in [folder, *folder.parents] if not p.exists()]):
            one.mkdir()
            self._made.append(os.path.relpath(one, self.folder))

    def _write_record(self) -> None:
        record = {"files": self.files, "folders": self._made}
        _write(self._record, json.dumps(record, indent=1).encode())


def _refused(error: OSError) -> Grape6Error:
    return Grape6Error(
        f"{error.filename}: {error.strerror}; name a folder that you may write to by --prefix DIR"
    )


def _state_of(what: str | bytes) -> str:
    """What identifies a file: the target of a link, the digest of contents."""
    return what if isinstance(what, str) else "sha256:" + hashlib.sha256(what).hexdigest()


def _state(path: Path) -> str | None:
    """As _state_of; None where nothing is."""
    if path.is_symlink():
        return os.readlink(path)
    if path.is_file():
        return _state_of(path.read_bytes())
    return "another kind of file" if path.exists() else None


def _is_inside(name: str) -> bool:
    return name == os.path.normpath(name) and name.split("/")[0] not in ("", ".", "..")


def _write(path: Path, what: str | bytes) -> None:
    """In one step, so that nobody ever reads half a file."""
    if isinstance(what, str):
        atomic_files.write_link(path, what)
        return
    with atomic_files.Aside(path, [what], follows=False) as aside:
        aside.put()
