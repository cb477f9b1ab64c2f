"""Tools that tests need and a fresh system may lack: a test without its tool says SKIP."""

import shutil

import pytest

from grape6py import paths

# Debian package of each tool whose name is another one.
PACKAGES = {
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    "cc": "gcc",
    "ldd": "libc-bin",
    "mpicc": "libopenmpi-dev",
    "mpif90": "libopenmpi-dev",
    "mpirun": "openmpi-bin",
    "nm": "binutils",
    "objdump": "binutils",
    "qemu-aarch64": "qemu-user",
    "readelf": "binutils",
}


def need(tool):
    """Path of a tool; skips the test, naming the package to install, if there is none."""
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"SKIP: {tool} not found: apt-get install {PACKAGES.get(tool, tool)}")
    return path


def need_bridge():
    if not list(paths.PREFIX.glob("_bridge*.so")):
        pytest.skip("SKIP: the bridge to Python was not built: apt-get install python3-dev")
