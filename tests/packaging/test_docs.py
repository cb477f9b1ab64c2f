"""The documents are true: snippets run, links lead somewhere, tables are complete.

A fenced block of README.md or docs/*.md is code if it is tagged so. `python` is executed; `c NAME`
and `fortran NAME` are compiled, linked by what `grape6 config` says, and run with an empty
environment (`mpi` after the name: with MPI, by 1, 2 and 3 ranks); `sh tested` is run in a folder
that has the document's named blocks as files. A program that is not content does not end with 0."""

import json
import os
import re
import runpy
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

import capi
from grape6py import paths, plummer, write_snapshot
from legacy import RANKS, SNAPSHOT
from tools import need, run

ROOT, PACKAGE = capi.ROOT, str(paths.PREFIX.parent)
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")),
             *sorted((ROOT / "benchmarks/pages").glob("*.md"))]  # fmt: skip
FENCE = re.compile(r"^```(\S+)[ ]?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Block:
    """A fenced block: its language, the words after it, its text, and where it stands."""

    document: Path
    line: int
    language: str
    words: list
    text: str

    @property
    def name(self):
        """File that the block is, if it is one."""
        return next((w for w in self.words if "." in w or w == "Makefile"), None)

    def __str__(self):
        return f"{self.document.name}:{self.line}"


BLOCKS = [Block(document, text.count("\n", 0, m.start()) + 1, m[1], m[2].split(), m[3])
          for document in DOCUMENTS for text in [document.read_text(encoding="utf-8")]
          for m in FENCE.finditer(text)]  # fmt: skip


def written(language, mpi=False):
    """The blocks of a language, with their places as ids."""
    blocks = [b for b in BLOCKS if b.language == language and "cell" not in b.words]
    chosen = [b for b in blocks if ("mpi" in b.words) == mpi]
    assert chosen, language
    return pytest.mark.parametrize("block", chosen, ids=str)


# The command `grape6` of snippets, without the half second that Python takes to import all: a copy
# of a process that has done so. Ranks start as they do elsewhere. The snapshot has but 64 bodies.
SCRIPT = """#!/usr/bin/env -S {python} -S
import json, os, socket, sys
if "OMPI_COMM_WORLD_SIZE" in os.environ:
    os.execv("{python}", ["{python}", "-m", "grape6py", *sys.argv[1:]])
if sys.argv[1:] == ["config", "--data"]:
    sys.exit(print("{folder}/few.dat"))
server = socket.socket(socket.AF_UNIX)
server.connect("{folder}/socket")
told = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [told], [0, 1, 2])
sys.exit(int(server.recv(9)))
"""
SERVER = """
import json, os, socket, sys, h5py, grape6py.picture
from grape6py.cli import main
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print(flush=True)
while client := server.accept()[0]:
    if child := os.fork():
        client.close()
        os.waitpid(child, 0)
        continue
    told, streams, *_ = socket.recv_fds(client, 1 << 20, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    sys.stdin, sys.stdout, sys.stderr = (open(n, "rww"[n], buffering=1) for n in range(3))
    sys.argv, folder, env = json.loads(told)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    status = 1
    try:
        status = main()
    except SystemExit as end:
        status = end.code
    finally:
        sys.stdout.flush()
        client.send(str(status or 0).encode())
        os._exit(0)
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """A command `grape6` in a folder, of the package which the tests import."""
    script = tmp_path_factory.mktemp("bin") / "grape6"
    script.write_text(SCRIPT.format(python=sys.executable, folder=script.parent))
    script.chmod(0o755)
    write_snapshot(script.parent / "few.dat", *plummer(64, seed=1))
    server = [sys.executable, "-c", SERVER, script.parent / "socket"]
    with subprocess.Popen(server, env=environment(), stdout=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"\n"
        yield script
        running.kill()


def config(command, *options):
    return run([command, "config", *options]).stdout.split()


def environment(folder=None):
    """That of the tests, without GRAPE6_*, good for mpirun as any user on any number of cores."""
    env = {k: v for k, v in (os.environ | RANKS).items() if not k.startswith("GRAPE6_")}
    return env | {"PYTHONPATH": PACKAGE} | ({"PATH": f"{folder}:{env['PATH']}"} if folder else {})


# ---- snippets ----------------------------------------------------------------------
@written("python")
def test_python_snippets_run(block, here):
    """In this process, where it is as in one of its own."""
    with warnings.catch_warnings(action="error"):
        exec(compile(block.text, str(block), "exec"), {"__name__": "__main__"})


def test_the_cells_of_the_tutorial_run_and_are_those_of_the_notebook(here):
    """One after the other, from the notebook."""
    notebook = runpy.run_path(str(ROOT / "packaging/notebook.py"))
    text = notebook["NOTEBOOK"].read_text()
    assert text == notebook["notebook"](), "run packaging/notebook.py"
    cells, space = json.loads(text)["cells"], {"__name__": "__main__"}
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) == sum("cell" in block.words for block in BLOCKS) > 5
    with warnings.catch_warnings(action="error"):
        for cell in code:
            exec(compile(cell, "tutorial", "exec"), space)


@pytest.mark.full
@written("python", mpi=True)
def test_python_snippets_of_ranks_run(block, tmp_path):
    pytest.importorskip("mpi4py", reason="SKIP: mpi4py")
    program = [sys.executable, "-W", "error", "-c", block.text]
    run([need("mpirun"), "-n", "2", *program], cwd=tmp_path, env=environment())


STRICT = "-std=gnu11 -O1 -Wall -Wextra -Werror".split()


@written("c")
def test_c_snippets_compile_and_run(block, tmp_path, command):
    (tmp_path / "prog.c").write_text(block.text)
    flags = ["-o", "prog", *config(command, "--cflags", "--libs"), "-lm"]
    run(["gcc", *STRICT, "prog.c", *flags], cwd=tmp_path)
    run([tmp_path / "prog"], cwd="/", env={})


@pytest.mark.full
@written("c", mpi=True)
def test_mpi_snippets_give_the_same_for_any_number_of_ranks(block, tmp_path, command):
    (tmp_path / "prog.c").write_text(block.text)
    flags = ["-o", "prog", *config(command, "--cflags", "--libs")]
    run([need("mpicc"), *STRICT, "prog.c", *flags], cwd=tmp_path)
    printed = {run([need("mpirun"), "-n", n, "./prog"], cwd=tmp_path, env=environment()).stdout
               for n in "123"}  # fmt: skip
    assert len(printed) == 1


@written("fortran")
def test_fortran_snippets_compile_and_run(block, tmp_path, command):
    (tmp_path / block.name).write_text(block.text)
    uses_module = re.search(r"^\s*use g6lib", block.text, re.MULTILINE)
    standard = ["-std=f2008", *config(command, "--fsource")] if uses_module else ["-std=legacy"]
    libs = config(command, "--libs")
    run([need("gfortran"), *standard, block.name, "-o", "prog", *libs], cwd=tmp_path)
    run([tmp_path / "prog"], cwd="/", env={})


def run_in_shell(block, folder, command):
    """Run a block of commands in a folder that has the document's named blocks."""
    for tool in ["gfortran", "cmake", "pkg-config", "mpicc", "mpif90", "mpirun"]:
        if tool in block.text:
            need(tool)
    for other in BLOCKS:
        if other.document == block.document and other.name:
            (folder / other.name).write_text(other.text)
    if not (folder / "legacy_examples").exists():
        (folder / "legacy_examples").symlink_to(ROOT / "legacy_examples")
    shell = ["bash", "-e", "-o", "pipefail", "-c", block.text]
    run(shell, cwd=folder, env=environment(command.parent))


@pytest.mark.parametrize("block", [
    pytest.param(block, id=str(block), marks=[pytest.mark.full] * ("mpirun" in block.text))
    for block in BLOCKS if block.language == "sh"
])  # fmt: skip
def test_shell_snippets_run(block, tmp_path, command):
    run_in_shell(block, tmp_path, command)


def test_every_block_of_code_is_one_that_is_tested():
    known = "python c fortran sh makefile cmake toml text".split()
    for block in BLOCKS:
        assert block.language in known
        assert block.language != "sh" or block.words == ["tested"], block
        assert block.language in ("python", "sh", "text") or block.name, block


@pytest.mark.full
def test_readme_shows_what_make_run_prints(request, here, command):
    need("gfortran")
    shown = next(b for b in BLOCKS if "make-run" in b.words).text.splitlines()
    commands = [line for line in shown if line.startswith(("build/", "grape6 "))]
    cluster = re.search(r"^CLUSTER := (.*)$", read("Makefile"), re.MULTILINE)[1]
    assert commands == [f"build/legacy/hermite_f77 {SNAPSHOT.relative_to(ROOT)}",
                        f"grape6 {cluster}"]  # fmt: skip
    printed = request.getfixturevalue("run")("hermite_f77", SNAPSHOT).stdout
    printed += run([command, *cluster.split()]).stdout
    assert (here / "out/collapse.png").read_bytes().startswith(b"\x89PNG")
    is_of_this_kind = "; cpu avx512," in printed and "Intel" in Path("/proc/cpuinfo").read_text()

    def kept(line):
        """The line without seconds, and without what differs between kinds of processors."""
        line = re.sub(r"(?<=\d) +\d+\.\d\d$", "", line)
        varies = r"[-+]?\d[\d.]*(E[-+]\d+)?|base|avx\d+|neon"
        return line if is_of_this_kind else re.sub(varies, "#", line, flags=re.I).split()

    lines = [kept(line) for line in printed.splitlines()]
    assert len(shown) > 12
    for line in shown:
        assert line.strip() == "..." or line in commands or kept(line) in lines, line


# ---- links -------------------------------------------------------------------------
def anchors(document):
    """GitHub's anchors of the headings."""
    prose = FENCE.sub("", document.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def test_links_lead_to_files_and_headings_that_exist():
    for document in [*DOCUMENTS, ROOT / "CHANGELOG.md"]:
        prose = FENCE.sub("", document.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\(((?!https?:)[^)\s]+)\)", prose):
            path, _, anchor = target.partition("#")
            file = (document.parent / path).resolve() if path else document
            assert file.exists(), (document, target)
            assert file.is_relative_to(ROOT), (document, target)
            assert not anchor or anchor in anchors(file), (document, target)


def test_every_document_is_led_to():
    leading = {"docs": "README.md", "linking": "docs/linking.md", "pages": "docs/benchmarks.md"}
    for document in DOCUMENTS[1:]:
        above = ROOT / leading[document.parent.name]
        link = os.path.relpath(document, above.parent)
        assert f"({link})" in above.read_text(encoding="utf-8"), link


# ---- tables ------------------------------------------------------------------------
def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_environment_variables_are_those_of_the_library():
    known = set(re.findall(r"\bGRAPE6_[A-Z]\w+", read("csrc/core/options.c")))
    lines = re.findall(r"^\| *(.*)", read("docs/environment.md"), re.MULTILINE)
    rows = [line.replace("`", "").rstrip("| ").split("|") for line in lines]
    table = {row[0].strip() for row in rows if len(row) == 4 and set(row[0]) - set("-: ")}
    assert {name for name in table if name.startswith("GRAPE6_")} == known
    others = "CFLAGS LDFLAGS_OTHER LIBRARY_DIRS LIBRARIES MACHINE_CODE"  # CMake's; of a build
    known |= {f"GRAPE6_{word}" for word in others.split()}
    for document in DOCUMENTS:
        mentioned = set(re.findall(r"\bGRAPE6_[A-Z]\w+", document.read_text(encoding="utf-8")))
        assert mentioned <= known, document.name
