"""Errors one way: services and frames raise `Refused`, which the handler turns into HTTP; pure code ValueError."""

import ast
from pathlib import PurePath

import pytest
from pure_modules import module_name
from test_architecture import below_repository, sources

# They may raise ValueError: no request leads there, only a mistake of the code that calls them.
CALLERS_FAULT = (
    "analytics.frames.rows.fetch_row",
    "analytics.services.analyses.finite_json",
    "analytics.services.verdicts.reverse_difference",
)


def wrong_refusals(path: PurePath, source: str) -> list[str]:
    """Return where services or frames have a ValueError of their own, or raise one: they refuse by `Refused`."""
    here = module_name(path)
    if not {"services", "frames"} & set(here.split(".")):
        return []
    wrong = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "ValueError" for base in node.bases):
            wrong.append(f"{here}.{node.name}")
        elif isinstance(node, ast.FunctionDef) and f"{here}.{node.name}" not in CALLERS_FAULT:
            raised = [
                ast.unparse(part.exc) for part in ast.walk(node) if isinstance(part, ast.Raise) and part.exc
            ]
            wrong += [f"{here}.{node.name}: {one}" for one in raised if one.startswith("ValueError")]
    return wrong


def test_services_and_frames_refuse_in_one_way() -> None:
    assert [
        one for path in sources() for one in wrong_refusals(below_repository(path), path.read_text())
    ] == []


@pytest.mark.parametrize(
    "source", ["class Bad(ValueError): ...", "def f():\n    if x:\n        raise ValueError('bad')"]
)
def test_a_planted_value_error_of_a_service_is_seen(source: str) -> None:
    for path in ("sampling/services/new.py", "sampling/frames.py", "analytics/frames/new.py"):
        assert len(wrong_refusals(PurePath(path), source)) == 1
    assert wrong_refusals(PurePath("sampling/pooling.py"), source) == []
