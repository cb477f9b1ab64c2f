"""GRAPE6_LOG: what a process prints at its start and its end, and about its environment."""

import os
import re
import socket
import subprocess
import sys

import pytest

import capi
from capi import PRELUDE, clean_environment, library_path, run_python

CALL = "s = Session(0); s.put_cloud(cloud(60))\ns.force(60, np.ones((48, 3)))\n"
REPORT = "grape6: cluster 0: {0} force calls, {0} of them full with 48 particles, 0 summed ahead"


def lines_of(script, log="info", **env):
    done = run_python(script, **{"GRAPE6_LOG": log, "GRAPE6_BACKEND": "cpu"} | env)
    assert done.stdout == ""
    return done.stderr.splitlines()


def reports(lines):
    return [line for line in lines if "force calls" in line]


def test_the_start_names_all_that_is_used_on_one_line_and_once():
    env = {"GRAPE6_ISA": "base", "GRAPE6_THREADS": "3", "GRAPE6_PRECISION": "double"}
    script = "for _ in range(3): call('g6_open', 5); call('g6_close', 5)"
    (line,) = lines_of(script, **env)
    assert line == (
        "grape6: cluster 5: backend cpu, device CPU, mode double, instruction set base, "
        f"3 threads, 48 pipes, library {library_path()}"
    )
    (line,) = lines_of(script, GRAPE6_BACKEND="cpu-tree", GRAPE6_CLIENT="kira")
    assert "backend cpu-tree, device CPU, mode grape, instruction set " in line
    assert f" {len(os.sched_getaffinity(0))} threads, 1024 pipes, client kira, " in line


@pytest.mark.parametrize("end", [
    "", "s.close()", "ctypes.CDLL(None).__cxa_atexit(library().g6_close, None, None)"
], ids=["nothing", "close", "close-at-exit"])  # fmt: skip
def test_a_process_reports_once_however_it_ends(end):
    """Full calls name the client, not the pipes: more than 48 change the results of kira."""
    (line,) = reports(lines_of(f"import ctypes\n{CALL}{end}"))
    assert line.startswith(REPORT.format(1))
    assert "GRAPE6_CLIENT" in line
    assert "NPIPES" not in line
    if not end:
        assert reports(lines_of(CALL, log="faults")) == []
        assert reports(lines_of(CALL, GRAPE6_CLIENT="ph4")) == [REPORT.format(1)]


def test_a_library_that_was_unloaded_reports_as_well():
    done = capi.run_c("load_late", str(library_path()), "unclosed", linked=False, GRAPE6_LOG="info",
                      GRAPE6_BACKEND="cpu")  # fmt: skip
    (line,) = reports(done.stderr.splitlines())
    assert line.startswith("grape6: cluster 0: 3 force calls,")


def test_a_forked_child_does_not_report_what_its_parent_opened():
    child = "for close in 0, 1:\n  if not os.fork():\n    s.force(60, np.ones((48, 3)))\n"
    child += "    if close: s.close()\n    sys.exit()\n  os.wait()"
    found = reports(lines_of("import os\n" + CALL + child))
    assert [line.split(",")[0] for line in found] == ["grape6: cluster 0: 1 force calls"]


def test_an_exit_during_calls_of_other_threads_waits_for_none():
    """They may hold any lock at that moment."""
    calls = "    s.force(3000, source.x); call('g6_open', k); call('g6_close', k)\n"
    script = "import threading, time\nsource = cloud(3000); s = Session(0); s.put_cloud(source)\n"
    script += f"def work(k):\n  while True:\n{calls}"
    script += "for k in (1, 2, 3): threading.Thread(target=work, args=(k,), daemon=True).start()\n"
    run_python(script + "time.sleep(0.1)", timeout=60, GRAPE6_LOG="info")


def test_variables_that_do_not_exist_are_named_once():
    nearest = {"PRESICION": "PRECISION", "THREAD": "THREADS", "NEIGHBOR_SELF": "NEIGHBOUR_SELF",
               "precision": "PRECISION", "CLIENTS": "CLIENT", "LGO": None,
               "SPEED": None}  # fmt: skip
    script = "for k in (0, 1): call('g6_open', k); call('g6_npipes')"
    lines = lines_of(script, log="faults", **{f"GRAPE6_{name}": "1" for name in nearest})
    assert sorted(lines) == sorted(f"grape6: warning: GRAPE6_{name} is no variable of this library"
                                   + (f"; GRAPE6_{meant} is" if meant else "")
                                   for name, meant in nearest.items())  # fmt: skip


def test_variables_that_exist_are_not_named(tmp_path):
    text = (capi.ROOT / "docs/environment.md").read_text(encoding="utf-8")
    row = re.compile(r"^\| `(GRAPE6_\w+)` \|[^|]*?(?:`(\S+?)`|(\d+))[^|]*\|", re.MULTILINE)
    env = {name: word or number for name, word, number in row.findall(text)}
    assert len(env) > 18
    config = tmp_path / "grape6.toml"
    config.write_text('client = "ph4"\n')
    env |= {"GRAPE6_CONFIG": str(config), "GRAPE6_PYTHON": "/usr", "GRAPE6_TEST_ANY": "1"}
    env |= {"GRAPE6_LIBS": "-lgrape6", "GRAPE6_PRESICION": "", "GRAPE6_LOG": "faults"}
    assert lines_of("assert call('g6_open', 0) == 0", **env | {"GRAPE6_BACKEND": "cpu"}) == []


def test_each_line_is_one_write():
    """Each write to such a socket is one message."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    env = {"GRAPE6_LOG": "info", f"GRAPE6_{5000 * 'X'}": "1", "GRAPE6_TWO\nLINES": "1"}
    env |= {"GRAPE6_BACKEND": "cpu"}
    script = PRELUDE + CALL + "s.put(-4, 1, 1.0, (1, 0, 0)); s.set_int('G6X_ISA', 99, check=False)"
    with ours, its:
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=clean_environment(env), stderr=its)
        its.shutdown(socket.SHUT_WR)
        written = list(iter(lambda: ours.recv(1 << 16), b""))
    assert done.returncode == 0
    assert len(written) == 6
    for line in written:
        assert line.startswith(b"grape6: ")
        assert line.index(b"\n") == len(line) - 1 < 1100
