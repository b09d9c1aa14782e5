"""Which functions and classes of the product some other part of it reaches, read from the source alone.

What is followed: a name, or `module.name`, from the code that uses it to its definition, through imports.
A function that only an unreached function calls is not reached either. Methods belong to their class.
"""

import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path, PurePath

from pure_modules import FACADE, PACKAGES, REPOSITORY, module_name

FOLDERS = (*PACKAGES, "platform")
# Files whose names Django, Celery or a server look up: what they define is used.
LOADED = {"urls", "apps", "settings", "wsgi", "celery"}
LOADED_FOLDERS = {"migrations", "commands"}
MODULE_HOOKS = {"__getattr__", "__dir__"}  # Python calls them for names that a module lacks
# A decorator with one of these words hands the function to a registry.
REGISTERING = {"shared_task", "connect", "register", "receiver", "handler"}

Name = tuple[str, str]  # module and name in it


@dataclass
class Module:
    """A file's definitions by name, its imports by the name they give, and its other statements."""

    name: str
    package: str
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)  # module, and name in it
    statements: list[ast.stmt] = field(default_factory=list)

    def read(self, body: Iterable[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.definitions.setdefault(node.name, []).append(node)
            elif targets := assigned_names(node):
                for target in targets:
                    self.definitions.setdefault(target, []).append(node)
            elif isinstance(node, ast.If | ast.Try) and not is_main_block(node):
                for part in (node.body, node.orelse, *(h.body for h in getattr(node, "handlers", []))):
                    self.read(part)
            elif not isinstance(node, ast.Import | ast.ImportFrom):
                self.statements.append(node)

    def read_imports(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.split(".")[0]
                    self.imports[alias.asname or first] = (alias.name if alias.asname else first, None)
            elif isinstance(node, ast.ImportFrom):
                origin = node.module.split(".") if node.module else []
                if node.level:
                    package = self.package.split(".")
                    origin = package[: len(package) - node.level + 1] + origin
                for alias in node.names:
                    self.imports[alias.asname or alias.name] = (".".join(origin), alias.name)


def assigned_names(node: ast.stmt) -> list[str]:
    """Return the names that a plain assignment defines, or nothing for other statements."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if not isinstance(node, ast.Assign):
        return []
    names = [part for target in node.targets for part in getattr(target, "elts", [target])]
    if not all(isinstance(name, ast.Name) for name in names):
        return []
    return [name.id for name in names if isinstance(name, ast.Name)]


def is_main_block(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)


def local_names(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """Return the arguments of a function and the names it assigns: there they hide the module's."""
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    inside = [node for part in body for node in ast.walk(part)]
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)} | {
        node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


@cache
def module_of(path: str, source: str) -> Module:
    name = module_name(PurePath(path))
    module = Module(name, name if PurePath(path).stem == "__init__" else name.rpartition(".")[0])
    tree = ast.parse(source)
    module.read(tree.body)
    module.read_imports(tree)
    return module


class Product:
    """The modules of the product, given as source by path below the repository."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        modules = [module_of(path, source) for path, source in sources.items()]
        self.modules = {module.name: module for module in modules}
        self._uses: dict[Name, set[Name]] = {}

    def resolve(
        self, module: str, name: str | None, seen: frozenset[Name] = frozenset()
    ) -> Name | str | None:
        """Return what a name of a module is: a definition, the dotted name of a module, or nothing of the product."""
        if name is None or (module, name) in seen:
            return module
        here = self.modules.get(module)
        if here and name in here.definitions:
            return module, name
        if here and name in here.imports:
            origin, part = here.imports[name]
            # the programs in a release stand beside each other, and import each other by their plain names
            origin = next(
                (one for one in (origin, f"{here.package}.{origin}") if one in self.modules), origin
            )
            return self.resolve(origin, part, seen | {(module, name)})
        return f"{module}.{name}" if f"{module}.{name}" in self.modules else None

    def resolve_path(self, text: str) -> Name | None:
        """Return the definition that a string like "judging.apps.JudgingConfig" or "package.module:name" names."""
        module, _, name = text.replace(":", ".").rpartition(".")
        definition = self.resolve(module, name) if module in self.modules else None
        return definition if isinstance(definition, tuple) else None

    def references(self, module: str, node: ast.AST, hidden: frozenset[str] = frozenset()) -> Iterator[Name]:
        """Yield the definitions of the product that the code of a node names."""
        if isinstance(node, ast.Name | ast.Attribute):
            definition = self._target(module, node, hidden)
            if isinstance(definition, tuple):
                yield definition
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from self._in_text(module, node.value)
        inner = hidden
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inner = hidden | local_names(node)
            outside = [node.args, *getattr(node, "decorator_list", []), getattr(node, "returns", None)]
            for part in filter(None, outside):
                yield from self.references(module, part, hidden)
        for child in ast.iter_child_nodes(node):
            yield from self.references(module, child, inner)

    def _target(self, module: str, node: ast.AST, hidden: frozenset[str]) -> Name | str | None:
        if isinstance(node, ast.Name):
            return None if node.id in hidden else self.resolve(module, node.id)
        if isinstance(node, ast.Attribute):
            parent = self._target(module, node.value, hidden)
            return self.resolve(parent, node.attr) if isinstance(parent, str) else None
        return None

    def _in_text(self, module: str, text: str) -> Iterator[Name]:
        """Yield what a string names: a dotted path, or (an annotation in quotes) a class of the module."""
        definition = self.resolve_path(text) if "." in text else self.resolve(module, text)
        if isinstance(definition, tuple) and ("." in text or text[:1].isupper()):
            yield definition

    @cached_property
    def roots(self) -> set[Name]:
        """Return what is used without being named: by Django, Celery, a server, a registry or an import."""
        names: set[Name] = set()
        for module in self.modules.values():
            parts = module.name.split(".")
            for statement in module.statements:
                names.update(self.references(module.name, statement))
            for name, nodes in module.definitions.items():
                is_model = "models" in parts and isinstance(nodes[0], ast.ClassDef)
                is_looked_up = parts[-1] in LOADED or LOADED_FOLDERS & set(parts) or name in MODULE_HOOKS
                if is_looked_up or is_model or is_registered(nodes):
                    names.add((module.name, name))
        return names

    def reach(self, roots: Iterable[Name]) -> set[Name]:
        """Return the roots and everything that they use, that these use, and so on."""
        names: set[Name] = set()
        waiting = list(roots)
        while waiting:
            module, name = one = waiting.pop()
            if one in names:
                continue
            names.add(one)
            if one not in self._uses:
                nodes = self.modules[module].definitions[name]
                self._uses[one] = {used for node in nodes for used in self.references(module, node)}
            waiting.extend(self._uses[one])
        return names

    def functions_and_classes(self) -> set[Name]:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return {
            (module.name, name)
            for module in self.modules.values()
            for name, nodes in module.definitions.items()
            if any(isinstance(node, kinds) for node in nodes)
        }


def is_registered(nodes: Iterable[ast.stmt]) -> bool:
    decorators = [one for node in nodes for one in getattr(node, "decorator_list", [])]
    words = {
        part for one in decorators for part in ast.walk(one) if isinstance(part, ast.Name | ast.Attribute)
    }
    return not REGISTERING.isdisjoint(getattr(word, "attr", getattr(word, "id", "")) for word in words)


def product_sources(root: Path = REPOSITORY) -> dict[str, str]:
    paths = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))]
    return {path.relative_to(root).as_posix(): path.read_text() for path in paths}


def entry_points(root: Path = REPOSITORY) -> list[str]:
    """Return what the product promises to other programs, as "module:name": entry points, and names of the library."""
    found = library_names(root)
    for path in ("pyproject.toml", "wheel/pyproject.toml"):
        project = tomllib.loads((root / path).read_text())["project"]
        groups = [project.get("scripts", {}), *project.get("entry-points", {}).values()]
        found += [target for group in groups for target in group.values()]
    return found


def library_names(root: Path) -> list[str]:
    """Return the names of the façade, which loads them by a table, and those that its packages export."""
    found = []
    for path in sorted((root / FACADE).rglob("__init__.py")):
        package = module_name(PurePath(path.relative_to(root)))
        tables = {
            target: node.value
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.Assign)
            for target in assigned_names(node)
        }
        if "_MODULES" in tables:
            modules = ast.literal_eval(tables["_MODULES"])
            found += [f"{package}.{module}:{name}" for name, module in modules.items()]
        elif "__all__" in tables:
            found += [f"{package}:{name}" for name in ast.literal_eval(tables["__all__"])]
    return found
