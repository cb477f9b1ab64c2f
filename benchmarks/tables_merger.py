"""The merger's table; for tables.py."""

from published import beside, column, table
from published import number as published_number
from tables_markdown import bold, head, number, row

STEPS = 64000
PAPER = "Bonsai 2012", "4.2"
T_END, SECOND = 1000, 280  # of the paper, and the time of its second pericentre
THETA, SECONDS = 0.75, 150  # the goals
ERROR = 1e-4 * column(*PAPER, "dE, largest")["Bonsai 1, theta 0.75, GTX480"]  # a goal, too


def setting_of(f):
    for opening in "theta", "accuracy":
        if opening in f["settings"]:
            return f"{opening} {f['settings'][opening]:g}"
    return "direct sum" if "dt" in f["settings"] else "direct sum, block steps"


def in_their_time(f):
    """Seconds to the second pericentre, and the largest energy error to T_END in the paper's unit
    of time, of which its second pericentre is at SECOND; empty of runs that end before."""
    if len(f["pericentres"]) < 2:
        return None, None
    second = f["pericentres"][1][0]
    seconds = number(f["seconds"] * second / f["time"])
    end = T_END * second / SECOND
    errors = [abs(error) for time, error in beside(f).get("errors", []) if time <= end]
    return seconds, f"{max(errors):.1e}" if errors and f["time"] >= end else None


def merger(result):
    passages = [f"pericentre {k}: time, distance" for k in (1, 2, 3)]
    lines = head("forces", "time", "ms a step", "s", "largest energy error", "at the end",
                 "s to the second pericentre", "largest error in as many dynamical times as theirs",
                 "momentum", "angular momentum", *passages)  # fmt: skip
    for f in sorted(result["figures"], key=setting_of, reverse=True):
        aimed = f["settings"].get("theta") == THETA and f["steps"] == STEPS
        found = bold(number(f["seconds"]), aimed and f["seconds"] > SECONDS)
        error = bold(f"{f['largest_error']:.1e}", aimed and f["largest_error"] > ERROR)
        errors = beside(f).get("errors")
        end = None if errors is None else f"{abs(errors[-1][1]):.1e}"
        when = [f"{time:.2f}, {distance:.3g}" for time, distance in f["pericentres"]]
        when += [None] * (len(passages) - len(when))
        momenta = [f"{f[m]:.0e}" if m in f else None for m in ("momentum", "angular_momentum")]
        about = [f"{setting_of(f)}, {f['backend'].split(maxsplit=1)[1]}", f"{f['time']:g}"]
        lines += row([*about, number(f["ms_a_step"]), found, error, end, *in_their_time(f),
                      *momenta, *when])  # fmt: skip
    for code, *printed in table(*PAPER)["rows"]:
        end, largest, seconds = (abs(published_number(p)) for p in printed)
        errors = [f"{1e-4 * error:.1e}" for error in (largest, end)]
        lines += row([code, f"{T_END}", None, number(seconds, 6), *errors,
                      number(seconds * SECOND / T_END), errors[0], *[None] * 5])  # fmt: skip
    lines += "\n![The stars](figures/merger-stars.png)\n"
    return lines + "\n![Energy, black holes and density](figures/merger-curves.png)\n"


MAKERS = {"merger": merger}
