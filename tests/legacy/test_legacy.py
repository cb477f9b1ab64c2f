"""Old programs and the Fortran module: they build, link, start anywhere, and are right.

The programs in legacy_examples/ are built by their Makefile and run with an empty
environment; what they print is compared with sums made here in NumPy.
"""

import functools
import re
import subprocess

import numpy as np
import pytest

import capi
import tools
from grape6py import models, read_snapshot, reference
from legacy import (
    AUTO,
    DOUBLE,
    ENERGY_ERROR,
    EPS,
    GRAPE,
    NUMBER,
    SNAPSHOT,
    assert_energy_is_kept,
    assert_forces,
    density_centre,
    energies,
    forces,
    grape6_config,
    make,
    numbers,
    output_of,
)
from particles import relative
from variants import run as run_tool

MODULE = capi.ROOT / "include" / "g6lib.f90"
PROGRAMS = ["hermite_f77", "hermite"]
HERMITES = [*PROGRAMS, "ph4_style"]
MODES = pytest.mark.parametrize("mode", [GRAPE, DOUBLE], ids=["grape", "double"])


# ---- the programs ------------------------------------------------------------


@functools.cache
def truth(eps):
    return reference.direct_sum(*read_snapshot(SNAPSHOT), eps2=eps**2, extended=True)


@MODES
@pytest.mark.parametrize(
    "words",
    ["hermite", "kira_style", "ph4_style", "ph4_style -e 0", "treecode -o 0", "treecode_g5 -o 0"]
    + [f"grape5_style -j {size}" for size in (2000, 1024, 300, 1)],
)
def test_forces_are_the_direct_sum(run, mode, words):
    name, *options = words.split()
    text = output_of(run(name, SNAPSHOT, *options, "-t", "0.001", "-f", environment=mode))
    assert_forces(text, truth(0 if "-e" in options else EPS), mode)


# Limits of the energy's error and of that by the potential; lines of forces that nobody asked for.
ENERGY = {
    **dict.fromkeys(PROGRAMS, (ENERGY_ERROR, 1e-7, 0)),
    **dict.fromkeys(["ph4_style", "kira_style"], (ENERGY_ERROR, 1e-7, 5)),
    **dict.fromkeys(["treecode", "treecode_walks", "treecode_g5"], (1e-4, 1e-3, 5)),
    "grape5_style": (1e-4, 1e-7, 5),
}


@pytest.mark.parametrize(("name", "mode"), [
    *[(name, AUTO) for name in ENERGY],
    *[(name, DOUBLE) for name in ("hermite_f77", "treecode")],
])  # fmt: skip
def test_3_26_energy_is_kept(run, stars, distance, name, mode):
    """That of the snapshot, over one time unit."""
    limit, pot_limit, printed = ENERGY[name]
    mass, _, vel = stars
    potential = mass[:, None] * mass / np.sqrt(distance**2 + EPS**2)
    want = 0.5 * (mass @ (vel**2).sum(axis=1)) - 0.5 * potential.sum()
    text = output_of(run(name, SNAPSHOT, environment=mode))
    assert energies(text)[0, 1] == pytest.approx(want, rel=1e-10)
    assert_energy_is_kept(text, limit, pot_limit)
    assert len(re.findall(r" force +\d", text)) == printed


@pytest.mark.parametrize("name", HERMITES)
def test_closest_pair_and_density_centre_follow_from_neighbours(run, stars, distance, name):
    text = output_of(run(name, SNAPSHOT))
    first, second, length = numbers(rf"closest pair{NUMBER}{NUMBER}\s+distance{NUMBER}", text)[0]
    want = np.unravel_index(distance.argmin(), distance.shape)
    assert {int(first) - 1, int(second) - 1} == set(map(int, want))
    assert length == pytest.approx(distance.min(), rel=1e-4)
    got = numbers(rf"density centre{NUMBER * 3}\s+density radius{NUMBER}", text)[0]
    assert got == pytest.approx(density_centre(*stars[:2], distance), abs=1.1e-5)
    assert "no density" not in text


