"""Files that are whole at every moment, that have one writer, and that are never lost.

A file is written under another name, synced and renamed, so that a reader, or a crash at any
moment, finds the old one or the new one. No library writes to the disk: what is written is made in
memory first, so that a full disk is an exception and nothing more.
"""

import contextlib
import errno
import fcntl
import itertools
import os
import re
import secrets
import shutil
import stat
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from grape6py._arrays.kinds import PathLike
from grape6py.errors import ArgumentError, FileInUseError, Grape6Warning

_HDF5_NAME = re.compile(r"(?<=[^/])\.(?:h5|hdf5)((?:\.~\d+~)?)$", re.IGNORECASE)
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)  # of some network file systems


def write_whole(
    path: PathLike, data: bytes | Iterable[bytes], before: Callable[[], object] = lambda: None
) -> None:
    """Write a file at once; an OSError names `path`, and what was there before is still there.

    `data` may come in pieces. A link is followed. What is there and is no regular file, as a
    device, is written to. `before` is called when the new file is whole, before it gets its name;
    no other writer of this project gives a name in the folder between the two.
    """
    pieces = [data] if isinstance(data, bytes) else data
    if is_stream(path):
        with _named(path), open(path, "wb") as file:
            file.writelines(pieces)
        return
    with Aside(path, pieces) as aside, naming(path):
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


class Aside(contextlib.AbstractContextManager["Aside"]):
    """A file that is whole and synced, under another name until it is put into its place.

    The name, .NAME.TOKEN.grape6, is nobody else's. If a file is replaced, the new one is private
    until it has the permissions of the old one. A link is followed, if not told otherwise. As a
    context it removes what has not been put there. An OSError names `path`.

    While it `holds` the file open, which not all of many can, :func:`remove_aside` leaves it.
    """

    def __init__(
        self, path: PathLike, pieces: Iterable[bytes], *, follows: bool = True, holds: bool = True
    ) -> None:
        self._path = path
        folder, name = os.path.split(os.path.abspath(path))
        real = os.path.realpath(path if follows else folder)
        self._target = real if follows else os.path.join(real, name)
        self._name = self._old = ""
        self._file, self._is_put = -1, False
        with _named(path):
            if os.path.isdir(self._target) and not os.path.islink(self._target):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            try:
                mode = None
                with contextlib.suppress(FileNotFoundError):
                    old = os.lstat(self._target)
                    mode = stat.S_IMODE(old.st_mode) if stat.S_ISREG(old.st_mode) else None
                self._name, self._file = _created(self._target, 0o666 if mode is None else 0o600)
                _write_synced(self._file, pieces)
                if mode is not None:
                    os.fchmod(self._file, mode)
                if not holds:
                    self._close()
            except BaseException:  # Ctrl-C too
                self._remove()
                raise

    def hold_old(self) -> None:
        """Let the file that is in the place have a name aside, too, for :meth:`undo`."""
        with _named(self._path), contextlib.suppress(FileNotFoundError):
            old = _free_name(self._target)
            _name_again(self._target, old)
            self._old = old

    def put(self) -> None:
        """Give the file its name: what had it is no more, but where :meth:`hold_old` was called.

        From then on nothing fails: if the name may not survive a crash of the machine, it is said.
        """
        with _named(self._path):
            os.replace(self._name, self._target)
        self._name, self._is_put = "", True
        self._close()
        try:
            sync_folder(os.path.dirname(self._target))
        except OSError as error:
            warn(f"{os.fspath(self._path)} is written, and its folder not synced: {error.strerror}")

    def undo(self) -> None:
        """Put the old file back, if the new one has its place."""
        if self._is_put:
            if self._old:
                os.replace(self._old, self._target)
                self._old = ""
            else:
                os.unlink(self._target)
            self._is_put = False

    def __exit__(self, *_: object) -> None:
        self._remove()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _remove(self) -> None:
        for name in filter(None, (self._name, self._old)):
            with contextlib.suppress(OSError):
                os.unlink(name)
        self._close()


def taken_away(path: PathLike) -> str:
    """Rename a file to a name aside, which is returned."""
    name = _free_name(os.fspath(path))
    os.rename(path, name)
    return name


def move_to_free(path: PathLike, name: PathLike) -> str:
    """Rename to a name, or to name.~1~, name.~2~, ..., if that is there; which one is returned."""
    for number in itertools.count():
        new = f"{os.fspath(name)}.~{number}~" if number else os.fspath(name)
        with contextlib.suppress(FileExistsError):
            _rename([os.fspath(path)], [new])
            return new
    raise AssertionError


