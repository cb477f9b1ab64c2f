"""Pictures of runs: nothing lies on anything else, and bodies are told apart."""

import functools
import itertools

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb
from matplotlib.text import Annotation, Text

from grape6py import galaxy, galaxy_merger, king, merger, movie, picture, plummer
from grape6py.files.runs import moments
from grape6py.picture import Moment, bodies
from grape6py.picture.bodies import SKY, groups
from runs import run


def history(radii=((0.3, 0.8, 2.0),), errors=(1e-7,), count=9, end=1.0, start=0.0):
    """Records of a run whose radii and errors are repeated to as many as there are outputs."""
    radii, errors = (itertools.islice(itertools.cycle(x), count) for x in (radii, errors))
    time = np.linspace(start, end, count) if count > 1 else [start]
    return [{"time": t, "radii": list(r), "error": e, "virial_ratio": 0.5 + 1e-3 * t}
            for t, r, e in zip(time, radii, errors, strict=True)]  # fmt: skip


def sphere(n=100, times=(0, 1.0)):
    mass, pos, _ = plummer(n, 1)
    return [Moment(time, mass, pos) for time in times]


def two_galaxies(n_halo=100, n_stars=40, times=(0, 1.0)):
    (mass, pos, _), component = galaxy_merger(n_halo, n_stars, 1)
    return [Moment(time, mass, pos, component) for time in times]


@functools.cache
def case_drawn(number):
    records = history(**CASES[number])
    return drawn(records, sphere(20, np.unique([r["time"] for r in records])[[0, -1]])), records


def drawn(records, shown, title="run"):
    with mpl.rc_context(picture.STYLE):
        figure = picture.draw(None, title, records, (0.1, 0.5, 0.9), shown)
        FigureCanvasAgg(figure).draw()
    return figure


def visible_texts(figure):
    """Without the labels of ticks outside of the limits, which matplotlib does not draw."""
    renderer = figure.canvas.get_renderer()
    found = [t for t in figure.texts if t.get_text()]
    for axes in figure.axes:
        found += [t for t in (*axes.texts, axes.title, axes._left_title) if t.get_text()]
        if axes.axison:
            found += [t for t in (axes.xaxis.label, axes.yaxis.label) if t.get_text()]
        if axes.get_legend():
            found += axes.get_legend().get_texts()
        for axis in (axes.xaxis, axes.yaxis):
            ticks = axis._update_ticks() if axes.axison else []
            found += [t.label1 for t in ticks if t.label1.get_visible() and t.label1.get_text()]
    return [(t.get_text(), Text.get_window_extent(t, renderer)) for t in found]


RADII = [
    [(0.3, 0.8, 2.0)], [(0.5, 0.501, 0.502)], [(0.0, 0.0, 0.0)],
    [(0.1, 0.2, 5.0), (0.2, 0.2, 0.2), (3.0, 3.1, 3.2)], [(1e-30, 1.0, 1e40)],
    [(1.1e12, 2.2e12, 3.3e12)], [(np.nan, np.nan, np.nan)],
]  # fmt: skip
ERRORS = [
    [1e-9], [0.0], np.geomspace(1e-16, 1, 9), np.linspace(1e-7, 1.1e-7, 9), [np.nan],
    [0.0, 1e-8, 0.0, -3e-8], [0.5, 20.0],
]  # fmt: skip
CASES = [
    *[{"radii": radii, "errors": errors} for radii, errors in zip(RADII, ERRORS, strict=True)],
    {"count": 1}, {"count": 2}, {"count": 1000}, {"start": 1000, "end": 1000.5},
    {"end": 3e-7}, {"start": 123456, "end": 123456.25},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CASES)))
def test_no_text_lies_on_another_or_leaves_the_picture(number):
    figure, records = case_drawn(number)
    found = visible_texts(figure)
    for (text, box), (other, box2) in itertools.combinations(found, 2):
        assert not box.overlaps(box2), (text, other)
    for text, box in found:
        assert box.x0 >= 0, text
        assert box.x1 <= figure.bbox.x1, text
        assert box.y0 >= 0, text
    for axes in figure.axes[:4]:
        for axis in (axes.xaxis, axes.yaxis):
            labels = [t.label1.get_text() for t in axis._update_ticks() if t.label1.get_text()]
            one = axis is axes.xaxis and len(records) == 1
            assert len(labels) >= 2 or one or axes.texts, (labels, axis)
            assert len(set(labels)) == len(labels)


