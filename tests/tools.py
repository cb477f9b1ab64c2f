"""Tools that tests need and a fresh system may lack: a test without its tool says SKIP."""

import shutil

import pytest

# Debian package of each tool whose name is another one.
PACKAGES = {
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
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
