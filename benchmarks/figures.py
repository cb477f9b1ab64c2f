"""The figures of docs/: measures what they show, keeps it as JSON, and draws them from that.

    python benchmarks/figures.py measure [--name NAME] [WHAT ...]
    python benchmarks/figures.py draw [--name NAME]

WHAT: forces, steps, cuts, chaos; all by default. The JSON is benchmarks/results/figures-NAME.json,
the pictures are docs/figures/*.png.
"""

import argparse
import json
import platform
from pathlib import Path

import matplotlib as mpl
import numpy as np
from accuracy import relative
from cpu import commit, machine
from matplotlib.figure import Figure

from grape6py import Grape6, Hermite, plummer, reference

HERE = Path(__file__).resolve().parent
PICTURES = HERE.parent / "docs/figures"
MODES = ("single", "grape", "double")
COLOURS = dict(zip(MODES, ("#e07a1f", "#1f4e79", "#2a9d8f"), strict=True))
PERCENTILES = np.array([0.1, 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.9, 100])


def forces():
    """Percentiles of the relative errors of a sphere's forces, by mode."""
    model = plummer(16384, 1)
    true = reference.direct_sum(*model, extended=True)
    found = {"n": len(model.mass), "percentiles": PERCENTILES.tolist()}
    for mode in MODES:
        with Grape6(precision=mode) as board:
            board.set_particles(*model)
            sums = board.forces()
        found[mode] = {
            name: np.percentile(relative(getattr(sums, name), getattr(true, name)), PERCENTILES)
            .astype(float).tolist()
            for name in ("acc", "jerk", "pot")
        }  # fmt: skip
    return found


def steps():
    """Energy error of a sphere over a time unit against eta, by mode: median of eight seeds."""
    n, seeds = 1024, 8
    etas = [2.0**-k * 0.16 for k in range(8)]
    found = {"n": n, "eps": 4 / n, "t": 1.0, "seeds": seeds, "eta": etas}
    for mode in MODES:
        found[mode] = []
        for eta in etas:
            errors = []
            for seed in range(seeds):
                cluster = Hermite(*plummer(n, seed), eps=4 / n, eta=eta, precision=mode)
                start = cluster.energy().total
                cluster.evolve(1.0)
                errors.append(abs(cluster.energy().total / start - 1))
            found[mode].append(float(np.median(errors)))
    return found


