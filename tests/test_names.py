"""Classes are nouns and functions verbs or nouns: no participle, pronoun or fragment stands alone as a name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from pure_modules import REPOSITORY

PACKAGES = ("judging", "sampling", "analytics", "touchstone_ir", "platform")
# Participles that do not end in "ed", and words that stand for a thing without naming it.
PARTICIPLES = """
said found held made kept done known given sent shown gone left met drawn written taken seen built bought broken told
lost meant paid chosen hidden begun brought caught thrown grown forgotten understood thought felt dealt spent stood
"""
POINTERS = """
i he she it they we you me him her us them mine yours ours theirs my your our their this that these those who whom
whose which what whoever everybody nobody somebody everything nothing something anybody anyone again together among
beyond instead back now when how because
"""
BARE = frozenset((PARTICIPLES + POINTERS).split())
NOUNS_IN_ED = frozenset({"seed", "feed", "need", "speed"})
EXCEPTIONS = {
    "me": "the client's call of GET /api/v1/me, by the API's own name",
    "Ended": "what `end_access` returns: how many sessions, keys and leases ended",
    "Refused": "the base of all refusals of services; its subclasses name the fact: LeaseLost, GradeOffScale",
    "Judged": "what the sizes of an audit's strategy are computed from: the judged items",
}


def is_bare(name: str) -> bool:
    """Return whether the name is one word that says of nothing what it is."""
    word = name.strip("_")
    if "_" in word or word[1:] != word[1:].lower():
        return False
    word = word.lower()
    is_participle = word.endswith("ed") and word not in NOUNS_IN_ED
    return is_participle or word in BARE


def bare_names(source: str) -> Iterator[str]:
    """Yield the names of classes and functions that are bare, at any depth."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and is_bare(node.name):
            yield node.name


def product_files() -> list[Path]:
    files = [path for package in PACKAGES for path in sorted((REPOSITORY / package).rglob("*.py"))]
    return [path for path in files if "migrations" not in path.parts]


def test_no_class_or_function_bears_a_bare_participle_or_pronoun() -> None:
    files = product_files()
    assert len(files) > 300
    bare = {(path.name, name) for path in files for name in bare_names(path.read_text())}
    assert sorted((path, name) for path, name in bare if name not in EXCEPTIONS) == []


def test_every_exception_is_still_needed() -> None:
    names = {name for path in product_files() for name in bare_names(path.read_text())}
    assert set(EXCEPTIONS) <= names


@pytest.mark.parametrize(
    "source",
    ["class Found: ...", "def _wanted(): ...", "class Case:\n    def mine(self): ...", "def asked(): ..."],
)
def test_a_planted_bare_name_is_seen(source: str) -> None:
    assert len(list(bare_names(source))) == 1


@pytest.mark.parametrize(
    "source", ["class JudgedPairs: ...", "def read_seed(): ...", "def seed(): ...", "def of(): ..."]
)
def test_a_name_that_says_what_it_is_is_allowed(source: str) -> None:
    assert list(bare_names(source)) == []
