"""The documents are true: snippets run, links lead somewhere, tables are complete.

A fenced block of README.md or docs/*.md is code if it is tagged so. `python` is executed; `c NAME`
and `fortran NAME` are compiled, linked by what `grape6 config` says, and run with an empty
environment (`mpi` after the name: with MPI, by 1, 2 and 3 ranks); `sh tested` is run in a folder
that has the document's named blocks as files. A program that is not content does not end with 0.
"""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import capi
from grape6py import paths
from legacy import RANKS
from tools import need
from variants import run

ROOT, PACKAGE = capi.ROOT, str(paths.PREFIX.parent)
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")),
             *sorted((ROOT / "benchmarks/pages").glob("*.md"))]  # fmt: skip
TOOLS = ["gfortran", "cmake", "pkg-config", "mpicc", "mpif90", "mpirun"]
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


BLOCKS = [
    Block(document, text.count("\n", 0, m.start()) + 1, m[1], m[2].split(), m[3])
    for document in DOCUMENTS
    for text in [document.read_text(encoding="utf-8")]
    for m in FENCE.finditer(text)
]


def written(language, mpi=False):
    """The blocks of a language, with their places as ids."""
    chosen = [b for b in BLOCKS if b.language == language and ("mpi" in b.words) == mpi]
    assert chosen, language
    return pytest.mark.parametrize("block", chosen, ids=str)


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """A command `grape6` in a folder: that of the package which the tests import."""
    script = tmp_path_factory.mktemp("bin") / "grape6"
    text = f"PYTHONPATH='{PACKAGE}' exec '{sys.executable}' -m grape6py \"$@\""
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    return script


def config(command, *options):
    return run([command, "config", *options]).stdout.split()


def environment(folder=None):
    """That of the tests, without GRAPE6_*, good for mpirun as any user on any number of cores."""
    env = {k: v for k, v in (os.environ | RANKS).items() if not k.startswith("GRAPE6_")}
    return env | {"PYTHONPATH": PACKAGE} | ({"PATH": f"{folder}:{env['PATH']}"} if folder else {})


# ---- snippets ----------------------------------------------------------------------


def run_python(block, folder, *before):
    python = [*before, sys.executable, "-W", "error", "-c", block.text]
    run(python, cwd=folder, env=environment())


@written("python")
def test_python_snippets_run(block, tmp_path):
    run_python(block, tmp_path)


@pytest.mark.full
@written("python", mpi=True)
def test_python_snippets_of_ranks_run(block, tmp_path):
    pytest.importorskip("mpi4py", reason="SKIP: mpi4py")
    run_python(block, tmp_path, need("mpirun"), "-n", "2")


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
    for tool in TOOLS:
        if tool in block.text:
            need(tool)
    for other in BLOCKS:
        if other.document == block.document and other.name:
            (folder / other.name).write_text(other.text)
    if not (folder / "legacy_examples").exists():
        (folder / "legacy_examples").symlink_to(ROOT / "legacy_examples")
    shell = ["bash", "-e", "-o", "pipefail", "-c", block.text]
    run(shell, cwd=folder, env=environment(command.parent))


@written("sh")
def test_shell_snippets_run(block, tmp_path, command):
    run_in_shell(block, tmp_path, command)


@pytest.mark.full
@pytest.mark.parametrize("name", ["README.md", "docs/integrating.md"])
def test_the_snippets_that_write_runs_go_one_after_the_other_and_again(name, tmp_path, command):
    """In one folder, as someone does who tries them all."""
    for block in [b for b in BLOCKS if b.document == ROOT / name and ".h5" in b.text] * 2:
        if block.language == "python":
            run_python(block, tmp_path)
        elif block.language == "sh":
            run_in_shell(block, tmp_path, command)


def test_every_block_of_code_is_one_that_is_tested():
    known = "python c fortran sh makefile cmake toml text".split()
    for block in BLOCKS:
        assert block.language in known
        assert block.language != "sh" or block.words == ["tested"], block
        assert block.language in ("python", "sh", "text") or block.name, block


def test_readme_shows_what_make_run_prints(tmp_path, command):
    need("gfortran")
    build = ["make", "-C", ROOT / "legacy_examples", f"GRAPE6={command}", f"BUILD={tmp_path}"]
    run(build)
    snapshot = ROOT / "legacy_examples" / "data" / "plummer1024.dat"
    shown = next(b for b in BLOCKS if "make-run" in b.words).text.splitlines()
    commands = [line for line in shown if line.startswith(("build/", "grape6 "))]
    cluster = re.search(r"^CLUSTER := (.*)$", read("Makefile"), re.MULTILINE)[1]
    assert commands == [f"build/legacy/hermite_f77 {snapshot.relative_to(ROOT)}",
                        f"grape6 {cluster}"]  # fmt: skip
    printed = run([tmp_path / "hermite_f77", snapshot], cwd=tmp_path, env={}).stdout
    printed += run([command, *cluster.split()], cwd=tmp_path).stdout
    assert (tmp_path / "out/collapse.png").read_bytes().startswith(b"\x89PNG")

    is_of_this_kind = "; cpu avx512," in printed

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


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "CHANGELOG.md"], ids=lambda d: d.name)
def test_links_lead_to_files_and_headings_that_exist(document):
    prose = FENCE.sub("", document.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / path).resolve() if path else document
        assert file.exists(), target
        assert file.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(file), target


def test_every_document_is_led_to():
    leading = {"docs": "README.md", "linking": "docs/linking.md", "pages": "docs/benchmarks.md"}
    for document in DOCUMENTS[1:]:
        above = ROOT / leading[document.parent.name]
        link = os.path.relpath(document, above.parent)
        assert f"({link})" in above.read_text(encoding="utf-8"), link


# ---- tables ------------------------------------------------------------------------


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def rows(text, columns):
    """Cells of the rows of Markdown tables with this many columns, without quotes."""
    lines = [line.strip("| ").split("|") for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip().replace("`", "") for cell in line] for line in lines]
    return [row for row in cells if len(row) == columns and set(row[0]) - set("-: ")]


def test_environment_variables_are_those_of_the_library():
    known = set(re.findall(r"\bGRAPE6_[A-Z]\w+", read("csrc/core/options.c")))
    table = {row[0] for row in rows(read("docs/environment.md"), 4)}
    assert {name for name in table if name.startswith("GRAPE6_")} == known
    others = "CFLAGS LDFLAGS_OTHER LIBRARY_DIRS LIBRARIES MACHINE_CODE"  # CMake's; of a build
    known |= {f"GRAPE6_{word}" for word in others.split()}
    for document in DOCUMENTS:
        mentioned = set(re.findall(r"\bGRAPE6_[A-Z]\w+", document.read_text(encoding="utf-8")))
        assert mentioned <= known, document.name


def test_option_keys_are_those_of_the_header():
    enum = re.search(r"enum \{ (WORD_KIND.*?) \};", read("csrc/session/partial_words.c"))[1]
    words = "WORD_KIND, WORD_SCALE, WORD_INVALID, WORD_TOP, WORD_LIMB = 6, WORD_SUMMED_BY = 27"
    assert enum == words
    assert "enum { PARTIAL_VERSION = 2 };" in read("csrc/session/partial_words.c")
    table = [row[0] for row in rows(read("docs/reproducibility.md"), 2)]
    assert table == ["Words", "0", "1", "2", "3 to 5", "6 to 26", "27", "28 to 31"]
