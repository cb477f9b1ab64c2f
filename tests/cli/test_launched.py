"""``grape6 run`` where a launcher of MPI programs has started it several times."""

import os
import re
from unittest import mock

import pytest

import on_ranks
from grape6py.cli import launched
from grape6py.errors import MissingPackageError
from grape6py.ranks import ranks
from runs import run

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
SEVERAL = [(OMPI, "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK"),
           ({"MV2_COMM_WORLD_SIZE": "8"}, "MV2_COMM_WORLD_SIZE=8", "MV2_COMM_WORLD_RANK"),
           ({**SRUN, "PMI_SIZE": "3"}, "PMI_SIZE=3", "PMI_RANK"),
           (SRUN, "SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID")]  # fmt: skip


@pytest.fixture
def started(here, monkeypatch):
    """Exit status of a quick run in some environment."""
    monkeypatch.setattr(launched, "_HEAD_START", 0)
    monkeypatch.setattr(ranks, "mpi", mock.Mock(side_effect=MissingPackageError("no mpi4py")))

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


# ---- with mpi4py -----------------------------------------------------------------------------
def on(n, words, folder):
    """What a run on some ranks prints."""
    done = on_ranks.run(n, "-m", "grape6py", "run", *words.split(), cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.full
def test_ranks_make_one_run_and_go_on_on_another_number_with_the_bits_of_one(here):
    """The first one speaks for all."""
    logs = {}
    for n in (1, 3):
        words = f"plummer --n 1500 --backend cpu --t-end 0.03125 --out {n}.h5 --out {n}.nemo"
        logs[n] = on(n, f"{words} --ranks-info", here)
        on(4 - n, f"{n}.h5 --restart --t-end 0.0625 --out later{n}.h5 --out later{n}.nemo", here)
    for name in ("", "later"):
        assert (here / f"{name}1.nemo").read_bytes() == (here / f"{name}3.nemo").read_bytes()
    one, three = (
        [line[:70] for line in log.splitlines() if "." in line and line[:7] != "written"]
        for log in logs.values()  # but for the wall time
    )
    assert one == three
    assert "3 ranks" in logs[3]
    assert [logs[3].count(word) for word in ("rank ", "time ")] == [3, 1]
    assert re.search(r"rank 2: .*, threads 1, bodies 1024 to 1500", logs[3])


@pytest.mark.full
@pytest.mark.parametrize(("words", "told"), [
    ("plummer --n 50 --out nowhere.xyz", "nowhere.xyz"),
    ("plummer --n 50 --t-end 1 --out full/a.h5", "full"), ("nothing.dat", "nothing.dat is no file"),
])  # fmt: skip
def test_what_fails_is_told_once(here, words, told):
    (here / "full").write_text("")  # no folder
    done = on_ranks.run(2, "-m", "grape6py", "run", *words.split(), cwd=here)
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("grape6: ")]
    assert told in line
    assert sorted(path.name for path in here.iterdir()) == ["full"]


@pytest.mark.full
def test_profile_has_the_stages_of_a_tree_of_all_ranks(here):
    words = ("plummer --n 300 --integrator leapfrog --dt 0.01 --eps 0.05 --t-end 0.02 --profile "
             "--backend cpu-tree")  # fmt: skip
    told = re.search(r"stages of the sums, on the slowest rank: keys .*", on(2, words, here))[0]
    assert all(f" {name} " in told for name in ("sum", "exchange", "wait", "back"))
