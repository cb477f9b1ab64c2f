"""The examples of docs/gallery run, and draw what the site shows (make docs)."""

import os
import subprocess
import sys

import matplotlib.image
import pytest

import capi

EXAMPLES = sorted((capi.ROOT / "docs/gallery").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_draws_its_picture(tmp_path, path):
    env = os.environ | {"MPLBACKEND": "agg", "GRAPE6_BACKEND": "cpu"}
    subprocess.run([sys.executable, path], cwd=tmp_path, env=env, check=True)
    (made,) = tmp_path.iterdir()
    assert made.name == f"{path.stem}.png"
    assert matplotlib.image.imread(made).std() > 0.05  # there is something on it
