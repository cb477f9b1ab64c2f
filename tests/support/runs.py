"""``grape6 run`` for the tests: in this process, or in its own, where signals can reach it."""

import functools
import os
import re
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

import capi
import tools
from grape6py import Hermite, plummer
from grape6py.cli import main
from grape6py.files.storage import output_file
from grape6py.integrators.base import EXTRA

COMMAND = [sys.executable, "-m", "grape6py", "run"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cluster_of(n=64, **options):
    return Hermite(*plummer(n, 1), eps=1 / 16, **options)


def command(name, *arguments):
    """Exit status of a command in this process."""
    try:
        return main([name, *map(str, arguments)])
    except SystemExit as leaving:
        return leaving.code


run = functools.partial(command, "run")


def process(*arguments, folder, timeout=60, **environment):
    env = capi.clean_environment({"PYTHONPATH": str(capi.ROOT), **environment})
    return tools.started([*COMMAND, *arguments], cwd=folder, env=env, timeout=timeout)


def stopped(*arguments, folder, by=signal.SIGINT, after=0.15):
    """A run sent a signal some seconds after its first log line; (status, stdout, stderr)."""
    env = capi.clean_environment({"PYTHONPATH": str(capi.ROOT)})
    run = subprocess.Popen([*COMMAND, *map(str, arguments)], cwd=folder, env=env, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    lines = []
    for line in run.stdout:
        lines.append(line)
        if re.match(r" +\d+\.\d{4} ", line):
            break
    time.sleep(after)
    os.kill(run.pid, by)
    out, err = run.communicate(timeout=60)
    return run.returncode, "".join(lines) + out, err


def outputs(path):
    with h5py.File(path) as file:
        return [name for name in file if name.isdigit()]


def last_group(path):
    with h5py.File(path) as file:
        group = file[outputs(path)[-1]]
        arrays = {name: group[name][()] for name in ("mass", "pos", "vel")}
        arrays |= {f"state/{name}": data[()] for name, data in group["state"].items()}
        return {name: group.attrs[name] for name in ("time", "steps", "blocks")}, arrays


def edited(path, change):
    """Change an index or an output, and give it the checksum of what it is then."""
    path.write_bytes(path.read_bytes()[: -len(output_file.seal(b""))])
    with h5py.File(path, "a") as file:
        change(file)
    path.write_bytes(output_file.seal(path.read_bytes()))


def times(path):
    with h5py.File(path) as file:
        return [float(file[name].attrs["time"]) for name in outputs(path)]


def assert_same_end(path, other, kind=Hermite):
    (counts, arrays), (counts2, arrays2) = last_group(path), last_group(other)
    assert counts == counts2
    names = set(arrays) - {f"state/{name}" for name in EXTRA}
    assert names == {"mass", "pos", "vel", *(f"state/{name}" for name in kind.STATE)}
    assert set(arrays) == set(arrays2)
    for name, array in arrays.items():
        assert np.array_equal(array, arrays2[name]), name


def rows(text):
    """The log's lines of numbers, as floats; "-" is NaN."""
    lines = [line.split() for line in text.splitlines()]
    return [[float("nan" if word == "-" else word) for word in words] for words in lines
            if len(words) == 9 and re.fullmatch(r"[\d.e+-]+", words[0])]  # fmt: skip
