"""Fixtures of the tests of the Python package."""

import contextlib

import pytest

with contextlib.suppress(ImportError):  # the lowest versions go without astropy
    from in_quantities import amuse  # noqa: F401 (fixture)


@pytest.fixture
def path(tmp_path):
    """Where a run is written."""
    return tmp_path / "run.h5"
