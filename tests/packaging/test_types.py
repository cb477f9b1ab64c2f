"""Type checkers know every name of the package, take a program that uses all of them, and refuse
one that uses them wrongly."""

import ast
import functools
import importlib
import inspect
import os
import re
import sys

import pytest

import capi
import grape6py
import tools
from tools import run

PROGRAM = capi.ROOT / "tests/python/typed_program.py"
NAMES = {*grape6py._HOME, *grape6py._MODULES}
WRONG = """\
from grape6py import Grape6, plumer, plummer

plummer("ten")
with Grape6() as grape:
    grape.forces(epsilon=0.1)
    acc: int = grape.forces().acc
"""


def mypy(folder):
    """For a user who has no settings, of the user's files alone."""
    options = ["--strict", "--config-file=", "--follow-imports=silent", "--cache-dir", folder]
    return [tools.need("mypy"), *options, "--python-executable", sys.executable,
            *folder.glob("*.py")]  # fmt: skip


def pyright(folder):
    (folder / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{capi.ROOT}"]}}')
    return [tools.need("pyright"), "--pythonpath", sys.executable, "-p", folder]


def names_of_grape6py(tree):
    """Those that a program imports from the package, or takes from it by a dot."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "grape6py":
            yield from (name.name for name in node.names)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield from [node.attr] * (node.value.id == "grape6py")


def test_the_program_uses_every_name_and_runs(tmp_path):
    assert {*names_of_grape6py(ast.parse(PROGRAM.read_text()))} == NAMES
    run([sys.executable, PROGRAM, tmp_path], env={**os.environ, "PYTHONPATH": str(capi.ROOT)})


def test_the_stub_names_what_is_imported():
    found = {}
    for node in ast.parse((capi.ROOT / "grape6py/__init__.pyi").read_text()).body:
        if isinstance(node, ast.ImportFrom):
            for name in node.names:
                home = importlib.import_module(node.module)
                if not hasattr(home, name.name):
                    home = importlib.import_module(f"{node.module}.{name.name}")
                found[name.asname] = getattr(home, name.name, home)
    assert found == {name: getattr(grape6py, name) for name in NAMES}


def test_import_star_brings_what_is_listed_and_hides_nothing_of_pythons():
    space = {}
    exec("from functools import partial\nfrom grape6py import *", space)
    assert space["partial"] is functools.partial
    assert {*space} - {"partial", "__builtins__"} == {*grape6py.__all__}
    modules = {name for name in grape6py.__all__ if inspect.ismodule(getattr(grape6py, name))}
    reference = (capi.ROOT / "packaging/site_pages.py").read_text()
    for name in {*grape6py.__all__} - modules:  # or by the page of its module
        home = grape6py._HOME[name].rpartition(".")[2]
        assert re.search(rf"\b({name}|{home})\b", reference), name
    for function in filter(inspect.isfunction, vars(grape6py.diagnostics).values()):
        assert f'"{function.__module__.removeprefix("grape6py.")}"' in reference, function


@pytest.mark.full
@pytest.mark.parametrize("check", [mypy, pyright])
def test_a_program_with_every_name_is_taken_and_a_wrong_one_refused(check, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.read_text())
    (tmp_path / "wrong.py").write_text(WRONG)
    env = {**os.environ, "MYPYPATH": str(capi.ROOT)}
    done = tools.started(check(tmp_path), env=env)
    found = re.findall(r"(\w+)\.py:(\d+):.* error", done.stdout)
    assert {*found} == {("wrong", line) for line in "1356"}, done.stdout + done.stderr
