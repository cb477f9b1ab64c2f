"""Run by the bridge module inside the process's Python, once: finds grape6py, hands over to it.

The package is taken from where the library lies, whatever sys.path says: both are of one build.
"""

import sys
from importlib import util

_module = sys.modules["grape6py._bridge"]
_ffi = _module.ffi


def _load_package(folder):
    if "grape6py" not in sys.modules:
        spec = util.spec_from_file_location(
            "grape6py", f"{folder}/__init__.py", submodule_search_locations=[folder]
        )
        package = util.module_from_spec(spec)
        sys.modules["grape6py"] = package
        spec.loader.exec_module(package)


def _text(chars):
    return _ffi.string(chars).decode(sys.getfilesystemencoding(), "surrogateescape")


@_ffi.def_extern()
def grape6_prepare(how):
    """Positive, or minus an error's row with the text in how.text."""
    try:
        _load_package(_text(how.package))
        from grape6py.cuda import bridge

        bridge.register(_module, _text(how.devices))
    except BaseException as error:  # a host is no Python: nobody else would catch it
        code = getattr(error, "code", None)  # of a Grape6Error
        known = isinstance(code, int) and code < 0
        words = str(error) if known else f"{type(error).__name__}: {error}"
        line = words.encode("utf-8", "replace")[:255]
        _ffi.memmove(how.text, line + b"\0", len(line) + 1)
        return code if known else -5
    return 1
