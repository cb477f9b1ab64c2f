"""Where the installed pieces lie. The build puts all of them inside the package."""

from pathlib import Path

PREFIX = Path(__file__).resolve().parent
LIBRARY_DIR = PREFIX / "lib"
LIBRARY = LIBRARY_DIR / "libgrape6.so"
STATIC = LIBRARY_DIR / "libgrape6.a"
INTERPRETER = LIBRARY_DIR / "interpreter"
INCLUDE_DIR = PREFIX / "include"
HEADER = INCLUDE_DIR / "g6lib.h"
SHARED = PREFIX / "cuda/kernels/shared"  # headers of csrc/shared
FORTRAN_SOURCE = INCLUDE_DIR / "g6lib.f90"
PKGCONFIG_DIR = LIBRARY_DIR / "pkgconfig"
PKGCONFIG_FILE = PKGCONFIG_DIR / "grape6.pc"
CMAKE_DIR = LIBRARY_DIR / "cmake/grape6"
SNAPSHOT = PREFIX / "data/plummer1024.dat"
