"""Where settings come from: the file of GRAPE6_CONFIG, the environment, options before open."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

import capi
from tools import run

LIGHT = """
import ctypes
library, text, value = ctypes.CDLL({path!r}), ctypes.create_string_buffer(400), ctypes.c_int()
code = library.g6_open(0)
if code:
    library.g6x_last_error(0, text, 400)
    print(code, text.value.decode())
for key in [] if code else {keys}:
    library.g6x_get_int(0, key, ctypes.byref(value))
    print(value.value, end=" ")
"""


def start(keys="PRECISION", **env):
    """What a process finds: values of options, or the refusal. Without NumPy, which takes long."""
    keys = [capi.CONSTANTS[f"G6X_{key}"] for key in keys.split()]
    command = [sys.executable, "-ISc", LIGHT.format(path=str(capi.library_path()), keys=keys)]
    return run(command, env=capi.clean_environment(env), timeout=20).stdout.strip()


@pytest.fixture
def started(tmp_path):
    """With this file and environment."""

    def start_with(lines, keys="PRECISION", **env):
        path = tmp_path / "grape6.toml"
        path.write_bytes(lines.encode())
        return start(keys, GRAPE6_CONFIG=str(path), **env)

    return start_with


def test_the_file_gives_strings_numbers_and_truth_values(started):
    """An empty value counts as unset; the line of a name is not that of a longer one."""
    lines = '# of the group\n\n  precision = "double"  # words in quotes\r\nthreads=3\n' \
            'GRAPE6_SNAP = false\nGrape6_Neighbour_Self\t=\ttrue # yes'  # fmt: skip
    keys = "PRECISION THREADS SNAP NEIGHBOUR_SELF JERK"
    assert started(lines, keys, GRAPE6_CLIENT="", GRAPE6_THREADS="") == "1 3 0 1 1"
    assert started("#" + 509 * "x" + "\nthreads = 3", "THREADS") == "3"
    assert started("#" + 510 * "x" + "threads = 3", "THREADS").startswith("-11 ")


def test_the_environment_wins_over_the_file_line_by_line_and_both_over_a_client(started):
    lines = 'precision = "double"\nthreads = 3\n'
    assert started(lines, "PRECISION THREADS", GRAPE6_THREADS="2") == "1 2"
    assert started('precision = "dbl"', GRAPE6_PRECISION="double").startswith("-11 ")
    keys = "NPIPES NEIGHBOUR_SELF JERK"
    assert started('client = "kira"', keys) == "1024 1 1"
    assert started('npipes = 64\nclient = "kira"', keys) == "64 1 1"
    assert started('jerk = 1\nclient = "kira"', keys, GRAPE6_CLIENT="bhtree") == "16384 0 1"
    assert started('client = "ph4"', keys) == "48 0 1"
    assert started("npipes = 256", keys) == "256 0 1"
    assert start("THREADS", OMP_NUM_THREADS="3", GRAPE6_THREADS="2") == "2"


@pytest.mark.parametrize(("line", "named"), [
    ('precision = "dbl"', "GRAPE6_PRECISION=dbl"),
    ("threads = 2000", "GRAPE6_THREADS=2000"),
    *((f'verify = "{value}"', f"GRAPE6_VERIFY={value}: it must be a fraction")
      for value in "1.01 -0.1 0.1.2 . 1e-2 0.12345678901234567".split()),
    ("theta = 1.5", "GRAPE6_THETA=1.5"),
    ('tree_method = "oct"', "GRAPE6_TREE_METHOD=oct"),
    ("tree_order = 7", "GRAPE6_TREE_ORDER=7"),
    ("g5_pot_sign = 2", "GRAPE6_G5_POT_SIGN=2"),
    ('g5_source = "near"', "GRAPE6_G5_SOURCE=near"),
    ('python = "bin/python"', "GRAPE6_PYTHON=bin/python"),
    ('devices = "first"', "GRAPE6_DEVICES=first"),
    (f'python = "/{500 * "x"}"', "GRAPE6_CONFIG"),
    ("speed = 3", "SPEED"),
    ("= 3", "GRAPE6_CONFIG"),
    ("threads 3", "line 2: it"),
    ("precision = double yes", "line 2: it"),
    ("precision = double", "line 2: it"),
    ("#" + 600 * "x", "line 2: it must be of at most 510 characters"),
    ('precision = "double" "single"', "GRAPE6_CONFIG"),
    ("[grape6]", "line 2: it"),
    ('client = "nbody7"', "GRAPE6_CLIENT=nbody7"),
    ('config = "other.toml"', "CONFIG"),
])  # fmt: skip
def test_a_line_that_is_not_understood_is_named_and_open_refused(started, line, named):
    found = started(f"threads = 1\n{line}\njerk = 2\n")
    assert found.startswith("-11 ")
    assert named in found


@pytest.mark.parametrize("kind", "missing folder pipe large /dev/zero /dev/urandom".split())
def test_what_is_no_small_file_is_refused_at_once(tmp_path, kind):
    path = tmp_path / kind  # or the device
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "large":
        path.write_text("threads = 1\n" * 6000)
    found = start(GRAPE6_CONFIG=str(path))
    assert (str(path)[:60] if kind == "missing" else "a regular file of at most 64 kB") in found


SET_UID = """
#include <stdio.h>
#include <unistd.h>
#include "g6lib.h"
int main(void)
{
    char text[300];
    const int code = g6_open(0), backend = g6x_backend(0, text, sizeof text);
    printf("%d %d %s pipes %d uid %d\\n", code, backend, text, g6_npipes(), (int)geteuid());
    (void)g6x_last_error(0, text, sizeof text);
    printf("%s\\n", text);
    return 0;
}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a set-uid program")
def test_a_set_uid_program_believes_no_variable():
    """They are the user's: they named code to be run as root, and files to be printed."""
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        folder = Path(name)
        folder.chmod(0o755)
        library = shutil.copy(capi.library_path(), folder / "libgrape6.so")
        (folder / "a.c").write_text(SET_UID)
        program, secret, stolen = folder / "a", folder / "secret", folder / "stolen"
        command = ["gcc", "a.c", "-o", "a", f"-I{capi.ROOT / 'include'}", library,
                   f"-Wl,-rpath,{folder}"]  # fmt: skip
        run(command, cwd=folder)
        program.chmod(0o4755)
        secret.write_text("the password of root\n")
        secret.chmod(0o600)
        python = folder / "python"
        python.write_text(f"#!/bin/sh\ntouch {stolen}\n")
        python.chmod(0o755)
        env = {"GRAPE6_CONFIG": str(secret), "GRAPE6_PYTHON": str(python), "GRAPE6_NPIPES": "64",
               "GRAPE6_BACKEND": "cuda", "GRAPE6_PRESICION": "double"}  # fmt: skip
        done = run([program], env=env, user=65534, group=65534, extra_groups=[], timeout=20)
        if "uid 0" not in done.stdout:
            pytest.skip("this file system takes no set-uid programs")
        assert done.stdout.startswith("0 ")
        assert "pipes 48" in done.stdout
        assert "password" not in done.stdout
        assert done.stderr == ""
        assert not stolen.exists()


THREADS = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).g6x_threads())"


@pytest.mark.parametrize(("openmp", "expected"), [
    ("4,2", 4), (" 5 , 1", 5), ("99999", 1024), ("0", None), ("2x", None), ("", None),
])  # fmt: skip
def test_openmps_number_of_threads_holds_where_ours_is_not_set(openmp, expected):
    env = capi.clean_environment({"OMP_NUM_THREADS": openmp, "GRAPE6_THREADS": "0"})
    command = [sys.executable, "-ISc", THREADS, capi.library_path()]
    assert int(run(command, env=env).stdout) == (expected or len(os.sched_getaffinity(0)))
