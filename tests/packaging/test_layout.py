"""The layout of csrc: folder and file are the prefix of every name that other files see, and no
folder includes one that includes it."""

import re

import capi
import tools
from variants import run

CSRC = capi.ROOT / "csrc"
BY_FILE_ALONE = {"core", "util", "shared"}  # without the folder's name
EXPORTED = re.compile(r"(g6|g5|get_device_count|get_j_part_data|force_j_particle_send)")
INCLUDE = re.compile(r'^#include "(\w+)/(\w+)\.h"', re.MULTILINE)
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


def test_no_folder_includes_one_that_includes_it():
    graph = {}
    for path in SOURCES:
        folders = {folder for folder, _ in INCLUDE.findall(path.read_text())}
        graph.setdefault(path.parent.name, set()).update(folders - {path.parent.name})
    assert [folder for folder in graph if folder in reachable(graph, folder)] == []


def test_files_that_include_each_other_are_those_of_the_document():
    graph = {}
    for path in SOURCES:
        own = f"{path.parent.name}/{path.stem}"
        graph.setdefault(own, set()).update(
            {"/".join(part) for part in INCLUDE.findall(path.read_text())} - {own}
        )
    circular = {name for name in graph if name in reachable(graph, name)}
    text = (capi.ROOT / "ARCHITECTURE.md").read_text()
    section = text.split("## Circles")[1].split("\n## ")[0]
    assert circular == set(re.findall(r"`(\w+/\w+)`", section))
