"""What is wrong in a command is refused: at once, in a line that names it, and nothing is done."""

import shlex
from pathlib import Path
from unittest import mock

import h5py
import numpy as np
import pytest

from grape6py import Hermite, archive, plummer, write_snapshot
from grape6py.cli import main
from grape6py.files.formats import FORMATS
from runs import process, run, times

ENDINGS = [end for format_ in FORMATS.values() for end in format_.endings]
LEAPFROG = "run --n 20 --t-end 0.1 --integrator leapfrog"
TREE = f"{LEAPFROG} --backend cpu-tree"
UNITS = {"Msum pc": "did you mean Msun?", "Msun": "mass and length", "pc Msun": "no unit of mass",
         "Msun pc km/s Myr": "Msun kpc km/s", "-1 Msun pc": "above zero", "Msun pc pc": "pc",
         "0 Msun pc": "above zero", "Msun pc km/h": "unit of time", "Msun parsecs": "parsec",
         "Msun pc kg": "unit of time", "": "units"}  # fmt: skip

# What a line names, and commands that it is about, of words that no command has,
USAGE = [
    ("", "dance; bench direct --n 0; convert; convert cluster.h5; convert cluster.h5 a.txt b.txt"),
    ("--wurst", "convert cluster.h5 a.txt --form nemo --wurst"), ("1024", "run plummer 1024"),
    # with the nearest one,
    ("--tend 3 (did you mean --t-end?)", "run king --tend 3"), ("--fast", "bench direct --fast"),
    ("-n 9 (did you mean --n?)", "run king -n 9"),
    ("--jsn (did you mean --json?)", "info --jsn"), ("--set", "info --set gas"),
    # numbers,
    *((f"argument {words.split()[-2]}: ", words) for words in """run --escape -1e30
      run --escape -inf|run --escape nan|run --eps -1e-3|run --t-end inf|run --G -1|run --theta -.5
      bench direct --seconds nan|bench direct --seconds -1e3|bench direct --n -1
      selftest --seed -1|convert a b --which -1e3""".replace("\n", "|").split("|")),
    # of runs: an option,
    *((words.split()[-2], words) for words in f"""run --n 0|run --n many|run two.dat --n 5
      run --t-end -1|run --eta 0|run --eta inf|run --eta-start -1|run --passes 0|run --dt 0
      run --dt-out 0|run --precision half|run --backend abacus|run --plot a.gif|run --seed -1
      run --threads -1|run --threads 99999|run --integrator euler|{TREE} --dt 0.1 --theta -1
      run king --w0 0.5|run king --w0 13|run king --w0 deep|run two.dat --w0 5
      run two.dat --restart --w0 5|run galaxy --black-hole -1|run uniform --virial-ratio 1
      run uniform --virial-ratio -1|run --virial-ratio 0|run merger --mass-ratio 0
      run king --mass-ratio 5|run merger --pericentre 0|run merger --separation -3
      convert cluster.h5 a.txt --which x|convert cluster.h5 a.txt --which 0.5"""
      .replace("\n", "|").split("|")),
    # or several, or what is wrong with them,
    ("--restart", "run --restart"), ("--dt", "run --dt 0.1 --dt-max 0.1"),
    ("--theta: not of --integrator hermite", "run --theta 0.5"),
    ("--passes: not of --integrator leapfrog", f"{TREE} --dt 0.1 --passes 2"),
    ("needs --dt", TREE), ("--dt", f"{TREE} --dt 0.1 --dt-max 0.1"),
    ("HDF5", "run king --restart"), ("plummer has no --w0", "run plummer --w0 5"),
    ("--w0, --pericentre", "run galaxy --pericentre 5 --w0 3"),
    ("'4' is not a number from 1 to 3", "run fractal --dimension 4"),
    ("'2' is not a number from 0 to 1", "run plummer --binaries 2"), ("tidal", "run --escape far"),
    ("galaxy has no --binaries", "run galaxy --binaries 0.5"),
    ("fractal has no --mass-function", "run fractal --mass-function kroupa"),
    ("--encounter", "run --on-encounter merge"), ("six numbers", "run --orbit 1,2,3"),
    ("expected one argument", "run --units"),
    ("leave out --units", "run run.h5 --restart --t-end 1 --units 'Msun pc'"),
]  # fmt: skip
# of models and integrations, and of files.
IMPOSSIBLE = [
    ("order = 9", f"{TREE} --dt 0.1 --order 9"), ("eps = 0", f"{TREE} --dt-max 0.1 --eps 0"),
    ("theta is a tree's", f"{LEAPFROG} --backend cpu --dt 0.1 --theta 0.5"),
    ("--n 51", "run merger --n 51"), ("separation", "run merger --separation 1"),
    ("needs bodies", "run merger --n 2; run galaxy --n 1 --black-hole 1"),
    ("give --mass-function", "run plummer --segregation 1"),
    ("there are mwpotential2014", "run --field dark"), ("mass=..., scale", "run --field nfw,m=1"),
    ("'x' is not a number", "run --field nfw,mass=1,scale=x"),
    ("nfw needs mass, scale", "run --field nfw,mass=1"),
    ("give the field", "run --orbit 1,2,3,4,5,6"),
    ("scale > 0", "run --n 9 --field nfw,mass=1,scale=-1"),
    ("Hermite does", f"{LEAPFROG} --encounter 1 --dt 0.1 --backend cpu"),
    ("plumer is no file, and no model (did you mean plummer?): those are ",
     "run plumer; run plumer --n 40"),
    *((name, f"run {name} --t-end 1; run {name} --restart --t-end 1") for name in """words.dat
      empty.dat garbage.h5 text.h5 folder.nemo foreign.h5 cut.h5 nowhere.dat nowhere.h5
      binary.dat""".split()),
    *((place, f"run --n 9 {option} {place}/a.png") for place in ("words.dat", "two.dat")
      for option in ("--out", "--plot")),
    ("folder.png", "run --n 9 --out folder.png; run --n 9 --plot folder.png"),
    ("folder.nemo is a folder: name a file in it", "run --n 9 --out folder.nemo"),
    ("folder.nemo: Is a directory", "run folder.nemo"),
    ("/proc/none: No such file or directory", "run --n 9 --out /proc/none/a.h5"),
    ("0.25", "run run.h5 --restart --t-end 0.25 --out two.dat"),
    *((name, f"convert {name} old.nemo") for name in
      "words.dat cut.nemo binary.dat garbage.h5 row.txt nowhere.txt".split()),
    ("is one file", "convert cluster.h5 a.nemo --files 2"),
    ("at least one", "convert cluster.h5 a.h5 --files 0"),
    ("too many", "convert cluster.h5 a.h5 --files 99999"),
    ("too many", "convert cluster.h5 a.h5 --files 1000000000000"),  # at once
    ("G = 1", "convert cluster.h5 a.conf3 --units 'Msun pc km/s'"),
    ("G = 1", "convert cluster.h5 a.dyn --units 'Msun pc km/s'"),
    ("did you mean Msun?", "convert cluster.h5 a.txt --units 'Msum pc'"),
    ("single precision", "convert large.txt old.gadget"), ("unknown format", "info binary.dat"),
    ("folder.nemo", "convert cluster.h5 folder.nemo; convert folder.nemo out.txt"),
    ("row.txt", "convert cluster.h5 row.txt/out.nemo"),
    *(("did you mean nemo?|" + "|".join(FORMATS), f"convert cluster.h5 a.txt {option} nemoo")
      for option in ("--from", "--format")),
    *(("|".join([target, *ENDINGS]), f"convert {source} {target}")  # before a file is read
      for target in ("a.txtt", "a.png", "a.nemo.old") for source in ("cluster.h5", "nowhere.txt")),
    ("|".join(["x.txtt", *ENDINGS]), "run --n 20 --out x.txtt"),
    ("no.h5", "movie no.h5"), ("ends in .gif or .mp4", "movie run.h5 --out a"),
    ("'.avi': the name of a movie ends in .gif or .mp4", "movie run.h5 --out a.avi"),
    ("has one output, and a movie needs two: run longer", "movie run/000001.hdf5"),
    ("size = 0.0 is not above zero", "movie run.h5 --size 0"),
    ("is a folder", "movie run.h5 --out folder.gif"),
    *((f"fps = {float(fps)}", f"movie run.h5 --fps {fps}")
      for fps in ("-1", "-1e3", "nan", "1e-300", "1e300")),
]  # fmt: skip
EITHER = [(said, f"run plummer --n 9 --units '{text}'") for text, said in UNITS.items()]
CASES = [
    (statuses, named, words) for statuses, table in (((2,), USAGE), ((1,), IMPOSSIBLE),
                                                     ((1, 2), EITHER))
    for named, some in table for words in some.split("; ")
]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder of sound, damaged and foreign files."""
    folder = tmp_path_factory.mktemp("files")
    binary, start = bytes(range(256)) * 9, b"\x89HDF\r\n\x1a\n"
    for name, content in {
        "two.dat": b"1 0 0 0 0 0 0\n1 1 0 0 0 0 0\n", "words.dat": b"these are no bodies\n",
        "empty.dat": b"# nothing\n", "garbage.h5": start + binary, "text.h5": b"not HDF5\n",
        "binary.dat": binary, "cut.nemo": b"\x92\x0b(", "row.txt": b"1 2 3\n", "old.nemo": b"old",
        "large.txt": b"1e39 0 0 0 0 0 0\n", "old.gadget": b"old",
    }.items():  # fmt: skip
        (folder / name).write_bytes(content)
    for name in "folder.nemo", "folder.png", "folder.gif":
        (folder / name).mkdir()
    with h5py.File(folder / "foreign.h5", "w") as file:
        file["stars"] = np.arange(3.0)
    write_snapshot(folder / "cluster.h5", plummer(100, seed=1), time=0.375)
    cluster = Hermite(*plummer(30, 1), eps=0.1, backend="cpu")
    for time in (0.0, 0.25, 0.5):
        cluster.evolve(time)
        archive.save(folder / "run.h5", cluster)
    (folder / "cut.h5").write_bytes((folder / "run.h5").read_bytes()[:2000])
    return folder


def contents():
    return {path: path.stat().st_mtime_ns for path in Path().rglob("*")}


@pytest.mark.parametrize(("statuses", "named", "words"), CASES)
def test_what_is_wrong_is_named_in_one_line(files, capfd, monkeypatch, statuses, named, words):
    monkeypatch.chdir(files)
    monkeypatch.setattr(Hermite, "evolve", mock.Mock(side_effect=AssertionError("it was begun")))
    before = contents()
    try:
        status = main(shlex.split(words))
    except SystemExit as leaving:
        status = leaving.code
    lines = capfd.readouterr().err.splitlines()
    assert status in statuses
    if status == 1:
        assert lines[0].startswith("grape6: ")
        assert len(lines) == 1 or "words.dat" in words or "binary.dat" in words  # each bad line
    else:
        assert lines[0].startswith(f"usage: grape6 {words.split()[0] if words else ''}"[:14])
    for needle in named.split("|"):
        assert needle in (lines[-1] if status == 2 else "\n".join(lines))
    assert contents() == before


def test_a_file_named_twice_is_written_once(here):
    words = ["--n", "40", "--t-end", "0.25", "--dt-out", 0.25]
    assert run(*words, "--out", "a.h5", "--out", "a.h5") == 0
    assert times("a.h5") == [0, 0.25]


@pytest.mark.parametrize(("named", "words", "env"), [
    ("GRAPE6_CONFIG=nope: it must be a regular file", "", {"GRAPE6_CONFIG": "nope"}),
    ("no NVIDIA driver", "--backend cuda", {"GRAPE6_LOG": "none"}),
])  # fmt: skip
def test_what_the_library_says_is_said_once(here, named, words, env):
    (here / "libcuda.so.1").touch()  # no driver, whatever the machine has
    done = process(*words.split(), folder=here, LD_LIBRARY_PATH=str(here), **env)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"grape6: {named}")
