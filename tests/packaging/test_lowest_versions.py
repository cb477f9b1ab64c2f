"""The lowest versions that pyproject.toml names work: tests of files, pictures, models and runs in
an environment of theirs, in build/.

They come from the package index; `python test_lowest_versions.py` makes the environment, and the
next run finds it there."""

import hashlib
import os
import re
import sys
import tomllib

import pytest

import capi
from once import made_once
from packages import pip
from tools import run
from variants import BUILD

TESTS = """python/test_archive.py python/test_formats_hdf5.py python/test_models_king.py
    python/test_picture.py
    cli/test_run.py::test_a_terminal_shows_a_bar_with_the_time_left""".split()


def lowest():
    """What pip is asked for: NAME==VERSION of each NAME>=VERSION."""
    project = tomllib.loads((capi.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = [re.fullmatch(r"([a-z0-9]+)>=([\d.]+)", one) for one in project["dependencies"]]
    return [f"{one[1]}=={'.'.join([*one[2].split('.'), '0'][:3])}" for one in found]


def _make(folder):
    run([sys.executable, "-m", "venv", "--without-pip", folder])
    pip("--python", folder / "bin/python", "install", "--quiet", "--only-binary", ":all:",
        *lowest(), "pytest>=8")  # fmt: skip


def environment():
    """Its Python; made if it is not there."""
    name = hashlib.sha256(" ".join(lowest()).encode()).hexdigest()[:12]
    return made_once(BUILD / f"lowest-{name}", _make) / "bin/python"


@pytest.mark.full
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="later Pythons have no wheels of them")
def test_files_pictures_models_and_runs_work_with_the_lowest_versions():
    python = environment()
    assert {*pip("--python", python, "freeze").lower().split()} >= {*lowest()}
    env = capi.clean_environment({"PYTHONPATH": str(capi.ROOT), "PATH": os.environ["PATH"]})
    words = "-q --tier quick -p no:cacheprovider -W ignore -k".split()
    command = [python, "-m", "pytest", *words, "not lies and not of_radii"]
    done = run([*command, *(capi.TESTS / name for name in TESTS)], cwd=capi.ROOT, env=env)
    assert re.search(r"\d{2} passed", done.stdout)


if __name__ == "__main__":
    environment()
