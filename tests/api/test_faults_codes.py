"""A j particle that is none is named until it is written again: its address and index.

That results are NaN then, and what else is misuse, in any order: test_fuzz.py."""

import re

import numpy as np
import pytest

from particles import assert_nan, cloud


@pytest.mark.backends("cpu cuda:grape cpu-tree:grape gpu")
def test_row06_a_j_particle_with_nan_spoils_forces_until_rewritten(plain):
    source = cloud(50, seed=41)
    plain.put_cloud(source)
    good = plain.force(50, source.x[:6])
    bad = dict.fromkeys("mass x v a2 j6 k18 tj".split(), np.nan) | {"x": np.inf}
    for field, value in bad.items():
        wrong = {field: value if field in ("mass", "tj") else (0, value, 0)}
        assert plain.put(17, 170, **{"mass": 1.0, "x": (1, 1, 1)} | wrong) == -6
        found = plain.force(50, source.x[:6])
        code, message = plain.error()
        assert found.code == code == -6
        assert_nan(found)
        assert {"17", "170"} <= set(re.findall(r"\d+", message))
        assert plain.force(17, source.x[:6]).code == 0
        assert plain.put(17, 17, source.mass[17], source.x[17], source.v[17]) == 0
        assert plain.force(50, source.x[:6]).bits() == good.bits()
