"""Row 32: Fortran programs compiled with -ffpe-trap. They run to the same bits, and still trap."""

import signal
import subprocess

import pytest

import capi
import tools
from legacy import SNAPSHOT, grape6_config, make

TRAPS = "-ffpe-trap=zero,overflow,invalid"
PROGRAM = """\
      PROGRAM TRAPS
      IMPLICIT REAL*8 (A-H,O-Z)
      DIMENSION X(3,2), V(3,2), Z(3), ACC(3,2), AJ(3,2), POT(2), H2(2)
      INTEGER INDEX(2), LIST(2)
      CHARACTER*8 WORD
      DATA X /6*0.0D0/, V /6*0.0D0/, Z /3*0.0D0/, H2 /2*1.0D0/
      DATA INDEX /1, 2/
      X(1,2) = 1.0D0
      CALL g6_open(0)
      DO 10 I = 1, 2
         CALL g6_set_j_particle(0, I-1, I, 0.0D0, 1.0D0, 1.0D0,
     &      Z, Z, Z, V(1,I), X(1,I))
   10 CONTINUE
      CALL g6_set_ti(0, 0.0D0)
      CALL g6calc_firsthalf(0, 2, 2, INDEX, X, V, ACC, AJ, POT,
     &   0.0D0, H2)
      CALL g6calc_lasthalf(0, 2, 2, INDEX, X, V, 0.0D0, H2,
     &   ACC, AJ, POT)
      CALL g6_get_neighbour_list(0, 0, 2, N, LIST)
      IF (POT(1).NE.-1.0D0 .OR. N.NE.1) STOP 3
C     no force without a first half: NaN, made without a trap
      CALL g6calc_lasthalf(7, 2, 2, INDEX, X, V, 0.0D0, H2,
     &   ACC, AJ, POT)
      CALL g6_close(0)
      WRITE (6,*) 'forces done'
      CALL FLUSH(6)
      CALL GETARG(1, WORD)
      READ (WORD,*) ZERO
      WRITE (6,*) 1.0D0/ZERO
      END
"""


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


@pytest.mark.parametrize(("divisor", "code"), [("0.0", -signal.SIGFPE), ("2.0", 0)])
def test_row32_the_hosts_own_division_by_zero_still_traps(tmp_path, divisor, code):
    tools.need("gfortran")
    source, program = tmp_path / "traps.f", tmp_path / "traps"
    source.write_text(PROGRAM, encoding="ascii")
    command = ["gfortran", "-O0", "-std=legacy", TRAPS, source, "-o", program]
    subprocess.run([*command, *grape6_config("--libs")], check=True, timeout=60)
    env = capi.clean_environment({"GRAPE6_LOG": "none"})
    done = subprocess.run([program, divisor], env=env, check=False, timeout=60,
                          capture_output=True, text=True)  # fmt: skip
    assert "forces done" in done.stdout
    assert done.returncode == code
