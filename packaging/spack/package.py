# For a package repository of your own, as packages/py_grape6py/package.py: docs/releasing.md.
from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import depends_on, license, variant, version


class PyGrape6py(PythonPackage):
    """The GRAPE-6 board in software: its host library for old Fortran and C codes, and a Python
    face."""

    pypi = "grape6py/grape6py-0.1.0.tar.gz"

    license("MIT")

    version("0.1.0")

    variant("cuda", default=False, description="Sum on NVIDIA GPUs, through CuPy")

    depends_on("c", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("py-scikit-build-core@1.0:", type="build")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-cffi@1.15.1:", type=("build", "run"))
    depends_on("py-numpy@1.24:", type="run")
    depends_on("py-h5py@3.8:", type="run")
    depends_on("py-matplotlib@3.6:", type="run")
    depends_on("py-tqdm@4.60:", type="run")

    depends_on("python+shared", type="run", when="+cuda")
    depends_on("py-cupy@14:", type="run", when="+cuda")
