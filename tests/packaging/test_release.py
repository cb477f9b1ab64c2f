"""What a release is made of beside the code agrees with it: version, changelog, citation, links,
classifiers, recipes of other package managers, the workflow of the hosted CI."""

import re
import shutil
import sys
import tomllib

import pytest

import capi
import grape6py
import metadata
import ready
from tools import run

ROOT = capi.ROOT
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SUPPORTED = re.findall(r":: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
HOME = "https://example.org/some/grape6py"


@pytest.fixture
def edit(here, monkeypatch):
    """A tree in which this version is ready for an upload; edit(name, old, new) changes it."""

    def replace(name, old, new):
        text = (here / name).read_text()
        assert old in text
        (here / name).write_text(text.replace(old, new, 1))

    (here / "grape6py").mkdir()
    for name in ("CHANGELOG.md", "CITATION.cff", "README.md", "grape6py/__init__.py"):
        shutil.copy(ROOT / name, here / name)
    replace("CHANGELOG.md", "## [Unreleased]\n", f"## [{grape6py.__version__}] - 2031-02-03\n")
    cff = (here / "CITATION.cff").read_text()
    cff = re.sub(r"^(date-released|repository-code):.*\n", "", cff, flags=re.MULTILINE)
    added = f'date-released: 2031-02-03\nrepository-code: "{HOME}/"\n'
    (here / "CITATION.cff").write_text(cff + added)
    monkeypatch.setattr(ready, "ROOT", here)
    return replace


# ---- versions ----------------------------------------------------------------------
def test_changelog_and_citation_have_this_version():
    version = grape6py.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    headings = re.findall(r"^## \[(.*?)\](.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0][0] in ("Unreleased", version)
    released = [head for head in headings if head[0] != "Unreleased"]
    assert all(re.fullmatch(r" - \d{4}-\d\d-\d\d", date) for _, date in released)
    numbers = [tuple(map(int, name.split("."))) for name in [version, *(n for n, _ in released)]]
    assert numbers == sorted(numbers, reverse=True)


def test_a_version_is_ready_when_everything_has_it_and_else_what_lacks_is_named(edit):
    version = grape6py.__version__
    assert ready.missing() == ready.missing(f"v{version}") == []
    for file, old, new in (("CHANGELOG.md", "] - 2031-02-03", "]"),
                           ("CITATION.cff", "repository-code:", "#"),
                           ("grape6py/__init__.py", version, "9.9.9")):  # fmt: skip
        edit(file, old, new)
        assert any(line.startswith(file) for line in ready.missing(f"v{version}"))


# ---- links -------------------------------------------------------------------------
def test_links_of_the_readme_work_outside_the_tree(edit):
    found = metadata.dynamic_metadata({}, {"version": "1.2.3"})
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]*)\)", found["readme"]["text"])
    assert len(links) > 10
    for picture, address in links:
        kind, _, path = address.removeprefix(f"{HOME}/").partition("/v1.2.3/")
        assert kind == ("raw" if picture else "blob")
        assert (ROOT / path).exists()
    assert len([picture for picture, _ in links if picture]) == 1
    assert found["urls"]["Repository"] == HOME
    assert all(address.startswith(HOME) for address in found["urls"].values())


# ---- who builds it -----------------------------------------------------------------
def words(*command):
    return run([sys.executable, "-m", *command], cwd=ROOT).stdout.split()


def need(module):
    pytest.importorskip(module, reason=f"SKIP: {module} not found: pip install '.[release]'")


def test_wheels_are_built_for_every_python_that_is_named():
    need("cibuildwheel")
    found = words("cibuildwheel", "--print-build-identifiers", "--platform", "linux",
                  "--archs", "x86_64,aarch64")  # fmt: skip
    tags = [f"cp{version.replace('.', '')}" for version in SUPPORTED]
    assert sorted(found) == sorted(f"{tag}-manylinux_{machine}" for tag in tags
                                   for machine in ("x86_64", "aarch64"))  # fmt: skip


def test_the_workflow_is_one():
    need("check_jsonschema")
    files = [*(ROOT / ".github/workflows").iterdir()]
    words("check_jsonschema", "--builtin-schema", "vendor.github-workflows", *files)
    text = "".join(path.read_text() for path in files)
    for pinned in re.findall(r"pipx run (\w+==\S+)", text):
        assert pinned in PROJECT["project"]["optional-dependencies"]["release"]


# ---- recipes -----------------------------------------------------------------------
def test_the_conda_recipe_is_one_and_needs_what_the_package_does():
    need("rattler_build")
    from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

    variants = {"python": [f"{version}.*" for version in SUPPORTED], "c_compiler": ["gcc"],
                "c_stdlib": ["sysroot"]}  # fmt: skip
    recipe = Stage0Recipe.from_file(ROOT / "packaging/conda/recipe.yaml")
    platform = RenderConfig(platform=PlatformConfig(target_platform="linux-64"))
    rendered = [each.recipe.to_dict() for each in recipe.render(VariantConfig(variants), platform)]
    assert len(rendered) == len(SUPPORTED)
    for each in rendered:
        assert each["package"]["version"] == grape6py.__version__
        assert each["about"]["summary"] == PROJECT["project"]["description"]
        needed = {need.replace("matplotlib-base", "matplotlib").replace(" ", "")
                  for need in each["requirements"]["run"]}  # fmt: skip
        assert needed == {"python", *PROJECT["project"]["dependencies"]}
        host = [need.replace(" ", "") for need in each["requirements"]["host"]]
        assert {*PROJECT["build-system"]["requires"]} <= {*host}
