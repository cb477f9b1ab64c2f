"""What grape6 link puts into a folder is found by configure and Meson, by each name.

The build files in discovery/ compile tests/c/maps.c, which opens the board and prints what the
process has mapped. That pkg-config and find_package find the package itself: test_build.py."""

import os
import shutil
import sys

import pytest

import capi
import tools
from grape6py import paths
from tools import run

MODULES = ["g6lib", "sapporo_light"]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    run([sys.executable, "-m", "grape6py", "link", "--prefix", folder])
    return folder


@pytest.fixture
def project(tmp_path):
    """A client's sources."""
    shutil.copytree(capi.TESTS / "clients/discovery", tmp_path / "project")
    shutil.copy(capi.TESTS / "c/maps.c", tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture(scope="module")
def configure_script(tmp_path_factory):
    """What autoconf makes."""
    source = capi.TESTS / "clients/discovery/configure.ac"
    folder = tmp_path_factory.mktemp("autoconf")
    run([tools.need("autoconf"), "-o", "configure", source], cwd=folder)
    return folder / "configure"


def environment(**variables):
    """This one, without what could lead to a library, and with these variables."""
    names = ("VIRTUAL_ENV", "CONDA_PREFIX", "PKG_CONFIG_PATH", "LIBRARY_PATH", "LD_LIBRARY_PATH")
    env = {name: value for name, value in os.environ.items() if name not in names}
    return env | {name: str(value) for name, value in variables.items()}


def assert_uses(program, prefix):
    """It computes, with nothing in its environment, and with the package's library."""
    assert str(prefix / "lib") in run([tools.need("readelf"), "-d", program]).stdout
    assert str(paths.LIBRARY.resolve()) in run([program], env={}, cwd="/").stdout


def test_configure_finds_the_libraries_of_the_environment_then_by_pkg_config(
    project, prefix, configure_script, tmp_path
):
    """And what the user gives goes first."""
    tools.need("pkg-config")
    given = f"-I{prefix}/include -L{prefix}/lib -Wl,-rpath,{prefix}/lib -lpg5"
    alone = shutil.copytree(prefix, tmp_path / "alone", symlinks=True)
    for name in ("g6", "sapporo"):
        (alone / f"lib/lib{name}.so").unlink()
    for folder, variables, said in (
        (prefix, {"VIRTUAL_ENV": prefix}, ["-lg6", "-lsapporo"]),
        (prefix, {"VIRTUAL_ENV": prefix, "G6LIB_LIBS": given, "SAPPORO_LIGHT_LIBS": given},
         [given] * 2),
        (alone, {"VIRTUAL_ENV": alone, "PKG_CONFIG_PATH": ""}, ["-lgrape6"] * 2),
        (alone, {"VIRTUAL_ENV": "", "PKG_CONFIG_PATH": alone / "lib/pkgconfig"}, ["-lgrape6"] * 2),
    ):  # fmt: skip
        run([configure_script], cwd=project, env=environment(**variables))
        lines = run(["make"], cwd=project).stdout.splitlines()
        flags = [line.split("maps.c ")[-1].strip() for line in lines if " -o " in line]
        assert [each if each == given else each.split()[-1] for each in flags] == said
        for module in MODULES:
            assert_uses(project / module, folder)
            (project / module).unlink()


def test_meson_finds_each_name(project, prefix):
    for tool in ("meson", "ninja", "pkg-config"):
        tools.need(tool)
    env = environment(PKG_CONFIG_PATH=prefix / "lib/pkgconfig")
    run(["meson", "setup", project / "b", project], env=env)
    run(["meson", "compile", "-C", project / "b"], env=env)
    for name in ("grape6", *MODULES):
        assert_uses(project / "b" / name, prefix)
