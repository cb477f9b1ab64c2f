"""Old programs and the Fortran module: they build, link, start anywhere, and are right.

The programs in legacy_examples/ are built by their Makefile and run with an empty
environment; what they print is compared with sums made here in NumPy."""

import functools
import re

import numpy as np
import pytest

import capi
import legacy
import tools
from grape6py import models, read_snapshot, reference
from legacy import DOUBLE, ENERGY_ERROR, EPS, GRAPE, NUMBER, SNAPSHOT, energies, numbers, output_of
from test_contract_pointers import MAY_BE_NULL, OWN_TESTS
from tools import run as run_tool

MODULE = capi.ROOT / "include" / "g6lib.f90"
PROGRAMS = ["hermite_f77", "hermite"]
TREECODES = ["treecode", "treecode_walks", "treecode_g5"]


# ---- the programs ------------------------------------------------------------
@functools.cache
def truth(eps):
    return reference.direct_sum(*read_snapshot(SNAPSHOT), eps2=eps**2, extended=True)


@pytest.mark.parametrize(("words", "mode"), [
    *((words, GRAPE) for words in ("hermite", "kira_style", "treecode -o 0", "treecode_g5 -o 0")),
    *((words, DOUBLE) for words in ("ph4_style", "ph4_style -e 0", "treecode_g5 -o 0")),
    ("grape5_style -j 2000", DOUBLE), ("grape5_style -j 1024", GRAPE),
    ("grape5_style -j 300", GRAPE), ("grape5_style -j 16", DOUBLE),
])  # fmt: skip
def test_forces_are_the_direct_sum(run, mode, words):
    name, *options = words.split()
    text = output_of(run(name, SNAPSHOT, *options, "-t", "0.001", "-f", environment=mode))
    legacy.assert_forces(text, truth(0 if "-e" in options else EPS), mode)


# Limits of the energy's error and of that by the potential; lines of forces that nobody asked for.
ENERGY = {**dict.fromkeys(PROGRAMS, (ENERGY_ERROR, 1e-7, 0)),
          **dict.fromkeys(["ph4_style", "kira_style"], (ENERGY_ERROR, 1e-7, 5)),
          **dict.fromkeys(TREECODES, (1e-4, 1e-3, 5)),
          "grape5_style": (1e-4, 1e-7, 5)}  # fmt: skip


@pytest.mark.parametrize("name", ENERGY)
def test_3_26_energy_is_kept(run, stars, distance, name):
    """That of the snapshot, over one time unit."""
    limit, pot_limit, printed = ENERGY[name]
    mass, _, vel = stars
    potential = mass[:, None] * mass / np.sqrt(distance**2 + EPS**2)
    want = 0.5 * (mass @ (vel**2).sum(axis=1)) - 0.5 * potential.sum()
    text = output_of(run(name, SNAPSHOT))
    assert energies(text)[0, 1] == pytest.approx(want, rel=1e-10)
    legacy.assert_energy_is_kept(text, limit, pot_limit)
    assert len(re.findall(r" force +\d", text)) == printed


def test_lists_are_shared_and_the_potential_needs_no_self_term(run):
    """Makino's code adds m/eps to each potential: here that would be 0.5 of the energy (3.35)."""
    done = run("treecode", SNAPSHOT, "-o", "0", "-t", "0.001", "-f")
    host, pot = energies(output_of(done))[0, 1:]
    assert pot == pytest.approx(host, rel=1e-7)
    text = output_of(run("treecode", SNAPSHOT))
    steps, lists, length = numbers(rf"steps{NUMBER}\s+lists{NUMBER}\s+mean length{NUMBER}", text)[0]
    assert steps == 512
    assert lists < 0.2 * 1024 * (steps + 1)
    assert 50 < length < 700