def cuts():
    """Share of the forces whose bits change if the j particles are cut in k and added up.

    As doubles by the caller, and as partial sums; mode double.
    """
    model, n = plummer(16384, 1), 16384
    index = np.arange(n)
    blocks = np.array_split(index, n // 1024)

    def summed(k):
        acc = np.zeros((n, 3))
        for share in range(k):
            mine = np.concatenate(blocks[share::k])
            with Grape6(precision="double") as board:
                board.set_particles(*(values[mine] for values in model), index=mine)
                acc += board.forces(model.pos, model.vel, index).acc
        return acc

    def merged(k):
        return partial(model, [np.concatenate(blocks[share::k]) for share in range(k)])

    parts = list(range(1, 17))
    whole = summed(1)
    found = {"n": n, "parts": parts, "doubles": [], "partial sums": []}
    assert np.array_equal(merged(1), whole)
    for k in parts:
        for name, way in (("doubles", summed), ("partial sums", merged)):
            found[name].append(float((way(k) != whole).any(axis=1).mean()))
    return found


def partial(model, shares):
    """acc of all bodies in mode double from sessions that hold a share each, as integers."""
    from grape6py._lib.library import check, ffi, lib, pointer

    n, ids = len(model.mass), range(900, 900 + len(shares) + 1)
    everybody = np.arange(n, dtype=np.int32)
    words, total = np.zeros((2, n, lib.G6X_PARTIAL_WORDS), np.int64)
    scale = ffi.new("int[3]")
    for cluster, share in zip(ids, [everybody, *shares], strict=True):  # the first is for scale
        check(lib.g6_open(cluster), cluster)
        address = share % 1024 + np.arange(len(share)) // 1024 * 1024
        arrays = [np.ascontiguousarray(values[share]) for values in model]
        check(lib.g6x_set_j_particles(
            cluster, len(share), pointer(address.astype(np.int32), "int[]"),
            pointer(share.astype(np.int32), "int[]"), ffi.NULL, ffi.NULL,
            pointer(arrays[0], "double[]"), ffi.NULL, ffi.NULL, ffi.NULL,
            pointer(arrays[2], "double[][3]"), pointer(arrays[1], "double[][3]"),
        ), cluster)  # fmt: skip
        if cluster == ids[0]:
            check(lib.g6x_get_scale(cluster, n, scale), cluster)
            lib.g6_close(cluster)
            continue
        lib.g6x_set_int(cluster, lib.G6X_PRECISION, lib.G6X_DOUBLE)
        for key, value in zip(("LENGTH", "MASS", "VELOCITY"), scale, strict=True):
            lib.g6x_set_int(cluster, getattr(lib, f"G6X_SCALE_{key}"), value)
        x, v = (pointer(values, "double[][3]") for values in (model.pos, model.vel))
        h2, dummy = pointer(np.zeros(n), "double[]"), pointer(np.zeros((n, 3)), "double[][3]")
        call = cluster, len(share), n, pointer(everybody, "int[]"), x, v
        check(lib.g6calc_firsthalf(*call, dummy, dummy, h2, 0.0, h2), cluster)
        check(lib.g6x_get_partial(cluster, n, pointer(words, "long long[]")), cluster)
        if cluster == ids[1]:
            total[:] = words
        else:
            rows = (pointer(a, "long long[]") for a in (total, words))
            check(lib.g6x_add_partial(n, *rows))
        lib.g6_close(cluster)
    acc, jerk, pot = np.empty((n, 3)), np.empty((n, 3)), np.empty(n)
    out = (pointer(a, "double[][3]") for a in (acc, jerk))
    check(lib.g6x_from_partial(n, pointer(total, "long long[]"), *out, pointer(pot, "double[]")))
    return acc


def chaos():
    """How far two runs of a sphere come apart if one coordinate differs in its last bit.

    In mode double: the others do not resolve that bit.
    """
    n, every = 1024, 0.25
    model = plummer(n, 1)
    nudged = model.pos.copy()
    nudged[0, 0] = np.nextafter(nudged[0, 0], np.inf)
    tracks = []
    for pos in (model.pos, model.pos, nudged):
        track = [pos.copy()]
        cluster = Hermite(model.mass, pos, model.vel, eps=4 / n, precision="double")
        cluster.evolve(12.0, lambda c, to=track: to.append(c.pos), every=every)
        tracks.append(np.array(track))
    apart = [np.sqrt(((tracks[0] - other) ** 2).sum(2).mean(1)).tolist() for other in tracks[1:]]
    time = (np.arange(len(tracks[0])) * every).tolist()
    return {"n": n, "eps": 4 / n, "time": time, "same": apart[0], "last bit": apart[1]}


def draw(found):
    ink = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    ink |= {"axes.grid": True, "grid.alpha": 0.25, "axes.titlelocation": "left"}
    PICTURES.mkdir(exist_ok=True)
    with mpl.rc_context(ink):
        _draw_forces(found["forces"])
        _draw_steps(found["steps"])
        _draw_bits(found["cuts"], found["chaos"])


def _draw_forces(data):
    figure, panels = _panels(3)
    for axes, (name, title) in zip(
        panels, (("acc", "acceleration"), ("jerk", "jerk"), ("pot", "potential")), strict=True
    ):
        for mode in MODES:
            percent = 100 - np.array(data["percentiles"])
            axes.plot(data[mode][name], np.maximum(percent, 100 / data["n"]), color=COLOURS[mode],
                      label=mode)  # fmt: skip
        axes.set(xscale="log", yscale="log", title=title, xlabel="relative error")
    panels[0].set_ylabel("% of the bodies with a larger error")
    panels[0].legend(frameon=False)
    figure.savefig(PICTURES / "force-errors.png")


def _draw_steps(data):
    figure, (axes,) = _panels(1)
    for mode in MODES:
        axes.plot(data["eta"], data[mode], "o-", ms=4, color=COLOURS[mode], label=mode)
    eta = np.array(data["eta"])
    axes.plot(eta, data["double"][0] * (eta / eta[0]) ** 2, ":", color="0.5", label="eta squared")
    axes.set(xscale="log", yscale="log", xlabel="eta", ylabel="|dE / E| after one time unit")
    axes.legend(frameon=False)
    figure.savefig(PICTURES / "energy-errors.png")


def _draw_bits(cut, apart):
    figure, (left, right) = _panels(2)
    for name, colour in (("doubles", COLOURS["single"]), ("partial sums", COLOURS["grape"])):
        share = 100 * np.array(cut[name])
        left.plot(cut["parts"], share, "o-", ms=4, color=colour, label=f"added as {name}")
    left.set(xlabel="boards among which the j particles are shared", ylim=(-4, 104),
             title="forces with other bits, %")  # fmt: skip
    left.legend(frameon=False, loc="center right")
    left.set_xticks([1, 4, 8, 12, 16])
    right.plot(apart["time"], apart["last bit"], color=COLOURS["single"])
    right.set(yscale="log", xlabel="time", ylim=(1e-19, 10),
              title="distance of two runs that differ in one bit")  # fmt: skip
    figure.savefig(PICTURES / "bits.png")


def _panels(count):
    figure = Figure(figsize=(1 + 3.3 * count + (count == 1), 3.4), dpi=110, layout="constrained")
    return figure, np.atleast_1d(figure.subplots(1, count))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("measure", "draw"))
    parser.add_argument("what", nargs="*", help="forces, steps, cuts, chaos")
    parser.add_argument("--name", default=platform.node())
    options = parser.parse_args()
    path = HERE / "results" / f"figures-{options.name}.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    if options.action == "measure":
        for way in (forces, steps, cuts, chaos):
            if not options.what or way.__name__ in options.what:
                found[way.__name__] = {"machine": machine(), "commit": commit()} | way()
                path.write_text(json.dumps(found, indent=1) + "\n")
                print(f"{way.__name__} done", flush=True)
    draw(found)


if __name__ == "__main__":
    main()
