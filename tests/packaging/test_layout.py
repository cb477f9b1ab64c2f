"""The layout of csrc: folder and file are the prefix of every name that other files see, and no
folder uses one that uses it."""

import re
from collections import defaultdict

import pytest

import capi
import tools
from tools import run

CSRC = capi.ROOT / "csrc"
BY_FILE_ALONE = {"core", "util", "shared", "steps"}  # without the folder's name
EXPORTED = re.compile(r"(g6|g5|get_device_count|get_j_part_data|force_j_particle_send)")


def prefix(folder, stem):
    return stem if folder in BY_FILE_ALONE or stem == folder else f"{folder}_{stem}"


def owner(folder, stem):
    """A file without a header is a part of one: force_list.c of force.h, cuda/sum.c of cuda.h."""
    while not (CSRC / folder / f"{stem}.h").exists() and "_" in stem:
        stem = stem.rpartition("_")[0]
    return stem


@pytest.fixture(scope="module")
def symbols(variants):
    """Names that other files see and names of others that it uses, by file: read from the objects,
    since a header may stand between."""
    objects = variants["counted"].folder.rglob("csrc/*/*.c.o")
    listed = run([tools.need("nm"), "--print-file-name", "--extern-only", *objects]).stdout
    found = defaultdict(lambda: (set(), set()))
    for name, kind, symbol in re.findall(r"csrc/(\w+/\w+)\.c\.o:.* ([A-Z]) (\w+)$", listed, re.M):
        if (CSRC / f"{name}.c").exists():  # or of a file that is gone
            found[name][kind == "U"].add(symbol)
    return found


def test_global_names_begin_with_folder_and_file(symbols):
    wrong = []
    for file, (defined, _) in symbols.items():
        folder, stem = file.split("/")
        allowed = {prefix(folder, stem), prefix(folder, owner(folder, stem))}
        for name in defined:
            exported = folder == "api" and EXPORTED.match(name)
            if not exported and not any(re.match(rf"{a}(_|$)", name) for a in allowed):
                wrong.append(f"{file}.c: {name}")
    assert sum(len(defined) for defined, _ in symbols.values()) > 500
    assert wrong == []


def test_headers_are_included_by_folder_and_once():
    """#pragma once, but a guard where kernels are served, too: NVRTC has read such files twice."""
    for path in sorted(CSRC.glob("*/*.[ch]")):
        text = path.read_text()
        own = set(re.findall(r'^#include "(.*?)"', text, re.MULTILINE))
        places = {name for name in own if "/" in name}
        assert own - places <= {"g6lib.h", "g5lib.h"}, path
        assert all((CSRC / name).exists() for name in places), path
        guard = re.search(r"#ifndef (GRAPE6_\w+_H)\n", text)
        assert not guard or path.parent.name == "shared", path
        assert not guard or guard[1] == f"GRAPE6_{path.stem.upper()}_H", path
        assert text.startswith(f"/* {path.name} - "), path


def reachable(graph, start):
    """What is reached from a node by one step or more."""
    found, waiting = set(), [start]
    while waiting:
        for node in graph.get(waiting.pop(), set()) - found:
            found.add(node)
            waiting.append(node)
    return found


def circles(graph):
    """The groups of nodes that reach each other."""
    reached = {node: reachable(graph, node) for node in graph}
    found = {frozenset(o for o in reached[n] if n in reached.get(o, ())) for n in graph}
    return [set(group) for group in found if group]


@pytest.fixture(scope="module")
def uses(symbols):
    """The files that each uses names of."""
    home = {symbol: file for file, (defined, _) in symbols.items() for symbol in defined}
    return {file: {home[symbol] for symbol in used & home.keys()} - {file}
            for file, (_, used) in symbols.items()}  # fmt: skip


def test_no_folder_uses_one_that_uses_it(uses):
    graph = defaultdict(set)
    for name, others in uses.items():
        folder = name.partition("/")[0]
        graph[folder] |= {other.partition("/")[0] for other in others} - {folder}
    assert len(graph) > 8
    assert circles(graph) == []


def test_files_that_use_each_other_are_those_of_the_document(uses):
    text = (capi.ROOT / "ARCHITECTURE.md").read_text()
    section = text.split("## Circles")[1].split("\n## ")[0]
    told = [set(re.findall(r"`(\w+/\w+)`", line)) for line in section.split("\n* ")[1:]]
    assert sorted(map(sorted, circles(uses))) == sorted(map(sorted, told))
