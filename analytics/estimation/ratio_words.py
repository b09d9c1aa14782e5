"""What is said of ratios that have no interval, or no number."""

from analytics.estimation.estimate import Refusal
from sampling.measures.families import Measure
from sampling.measures.kinds import Ratio


def empty_topics(n_empty: int) -> str:
    """Return what is said of topics without a value, to follow other words; nothing of none.

    >>> empty_topics(2)
    '; 2 topics without a sampled relevant document count 0'
    """
    return f"; {n_empty} topics without a sampled relevant document count 0" if n_empty else ""


def no_interval(measure: Measure[Ratio], *, is_foreign: bool = False) -> str:
    """Return why a ratio without predictions has no interval; of a foreign sample no other ratio has one."""
    words = f"no interval of {measure.name} holds, because of its bias"
    return words if is_foreign else f"{words}; AP with predictions has one"


def needs_pool(measure: Measure[Ratio]) -> Refusal:
    """Return why a ratio has no number where the sample was imported without its pool."""
    return Refusal(
        f"{measure.name} needs a prediction of every pooled document, and an imported sample has none; "
        "statAP needs none"
    )
