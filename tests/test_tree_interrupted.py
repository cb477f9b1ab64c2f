"""Ctrl-C in a long call of a tree is heard while the call goes on."""

import signal
import subprocess
import sys
import time

import pytest

import capi

BODIES = "import numpy as np; from grape6py import Tree; pos = np.random.default_rng(1).normal("
CALLS = {
    "forces": BODIES + "size=(300000, 3)); tree = Tree(pos, np.ones(300000)); say();"
    "tree.forces(theta=0.02)",
    "nearest": BODIES + "size=(60000, 3)); tree = Tree(pos, np.ones(60000)); say();"
    "tree.nearest(6000)",
}
SAY = "import sys; say = lambda: print('begins', flush=True)\n"


@pytest.mark.parametrize("call", CALLS)
def test_the_wait_ends_at_once(call):
    env = capi.clean_environment({"GRAPE6_THREADS": "1"})
    python = subprocess.Popen([sys.executable, "-c", SAY + CALLS[call]], text=True, env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert python.stdout.readline() == "begins\n"
    time.sleep(0.5)
    assert python.poll() is None
    start = time.monotonic()
    python.send_signal(signal.SIGINT)
    _, said = python.communicate(timeout=60)
    assert "KeyboardInterrupt" in said
    assert python.returncode == -signal.SIGINT
    assert time.monotonic() - start < 2, "the call itself takes more than ten seconds"
