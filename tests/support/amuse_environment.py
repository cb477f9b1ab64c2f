"""AMUSE's framework in a Python environment of its own, and the sources of its codes, in build/.

They come from the package index: `python amuse_environment.py` makes them, and the next run finds
them there."""

import os
import shutil
import subprocess
import sys
import tarfile

import tools
from legacy import RANKS
from once import made_once
from packages import SAFELY
from tools import run
from variants import BUILD

VERSION = "2024.6.0"
CLIENTS = BUILD / f"amuse-{VERSION}"
ENVIRONMENT = CLIENTS / "python"
ACTIVATED = {**os.environ, **RANKS, "VIRTUAL_ENV": str(ENVIRONMENT),
             "PATH": f"{ENVIRONMENT}/bin:{os.environ['PATH']}"}  # fmt: skip
# The last ones are what grape6py needs beside NumPy and h5py.
PACKAGES = ["numpy<2", "h5py", "docutils", "setuptools<70", "setuptools_scm", "wheel", "cffi",
            "tqdm"]  # fmt: skip
# What of each is compiled once: all but the programs that are linked to the library.
CODES = {"ph4": ["interface.h", "src/libph4gpu.a", "interface.o"], "phigrape": ["phigrape_worker"]}
COMPILERS = "gcc g++ gfortran make mpicc mpicxx mpif90 mpirun".split()


def place(code):
    """Where its source distribution is unpacked."""
    return CLIENTS / f"amuse_{code}-{VERSION}"


def folder(code):
    """Where its Makefile is."""
    return place(code) / "src/amuse/community" / code


def pip(*arguments):
    """Runs pip for the clients' environment: its exit status and what it printed."""
    command = [sys.executable, "-m", "pip", "--python", ENVIRONMENT / "bin/python", "--quiet"]
    command += ["--disable-pip-version-check", *arguments]
    done = tools.started(command, env=ACTIVATED, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def python_for_amuse():
    """AMUSE 2024.6 cannot be imported by Python 3.13."""
    if sys.version_info < (3, 13):
        return sys.executable
    for name in ("python3.12", "python3.11"):
        if path := shutil.which(name):
            return path
    return tools.skip("SKIP: python3.11 and python3.12 not found: AMUSE 2024.6 needs one of them")


def install(python):
    """Makes the environment with AMUSE's framework in it, and unpacks the codes."""
    run([python_for_amuse(), "-m", "venv", "--clear", "--without-pip", python])
    code, text = pip("install", *PACKAGES)
    if code != 0:
        tools.skip(f"SKIP: pip cannot install what AMUSE needs: {text.splitlines()[-1]}")
    source = ["--no-cache-dir", "--no-deps", "--no-build-isolation", "--no-binary", ":all:"]
    for arguments in (["install", *source, f"amuse-framework=={VERSION}"],
                      ["download", *source, "--dest", CLIENTS,
                       *(f"amuse-{code}=={VERSION}" for code in CODES)]):  # fmt: skip
        code, text = pip(*arguments)
        assert code == 0, text
    for code in CODES:
        shutil.rmtree(place(code), ignore_errors=True)
        with tarfile.open(f"{place(code)}.tar.gz") as file:
            file.extractall(CLIENTS, **SAFELY)


def environment():
    """The environment, which is made if it is not there."""
    CLIENTS.mkdir(parents=True, exist_ok=True)
    made_once(ENVIRONMENT, install)
    return ENVIRONMENT


def compiled_codes():
    """Compiles the codes, unless that has been done."""
    for tool in COMPILERS:
        tools.need(tool)
    environment()

    def make(_):
        for code, targets in CODES.items():
            run(["make", "-C", folder(code), *targets], env=ACTIVATED)

    made_once(CLIENTS / "codes", make)


if __name__ == "__main__":
    compiled_codes()
