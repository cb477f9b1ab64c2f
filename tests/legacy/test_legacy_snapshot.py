"""snapshot.h, the example programs' reader: takes what Python's takes, and any bytes.

The two readers share no code. What one refuses the other does, at the same line; negative masses,
which only the programs refuse, are the exception.
"""

import ctypes
import io
import re
import subprocess

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import capi
from grape6py import read_snapshot
from grape6py.errors import SnapshotError
from legacy import EXAMPLES, NUMBER, energies, numbers, output_of
from tools import need

CAPACITY = 64
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-shared", "-fPIC"]
PROGRAMS = ["hermite", "treecode", "kira_style", "grape5_style", "ph4_style"]

# Words and line ends: mostly numbers, in all spellings, and things that nearly are.
SIGNS = st.sampled_from(["", "", "+", "-"])
DIGITS = st.text("0123456789", min_size=0, max_size=20)
EXPONENTS = st.sampled_from(
    ["", "", "e5", "D-3", "d+02", "Q1", "-103", "+7", "E", "e-", "dd1", "e999"]
)
DECIMALS = st.builds("{}{}.{}{}".format, SIGNS, DIGITS, DIGITS, EXPONENTS)
INTEGERS = st.builds("{}{}{}".format, SIGNS, DIGITS, EXPONENTS)
ODD = st.sampled_from(
    ["nan", "inf", "-Infinity", "0x10", "1_0", "1..2", "--1", "*", "1,5", "1\0", "."]
)
NUMBERS = st.floats(0, allow_nan=False, allow_infinity=False).map(repr)
WORDS = st.one_of(NUMBERS, NUMBERS, NUMBERS, DECIMALS, INTEGERS, ODD)
LINES = st.one_of(
    st.lists(NUMBERS, min_size=7, max_size=7), st.lists(WORDS, min_size=6, max_size=8)
).map(" ".join)
COMMENTS = st.sampled_from(["", "", "# 1 2\0", " #", "\t"])
TEXTS = st.lists(st.builds("{}{}".format, LINES, COMMENTS), max_size=5).map("\n".join)


@pytest.fixture(scope="module", params=["c", "c++"])
def read_bytes(request, tmp_path_factory):
    """Reads bytes with snapshot.h: the table of bodies, or the reason why not."""
    compiler = {"c": ["gcc", "-std=c11"], "c++": ["g++", "-std=c++11", "-x", "c++"]}[request.param]
    need(compiler[0])
    library = tmp_path_factory.mktemp("reader") / "reader.so"
    source = capi.TESTS / "c" / "snapshot_bytes.c"
    command = [*compiler, *STRICT, "-O2", f"-I{EXAMPLES}", source, "-o", library]
    subprocess.run(command, check=True, timeout=60)
    call = ctypes.CDLL(str(library)).read_bytes

    def read_bytes(text):
        table, fault = np.empty((CAPACITY, 7)), ctypes.create_string_buffer(120)
        n = call(
            text, ctypes.c_size_t(len(text)), CAPACITY, ctypes.c_void_p(table.ctypes.data), fault
        )
        assert n <= CAPACITY
        return fault.value.decode("ascii") if n < 0 else table[:n]

    return read_bytes


@given(TEXTS)
@example("1 2 3 4 5 6 7")
@example("1 2 3 4 5 6 7\r\n\n 1 2 3 4 5 6 7#")
@example("1" * 90 + ".5 0 0 0 0 0 0")
@example("# " + "long " * 1000 + "\n0 0 0 0 0 0 0")
def test_it_agrees_with_the_python_reader(read_bytes, text):
    if not text:
        with pytest.raises(SnapshotError, match="it is empty"):
            read_snapshot(io.StringIO(text), format="text")
        return
    found = read_bytes(text.encode())
    try:
        want = read_snapshot(io.StringIO(text), format="text")
    except SnapshotError as refused:
        first = int(re.match(r"snapshot:(\d+): ", str(refused))[1])
        assert re.match(rf"line {first}: ", found) or "negative mass" in found
        return
    if len(want.mass) == 0:
        assert found == "no bodies in it"
    elif (want.mass < 0).any():
        assert "negative mass" in found
    else:
        np.testing.assert_array_equal(found, np.column_stack(want))


@given(st.binary(min_size=1, max_size=300))
def test_any_bytes_are_read_or_refused_with_a_printable_reason(read_bytes, text):
    found = read_bytes(text)
    if isinstance(found, str):
        assert re.fullmatch(r"line \d+: [ -~]+|no bodies in it", found)
    else:
        assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 2 3\n", "line 1: 3 of the 7 numbers m x y z vx vy vz"),
        ("# c\n\n1 2 3 4 5 6 7 8", "line 3: more than 7 numbers"),
        ("1 2 3 4 5 6 7\n1 2 nan 4 5 6 7\n", "line 2: y = 'nan' is not a finite number"),
        ("1 2 3 4 1e999 6 7\n", "line 1: vx = '1e999' is not a finite number"),
        ("1 2 3 4 5 6 7\0\n", "line 1: vz = '7?' is not a finite number"),
        ("1 2 3 4 5 6 " + "7" * 128, f"line 1: vz = '{'7' * 40}' is not a finite number"),
        ("-1 2 3 4 5 6 7\n", "line 1: negative mass"),
        (" \n#", "no bodies in it"),
    ],
)
def test_the_reason_names_the_line_and_the_number(read_bytes, text, reason):
    assert read_bytes(text.encode()) == reason


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_pass_the_reason_on_and_stop(run, tmp_path, name):
    file = tmp_path / "broken.dat"
    file.write_bytes(b"1 0 0 0 0 0 0\n\n1 1 \0 0 0 0 0\n")
    for path, reason in [
        (file, "line 3: y = '?' is not a finite number"),
        (tmp_path, "cannot be read"),
        (tmp_path / "missing", "cannot be opened"),
    ]:
        process = run(name, path)
        assert process.returncode == 1
        assert process.stderr == f"{name}: {path}: {reason}\n"
        assert process.stdout == ""


@pytest.mark.parametrize("name", [*PROGRAMS, "hermite_f77"])
def test_programs_read_fortran_numbers_comments_and_more_bodies_than_a_first_guess(
    run, tmp_path, name
):
    file = tmp_path / "many.dat"
    two = "# two\n0.5D0 -5.D-1 0 0 0 -0.5d0 0 # one\n\n5.0E-1 0.5 0 0 0 +0.5D+00 0\n"
    file.write_text("".join(f"0 {i} 2 3 0 0 0\n" for i in range(1500)) + two)
    options = ["0", "0.02", "0.001"] if name == "hermite_f77" else ["-e", "0", "-t", "0.001"]
    text = output_of(run(name, file, *options))
    assert numbers(rf"N ={NUMBER}", text) == [1502]
    assert energies(text)[0, 1] == pytest.approx(0.125 - 0.25, rel=1e-10)
