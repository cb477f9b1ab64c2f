"""The package as users get it, made once a run: the sdist, a wheel of it, and a fresh virtual
environment with that wheel in it."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile

import pytest

import capi
import release
import tools
from once import made_once
from tools import run

LOOSE = ["-ffast-math", "-funsafe-math-optimizations", "-ffp-contract=fast"]  # of a user
# Python 3.11.2, of Debian 12, knows no filters.
SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def pip(*arguments, code=0, **env):
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    return run(command, code, env={**os.environ, **env}, stderr=subprocess.STDOUT).stdout


def has_release_tools():
    return importlib.util.find_spec("ziglang") and importlib.util.find_spec("auditwheel")


def wheel(source, folder, *options, **env):
    """Builds a wheel by gcc, warnings as errors, with the objects that are there: (path, text).
    It is linked and stripped as a release is, but not optimized, which takes a minute, and has a
    user's loose flags, which change nothing (test_build.py)."""
    settings = ["build-dir=objects", "cmake.build-type=Debug", "install.strip=true"]
    flags = " ".join(["-Og -Dalways_inline= -Werror", *LOOSE])
    env |= release.for_old_systems() if has_release_tools() else {"PATH": os.environ["PATH"]}
    # ccache, if it is there, has the objects of an earlier run.
    env |= {"PATH": f"/usr/lib/ccache:{env['PATH']}", "CCACHE_BASEDIR": str(source),
            "CCACHE_NOHASHDIR": "1"}  # fmt: skip
    text = pip("wheel", "-v", "--no-deps", "--no-build-isolation", "-w", folder, *options,
               *(word for setting in settings for word in ("-C", setting)), source,
               CC="gcc", CFLAGS=flags, **env)  # fmt: skip
    (path,) = folder.glob("*.whl")
    return path, text


def _make_sdist(folder):
    script = "import sys, scikit_build_core.build as b; b.build_sdist(sys.argv[1])"
    run([sys.executable, "-c", script, folder], cwd=capi.ROOT)
    (archive,) = folder.glob("grape6py-*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(folder, **SAFELY)


@pytest.fixture(scope="session")
def sdist(shared_folder):
    (archive,) = made_once(shared_folder / "sdist", _make_sdist).glob("grape6py-*.tar.gz")
    return archive


@pytest.fixture(scope="session")
def unpacked(sdist):
    return sdist.parent / sdist.name.removesuffix(".tar.gz")


@pytest.fixture(scope="session")
def built(unpacked, shared_folder):
    """The wheel with a bridge; as it would be uploaded, where the tools for that are."""
    tools.need("gcc")

    def make(folder):
        folder.mkdir()
        path, _ = wheel(unpacked, unpacked / "dist")
        (release.repair if has_release_tools() else shutil.copy)(path, folder)

    (path,) = made_once(shared_folder / "wheel", make).glob("*.whl")
    return path


@pytest.fixture(scope="session")
def installed(built, shared_folder):
    """The package in a fresh environment; what it needs is this environment's."""

    def make(folder):
        run([sys.executable, "-m", "venv", "--without-pip", folder])
        pip("--python", folder / "bin/python", "install", "--quiet", "--no-deps", built)
        (place,) = folder.glob("lib/python*/site-packages")
        (place / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")

    folder = made_once(shared_folder / "environment", make)
    (package,) = folder.glob("lib/python*/site-packages/grape6py")
    return package
