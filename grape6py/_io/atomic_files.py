"""Files that are whole at every moment, that have one writer, and that are never lost.

A file is written under another name, synced and renamed, so that a reader, or a crash at any
moment, finds the old one or the new one. No library writes to the disk: what is written is made in
memory first, so that a full disk is an exception and nothing more.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, Self

from grape6py.errors import FileInUseError

if TYPE_CHECKING:
    from grape6py._arrays.kinds import PathLike

_HDF5_NAME = re.compile(r"(?<=[^/])\.(?:h5|hdf5)((?:\.~\d+~)?)$", re.IGNORECASE)
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)  # of some network file systems


def write_whole(
    path: PathLike, data: bytes | Iterable[bytes], before: Callable[[], object] = lambda: None
) -> None:
    """Write a file at once; an OSError names `path`, and what was there before is still there.

    `data` may come in pieces. A link is followed. What is there and is no regular file, as a
    device, is written to. `before` is called when the new file is whole, before it gets its name.
    """
    pieces = [data] if isinstance(data, bytes) else data
    if is_stream(path):
        with _named(path), open(path, "wb") as file:
            file.writelines(pieces)
        return
    with Aside(path, pieces) as aside:
        before()
        aside.put()


def opened(path: PathLike) -> BinaryIO:
    """A regular file to read; another one, as a pipe, which may never end, is an OSError."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        return open(number, "rb")
    os.close(number)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise OSError(errno.EINVAL, "it is no regular file", os.fspath(path))


class Aside:
    """A file that is whole and synced, under another name until it is put into its place.

    A link is followed. As a context it removes what has not been put there. An OSError names
    `path`.
    """

    def __init__(self, path: PathLike, pieces: Iterable[bytes]) -> None:
        self._path = path
        self._target = os.path.realpath(path)
        folder, name = os.path.split(self._target)
        self._name = os.path.join(folder, f".{name}.{os.getpid()}")
        with _named(path):
            if os.path.isdir(self._target):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            try:
                _write_synced(self._name, pieces)
                if os.path.exists(self._target):
                    shutil.copymode(self._target, self._name)
            except BaseException:  # Ctrl-C too
                self._remove()
                raise

    def put(self) -> None:
        """Give the file its name: what had it is no more."""
        with _named(self._path):
            os.replace(self._name, self._target)
            sync_folder(os.path.dirname(self._target))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._name)


@contextlib.contextmanager
def _named(path: PathLike) -> Iterator[None]:
    """Context whose errors name a file."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # HDF5's own, of a file in memory
            raise
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from error


def is_stream(path: PathLike) -> bool:
    """Whether a name is that of a device, a pipe, or, as /dev/stdout, an open file."""
    name = os.path.abspath(path)
    while os.path.islink(name):
        folder = os.path.realpath(os.path.dirname(name))
        if folder.startswith("/proc/"):
            return True
        name = os.path.join(folder, os.readlink(name))
    return os.path.exists(name) and not os.path.isfile(name)


def _write_synced(path: str, pieces: Iterable[bytes]) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        for data in pieces:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest[: 1 << 30]) :]
        os.fsync(file)
    finally:
        os.close(file)


def remove_aside(folder: str, name: str) -> None:
    """Remove what killed writers of files left that they had not renamed; `name` is a pattern."""
    for found in os.listdir(folder):
        if found[0] == "." and re.fullmatch(rf"\.{name}\.\d+", found):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, found))


def sync_folder(folder: str) -> None:
    """Let the names in a folder survive a crash of the machine."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno != errno.EINVAL:  # this file system cannot
            raise
    finally:
        os.close(file)


def is_hdf5_name(path: PathLike) -> bool:
    """Whether a name ends in .h5 or .hdf5."""
    found = _HDF5_NAME.search(os.fspath(path))
    return found is not None and not found[1]


def outputs_folder(path: PathLike) -> str:
    """The folder of the outputs of an HDF5 file: r of r.h5, r.~1~ of r.h5.~1~."""
    return _HDF5_NAME.sub(r"\1", os.path.realpath(path))


def backup_name(path: PathLike) -> str:
    """The first of path.~1~, path.~2~, ... that is free, and so is its folder."""
    number = 1
    while any(
        map(os.path.lexists, (name := f"{os.fspath(path)}.~{number}~", outputs_folder(name)))
    ):
        number += 1
    return name


def keep(path: PathLike) -> str | None:
    """Rename a file that is there to its backup name, which is returned, or None.

    Of a link it is the file that gets another name; what is no file of a disk keeps its own.
    """
    file = os.path.realpath(path) if os.path.islink(path) else path
    if not os.path.lexists(file) or is_stream(path):
        return None
    name = backup_name(file)
    os.rename(file, name)
    return name


def keep_all(names: Sequence[str]) -> list[str]:
    """Rename files of one snapshot to backup names of one number, which are returned."""
    number = 1
    while any(os.path.lexists(f"{name}.~{number}~") for name in names):
        number += 1
    kept = [f"{name}.~{number}~" for name in names]
    for name, backup in zip(names, kept, strict=True):
        os.rename(name, backup)
    return kept


class Lock:
    """The right to write to a folder, which one process has at a time.

    It is an flock on the file `.lock` in it, so that a writer that was killed leaves none behind; a
    FileInUseError if somebody else has it. The folder is made, and removed again if it is empty in
    the end.
    """

    def __init__(self, folder: str, path: PathLike) -> None:
        self._name = os.path.join(folder, ".lock")
        while True:
            if not os.path.isdir(folder):
                self._make(folder, path)
            try:
                self._file = os.open(self._name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except FileNotFoundError:
                continue  # the folder has just been removed
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    os.close(self._file)
                if isinstance(error, BlockingIOError):
                    raise FileInUseError(
                        f"{os.fspath(path)} is being written by another run"
                    ) from None
                if error.errno not in _NO_LOCKS:
                    raise
            if self._is_there():
                return
            os.close(self._file)

    @staticmethod
    def _make(folder: str, path: PathLike) -> None:
        try:
            os.mkdir(folder)
        except FileExistsError as error:
            if not os.path.isdir(folder):
                raise NotADirectoryError(
                    errno.ENOTDIR, f"the outputs of {path} go to a folder of this name", folder
                ) from error

    def _is_there(self) -> bool:
        """Whether the locked file still has its name: folders may be renamed or removed."""
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.stat(self._name), os.fstat(self._file))
        return False

    def release(self) -> None:
        """Let others write. Twice is fine."""
        if self._file < 0:
            return
        folder = os.path.dirname(self._name)
        with contextlib.suppress(OSError):
            if self._is_there() and os.listdir(folder) == [".lock"]:
                os.unlink(self._name)
                os.rmdir(folder)
        os.close(self._file)
        self._file = -1
