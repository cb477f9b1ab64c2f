"""Lowered isothermal models with anisotropy and several masses, by the package astro-limepy."""

import importlib
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays import validate
from grape6py._arrays.kinds import Attributes, Floats, Int64s, Seed, Untyped
from grape6py.errors import ArgumentError, MissingPackageError
from grape6py.in_units import taken
from grape6py.models.sampling import Particles, centred, check_size, rescaled
from grape6py.units import Units


@taken()
def limepy(
    n: int,
    phi0: float,
    g: float = 1.0,
    anisotropy_radius: float | None = None,
    masses: ArrayLike | None = None,
    mass_shares: ArrayLike | None = None,
    seed: Seed = None,
    *,
    delta: float = 0.5,
    eta: float = 0.0,
    rescale: bool = False,
    units: Units | None = None,
) -> Particles:
    """Draw a lowered isothermal model: of King, Wilson or Michie, of one mass or several.

    It needs the package astro-limepy: ``pip install astro-limepy``, or the extra
    ``grape6py[limepy]``. PyPI's ``limepy`` is something else.

    Parameters
    ----------
    phi0 : float
        Depth of the central potential in units of s^2, above 0: King's w0.
    g : float
        Order of the truncation, from 0 to below 3.5: 0 for Woolley's model, 1 for King's, 2 for
        Wilson's.
    anisotropy_radius : float, optional
        In King radii r0, above 0: orbits are isotropic well within, and radial well beyond. By
        default all are isotropic.
    masses : array_like, shape (k,), optional
        Mass of a body of each component, in any unit. By default all have the same mass.
    mass_shares : array_like, shape (k,), optional
        Of each component in the total mass, or its mass in any unit. The numbers of bodies are
        rounded to integers that add up to n.
    seed : int or None
        Seed of the model; None for a different one each time.
    delta, eta : float
        The velocity scale of a component goes as m^-delta, its anisotropy radius as m^eta; both,
        as phi0, are those of a body of the mean mass in the centre.
    n, rescale, units
        As in :func:`plummer`.

    Returns
    -------
    Particles
        Total mass 1, centre of mass at rest in the origin, component after component.

    Raises
    ------
    MissingPackageError
        (an ImportError) without astro-limepy, or with a version of SciPy that it cannot use.
    ArgumentError
        (a ValueError) if a parameter is out of range, or if there is no such model, as with strong
        anisotropy.

    Notes
    -----
    Gieles & Zocchi 2015, MNRAS 454, 576, equations 1 and 24 to 26. The state of NumPy's global
    random numbers is left as it was.
    """
    n = check_size(n, rescale)
    numbers, mean = _components(n, masses, mass_shares)
    settings: Attributes = {"G": 1, "M": 1, "rv": 1}
    if anisotropy_radius is not None:
        settings["ra"] = validate.positive("anisotropy_radius", anisotropy_radius)
    if len(numbers) > 1:
        settings |= {"mj": mean, "Mj": numbers * mean, "meanmassdef": "central"}
        settings |= {"delta": validate.number("delta", delta), "eta": validate.number("eta", eta)}
    phi0, g = validate.positive("phi0", phi0), validate.number("g", g, negative=False)
    if g >= 3.5:
        raise ArgumentError(f"g = {g} is not below 3.5: the model would be infinite")
    package = _package()
    entropy = seed.generate_state(4) if isinstance(seed, np.random.SeedSequence) else seed
    word = int(np.random.SeedSequence(entropy).generate_state(1)[0])
    state = np.random.get_state()  # NumPy's global numbers go on as if nothing had been drawn
    try:
        with np.errstate(all="ignore"):
            drawn = _drawn(package, phi0, g, settings, numbers, word)
    finally:
        np.random.set_state(state)
    pos, vel = (np.column_stack([getattr(drawn, name) for name in names])
                for names in (("x", "y", "z"), ("vx", "vy", "vz")))  # fmt: skip
    particles = centred(np.repeat(mean, numbers), pos, vel)
    return rescaled(particles) if rescale else particles


def _package() -> ModuleType:
    try:
        module = importlib.import_module("limepy")
        _ = module.limepy, module.sample
    except (ImportError, AttributeError) as error:
        raise MissingPackageError(
            f"these models need the package astro-limepy, which cannot be imported ({error}): pip "
            "install astro-limepy (PyPI's limepy is something else: uninstall that first)"
        ) from error
    return module


def _components(
    n: int, masses: ArrayLike | None, mass_shares: ArrayLike | None
) -> tuple[Int64s, Floats]:
    """Number of bodies of each component, and the mass of one; the total mass is 1."""
    if (masses is None) != (mass_shares is None):
        raise ArgumentError("masses and mass_shares belong together: give both or neither")
    if masses is None or mass_shares is None:
        return np.array([n]), np.array([1 / n])
    mass = validate.floats("masses", masses, (None,))
    share = validate.floats("mass_shares", mass_shares, (len(mass),))
    for name, array in {"masses": mass, "mass_shares": share}.items():
        if not len(array) or not (array > 0).all():
            raise ArgumentError(f"{name} = {array}: give at least one number, all above zero")
    requested = share / mass
    requested = requested * (n / requested.sum())
    numbers = np.floor(requested).astype(np.int64)
    numbers[np.argsort(numbers - requested, kind="stable")[: n - numbers.sum()]] += 1
    if not numbers.all():
        row = int(np.argmin(numbers))
        raise ArgumentError(f"n = {n}: component {row} has less than one body; increase n")
    return numbers, mass / (numbers * mass).sum()


def _drawn(
    package: ModuleType, phi0: float, g: float, settings: Attributes, numbers: Int64s, seed: int
) -> Untyped:
    """Its sample, with x, y, z, vx, vy, vz."""
    try:
        model = package.limepy(phi0, g, **settings)
        if len(numbers) > 1:
            model.mj = np.asarray(settings["mj"])
            model.Mj = (numbers + 0.5) * model.mj  # of which it takes the integers of Mj / mj
        return package.sample(model, N=int(numbers.sum()), seed=seed)
    except TypeError as error:
        raise MissingPackageError(
            f"astro-limepy fails ({error}), as its version 1.3 does with SciPy 1.17: pip install "
            "'scipy<1.17'"
        ) from error
    except (ValueError, ArithmeticError, IndexError) as error:
        reason = str(error).removeprefix(" ").removeprefix("Error: ")
        raise ArgumentError(
            f"astro-limepy finds no such model of phi0 = {phi0}, g = {g} ({reason}): other masses "
            "or a larger anisotropy_radius may help"
        ) from error
