"""What GRAPE-5 programs link, and what the header and the document say of it."""

import re
import subprocess

import numpy as np
import pytest

import capi
import tools
from grape5 import (
    CALLS,
    HEADER,
    SIGNATURES,
    assert_force,
    direct,
    fortran,
    multi,
    multi_form,
    stars,
    value,
)

DOCUMENT = capi.ROOT / "docs" / "grape5.md"
WITHOUT_MC = {
    "g5_open_special",
    "g5_open_noinit",
    "g5_get_number_of_pipelines_per_board",
    "g5_get_number_of_boards",
    "g5_get_firstcluster",
    "g5_set_xiMC0",
    "g5_runMC0",
}
OPENING = set("g5_open_ g5_open__ g5_openMC g5_openmc_ g5_openmc__".split())  # as examples


def spellings(name):
    for form in {name, name if name in WITHOUT_MC else multi_form(name)}:
        yield from (form, f"{form.lower()}_", f"{form.lower()}__")


def test_every_call_has_an_mc_form_with_the_cluster_in_front():
    for name in set(CALLS) - WITHOUT_MC:
        assert SIGNATURES[multi_form(name)] == "i" + SIGNATURES[name]


def test_the_library_exports_all_names_of_all_calls_and_no_other():
    command = ["nm", "-D", "--defined-only", str(capi.library_path())]
    tools.need("nm")
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    exported = set(re.findall(r" (g5\w+|g6x_g5\w+)", listed))
    assert exported == {s for name in CALLS for s in spellings(name)} | {"g6x_g5_last_error"}


def test_header_is_standard_c_and_cxx_beside_that_of_grape_6(tmp_path):
    source = '#include "g5lib.h"\n#include "g6lib.h"\n#include "g5lib.h"\nint x;\n'
    for compiler, suffix in (("gcc", "c"), ("g++", "cc")):
        tools.need(compiler)
        file = tmp_path / f"one.{suffix}"
        file.write_text(source)
        command = [compiler, "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{HEADER.parent}"]
        subprocess.run([*command, "-c", file, "-o", tmp_path / "one.o"], check=True)


@pytest.mark.parametrize("form", ["value", "MC", "_", "__", "mc_", "mc__"])
def test_each_form_does_the_same(form, boards):
    boards()  # keeps what is made by use alive
    number = 70 if form[0].lower() == "m" else 0
    m, x = stars(100)
    eps = np.linspace(0.1, 0.4, 100)
    a, p = np.empty((100, 3)), np.empty(100)

    def call(name, *args):
        if form == "value":
            return value(name, *args)
        if form == "MC":
            return multi(name, number, *args)
        if form[0] == "m":
            return fortran(multi_form(name), number, *args, underscores=form[2:])
        return fortran(name, *args, underscores=form)

    def both(expected, code):
        assert_force((code, a, p), expected)
        a[:], p[:] = 0, 0

    assert call("g5_open") == 0
    assert call("g5_set_range", -5.0, 5.0, 0.1) == 0
    assert call("g5_get_number_of_pipelines") == capi.call("g6_npipes")
    assert call("g5_get_number_of_real_pipelines") == 1
    assert call("g5_get_pcibus_freq") == 1
    assert call("g5_get_jmemsize") == 1 << 24
    assert call("g5_set_eta", np.inf) == 0
    assert call("g5_set_n", 100) == 0
    assert call("g5_set_xmj", 0, 100, x, m) == 0
    assert call("g5_set_eps_to_all", 0.2) == 0
    both(direct(x, m, x, 0.2), call("g5_calculate_force_on_x", x, a, p, 100))
    assert call("g5_set_eps2_to_all", 0.09) == 0
    assert call("g5_set_jp", 10, 20, m, x) == 0
    m[10:30], x[10:30] = m[:20].copy(), x[:20].copy()
    assert (call("g5_set_xi", 100, x), call("g5_run")) == (0, 0)
    both(direct(x, m, x, 0.3), call("g5_get_force", 100, a, p))
    assert call("g5_set_eps", 100, eps) == 0
    x += 0.25
    assert call("g5_set_xj", 0, 100, x) == 0
    both(direct(x, m, x, eps), call("g5_calculate_force_on_x", x, a, p, 100))
    m *= 2
    assert call("g5_set_mj", 0, 100, m) == 0
    assert (call("g5_set_xei", 100, x, eps[::-1] ** 2), call("g5_run")) == (0, 0)
    both(direct(x, m, x, eps[::-1]), call("g5_get_force", 100, a, p))
    both(direct(x, m, x, eps), call("g5_calculate_force_on_xe", x, eps**2, a, p, 100))
    assert (call("g5_set_ip", 100, x, eps, eps), call("g5_run")) == (0, 0)
    both(direct(x, m, x, eps), call("g5_get_force", 100, a, p))
    assert call("g5_set_xmj0", 0, 100, x, m, np.full(100, 0.03)) == 0
    both(
        direct(x, m, x, np.sqrt(eps**2 + 0.03)),
        call("g5_calculate_force_on_x0", x, a, p, 100, eps**2),
    )
    assert call("g5_close") == 0


# ---- the document ------------------------------------------------------------


def test_the_arguments_in_the_document_are_those_of_the_header():
    header = capi.header_arguments(HEADER)
    shown = dict(re.findall(r"`(g5_\w+|g6x_g5_\w+)\(([^`]*)\)`", DOCUMENT.read_text()))
    for name in set(shown) - OPENING:
        arguments = shown[name]
        assert arguments.replace(" ", "").split(",") == (header[name] or [""]), name
