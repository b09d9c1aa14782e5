"""Hatchling's build hook: the pure modules of the tree become `touchstone_ir` and `touchstone_ir._core`."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))  # Hatchling loads this file by its path

from contents import Unfit, shipped_modules
from pure_modules import FACADE
from rewriting import CORE, Unwritable, rewrite

CORE_DOCSTRING = '"""What the façade is made of. Names in here change without notice."""\n'


class TreeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Write the wheel's files into a folder of its own, which the build takes over and which then goes."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files to the wheel; an error ends the build."""
        if version == "editable":
            raise Unfit("this wheel is made of other files: there is no editable install of it")
        tree = Path(self.root).parent
        if not (tree / FACADE / "__init__.py").exists():
            raise Unfit(f"{tree} is not Touchstone's repository: the wheel is built in its folder wheel/")
        self.files = Path(tempfile.mkdtemp(prefix="touchstone-ir-"))
        write_files(tree, self.files)
        build_data["force_include"][str(self.files / FACADE)] = FACADE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        shutil.rmtree(self.files)


def write_files(tree: Path, target: Path) -> None:
    """Write the package `touchstone_ir` as the wheel has it into the folder `target`."""
    modules = shipped_modules(tree)
    core = target / CORE.replace(".", "/")
    core.mkdir(parents=True)
    (core / "__init__.py").write_text(CORE_DOCSTRING, encoding="utf-8")
    for module in modules.values():
        path = (target if module.is_facade else core) / module.path
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.write_bytes(rewrite((tree / module.path).read_bytes(), modules.keys()))
        except Unwritable as error:
            raise Unfit(f"{module.path}: {error}") from error
    (target / FACADE / "py.typed").touch()
