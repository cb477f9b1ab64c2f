"""The benchmarks of several ranks, small and on the CPU."""

import json
import os
import subprocess
import sys

import pytest

import capi
import tools

pytestmark = pytest.mark.full

HERE = capi.ROOT / "benchmarks"
SERVICE = """#!/bin/sh
[ "$1" = -d ] && echo "$CUDA_MPS_PIPE_DIRECTORY" >> "{log}" && exit 0
read command && echo "$command" >> "{log}"
[ "$command" != get_server_list ] || echo "{server}"
"""


def figures(part, folder, *arguments, **environment):
    tools.need("mpirun")
    subprocess.run(
        [sys.executable, HERE / "mpi_programs.py", part, "--backend", "cpu", "--out", folder,
         "--name", "here",
         *map(str, arguments)],
        check=True, capture_output=True, text=True, timeout=300, env=os.environ | environment,
    )  # fmt: skip
    return json.loads((folder / f"{part}-here.json").read_text())


@pytest.fixture
def table(monkeypatch):
    """Of a result, as Markdown."""
    monkeypatch.syspath_prepend(HERE)
    import tables

    def made(part, result):
        monkeypatch.setattr(tables.published, "results", lambda name: [(name, result)])
        return tables.made_of(f"{part}-here")

    return made


@pytest.mark.parametrize(("part", "tool", "kirin"), [
    ("treecode-mpi", "mpicc", "| 0.48, 0.53 | 0.91 |"), ("mpi-hermite", "gfortran", "|  |  |"),
])  # fmt: skip
def test_ranks_are_compared_with_one_and_have_its_bits(part, tool, kirin, tmp_path, table):
    tools.need(tool)
    result = figures(part, tmp_path, "--n", 256, "--times", 1)
    one, two = result["figures"]
    assert (one["ranks"], two["ranks"]) == (1, 2)
    assert one["equal"]
    assert two["equal"]
    assert two["wall_speedup"] == one["wall"] / two["wall"]
    assert two["wall"] > two["seconds"] > 0
    shown = table(part, result)
    assert "their bits are equal" in shown
    assert kirin in shown


@pytest.mark.parametrize(("server", "quits"), [("77", 1), ("", 1), (None, 0)])
def test_the_service_of_a_shared_gpu_is_ended_by_who_started_it(server, quits, tmp_path, table):
    tools.need("mpicc")
    log, service = tmp_path / "log", tmp_path / "nvidia-cuda-mps-control"
    if server is not None:
        service.write_text(SERVICE.format(log=log, server=server))
        service.chmod(0o755)
    words = "--ranks", 1, 2, "--n", 512, "--seconds", 0.01
    path = f"{tmp_path}:{os.environ['PATH']}"
    result = figures("shared-gpu", tmp_path, *words, PATH=path)
    served = [f for f in result["figures"] if f["case"] == "GPU, MPS"]
    if server:
        assert [f["ranks"] for f in served] == [1, 2]
    else:
        assert len(served) == 1
        assert served[0]["failed"]
    assert (log.read_text().count("quit -t 10") if log.exists() else 0) == quits
    for f in result["figures"]:
        assert "failed" in f or len(f["us"]) == len(f["backends"]) == f["ranks"]
    assert "| first on the GPU |" in table("shared-gpu", result)
