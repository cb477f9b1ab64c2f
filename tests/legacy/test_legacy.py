"""Old programs and the Fortran module: they build, link, start anywhere, and are right.

The programs in legacy_examples/ are built by their Makefile and run with an empty
environment; what they print is compared with sums made here in NumPy.
"""

import re
import subprocess

import numpy as np
import pytest

import capi
import tools
from grape6py import models, reference
from legacy import (
    ENERGY_ERROR,
    EPS,
    NUMBER,
    SNAPSHOT,
    assert_energy_is_kept,
    density_centre,
    energies,
    force_errors,
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


# ---- the programs ------------------------------------------------------------


@pytest.mark.parametrize("mode", ["grape", "double"])
@pytest.mark.parametrize("name", HERMITES)
def test_energy_is_kept_over_one_time_unit(run, name, mode):
    environment = () if mode == "grape" else (("GRAPE6_PRECISION", mode),)
    assert_energy_is_kept(output_of(run(name, SNAPSHOT, environment=environment)))


@pytest.mark.parametrize("mode", ["grape", "double"])
def test_both_programs_and_double_agree_on_the_energy(run, mode):
    environment = () if mode == "grape" else (("GRAPE6_PRECISION", mode),)
    reference = energies(
        output_of(run("hermite", SNAPSHOT, environment=(("GRAPE6_PRECISION", "double"),)))
    )
    for name in PROGRAMS:
        got = energies(output_of(run(name, SNAPSHOT, environment=environment)))
        assert np.abs(got[:, 1:] / reference[:, 1:] - 1).max() <= ENERGY_ERROR


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_first_energy_is_that_of_the_snapshot(run, stars, distance, name):
    mass, _, vel = stars
    potential = mass[:, None] * mass / np.sqrt(distance**2 + EPS**2)
    want = 0.5 * (mass @ (vel**2).sum(axis=1)) - 0.5 * potential.sum()
    _, host, pot = energies(output_of(run(name, SNAPSHOT)))[0]
    assert host == pytest.approx(want, rel=1e-10)
    assert pot == pytest.approx(want, rel=1e-7)


@pytest.mark.parametrize("name", HERMITES)
def test_the_closest_pair_is_found_through_nearest_neighbours(run, distance, name):
    text = output_of(run(name, SNAPSHOT))
    first, second, length = numbers(rf"closest pair{NUMBER}{NUMBER}\s+distance{NUMBER}", text)[0]
    want = np.unravel_index(distance.argmin(), distance.shape)
    assert {int(first) - 1, int(second) - 1} == set(map(int, want))
    assert length == pytest.approx(distance.min(), rel=1e-4)


@pytest.mark.parametrize("name", HERMITES)
def test_the_density_centre_follows_from_neighbour_lists(run, stars, distance, name):
    text = output_of(run(name, SNAPSHOT))
    got = numbers(rf"density centre{NUMBER * 3}\s+density radius{NUMBER}", text)[0]
    assert got == pytest.approx(density_centre(*stars[:2], distance), abs=1.1e-5)
    assert "no density" not in text


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    "environment",
    [(("GRAPE6_NPIPES", "7"),), (("GRAPE6_NPIPES", "16384"),), (("GRAPE6_NEIGHBOUR_SELF", "1"),)],
    ids=lambda e: "=".join(e[0]),
)
def test_output_does_not_depend_on_pipes_or_self_in_the_lists(run, name, environment):
    short = ("-t", "0.0625") if name == "hermite" else ("-1", "0.02", "0.0625")
    text = output_of(run(name, SNAPSHOT, *short))
    assert output_of(run(name, SNAPSHOT, *short, environment=environment)) == text


@pytest.mark.parametrize("name", PROGRAMS)
def test_fortran_exponents_and_comments_are_read(run, tmp_path, name):
    file = tmp_path / "two.dat"
    file.write_text("# two\n0.5D0 -5.D-1 0 0 0 -0.5d0 0 # one\n\n5.0E-1 0.5 0 0 0 +0.5D+00 0\n")
    options = ("-e", "0") if name == "hermite" else ("0",)
    text = output_of(run(name, file, *options))
    assert energies(text)[0, 1] == pytest.approx(0.125 - 0.25, rel=1e-10)


def test_c_program_prints_the_forces_at_the_start_if_asked(run, stars):
    exact = reference.direct_sum(*stars, eps2=EPS**2)
    text = output_of(run("hermite", SNAPSHOT, "-t", "0.0625", "-f"))
    acc, pot = force_errors(text, exact)
    assert len(acc) == 1024
    assert max(acc.max(), pot.max()) <= 1e-6
    assert "force" not in output_of(run("hermite", SNAPSHOT, "-t", "0.0625"))


