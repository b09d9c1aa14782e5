"""Builds of the wheel, and Pythons that it is installed for: for the tests of wheel/."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from pure_modules import REPOSITORY, pure_modules

WHEEL = REPOSITORY / "wheel"
CHILD = REPOSITORY / "tests" / "wheel_child.py"


def build(tree: Path, target: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Build the wheel as `make wheel` does."""
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)],
        cwd=tree / "wheel",
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def copy_tree(target: Path) -> Path:
    """Copy the files that the wheel is made of; their times are others."""
    files = [
        *pure_modules(REPOSITORY),
        *(path.relative_to(REPOSITORY) for path in WHEEL.iterdir() if path.is_file()),
    ]
    for path in (*files, Path("pyproject.toml"), Path("LICENSE")):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / path, target / path)
    return target


def plant(tree: Path, files: dict[str, str]) -> None:
    for path, source in files.items():
        (tree / path).write_text(source)


def interpreter(version: str) -> str | None:
    """Return a Python of this version on PATH, of pyenv or of uv; what does not start does not count."""
    name = f"python{version}"
    homes = (
        Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions",
        Path(os.environ.get("UV_PYTHON_INSTALL_DIR", Path.home() / ".local/share/uv/python")),
    )
    found = [
        shutil.which(name),
        *(str(path) for home in homes for path in sorted(home.glob(f"*/bin/{name}"))),
    ]
    return next((path for path in found if path and starts(path)), None)


def starts(path: str) -> bool:
    program = [path, "-c", "import encodings, venv"]
    return subprocess.run(program, capture_output=True, timeout=60).returncode == 0


def closure(names: set[str]) -> set[str]:
    """Return the distributions that are installed here under these names, and what they require."""
    found: set[str] = set()
    waiting = sorted(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for text in metadata.requires(name) or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return found


def link_packages(names: set[str], folder: Path) -> None:
    """Show these packages of the running environment, and no others, in a folder."""
    folder.mkdir()
    for name in closure(names):
        distribution = metadata.distribution(name)
        tops = {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            target = Path(str(distribution.locate_file(top)))
            if not (folder / top).exists():
                (folder / top).symlink_to(target)


def python_with(packages: set[str], folder: Path) -> Path:
    """Return a fresh environment's Python, of the version that runs, with these packages alone; it needs no network."""
    venv.create(folder / "env", with_pip=False, symlinks=True)
    link_packages(packages, folder / "packages")
    site = sysconfig.get_path("purelib", vars={"base": str(folder / "env")})
    Path(site, "packages.pth").write_text(f"{folder / 'packages'}\n")
    return folder / "env" / "bin" / "python"


def pip(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=600)


def answer_of(python: Path, question: dict[str, Any]) -> dict[str, Any]:
    """Run the child, which sees what is installed for its Python and nothing of the tree."""
    child = subprocess.run(
        [str(python), "-I", str(CHILD), json.dumps(question)],
        cwd=python.parent,
        env={},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert child.returncode == 0, child.stderr
    answer: dict[str, Any] = json.loads(child.stdout)
    return answer
