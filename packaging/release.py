"""A release, tried out: the sdist and the wheels in dist/ as they would be uploaded. Nothing is.

    python packaging/release.py    # make release

Wheels are built of the sdist, for each Python of this machine that is recent enough (python3.N on
PATH or of pyenv), and linked for old systems by manylinux.cmake. Each is installed into a fresh
environment and used there without a compiler, then by a C and a Fortran program, whose forces must
have the bits of the library in the source tree.
"""

import glob
import hashlib
import importlib.util
import itertools
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import ready

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
DIST, BUILD = ROOT / "dist", ROOT / "build/release"
PLATFORM = f"manylinux_2_28_{platform.machine()}"
TOOLCHAIN = HERE / "manylinux.cmake"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def run(command, **options):
    """What a command printed; its error, and the end of this program, if it fails."""
    command = [str(word) for word in command]
    done = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{done.stdout}\nexit {done.returncode}: {' '.join(command)}")
    return done.stdout


# ---- build -------------------------------------------------------------------------


def pythons():
    """Path of each Python here that pyproject.toml names and that has headers, by its version."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wanted = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    places = os.environ["PATH"].split(":") + glob.glob(f"{Path.home()}/.pyenv/versions/*/bin")
    test = "import sysconfig, sys; open(sysconfig.get_path('include') + '/Python.h'); sys.exit(7)"
    found = {}
    for number, place in itertools.product(wanted, places):
        path = Path(place) / f"python{number}"
        if path.exists() and number not in found:
            done = subprocess.run([path, "-c", test], check=False, capture_output=True)
            found |= {number: path} if done.returncode == 7 else {}
    return found


def make_sdist():
    """Writes the sdist into dist/; the folder where it is unpacked."""
    run([sys.executable, "-m", "build", "--sdist", "--outdir", DIST, ROOT])
    (archive,) = DIST.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(BUILD, filter="data")
    return BUILD / archive.name.removesuffix(".tar.gz")


def for_old_systems():
    """Environment variables for CMake: it then links by Zig, of the package ziglang."""
    zig = importlib.util.find_spec("ziglang").submodule_search_locations[0]
    return {"CMAKE_TOOLCHAIN_FILE": str(TOOLCHAIN), "PATH": f"{zig}:{os.environ['PATH']}"}


def make_wheel(python, source, folder):
    """The wheel for a Python, in dist/."""
    command = [*PIP, "--python", python, "wheel", "--no-deps", "-w", folder, source]
    run(command, env={"GRAPE6_MACHINE_CODE": "1", **os.environ, **for_old_systems()})
    (path,) = folder.glob("*.whl")
    return repair(path, DIST)


def repair(wheel, folder):
    """The same wheel in a folder, its name saying what systems it is for. An error if it needs
    newer ones, or a library that those may lack."""
    run([sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM, "--only-plat",
         "-w", folder, wheel])  # fmt: skip
    (path,) = folder.glob(wheel.name.replace(f"linux_{platform.machine()}", PLATFORM))
    return path


# ---- use ---------------------------------------------------------------------------


def install(python, wheel, folder):
    """A fresh environment with the wheel and what it needs, none of it compiled here."""
    run([python, "-m", "venv", "--without-pip", folder])
    run([*PIP, "--python", folder / "bin/python", "install", "--only-binary=:all:", wheel])


def use(environment, folder):
    """Uses an environment as somebody does who has no compiler."""
    bare = {"PATH": f"{environment}/bin", "HOME": str(folder)}
    grape6 = environment / "bin/grape6"
    for words in ("selftest", "run plummer --n 128 --t-end 0.125 --out stars.h5", "link"):
        run([grape6, *words.split()], env=bare, cwd=folder)


def compile_programs(prefix, folder):
    """Links a Fortran program and the C program of `bits` to what `grape6 link` put there, and runs
    the first; the second."""
    libs = [f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lg6"]
    run(["gfortran", prefix / "include/g6lib.f90", ROOT / "tests/fortran/two_body.f90",
         "-o", "two_body", *libs], cwd=folder)  # fmt: skip
    run(["./two_body"], cwd=folder, env={})
    return compile_forces(folder / "forces", f"-I{prefix}/include", *libs)


def compile_forces(program, *flags):
    """tests/c/forces.c, which prints forces of every mode exactly."""
    run(["gcc", "-O1", ROOT / "tests/c/forces.c", "-o", program, *flags, "-lm"])
    return program


def bits(program):
    """A hash of the forces that compile_forces' program gets, by instruction set."""
    isas = json.loads(run([sys.executable, "-m", "grape6py", "info", "--json"]))["isas"]
    printed = {isa: run([program], env={"GRAPE6_ISA": isa}) for isa in isas}
    return {isa: hashlib.sha256(text.encode()).hexdigest() for isa, text in printed.items()}


def try_out(python, wheel, folder, expected):
    """Installs a wheel and uses it."""
    install(python, wheel, folder)
    use(folder, folder)
    found = bits(compile_programs(folder, folder))
    if found != expected:
        raise SystemExit(f"{wheel.name}: forces have other bits: {found}, not {expected}")


def _say(text):
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def main():
    for folder in (BUILD, DIST):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    flags = run([sys.executable, "-m", "grape6py", "config", "--cflags", "--libs"]).split()
    expected = bits(compile_forces(BUILD / "forces", *flags))
    source = make_sdist()
    for number, python in pythons().items():
        _say(f"Python {number}: {python}")
        wheel = make_wheel(python, source, BUILD / f"wheel-{number}")
        try_out(python, wheel, BUILD / f"environment-{number}", expected)
        _say(f"  {wheel.name}: used; bits as here for {', '.join(expected)}")
    print(run([sys.executable, "-m", "twine", "check", "--strict", *DIST.iterdir()]), end="")
    if missing := ready.missing():
        print("\n".join(["before an upload:", *missing]))


if __name__ == "__main__":
    main()
