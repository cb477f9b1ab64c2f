"""Row 32: Fortran programs compiled with -ffpe-trap. They run to the same bits.

That they still trap, and calls of all kinds that would: test_faults_host.py."""

import subprocess

import capi
import tools
from legacy import SNAPSHOT, make

TRAPS = "-ffpe-trap=zero,overflow,invalid"


def test_row32_an_old_integrator_with_traps_prints_the_same_digits(tmp_path):
    tools.need("gfortran")
    printed = []
    for name, flags in (("plain", "-O2 -std=legacy"), ("traps", f"-O2 -std=legacy {TRAPS}")):
        make(tmp_path / name, f"FFLAGS={flags}", "PROGRAMS=hermite_f77")
        command = [tmp_path / name / "hermite_f77", SNAPSHOT, "-1", "0.02", "0.25"]
        done = subprocess.run(command, env=capi.clean_environment({}), check=True, timeout=120,
                              capture_output=True, text=True)  # fmt: skip
        assert done.stderr == ""
        printed.append(done.stdout)
    assert "energy" in printed[0]
    assert printed[0] == printed[1]
