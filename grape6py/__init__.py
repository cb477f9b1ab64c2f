"""grape6py: the GRAPE-6 host library in software.

``Grape6`` sums gravity, ``Tree`` sums that of very many bodies and finds their neighbours, and
``Hermite`` integrates; ``plummer``, ``king``, ``uniform``, ``two_body``, ``galaxy``, ``merger`` and
``galaxy_merger`` make models; ``read_snapshot`` and ``write_snapshot`` keep them in text files;
``grape6py.reference`` is the plain NumPy sum that everything is tested against. Names are imported
when first used, so that ``import grape6py`` itself costs next to nothing.
"""

import importlib

__version__ = "0.1.0"

_HOME = {
    "Forces": "grape6",
    "Grape6": "grape6",
    "Grape6Error": "errors",
    "Grape6Warning": "errors",
    "Hermite": "integrators.hermite",
    "Leapfrog": "integrators.leapfrog",
    "Particles": "models",
    "Tree": "tree",
    "galaxy": "models",
    "galaxy_merger": "models",
    "king": "models",
    "merger": "models",
    "plummer": "models",
    "read_snapshot": "snapshot",
    "two_body": "models",
    "uniform": "models",
    "write_snapshot": "snapshot",
}
_MODULES = {
    "archive": "archive",
    "diagnostics": "diagnostics",
    "errors": "errors",
    "hermite": "integrators.hermite",
    "leapfrog": "integrators.leapfrog",
    "models": "models",
    "paths": "paths",
    "picture": "picture",
    "reference": "reference",
    "session": "grape6",
    "snapshot": "snapshot",
    "tree": "tree",
}

__all__ = sorted([*_HOME, *_MODULES])


def __getattr__(name):
    if name in _HOME:
        value = getattr(importlib.import_module(f"grape6py.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f"grape6py.{_MODULES[name]}")
    raise AttributeError(f"module 'grape6py' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
