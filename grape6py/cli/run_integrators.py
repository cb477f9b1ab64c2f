"""The integrators that ``grape6 run`` knows by name, with the options that each has."""

from typing import NamedTuple

from grape6py.integrators.hermite import Hermite
from grape6py.integrators.leapfrog import Leapfrog

OPTIONS = """eta eta_start passes dt dt_max theta accuracy method order boundary precision
    threads""".split()


class Integrator(NamedTuple):
    """A class, and those of its arguments that are options."""

    make: type
    options: list


INTEGRATORS = {
    "hermite": Integrator(Hermite, "eta eta_start passes dt dt_max precision threads".split()),
    "leapfrog": Integrator(
        Leapfrog, [name for name in OPTIONS if name not in ("eta_start", "passes")]
    ),
}


def begin(options, particles, eps):
    """The integration that the options ask for.

    Parameters
    ----------
    options : argparse.Namespace
    particles : Particles
    eps : float

    Returns
    -------
    Hermite or Leapfrog
    """
    name = options.integrator or "hermite"
    kind = INTEGRATORS[name]
    given = {option: getattr(options, option) for option in OPTIONS}
    given = {option: value for option, value in given.items() if value is not None}
    wrong = [f"--{option.replace('_', '-')}" for option in given if option not in kind.options]
    if wrong:
        options.parser.error(f"{', '.join(wrong)}: not of --integrator {name}")
    if name == "leapfrog" and not (options.dt or options.dt_max):
        options.parser.error("--integrator leapfrog needs --dt, or --dt-max for block steps")
    return kind.make(*particles, eps=eps, backend=options.backend, **given)
