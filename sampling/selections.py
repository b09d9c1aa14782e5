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
    """

    key: str
    label: str
    help: str
    with_replacement: bool = False
    has_exact_counts: bool = False
    may_learn: bool = False
    is_foreign: bool = False


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
# How imported samples were drawn, as far as anybody here knows. No design has it.
FOREIGN = Selection(
    "foreign",
    "Imported with its probabilities",
    "Taken as drawn independently. Cannot be topped up or audited.",
    is_foreign=True,
)
# What a foreign draw cannot have, and why.
NOT_AUDITED = "this sample was drawn elsewhere and imported: it has no audits, so nothing can be corrected"
NOT_TOPPED_UP = "this sample was drawn elsewhere and imported without its pool: nothing more can be drawn"
# What follows from documents that were drawn one by one, and not from whole topics.
NOT_BY_DOCUMENT = "whole topics were drawn in this campaign: this needs documents that were drawn one by one"
POOL_UNKNOWN = "this sample was drawn elsewhere and imported without its pool, which this needs"


def selection_keys() -> list[str]:
    return [selection.key for selection in SELECTIONS]


def selection_choices() -> list[tuple[str, str]]:
    """Return keys and labels, as the model's migrations name them."""
    return [(selection.key, selection.label) for selection in (*SELECTIONS, FOREIGN)]


def selection_of(key: str) -> Selection:
    """Return the selection of a key; ValueError where there is none.

    >>> selection_of("pareto").has_exact_counts
    True
    """
    for selection in (*SELECTIONS, FOREIGN):
        if selection.key == key:
            return selection
    raise ValueError(f"selection must be one of {selection_keys()}, got {key!r}")
