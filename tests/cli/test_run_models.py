"""``grape6 run`` and its models: names, options and defaults."""

import json
from functools import partial

import numpy as np
import pytest

import grape6py as g6
from grape6py import archive, plummer
from grape6py.cli.run_models import MODELS, OPTIONS
from runs import run

QUICK = ["--t-end", "0.0625", "--dt-out", "0.0625", "--backend", "cpu"]


@pytest.mark.parametrize(("words", "title", "eps", "model"), [
    ("king", "King model, ", 4 / 60, lambda: g6.king(60, 6, 1)),
    ("king --w0 9 --seed 3", "King model, w0 9, ", 4 / 60, lambda: g6.king(60, 9, 3)),
    ("hernquist", "Hernquist model, ", 4 / 60, lambda: g6.hernquist(60, 1)),
    ("eff --gamma 2.5 --truncation 20", "Elson-Fall-Freeman model, gamma 2.5, truncation 20, ",
     4 / 60, lambda: g6.eff(60, 2.5, 1, truncation=20)),
    ("nfw --concentration 5", "NFW halo, concentration 5, ", 4 / 60,
     lambda: g6.models.nfw(60, 5, 1)),
    ("uniform --virial-ratio 0", "uniform sphere, virial ratio 0, ", 4 / 60,
     lambda: g6.uniform(60, 1, 0)),
    ("fractal --dimension 2 --virial-ratio 0.3",
     "fractal cluster, virial ratio 0.3, dimension 2, ", 4 / 60,
     lambda: g6.fractal(60, 2, 1, 0.3)),
    ("plummer --mass-function salpeter --segregation 0.5 --seed 3",
     "Plummer sphere, mass function salpeter, segregation 0.5, ", 4 / 60,
     lambda: g6.stars(g6.salpeter(60, 3), plummer, 3, 0.5, virial_ratio=0.5)),
    ("uniform --virial-ratio 0 --mass-function kroupa",
     "uniform sphere, virial ratio 0, mass function kroupa, ", 4 / 60,
     lambda: g6.stars(g6.kroupa(60, 1), partial(g6.uniform, virial_ratio=0), 1, virial_ratio=0)),
    ("uniform --n 48 --mass-function kroupa --segregation 1 --binaries 0.25",
     "uniform sphere, mass function kroupa, segregation 1, binaries 0.25, ", 0,
     lambda: g6.with_binaries(g6.stars(g6.kroupa(48, 1), g6.uniform, 1, 1, virial_ratio=0.5), 0.25,
                              1, separation=(0.02 / 48, 2 / 48))),
    ("galaxy --black-hole 0.5", "disk galaxy, black hole 0.5, ", 0.05,
     lambda: g6.galaxy(7, 2, 50, 1, black_hole=0.5).particles),
    ("merger", "merger of two galaxies, ", 0.1, lambda: g6.galaxy_merger(25, 4, 1).particles),
    ("merger --mass-ratio 1 --pericentre 2 --separation 20 --black-hole 0 --eps 0.2",
     "merger of two galaxies, black hole 0, mass ratio 1, pericentre 2, separation 20, ", 0.2,
     lambda: g6.galaxy_merger(25, 5, 1, mass_ratio=1, pericentre=2, separation=20,
                           black_hole=0).particles),
], ids=lambda value: value if isinstance(value, str) and "," not in value else "")  # fmt: skip
def test_a_model_by_name_is_that_of_python(here, capsys, words, title, eps, model):
    assert run("--n", 60, *QUICK, *words.split(), "--out", "a.h5", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    seed = 3 if "--seed" in words else 1
    assert report["name"] == f"{title}N = 60, seed {seed}"
    assert report["settings"]["eps"] == eps
    for array, expected in zip(archive.read_particles("a.h5", 0), model(), strict=True):
        assert np.array_equal(array, expected)


def test_help_names_every_model_with_its_options(capsys):
    assert run("--help") == 0
    text = " ".join(capsys.readouterr().out.split()).replace("- ", "-")
    for name, model in MODELS.items():
        assert name in text
        for option in model.options:
            assert option in OPTIONS
            assert f"--{option.replace('_', '-')}" in text
