"""What the processes of a test run (pytest -n) make once, and then share."""

import fcntl
from pathlib import Path


def made_once(path, make):
    """Calls make(path) unless a process has done so already; those that come meanwhile wait."""
    done = Path(f"{path}.done")
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            make(path)
            done.touch()
    return path
