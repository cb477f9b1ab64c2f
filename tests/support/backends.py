"""The backends that tests run on, one after another in one process.

    @pytest.mark.backends("cpu cuda cuda-tree:grape")

has a test, a case of one or (as pytestmark) a module run on each of these, on the last in mode
grape alone; all others run on "cpu". The fixture `on_backend` has the name. Sessions opened with
g6_open or Grape6() are of that backend then, and so are those of processes that the test starts.

A library reads its environment once. So each backend has a copy of its own, loaded beside the
others in a folder that looks like the package. On "cpu" and "gpu" that is the library as it is
shipped, on the others variants["counted"], which counts its lines and builds a tree for any number
of particles; the tree opens all its cells."""

import contextlib
import functools
import os
import shutil
import sys
from unittest import mock

import capi
import fake_device
from grape6py import paths
from grape6py._lib import library
from once import made_once

TREE = {"GRAPE6_TEST_TREE": "always", "GRAPE6_THETA": "0.001"}
ENVIRONMENT = {
    "cpu": {},
    "cpu-tree": {"GRAPE6_BACKEND": "cpu-tree", **TREE},
    "auto": {"GRAPE6_BACKEND": "auto", "GRAPE6_TEST_GPU_START": "-1e9"},  # a device always wins
    "cuda": {"GRAPE6_BACKEND": "cuda"},
    "cuda-tree": {"GRAPE6_BACKEND": "cuda-tree", **TREE},
    "gpu": {"GRAPE6_BACKEND": "cuda"},  # a true one
}
FAKE = {"auto", "cuda", "cuda-tree"}
ONE_ISA = "base"  # stands for all, but on the CPU
has_gpu = False  # a true one: tests may take more particles


class Library:
    """The library of grape6py: the one that is chosen."""

    def __init__(self):
        self._opened = {}  # by path

    def __getattr__(self, name):
        path = str(capi.library_path())
        if path not in self._opened:
            self._opened[path] = library.ffi.dlopen(path)
        return getattr(self._opened[path], name)

    def g6_close(self, cluster):
        """In all of them: what the garbage collector closes may be of an earlier choice."""
        for opened in self._opened.values():
            opened.g6_close(cluster)


def install(for_gpu):
    """Has grape6py follow the choice, and the CPU's library find out that there is no device."""
    global has_gpu
    has_gpu = for_gpu
    true = library.lib
    proxy = Library()
    for module in list(sys.modules.values()):
        if getattr(module, "lib", None) is true:
            module.lib = proxy
    if has_gpu:
        return
    with mock.patch.dict(os.environ, GRAPE6_BACKEND="cpu"):
        capi.call("g6x_open", 0, capi.CONSTANTS["G6X_BACKEND_TREE"])
    capi.call("g6_close", 0)


def words(marker):
    """Names of backends of a marker, each with the modes, or none for all."""
    pairs = (word.partition(":") for word in (marker.args[0] if marker else "cpu").split())
    return {name: modes.split(",") if modes else [] for name, _, modes in pairs}


def makes_sense(item):
    """Whether a test is to run with what its fixtures would give it."""
    given = getattr(item, "callspec", None)
    given = given.params if given else {}
    own = [marker for marker in item.own_markers if marker.name == "backends"]
    allowed = words(own[-1] if own else item.get_closest_marker("backends"))
    name = given.get("on_backend", "cpu")
    modes = allowed.get(name, ["none"])
    mode = "double" if "exact" in item.fixturenames else given.get("mode", [*modes, ""][0])
    return (not modes or mode in modes) and (name == "cpu" or given.get("isa", ONE_ISA) == ONE_ISA)


def in_a_package(library, folder):
    """Links to all of the package, but a copy of this library."""
    (folder / "lib").mkdir(parents=True)
    for path in [*paths.PREFIX.iterdir(), *paths.LIBRARY_DIR.iterdir()]:
        place = folder / path.relative_to(paths.PREFIX)
        if not place.exists() and path.name != "libgrape6.so":
            place.symlink_to(path)
    shutil.copy(library, folder / "lib/libgrape6.so")


@contextlib.contextmanager
def chosen(name, library=None, fake_gpu=None):
    """Tests are on this backend."""
    environment = ENVIRONMENT[name] | ({"GRAPE6_TEST_FAKE_GPU": str(fake_gpu)} if fake_gpu else {})
    with (
        mock.patch.dict(os.environ, environment),
        mock.patch.object(capi, "chosen_library", library),
        mock.patch.object(capi, "chosen_environment", environment),
        fake_device.present(fake_gpu) if fake_gpu else contextlib.nullcontext(),
    ):
        if library:
            _start(library)
        yield


@functools.cache
def _start(library):
    """Now, with this environment and device."""
    capi.call("g6_open", 0)
    capi.call("g6_close", 0)


def copied(library, folder):
    """The library in a package of its own, made once a run."""
    make = functools.partial(in_a_package, library)
    return made_once(folder, make) / "lib/libgrape6.so"
