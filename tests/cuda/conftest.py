"""Virtual environments for the tests of the bridge to Python: see embedding.py."""

import pytest

from embedding import Environment


@pytest.fixture(scope="session")
def installed(bridge_parts):
    """An environment with all that is needed."""
    return Environment(bridge_parts, bridge_parts.folder / "env")


@pytest.fixture
def environment(bridge_parts, tmp_path):
    """One that the test may spoil."""
    return Environment(bridge_parts, tmp_path / "env")