# What does not matter to a program: environment and arguments.
NO_MATTER = {
    "hermite_f77": ["GRAPE6_NPIPES=16384 GRAPE6_NEIGHBOUR_SELF=1"],
    "hermite": ["GRAPE6_NPIPES=16384 GRAPE6_NEIGHBOUR_SELF=1"],
    "grape5_style": ["GRAPE6_NPIPES=16384", "GRAPE6_G5_POT_SIGN=-1 -n"],
    "kira_style": ["GRAPE6_NPIPES=16384 GRAPE6_NEIGHBOUR_SELF=1", "GRAPE6_CLIENT=kira"],
    "ph4_style": ["GRAPE6_NPIPES=16384", "GRAPE6_CLIENT=ph4",
                  *[f"-i {pattern}" for pattern in range(3)],  # of the ids, see 3.17
                  "-r 32652", "-r -5"],  # clusters, see 3.14
    "treecode": ["GRAPE6_NPIPES=16384", "GRAPE6_CLIENT=bhtree"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "words"), [
    (name, words) for name, more in NO_MATTER.items()
    for words in ["GRAPE6_NPIPES=1 GRAPE6_THREADS=1", *more]
])  # fmt: skip
def test_3_7_3_13_output_does_not_depend_on_pipes_threads_and_client(run, name, words):
    short = ["-1", "0.02", "0.0625"] if name == "hermite_f77" else ["-t", "0.0625", "-f"]
    environment = tuple(tuple(w.split("=")) for w in words.split() if "=" in w)
    more = [w for w in words.split() if "=" not in w]
    text = output_of(run(name, SNAPSHOT, *short, *more, environment=environment))
    assert text == output_of(run(name, SNAPSHOT, *short))


@pytest.mark.parametrize(
    "name", ["hermite", "ph4_style", "grape5_style", "treecode", "treecode_walks", "treecode_g5"]
)
def test_the_smallest_systems_without_softening(run, tmp_path, name):
    """A body's own m / eps is not there to be taken out of its potential."""
    for n in (1, 2):
        file = tmp_path / f"{n}.dat"
        file.write_text("".join(f"1 {i} 0 0 0 {0.5 - i} 0\n" for i in range(n)))
        acc, pot = forces(output_of(run(name, file, "-e", "0", "-t", "0.01", "-f")))
        np.testing.assert_allclose(acc[:, 0], [1, -1] if n == 2 else [0], rtol=1e-6)
        np.testing.assert_allclose(pot, [-1, -1] if n == 2 else [0], rtol=1e-6)


@MODES
def test_i_particles_may_lie_on_j_particles_of_other_indices(run, mode):
    """Forces and energies are those of the run whose indices match."""
    arguments = SNAPSHOT, "-t", "0.25", "-f"
    plain = output_of(run("hermite", *arguments, environment=mode))
    other = output_of(run("hermite", *arguments, "-i", environment=mode))
    (acc, pot), (acc_other, pot_other) = forces(plain), forces(other)
    limit = 1e-6 if mode == GRAPE else 1e-12
    assert relative(acc_other, acc).max() <= limit
    assert np.abs(pot_other / pot - 1).max() <= limit
    assert energies(other) == pytest.approx(energies(plain), rel=ENERGY_ERROR)
    assert plain.count("density centre") == other.count("density centre")
    assert "no density" not in other
    assert "closest pair" not in other


@pytest.mark.parametrize(("text", "reason"), [
    (None, "cannot open"), ("", "no bodies in"), ("# m x y z vx vy vz\n\n", "no bodies in"),
    ("1 0 0 0 0 0 0\n1 1 0 0 0 0\n1 2 0 0 0 0 0\n", "body 2 is not m x y z vx vy vz"),
    ("1 0 0 0 0 0 0\n1 one 0 0 0 0 0\n", "body 2 is not"), ("1 nan 0 0 0 0 0\n", "body 1 is not"),
    ("1 0 0 Inf 0 0 0\n", "body 1 is not"), ("-1 1 0 0 0 0 0\n", "body 1 is not"),
    ("1 0 0 0 0 0 0\n" * 16385, "more bodies than NMAX = 16384 in"),
], ids=lambda text: f"{text:.20}" if text else "none")  # fmt: skip
def test_fortran_program_refuses_broken_snapshots(run, tmp_path, text, reason):
    file = tmp_path / "broken.dat"
    if text is not None:
        file.write_text(text)
    process = run("hermite_f77", file)
    assert process.returncode == 1
    assert reason in re.sub(" +", " ", process.stderr)
    assert "broken.dat" in process.stderr
    assert process.stdout == ""


# What each program cannot be asked for, and a part of what it then says.
WRONG = [
    ("hermite", "[-t tend]", "-e; -t 0; -a x; -q 1; -"),
    ("hermite", "need softening", "-i -e 0"),  # particles on each other
    ("grape5_style", "[-j size]", "-e; -j 0; -d 0; -t x; -q 1"),
    ("kira_style", "[-r blocks]", "-e; -a 0; -n 12; -r -1; -t x; -q 1"),
    ("ph4_style", "ph4_style: ", "-e; -t 0; -a x; -q 1"),
    ("treecode", "[-o theta]", "-e; -o 1.5; -o nan; -d 0; -t x; -g 0; -q 1; -; -fx"),
]


@pytest.mark.parametrize(("name", "said", "arguments"), [
    (name, said, words) for name, said, wrong in WRONG for words in wrong.split("; ")
])  # fmt: skip
def test_bad_options_end_with_the_usage_and_status_1(run, name, said, arguments):
    process = run(name, SNAPSHOT, *arguments.split())
    assert process.returncode == 1
    assert said in process.stderr
    assert process.stdout == ""