def _rename(names: Sequence[str], new: Sequence[str], *, stays: bool = False) -> None:
    """Give files new names, all of them or none; a FileExistsError if one of those is there."""
    with contextlib.ExitStack() as undo:
        for name, other in zip(names, new, strict=True):
            if os.path.isdir(name) and not os.path.islink(name):  # which has one name
                if os.path.lexists(other):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), other)
                os.rename(name, other)
                undo.callback(os.rename, other, name)
            else:
                _name_again(name, other)
                undo.callback(os.unlink, other)
        undo.pop_all()
    for name in () if stays else names:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def write_link(path: PathLike, target: str) -> None:
    """Make a symbolic link at once; what was there before is no more."""
    name = _free_name(os.fspath(path))
    os.symlink(target, name)
    try:
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def warn(text: str) -> None:
    """Say what has not been done after all that matters has."""
    warnings.warn(text, Grape6Warning, stacklevel=2)


def _free_name(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{secrets.token_hex(4)}.grape6")


def _created(path: str, mode: int) -> tuple[str, int]:
    """A new file aside of a name, and it, open for writing and locked."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        name = _free_name(path)
        try:
            file = os.open(name, flags, mode)
        except FileExistsError:
            continue
        with contextlib.suppress(OSError):  # where there are no locks
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file).st_nlink:
            return name, file
        os.close(file)  # removed as a leftover before it was locked


def _name_again(path: str, name: str) -> None:
    """Let a file have another name, too; a FileExistsError if that is there."""
    try:
        os.link(path, name, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        with open(path, "rb") as source, open(name, "xb") as copy:
            shutil.copyfileobj(source, copy)
        shutil.copymode(path, name)


_naming = threading.local()


@contextlib.contextmanager
def naming(path: PathLike) -> Iterator[None]:
    """Context in which no other writer of this project gives names in the folder of a file."""
    folder = os.path.dirname(os.path.realpath(path))
    mine = _naming.__dict__.setdefault("folders", set())
    if folder in mine:
        yield
        return
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # not there, unreadable, or without locks
            file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, file)
            fcntl.flock(file, fcntl.LOCK_EX)
        mine.add(folder)
        stack.callback(mine.discard, folder)
        yield


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


def _write_synced(file: int, pieces: Iterable[bytes]) -> None:
    for data in pieces:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest[: 1 << 30]) :]
    os.fsync(file)


def asides(folder: str, name: str) -> list[str]:
    """Files aside that were to get a name, a pattern, or have had it; sorted."""
    pattern = re.compile(rf"\.{name}\.[0-9a-f]{{8}}\.grape6")
    found = filter(pattern.fullmatch, os.listdir(folder or "."))
    return sorted(os.path.join(folder, name) for name in found)


def remove_aside(folder: str, name: str) -> None:
    """Remove what killed writers of files left that they had not renamed; `name` is a pattern."""
    for path in asides(folder, name):
        with contextlib.suppress(OSError), opened(path) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # its writer is no more
            os.unlink(path)


def sync_folder(folder: str) -> None:
    """Let the names in a folder survive a crash of the machine."""
    try:
        file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:  # one may write there, and not read
        return
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


def backup_names(names: Sequence[str]) -> list[str]:
    """The first of NAME.~1~, NAME.~2~, ... of which all are free, and so are their folders."""
    for number in itertools.count(1):
        found = [f"{name}.~{number}~" for name in names]
        if not any(os.path.lexists(p) for name in found for p in (name, outputs_folder(name))):
            return found
    raise AssertionError


def keep(path: PathLike, *, stays: bool = False) -> str | None:
    """Give a file that is there its backup name, which is returned, or None.

    If it `stays` it keeps its own, too, until it is replaced. Of a link it is the file that gets
    another name; what is no file of a disk gets none. No file that is there is ever replaced.
    """
    file = os.path.realpath(path) if os.path.islink(path) else os.fspath(path)
    with naming(file):
        if os.path.lexists(file) and not is_stream(path):
            return keep_all([file], stays=stays)[0]
    return None


def keep_all(names: Sequence[str], *, stays: bool = False) -> list[str]:
    """Give files of one snapshot backup names of one number, which are returned; as `keep`."""
    while names:
        with naming(names[0]), contextlib.suppress(FileExistsError):
            kept = backup_names(names)
            _rename(names, kept, stays=stays)
            return kept
    return []


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
                if os.path.lexists(folder):
                    what = f"the outputs of {path} go to a folder of this name"
                    raise NotADirectoryError(errno.ENOTDIR, what, folder)
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder)
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
                        in_use = f"{os.fspath(path)} is being written by another run"
                        raise FileInUseError(in_use) from None
                    raise
            if self._is_there():
                return
            os.close(self._file)

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


def is_locked(folder: str) -> bool:
    """Whether somebody has the :class:`Lock` of a folder."""
    try:
        with open(os.path.join(folder, ".lock"), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:  # there is none, or it cannot be known
        return isinstance(error, BlockingIOError)
    return False


def check_place(path: Path) -> None:
    """Make the folder of a file to be written, and refuse now what would fail hours later."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise ArgumentError(f"{path} is a folder: name a file in it")
    place = path if path.exists() else path.parent
    if not os.access(place, os.W_OK):
        raise ArgumentError(f"{path} cannot be written: no permission to write to {place}")
