"""What GRAPE-5 programs link, and what the header and the document say of it."""

import re

import numpy as np

import capi
import tools
from grape5 import CALLS, HEADER, SIGNATURES, fortran, multi_form, value
from test_contract_symbols import exported
from tools import run

DOCUMENT = capi.ROOT / "docs" / "grape5.md"
WITHOUT_MC = set(
    """g5_open_special g5_open_noinit g5_get_number_of_pipelines_per_board
    g5_get_number_of_boards g5_get_firstcluster g5_set_xiMC0 g5_runMC0""".split()
)
OPENING = set("g5_open_ g5_open__ g5_openMC g5_openmc_ g5_openmc__".split())  # as examples


def test_every_call_has_an_mc_form_with_the_cluster_in_front():
    for name in set(CALLS) - WITHOUT_MC:
        assert SIGNATURES[multi_form(name)] == "i" + SIGNATURES[name]


def test_the_library_exports_all_names_of_all_calls_and_no_other():
    names = {name for name in exported() if re.match("(g6x_)?g5", name)}
    forms = {*CALLS, *map(multi_form, set(CALLS) - WITHOUT_MC)}
    known = {s for form in forms for s in (form, f"{form.lower()}_", f"{form.lower()}__")}
    assert names == known | {"g6x_g5_last_error"}


def test_header_is_standard_c_and_cxx_beside_that_of_grape_6(tmp_path):
    source = '#include "g5lib.h"\n#include "g6lib.h"\n#include "g5lib.h"\nint x;\n'
    for compiler, suffix in (("gcc", "c"), ("g++", "cc")):
        tools.need(compiler)
        file = tmp_path / f"one.{suffix}"
        file.write_text(source)
        command = [compiler, "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{HEADER.parent}"]
        run([*command, "-c", file, "-o", tmp_path / "one.o"])


def test_what_hardware_has_is_told(board5):
    for call in (value, fortran):
        assert call("g5_get_number_of_pipelines") == capi.call("g6_npipes")
        assert call("g5_get_number_of_real_pipelines") == call("g5_get_pcibus_freq") == 1
        assert call("g5_get_jmemsize") == 1 << 24
        assert call("g5_set_range", -5.0, 5.0, 0.1) == call("g5_set_eta", np.inf) == 0


def test_the_arguments_in_the_document_are_those_of_the_header():
    header = capi.header_arguments(HEADER)
    shown = dict(re.findall(r"`(g5_\w+|g6x_g5_\w+)\(([^`]*)\)`", DOCUMENT.read_text()))
    for name in set(shown) - OPENING:
        arguments = shown[name]
        assert arguments.replace(" ", "").split(",") == (header[name] or [""]), name
