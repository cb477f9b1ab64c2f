"""The models that ``grape6 run`` knows by name, with the options that each has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from grape6py import models
from grape6py.errors import ArgumentError

if TYPE_CHECKING:
    from grape6py._arrays.kinds import Untyped

OPTIONS = ("w0", "virial_ratio", "black_hole", "mass_ratio", "pericentre", "separation")


class Model(NamedTuple):
    """How a model is drawn, draw(n, seed, **options), its title, its options."""

    draw: Callable[..., models.Particles | models.Labelled]
    title: str
    options: tuple[str, ...] = ()
    eps: float | None = None  # by default; None: 4 / N

    def softening(self, n: int) -> float:
        """Softening length for n bodies, if none is asked for."""
        return 4 / n if self.eps is None else self.eps


def _king(n: int, seed: int, w0: float = 6.0) -> models.Particles:
    return models.king(n, w0, seed)


def _galaxy(n: int, seed: int, black_hole: float = 0.0) -> models.Labelled:
    n_halo, n_stars = _shares(n, black_hole)
    n_bulge = n_stars // 4
    return models.galaxy(n_stars - n_bulge, n_bulge, n_halo, seed, black_hole=black_hole)


def _merger(n: int, seed: int, black_hole: float = 1e-3, **orbit: Untyped) -> models.Labelled:
    if n % 2:
        raise ArgumentError(f"--n {n}: two galaxies of equal numbers need an even number")
    shares = _shares(n // 2, black_hole)
    return models.galaxy_merger(*shares, seed, black_hole=black_hole, **orbit)


def _shares(n: int, black_hole: float) -> tuple[int, int]:
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
