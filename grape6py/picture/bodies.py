"""Bodies seen from one side: points if they are few, else their density, each group in its colour.

What is drawn at several times has the same limits, colours and brightness.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from grape6py._arrays.kinds import Bools, Floats, Untyped
from grape6py.errors import ArgumentError
from grape6py.files.runs.moments import Moment
from grape6py.models import Component
from grape6py.picture.scale import labelled

SKY = "#0a0f1e"
BODIES = "#cfe4ff"
# Of the first and the second galaxy: a family of colours each, for disk and bulge.
_STARS = (("#4c9dff", "#c4ecff"), ("#ff8a3d", "#ffe29a"))
_CLUSTERS = ("first", "second")
_DARK_MATTER = "#8a83b8"
_OF_GALAXY = len(Component)
_NOUNS = {"merger of two galaxies": "Galaxies", "disk galaxy": "Galaxy"}  # of names of runs
MANY = 50_000  # bodies, from which on their density is drawn
PLANES = {"xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
_TO_VECTOR_FILES = 5000  # points; more are put into .pdf and .svg as an image
_DIMMEST = 0.2  # of a cell with one body
_DENSITY = LinearSegmentedColormap.from_list(
    "density", [SKY, "#223f7c", "#3b8fd0", "#a8def0", "#fffbe6"]
)


class Group(NamedTuple):
    """Bodies of one colour. `share` is that of the light, `labels` the components."""

    name: str
    colour: str
    labels: tuple[int, ...]
    share: float = 1.0

    def among(self, moment: Moment) -> Bools:
        """Which bodies belong to it; shape (n,)."""
        if moment.component is None:
            return np.full(len(moment.mass), not self.labels)
        return np.isin(moment.component, self.labels)


class Groups(NamedTuple):
    """What there is: `drawn` from the back to the front, `holes` to be marked."""

    drawn: list[Group]
    holes: list[Group]
    noun: str

    @property
    def are_told(self) -> bool:
        """Whether there is anything to tell apart."""
        return len(self.drawn) + len(self.holes) > 1


def groups(moments: Iterable[Moment], name: str = "") -> Groups:
    """The groups of a run. Its name tells whether bodies are galaxies, if labels do not."""
    known = (moment.component for moment in moments if moment.component is not None)
    labels = sorted(set().union(*(np.unique(component).tolist() for component in known)))
    are_galaxies = any(label % _OF_GALAXY != Component.DISK for label in labels)  # or clusters
    two = any(label >= _OF_GALAXY for label in labels)
    if not are_galaxies and not two:
        noun = next((word for start, word in _NOUNS.items() if name.startswith(start)), "Bodies")
        return Groups([Group("bodies", BODIES, tuple(labels))], [], noun)
    stars, holes = [], []
    for label in labels:
        galaxy, kind = divmod(label, _OF_GALAXY)
        number = f" {galaxy + 1}" if two else ""
        if galaxy > 1 or kind == Component.HALO:
            continue
        if kind == Component.BLACK_HOLE:
            holes.append(Group(f"black hole{number}", "white", (label,)))
        else:
            word = ("disk", "bulge")[kind] + number if are_galaxies else _CLUSTERS[galaxy]
            stars.append(Group(word, _STARS[galaxy][kind], (label,)))
    halo = tuple(label for label in labels if label % _OF_GALAXY == Component.HALO)
    dark = [Group("dark matter", _DARK_MATTER, halo, 0.35)] if halo else []
    # Of a third model and more, which nothing here can make.
    rest = tuple(label for label in labels if label >= 2 * _OF_GALAXY and label not in halo)
    others = [Group("others", BODIES, rest)] if rest else []
    noun = "Bodies" if not are_galaxies else "Galaxies" if two else "Galaxy"
    return Groups([*others, *dark, *stars], holes, noun)


class Bodies:
    """How bodies are drawn: some moments choose limits, colours and brightness; others can be drawn
    as well.

    `name` is that of the run: "disk galaxy" and "merger of two galaxies" begin those of galaxies.
    `pixels` are of the axes, `unit` is of positions. Plane, size (by default what has nearly all of
    the stars) and errors are those of :func:`picture.draw_bodies`.
    """

    def __init__(
        self,
        moments: Sequence[Moment],
        name: str = "",
        *,
        plane: str = "xy",
        size: float | None = None,
        pixels: int = 256,
        unit: str = "",
    ) -> None:
        if plane not in PLANES:
            raise ArgumentError(f"plane = {plane!r}: a view is on xy, xz or yz")
        if size is not None and not 0 < size < np.inf:
            raise ArgumentError(f"size = {size} is not above zero")
        self._names, self._plane = [labelled(name, unit) for name in plane], list(PLANES[plane])
        self.groups = groups(moments, name)
        self.centre, self.size = self._view(moments)
        self.size = size or self.size
        n = max(len(moment.mass) for moment in moments)
        self.are_many = n >= MANY
        self._cells = int(np.clip(np.sqrt(n) / 3, 64, 0.8 * pixels))
        self._light = self._brightness(moments) if self.are_many else {}

    def _view(self, moments: Sequence[Moment]) -> tuple[Floats, float]:
        """Centre, and half of the width that nearly all stars of all moments have in them."""
        places = [moment.pos[self._stars(moment)][:, self._plane] for moment in moments]
        places = [place for place in places if len(place)]
        if not places:
            return np.zeros(2), 1.0
        centre = np.quantile(places[0], [0.03, 0.97], axis=0).mean(axis=0)
        far = [np.abs(place - centre).max(axis=1) for place in places]
        air = 1.25 if self.groups.are_told else 1.1  # tidal tails go far
        size = air * max(np.quantile(far[0], 0.97), *(np.quantile(r, 0.9) for r in far))
        return centre, float(size) if 0 < size < np.inf else 1.0

    def _stars(self, moment: Moment) -> Untyped:
        if moment.component is None:
            return slice(None)
        stars = moment.component % len(Component) != Component.HALO
        return stars if stars.any() else slice(None)

    def _brightness(self, moments: Sequence[Moment]) -> dict[str, tuple[float, float]]:
        """Logarithms of the mass in a cell that is dimmest and brightest, by group."""
        light: dict[str, tuple[float, float]] = {}
        for moment in moments:
            for group, cells in self._densities(moment):
                filled = cells[cells > 0]
                if filled.size:
                    low, high = np.log(np.quantile(filled, 0.02)), np.log(filled.max())
                    before = light.get(group.name, (low, high))
                    light[group.name] = min(low, before[0]), max(high, before[1])
        return light

    def prepare(self, axes: Axes, points: float, *, outermost: bool = True) -> None:
        """Set limits and ticks of square axes with sides of so many points."""
        axes.set_facecolor(SKY)
        axes.grid(False)
        axes.spines[:].set_visible(False)
        limits = self.centre[:, None] + np.array([-self.size, self.size])
        axes.set(xlim=limits[0], ylim=limits[1])
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(max(2, int(points / 45)), prune="both"))
        axes.set_xlabel(self._names[0])
        if outermost:
            axes.set_ylabel(self._names[1])
        else:
            axes.tick_params(left=False, labelleft=False)

    def draw(self, axes: Axes, moment: Moment, points: float) -> list[Artist]:
        """Draw a moment into prepared axes."""
        drawn = [self._image(axes, moment)] if self.are_many else self._points(axes, moment, points)
        for hole in self.groups.holes:
            x, y = moment.pos[hole.among(moment)][:, self._plane].T
            drawn += axes.plot(x, y, ls="", **_hole(float(np.clip(0.045 * points, 5, 9))))
        return drawn

    def _points(self, axes: Axes, moment: Moment, points: float) -> list[Artist]:
        drawn: list[Artist] = []
        n, shrunk = max(len(moment.mass), 1), (points / 230) ** 2
        dot = max(min(shrunk * 4000 / n, shrunk * 30), 0.7 * max(points / 142, 1))
        typical = np.median(moment.mass) if len(moment.mass) else 1.0
        for group in self.groups.drawn:
            rows = group.among(moment)
            x, y = moment.pos[rows][:, self._plane].T
            size = dot * np.clip(moment.mass[rows] / (typical or 1.0), 0.3, 6)
            alpha = float(np.clip(60 / np.sqrt(max(len(x), 1)), 0.5, 0.9)) * group.share
            drawn.append(axes.scatter(x, y, s=size, color=group.colour, alpha=alpha, linewidths=0,
                                      rasterized=n > _TO_VECTOR_FILES))  # fmt: skip
        return drawn

    def _image(self, axes: Axes, moment: Moment) -> Artist:
        cells = self._cells
        image = np.tile(np.array(to_rgb(SKY)), (cells, cells, 1))
        for group, mass in self._densities(moment):
            low, high = self._light.get(group.name, (0.0, 1.0))
            with np.errstate(divide="ignore"):
                bright = (np.log(mass) - low) / max(high - low, 1e-9)
            bright = np.where(mass > 0, _DIMMEST + (1 - _DIMMEST) * np.clip(bright, 0, 1), 0)
            if self.groups.are_told:
                glow = np.array(to_rgb(group.colour)) - to_rgb(SKY)
                image += group.share * bright[..., None] * glow
            else:
                image = _DENSITY(bright)[..., :3]
        (x, y), size = self.centre, self.size
        extent = (x - size, x + size, y - size, y + size)
        return axes.imshow(image.clip(0, 1), extent=extent, origin="lower", aspect="auto",
                           interpolation="bilinear")  # fmt: skip

    def _densities(self, moment: Moment) -> Iterator[tuple[Group, Floats]]:
        """The mass in each cell, shape (cells, cells), rows upwards, by group."""
        n = self._cells
        places = (moment.pos[:, self._plane] - (self.centre - self.size)) * (n / (2 * self.size))
        inside = ((places >= 0) & (places < n)).all(axis=1)
        column, row = places.T
        row, column = (np.where(inside, at, 0).astype(np.int64) for at in (row, column))
        cell = row * n + column
        for group in self.groups.drawn:
            weight = np.where(inside & group.among(moment), moment.mass, 0)
            yield group, np.bincount(cell, weight, n * n).reshape(n, n).astype(float)

    def legend(self, axes: Axes) -> None:
        """Name the groups in axes of their own, which show nothing else."""
        axes.set_axis_off()
        handles = [
            Line2D([], [], ls="", marker="o", ms=6, color=group.colour, label=group.name,
                   mec="#555555", mew=0.4)
            for group in sorted(self.groups.drawn, key=lambda group: -group.share)
        ]  # fmt: skip
        if holes := self.groups.holes:
            mark: Untyped = _hole(7) | {"mec": "#555555", "path_effects": []}  # on white
            words = "black hole" if len(holes) == 1 else "black holes"
            handles.append(Line2D([], [], ls="", label=words, **mark))
        axes.legend(handles=handles, loc="center left", ncols=len(handles), frameon=False,
                    borderaxespad=0, handletextpad=0.2, columnspacing=1.6, handlelength=1,
                    borderpad=0)  # fmt: skip


def _hole(size: float) -> dict[str, Untyped]:
    """The mark of a black hole: a ring of a size in points."""
    return {"marker": "o", "ms": size, "mfc": "none", "mec": "white", "mew": 1.0,
            "path_effects": [withStroke(linewidth=2.4, foreground=SKY)]}  # fmt: skip
