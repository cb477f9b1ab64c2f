"""Snapshots: the same bits back, Fortran's numbers, and every malformed line named."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from grape6py import Grape6Error, read_snapshot, write_snapshot
from grape6py.models import plummer

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


@pytest.mark.parametrize("kind", [str, lambda path: path], ids=["str", "Path"])
def test_paths_and_models_go_in_and_come_out(tmp_path, kind):
    model, path = plummer(50, seed=1), kind(tmp_path / "dat.10")
    write_snapshot(path, model, comment="50 bodies\nin Henon units")
    assert bits(read_snapshot(path)) == bits(model)
    with open(path, encoding="utf-8") as file:
        assert file.readline() == "# 50 bodies\n"
    with open(path, "rb") as file:
        assert bits(read_snapshot(file)) == bits(model)


def test_velocities_are_zero_if_left_out():
    file = io.StringIO()
    write_snapshot(file, [1], [[1, 2, 3]])
    assert not read(file.getvalue()).vel.any()


def test_fortran_numbers_are_understood():
    found = read("1.5D-3 1.5d+03 0.15Q2 0.25-100 -1.25+100 .5 5.\n+7 1E2 0 0 0 0 0")
    assert np.column_stack(found).tolist() == [
        [1.5e-3, 1.5e3, 15, 0.25e-100, -1.25e100, 0.5, 5], [7, 100, 0, 0, 0, 0, 0]
    ]  # fmt: skip


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


def test_a_binary_file_is_of_no_format(tmp_path):
    path = tmp_path / "cluster.gz"
    path.write_bytes(b"\x1f\x8b" + bytes(range(256)))
    with pytest.raises(ValueError, match=r"cluster\.gz: unknown format; there are .*Tipsy"):
        read_snapshot(path)


def test_a_missing_file_is_an_oserror(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_snapshot(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("mass", "pos", "vel"),
    [
        ([1, 2], [[1, 2, 3]], None),
        ([1], [[1, 2]], None),
        ([1], [[1, 2, 3]], [[1, 2, 3]] * 2),
        ([1], [[1, np.nan, 3]], None),
        ([np.inf], [[1, 2, 3]], None),
    ],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path, mass, pos, vel):
    path = tmp_path / "old"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(ValueError, match=r"needs mass|is nan|is inf"):
        write_snapshot(path, mass, pos, vel)
    assert path.read_text(encoding="utf-8") == "old"
