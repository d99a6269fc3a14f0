"""What the pages about the code name is there, no room is left out, and layers are as checked."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = [
    ROOT / "wallaroo",
    ROOT / "reference" / "wallaroo_reference",
    ROOT / "spark_impl" / "wallaroo_spark",
    ROOT / "conformance" / "wallaroo_conformance",
    ROOT / "loadgen" / "wallaroo_loadgen",
]
PAGES = [
    "CONTRIBUTING.md",
    "docs/architecture.md",
    "reference/README.md",
    "spark_impl/README.md",
    "conformance/README.md",
    "loadgen/README.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "decisions").glob("*.md")),
]
NAMED = re.compile(r"`([\w./-]+(?:\.py|/))`")


@pytest.mark.parametrize("page", PAGES)
def test_each_file_and_folder_that_a_page_names_is_there(page):
    parents = [package.parent for package in PACKAGES]
    places = [(ROOT / page).parent, *parents, *PACKAGES]
    places += [room.parent for package in PACKAGES for room in package.glob("*/__init__.py")]
    named = NAMED.findall((ROOT / page).read_text("utf-8"))
    assert [name for name in named if not any((place / name).exists() for place in places)] == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_no_room_is_left_out(page):
    text = (ROOT / page).read_text("utf-8")
    rooms = [path.parent for package in PACKAGES for path in package.glob("*/__init__.py")]
    rooms = [room for room in rooms if room.name != "suite"]  # a pytest file, not for readers
    assert rooms
    assert [room for room in rooms if f"{room.name}/" not in text] == []


@pytest.mark.parametrize(
    ("package", "page"),
    [
        ("wallaroo", "docs/architecture.md"),
        ("reference/wallaroo_reference", "reference/README.md"),
    ],
)
def test_no_module_of_a_package_without_rooms_is_left_out(package, page):
    text = (ROOT / page).read_text("utf-8")
    modules = [path.name for path in (ROOT / package).glob("*.py") if path.name[:2] != "__"]
    assert modules
    assert [name for name in modules if f"`{name}`" not in text] == []


@pytest.mark.parametrize(
    "package",
    ["wallaroo_reference", "wallaroo_spark", "wallaroo_conformance", "wallaroo_loadgen"],
)
def test_the_layers_are_those_that_import_linter_holds(package):
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    said = re.search(rf"^- `{package}`: (.*(?:\n  .*)*)", page, re.MULTILINE)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (held,) = [
        contract["layers"]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract.get("containers") == [package]
    ]
    assert said is not None
    assert re.findall(r"`(.*?)`", said[1]) == held
