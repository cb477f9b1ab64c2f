"""The layout of csrc: folder and file are the prefix of every name that other files see, and no
folder uses one that uses it."""

import re

import capi
import tools
from variants import run

CSRC = capi.ROOT / "csrc"
BY_FILE_ALONE = {"core", "util", "shared"}  # without the folder's name
EXPORTED = re.compile(r"(g6|g5|get_device_count|get_j_part_data|force_j_particle_send)")
SOURCES = sorted(CSRC.glob("*/*.[ch]"))


def prefix(folder, stem):
    return stem if folder in BY_FILE_ALONE or stem == folder else f"{folder}_{stem}"


def owner(folder, stem):
    """A file without a header is a part of one: force_list.c of force.h, cuda/sum.c of cuda.h."""
    while not (CSRC / folder / f"{stem}.h").exists() and "_" in stem:
        stem = stem.rpartition("_")[0]
    return stem


def test_global_names_begin_with_folder_and_file(variants):
    wrong, seen = [], 0
    for path in variants["counted"].folder.rglob("csrc/*/*.c.o"):
        folder, stem = path.parent.name, path.name.removesuffix(".c.o")
        allowed = {prefix(folder, stem), prefix(folder, owner(folder, stem))}
        listed = run([tools.need("nm"), "--defined-only", "--extern-only", path]).stdout
        for name in re.findall(r" [A-Z] (\w+)$", listed, re.MULTILINE):
            seen += 1
            exported = folder == "api" and EXPORTED.match(name)
            if not exported and not any(re.match(rf"{a}(_|$)", name) for a in allowed):
                wrong.append(f"{folder}/{stem}.c: {name}")
    assert seen > 500
    assert wrong == []


def test_headers_are_included_by_folder_and_once():
    """#pragma once, but a guard where kernels are served, too: NVRTC has read such files twice."""
    for path in SOURCES:
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


def used_by_symbols(folder):
    """By file what others of its names it uses, and which: read from the objects, since a header
    may stand between."""
    defined, used = {}, {}
    for path in folder.rglob("csrc/*/*.c.o"):
        name = f"{path.parent.name}/{path.name.removesuffix('.c.o')}"
        if not (CSRC / f"{name}.c").exists():  # of a file that is gone
            continue
        listed = run([tools.need("nm"), path]).stdout
        defined |= dict.fromkeys(re.findall(r" [TDBRVW] (\w+)$", listed, re.MULTILINE), name)
        used[name] = set(re.findall(r" U (\w+)$", listed, re.MULTILINE))
    return {
        name: {defined[s] for s in symbols if defined.get(s, name) != name}
        for name, symbols in used.items()
    }


def test_no_folder_uses_one_that_uses_it(variants):
    graph = {}
    for name, others in used_by_symbols(variants["counted"].folder).items():
        folder = name.partition("/")[0]
        graph.setdefault(folder, set()).update({o.partition("/")[0] for o in others} - {folder})
    assert len(graph) > 8
    assert circles(graph) == []


def test_files_that_use_each_other_are_those_of_the_document(variants):
    found = circles(used_by_symbols(variants["counted"].folder))
    text = (capi.ROOT / "ARCHITECTURE.md").read_text()
    section = text.split("## Circles")[1].split("\n## ")[0]
    told = [set(re.findall(r"`(\w+/\w+)`", line)) for line in section.split("\n* ")[1:]]
    assert sorted(map(sorted, found)) == sorted(map(sorted, told))
