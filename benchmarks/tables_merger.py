"""The merger's table; for tables.py."""

from tables_markdown import bold, head, number, row

STEPS = 64000
THETA, SECONDS, ERROR = 0.75, 150, 2.8e-4  # the goals: ERROR is Bonsai's own (2012)


def setting_of(f):
    for opening in "theta", "accuracy":
        if opening in f["settings"]:
            return f"{opening} {f['settings'][opening]:g}"
    return "direct sum"


def merger(result):
    passages = [f"pericentre {k}: time, distance" for k in (1, 2, 3)]
    lines = head("forces", "steps", "ms a step", "s", "largest energy error", "momentum",
                 "angular momentum", *passages)  # fmt: skip
    for f in sorted(result["figures"], key=setting_of, reverse=True):
        aimed = f["settings"].get("theta") == THETA and f["steps"] == STEPS
        found = bold(number(f["seconds"]), aimed and f["seconds"] > SECONDS)
        error = bold(f"{f['largest_error']:.1e}", aimed and f["largest_error"] > ERROR)
        when = [f"{time:.2f}, {distance:.3g}" for time, distance in f["pericentres"]]
        when += [None] * (len(passages) - len(when))
        momenta = [f"{f[m]:.0e}" if m in f else None for m in ("momentum", "angular_momentum")]
        lines += row([setting_of(f), f["steps"], number(f["ms_a_step"]), found, error, *momenta,
                      *when])  # fmt: skip
    lines += "\n![The stars](figures/merger-stars.png)\n"
    return lines + "\n![Energy, black holes and density](figures/merger-curves.png)\n"


MAKERS = {"merger": merger}
