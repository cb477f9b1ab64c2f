"""`python -OO`, which drops docstrings and assertions, changes nothing."""

import sys

from grape6py.cli import _EXAMPLES
from tools import run

PROGRAM = """
import contextlib, io
from grape6py import Hermite, plummer
from grape6py.cli import main
from grape6py.errors import ArgumentError
for command in ([], *([name] for name in {commands!r})):
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as shown:
        main([*command, "--help"])
    assert False, "not run"
    if "usage: grape6" not in shown.getvalue():
        raise RuntimeError(command)
if main(["run", "plummer", "--n", "32", "--t-end", "0.0625", "--backend", "cpu", "--out", "a.h5"]):
    raise RuntimeError("run")
cluster = Hermite.load("a.h5")
cluster.evolve(0.125)
cluster.save("a.h5")
try:
    Hermite(*plummer(3, seed=1), ids=[1, 1, 2])
except ArgumentError:
    print("done")
"""


def test_the_command_and_an_integration_run_under_oo(tmp_path):
    program = PROGRAM.format(commands=[name for name in _EXAMPLES if name])
    done = run([sys.executable, "-OO", "-c", program], cwd=tmp_path)
    assert done.stdout.endswith("done\n")
