"""A disk galaxy with bulge, halo and black hole in rough equilibrium, and a merger of two.

Hernquist 1993, ApJS 86, 389: positions are drawn from each component's density, velocities from
Gaussians that have the moments which Jeans's equations ask for. It is no exact equilibrium: within
a rotation or so the galaxy settles. The unit of mass is that of the disk, that of length its scale
length, and G = 1. For a disk like the Milky Way's (3.5 kpc, 5.6e10 solar masses) the units of
velocity and time are 262 km/s and 13.1 Myr.

Last bits of these models may differ between processors, as those of sine and logarithm do.
"""

import numpy as np

from grape6py._arrays import validate
from grape6py._arrays.kinds import Floats, Seed
from grape6py.errors import ArgumentError
from grape6py.in_units import taken
from grape6py.models.components import Disk, Sphere
from grape6py.models.orbits import merger
from grape6py.models.sampling import Component, Labelled, Particles, generator
from grape6py.units import Units


@taken()
def galaxy(
    n_disk: int,
    n_bulge: int,
    n_halo: int,
    seed: Seed = None,
    *,
    disk_height: float = 0.2,
    toomre_q: float = 1.5,
    bulge_mass: float = 1 / 3,
    bulge_scale: float = 0.2,
    halo_mass: float = 5.8,
    halo_scale: float = 3.5,
    black_hole: float = 0.0,
    cut: float = 10.0,
    units: Units | None = None,
) -> Labelled:
    """Draw a disk galaxy, which rotates counterclockwise about the z axis.

    A component that has no bodies has no mass either.

    Parameters
    ----------
    n_disk, n_bulge, n_halo : int
        Bodies of each component, of equal masses; not all 0.
    disk_height : float
        z0 of the disk's density, proportional to exp(-R) / cosh(z / z0)^2; at most 1.
    toomre_q : float
        Toomre's Q of the disk at R = 2.43, which sets the radial dispersion.
    bulge_mass, bulge_scale, halo_mass, halo_scale : float
        Masses M, and scales a of the densities, proportional to 1 / (r (r + a)^3).
    black_hole : float
        Mass of one more body in the centre; none if 0.
    cut : float
        Each component ends at this many of its scales, at least 1, and has all of its mass within.
    seed, units
        As in :func:`plummer`.

    Returns
    -------
    Labelled
        Disk, bulge, halo, black hole, each component's centre of mass at rest in the origin.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Disk: the circular velocity is that of a thin disk (Binney & Tremaine 2008, section 2.6.1),
    made thick to first order, and of the spheres; the square of the radial dispersion goes as
    exp(-R), the azimuthal one is the epicyclic one (4.4.3), the mean velocity that of the radial
    Jeans equation (4.8.2), and the vertical dispersion that of the vertical virial theorem:
    pi Sigma z0 for a sheet, and <z^2> times the other slopes of the vertical force. Within half
    a scale length or so these are coarse.

    Bulge and halo: isotropic dispersions by the spherical Jeans equation (4.8.1), with the field
    of the disk averaged over spheres. The halo is Hernquist's of 1990 (ApJ 356, 359), not his
    truncated isothermal sphere of 1993; with the default scale it has about the same mass inside
    the Sun's radius. A softening length should be well below `bulge_scale`.
    """
    given_counts = {"n_disk": n_disk, "n_bulge": n_bulge, "n_halo": n_halo}
    counts = [validate.integer(name, count) for name, count in given_counts.items()]
    if min(counts) < 0 or not sum(counts):
        raise ArgumentError(f"n_disk, n_bulge, n_halo = {tuple(counts)}: a galaxy needs bodies")
    given = {"disk_height": disk_height, "toomre_q": toomre_q, "cut": cut,
             "bulge_mass": bulge_mass, "bulge_scale": bulge_scale,
             "halo_mass": halo_mass, "halo_scale": halo_scale}  # fmt: skip
    for name, value in given.items():
        validate.positive(name, value)
    if disk_height > 1:
        raise ArgumentError(f"disk_height = {disk_height} is not at most 1: that is no disk")
    if cut < 1:
        raise ArgumentError(f"cut = {cut} is not at least 1")
    hole = validate.number("black_hole", black_hole, negative=False)
    random = generator(seed)
    disk = Disk(1.0 if n_disk else 0.0, disk_height, toomre_q, cut)
    bulge = Sphere(bulge_mass if n_bulge else 0.0, bulge_scale, cut)
    halo = Sphere(halo_mass if n_halo else 0.0, halo_scale, cut)

    def spheres(r: Floats) -> Floats:
        return bulge.inside(r) + halo.inside(r) + hole

    end = cut * max(1.0, bulge_scale, halo_scale)
    radius = np.geomspace(1e-4 * min(1.0, bulge_scale, halo_scale), end, 4096)
    inside = spheres(radius) + disk.inside(radius)
    nothing = Particles(np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3)))
    parts = [
        disk.draw(random, n_disk, spheres) if n_disk else nothing,
        bulge.draw(random, n_bulge, radius, inside) if n_bulge else nothing,
        halo.draw(random, n_halo, radius, inside) if n_halo else nothing,
        Particles(np.array([hole]), np.zeros((1, 3)), np.zeros((1, 3))) if hole else nothing,
    ]
    component = np.repeat(np.array(Component, np.int8), [len(part.mass) for part in parts])
    return Labelled(Particles(*map(np.concatenate, zip(*parts, strict=True))), component)


@taken()
def galaxy_merger(
    n_halo: int = 100_000,
    n_stars: int = 20_000,
    seed: int | None = None,
    *,
    mass_ratio: float = 1 / 3,
    pericentre: float = 3.0,
    separation: float = 30.0,
    black_hole: float = 1e-3,
    tilt: tuple[float, float] = (0.0, 0.0),
    units: Units | None = None,
) -> Labelled:
    """Two galaxies with black holes on a parabolic orbit, by default the 240 002 bodies of [1]_.

    There it was integrated to T = 1000 with steps of 1/64 and a softening length of 0.1. Both
    galaxies have the same numbers of bodies; a quarter of the stars are those of the bulge. Errors
    are those of :func:`galaxy`.

    Parameters
    ----------
    n_halo, n_stars : int
        Bodies of each galaxy's halo, and of its disk and bulge together.
    mass_ratio : float
        Mass of the second galaxy over that of the first.
    pericentre, separation, tilt
        As in :func:`merger`, in scale lengths of the first galaxy's disk.
    black_hole : float
        Mass of the first galaxy's black hole over that of its disk.
    seed, units
        As in :func:`plummer`.

    Returns
    -------
    Labelled
        In the units of the first galaxy. Its dark matter has component 2, its stars have 0 and 1,
        its black hole has 3; those of the second galaxy 6, 4 and 5, 7.

    References
    ----------
    .. [1] Bedorf, Gaburov & Portegies Zwart 2012, J. Comput. Phys. 231, 2825, section 4.4.2
    """
    n_stars = validate.integer("n_stars", n_stars)
    n_bulge = n_stars // 4
    one, two = (
        galaxy(n_stars - n_bulge, n_bulge, n_halo, part, black_hole=black_hole)
        for part in np.random.SeedSequence(seed).spawn(2)
    )
    return merger(one, two, pericentre, separation, mass_ratio=mass_ratio, tilt=tilt)
