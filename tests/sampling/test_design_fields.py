"""The table of a design's fields, and that forms, API and the command `draw` have each of them."""

from dataclasses import MISSING, fields
from typing import Any

import pytest

from console.forms.design import FORM_FIELDS, ON_SCREEN
from sampling.design_fields import DESIGN_FIELDS, FieldKind
from sampling.management.commands.draw import OPTIONS, Command
from sampling.questions import Design
from sampling.serializers.designs import ANSWER_FIELDS, REQUEST_FIELDS, DesignAnswer, DesignRequest

NAMES = [field.name for field in fields(Design)]


def test_the_table_has_the_fields_of_a_design_with_their_defaults() -> None:
    assert [field.name for field in DESIGN_FIELDS] == NAMES
    for own, field in zip(fields(Design), DESIGN_FIELDS, strict=True):
        is_free = own.name == "runs"  # some questions take no run
        assert field.is_required == (own.default is MISSING and not is_free), own.name
        assert field.is_required or is_free or field.default == own.default, own.name


@pytest.mark.parametrize(
    "field", [field for field in DESIGN_FIELDS if not field.is_required], ids=lambda f: f.name
)
def test_defaults_are_what_may_be_chosen(field) -> None:
    if field.kind is FieldKind.CHOICE:
        assert field.default == field.keys[0]
    if field.kind is FieldKind.SHARE:
        assert (
            field.least
            <= field.bounds_on_screen[0]
            <= field.default
            <= field.bounds_on_screen[1]
            <= field.most
        )


def test_programs_give_and_get_every_field() -> None:
    assert list(DesignRequest().fields) == NAMES
    assert list(DesignAnswer().fields) == NAMES
    depth: Any = DesignRequest().fields["depth"]
    assert (depth.min_value, depth.max_value, depth.required) == (1, 100_000, True)
    assert DesignRequest().fields["uniform_share"].default == 0.01


def test_the_command_takes_every_field() -> None:
    options = {action.dest: action for action in Command().create_parser("manage.py", "draw")._actions}
    assert set(NAMES) <= set(options)
    assert options["question"].required
    assert options["other_runs_share"].option_strings == ["--other-runs-share"]
    assert options["method"].choices == ["default", "paper", "naive"]


def test_the_form_shows_every_field_but_the_runs_which_it_asks_for_by_question() -> None:
    assert [field.name for field in ON_SCREEN] == [name for name in NAMES if name != "runs"]
    share: Any = FORM_FIELDS[FieldKind.SHARE](
        next(field for field in ON_SCREEN if field.name == "sensitivity")
    )
    assert (share.label, share.initial, share.min_value, share.max_value) == (
        "Sensitivity of the scores, %",
        "65",
        1,
        99,
    )


def test_every_kind_of_field_is_served_everywhere() -> None:
    assert set(REQUEST_FIELDS) == set(ANSWER_FIELDS) == set(OPTIONS) == set(FieldKind)
    assert set(FORM_FIELDS) == set(FieldKind) - {FieldKind.RUNS}
