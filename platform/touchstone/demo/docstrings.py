"""A collection that every machine has: the docstrings of Python's standard library.

Modules written in Python are read with `ast` and never imported, since some act when imported: `antigravity`
opens a browser, `this` prints. What is written in C has no source to read: it is looked up with `inspect`, in
a fixed list of modules that do nothing on import.
"""

import ast
import importlib
import inspect
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

SHORTEST_TEXT = 40  # characters; below this a docstring says no more than its name
LONGEST_TITLE = 200  # characters; some signatures have twenty parameters

# Tests, demonstration programs, tables of characters, and packages that some distributions leave out.
SKIPPED_PACKAGES = frozenset(
    """
    antigravity distutils encodings ensurepip genericpath idlelib lib2to3 ntpath nturl2path posixpath
    pydoc_data sre_compile sre_constants sre_parse test this tkinter turtle turtledemo
    """.split()  # noqa: SIM905 - twenty names in two lines, not in twenty
)
SKIPPED_FOLDERS = frozenset({"site-packages", "dist-packages", "test", "tests", "__pycache__"})

# Modules in C, or Python modules that re-export C: name as documented.
C_MODULES = """
    array atexit binascii bisect builtins bz2 cmath codecs collections contextvars csv datetime decimal errno
    fcntl functools gc grp hashlib heapq io itertools json lzma marshal math mmap operator os os.path pickle
    pwd pyexpat queue random re readline resource select signal socket sqlite3 ssl struct sys syslog termios
    threading time tracemalloc types unicodedata weakref zlib
    """.split()  # noqa: SIM905 - as above

# Where members say that they were defined (less a leading "_"), when that is not the module itself.
C_HOMES = {"os": ("posix",), "threading": ("thread",), "builtins": ("io",)}
PATH_MODULES = {"os.path": ("posixpath", "genericpath")}  # Python source, documented under another name

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Docstring(TypedDict):
    """One document: its qualified name, its name with the signature, and its docstring."""

    doc_id: str
    title: str
    text: str


def stdlib_documents() -> Iterator[Docstring]:
    """Return the documented public names of the standard library, sorted by name.

    Docstrings of fewer than 40 characters are left out. Of documents with the same text the one with the
    shortest name is kept: `str.replace`, not `bytearray.replace`. Order and content are the same on every run
    of one Python; other releases have other docstrings.

    Examples
    --------
    >>> names = [document["doc_id"] for document in stdlib_documents()]
    >>> "json.dumps" in names, "str.split" in names, names == sorted(set(names))
    (True, True, True)
    """
    found: dict[str, Docstring] = {}
    for document in _all_documents():
        # The first occurrence wins: the source text, which has full signatures, comes before the C objects.
        found.setdefault(document["doc_id"], document)
    by_text: dict[str, str] = {}
    for doc_id in sorted(found, key=lambda doc_id: (len(doc_id), doc_id)):
        by_text.setdefault(found[doc_id]["text"], doc_id)
    for doc_id in sorted(by_text.values()):
        if len(found[doc_id]["text"]) >= SHORTEST_TEXT:
            yield found[doc_id]


def _all_documents() -> Iterator[Docstring]:
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*.py")):
        module = _module_name(path.relative_to(library))
        if module is not None:
            yield from _module_documents(module, path)
    for module in C_MODULES:
        yield from _c_documents(module)


def _module_name(path: Path) -> str | None:
    """Return the dotted name of a source file, or None where it is not part of the collection."""
    parts = list(path.with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    if not parts or parts[0] not in sys.stdlib_module_names or parts[0] in SKIPPED_PACKAGES:
        return None
    if SKIPPED_FOLDERS.intersection(parts) or any(part.startswith("_") for part in parts):
        return None
    return ".".join(parts)


def _module_documents(module: str, path: Path) -> Iterator[Docstring]:
    tree = ast.parse(path.read_bytes(), filename=path.name)
    yield from _document(module, module, ast.get_docstring(tree))
    yield from _definitions(module, tree.body)


def _definitions(prefix: str, body: list[ast.stmt]) -> Iterator[Docstring]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("_"):
                continue
            name = f"{prefix}.{node.name}"
            yield from _document(name, name + _signature(node), ast.get_docstring(node))
            if isinstance(node, ast.ClassDef):
                yield from _definitions(name, node.body)
        elif isinstance(node, ast.If | ast.Try | ast.With):
            # Definitions that depend on the platform, or that a C version may replace.
            yield from _definitions(prefix, _branches(node))


def _branches(node: ast.If | ast.Try | ast.With) -> list[ast.stmt]:
    if isinstance(node, ast.With):
        return node.body
    if isinstance(node, ast.If):
        return node.body + node.orelse
    return (
        node.body
        + [child for handler in node.handlers for child in handler.body]
        + node.orelse
        + node.finalbody
    )


def _signature(node: Definition) -> str:
    if isinstance(node, ast.ClassDef):
        makers = [
            child for child in node.body if isinstance(child, ast.FunctionDef) and child.name == "__init__"
        ]
        return _signature(makers[0]) if makers else ""
    text = ast.unparse(node.args)
    for first in ("self", "cls"):
        if text == first or text.startswith(f"{first}, "):
            text = text[len(first) :].removeprefix(", ")
    return f"({text})"


def _document(doc_id: str, title: str, text: str | None) -> Iterator[Docstring]:
    if text:
        short = title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 3] + "..."
        yield Docstring(doc_id=doc_id, title=short, text=inspect.cleandoc(text))


def _c_documents(module: str) -> Iterator[Docstring]:
    """Return the documents of what a module has in C; a module that this Python lacks has none."""
    try:
        loaded = importlib.import_module(module)
    except ImportError:
        return
    prefix = "" if module == "builtins" else f"{module}."
    yield from _document(module, module, loaded.__doc__)
    for name, member in sorted(vars(loaded).items()):
        if name.startswith("_") or not _belongs(module, member):
            continue
        yield from _document(prefix + name, prefix + name + _c_signature(member), inspect.getdoc(member))
        if isinstance(member, type):
            yield from _c_methods(prefix + name, member)


def _belongs(module: str, member: object) -> bool:
    """Return whether a member is defined here, in C or in a path module: not imported from a neighbor."""
    home = getattr(member, "__module__", None) or module
    if isinstance(member, types.FunctionType):
        return home in PATH_MODULES.get(module, ())
    return callable(member) and home.lstrip("_") in (module, *C_HOMES.get(module, ()))


def _c_methods(name: str, owner: type) -> Iterator[Docstring]:
    for method, member in sorted(vars(owner).items()):
        if method.startswith("_") or isinstance(member, types.FunctionType | type):
            continue
        if isinstance(member, classmethod | staticmethod):
            member = getattr(owner, method)  # the wrapper has only a docstring about wrappers
        text = getattr(member, "__doc__", None)
        if isinstance(text, str) and (callable(member) or inspect.isdatadescriptor(member)):
            yield from _document(f"{name}.{method}", f"{name}.{method}{_c_signature(member)}", text)


def _c_signature(member: object) -> str:
    try:
        signature = inspect.signature(member)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    parameters = [value for key, value in signature.parameters.items() if key not in ("self", "cls")]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
