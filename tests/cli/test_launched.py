"""``grape6 run`` where a launcher of MPI programs has started it several times."""

import json
import os
import re
import shutil

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


def without_mpi4py():
    raise MissingPackageError("no mpi4py")


@pytest.fixture
def started(here, monkeypatch):
    """Exit status of a quick run in some environment."""
    monkeypatch.setattr(launched, "_HEAD_START", 0)
    monkeypatch.setattr(ranks, "mpi", without_mpi4py)

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


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of one, two and three ranks: what they print, and their files."""
    folder = tmp_path_factory.mktemp("ranks")
    words = "run plummer --n 1500 --backend cpu --t-end 0.03125 --out"
    for n in (1, 2, 3):
        done = on_ranks.run(n, "-m", "grape6py", *words.split(), f"{n}.h5", "--out", f"{n}.nemo",
                            "--ranks-info", cwd=folder)  # fmt: skip
        assert done.returncode == 0, done.stderr
        (folder / f"{n}.log").write_text(done.stdout)
        assert done.stderr == ""
    return folder


def test_ranks_make_one_run_with_the_bits_of_one(runs):
    assert (runs / "1.nemo").read_bytes() == (runs / "2.nemo").read_bytes()
    assert (runs / "1.nemo").read_bytes() == (runs / "3.nemo").read_bytes()
    assert {path.name for path in runs.iterdir()} == {
        f"{n}{end}" for n in (1, 2, 3) for end in (".h5", "", ".nemo", ".log")
    }


def test_the_first_rank_speaks_for_all(runs):
    def lines(n):  # but for the wall time
        log = (runs / f"{n}.log").read_text().splitlines()
        return [line[:70] for line in log if "." in line and not line.startswith("written")]

    assert lines(1) == lines(2) == lines(3)
    log = (runs / "3.log").read_text()
    assert log.count("rank ") == 3
    assert "3 ranks" in log
    assert re.search(r"rank 2: .*, threads 1, bodies 1024 to 1500", log)
    assert log.count("time ") == 1


def test_a_run_of_ranks_goes_on_on_another_number_of_them(runs):
    words = "-m grape6py run {}.h5 --restart --t-end 0.0625 --out {} --out {}"
    for n in (1, 2):
        names = words.format(n, f"later{n}.h5", f"later{n}.nemo").split()
        done = on_ranks.run(4 - n, *names, cwd=runs)
        assert done.returncode == 0, done.stderr
    assert (runs / "later1.nemo").read_bytes() == (runs / "later2.nemo").read_bytes()
    for n in (1, 2):
        for path in runs.glob(f"later{n}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("backend", ["cpu", "cpu-tree"])
def test_a_run_of_leapfrog_goes_on_on_another_number_of_ranks(here, backend):
    words = "galaxy --n 500 --integrator leapfrog --dt 0.125 --dt-out 0.25 --backend".split()
    assert main(["run", *words, backend, *"--t-end 0.5 --out a.h5 --out one.nemo".split()]) == 0
    more = "-m grape6py run --ranks-info".split()
    done = on_ranks.run(2, *more, *words, backend, *"--t-end 0.25 --out b.h5".split(), cwd=here)
    assert "bodies 0 to 250" in done.stdout, done.stderr
    again = "b.h5 --restart --t-end 0.5 --out three.nemo --plot b.png".split()
    done = on_ranks.run(3, *more, *again, cwd=here)
    assert done.returncode == 0, done.stderr
    assert re.search(r"rank 2: .*, bodies 333 to 500", done.stdout)
    one, three = read_snapshot("one.nemo"), read_snapshot("three.nemo")
    if backend == "cpu":
        assert (here / "one.nemo").read_bytes() == (here / "three.nemo").read_bytes()
    assert three.ids is None or three.ids.tolist() == list(range(500))
    assert np.median(np.abs(three.pos - one.pos)) < 1e-4


@pytest.fixture(scope="module")
def galaxy(tmp_path_factory):
    """Runs of a galaxy on one and on three ranks, and what the latter say."""
    folder = tmp_path_factory.mktemp("galaxy")
    words = "-m grape6py run galaxy --n 400 --integrator leapfrog --dt 0.125 --dt-out 0.25".split()
    for n in (1, 3):
        more = f"--backend cpu --t-end 0.5 --out {n}.h5 --out {n}.nemo --plot {n}.png".split()
        done = on_ranks.run(n, *words, *more, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


def test_outputs_of_shared_bodies_are_in_numbered_files(galaxy):
    assert sorted(path.name for path in galaxy.glob("1/*.hdf5")) == [
        f"{k:06d}.hdf5" for k in range(3)
    ]
    assert sorted(path.name for path in galaxy.glob("3/*.hdf5")) == [
        f"{k:06d}.{rank}.hdf5" for k in range(3) for rank in range(3)
    ]
    assert (galaxy / "1.nemo").read_bytes() == (galaxy / "3.nemo").read_bytes()
    assert (galaxy / "3.png").stat().st_size > 1000
    one, three = (archive.read_labelled(galaxy / f"{n}.h5") for n in (1, 3))
    assert [x.tobytes() for x in (*one[0], one[1])] == [x.tobytes() for x in (*three[0], three[1])]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_they_are_gone_on_from_and_begun_with_on_any_number_of_ranks(galaxy, here, n):
    for name in "13":
        again = f"-m grape6py run {galaxy / name}.h5 --restart --t-end 0.75 --out {name}.h5"
        more = f"--out {name}.nemo --plot a.png".split()
        done = on_ranks.run(n, *again.split(), *more, cwd=here)
        assert done.returncode == 0, done.stderr
        new = f"-m grape6py run {galaxy / name}.h5 --integrator leapfrog --dt 0.125 --t-end 0.25"
        more = f"--backend cpu --eps 0.05 --out new{name}.h5".split()
        done = on_ranks.run(n, *new.split(), *more, cwd=here)
        assert done.returncode == 0, done.stderr
        assert "N = 400" in done.stdout
    assert (here / "1.nemo").read_bytes() == (here / "3.nemo").read_bytes()
    for name in ("", "new"):
        (one, its), (three, theirs) = (archive.read_labelled(here / f"{name}{k}.h5") for k in "13")
        assert [x.tobytes() for x in one] == [x.tobytes() for x in three]
        assert np.array_equal(its, theirs)
        assert len(set(its)) > 1


@pytest.mark.parametrize(("last", "words"), [
    (1000, None), (2**48 + 1, None), (2**64 - 1, None), (7, "7 is the number of two bodies"),
])  # fmt: skip
def test_ids_of_a_file_are_kept_or_refused_on_all_ranks(here, last, words):
    ids = (np.arange(300)[::-1] + 8).astype(np.uint64)
    ids[0], ids[299] = 7, last
    write_snapshot("a.hdf5", plummer(300, seed=1), ids=ids, files=2)
    given = "-m grape6py run a.hdf5 --integrator leapfrog --dt 0.0625 --eps 0.1 --t-end 0.0625"
    given = [*given.split(), "--backend", "cpu", "--out", "b.h5"]
    done = on_ranks.run(3, *given, cwd=here)
    if words is not None:
        assert done.returncode == 1
        assert words in done.stderr
        assert "--renumber" in done.stderr
        done, ids = on_ranks.run(3, *given, "--renumber", cwd=here), np.arange(300)
    assert done.returncode == 0, done.stderr
    assert read_snapshot("b.h5").ids.tolist() == ids.tolist()


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
    assert [told in line for line in done.stderr.splitlines() if line.startswith("grape6: ")] == [
        True
    ]
    assert sorted(path.name for path in here.iterdir()) == ["full"]


def test_a_signal_to_one_rank_stops_all(here):
    code = (
        "import os, signal, sys, threading, time\n"
        "from mpi4py import MPI\n"
        "def end():\n"
        "    while not os.path.exists('a.h5'):\n"
        "        time.sleep(0.05)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "if MPI.COMM_WORLD.Get_rank() == 1:\n"
        "    threading.Thread(target=end, daemon=True).start()\n"
        "from grape6py.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    words = "run plummer --n 500 --t-end 1000 --backend cpu --out a.h5".split()
    done = on_ranks.run(2, "-c", code, *words, cwd=here)
    assert "go on with: grape6 run a.h5 --restart" in done.stderr
    assert 0 <= read_snapshot("a.h5").time < 1000


def test_profile_has_the_stages_of_a_tree_of_all_ranks(here):
    words = "run plummer --n 300 --integrator leapfrog --dt 0.01 --eps 0.05 --t-end 0.02 --profile"
    done = on_ranks.run(2, "-m", "grape6py", *words.split(), "--backend", "cpu-tree", "--json")
    stages = json.loads(done.stdout)["stages"]
    assert stages["sum"] > 0
    assert all(stages[name] >= 0 for name in ("keys", "exchange", "wait", "back"))
    done = on_ranks.run(2, "-m", "grape6py", *words.split(), "--backend", "cpu-tree", cwd=here)
    assert "stages of the sums, on the slowest rank: keys " in done.stdout
