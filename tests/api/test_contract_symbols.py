"""What programs link: three spellings of every call, and names that hosts may redefine.

public_names.json says in which public programs and libraries names of GRAPE's calls were found
(called, declared or defined), in November 2026. Those of "nbody-archive" are also the calls of the
hardware's own library, which lies there."""

import ctypes
import json
import re

import pytest

import capi
import tools
import variants

HISTORICAL = [name for name in capi.SIGNATURES if not name.startswith("g6x_")]
PUBLIC = json.loads((capi.TESTS / "api/public_names.json").read_text(encoding="utf-8"))


def tool(*command):
    tools.need(command[0])
    return tools.run(command).stdout


def test_every_call_has_its_names():
    names = [name for name in capi.SIGNATURES if name.startswith("g6x_")]
    for name in HISTORICAL:
        base = name.rstrip("_")
        names += [f"{base}_", f"{base}__", *([] if name.endswith("_") else [base])]
    assert [name for name in names if not hasattr(capi.library(), name)] == []


def exported():
    listed = tool("nm", "-D", "--defined-only", str(capi.library_path()))
    return {name.split("@")[0] for name in re.findall(r" [A-TV-Z] (\S+)", listed)}


def test_nothing_but_the_api_is_exported():
    api = re.compile(r"(g6|g5)\w+|(get_device_count|get_j_part_data|force_j_particle_send)_{0,2}")
    assert [n for n in exported() if not api.fullmatch(n) and not n.startswith("LIBGRAPE6")] == []


def test_every_public_name_is_exported_or_has_a_reason_and_a_source():
    there = {name.rstrip("_") for name in exported()}  # without the underscores of Fortran
    names, absent = ({name for some in PUBLIC[which].values() for name in some.split()}
                     for which in ("names", "absent"))  # fmt: skip
    assert sorted(names - there - absent) == []
    assert sorted(absent & there) == []
    assert sorted(absent - names) == []
    used = {source for sources in PUBLIC["names"] for source in sources.split()}
    assert used == {*PUBLIC["sources"]}


def test_the_library_needs_only_libc():
    dynamic = tool("readelf", "-d", str(capi.library_path()))
    needed = re.findall(r"\(NEEDED\).*\[(.*?)\]", dynamic)
    allowed = r"(libc|libm|libpthread|libdl|librt|ld-linux[\w-]*)\.so\.\d+"
    assert [n for n in needed if not re.fullmatch(allowed, n)] == []
    assert "libgrape6.so" in re.findall(r"\(SONAME\).*\[(.*?)\]", dynamic)
    assert "NODELETE" in dynamic


@pytest.mark.parametrize("flags", [[], ["-DREVERSE"]], ids=["3.15-by-value", "3.15-fortran"])
def test_the_host_may_define_one_spelling_itself(flags):
    assert variants.clean([capi.compile_c("own_names", True, *flags)])


def test_3_16_unit_calls_ignore_arguments_of_another_type():
    for name in ("g6_set_tunit", "g6_set_xunit"):
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_double)
        assert prototype((name, capi.library()))(51.0) == 0
        assert capi.by_pointer(f"{name}_", 45) == 0


def test_3_1_3_4_npipes_is_known_before_open_and_constant():
    script = """
before = [call("g6_npipes"), by_pointer("g6_npipes_"), by_pointer("g6_npipes__")]
call("g6_open", 0)
during = call("g6_npipes")
call("g6_close", 0)
print(*before, during, call("g6_npipes"))
"""
    for given, expected in (None, {48}), ("200", {200}), ("20000", {16384, 48}), ("many", {48}):
        env = {} if given is None else {"GRAPE6_NPIPES": given}
        values = set(map(int, capi.run_python(script, **env).stdout.split()))
        assert len(values) == 1
        assert values <= expected, given
