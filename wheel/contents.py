"""Which pure modules can be in the wheel: those that need NumPy, SciPy, Polars and the standard library alone.

A module of judging, sampling or analytics that needs more stays out, and so does every module that imports it. The
façade stays whole: if one of its modules needs what is not there, nothing is built.
"""

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import resolve_name
from pathlib import Path, PurePath

from pure_modules import BLOCKED, FACADE, PACKAGES, module_name, pure_modules

REQUIRED = frozenset({"numpy", "scipy", "polars"})
EXTRAS = {"altair": "plots", "vl_convert": "plots", "httpx": "client"}  # `pip install touchstone-ir[plots]`
# What a user may have anyway. Like what is in an extra, it is imported inside of functions, or by the façade's own
# module for it, which nothing else imports before it is asked for.
GUESTS = frozenset(
    {
        "charset_normalizer",
        "fastexcel",
        "ir_datasets",
        "ir_measures",
        "pandas",
        "pyarrow",
        "pyterrier",
        *EXTRAS,
    }
)
# In the standard library of some: of Unix alone, or of later versions than the first that is served.
ELSEWHERE = frozenset({"resource", "fcntl", "pwd", "grp", "termios", "tomllib"})
STANDARD = frozenset(sys.stdlib_module_names) - ELSEWHERE

IMPORTING = ("import_module", "__import__")


class Unfit(Exception):
    """The wheel cannot be built of these files; the message names each file and why."""


@dataclass(frozen=True)
class Need:
    """The dotted name of what a file imports. One at once must be there when the file is imported, others later."""

    name: str
    is_at_once: bool

    @property
    def top(self) -> str:
        return self.name.split(".")[0]


@dataclass
class PureModule:
    """A file, what it imports, and which of that is another pure module."""

    name: str
    path: PurePath
    source: str
    needs: list[Need] = field(default_factory=list)

    @property
    def is_facade(self) -> bool:
        return self.path.parts[0] == FACADE


@cache  # tests read the same files again and again
def needs_of(source: str, package: str) -> tuple[Need, ...]:
    """Return what a file imports; `from a import b` is `a.b`. Imports for the type checker alone do not count."""
    found = _needs(ast.parse(source), is_at_once=True)
    return tuple(Need(resolve_name(need.name, package), need.is_at_once) for need in found)


def _needs(node: ast.AST, *, is_at_once: bool) -> Iterator[Need]:
    if isinstance(node, ast.Import):
        yield from (Need(alias.name, is_at_once) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        origin = "." * node.level + (f"{node.module}." if node.module else "")
        yield from (Need(origin + alias.name, is_at_once) for alias in node.names)
    elif isinstance(node, ast.Call) and _last_name(node.func) in IMPORTING:
        named = node.args[0] if node.args else None
        if isinstance(named, ast.Constant) and isinstance(named.value, str):
            yield Need(named.value, is_at_once)
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and _last_name(node.test) == "TYPE_CHECKING":
        children = node.orelse
    for child in children:
        yield from _needs(child, is_at_once=is_at_once and not _may_do_without(node))


def _last_name(node: ast.expr) -> str:
    """Return `c` of `a.b.c`, and "" of what is no name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _may_do_without(node: ast.AST) -> bool:
    """Return whether a module can be imported though an import in this part of it fails."""
    if isinstance(node, ast.Try):
        ways_out = [one for one in node.handlers if one.type and "ImportError" in ast.unparse(one.type)]
        return any(not any(isinstance(line, ast.Raise) for line in one.body) for one in ways_out)
    if isinstance(node, ast.With):
        return any(ast.unparse(item.context_expr) == "suppress(ImportError)" for item in node.items)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def read_modules(root: Path) -> dict[str, PureModule]:
    """Return every pure module below `root` by its dotted name."""
    found = {}
    for path in pure_modules(root):
        source = (root / path).read_text(encoding="utf-8")
        module = PureModule(module_name(path), path, source)
        beside = {other.stem for other in (root / path.parent).glob("*.py")}
        needs = needs_of(source, ".".join(path.parent.parts))
        module.needs = [one for one in needs if one.top in PACKAGES or one.top not in beside]
        found[module.name] = module
    return found


def target_of(need: Need, modules: Mapping[str, PureModule]) -> str:
    """Return the pure module that is imported, or "" if it is none; `a.b` may be a module or a name in `a`."""
    return next((name for name in (need.name, need.name.rpartition(".")[0]) if name in modules), "")


def foreign_needs(module: PureModule, modules: Mapping[str, PureModule]) -> Iterator[str]:
    """Yield what keeps the module out by itself.

    Raises Unfit where it is no pure module at all: it imports Django, or something of ours that does.
    """
    for need in module.needs:
        if need.top in BLOCKED or (need.top in PACKAGES and not target_of(need, modules)):
            raise Unfit(f"{module.path}: a pure module cannot import {need.name}")
        if need.top in STANDARD | REQUIRED | set(PACKAGES):
            continue
        if need.top in GUESTS | ELSEWHERE and (module.is_facade or not need.is_at_once):
            continue
        yield need.top


def parents_of(name: str) -> Iterator[str]:
    """Yield the packages that Python imports before the module.

    >>> list(parents_of("analytics.charts.files"))
    ['analytics', 'analytics.charts']
    """
    parts = name.split(".")
    yield from (".".join(parts[:end]) for end in range(1, len(parts)))


def left_out(modules: Mapping[str, PureModule]) -> dict[str, str]:
    """Return the modules that stay out of the wheel, each with the reason in words."""
    reasons = {
        name: f"imports {foreign}"
        for name, module in modules.items()
        for foreign in foreign_needs(module, modules)
    }
    news = set(reasons)
    while news:
        before, news = news, set()
        for name, module in modules.items():
            targets = [*(target_of(need, modules) for need in module.needs), *parents_of(name)]
            reached = next((target for target in targets if target in before), None)
            if reached and name not in reasons:
                reasons[name] = f"imports {reached}, which {reasons[reached]}"
                news.add(name)
    return reasons


def shipped_modules(root: Path) -> dict[str, PureModule]:
    """Return the modules of the wheel by their names in the tree.

    Raises
    ------
    Unfit
        A pure module imports Django, or one of the façade needs what is not there.
    """
    modules = read_modules(root)
    reasons = left_out(modules)
    torn = [f"{modules[name].path}: {reason}" for name, reason in reasons.items() if modules[name].is_facade]
    if torn:
        raise Unfit("the façade must be whole: " + "; ".join(torn))
    return {name: module for name, module in modules.items() if name not in reasons}


def guests_at_once(modules: Mapping[str, PureModule]) -> dict[str, set[str]]:
    """Return without which guests each module cannot be imported."""
    found: dict[str, set[str]] = {name: set() for name in modules}
    is_changed = True
    while is_changed:
        is_changed = False
        for name, module in modules.items():
            now = {need.top for need in module.needs if need.is_at_once and need.top in GUESTS}
            reached = [target_of(need, modules) for need in module.needs if need.is_at_once]
            for target in [*reached, *parents_of(name)]:
                now |= found[target] if target else set()
            if now != found[name]:
                found[name] = now
                is_changed = True
    return found
