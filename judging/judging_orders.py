"""In which order a campaign's items are judged: chosen before the draw, and fixed from then on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class JudgingOrder:
    """One order of judging.

    Attributes
    ----------
    key : str
        As stored, and as the API spells it; at most 12 characters.
    label, help : str
        Its name on the screen, and what it does.
    most_judgments : int or None
        So many judgments an item at most; None: as many as any campaign.
    """

    key: str
    label: str
    help: str
    most_judgments: int | None = None


RANDOM_ORDER, INFORMATIVE_ORDER = "random", "informative"
# The first is the default.
JUDGING_ORDERS = (
    JudgingOrder(
        RANDOM_ORDER,
        "Random",
        "What is judged so far is a random part of each topic, so numbers have confidence intervals at any time.",
    ),
    JudgingOrder(
        INFORMATIVE_ORDER,
        "By what it tells",
        "Next in each topic is the document that tells the runs apart best. The whole pool is drawn, one judgment an "
        "item; until all of it is judged there are model probabilities and no confidence intervals.",
        most_judgments=1,
    ),
)


def judging_order_choices() -> list[tuple[str, str]]:
    """Return keys and labels, as the model's migrations name them."""
    return [(order.key, order.label) for order in JUDGING_ORDERS]


def refused_judgments(key: str, judgments_per_item: int) -> str:
    """Return why an order does not go with so many judgments an item; empty where it does.

    >>> refused_judgments("informative", 2)
    'in the order “By what it tells” an item takes 1 judgment, got 2'
    >>> refused_judgments("random", 2)
    ''
    """
    for order in JUDGING_ORDERS:
        most = order.most_judgments
        if order.key == key and most is not None and judgments_per_item > most:
            return f"in the order “{order.label}” an item takes {most} judgment, got {judgments_per_item}"
    return ""
