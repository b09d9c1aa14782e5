"""Label aggregation: which aggregated labels a campaign can have for its items, and in which words.

An aggregated label orders the judged items; the classes into which it falls are what the audit corrects. It decides how
narrow the corrected interval is, never whether it is right. How each is computed stands in
`analytics.services.label_classes`.
"""

from dataclasses import dataclass

# How the product makes one grade of several wherever nothing else was asked for.
LOWER_MEDIAN = "the median of the assessors' latest grades, between two grades the lower one"


@dataclass(frozen=True)
class LabelScore:
    """One kind of aggregated label.

    Attributes
    ----------
    key : str
        As stored, and as the API spells it; at most 40 characters.
    label, help : str
        Its name on the screen, and a sentence on what it is good for.
    is_compared : bool
        The sensitivity analysis shows what the corrected numbers would be with it.
    """

    key: str
    label: str
    help: str
    is_compared: bool = False


# The first is the default, and stands in while another cannot be had.
LABEL_SCORES = (
    LabelScore(
        "vote-share",
        "Mean of its grades",
        "The mean of an item's grades. A safe choice.",
        is_compared=True,
    ),
    LabelScore(
        "one-label",
        "The grade given first",
        "One of the item's grades at random, as if one assessor had judged.",
        is_compared=True,
    ),
    LabelScore(
        "dawid-skene",
        "Dawid-Skene",
        "Weights assessors by errors learned from all grades; helps where some assessors are weak.",
        is_compared=True,
    ),
    LabelScore("one-coin", "One coin", "The same with one error rate per assessor: for few grades each."),
    LabelScore(
        "spammers",
        "Spammer model",
        "Detects assessors who grade at random, and ignores their grades: for crowds.",
    ),
    LabelScore(
        "empirical-bayes",
        "Gold checks",
        "Weights assessors by their gold checks only; needs two checks each.",
    ),
    LabelScore(
        "supermajority",
        "Supermajority",
        "Relevant if more than two thirds of its grades are: where relevant is often given wrongly.",
        is_compared=True,
    ),
    LabelScore("machine", "Imported scores", "Scores of a model, imported into the collection."),
)
DEFAULT_LABEL_SCORE = LABEL_SCORES[0].key


def label_score_keys() -> list[str]:
    return [score.key for score in LABEL_SCORES]


def label_score_choices() -> list[tuple[str, str]]:
    """Return keys and labels, as the model's migrations name them."""
    return [(score.key, score.label) for score in LABEL_SCORES]


def label_score_of(key: str) -> LabelScore:
    """Return the aggregated label of a key; ValueError where there is none.

    >>> label_score_of("one-coin").label
    'One coin'
    """
    for score in LABEL_SCORES:
        if score.key == key:
            return score
    raise ValueError(f"the aggregated label must be one of {label_score_keys()}, got {key!r}")
