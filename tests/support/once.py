"""What the processes of a test run (pytest -n) make once, and then share; and what one of them
computes once."""

import copy
import fcntl
import functools
import hashlib
import pickle
from pathlib import Path

BUILD = Path(__file__).parents[2] / "build"


def made_once(path, make):
    """Calls make(path) unless a process has done so already; those that come meanwhile wait."""
    done = Path(f"{path}.done")
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            make(path)
            done.touch()
    return path


def kept(name, sources, make):
    """As made_once, below build/, where later runs find it while these files are as they are."""
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(str(path).encode() + path.read_bytes())
    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    return made_once(folder / digest.hexdigest()[:16], make)


def by_content(compute):
    """Has a slow sum be done once for the same numbers: each mode, instruction set and backend is
    compared with it."""
    known = {}

    @functools.wraps(compute)
    def computed(*args, **more):
        key = hashlib.sha256(pickle.dumps((args, more))).digest()
        if key not in known:
            known[key] = compute(*args, **more)
        return copy.deepcopy(known[key])

    return computed
