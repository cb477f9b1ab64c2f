"""Pages of the site that are made of other files, tables of figures, code as the site shows it, and
links that lead out of docs/: hooks of mkdocs.yml.

A link to a file of the tree that is no page leads to the repository, or becomes its words while the
project has no address (metadata.py).
"""

import posixpath
import re
import sys
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = map(str, (ROOT / "packaging", ROOT / "benchmarks"))

import tables  # noqa: E402  (of benchmarks/)

import metadata  # noqa: E402  (of this folder)

# Pages made of files outside docs/.
ABOVE = {"index.md": "README.md", "architecture.md": "ARCHITECTURE.md",
         "contributing.md": "CONTRIBUTING.md"}  # fmt: skip
ABOVE |= {f"figures/{page.name}": f"benchmarks/pages/{page.name}" for page in tables.PAGES[1:]}
# The API reference: where each name of the package is defined.
PYTHON = {
    "Forces": ["forces.sums.accelerations", "forces.grape6.Grape6", "_lib.cluster.Forces"],
    "Integrators": ["integrators.hermite.Hermite", "integrators.leapfrog.Leapfrog",
                    "integrators.stellar.StellarUpdate", "kepler"],
    "Fields from outside": ["fields", "fields.analytic", "fields.adapters", "orbits"],
    "Events": ["events"],
    "Trees": ["forces.tree.Tree"],
    "Models": ["models.spheres.plummer", "models.spheres.uniform", "models.king.king",
               "models.isotropic",
               "models.orbits.two_body", "models.orbits.merger", "models.galaxies.galaxy",
               "models.galaxies.galaxy_merger", "models.fractal.fractal",
               "models.sampling.Particles"],
    "Stars": ["models.mass_functions.kroupa", "models.mass_functions.salpeter",
              "models.mass_functions.maschberger", "models.stars.stars",
              "models.binaries.with_binaries", "models.tidal.tidal_radius"],
    "Files": ["run", "files.runs.outputs", "archive", "files.runs.writer.save",
              "integrators.restored.restore", "files.runs.reader", "snapshot",
              "files.formats.bodies.Snapshot", "picture", "picture.movie"],
    "Units": ["units.Units"],
    "Quantities": ["diagnostics", "diagnostics.sums", "diagnostics.centres", "diagnostics.radii",
                   "diagnostics.profiles", "diagnostics.bound", "diagnostics.times",
                   "diagnostics.masses", "forces.energies", "bound_pairs"],
    "Errors": ["errors"],
}  # fmt: skip


# ---- pages -------------------------------------------------------------------------


def on_files(files, config):
    for page, name in ABOVE.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    files.append(File.generated(config, "reference/c.md", content=headers()))
    files.append(File.generated(config, "reference/python.md", content=python()))
    files.append(File.generated(config, "gallery/index.md", content=gallery()))
    return files


def python():
    """An API reference out of the docstrings."""
    lines = ["# Python\n"]
    for title, names in PYTHON.items():
        lines += [f"## {title}\n", *(f"::: grape6py.{name}\n" for name in names)]
    return "\n".join(lines)


def headers():
    """The C headers: a heading for each group of calls, and its comment and declarations."""
    return "\n".join(["# C headers\n", *map(header, ("g6lib.h", "g5lib.h", "g6x_mpi.h"))])


def header(name):
    text = (ROOT / "include" / name).read_text()
    text = re.sub(r"^(#|extern \"C\"|\}$).*\n", "", text, flags=re.MULTILINE)
    lines = [f"## {name}\n"]
    for group in re.split(r"\n(?=/\*)|\n\n", text):
        section = re.fullmatch(r"/\* -+ (.*?) -+ \*/", group.strip())
        if section:
            lines.append(f"### {section[1]}\n")
        elif group.strip():
            calls = re.findall(r"^int (\w+)\(", group, re.MULTILINE)
            lines += [f"#### {', '.join(calls)}\n"] * bool(calls)
            lines.append(f"```c\n{group.strip()}\n```\n")
    return "\n".join(lines)


# ---- the gallery -------------------------------------------------------------------


def examples():
    return sorted((ROOT / "docs/gallery").glob("*.py"))


def gallery():
    """The examples, each with the picture that it has drawn."""
    lines = ["# Gallery\n", "Each program draws its picture: `python docs/gallery/NAME.py`.\n"]
    for path in examples():
        text = path.read_text()
        title, _, about = text.split('"""')[1].partition("\n")
        picture = f"![{title}]({path.stem}.png)\n"
        lines += [f"## {title.rstrip('.')}\n", f"{about.strip()}\n", picture]
        lines.append(f"```python\n{text.split(chr(34) * 3, 2)[2].strip()}\n```\n")
    return "\n".join(lines)


# ---- code --------------------------------------------------------------------------


def on_page_content(html, page, config, files):
    """The docstrings' references, :meth:`evolve`, as links where the page has what they name."""
    anchors = re.findall(r'id="(grape6py[\w.]*)"', html)
    here = ""

    def lead(match):
        nonlocal here
        if match["anchor"]:
            here = match["anchor"]
            return match[0]
        name = match["name"].lstrip("~.")
        found = [anchor for anchor in anchors if f".{anchor}".endswith(f".{name}")]
        if not found:
            return f"<code>{name}</code>"
        near = max(found, key=lambda anchor: len(posixpath.commonprefix([anchor, here])))
        return f'<a href="#{near}"><code>{name}</code></a>'

    reference = r':\w+:<code>(?P<name>[\w.~]+)</code>|id="(?P<anchor>grape6py[\w.]*)"'
    return re.sub(reference, lead, html)


def fences(markdown):
    """Fences as superfences takes them: a word after the language is refused; a file's name titles
    its block."""

    def fence(match):
        name = next((w for w in match[2].split() if "." in w or w == "Makefile"), None)
        return match[1] + (f' title="{name}"' if name else "")

    return re.sub(r"^(```\w+) +(.+)$", fence, markdown, flags=re.MULTILINE)


# ---- links -------------------------------------------------------------------------


def on_page_markdown(markdown, page, config, files):
    source = page.file.src_uri
    folder = posixpath.dirname(ABOVE.get(source, f"docs/{source}"))

    def lead(match):
        picture, words, target = match.groups()
        name, mark, anchor = target.partition("#")
        if not name:
            return match[0]
        at = posixpath.normpath(posixpath.join(folder, name))
        pages = {made: page for page, made in ABOVE.items()}
        inside = pages.get(at) or (at.removeprefix("docs/") if at.startswith("docs/") else None)
        if inside and files.get_file_from_path(inside):
            place = posixpath.relpath(inside, posixpath.dirname(source) or ".")
            return f"{picture}[{words}]({place}{mark}{anchor})"
        return metadata.readme(f"{picture}[{words}]({at})", metadata.address(ROOT), version())

    return fences(metadata.LINK.sub(lead, tables.filled(markdown)))


def version():
    text = (ROOT / "grape6py/__init__.py").read_text()
    return re.search(r'^__version__ = "(.*)"', text, re.MULTILINE)[1]
