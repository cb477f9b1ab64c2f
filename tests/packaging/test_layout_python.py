"""The layout of grape6py: no circle between files or folders, at most so many floors, and nothing
private used by another file.

What is still otherwise stands here by name, and these lists only get shorter."""

import ast
import functools
import itertools
import re

import capi
from test_layout import circles

PACKAGE = capi.ROOT / "grape6py"
FLOORS = 10
PRIVATE = {
    "files/runs/writer": {"_about", "_owners"},
    "cli/bench": {"_board"},
    "cli/launched": {"_blocks", "_forces", "_ranks"},
    "cli/run_session": {"_all_particles", "_forces", "_own_ids", "_owners", "_specific_error"},
    "cli/selftest": {"_board"},
    "events": {"_blocks", "_energy_error", "_owners", "_ranks"},
    "integrators/gravity": {"_board"},
    "integrators/hermite": {"_board"},
    "integrators/restored": {"_own_ids"},
    "forces/tree_backends": {"_board"},
}
NOT_OURS = {"_replace", "_asdict", "_make", "_fields", "_actions", "_SubParsersAction", "_typedict",
            "_energy", "_gradient"}  # fmt: skip
FILES = {".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
         for path in sorted(PACKAGE.rglob("*.py"))}  # fmt: skip


@functools.cache
def tree_of(name):
    return ast.parse(FILES[name].read_text(encoding="utf-8"))


def statements(tree):
    """All of a file but what is there for checks of types alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from itertools.chain.from_iterable(map(statements, node.orelse))
        else:
            yield node
            yield from statements(node)


def imported(name):
    """What a file imports of the package, at any time."""
    found = set()
    for node in statements(tree_of(name)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}: imports are by full names"
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    ours = {other.removeprefix("grape6py.") for other in found} & FILES.keys()
    return {o for o in ours if not any(p.startswith(f"{o}.") for p in ours)} - {name}


@functools.cache
def graph():
    return {name: imported(name) for name in FILES}


def graph_of_folders():
    """Of folders of grape6py, and files of grape6py itself."""
    found = {}
    for name, others in graph().items():
        folder, *_ = name.split(".")
        found.setdefault(folder, set()).update({o.partition(".")[0] for o in others} - {folder})
    return found


def test_no_files_and_no_folders_import_each_other():
    """Be it within a function. A file of grape6py itself counts as a folder."""
    assert circles(graph()) == []
    assert circles(graph_of_folders()) == []


def test_floors():
    folders = graph_of_folders()

    def floor(name):
        return 1 + max(map(floor, folders[name]), default=0)

    assert max(map(floor, folders)) <= FLOORS


def defined(tree):
    """All names that a file gives to functions, classes, attributes and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_nothing_private_is_used_by_another_file():
    found = {}
    for name, tree in zip(FILES, map(tree_of, FILES), strict=True):
        own = {*defined(tree), *NOT_OURS}
        used = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "cls"):
                used.add(node.attr)
            elif isinstance(node, ast.ImportFrom) and node.module.startswith("grape6py"):
                names = {alias.name for alias in node.names}
                used |= {n for n in names if f"{node.module}.{n}"[9:] not in FILES}
        private = {n for n in used - own if re.match(r"_[^_]", n)}
        if private:
            found[name.replace(".", "/")] = private
    assert found == PRIVATE


def test_assertions_are_for_type_checkers_alone():
    """A value is not None. `python -O` drops them: none checks what a user gives."""
    nodes = (node for name in FILES for node in ast.walk(tree_of(name)))
    tests = [ast.unparse(node.test) for node in nodes if isinstance(node, ast.Assert)]
    assert all(test.endswith(" is not None") for test in tests)
