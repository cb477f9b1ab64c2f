"""The models that ``grape6 run`` knows by name, with the options that each has."""

from collections.abc import Callable
from typing import NamedTuple

from grape6py import models
from grape6py.errors import ArgumentError

OPTIONS = ("w0", "virial_ratio", "black_hole", "mass_ratio", "pericentre", "separation")


class Model(NamedTuple):
    """How a model is drawn, draw(n, seed, **options), its title, its options."""

    draw: Callable
    title: str
    options: tuple = ()
    eps: float | None = None  # by default; None: 4 / N

    def softening(self, n):
        """Softening length for n bodies, if none is asked for."""
        return 4 / n if self.eps is None else self.eps


def _king(n, seed, w0=6.0):
    return models.king(n, w0, seed)


def _galaxy(n, seed, black_hole=0.0):
    n_halo, n_stars = _shares(n, black_hole)
    n_bulge = n_stars // 4
    galaxy = models.galaxy(n_stars - n_bulge, n_bulge, n_halo, seed, black_hole=black_hole)
    return galaxy.particles


def _merger(n, seed, black_hole=1e-3, **orbit):
    if n % 2:
        raise ArgumentError(f"--n {n}: two galaxies of equal numbers need an even number")
    shares = _shares(n // 2, black_hole)
    return models.galaxy_merger(*shares, seed, black_hole=black_hole, **orbit).particles


def _shares(n, black_hole):
    """Bodies of halo and stars, five to one."""
    n -= black_hole > 0
    return n - n // 6, n // 6


MODELS = {
    "plummer": Model(models.plummer, "Plummer sphere"),
    "king": Model(_king, "King model", ("w0",)),
    "uniform": Model(models.uniform, "uniform sphere", ("virial_ratio",)),
    "galaxy": Model(_galaxy, "disk galaxy", ("black_hole",), 0.05),
    "merger": Model(
        _merger,
        "merger of two galaxies",
        ("black_hole", "mass_ratio", "pericentre", "separation"),
        0.1,
    ),
}