@pytest.mark.full
def test_makefile_without_compilers_says_so_and_builds_the_c_programs(tmp_path):
    missing = [f"{name}=no-such-compiler" for name in ("FC", "CXX", "MPICC", "MPIF90")]
    said = make(tmp_path, *missing).stdout
    assert "gfortran not found: apt-get install gfortran" in said
    assert "ph4_style left out: no-such-compiler not found: apt-get install g++" in said
    assert "mpi_hermite left out: no-such-compiler not found: apt-get install libopenmpi" in said
    assert "treecode_mpi left out: no-such-compiler not found: apt-get install libopenmpi" in said
    built = {p.name for p in tmp_path.iterdir()}
    assert {"hermite", "treecode", "treecode_walks", "treecode_g5", "kira_style"} <= built
    assert not built & {"hermite_f77", "ph4_style", "mpi_hermite", "treecode_mpi"}


def test_shipped_snapshot_is_the_model_it_says(stars):
    want = models.plummer(1024, seed=1, mass_fraction=0.999, rescale=True)
    for got, expected in zip(stars, want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-15)
    assert SNAPSHOT.stat().st_size <= 200_000


# ---- the Fortran module ------------------------------------------------------


def fortran_interfaces():
    """{name: [(argument, letter)]}: i integer, l long, d double, by value; p by reference."""
    text = re.sub(r"!.*", "", MODULE.read_text()).replace("\n", "\f")
    text = re.sub(r"&\s*\f\s*", "", text).replace("\f", "\n").lower()
    found = {}
    pattern = r"function (\w+)\s*\(([^)]*)\)\s*bind\(c(?:, name='(\w+)')?\)(.*?)end function"
    for name, arguments, label, body in re.findall(pattern, text, re.DOTALL):
        assert label in ("", name)
        letters = {}
        declaration = r"^\s*(\w+\(\w+=?\w*\))(.*?)::(.*)$"
        for kind, attributes, entities in re.findall(declaration, body, re.M):
            letter = {"integer(c_int)": "i", "integer(c_long_long)": "l", "real(c_double)": "d"}
            letter = letter.get(kind, "p") if "value" in attributes else "p"
            for entity in re.sub(r"\([^)]*\)", "", entities).split(","):
                letters[entity.strip()] = letter
        names = [a.strip() for a in arguments.split(",") if a.strip()]
        assert set(names) == set(letters), name
        found[name] = [(a, letters[a]) for a in names]
    for like, names in re.findall(r"^\s*procedure\((\w+)\), bind\(c\) :: (.*)$", text, re.M):
        found.update({name.strip(): found[like] for name in names.split(",")})
    return found


def test_each_call_of_the_header_has_its_fortran_interface():
    interfaces = fortran_interfaces()
    assert len(capi.SIGNATURES) > 70
    assert set(interfaces) == set(capi.SIGNATURES)
    for name, arguments in capi.header_arguments(capi.HEADER).items():
        assert [a for a, _ in interfaces[name]] == [a.lower() for a in arguments], name
        assert "".join(letter for _, letter in interfaces[name]) == capi.SIGNATURES[name], name


def test_each_constant_of_the_header_is_in_the_fortran_module():
    pairs = re.findall(r"\b(G6X_\w+) = (-?\d+)", re.sub(r"!.*", "", MODULE.read_text()))
    assert {name: int(value) for name, value in pairs} == capi.CONSTANTS


def test_fortran_module_is_clean_standard_fortran_2003(tmp_path):
    tools.need("gfortran")
    strict = ["-std=f2003", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run(["gfortran", *strict, "-c", MODULE], cwd=tmp_path, check=True, timeout=120)
    assert max(map(len, MODULE.read_text().splitlines())) < 100


@pytest.mark.parametrize(("name", "standard", "said"), [
    ("two_body", "f2003", "two bodies"), ("block_step", "f2003", "block steps"),
    ("walks", "f2008", "walks"),
])  # fmt: skip
def test_a_fortran_program_with_the_module_gets_what_is_right(tmp_path, name, standard, said):
    tools.need("gfortran")
    sources = MODULE, capi.TESTS / "fortran" / f"{name}.f90"
    flags = [f"-std={standard}", *sources, "-o", name, *grape6_config("--libs")]
    subprocess.run(["gfortran", *flags], cwd=tmp_path, check=True, timeout=120)
    done = subprocess.run([tmp_path / name], env={}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"{said}: all right\n"), done.stderr


def test_linked_programs_load_the_library_and_no_python(build):
    tools.need("ldd")
    for program in build.iterdir():
        listed = run_tool(["ldd", program], env={}).stdout
        assert "libgrape6.so => /" in listed
        assert "libpython" not in listed
