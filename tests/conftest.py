"""Fixtures: fresh sessions, and the modes and instruction sets to run a test in."""

import itertools
import os
import re

import pytest
from octrees import board, oracle, tree  # noqa: F401 (fixtures)

import capi
from cards import card  # noqa: F401 (fixture)
from embedding import bridge_parts  # noqa: F401 (fixture)
from grape5 import board5, boards  # noqa: F401 (fixtures)
from legacy import build, distance, run, stars  # noqa: F401 (fixtures)
from tree_card import tree_card  # noqa: F401 (fixture)
from variants import Variants

for name in [n for n in os.environ if re.match("GRAPE6_(?!TEST_)", n)]:
    del os.environ[name]
os.environ.update(capi.chosen_backend())

_ids = itertools.count(1000)


# A process that begins these last would leave the others waiting.
LONGEST = "test_sanitizers.py test_cuda_backend.py".split()


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture
def new_session():
    """Makes sessions on ids that no other test uses, and closes them afterwards."""
    made = []

    def make(**options):
        made.append(capi.Session(next(_ids), **options))
        return made[-1]

    yield make
    for session in made:
        session.close()


@pytest.fixture(scope="session")
def shared_folder(request, tmp_path_factory):
    """The folder of this run, the same one in all its processes: for once.made_once."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if hasattr(request.config, "workerinput") else own


@pytest.fixture(scope="session")
def variants(shared_folder):
    """The library built in other ways: variants["address"] and so on."""
    return Variants(shared_folder)


@pytest.fixture(params=list(capi.MODES))
def mode(request):
    return request.param


@pytest.fixture(params=list(capi.ISAS))
def isa(request, new_session):
    """Every instruction set that this machine has."""
    new_session(isa=request.param).close()
    return request.param


@pytest.fixture
def session(new_session, mode, isa):
    """A fresh session, in every mode and instruction set."""
    return new_session(precision=mode, isa=isa)


@pytest.fixture
def exact(new_session, isa):
    """A fresh session in mode double."""
    return new_session(precision="double", isa=isa)


@pytest.fixture
def plain(new_session):
    """A fresh session as a caller gets it."""
    return new_session()


@pytest.fixture(scope="session")
def graphics_card():
    """Name of the machine's graphics card; the test is skipped where there is none."""
    from grape6py import Grape6, errors  # not before the environment is clean

    try:
        with Grape6(backend="cuda") as session:
            return session.backend
    except errors.BackendError as error:
        pytest.skip(f"no graphics card: {error}")


@pytest.fixture(autouse=True)
def _card_for_gpu_tests(request):
    if request.node.get_closest_marker("gpu"):
        request.getfixturevalue("graphics_card")
