"""What documentation, docstrings and comments refer to, read without importing anything. For tests/test_references.py.

A reference is a page with its section or heading, a path, a module, or a back-quoted name. What cannot be told from a
word of prose is none.
"""

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDERS = (
    "judging",
    "sampling",
    "analytics",
    "touchstone_ir",
    "platform",
    "wheel",
    "benchmarks",
    "experiments",
    "tests",
    "docs",
)
NOT_OURS = {".git", ".venv", "var", "site", "node_modules", "__pycache__", "dist", "build", "htmlcov"}
OTHER_SOURCES = {".html", ".js", ".css", ".toml", ".yml", ".sql", ".json", ".txt", ".in"}

HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Text:
    """A page, a docstring or a block of comments; `words` are on one line, for references may be broken between two."""

    path: str
    line: int
    words: str

    @property
    def is_page(self) -> bool:
        return self.path.endswith(".md")


@dataclass(frozen=True)
class Module:
    """What a Python file defines at its top level and in its classes, the words of its code, and its prose."""

    path: str
    defined: frozenset[str]
    words: frozenset[str]
    texts: tuple[Text, ...]


def on_one_line(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", text)


def anchor_of(heading: str) -> str:
    """Return the anchor that MkDocs gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


# -- one Python file ----------------------------------------------------------------------------------------


def words_of(node: ast.AST) -> Iterator[str]:
    """Yield the identifiers of a node."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name):
            yield from name.split(".")


def names_bound(body: list[ast.stmt]) -> Iterator[str]:
    """Yield what statements define or import, and the members of their classes."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name, body=members):
                yield name
                yield from names_bound(members)
            case ast.Assign(targets=targets):
                for target in targets:
                    yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from (alias.asname or alias.name for alias in aliases)
            case ast.If(body=inner) | ast.Try(body=inner):
                yield from names_bound(inner)


def comments(path: str, source: str, within_strings: set[int]) -> Iterator[Text]:
    """Yield the comments, those of consecutive lines as one."""
    first, block = 0, list[str]()
    for number, line in enumerate([*source.split("\n"), ""], start=1):
        found = None
        if "#" in line and number not in within_strings:
            found = re.search(r"(?:^|\s)#:? (.*)$", line)
        is_whole_line = found is not None and line.lstrip().startswith("#")
        if block and not is_whole_line:
            yield Text(path, first, " ".join(block))
            block = []
        if found is None:
            continue
        if is_whole_line:
            first = first if block else number
            block.append(found[1])
        else:
            yield Text(path, number, found[1])


def read_module(path: str, source: str) -> Module:
    """Return what a Python file defines and says; strings that stand alone are docstrings."""
    tree = ast.parse(source)
    docstrings: dict[int, ast.Constant] = {}
    strings: list[ast.Constant] = []
    words: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as alone):
                docstrings[id(alone)] = alone
            case ast.Constant(value=str()):
                strings.append(node)
            case _:
                words.update(words_of(node))
    within: set[int] = set()
    for node in strings:
        if node.end_lineno != node.lineno:
            within.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        if id(node) not in docstrings:
            words.update(WORD.findall(str(node.value)))
    prose = [Text(path, node.lineno, on_one_line(str(node.value))) for node in docstrings.values()]
    texts = (*prose, *comments(path, source, within))
    return Module(path, frozenset(names_bound(tree.body)), frozenset(words), texts)


# -- the whole tree -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Repository:
    """A tree of files, each read once. Migrations are frozen: their words count, their prose is left alone."""

    root: Path

    @cached_property
    def files(self) -> frozenset[str]:
        found = []
        for folder, inner, names in os.walk(self.root):
            inner[:] = [name for name in inner if name not in NOT_OURS and not name.endswith(".egg-info")]
            found += [(Path(folder) / name).relative_to(self.root).as_posix() for name in names]
        return frozenset(found)

    @cached_property
    def places(self) -> frozenset[str]:
        """Files and folders by every end of their paths: templates are named without the folder of their app."""
        found = set()
        for path in self.files:
            parts = path.split("/")
            for stop in range(1, len(parts) + 1):
                found |= {"/".join(parts[start:stop]) for start in range(stop)}
        return frozenset(found)

    def read(self, path: str) -> str:
        return (self.root / path).read_text(errors="replace")

    @cached_property
    def modules(self) -> tuple[Module, ...]:
        ours = (path for path in sorted(self.files) if path.endswith(".py") and path.startswith(FOLDERS))
        return tuple(read_module(path, self.read(path)) for path in ours if "/migrations/" not in path)

    @cached_property
    def by_file_name(self) -> dict[str, frozenset[str]]:
        """What the modules of each file name define; those of one name together."""
        found: dict[str, frozenset[str]] = {}
        for module in self.modules:
            name = Path(module.path).stem
            found[name] = found.get(name, frozenset()) | module.defined
        return found

    @cached_property
    def by_dots(self) -> dict[str, frozenset[str]]:
        """What each module defines, by its dotted name; a package defines its modules."""
        found: dict[str, set[str]] = {}
        for module in self.modules:
            path = module.path.removeprefix("platform/").removesuffix(".py").removesuffix("/__init__")
            found.setdefault(path.replace("/", "."), set()).update(module.defined)
        for name in list(found):
            *above, last = name.split(".")
            while above:
                found.setdefault(".".join(above), set()).add(last)
                *above, last = above
        return {name: frozenset(names) for name, names in found.items()}

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word of code: Python without its prose, templates, scripts, settings, file names."""
        found = {Path(path).stem for path in self.files}
        for module in self.modules:
            found |= module.words
        for path in self.files:
            is_source = Path(path).suffix in OTHER_SOURCES and not path.startswith("docs/")
            if is_source or ("/migrations/" in path and path.endswith(".py")):
                found.update(WORD.findall(self.read(path)))
        return frozenset(found)

    @cached_property
    def texts(self) -> tuple[Text, ...]:
        pages = (path for path in sorted(self.files) if path.endswith(".md"))
        kept = [
            Text(path, 1, self.read(path)) for path in pages if path.startswith("docs/") or "/" not in path
        ]
        return (*kept, *(text for module in self.modules for text in module.texts))

    @cached_property
    def headings(self) -> dict[str, list[str]]:
        """The headings of each page."""
        return {text.path: HEADING.findall(text.words) for text in self.texts if text.is_page}

    def page_named(self, text: Text, name: str) -> str | None:
        """Return the path of a page that a text names: from the root, or on a page from the page's own folder."""
        beside = os.path.normpath(str(Path(text.path).parent / name)) if text.is_page else name
        return next((path for path in (beside, name) if path in self.headings), None)