@pytest.mark.parametrize("name", [*PROGRAMS, "ph4_style"])
def test_closest_pair_and_density_centre_follow_from_neighbours(run, stars, distance, name):
    text = output_of(run(name, SNAPSHOT))
    first, second, length = numbers(rf"closest pair{NUMBER}{NUMBER}\s+distance{NUMBER}", text)[0]
    want = np.unravel_index(distance.argmin(), distance.shape)
    assert {int(first) - 1, int(second) - 1} == set(map(int, want))
    assert length == pytest.approx(distance.min(), rel=1e-4)
    got = numbers(rf"density centre{NUMBER * 3}\s+density radius{NUMBER}", text)[0]
    assert got == pytest.approx(legacy.density_centre(*stars[:2], distance), abs=1.1e-5)
    assert "no density" not in text


# What does not matter to a program: environment and arguments.
NO_MATTER = {
    "hermite_f77": ["GRAPE6_NPIPES=16384 GRAPE6_NEIGHBOUR_SELF=1"],
    "grape5_style": ["GRAPE6_NPIPES=16384", "GRAPE6_G5_POT_SIGN=-1 -n"],
    "kira_style": ["GRAPE6_NPIPES=16384 GRAPE6_NEIGHBOUR_SELF=1", "GRAPE6_CLIENT=kira"],
    "ph4_style": ["GRAPE6_NPIPES=16384", "GRAPE6_CLIENT=ph4",
                  "-i 1 -r 32652", "-i 2 -r -5"],  # ids and clusters, see 3.17 and 3.14
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


@pytest.mark.parametrize("name", ["hermite", "ph4_style", "grape5_style", *TREECODES])
def test_the_smallest_systems_without_softening(run, tmp_path, name):
    """A body's own m / eps is not there to be taken out of its potential."""
    for n in (1, 2):
        file = tmp_path / f"{n}.dat"
        file.write_text("".join(f"1 {i} 0 0 0 {0.5 - i} 0\n" for i in range(n)))
        acc, pot = legacy.forces(output_of(run(name, file, "-e", "0", "-t", "0.01", "-f")))
        np.testing.assert_allclose(acc[:, 0], [1, -1] if n == 2 else [0], rtol=1e-6)
        np.testing.assert_allclose(pot, [-1, -1] if n == 2 else [0], rtol=1e-6)


def test_3_22_infinite_radii_occur_and_force_passes_collect_no_lists(run):
    text = output_of(run("ph4_style", SNAPSHOT, "-t", "0.0625", "-f"))
    assert numbers(rf"neighbours in the first force pass{NUMBER}", text) == [0]
    tried, infinite = numbers(rf"radii tried{NUMBER}\s+infinite{NUMBER}", text)[0]
    assert infinite > 10
    assert tried > 2 * 1024


def test_3_15_the_by_value_names_of_ph4_style_are_its_own(build):
    tools.need("g++")
    symbols = run_tool([tools.need("nm"), "-P", build / "ph4_style"]).stdout
    kinds = {line.split()[0]: line.split()[1] for line in symbols.splitlines()}
    own = {name for name, kind in kinds.items() if name in capi.SIGNATURES and kind == "T"}
    used = {name for name, kind in kinds.items() if name.rstrip("_") in capi.SIGNATURES} - own
    assert len(own) == 16
    assert used == {name + "_" for name in own}


# What the C programs say of a file, whose reader is snapshot.h; test_fuzz_formats.py fuzzes it.
REASONS = {
    b"1 0 0 0 0 0 0\n\n1 1 \0 0 0 0 0\n": "line 3: y = '?' is not a finite number",
    b"1 2 3\n": "line 1: 3 of the 7 numbers m x y z vx vy vz",
    b"# c\n\n1 2 3 4 5 6 7 8": "line 3: more than 7 numbers",
    b"1 2 3 4 5 6 7\n1 2 nan 4 5 6 7\n": "line 2: y = 'nan' is not a finite number",
    b"1 2 3 4 1e999 6 7\n": "line 1: vx = '1e999' is not a finite number",
    b"1 2 3 4 5 6 " + b"7" * 128: f"line 1: vz = '{'7' * 40}' is not a finite number",
    b"-1 2 3 4 5 6 7\n": "line 1: negative mass", b" \n#": "no bodies in it",
}  # fmt: skip


def test_c_programs_refuse_broken_snapshots_and_read_fortran_numbers(run, tmp_path):
    files = {tmp_path: "cannot be read", tmp_path / "missing": "cannot be opened"}
    for number, (text, reason) in enumerate(REASONS.items()):
        files[tmp_path / str(number)] = reason
        (tmp_path / str(number)).write_bytes(text)
    for path, reason in files.items():
        done = run("hermite", path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"hermite: {path}: {reason}\n"
    two = "# two\n0.5D0 -5.D-1 0 0 0 -0.5d0 0 # one\n\n5.0E-1 0.5 0 0 0 +0.5D+00 0\n"
    file = tmp_path / "many.dat"
    file.write_text("".join(f"0 {i} 2 3 0 0 0\n" for i in range(1500)) + two)
    text = output_of(run("hermite", file, "-e", "0", "-t", "0.001"))
    assert numbers(rf"N ={NUMBER}", text) == [1502]
    assert energies(text)[0, 1] == pytest.approx(0.125 - 0.25, rel=1e-10)


def test_shipped_snapshot_is_the_model_it_says(stars):
    want = models.plummer(1024, seed=1, mass_fraction=0.999, rescale=True)
    for got, expected in zip(stars, want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-15)
    assert SNAPSHOT.stat().st_size <= 200_000


# ---- the Fortran module ------------------------------------------------------
LETTERS = {"integer(c_int), value": "i", "integer(c_long_long), value": "l",
           "real(c_double), value": "d"}  # fmt: skip


def test_each_call_of_the_header_has_its_fortran_interface():
    text = re.sub(r"&\n *", "", MODULE.read_text())
    headers = capi.header_arguments(capi.HEADER)
    found = re.findall(r"function (\w+)\((.*?)\) bind\(c\)\n(.*?)end function", text, re.DOTALL)
    assert len(found) == len(headers) > 70
    for name, arguments, body in found:
        declared = re.findall(r"^ *(.*?) :: (\w+)", body, re.M)
        assert re.findall(r"\w+", arguments) == [a for _, a in declared] == headers[name], name
        letters = "".join(LETTERS.get(kind, "p") for kind, _ in declared)
        assert letters == capi.SIGNATURES[name], name
        absent = {k for k, (kind, _) in enumerate(declared) if kind == "type(c_ptr), value"}
        if name.startswith("g6x_") and not name.startswith(OWN_TESTS):
            null = MAY_BE_NULL.get(name, set())
            assert absent >= null if "_device" in name else absent == null, name


def test_each_constant_of_the_header_is_in_the_fortran_module():
    pairs = re.findall(r"\b(G6X_\w+) = (-?\d+)", re.sub(r"!.*", "", MODULE.read_text()))
    assert {name: int(value) for name, value in pairs} == capi.CONSTANTS


def test_fortran_module_is_clean_standard_fortran_2003(tmp_path):
    tools.need("gfortran")
    strict = ["-std=f2003", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    run_tool(["gfortran", *strict, "-c", MODULE], cwd=tmp_path, timeout=120)
    assert max(map(len, MODULE.read_text().splitlines())) < 100


@pytest.mark.parametrize(("name", "standard", "said"), [
    ("two_body", "f2003", "two bodies"), ("blocks_and_walks", "f2008", "blocks and walks"),
])  # fmt: skip
def test_a_fortran_program_with_the_module_gets_what_is_right(tmp_path, name, standard, said):
    tools.need("gfortran")
    sources = MODULE, capi.TESTS / "fortran" / f"{name}.f90"
    flags = [f"-std={standard}", *sources, "-o", name, *legacy.grape6_config("--libs")]
    run_tool(["gfortran", *flags], cwd=tmp_path, timeout=120)
    assert run_tool([tmp_path / name], env={}, timeout=60).stdout == f"{said}: all right\n"
