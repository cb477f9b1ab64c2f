"""The documents are true: snippets run, links lead somewhere, tables are complete.

A fenced block of README.md or docs/*.md is code if it is tagged so. `python` is executed; `c NAME`
and `fortran NAME` are compiled, linked by what `grape6 config` says, and run with an empty
environment (`mpi` after the name: with MPI, by 1, 2 and 3 ranks); `sh tested` is run in a folder
that has the document's named blocks as files. A program that is not content does not end with 0.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import capi
from grape6py import errors
from tools import need

ROOT = capi.ROOT
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
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


def blocks_of(document):
    text = document.read_text(encoding="utf-8")
    return [
        Block(document, text.count("\n", 0, m.start()) + 1, m[1], m[2].split(), m[3])
        for m in FENCE.finditer(text)
    ]


BLOCKS = [block for document in DOCUMENTS for block in blocks_of(document)]


def written(language, mpi=False):
    """The blocks of a language, with their places as ids."""
    chosen = [b for b in BLOCKS if b.language == language and ("mpi" in b.words) == mpi]
    assert chosen, language
    return pytest.mark.parametrize("block", chosen, ids=str)


def grape6_script(folder):
    """A command `grape6` in a folder: that of the package which the tests import."""
    package = Path(errors.__file__).parent.parent
    script = folder / "grape6"
    script.write_text(
        f"#!/bin/sh\nPYTHONPATH='{package}' exec '{sys.executable}' -m grape6py \"$@\"\n"
    )
    script.chmod(0o755)
    return script


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """What `grape6 config` prints for some options, as words."""
    script = grape6_script(tmp_path_factory.mktemp("command"))

    def ask(*options):
        return subprocess.run(
            [script, "config", *options], check=True, capture_output=True, text=True
        ).stdout.split()

    return ask


def succeed(command, cwd, env=None):
    """Standard output of a command that must end with 0."""
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def environment(folder=None):
    """That of the tests, without GRAPE6_*, good for mpirun as any user on any number of cores."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GRAPE6_")}
    env |= {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    if folder:
        env["PATH"] = f"{folder}:{env['PATH']}"
    return env


# ---- snippets ----------------------------------------------------------------------


def run_python(block, folder):
    package = str(Path(errors.__file__).parent.parent)
    succeed(
        [sys.executable, "-W", "error", "-c", block.text],
        folder,
        environment() | {"PYTHONPATH": package},
    )


@written("python")
def test_python_snippets_run(block, tmp_path):
    run_python(block, tmp_path)


@written("python", mpi=True)
def test_python_snippets_of_ranks_run(block, tmp_path):
    need("mpirun")
    pytest.importorskip("mpi4py", reason="SKIP: mpi4py")
    package = str(Path(errors.__file__).parent.parent)
    succeed(
        ["mpirun", "-n", "2", sys.executable, "-W", "error", "-c", block.text],
        tmp_path,
        environment() | {"PYTHONPATH": package},
    )


@written("c")
def test_c_snippets_compile_and_run(block, tmp_path, config):
    (tmp_path / "prog.c").write_text(block.text)
    strict = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"]
    flags = ["-o", "prog", *config("--cflags", "--libs"), "-lm"]
    succeed(["gcc", *strict, "prog.c", *flags], tmp_path)
    succeed([tmp_path / "prog"], "/", {})


@written("c", mpi=True)
def test_mpi_snippets_give_the_same_for_any_number_of_ranks(block, tmp_path, config):
    need("mpicc")
    need("mpirun")
    (tmp_path / "prog.c").write_text(block.text)
    flags = ["-Wall", "-Wextra", "-Werror", "-o", "prog", *config("--cflags", "--libs")]
    succeed(["mpicc", "prog.c", *flags], tmp_path)
    run = [succeed(["mpirun", "-n", n, "./prog"], tmp_path, environment()) for n in "123"]
    assert len(set(run)) == 1


@written("fortran")
def test_fortran_snippets_compile_and_run(block, tmp_path, config):
    need("gfortran")
    (tmp_path / block.name).write_text(block.text)
    uses_module = re.search(r"^\s*use g6lib", block.text, re.MULTILINE)
    standard = ["-std=f2008", *config("--fsource")] if uses_module else ["-std=legacy"]
    command = ["gfortran", *standard, block.name, "-o", "prog", *config("--libs")]
    succeed(command, tmp_path)
    succeed([tmp_path / "prog"], "/", {})


def run_in_shell(block, folder):
    """Run a block of commands in a folder that has the document's named blocks."""
    for tool in TOOLS:
        if tool in block.text:
            need(tool)
    for other in BLOCKS:
        if other.document == block.document and other.name:
            (folder / other.name).write_text(other.text)
    if not (folder / "bin").exists():
        (folder / "bin").mkdir()
        grape6_script(folder / "bin")
        (folder / "legacy_examples").symlink_to(ROOT / "legacy_examples")
    command = ["bash", "-e", "-o", "pipefail", "-c", block.text]
    succeed(command, folder, environment(folder / "bin"))


@written("sh")
def test_shell_snippets_run(block, tmp_path):
    run_in_shell(block, tmp_path)


@pytest.mark.parametrize("name", ["README.md", "docs/integrating.md"])
def test_the_snippets_that_write_runs_go_one_after_the_other_and_again(name, tmp_path):
    """In one folder, as someone does who tries them all."""
    for block in [b for b in BLOCKS if b.document == ROOT / name and ".h5" in b.text] * 2:
        if block.language == "python":
            run_python(block, tmp_path)
        elif block.language == "sh":
            run_in_shell(block, tmp_path)


def test_every_block_of_code_is_one_that_is_tested():
    for block in BLOCKS:
        assert block.language in (
            "python",
            "c",
            "fortran",
            "sh",
            "makefile",
            "cmake",
            "toml",
            "text",
        )
        assert block.language != "sh" or block.words == ["tested"], block
        assert block.language in ("python", "sh", "text") or block.name, block


def test_readme_shows_what_make_run_prints(tmp_path):
    need("gfortran")
    command = grape6_script(tmp_path)
    build = [f"GRAPE6={command}", f"BUILD={tmp_path}"]
    succeed(["make", "-C", ROOT / "legacy_examples", *build], tmp_path)
    snapshot = ROOT / "legacy_examples" / "data" / "plummer1024.dat"
    shown = next(b for b in BLOCKS if "make-run" in b.words).text.splitlines()
    commands = [line for line in shown if line.startswith(("build/", "grape6 "))]
    assert commands[0] == f"build/legacy/hermite_f77 {snapshot.relative_to(ROOT)}"
    assert commands[1] == re.sub(r".*\nCLUSTER := ([^\n]*)\n.*", r"grape6 \1",
                                 read("Makefile"), flags=re.DOTALL)  # fmt: skip
    printed = succeed([tmp_path / "hermite_f77", snapshot], tmp_path, {})
    printed += succeed([command, *commands[1].split()[1:]], tmp_path)
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
    leading = {"docs": "README.md", "linking": "docs/linking.md", "figures": "docs/benchmarks.md"}
    for document in DOCUMENTS[1:]:
        above = ROOT / leading[document.parent.name]
        link = document.relative_to(above.parent)
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
    for document in DOCUMENTS:
        mentioned = set(re.findall(r"\bGRAPE6_[A-Z]\w+", document.read_text(encoding="utf-8")))
        mentioned -= {f"GRAPE6_{word}" for word in ("CFLAGS", "LDFLAGS_OTHER")}  # CMake's
        mentioned -= {f"GRAPE6_{word}" for word in ("LIBRARY_DIRS", "LIBRARIES")}
        mentioned -= {"GRAPE6_MACHINE_CODE"}  # of the build of a package
        assert mentioned <= known, document.name


def test_option_keys_are_those_of_the_header():
    enum = re.search(r"enum \{ (WORD_KIND.*?) \};", read("csrc/session/partial_words.c"))[1]
    assert (
        enum == "WORD_KIND, WORD_SCALE, WORD_INVALID, WORD_TOP, WORD_LIMB = 6, WORD_SUMMED_BY = 27"
    )
    assert "enum { PARTIAL_VERSION = 2 };" in read("csrc/session/partial_words.c")
    table = [row[0] for row in rows(read("docs/reproducibility.md"), 2)]
    assert table == ["Words", "0", "1", "2", "3 to 5", "6 to 26", "27", "28 to 31"]
