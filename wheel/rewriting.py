"""Imports of judging, sampling and analytics become imports of `touchstone_ir._core`; nothing else of a file changes.

Places come from Python's own parser, so comments, layout and line numbers stay. Examples in docstrings are rewritten
too, and texts that are the name of a module: some modules are imported by it.
"""

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from pure_modules import APPS, FACADE

CORE = f"{FACADE}._core"
PROMPT = re.compile(rb"(\s*(?:>>>|\.\.\.) )(.*)")


class Unwritable(Exception):
    """An import that cannot become one of the wheel; the message says which, and what to write instead."""


@dataclass(frozen=True, order=True)
class Edit:
    """A name at a place: the line, counted from 1, and the byte in it."""

    line: int
    column: int
    name: str


def is_ours(name: str | None) -> bool:
    return bool(name) and name is not None and name.split(".")[0] in APPS


def rewrite(source: bytes, names: Collection[str]) -> bytes:
    """Return the file for the wheel, whose modules have these names in the tree.

    >>> rewrite(b"from judging.trec import read_qrels  # ids\\n", ["judging.trec"])
    b'from touchstone_ir._core.judging.trec import read_qrels  # ids\\n'
    """
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    _apply(lines, _edits(tree, lines, names))
    for docstring in _docstrings(tree):
        _rewrite_examples(lines, docstring, names)
    return b"".join(lines)


def _apply(lines: list[bytes], edits: Iterator[Edit]) -> None:
    for edit in sorted(edits, reverse=True):
        line = lines[edit.line - 1]
        old = edit.name.encode()
        if line[edit.column : edit.column + len(old)] != old:
            raise Unwritable(f"line {edit.line}: {edit.name} is not written in one piece")
        lines[edit.line - 1] = line[: edit.column] + f"{CORE}.".encode() + line[edit.column :]


def _edits(tree: ast.AST, lines: list[bytes], names: Collection[str]) -> Iterator[Edit]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and is_ours(node.module):
            yield _found(lines, node, str(node.module))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if is_ours(alias.name) and not alias.asname:
                    raise Unwritable(
                        f"line {node.lineno}: `import {alias.name}` gives the name of a package of the tree;"
                        f" write `from ... import ...` or `import {alias.name} as ...`"
                    )
                if is_ours(alias.name):
                    yield _found(lines, alias, alias.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_path(node.value, names):
            yield _found(lines, node, node.value)


def _is_path(text: str, names: Collection[str]) -> bool:
    """Return whether a text is the dotted name of a module, or of something in one; a table "app.Model" is none."""
    parent, _, _ = text.rpartition(".")
    return is_ours(text) and "." in text and (text in names or ("." in parent and parent in names))


def _found(lines: list[bytes], node: ast.ImportFrom | ast.alias | ast.Constant, name: str) -> Edit:
    column = lines[node.lineno - 1].find(name.encode(), node.col_offset)
    return Edit(node.lineno, max(0, column), name)


def _docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value


def _rewrite_examples(lines: list[bytes], docstring: ast.Constant, names: Collection[str]) -> None:
    """Rewrite the lines behind prompts; those that follow one another are one piece of code."""
    last = docstring.end_lineno or docstring.lineno
    number = docstring.lineno - 1
    while number < last:
        end = number
        while end < last and PROMPT.match(lines[end]):
            end += 1
        if end > number:
            _rewrite_example(lines, number, end, names)
        number = max(end, number + 1)


def _rewrite_example(lines: list[bytes], start: int, end: int, names: Collection[str]) -> None:
    parts = [PROMPT.fullmatch(line.rstrip(b"\r\n")) for line in lines[start:end]]
    code = [part[2] for part in parts if part]
    try:
        tree = ast.parse(b"\n".join(code))
    except SyntaxError:  # an example that is cut off by the end of the docstring, or shows an error
        return
    _apply(code, _edits(tree, code, names))
    for offset, (part, now) in enumerate(zip(parts, code, strict=True)):
        line = lines[start + offset]
        if part:
            lines[start + offset] = part[1] + now + line[len(line.rstrip(b"\r\n")) :]