@pytest.mark.parametrize("number", range(len(RADII)))
def test_labels_of_radii_lie_beside_the_curves(number):
    figure, _ = case_drawn(number)
    axes = figure.axes[1]
    labels = [text for text in axes.texts if isinstance(text, Annotation)]
    assert [t.get_text() for t in labels] == ["10 % of mass", "50 % of mass", "90 % of mass"]
    boxes = [Text.get_window_extent(t, figure.canvas.get_renderer()) for t in labels]
    for label, box, line in zip(labels, boxes, axes.lines, strict=False):
        assert box.x0 > axes.bbox.x1
        assert label.get_color() == line.get_color()
    lower = [box.y0 for box in boxes]
    assert sorted(lower) == lower or number == len(RADII) - 1  # in the order of the curves


def test_a_long_title_is_made_to_fit():
    figure = drawn(history(), sphere(), "a $file$ of a very long name, " * 9)
    box = figure.texts[0].get_window_extent(figure.canvas.get_renderer())
    assert box.x1 < figure.bbox.x1


def points(axes):
    return [c for c in axes.collections if isinstance(c, PathCollection)]


def test_few_bodies_are_points_where_they_are():
    shown = sphere(300)
    axes = drawn(history(), shown).axes[3]
    (found,) = points(axes)
    assert np.array_equal(found.get_offsets(), shown[0].pos[:, :2])
    assert not axes.images


def test_many_bodies_are_drawn_as_density():
    n = bodies.MANY
    mass, pos = np.full(n, 1 / n), np.random.default_rng(1).normal(size=(n, 3))
    figure = drawn(history(), [Moment(0, mass, pos), Moment(1, mass, 0.2 * pos)])
    for axes in figure.axes[3:]:
        assert not points(axes)
        (image,) = axes.images
        light = np.asarray(image.get_array()).sum(axis=2)
        middle = len(light) // 2
        assert light[middle, middle] > light[middle, 1] + 0.3
    assert light[middle, 1] == pytest.approx(sum(to_rgb(SKY)), abs=0.01)  # nobody is there


def test_components_of_galaxies_have_colours_and_a_legend():
    figure = drawn(history(), two_galaxies(), "merger of two galaxies")
    panel, legend = figure.axes[3], figure.axes[-1]
    dark, *stars = points(panel)
    colours = {tuple(found.get_facecolor()[0]) for found in stars}
    assert len(stars) == len(colours) == 4
    assert dark.get_alpha() < 0.5 * min(found.get_alpha() for found in stars)
    assert len(panel.lines) == 2  # the black holes
    names = [text.get_text() for text in legend.get_legend().get_texts()]
    assert names == ["disk 1", "bulge 1", "disk 2", "bulge 2", "dark matter", "black holes"]
    assert not legend.get_legend().get_window_extent().overlaps(panel.bbox)
    assert panel.get_title("left") == "Galaxies at t = 0"
    assert len({axes.get_xlim() for axes in figure.axes[3:5]}) == 1


def test_densities_of_components_have_their_colours(monkeypatch):
    monkeypatch.setattr(bodies, "MANY", 1)
    figure = drawn(history(), two_galaxies(3000, 3000), "merger of two galaxies")
    image = np.asarray(figure.axes[3].images[0].get_array())
    left, right = (image[:, half].mean(axis=(0, 1)) for half in (slice(0, 32), slice(-32, None)))
    assert left[2] > left[0]  # the first galaxy is blue
    assert right[0] - right[2] > left[0] - left[2]


@pytest.mark.parametrize(("model", "noun", "names"), [
    (galaxy(20, 5, 50, 1), "Galaxy", ["dark matter", "disk", "bulge"]),
    (merger(king(20, 5, 1), plummer(20, 2), 1, 10), "Bodies", ["first", "second"]),
    (merger(king(20, 5, 1), galaxy(20, 5, 50, 1), 1, 10), "Galaxies",
     ["dark matter", "disk 1", "disk 2", "bulge 2"]),
    (merger(merger(king(9, 5, 1), king(9, 5, 2), 1, 10), king(9, 5, 3), 1, 20), "Bodies", None),
], ids=["galaxy", "clusters", "mixed", "three"])  # fmt: skip
def test_groups_are_those_that_there_are(model, noun, names):
    found = groups([Moment(0, *model.particles[:2], model.component)])
    assert found.noun == noun
    assert names is None or [group.name for group in found.drawn] == names


