"""``grape6 run`` is refused where a launcher of MPI programs has started it several times."""

import os
import subprocess

import pytest

import capi
import tools
from grape6py.cli import launched
from runs import COMMAND, run

OMPI = {"OMPI_COMM_WORLD_SIZE": "2", "PMIX_RANK": "1"}  # and OMPI_COMM_WORLD_RANK
BATCH = {"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_JOB_ID": "7"}  # a script of sbatch -n 4
SRUN = {**BATCH, "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_ID": "0"}
ALONE = [
    {}, BATCH, {"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"},
    {"PMI_SIZE": "1", "PMI_RANK": "0"}, {"PMI_SIZE": "many", "PMI_RANK": ""},
    {**SRUN, "PMI_SIZE": "4", "PMI_RANK": "0", "SLURM_PTY_PORT": "4711"},  # srun -n 4 --pty bash
    {**SRUN, "OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"},  # mpirun's daemon in a step
    {"OMPI_COMM_WORLD_RANK": "1", "PMIX_RANK": "1"}, {**SRUN, "PMI_RANK": "3"},  # as advised
]  # fmt: skip
SEVERAL = [
    (OMPI, "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK"),
    ({"MV2_COMM_WORLD_SIZE": "8"}, "MV2_COMM_WORLD_SIZE=8", "MV2_COMM_WORLD_RANK"),
    ({**SRUN, "PMI_SIZE": "3"}, "PMI_SIZE=3", "PMI_RANK"),
    (SRUN, "SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID"),
]


@pytest.fixture
def started(here, monkeypatch):
    """Exit status of a quick run in some environment."""
    monkeypatch.setattr(launched, "_HEAD_START", 0)

    def started(env):
        clean = {name: text for name, text in os.environ.items()
                 if not name.startswith(("OMPI_", "PMI", "MV2_", "SLURM_"))}  # fmt: skip
        monkeypatch.setattr(os, "environ", clean | env)
        return run("--n", 20, "--t-end", 0.01)

    return started


@pytest.mark.parametrize("env", ALONE)
def test_a_run_that_was_started_once_runs(started, env):
    assert started(env) == 0


@pytest.mark.parametrize(("env", "named", "rank"), SEVERAL)
def test_several_are_refused_in_one_line_of_the_first(started, capsys, env, named, rank):
    for number in "01":
        assert started({**env, rank: number}) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.count("\n") == (number == "0")
        assert named in printed.err or number == "1"


def test_pmix_alone_tells_the_second(started, capsys):
    assert started({"PMIX_RANK": "1"}) == 1
    assert "PMIX_RANK=1" in capsys.readouterr().err


def test_mpirun_ends_with_one_line_and_no_file(here):
    mpirun = tools.need("mpirun")
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    env = capi.clean_environment({"OMPI_MCA_rmaps_base_oversubscribe": "1", **root})
    done = subprocess.run([mpirun, "-n", "2", *COMMAND, "--out", "a.h5"], env=env, check=False,
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    assert done.returncode == 1
    assert [line[:40] for line in done.stderr.splitlines() if line.startswith("grape6")] == [
        "grape6: grape6 run was started several t"
    ]
    assert not list(here.iterdir())
