"""Ctrl-C in a long call of a tree is heard while the call goes on."""

import signal
import subprocess
import sys
import threading
import time

import pytest

import capi
from grape6py._lib import interruptible

SCRIPT = """import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job in the background ignores
import numpy as np
from grape6py import Tree
tree = Tree(np.random.default_rng(1).normal(size=({n}, 3)), 1.0)
print("begins", flush=True)
tree.{call}
"""


@pytest.mark.parametrize(
    ("n", "call"), [(300000, "forces(theta=0.02)"), (60000, "nearest(6000)")], ids=["sum", "search"]
)
def test_the_wait_ends_at_once(n, call):
    python = subprocess.Popen([sys.executable, "-c", SCRIPT.format(n=n, call=call)], text=True,
                              env=capi.clean_environment({"GRAPE6_THREADS": "1"}),
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


@pytest.mark.parametrize("ended", [False, True])
def test_what_nobody_waited_for_is_undone(monkeypatch, ended):
    """A tree that is opened after Ctrl-C is closed again; before, it stayed until the end."""
    going_on, undone, done = threading.Event(), [], threading.Event()

    def interrupted(thread, *_):
        if ended:
            wait(thread)
        raise KeyboardInterrupt

    def undo(value):
        undone.append(value)
        done.set()

    def call(value):
        assert ended or going_on.wait(10)
        return value

    wait = threading.Thread.join
    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        interruptible.wait_for(call, 7, size=interruptible.LONG, undo=undo)
    assert undone == ([7] if ended else [])
    going_on.set()
    assert done.wait(10)
    assert undone == [7]
