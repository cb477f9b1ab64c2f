"""The wheel as it would be uploaded: what it needs of a system, and that it computes what the
library in the source tree does, without a compiler and linked to programs."""

import json
import re
import sys
import zipfile

import pytest

import packages
import release
import tools
from grape6py import paths
from tools import run

pytestmark = pytest.mark.full
GLIBC = (2, 28)


@pytest.fixture
def uploadable(built):
    if not packages.has_release_tools():
        tools.skip("SKIP: ziglang or auditwheel not found: pip install '.[release]'")
    return built


@pytest.fixture(scope="module")
def environment(installed):
    """The folder of the environment, used and linked without a compiler."""
    folder = installed.parents[3]
    release.use(folder, folder)
    return folder


def test_the_wheel_needs_no_newer_system_than_its_name_says_and_brings_no_library(
    uploadable, installed
):
    assert uploadable.name.endswith(f"{release.PLATFORM}.whl")
    said = run([sys.executable, "-m", "auditwheel", "show", uploadable]).stdout
    major, minor = re.search(r'platform\s+tag:\s+"manylinux_(\d+)_(\d+)_', said).groups()
    assert (int(major), int(minor)) <= GLIBC
    binaries = [*installed.glob("*.so"), *installed.glob("lib/*.so")]
    assert len(binaries) == 2
    for path in binaries:
        found = re.findall(r"GLIBC_(\d+)\.(\d+)", run([tools.need("objdump"), "-T", path]).stdout)
        assert max((int(major), int(minor)) for major, minor in found) <= GLIBC
    names = zipfile.ZipFile(uploadable).namelist()
    assert [name for name in names if ".libs/" in name] == []  # that auditwheel brings


def test_every_instruction_set_is_in_the_wheels_library(installed):
    """Kernels of each are there, and those of this machine are found, as by the tree's library."""
    there, here = (json.loads(run([python, "-m", "grape6py", "info", "--json"], cwd="/").stdout)
                   for python in (installed.parents[3] / "bin/python", sys.executable))  # fmt: skip
    assert there["isas"] == here["isas"]
    listed = run([tools.need("objdump"), "-d", installed / "lib/libgrape6.so"]).stdout
    for operation, register in (("mulps", "xmm"), ("vfmadd...ps", "ymm"), ("vfmadd...pd", "zmm")):
        assert len(re.findall(rf"\t{operation} .*%{register}", listed)) > 50, register


def test_forces_have_the_bits_of_the_library_in_the_tree(environment, tmp_path):
    tools.need("gfortran")
    flags = [f"-I{paths.INCLUDE_DIR}", str(paths.LIBRARY), f"-Wl,-rpath,{paths.LIBRARY_DIR}"]
    expected = release.bits(release.compile_forces(tmp_path / "here", *flags))
    assert release.bits(release.compile_programs(environment, tmp_path)) == expected
    assert len(set(expected.values())) == len(expected) > 0
    # Without a compiler it was used, and linked:
    assert (environment / "stars.h5").exists()
    assert (environment / "lib/libg6.so").resolve().is_relative_to(environment)


@pytest.mark.parametrize("what", ["sdist", "built"])
def test_an_index_would_take_it(request, what):
    pytest.importorskip("twine", reason="SKIP: twine not found: pip install '.[release]'")
    run([sys.executable, "-m", "twine", "check", "--strict", request.getfixturevalue(what)])
