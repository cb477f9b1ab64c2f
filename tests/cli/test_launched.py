"""``grape6 run`` where a launcher of MPI programs has started it several times."""

import json
import os
import re
from unittest import mock

import numpy as np
import pytest

import on_ranks
from grape6py import archive, plummer, read_snapshot, write_snapshot
from grape6py.cli import launched, main
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
    """What a run on some ranks prints, and its errors."""
    done = on_ranks.run(n, "-m", "grape6py", "run", *words.split(), cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def bits_of(path):
    bodies, component = archive.read_labelled(path)
    return [x.tobytes() for x in (*bodies, component) if x is not None]


@pytest.mark.full
def test_ranks_make_one_run_and_go_on_on_another_number_with_the_bits_of_one(here):
    """The first one speaks for all."""
    logs = {}
    for n in (1, 2, 3):
        words = f"plummer --n 1500 --backend cpu --t-end 0.03125 --out {n}.h5 --out {n}.nemo"
        logs[n], errors = on(n, f"{words} --ranks-info", here)
        assert errors == ""
        assert (here / f"{n}.nemo").read_bytes() == (here / "1.nemo").read_bytes()
    assert {path.name for path in here.iterdir()} == {
        f"{n}{end}" for n in (1, 2, 3) for end in (".h5", "", ".nemo")
    }
    one, *others = (
        [line[:70] for line in log.splitlines() if "." in line and line[:7] != "written"]
        for log in logs.values()  # but for the wall time
    )
    assert others == [one, one]
    assert logs[3].count("rank ") == 3
    assert "3 ranks" in logs[3]
    assert re.search(r"rank 2: .*, threads 1, bodies 1024 to 1500", logs[3])
    assert logs[3].count("time ") == 1
    for n in (1, 2):
        on(4 - n, f"{n}.h5 --restart --t-end 0.0625 --out later{n}.h5 --out later{n}.nemo", here)
    assert (here / "later1.nemo").read_bytes() == (here / "later2.nemo").read_bytes()


GALAXY = "galaxy --n 400 --integrator leapfrog --dt 0.125 --dt-out 0.25"


@pytest.mark.full
def test_a_leapfrog_of_a_tree_goes_on_on_another_number_of_ranks(here):
    words = f"{GALAXY} --backend cpu-tree"
    assert main(["run", *words.split(), *"--t-end 0.5 --out a.h5 --out one.nemo".split()]) == 0
    out, _ = on(2, f"{words} --t-end 0.25 --out b.h5 --ranks-info", here)
    assert "bodies 0 to 200" in out
    again = "b.h5 --restart --t-end 0.5 --out three.nemo --plot b.png --ranks-info"
    assert re.search(r"rank 2: .*, bodies 266 to 400", on(3, again, here)[0])
    one, three = read_snapshot("one.nemo"), read_snapshot("three.nemo")
    assert three.ids is None or three.ids.tolist() == list(range(400))
    assert np.median(np.abs(three.pos - one.pos)) < 1e-4


@pytest.fixture(scope="module")
def galaxy(tmp_path_factory):
    """Runs of a galaxy on one and on three ranks."""
    folder = tmp_path_factory.mktemp("galaxy")
    for n in (1, 3):
        outputs = f"--out {n}.h5 --out {n}.nemo --plot {n}.png"
        on(n, f"{GALAXY} --backend cpu --t-end 0.5 {outputs}", folder)
    return folder


@pytest.mark.full
def test_outputs_of_shared_bodies_are_in_numbered_files(galaxy):
    for n, ends in ((1, [""]), (3, [".0", ".1", ".2"])):
        assert sorted(path.name for path in galaxy.glob(f"{n}/*.hdf5")) == [
            f"{k:06d}{end}.hdf5" for k in range(3) for end in ends
        ]
    assert (galaxy / "1.nemo").read_bytes() == (galaxy / "3.nemo").read_bytes()
    assert (galaxy / "3.png").stat().st_size > 1000
    assert bits_of(galaxy / "1.h5") == bits_of(galaxy / "3.h5")


@pytest.mark.full
@pytest.mark.parametrize("n", [1, 2, 3])
def test_they_are_gone_on_from_and_begun_with_on_any_number_of_ranks(galaxy, here, n):
    for name in "13":
        on(n, f"{galaxy / name}.h5 --restart --t-end 0.75 --out {name}.h5 --out {name}.nemo "
              "--plot a.png", here)  # fmt: skip
        out, _ = on(n, f"{galaxy / name}.h5 --integrator leapfrog --dt 0.125 --t-end 0.25 "
                       f"--backend cpu --eps 0.05 --out new{name}.h5", here)  # fmt: skip
        assert "N = 400" in out
    assert (here / "1.nemo").read_bytes() == (here / "3.nemo").read_bytes()
    for name in ("", "new"):
        assert bits_of(f"{name}1.h5") == bits_of(f"{name}3.h5")
        assert len(set(archive.read_labelled(f"{name}1.h5")[1])) > 1


@pytest.mark.full
@pytest.mark.parametrize(("last", "words"), [
    (1000, None), (2**48 + 1, None), (2**64 - 1, None), (7, "7 is the number of two bodies"),
])  # fmt: skip
def test_ids_of_a_file_are_kept_or_refused_on_all_ranks(here, last, words):
    ids = (np.arange(300)[::-1] + 8).astype(np.uint64)
    ids[0], ids[299] = 7, last
    write_snapshot("a.hdf5", plummer(300, seed=1), ids=ids, files=2)
    given = "a.hdf5 --integrator leapfrog --dt 0.0625 --eps 0.1 --t-end 0.0625 --backend cpu"
    if words is not None:
        done = on_ranks.run(3, "-m", "grape6py", "run", *given.split(), cwd=here)
        assert done.returncode == 1
        assert words in done.stderr
        assert "--renumber" in done.stderr
        given, ids = f"{given} --renumber", np.arange(300)
    on(3, f"{given} --out b.h5", here)
    assert read_snapshot("b.h5").ids.tolist() == ids.tolist()


@pytest.mark.full
@pytest.mark.parametrize(("words", "told"), [
    ("plummer --n 50 --out nowhere.xyz", "nowhere.xyz"),
    ("plummer --n 50 --t-end 1 --out full/a.h5", "full"),
    ("galaxy --n 500 --integrator leapfrog --dt 0.1 --list-binaries", "--list-binaries"),
    ("nothing.dat", "nothing.dat is no file"),
])  # fmt: skip
def test_what_fails_is_told_once(here, words, told):
    (here / "full").write_text("")  # no folder
    done = on_ranks.run(2, "-m", "grape6py", "run", *words.split(), cwd=here)
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("grape6: ")]
    assert told in line
    assert sorted(path.name for path in here.iterdir()) == ["full"]


SIGNALLED = """
import os, signal, sys, threading, time
from mpi4py import MPI
def end():
    while not os.path.exists('a.h5'):
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGTERM)
if MPI.COMM_WORLD.Get_rank() == 1:
    threading.Thread(target=end, daemon=True).start()
from grape6py.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.full
def test_a_signal_to_one_rank_stops_all(here):
    words = "run plummer --n 500 --t-end 1000 --backend cpu --out a.h5".split()
    done = on_ranks.run(2, "-c", SIGNALLED, *words, cwd=here)
    assert "go on with: grape6 run a.h5 --restart" in done.stderr
    assert 0 <= read_snapshot("a.h5").time < 1000


def test_profile_has_the_stages_of_a_tree_of_all_ranks(here):
    words = ("plummer --n 300 --integrator leapfrog --dt 0.01 --eps 0.05 --t-end 0.02 --profile "
             "--backend cpu-tree")  # fmt: skip
    stages = json.loads(on(2, f"{words} --json", here)[0])["stages"]
    assert stages["sum"] > 0
    assert all(stages[name] >= 0 for name in ("keys", "exchange", "wait", "back"))
    assert "stages of the sums, on the slowest rank: keys " in on(2, words, here)[0]
