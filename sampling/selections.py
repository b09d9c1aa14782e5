"""Selections: how items are drawn with the probabilities of a design."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Selection:
    """One way to draw.

    Attributes
    ----------
    key : str
        As stored, and as the API and the commands spell it; at most 20 characters.
    label, help : str
        Its name on the screen, and a sentence on what it is good for.
    with_replacement : bool
        An item may be drawn more than once, and each batch is drawn independently of the others.
    has_exact_counts : bool
        Every topic's number of items is fixed beforehand. The probabilities hold for these numbers alone, so that no
        batch can be added.
    may_learn : bool
        Sizes of a later batch may be learned from the judgments of those before.
    is_foreign : bool
        Not drawn here: the sample was imported with its probabilities. Nobody can choose it.
    is_complete : bool
        Nothing was drawn: all of a file of judgments was imported, and is all there is. Nobody can choose it.
    no_top_up : str
        Why nothing more can be drawn; empty where it can.
    """

    key: str
    label: str
    help: str
    with_replacement: bool = False
    has_exact_counts: bool = False
    may_learn: bool = False
    is_foreign: bool = False
    is_complete: bool = False
    no_top_up: str = ""


# The first is the default.
SELECTIONS = (
    Selection(
        "poisson",
        "Each by its own probability (Poisson)",
        "The count varies a little. More can be drawn later.",
        may_learn=True,
    ),
    Selection(
        "pareto",
        "An exact count in every topic (Pareto)",
        "For absolute values and fixed contracts. Cannot be topped up.",
        has_exact_counts=True,
    ),
    Selection(
        "replacement",
        "With replacement",
        "The paper's selection: for the paper's Q* and naive only.",
        with_replacement=True,
    ),
)
# What a foreign draw cannot have, and why.
NOT_AUDITED = "this sample was drawn elsewhere and imported: it has no audits, so nothing can be corrected"
NOT_TOPPED_UP = "this sample was drawn elsewhere and imported without its pool: nothing more can be drawn"
POOL_UNKNOWN = "this sample was drawn elsewhere and imported without its pool, which this needs"
# What follows from documents that were drawn one by one, and not from whole topics.
NOT_BY_DOCUMENT = "whole topics were drawn in this campaign: this needs documents that were drawn one by one"
ALL_THERE_IS = "the judgments of this campaign were imported as all there is: nothing more can be drawn"
# How imported samples were drawn, as far as anybody here knows. No design has it.
FOREIGN = Selection(
    "foreign",
    "Imported with its probabilities",
    "Taken as drawn independently. Cannot be topped up or audited.",
    is_foreign=True,
    no_top_up=NOT_TOPPED_UP,
)
# A file of judgments that is all there is: every document in it has been judged, with certainty. No design has it.
COMPLETE = Selection(
    "complete",
    "All of an imported file",
    "Nothing was drawn: every document in the file is judged. Cannot be topped up.",
    is_complete=True,
    no_top_up=ALL_THERE_IS,
)
IMPORTED = (FOREIGN, COMPLETE)


def selection_keys() -> list[str]:
    return [selection.key for selection in SELECTIONS]


def selection_choices() -> list[tuple[str, str]]:
    """Return keys and labels, as the model's migrations name them."""
    return [(selection.key, selection.label) for selection in (*SELECTIONS, *IMPORTED)]


def selection_of(key: str) -> Selection:
    """Return the selection of a key; ValueError where there is none.

    >>> selection_of("pareto").has_exact_counts
    True
    """
    for selection in (*SELECTIONS, *IMPORTED):
        if selection.key == key:
            return selection
    raise ValueError(f"selection must be one of {selection_keys()}, got {key!r}")
