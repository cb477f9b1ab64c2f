"""The merger's table, with its goals beside; for tables.py."""

from tables_markdown import head, number, row

STEPS = 64000
THETA, SECONDS, ERROR = 0.75, 150, 2.8e-4  # the goals: ERROR is Bonsai's own (2012)
BONSAI_SECONDS = 7102  # with that theta


def setting_of(f):
    return f"theta {f['settings']['theta']:g}" if "theta" in f["settings"] else "direct sum"


def missed(f):
    found = ["time"] if f["seconds"] > SECONDS else []
    return ", ".join(found + (["energy"] if f["largest_error"] > ERROR else []))


def merger(result):
    passages = [f"pericentre {k}: time, distance" for k in (1, 2, 3)]
    lines = head("forces", "steps", "ms a step", "s", "goal", "Bonsai, s", "largest energy error",
                 "goal", "missed", *passages)  # fmt: skip
    for f in sorted(result["figures"], key=setting_of, reverse=True):
        aimed = f["settings"].get("theta") == THETA and f["steps"] == STEPS
        goals = [None] * 4
        if aimed:
            goals = SECONDS, BONSAI_SECONDS, f"{ERROR:.1e}", missed(f)
        when = [f"{time:.2f}, {distance:.3g}" for time, distance in f["pericentres"]]
        when += [None] * (len(passages) - len(when))
        lines += row([setting_of(f), f["steps"], number(f["ms_a_step"]), number(f["seconds"]),
                      *goals[:2], f"{f['largest_error']:.1e}", *goals[2:], *when])  # fmt: skip
    lines += "\n![The stars](figures/merger-stars.png)\n"
    return lines + "\n![Energy, black holes and density](figures/merger-curves.png)\n"


MAKERS = {"merger": merger}
