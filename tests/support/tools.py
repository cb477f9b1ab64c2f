"""Tools that tests need and a fresh system may lack: a test without its tool says SKIP."""

import shutil
import subprocess

from grape6py import paths

# Debian package of each tool whose name is another one.
PACKAGES = {
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu", "cc": "gcc", "ldd": "libc-bin",
    "mpicc": "libopenmpi-dev", "mpicxx": "libopenmpi-dev", "mpif90": "libopenmpi-dev",
    "mpirun": "openmpi-bin", "ninja": "ninja-build", "nm": "binutils", "objdump": "binutils",
    "qemu-aarch64": "qemu-user", "readelf": "binutils",
}  # fmt: skip
OF_TESTS = {"mypy", "pyright"}  # which pip installs


def started(command, **options):
    """A process that has ended; what it said is text."""
    said = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.run([str(word) for word in command], **said | options)


def run(command, code=0, **options):
    """One that must end with this code."""
    done = started(command, **options)
    words = " ".join(map(str, command))
    assert done.returncode == code, f"{words}\n{done.stdout}\n{done.stderr}"
    return done


def skip(why):
    import pytest  # not at the start: a process that a test starts would wait for it

    pytest.skip(why)


def need(tool):
    """Path of a tool; skips the test, naming the package to install, if there is none."""
    path = shutil.which(tool)
    if path is None:
        package = f"apt-get install {PACKAGES.get(tool, tool)}"
        skip(f"SKIP: {tool} not found: {'pip install .[test]' if tool in OF_TESTS else package}")
    return path


def need_bridge():
    if not list(paths.PREFIX.glob("_bridge*.so")):
        skip("SKIP: the bridge to Python was not built: apt-get install python3-dev")
