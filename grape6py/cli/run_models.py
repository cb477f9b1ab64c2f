"""The models that ``grape6 run`` knows by name, with the options that each has."""

import functools
from collections.abc import Callable
from typing import NamedTuple

from grape6py import models
from grape6py._arrays.kinds import Attributes, Untyped
from grape6py.errors import ArgumentError

_STARS = ("mass_function", "segregation", "binaries")  # of spheres
_GALAXIES = ("black_hole", "mass_ratio", "pericentre", "separation")
_SHAPES = ("w0", "gamma", "truncation", "concentration", "virial_ratio", "dimension")
OPTIONS = (*_SHAPES, *_STARS, *_GALAXIES)
_HARD = 0.02, 2.0  # semi-major axes of binaries in Henon units, times n: those below 2 / n are hard


class Model(NamedTuple):
    """How a model is drawn, draw(n, seed=..., **options), its title, its options."""

    draw: Callable[..., models.Particles | models.Labelled]
    title: str
    options: tuple[str, ...] = ()
    eps: float | None = None  # by default; None: 4 / N

    def softening(self, n: int, options: Attributes) -> float:
        """Softening length for n bodies, if none is asked for; none for binaries."""
        if options.get("binaries"):
            return 0.0
        return 4 / n if self.eps is None else self.eps


def _sphere(
    model: Callable[..., models.Particles], **usual: float
) -> Callable[..., models.Particles]:
    """Draw that sphere, with the options of stars."""

    def draw(
        n: int,
        seed: int,
        mass_function: str | None = None,
        segregation: float | None = None,
        binaries: float = 0.0,
        **shape: Untyped,
    ) -> models.Particles:
        drawn = functools.partial(model, **usual | shape)
        if mass_function is not None:
            masses = getattr(models, mass_function)(n, seed)
            ratio = shape.get("virial_ratio", 0.5)
            particles = models.stars(masses, drawn, seed, segregation or 0.0, virial_ratio=ratio)
        elif segregation is not None:
            raise ArgumentError("--segregation is of stars of several masses: give --mass-function")
        else:
            particles = drawn(n, seed=seed)
        low, high = _HARD
        return models.with_binaries(particles, binaries, seed, separation=(low / n, high / n))

    return draw


def _galaxy(n: int, seed: int, black_hole: float = 0.0) -> models.Labelled:
    n_halo, n_stars = _shares(n, black_hole)
    n_bulge = n_stars // 4
    return models.galaxy(n_stars - n_bulge, n_bulge, n_halo, seed, black_hole=black_hole)


def _merger(n: int, seed: int, black_hole: float = 1e-3, **orbit: Untyped) -> models.Labelled:
    if n % 2:
        raise ArgumentError(f"--n {n}: two galaxies of equal numbers need an even number")
    return models.galaxy_merger(*_shares(n // 2, black_hole), seed, black_hole=black_hole, **orbit)


def _shares(n: int, black_hole: float) -> tuple[int, int]:
    """Bodies of halo and stars, five to one."""
    n -= black_hole > 0
    return n - n // 6, n // 6


MODELS = {
    "plummer": Model(_sphere(models.plummer), "Plummer sphere", _STARS),
    "king": Model(_sphere(models.king, w0=6.0), "King model", ("w0", *_STARS)),
    "hernquist": Model(_sphere(models.hernquist), "Hernquist model", _STARS),
    "eff": Model(
        _sphere(models.eff, gamma=3.0), "Elson-Fall-Freeman model", ("gamma", "truncation", *_STARS)
    ),
    "nfw": Model(_sphere(models.nfw, concentration=10.0), "NFW halo", ("concentration", *_STARS)),
    "uniform": Model(_sphere(models.uniform), "uniform sphere", ("virial_ratio", *_STARS)),
    "fractal": Model(models.fractal, "fractal cluster", ("dimension", "virial_ratio")),
    "galaxy": Model(_galaxy, "disk galaxy", ("black_hole",), 0.05),
    "merger": Model(_merger, "merger of two galaxies", _GALAXIES, 0.1),
}