@pytest.mark.parametrize("mode", ["grape", "double"])
def test_i_particles_may_lie_on_j_particles_of_other_indices(run, mode):
    """Forces and energies are those of the run whose indices match."""
    environment = (("GRAPE6_PRECISION", mode),)
    arguments = SNAPSHOT, "-t", "0.25", "-f"
    plain = output_of(run("hermite", *arguments, environment=environment))
    other = output_of(run("hermite", *arguments, "-i", environment=environment))
    (acc, pot), (acc_other, pot_other) = forces(plain), forces(other)
    limit = 1e-6 if mode == "grape" else 1e-12
    assert relative(acc_other, acc).max() <= limit
    assert np.abs(pot_other / pot - 1).max() <= limit
    assert energies(other) == pytest.approx(energies(plain), rel=ENERGY_ERROR)
    assert plain.count("density centre") == other.count("density centre")
    assert "no density" not in other
    assert "closest pair" not in other


BROKEN = {
    "empty": "",
    "only-comments": "# m x y z vx vy vz\n\n",
    "six-numbers": "1 0 0 0 0 0 0\n1 1 0 0 0 0\n1 2 0 0 0 0 0\n",
    "a-word": "1 0 0 0 0 0 0\n1 one 0 0 0 0 0\n",
    "nan": "1 0 0 0 0 0 0\n1 nan 0 0 0 0 0\n",
    "infinity": "1 0 0 0 0 0 0\n1 0 0 Inf 0 0 0\n",
    "negative-mass": "1 0 0 0 0 0 0\n-1 1 0 0 0 0 0\n",
}


@pytest.mark.parametrize("case", ["missing", *BROKEN])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_broken_snapshot_ends_with_a_message_and_status_1(run, tmp_path, name, case):
    file = tmp_path / "broken.dat"
    if case != "missing":
        file.write_text(BROKEN[case])
    process = run(name, file)
    assert process.returncode == 1
    assert name in process.stderr
    assert "broken.dat" in process.stderr
    assert "energy" not in process.stdout


def test_fortran_program_refuses_more_bodies_than_its_arrays_hold(run, tmp_path):
    file = tmp_path / "large.dat"
    file.write_text("1 0 0 0 0 0 0\n" * 16385)
    process = run("hermite_f77", file)
    assert process.returncode == 1
    assert "more bodies than NMAX = 16384" in process.stderr


# What each program cannot be asked for, and a part of what it then says.
WRONG = {
    "hermite": ("[-t tend]", "-e; -t 0; -a x; -q 1; -"),
    "grape5_style": ("[-j size]", "-e; -j 0; -d 0; -t x; -q 1"),
    "kira_style": ("[-r blocks]", "-e; -a 0; -n 12; -r -1; -t x; -q 1"),
    "ph4_style": ("ph4_style: ", "-e; -t 0; -a x; -q 1"),
    "treecode": ("[-o theta]", "-e; -o 1.5; -o nan; -d 0; -t x; -g 0; -q 1; -; -fx"),
}


@pytest.mark.parametrize(("name", "arguments"), [
    (name, words) for name, (_, wrong) in WRONG.items() for words in wrong.split("; ")
])  # fmt: skip
def test_bad_options_end_with_the_usage_and_status_1(run, name, arguments):
    process = run(name, SNAPSHOT, *arguments.split())
    assert process.returncode == 1
    assert WRONG[name][0] in process.stderr
    assert process.stdout == ""


def test_c_program_refuses_particles_on_each_other_without_softening(run):
    process = run("hermite", SNAPSHOT, "-i", "-e", "0")
    assert process.returncode == 1
    assert "need softening" in process.stderr


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
    """{name: [(argument, letter)]}: i integer, d double, by value; p by reference."""
    text = re.sub(r"!.*", "", MODULE.read_text()).replace("\n", "\f")
    text = re.sub(r"&\s*\f\s*", "", text).replace("\f", "\n").lower()
    found = {}
    pattern = r"function (\w+)\s*\(([^)]*)\)\s*bind\(c(?:, name='(\w+)')?\)(.*?)end function"
    for name, arguments, label, body in re.findall(pattern, text, re.DOTALL):
        assert label in ("", name)
        letters = {}
        declaration = r"^\s*(\w+)\(\w+=?\w*\)(.*?)::(.*)$"
        for kind, attributes, entities in re.findall(declaration, body, re.M):
            letter = {"integer": "i", "real": "d"}.get(kind, "p")
            letter = letter if "value" in attributes else "p"
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
    command = [
        "gfortran",
        f"-std={standard}",
        *sources,
        "-o",
        tmp_path / name,
        *grape6_config("--libs"),
    ]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    done = subprocess.run([tmp_path / name], env={}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"{said}: all right\n"), done.stderr


def test_linked_programs_load_the_library_and_no_python(build):
    tools.need("ldd")
    for program in build.iterdir():
        listed = run_tool(["ldd", program], env={}).stdout
        assert "libgrape6.so => /" in listed
        assert "libpython" not in listed
