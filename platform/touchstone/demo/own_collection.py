"""Somebody's own collection in the demo (`make demo COLLECTION=folder`): looked at before any server starts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judging.services.campaigns import DEFAULT_GRADES
from judging.services.folder_imports import Choices, look_at_folder

SCALE = sorted(value for value, *_ in DEFAULT_GRADES)


def look_for_demo(
    path: Path, choices: Mapping[str, Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], Choices]:
    """Return the cards of the folder, and the choices it is loaded with: gold is brought onto the demo's scale.

    Gold of topics and documents that the folder lacks is left out. The table of the cards says both.
    """
    wanted: Choices = {name: dict(chosen) for name, chosen in choices.items()}
    cards = look_at_folder(path, wanted)
    for card in cards:
        if card["kind"] != "judgments":
            continue
        chosen = wanted.setdefault(card["name"], dict(card["choices"]))
        if "grade_map" not in chosen and (grades := off_scale(card)):
            chosen["grade_map"] = ",".join(f"{grade}={_nearest(grade)}" for grade in grades)
        if any(some["n"] for some in card["lacks"].values()):
            chosen["skips_unknown"] = True
        card["choices"] = chosen
    return cards, wanted


def off_scale(card: Mapping[str, Any]) -> list[int]:
    """Return the grades of a file that the demo's scale lacks."""
    return [row["grade"] for row in card.get("grades", ()) if row["grade"] not in SCALE]


def _nearest(grade: int) -> int:
    return min(SCALE[-1], max(SCALE[0], grade))


def missing(cards: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the demo needs and no file brings, a sentence each."""
    there = {card["kind"] for card in cards}
    return [
        f"No file was taken for {what}: the demo needs some."
        for what in ("documents", "topics")
        if what not in there
    ]


def off_scale_words(cards: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each file whose grades a map brings onto the demo's scale."""
    scale = f"{SCALE[0]} to {SCALE[-1]}"
    maps = [(card["name"], card["choices"].get("grade_map")) for card in cards]
    return [
        f"{name}: grades become those of the scale {scale} by {grades}" for name, grades in maps if grades
    ]
