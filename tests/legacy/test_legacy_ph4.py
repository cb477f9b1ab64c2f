"""legacy_examples/ph4_style.cc: the library called as ph4 calls it, with by-value names of its own.

Its forces, energies and output for other ids and clusters: see test_legacy.py.
"""

import capi
import tools
from legacy import NUMBER, SNAPSHOT, numbers, output_of
from variants import run as run_tool


def test_3_22_infinite_radii_occur_and_force_passes_collect_no_lists(run):
    text = output_of(run("ph4_style", SNAPSHOT, "-t", "0.0625", "-f"))
    assert numbers(rf"neighbours in the first force pass{NUMBER}", text) == [0]
    tried, infinite = numbers(rf"radii tried{NUMBER}\s+infinite{NUMBER}", text)[0]
    assert infinite > 10
    assert tried > 2 * 1024


def test_3_15_the_by_value_names_are_those_of_the_program(build):
    tools.need("g++")
    tools.need("nm")
    symbols = run_tool(["nm", "-P", build / "ph4_style"]).stdout
    kinds = {line.split()[0]: line.split()[1] for line in symbols.splitlines()}
    own = {name for name, kind in kinds.items() if name in capi.SIGNATURES and kind == "T"}
    used = {name for name, kind in kinds.items() if name.rstrip("_") in capi.SIGNATURES} - own
    assert len(own) == 16
    assert used == {name + "_" for name in own}
