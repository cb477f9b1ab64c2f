"""The merger's table; for tables.py."""

from published import beside, column, table
from published import number as published_number
from tables_markdown import bold, head, number, row

STEPS = 64000
PAPER = "Bonsai 2012", "4.2"
THETA, SECONDS = 0.75, 150  # the goals
ERROR = 1e-4 * column(*PAPER, "dE, largest")["Bonsai 1, theta 0.75, GTX480"]  # a goal, too


def setting_of(f):
    for opening in "theta", "accuracy":
        if opening in f["settings"]:
            return f"{opening} {f['settings'][opening]:g}"
    return "direct sum"


def merger(result):
    passages = [f"pericentre {k}: time, distance" for k in (1, 2, 3)]
    lines = head("forces", "steps", "ms a step", "s", "largest energy error", "at the end",
                 "momentum", "angular momentum", *passages)  # fmt: skip
    for f in sorted(result["figures"], key=setting_of, reverse=True):
        aimed = f["settings"].get("theta") == THETA and f["steps"] == STEPS
        found = bold(number(f["seconds"]), aimed and f["seconds"] > SECONDS)
        error = bold(f"{f['largest_error']:.1e}", aimed and f["largest_error"] > ERROR)
        end = f"{abs(beside(f)['errors'][-1][1]):.1e}"
        when = [f"{time:.2f}, {distance:.3g}" for time, distance in f["pericentres"]]
        when += [None] * (len(passages) - len(when))
        momenta = [f"{f[m]:.0e}" if m in f else None for m in ("momentum", "angular_momentum")]
        lines += row([setting_of(f), f["steps"], number(f["ms_a_step"]), found, error, end,
                      *momenta, *when])  # fmt: skip
    for code, *printed in table(*PAPER)["rows"]:
        end, largest, seconds = (abs(published_number(p)) for p in printed)
        errors = (f"{1e-4 * error:.1e}" for error in (largest, end))
        lines += row([code, None, None, number(seconds, 6), *errors, *[None] * 5])
    lines += "\n![The stars](figures/merger-stars.png)\n"
    return lines + "\n![Energy, black holes and density](figures/merger-curves.png)\n"


MAKERS = {"merger": merger}
