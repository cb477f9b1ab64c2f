"""Runs a function of a program in tests/ranks on some ranks, and takes what rank 0 says."""

import json
import os
import sys

import pytest

import capi
import tools
from legacy import of_ranks

PROGRAMS = capi.TESTS / "ranks" / "rank_programs.py"


def run(ranks, *arguments, environment=(), timeout=120, cwd=None):
    """The finished process of mpirun."""
    pytest.importorskip("mpi4py", reason="SKIP: mpi4py")
    command = [tools.need("mpirun"), "-n", ranks, sys.executable, "-W", "error", *arguments]
    env = os.environ | of_ranks() | dict(environment)
    return tools.started(command, env=env, cwd=cwd, timeout=timeout)


def said(ranks, name, *arguments, program=PROGRAMS, **options):
    """Lines of JSON."""
    done = run(ranks, program, name, *arguments, **options)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
