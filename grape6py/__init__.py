"""grape6py: the GRAPE-6 host library in software.

``accelerations`` and ``Grape6`` sum gravity, ``Tree`` sums that of very many bodies and finds their
neighbours; ``Hermite`` and ``Leapfrog`` integrate, in ``fields`` and with ``events``; ``plummer``,
``king``, ``uniform``, ``fractal``, ``two_body``, ``galaxy``, ``merger`` and ``galaxy_merger`` make
models; ``kroupa``, ``salpeter`` and ``maschberger`` draw masses for ``stars``; ``with_binaries``
makes binaries, and ``binaries`` finds them; ``read_snapshot`` and ``write_snapshot`` keep them in
files of many formats, ``open_run`` reads the outputs of a run, ``Units`` says in which units they
are; ``grape6py.reference`` is the plain NumPy sum that everything is tested against. Names are
imported when first used, so that ``import grape6py`` itself costs next to nothing.
"""

import importlib

__version__ = "0.1.0"

_NAMES = {
    "bound_pairs": "binaries",
    "errors": "Grape6Error Grape6Warning",
    "forces.grape6": "Forces Grape6",
    "forces.sums": "accelerations",
    "forces.tree": "Tree",
    "integrators.hermite": "Hermite",
    "integrators.leapfrog": "Leapfrog",
    "integrators.stellar": "StellarUpdate",
    "models": """Particles eff fractal galaxy galaxy_merger hernquist king kroupa maschberger
        merger plummer salpeter stars tidal_radius two_body uniform with_binaries""",
    "run": "Run open_run",
    "snapshot": "Snapshot read_snapshot write_snapshot",
    "units": "Units",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
_SAME = """archive bound_pairs diagnostics errors events fields models paths picture reference
    snapshot units"""
_MODULES = {
    **{name: name for name in _SAME.split()},
    "formats": "files.formats",
    "hermite": "integrators.hermite",
    "leapfrog": "integrators.leapfrog",
    "movie": "picture.movie",
    "partial": "forces.partial",
    "quantities": "_arrays.quantities",
    "tree": "forces.tree",
}

# What `import *` brings, which is what is public: other modules are found by their names.
__all__ = sorted([*_HOME, *"""archive diagnostics errors events fields models movie picture
    reference""".split()])  # fmt: skip


def __getattr__(name):
    if name in _HOME:
        value = getattr(importlib.import_module(f"grape6py.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f"grape6py.{_MODULES[name]}")
    from grape6py.errors import meant

    hint = "" if name[0] == "_" else meant(name, [*_HOME, *_MODULES])
    raise AttributeError(f"module 'grape6py' has no attribute {name!r}{hint}")


def __dir__():
    return sorted({*globals(), *_HOME, *_MODULES})
