"""Fixtures: the backend, fresh sessions, and the modes and instruction sets to run a test in."""

import contextlib
import functools
import gc
import itertools
import os
import re

import pytest

import backends
import capi
import fake_device
import tiers
from embedding import bridge_parts  # noqa: F401 (fixture)
from fake_gpu import cupy, fake_gpu, put, tree_gpu  # noqa: F401 (fixtures)
from grape5 import board5, boards  # noqa: F401 (fixtures)
from grape6py import Grape6, errors
from legacy import build, distance, run, stars  # noqa: F401 (fixtures)
from octrees import board, oracle, tree  # noqa: F401 (fixtures)
from on_gpu import cpu, make  # noqa: F401 (fixtures)
from packages import built, installed, sdist, unpacked  # noqa: F401 (fixtures)
from runs import here  # noqa: F401 (fixture)
from variants import Variants

for name in [n for n in os.environ if re.match("GRAPE6_(?!TEST_)", n)]:
    del os.environ[name]

_ids = itertools.count(1000)

# A process that begins these last would leave the others waiting.
LONGEST = """test_sanitizers test_build test_amuse test_cuda_kernels test_ranks_integrations
    test_tree test_resources test_hermite test_legacy_mpi test_legacy test_docs test_fuzz_formats
    test_ranks test_hermite_on_ranks test_lowest_versions test_cuda_sums test_bridge""".split()


def pytest_addoption(parser):
    parser.addoption("--tier", choices=tiers.TIERS, default="all", help="tests/support/tiers.py")


def pytest_configure(config):
    config.for_gpu = "gpu" in config.option.markexpr.split()
    backends.install(config.for_gpu)


def pytest_generate_tests(metafunc):
    names = backends.words(metafunc.definition.get_closest_marker("backends"))
    params = [pytest.param(name, marks=pytest.mark.gpu if name == "gpu" else ()) for name in names
              if name != "gpu" or metafunc.config.for_gpu]  # fmt: skip
    if list(names) != ["cpu"]:
        metafunc.parametrize("on_backend", params, indirect=True, scope="module")


def pytest_collection_modifyitems(config, items):
    sensible = [item for item in items if backends.makes_sense(item)]
    items[:] = tiers.select(sensible, config.option.tier)
    items.sort(key=lambda item: [*LONGEST, item.path.stem].index(item.path.stem))
    for item in items:  # the true driver and the fake one do not go together
        if item.get_closest_marker("gpu") and not config.for_gpu:
            item.add_marker(pytest.mark.skip(reason="pytest -m gpu runs these"))
    gc.freeze()  # what is there now stays, and is not to be looked through again and again


@pytest.fixture(autouse=True, scope="module")
def on_backend(request):
    """Name of the backend that sessions are opened with: see backends.py."""
    name = getattr(request, "param", "cpu")
    device = request.getfixturevalue("fake_gpu") if name in backends.FAKE else None
    with backends.chosen(name, request.getfixturevalue("library_of")(name), device):
        yield name


@pytest.fixture(autouse=True)
def _sound(on_backend):
    """After each test the fake device works again."""
    yield
    if on_backend in backends.FAKE:
        fake_device.fail(0)
        fake_device.driver().fake_gpu_stream(None, None, 0)


@pytest.fixture(scope="session")
def library_of(shared_folder, request):
    """Path of a backend's library, in a package of its own."""

    def path(name):
        if name == "cpu":
            return None
        library = capi.library_path()
        if name != "gpu" and "GRAPE6_TEST_LIBRARY" not in os.environ:
            library = request.getfixturevalue("variants")["counted"].library
        return backends.copied(library, shared_folder / f"in-{name}")

    return path


@pytest.fixture
def new_session():
    """Makes sessions on ids that no other test uses, and closes them afterwards."""
    made = []

    def new(**options):
        made.append(capi.Session(next(_ids), **options))
        return made[-1]

    yield new
    for session in made:
        session.close()


@pytest.fixture
def pair(on_backend):
    """Makes two sessions: one for a device's arrays, one for NumPy's."""
    with contextlib.ExitStack() as made:
        yield lambda **options: [made.enter_context(Grape6(**options)) for _ in range(2)]


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


@pytest.fixture(params=capi.COMPILED)
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
def in_double(new_session):
    """The same, in the instruction set that a caller gets."""
    return new_session(precision="double")


@pytest.fixture
def plain(new_session):
    """A fresh session as a caller gets it."""
    return new_session()


@functools.cache
def missing_gpu():
    """Why this machine has no GPU that sessions can use, or None."""
    try:
        Grape6(backend="cuda").close()
    except errors.BackendError as error:
        return f"no GPU: {error}"
    return None


@pytest.fixture(autouse=True)
def _gpu_for_gpu_tests(request):
    if request.node.get_closest_marker("gpu") and (why := missing_gpu()):
        pytest.skip(why)
