"""Count how far a reader travels who follows a function of the product to the end of all it calls.

    python benchmarks/trail.py [--root FOLDER] [--from FILE:FUNCTION ...]

The reader starts in the function and reads in source order. At every call by `name` or `module.name` that the imports
resolve to a function or class of the product, they go there, read that to its end, follow its calls in the same way,
and come back. They enter each function and class once; of a class they read the whole body. A *stay* is an unbroken
stretch in one file; *returns* are the stays beyond the first in each file, stays - files: how often a file that was
left must be opened again.

Not followed are calls of methods of objects, of arguments and of entries of a table: Python knows their target only
when it runs. What a registry calls is therefore no part of the trail; the reader who knows the registry goes there by
its key.

`--root` measures another checkout. Prints JSON.
"""

import argparse
import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDERS = ("judging", "sampling", "analytics", "platform/touchstone", "platform/console")
STARTS = (
    "analytics/numbers/estimates.py:estimate_columns",
    "sampling/services/auditing.py:audit",
    "judging/services/assign.py:submit_and_claim",
)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Module:
    """A file of the product: what it defines at its top level, and what each imported name stands for."""

    path: Path
    definitions: dict[str, Definition]
    imports: dict[str, str]


@dataclass(frozen=True)
class Place:
    """A definition of the product, by its module and name."""

    module: str
    name: str


@dataclass
class Trail:
    """The files in the order of the reader's stays, and the definitions they entered."""

    stays: list[str] = field(default_factory=list)
    entered: set[Place] = field(default_factory=set)

    def stay(self, file: str) -> None:
        if not self.stays or self.stays[-1] != file:
            self.stays.append(file)

    def summary(self) -> dict[str, int]:
        n_files = len(set(self.stays))
        return {
            "stays": len(self.stays),
            "files": n_files,
            "returns": len(self.stays) - n_files,
            "definitions": len(self.entered),
        }


def module_name(path: Path, root: Path) -> str:
    """Return the dotted name of a file below the root; platform/ is a folder and no package."""
    parts = path.relative_to(root).with_suffix("").parts
    parts = parts[1:] if parts[0] == "platform" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(tree: ast.Module, package: list[str]) -> dict[str, str]:
    """Return the dotted origin of every name that the file imports, at any depth."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                names[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom):
            origin = node.module.split(".") if node.module else []
            if node.level:
                origin = package[: len(package) - node.level + 1] + origin
            names |= {alias.asname or alias.name: ".".join([*origin, alias.name]) for alias in node.names}
    return names


def read_module(path: Path, name: str) -> Module:
    tree = ast.parse(path.read_text())
    package = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
    definitions = {node.name: node for node in tree.body if isinstance(node, Definition)}
    return Module(path, definitions, imported_names(tree, package))


def read_product(root: Path) -> dict[str, Module]:
    """Return the modules of the product by dotted name, without migrations."""
    paths = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))]
    named = {module_name(path, root): path for path in paths if "migrations" not in path.parts}
    return {name: read_module(path, name) for name, path in named.items()}


def definition_of(product: dict[str, Module], dotted: str) -> Place | None:
    """Return the definition that a dotted name stands for, through as many re-exports as there are."""
    seen: set[str] = set()
    while dotted not in seen:
        seen.add(dotted)
        module, _, name = dotted.rpartition(".")
        if module not in product:
            return None
        if name in product[module].definitions:
            return Place(module, name)
        dotted = product[module].imports.get(name, "")
    return None


def target(product: dict[str, Module], module: str, call: ast.Call) -> Place | None:
    """Return the definition that a call in the module goes to, or None where it cannot be told or is not ours."""
    called = call.func
    if isinstance(called, ast.Name):
        return definition_of(product, f"{module}.{called.id}")
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        origin = product[module].imports.get(called.value.id, "")
        return definition_of(product, f"{origin}.{called.attr}") if origin in product else None
    return None


def calls(definition: Definition) -> Iterator[ast.Call]:
    """Yield the calls of a definition in the order in which they begin in the source."""
    nodes = [node for node in ast.walk(definition) if isinstance(node, ast.Call)]
    yield from sorted(nodes, key=lambda call: (call.lineno, call.col_offset))


def follow(product: dict[str, Module], start: Place, trail: Trail) -> Trail:
    """Add to the trail what a reader of the definition passes, depth first."""
    trail.entered.add(start)
    module = product[start.module]
    trail.stay(str(module.path))
    for call in calls(module.definitions[start.name]):
        place = target(product, start.module, call)
        if place is not None and place not in trail.entered:
            follow(product, place, trail)
            trail.stay(str(module.path))
    return trail


def place_of(product: dict[str, Module], root: Path, start: str) -> Place:
    """Return the definition of a start, written as `--from` takes it."""
    file, _, name = start.partition(":")
    place = Place(module_name(root / file, root), name)
    if place.module not in product or name not in product[place.module].definitions:
        raise ValueError(f"{root} has no {start}")
    return place


def measure_together(root: Path, start: str, entries: tuple[tuple[str, str], ...]) -> dict[str, int]:
    """Return the trail of a reader who follows the start, then entries of tables: `(file of the table, function)`.

    The reader comes to each function from its table's file. What calls through a table hide is counted here.
    """
    product = read_product(root)
    trail = follow(product, place_of(product, root, start), Trail())
    for table, function in entries:
        trail.stay(str(root / table))
        place = place_of(product, root, function)
        if place not in trail.entered:
            follow(product, place, trail)
    return trail.summary()


def measure(root: Path, starts: tuple[str, ...] = STARTS) -> dict[str, dict[str, int]]:
    """Return stays, files, returns and definitions of each start, written as `--from` takes it."""
    product = read_product(root)
    return {start: follow(product, place_of(product, root, start), Trail()).summary() for start in starts}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=REPOSITORY, help="the checkout to measure")
    parser.add_argument("--from", nargs="+", default=list(STARTS), dest="starts", metavar="FILE:FUNCTION")
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.root.resolve(), tuple(arguments.starts)), indent=2))


if __name__ == "__main__":
    main()
