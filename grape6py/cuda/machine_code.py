"""Machine code of the kernels, a file for each: the package's, which a release has, or the user's
own, where it is kept once it has been compiled.

A file is found by a hash of the text and the options that it was compiled from, and of the version
of CUDA that it is for. Which NVRTC compiled it does not matter: to find and load one would take
longer than the rest of a start, and every operation of the kernels is written out, so that no
compiler may change bits (docs/reproducibility.md).
"""

import contextlib
import functools
import hashlib
import os
import resource
import stat
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence

from grape6py.cuda import compiler

PACKAGED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "code")
MADE_FOR = (80, 90, 100, 120)  # architectures of the package's: docs/releasing.md
VARIABLE = "CUPY_CACHE_DIR"  # CuPy's own

_DIGEST = hashlib.sha256().digest_size
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST = 1 << 24  # bytes of a file
_LONG = 2.0  # s, after which a terminal shows what takes so long
_STACK = 16 << 20  # of a thread that compiles: the host's limit may be small


def find(kernels: Sequence[str], precision: str, capability: int, cuda: int) -> dict[str, bytes]:
    """{kernel: machine code} of those that have been compiled before."""
    found = {}
    for kernel in kernels:
        for architecture, read in ((ahead(capability), _read_packaged), (capability, _read_own)):
            name = file_name(kernel, precision, architecture, cuda)
            if code := unpack(name, read(name)):
                found[kernel] = code
                break
    return found


def ahead(capability: int) -> int:
    """The architecture whose code, of the package's, a device runs: an older one of its kind."""
    older = [number for number in MADE_FOR if number <= capability]
    return max((n for n in older if n // 10 == capability // 10), default=capability)


def make(kernels: Sequence[str], precision: str, capability: int, cuda: int) -> dict[str, bytes]:
    """{kernel: machine code}, compiled now, on as many processors as there are, and kept."""

    def compiled(kernel: str) -> bytes:
        return compiler.compile_kernel(kernel, precision, capability)

    with _announced(len(kernels)):
        made = _on_threads(compiled, kernels)
    for kernel, code in made.items():
        name = file_name(kernel, precision, capability, cuda)
        _write(name, pack(name, code))
    return made


@contextlib.contextmanager
def _announced(count: int) -> Iterator[None]:
    """A line on a terminal, if that takes long."""

    def announce() -> None:
        with contextlib.suppress(OSError, ValueError):
            line = f"grape6py: compiling {count} kernels for this GPU, which are kept"
            print(line, file=sys.stderr, flush=True)

    timer = threading.Timer(_LONG, announce)
    timer.daemon = True
    with contextlib.suppress(AttributeError, ValueError):  # it may be closed, or anything
        if sys.stderr.isatty():
            timer.start()
    try:
        yield
    finally:
        timer.cancel()


# ---- files -------------------------------------------------------------------------


def file_name(kernel: str, precision: str, capability: int, cuda: int) -> str:
    """Of the machine code of a kernel for a device of this compute capability (90 for 9.0)."""
    options = compiler.options_of(kernel, precision)
    words = _hash_of(compiler.text_of(kernel)), *options, f"CUDA {cuda}"
    key = hashlib.sha256("\0".join(words).encode()).hexdigest()[:24]
    return f"{kernel}-{precision}-sm_{capability}-{key}"


@functools.cache
def _hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def pack(name: str, code: bytes) -> bytes:
    """What the file of this name has in it."""
    return hashlib.sha256(name.encode() + code).digest() + zlib.compress(code, 9)


def unpack(name: str, packed: bytes | None) -> bytes | None:
    """The machine code, or None if the file is not there, not whole, or another's."""
    if not packed:
        return None
    try:
        code = zlib.decompress(packed[_DIGEST:])
    except zlib.error:
        return None
    whole = code and hashlib.sha256(name.encode() + code).digest() == packed[:_DIGEST]
    return code if whole else None


def folder() -> str:
    """The user's own, in CuPy's for compiled kernels; an OSError if there is no home."""
    cupy = os.environ.get(VARIABLE) or os.path.expanduser("~/.cupy/kernel_cache")
    if cupy.startswith("~"):
        raise FileNotFoundError("no home")
    return os.path.join(cupy, f"grape6-{os.geteuid()}")


def _read_packaged(name: str) -> bytes | None:
    try:
        with open(os.path.join(PACKAGED, name), "rb") as file:
            return file.read()
    except OSError:
        return None


def _is_own(status: os.stat_result, kind: Callable[[int], bool]) -> bool:
    return kind(status.st_mode) and status.st_uid == os.geteuid() and (
        not status.st_mode & _OTHERS_WRITE)  # fmt: skip


def _read_own(name: str) -> bytes | None:
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        with open(os.open(os.path.join(folder(), name), flags), "rb") as file:
            return file.read(_MOST) if _is_own(os.fstat(file.fileno()), stat.S_ISREG) else None
    except OSError:
        return None


def _write(name: str, packed: bytes) -> None:
    """Whole or not at all. Where it cannot be written the next process compiles again."""
    if 0 <= resource.getrlimit(resource.RLIMIT_FSIZE)[0] < len(packed):
        return  # the system would kill a host that does not ignore SIGXFSZ, as Python does
    try:
        place = folder()
        path = os.path.join(place, f".{name}-{os.getpid()}-{threading.get_ident()}")
        os.makedirs(place, mode=0o700, exist_ok=True)
        if not _is_own(os.lstat(place), stat.S_ISDIR):
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        return
    try:
        with open(descriptor, "wb") as file:
            file.write(packed)
        os.rename(path, os.path.join(place, name))
    except OSError:
        os.unlink(path)


# ---- threads -----------------------------------------------------------------------


def _on_threads(call: Callable[[str], bytes], names: Sequence[str]) -> dict[str, bytes]:
    """{name: call(name)} of all, in parallel; when all have ended the first exception is raised."""
    results: dict[str, bytes] = {}
    errors: list[BaseException] = []
    waiting = list(names)

    def work() -> None:
        while not errors:
            try:
                name = waiting.pop()
            except IndexError:
                return
            try:
                results[name] = call(name)
            except BaseException as error:
                errors.append(error)

    threads = []
    before = threading.stack_size(_STACK)
    try:
        for _ in range(1, min(len(waiting), len(os.sched_getaffinity(0)))):
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            threads.append(thread)
    except RuntimeError:  # no more threads: there is this one
        pass
    finally:
        threading.stack_size(before)
    work()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
