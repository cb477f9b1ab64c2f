"""CuPy's folder for compiled kernels: it cannot even be imported where that cannot be made."""

import contextlib
import os
import tempfile
from collections.abc import Iterator

VARIABLE = "CUPY_CACHE_DIR"


@contextlib.contextmanager
def for_import() -> Iterator[None]:
    """See to it that there is one while CuPy is imported; later it compiles in memory."""
    if _can_be_made(os.environ.get(VARIABLE) or os.path.expanduser("~/.cupy/kernel_cache")):
        yield
        return
    before = os.environ.get(VARIABLE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[VARIABLE]
            if before is not None:
                os.environ[VARIABLE] = before


def _can_be_made(folder: str) -> bool:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return False
    return True
