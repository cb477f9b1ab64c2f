"""Two bodies or two models on a Kepler orbit, with G = 1."""

import math

import numpy as np

from grape6py._arrays import validate
from grape6py.errors import ArgumentError
from grape6py.in_units import taken
from grape6py.models.sampling import Component, Labelled, Particles, centred
from grape6py.units import Units


@taken()
def two_body(
    eccentricity: float = 0.0,
    mass_ratio: float = 1.0,
    semi_major_axis: float = 1.0,
    *,
    apocentre: bool = False,
    units: Units | None = None,
) -> Particles:
    """Two bodies on a Kepler ellipse of total mass 1.

    The first body is the heavier one if mass_ratio < 1. The orbit lies in the x-y plane,
    is traversed counterclockwise in 2 pi a^(3/2), and has the energy -m1 m2 / (2 a).

    Parameters
    ----------
    eccentricity : float
        0 <= eccentricity < 1.
    mass_ratio : float
        Mass of the second body over that of the first, > 0.
    semi_major_axis : float
        Of the relative orbit, > 0.
    apocentre : bool
        Start at the largest distance, instead of the smallest.
    units : Units, optional
        What the model's units of mass and length are: bodies are then given as quantities.

    Returns
    -------
    Particles
        Centre of mass at rest in the origin, the second body on the positive x axis.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Murray & Dermott, "Solar System Dynamics" (1999), equations 2.20 and 2.34.
    """
    if not 0 <= eccentricity < 1:
        raise ArgumentError(f"eccentricity = {eccentricity} is not in [0, 1)")
    mass_ratio = validate.positive("mass_ratio", mass_ratio)
    semi_major_axis = validate.positive("semi_major_axis", semi_major_axis)
    end = eccentricity if apocentre else -eccentricity
    separation = semi_major_axis * (1 + end)
    speed = math.sqrt((1 - end) / ((1 + end) * semi_major_axis))
    first, second = 1 / (1 + mass_ratio), mass_ratio / (1 + mass_ratio)
    share = np.array([-second, first])
    pos, vel = np.zeros((2, 3)), np.zeros((2, 3))
    pos[:, 0] = share * separation
    vel[:, 1] = share * speed
    return Particles(np.array([first, second]), pos, vel)


@taken()
def merger(
    first: Particles | Labelled,
    second: Particles | Labelled,
    pericentre: float,
    separation: float,
    *,
    eccentricity: float = 1.0,
    mass_ratio: float | None = None,
    tilt: tuple[float, float] = (0.0, 0.0),
    units: Units | None = None,
) -> Labelled:
    """Two models that approach each other, on the orbit that their total masses would have.

    The orbit lies in the x-y plane and is traversed counterclockwise, as disk galaxies of
    :func:`galaxy` rotate. Errors are those of :func:`two_body`.

    Parameters
    ----------
    first, second : Particles or Labelled
    pericentre : float
        Smallest distance of the orbit, > 0.
    separation : float
        Distance at the start, at least `pericentre` and no more than the largest distance.
    eccentricity : float
        1 for a parabola, less for an ellipse, more for a hyperbola.
    mass_ratio : float, optional
        Scale the second model to this mass over the first's, its lengths by the square root
        of the factor, so that its surface density stays, and velocities so that its virial ratio
        does. By default it is taken as it is.
    tilt : pair of float
        Angles in degrees by which the models are turned about the x axis, on which they lie.
    units : Units, optional
        What the model's units of mass and length are: bodies are then given as quantities.

    Returns
    -------
    Labelled
        The bodies of the first model, then those of the second, whose components are 4 larger;
        models without components have component 0. Centre of mass at rest in the origin, the
        second model on the positive x axis.

    Notes
    -----
    Binney & Tremaine 2008, section 3.1. Scaled so, the velocity goes as M^(1/4), which is Tully's
    and Fisher's relation.
    """
    pericentre = validate.positive("pericentre", pericentre)
    eccentricity = validate.number("eccentricity", eccentricity, negative=False)
    farthest = math.inf
    if eccentricity < 1:
        farthest = pericentre * (1 + eccentricity) / (1 - eccentricity)
    if not pericentre <= separation <= farthest or separation == math.inf:
        raise ArgumentError(
            f"separation = {separation} is no distance of an orbit that goes from {pericentre} "
            f"to {farthest}"
        )
    models, components = zip(*map(_labelled, (first, second)), strict=True)
    if not all(math.fsum(model.mass) > 0 for model in models):
        raise ArgumentError("both models need mass, to be on an orbit")
    one, two = (_turned(model, angle) for model, angle in zip(models, tilt, strict=True))
    if mass_ratio is not None:
        target_mass = validate.positive("mass_ratio", mass_ratio) * math.fsum(one.mass)
        factor = target_mass / math.fsum(two.mass)
        length = math.sqrt(factor)
        two = Particles(two.mass * factor, two.pos * length, two.vel * math.sqrt(length))
    masses = math.fsum(one.mass), math.fsum(two.mass)
    total = sum(masses)

    across = math.sqrt(total * pericentre * (1 + eccentricity)) / separation
    energy = (eccentricity - 1) * total / (2 * pericentre)
    inward = math.sqrt(max(0.0, 2 * (energy + total / separation) - across * across))
    apart, motion = [separation, 0, 0], [-inward, across, 0]
    places = [(one, -masses[1] / total), (two, masses[0] / total)]
    pos = np.concatenate([model.pos + np.multiply(share, apart) for model, share in places])
    vel = np.concatenate([model.vel + np.multiply(share, motion) for model, share in places])
    mass = np.concatenate([one.mass, two.mass])
    component = np.concatenate([components[0], components[1] + len(Component)])
    return Labelled(centred(mass, pos, vel), component.astype(np.int8))


def _labelled(model: Particles | Labelled) -> Labelled:
    model, component = model if isinstance(model, Labelled) else (model, None)
    mass = validate.floats("mass", model.mass, (None,))
    n = len(mass)
    pos, vel = (validate.floats(name, getattr(model, name), (n, 3)) for name in ("pos", "vel"))
    return Labelled(
        Particles(mass, pos, vel), np.zeros(n, np.int8) if component is None else component
    )


def _turned(model: Particles, degrees: float) -> Particles:
    """About the x axis, with the centre of mass brought to rest in the origin."""
    angle = math.radians(validate.number("tilt", degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    turn = np.array([[1, 0, 0], [0, cosine, -sine], [0, sine, cosine]])
    return centred(model.mass, *((vectors[:, None] * turn).sum(axis=2) for vectors in model[1:]))