@pytest.mark.parametrize(("name", "noun"), [
    ("merger of two galaxies, N = 10", "Galaxies"), ("disk galaxy, N = 10", "Galaxy"),
    ("Plummer sphere", "Bodies"), ("my disk galaxy", "Bodies"),
])  # fmt: skip
def test_a_file_without_labels_says_by_its_name_what_it_holds(name, noun):
    assert groups(sphere(), name).noun == noun


@pytest.mark.parametrize("shown", [
    [Moment(0, np.zeros(0), np.zeros((0, 3)))],
    [Moment(0, np.ones(1), np.zeros((1, 3)))],
    [Moment(0, np.zeros(2), np.ones((2, 3)))],
], ids=["none", "one", "massless"])  # fmt: skip
def test_odd_bodies_are_drawn(shown):
    assert drawn(history(count=1), shown).axes[3].get_xlim()[0] < 0.5


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 9, 100])
def test_a_run_keeps_the_moments_that_its_file_would_show(count):
    times = np.linspace(0, 2, count) if count > 1 else [0.0]
    kept = moments.Nearest(times[0], times[-1])
    for time in times:
        kept.offer(time, lambda time=time: Moment(time, np.ones(1), np.zeros((1, 3))))
    assert [m.time for m in kept.found()] == [times[k] for k in moments.spread(times)]
    assert len(kept.found()) == min(count, moments.COUNT)


def test_a_run_that_was_stopped_shows_its_end():
    kept = moments.Nearest(0, 9)
    for time in range(5):
        kept.offer(time, lambda time=time: Moment(time, np.ones(1), np.zeros((1, 3))))
    assert [moment.time for moment in kept.found()] == [0, 3, 4]


MYR = 0.0876501978  # sqrt((1.2 pc)^3 / (G 5e4 Msun)) in Myr, by astropy 8


def texts(figure):
    return [
        text
        for axes in figure.axes
        for text in (axes.get_xlabel(), axes.get_ylabel(), axes.get_title("left"), axes.get_title())
    ]


def test_without_units_axes_have_none():
    assert {"x", "y", "time", "Lagrangian radii"} <= set(texts(drawn(history(), sphere())))


@pytest.fixture
def figures(monkeypatch):
    made, draw = [], picture.draw
    monkeypatch.setattr(picture, "draw", lambda *a, **k: made.append(draw(*a, **k)) or made[-1])
    stage = movie._stage
    monkeypatch.setattr(movie, "_stage", lambda *a: made.append((r := stage(*a))[0]) or r)
    return made


def check(figure, end, is_movie=False):
    found, title = texts(figure), figure.texts[0].get_text()
    assert {"x [pc]", "y [pc]"} <= set(found)
    assert "eps = 0.024 pc" in title
    last = next(t for t in found[::-1] if "t = " in t)
    number, unit = last.partition("t = ")[2].split(" ")
    assert float(number) == pytest.approx(end * MYR, rel=1e-3)
    assert unit == "Myr"
    if not is_movie:
        assert "Lagrangian radii [pc]" in found
        assert found.count("time [Myr]") == 3


@pytest.mark.slow
def test_a_picture_and_a_movie_are_in_the_units_of_the_run(here, figures):
    t, out = 0.25, ("--units", "5e4 Msun 1.2 pc", "--out", "a.h5", "--plot", "a.png")
    np.savetxt("a.dat", np.column_stack(plummer(20, seed=1)), "%.17g")  # a model's have G = 1
    assert run("a.dat", "--eps", 0.02, "--t-end", t, *out) == 0
    picture.draw_file("b.png", "a.h5")
    assert run("a.h5", "--restart", "--t-end", 2 * t, "--out", "b.h5", "--plot", "c.png") == 0
    movie.draw("a.gif", "a.h5", size=3)
    by_command, by_file, restarted, of_movie = figures
    for figure, end in (by_command, t), (by_file, t), (restarted, 2 * t):
        check(figure, end)
        assert figure.axes[0].get_xlim()[1] == pytest.approx(1.02 * end * MYR, rel=0.01)
        pos = figure.axes[3].collections[0].get_offsets()
        assert np.allclose(pos, plummer(20, seed=1).pos[:, :2] * 1.2)
    check(of_movie, t, is_movie=True)
    assert np.ptp(of_movie.axes[0].get_xlim()) == pytest.approx(6)
