"""What programs link: three spellings of every call, and names that hosts may redefine."""

import ctypes
import re
import subprocess

import pytest

import capi
import tools

HISTORICAL = [name for name in capi.SIGNATURES if not name.startswith("g6x_")]
NEW = [name for name in capi.SIGNATURES if name.startswith("g6x_")]
CLIENTS = {
    "kira": "g6_open_ g6_close_ g6_open_special g6_npipes_ g6_reset_ g6_reset_fofpga_ g6_set_ti_ "
    "g6_set_j_particle_ g6_initialize_jp_buffer_ g6_flush_jp_buffer_ g6calc_firsthalf_ "
    "g6calc_lasthalf2_ g6_read_neighbour_list_ g6_get_neighbour_list_",
    "phigrape": "g6_open_ g6_close_ g6_npipes_ g6_set_tunit_ g6_set_xunit_ g6_set_ti_ "
    "g6_set_j_particle_ g6calc_firsthalf_ g6calc_lasthalf_ g6calc_lasthalf2_",
    "ph4": "g6_open_ g6_close_ g6_npipes_ g6_set_tunit_ g6_set_xunit_ g6_set_ti_ "
    "g6_set_j_particle_ g6calc_firsthalf_ g6calc_lasthalf_ g6calc_lasthalf2_ "
    "g6_initialize_jp_buffer_ g6_flush_jp_buffer_ g6_reset_ g6_reset_fofpga_ "
    "g6_read_neighbour_list_ g6_get_neighbour_list_ force_j_particle_send",
    "nbody4": "g6_open_ g6_close_ g6_reset_ g6_setup_njdata_ g6_read_neighbour_list_",
    "phantom": "g6calc_lasthalfn g6calc_lasthalf2n g6calc_lasthalf2np g6calc_lasthalf2p",
    "treecode": "g6_set_j_particle_multisend_mxfast_ g6_flush_jp_buffer_and_multisend_",
    "amuse-probes": "g6_npipes get_device_count g6_open_",
}


def tool(*command):
    tools.need(command[0])
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_every_call_has_its_names():
    """A historical one has three, a new one its own."""
    names = [*NEW]
    for name in HISTORICAL:
        base = name.rstrip("_")
        names += [f"{base}_", f"{base}__", *([] if name.endswith("_") else [base])]
    assert [name for name in names if not hasattr(capi.library(), name)] == []


@pytest.mark.parametrize("client", CLIENTS, ids=lambda c: f"3.34-{c}")
def test_a_client_finds_all_it_links(client):
    assert [s for s in CLIENTS[client].split() if not hasattr(capi.library(), s)] == []


def test_nothing_but_the_api_is_exported():
    names = re.findall(
        r" [A-TV-Z] (\S+)", tool("nm", "-D", "--defined-only", str(capi.library_path()))
    )
    api = re.compile(r"(g6|g5)\w+|(get_device_count|get_j_part_data|force_j_particle_send)_{0,2}")
    names = [name.split("@")[0] for name in names]
    assert [n for n in names if not api.fullmatch(n) and not n.startswith("LIBGRAPE6")] == []


def test_the_library_needs_only_libc():
    dynamic = tool("readelf", "-d", str(capi.library_path()))
    needed = re.findall(r"\(NEEDED\).*\[(.*?)\]", dynamic)
    allowed = r"(libc|libm|libpthread|libdl|librt|ld-linux[\w-]*)\.so\.\d+"
    assert [n for n in needed if not re.fullmatch(allowed, n)] == []
    assert "libgrape6.so" in re.findall(r"\(SONAME\).*\[(.*?)\]", dynamic)
    assert "NODELETE" in dynamic


def test_no_exit_and_no_assert_in_the_library():
    undefined = tool("nm", "-D", "--undefined-only", str(capi.library_path()))
    assert re.findall(r"\b(exit|_exit|quick_exit|__assert_fail)\b", undefined) == []


@pytest.mark.parametrize("name", ["ph4_names", "reverse_names"], ids=lambda n: f"3.15-{n}")
def test_the_host_may_define_the_other_spelling_itself(name):
    assert capi.run_c(name).stderr == ""


def test_3_16_unit_calls_ignore_arguments_of_another_type():
    for name in ("g6_set_tunit", "g6_set_xunit"):
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_double)
        assert prototype((name, capi.library()))(51.0) == 0
        assert capi.by_pointer(f"{name}_", 45) == 0


def test_3_30_3_32_arguments_may_lie_in_read_only_memory():
    assert capi.run_c("const_arguments").stderr == ""


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, {48}),
        ({"GRAPE6_NPIPES": "200"}, {200}),
        ({"GRAPE6_NPIPES": "20000"}, {16384, 48}),
        ({"GRAPE6_NPIPES": "many"}, {48}),
    ],
    ids=lambda v: ",".join(v.values()) or "default" if isinstance(v, dict) else "",
)
def test_3_1_3_4_npipes_is_known_before_open_and_constant(env, expected):
    script = """
before = [call("g6_npipes"), by_pointer("g6_npipes_"), by_pointer("g6_npipes__")]
call("g6_open", 0)
during = call("g6_npipes")
call("g6_close", 0)
print(*before, during, call("g6_npipes"))
"""
    values = set(map(int, capi.run_python(script, **env).stdout.split()))
    assert len(values) == 1
    assert values <= expected
