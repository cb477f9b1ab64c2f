"""Which kernels of trees are wanted together: compiled, or loaded, at once."""

import functools

BUILD = tuple(
    """tree_extent tree_begin tree_keys tree_gather tree_count tree_levels tree_cells
    tree_leaf_moments tree_inner_moments""".split()
)
MOVING = (
    *BUILD,
    *"""tree_speeds tree_momenta tree_frame tree_gather_velocities tree_leaf_rates
    tree_inner_rates tree_widen_frame""".split(),
)
TARGETS = ["tree_ranks", "tree_target_keys", "tree_gather_targets"]
SEARCH = tuple(
    """tree_search_places tree_search_cells tree_search_within tree_sort_rows
    tree_search_nearest tree_search_nearest_more tree_search_nearest_many
    tree_target_keys""".split()
)
LEAPFROG = "leapfrog_drift", "leapfrog_kick", "leapfrog_begin", "leapfrog_end_step"
FIELD = ["field_add_all"]
ESTIMATE = ["tree_pulls", "tree_gather_last", "tree_least_pull", "tree_raise_pulls"]
DISTANT = tuple(f"tree_distant_{step}" for step in "sources terms on_targets pairs".split())
MOMENTUM = ["tree_net_force", "tree_close_system"]
SITES = tuple(f"tree_site_{step}" for step in "marks moves sums results own".split())

SIZES = ("groups", "groups", "eights", "singles", "singles")  # kernels of near terms, by kind


@functools.cache
def of_sums(
    order: str, near: str, jerk: str | None, targets: bool = False, bound: bool = False
) -> tuple[str, ...]:
    """Those of a sum, by the parts of their names: the order of expansions, empty if there are
    none, the terms on targets, and, if they are wanted, those of jerks."""
    names = (TARGETS if targets else []) + (ESTIMATE if bound else [])
    large, sizes = ("level2", "level1"), ("groups", "blocks")
    walk = f"tree_traverse{'_own' if near.endswith('_own') else ''}"
    names = [*names, "tree_groups_of_kind", *(f"{walk}_{size}" for size in sizes)]
    names += [f"tree_near{near}_{size}" for size in ("blocks", *dict.fromkeys(SIZES))]
    if order:
        names += ["tree_groups", *(f"{walk}_{level}" for level in large)]
        names += [f"tree_expand_{size}_{order}" for size in (*large, *sizes)]
    if jerk is not None:
        names += [f"tree_jerk{jerk}_{size}" for size in dict.fromkeys(SIZES)]
        names += [f"tree_rate_{size}_{order}" for size in (*large, "groups") if order]
    return tuple(names)


def usual(order: int) -> list[str]:
    """What a release has machine code of: all but other orders of expansions, and ranks."""
    names = [*MOVING, *TARGETS, *SEARCH, *LEAPFROG, *FIELD, *ESTIMATE, *MOMENTUM, *DISTANT]
    names += [*SITES, "tree_barnes_hut", "tree_close_rows", "tree_close_jerks"]
    for near in ("", "_bare"):
        names += [*of_sums(str(order), near, ""), *of_sums("", f"_bh{near}", "_bh")]
    names += of_sums(f"{order}_soft", "_soft", "_soft")
    return list(dict.fromkeys(names))
