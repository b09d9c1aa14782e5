"""A registry's keys stand in its own files alone: elsewhere no literal lists three of them."""

import ast
from collections.abc import Iterator
from pathlib import PurePath

import pytest
from test_architecture import below_repository, sources
from test_released_keys import RELEASED

MOST = 2  # keys of a registry in one literal of a file that is not its own
# Where a table's keys may stand. The verifier of a release has tables of its own, on purpose.
OWN_FILES = {
    "aggregated labels": ("judging/label_aggregation.py", "analytics/services/label_classes.py"),
    "aggregation rules": ("analytics/aggregation/rules.py",),
    # the formats of files are a table too, and share three keys
    "exports": ("analytics/services/exports.py", "judging/formats/"),
    "files of a release": ("analytics/releases/",),
    # judging/shapes.py tells by their fields those that have named ones
    "formats of judgments": ("judging/formats/", "judging/shapes.py", "analytics/services/exports.py"),
    "formats of runs": ("judging/formats/",),
    "kinds of flags": ("analytics/screening/kinds.py",),
    "kinds of judging": ("judging/kinds.py",),
    "measures": ("sampling/measures/",),
    "methods": ("analytics/methods.py",),
    "policies of judging again": ("sampling/rejudging_policies.py",),
    "selections": ("sampling/selections.py",),
    "strategies": ("sampling/strategies.py",),
}
VERIFIER = "analytics/releases/verify"


def literals(tree: ast.AST) -> Iterator[tuple[int, list[str]]]:
    """Yield line and texts of every tuple, list, set, dictionary and class body; of a tuple inside, its first text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            parts = node.elts
        elif isinstance(node, ast.Dict):
            parts = [*filter(None, node.keys), *node.values]
        elif isinstance(node, ast.ClassDef):
            parts = [one.value for one in node.body if isinstance(one, ast.Assign)]
        else:
            continue
        firsts = [
            part.elts[0] if isinstance(part, ast.Tuple | ast.List) and part.elts else part for part in parts
        ]
        texts = [one.value for one in firsts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        yield node.lineno, texts


def lists_of_keys(path: PurePath, source: str, table: str, keys: set[str]) -> list[str]:
    """Return where a file that is not the table's own lists more than two of its keys."""
    if str(path).startswith((*OWN_FILES[table], VERIFIER)):
        return []
    return [
        f"{path}:{line}: {sorted(keys.intersection(texts))}"
        for line, texts in literals(ast.parse(source))
        if len(keys.intersection(texts)) > MOST
    ]


@pytest.mark.parametrize("table", RELEASED)
def test_no_other_file_lists_the_keys_of_a_table(table: str) -> None:
    keys_of, _ = RELEASED[table]
    keys = set(keys_of())
    places = [
        place
        for path in sources()
        for place in lists_of_keys(below_repository(path), path.read_text(), table, keys)
    ]
    assert places == []


@pytest.mark.parametrize(
    "source",
    [
        "SHOWN = ('naive', 'corrected', 'true')",
        "SHOWN = ['naive', 'other', 'corrected', 'true']",
        "if method in {'naive', 'corrected', 'true'}: pass",
        "NAMES = {'naive': 'Naive', 'corrected': 'Corrected', 'true': 'True'}",
        "KINDS = {'a': 'naive', 'b': 'corrected', 'c': 'true'}",
        "CHOICES = (('naive', 'Naive'), ('corrected', 'Corrected'), ('true', 'True'))",
        "Key = Literal['naive', 'corrected', 'true']",
        "class Method:\n    NAIVE = 'naive', 'Naive'\n    CORRECTED = 'corrected'\n    TRUE = 'true'",
    ],
)
def test_a_planted_list_of_keys_is_seen(source: str) -> None:
    keys = {"naive", "corrected", "true"}
    assert lists_of_keys(PurePath("analytics/services/verdicts.py"), source, "methods", keys)
    assert not lists_of_keys(PurePath("analytics/methods.py"), source, "methods", keys)
    assert not lists_of_keys(PurePath("analytics/services/verdicts.py"), source, "methods", keys - {"true"})
