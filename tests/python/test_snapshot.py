"""Snapshots: the same bits back, Fortran's numbers, and every malformed line named."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from grape6py import Grape6Error, read_snapshot, write_snapshot

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def read(text):
    return read_snapshot(io.StringIO(text))


def bits(particles):
    return [array.tobytes() for array in particles]


@pytest.mark.filterwarnings("ignore:.*below zero:grape6py.Grape6Warning")
@given(arrays(np.float64, st.tuples(st.integers(0, 5), st.just(7)), elements=FINITE))
def test_what_is_written_is_read_back_with_the_same_bits(table):
    mass, pos, vel = table[:, 0], table[:, 1:4], table[:, 4:]
    file = io.StringIO()
    write_snapshot(file, mass, pos, vel)
    file.seek(0)
    assert bits(read_snapshot(file)) == bits((mass, pos, vel))


def test_comments_and_blank_lines_are_skipped():
    found = read("# a comment\n\n  \t\n1 2 3 4 5 6 7 # the only body\n   # the end")
    assert bits(found) == bits(
        (np.array([1.0]), np.array([[2.0, 3.0, 4.0]]), np.array([[5.0, 6.0, 7.0]]))
    )


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("1 2 3", "3 columns instead of 7"),
        ("1", "1 column instead of 7"),
        ("1 2 3 4 5 6 7 8", "8 columns instead of 7"),
        ("1 2 nan 4 5 6 7", "y = 'nan' is not a finite number"),
        ("inf 2 3 4 5 6 7", "m = 'inf' is not a finite number"),
        ("1 2 3 4 5 6 ******", "vz = '******' is not a finite number"),
        ("1 2 3 4 5 1_0 7", "vy = '1_0' is not a finite number"),
        ("1 2 3 4 0x10 6 7", "vx = '0x10' is not a finite number"),
        ("1 2 3 \u0661 5 6 7", "z = '\u0661' is not a finite number"),
        ("1 1e400 3 4 5 6 7", "x = 1e400 is beyond double precision"),
    ],
)
def test_a_malformed_line_is_named_with_its_fault(tmp_path, line, complaint):
    path = tmp_path / "bad.txt"
    path.write_text(f"# three lines\n1 2 3 4 5 6 7\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read_snapshot(path)
    assert str(caught.value).startswith(f"{path}:3: {complaint}")
    assert isinstance(caught.value, Grape6Error)


def test_every_malformed_line_is_named_up_to_twenty():
    with pytest.raises(ValueError, match="3 columns") as caught:
        read("1 2 3\n1 2 3 4 5 6 7\n1 2 3 4 5 6 x\n")
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == ["1", "3"]
    with pytest.raises(ValueError, match=r"and 5 more such lines") as caught:
        read("1 2 3\n" * 25)
    assert len(str(caught.value).splitlines()) == 21
