"""The parts that pages need to run Python: Pyodide, the editor, our own wheel, and the scripts.

Pyodide, CodeMirror and the bundler come from the npm registry that the machine is set up for, in
the versions that ``docs/tools/browser/package-lock.json`` pins. Pages load nothing from elsewhere.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
SCRIPTS = ROOT / "docs" / "tools" / "browser"

_PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
_LOCK = "pyodide-lock.json"
_PACKAGES = ("wallaroo/", "wallaroo_reference/")
_DOCUMENTS = (
    "__init__",
    "examples",
    "in_page",
    "line_input",
    "performing",
    "projects",
    "show",
    "stepping",
)
"""The modules of ``wallaroo_docs`` that a page needs."""


class BrowserPartsError(Exception):
    """The parts cannot be installed; the text says why and what to do."""


def install(directory: Path, work: Path) -> None:
    """Put everything into a directory of the site.

    Args:
        directory: ``assets/run`` of the site; created.
        work: a directory for intermediate installations.

    Raises:
        BrowserPartsError: Node is missing, or a command fails.
    """
    directory.mkdir(parents=True, exist_ok=True)
    _install_packages(work)
    _bundle(directory, work)
    pyodide = directory / "pyodide"
    pyodide.mkdir()
    for name in (*_PYODIDE, _LOCK):
        shutil.copy(work / "node_modules" / "pyodide" / name, pyodide)
    _wheel(directory / "wallaroo.whl", work)
    _documents(directory / "documents.zip")


def _install_packages(work: Path) -> None:
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(SCRIPTS / name, work)
    shutil.copytree(SCRIPTS / "src", work / "src")
    _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], work)


def _bundle(directory: Path, work: Path) -> None:
    command = [
        str(work / "node_modules" / ".bin" / "esbuild"),
        "src/pages.js",
        "src/worker.js",
        "--bundle",
        "--splitting",
        "--format=esm",
        "--minify",
        "--target=es2022",
        "--external:./pyodide/*",
        f"--outdir={directory}",
    ]
    _run(command, work)


def _wheel(path: Path, work: Path) -> None:
    """Build our wheel, and leave out of it the packages that do not run in a browser."""
    built = work / "wheel"
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)], ROOT)
    [whole] = built.glob("*.whl")
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as to:
        for name in source.namelist():
            if name.startswith(_PACKAGES) or ".dist-info/" in name:
                to.writestr(name, source.read(name))


def _documents(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _DOCUMENTS:
            module = Path(__file__).with_name(f"{name}.py")
            archive.write(module, f"wallaroo_docs/{module.name}")


def _run(command: list[str], directory: Path) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - our own commands
            command, cwd=directory, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise BrowserPartsError(
            f"there is no {command[0]}. Examples run in a page with parts from the npm registry; "
            "install Node 20 or newer, with npm, or build the pages without: make docs PLAIN=1"
        ) from None
    if done.returncode != 0:
        raise BrowserPartsError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
