"""Where one step from few gold labels may give a number: limits of an audit's size that are known in advance.

By simulation (benchmarks/ratios.py, --one-step): audits of these sizes gave intervals of pairs that hold. More labels
shorten the interval, and not what one step leaves out: hence the upper limit.
"""

import math
from dataclasses import dataclass

from analytics.estimation.estimate import Floats, Refusal
from analytics.estimation.ratios import MACRO_PER_TOPIC, MACRO_SHARE, MICRO_PER_TOPIC, MICRO_SHARE
from analytics.estimation.samples import AuditSample, Frame
from sampling.measures.families import Measure
from sampling.measures.kinds import Ratio

FEWEST_LABELS, MOST_LABELS = 100, 200
MOST_OF_A_DRAW = 125  # where a part of the pool was drawn: with 150 one pool fell short
FEWEST_TOPICS = 50
FEWEST_RELEVANT = 10  # the least that was tried: relevant items predicted a topic
LARGEST_CUTOFF, MOST_STAIRS = 10, 1
ROUNDING = 1e-6  # of a sum of probabilities


@dataclass(frozen=True)
class AuditSize:
    """What is known in advance of an audit: its expected gold labels, the pool, and the relevant items predicted."""

    n_labels: float
    n_items: int
    n_topics: int
    n_relevant: float  # predicted before anything is judged, in all topics
    n_stairs: int = 1  # different gains above 0
    is_whole: bool = True  # every item of the pool was drawn for certain, and open to the audits


def audit_size(frame: Frame, audit: AuditSample, prior: Floats, n_stairs: int) -> AuditSize:
    """Return the size of an audit of this frame; `prior` [frame] is expected of it before anything is judged."""
    opened = frame.open_to(audit)
    return AuditSize(
        n_labels=float(audit.audit_probability.sum()),
        n_items=prior.size,
        n_topics=frame.n_topics,
        n_relevant=float(prior.sum()),
        n_stairs=n_stairs,
        is_whole=opened.judged.size == prior.size and bool((opened.draw_probability == 1).all()),
    )


def missing_labels(n_labels: float, n_items: int, n_topics: int) -> int:
    """Return how many gold labels are missing to those from which the bootstrap serves.

    >>> missing_labels(250, 3161, 50), missing_labels(250, 29663, 50)
    (383, 4750)
    """
    macro = min(MACRO_PER_TOPIC * n_topics, MACRO_SHARE * n_items)
    micro = min(MICRO_PER_TOPIC * n_topics, MICRO_SHARE * n_items)
    return max(0, math.ceil(max(macro, micro) - n_labels))


def instead_of_one_step(missing: int) -> str:
    """Return what serves where one step does not: the bootstrap, from more labels or from as many that are spread.

    >>> instead_of_one_step(383)[:79]
    'from 20% of the pool, or 100 a topic, the bootstrap serves: 383 gold labels are'
    """
    serves = f"from {MACRO_SHARE:.0%} of the pool, or {MACRO_PER_TOPIC} a topic, the bootstrap serves"
    what = (
        f": {lacking_labels(missing)}"
        if missing
        else " where gold labels are spread evenly, some in every topic; there are enough by their number, so audit "
        "evenly, as the strategy Simple does"
    )
    return f"{serves}{what}. A sum over documents, as DCG@10, has no such limit"


def lacking_labels(n_missing: int) -> str:
    """Return in words how many gold labels are missing.

    >>> lacking_labels(1), lacking_labels(2)
    ('1 gold label is missing', '2 gold labels are missing')
    """
    return "1 gold label is missing" if n_missing == 1 else f"{n_missing} gold labels are missing"


def refusal_by_size(measure: Measure[Ratio], size: AuditSize) -> Refusal | None:
    """Return why differences of two runs are not given in one step by an audit of this size, or None.

    The limits are those of the audits in which benchmarks/ratios.py found that 95 % confidence intervals of pairs hold.
    Single runs are given by no size: there, too many intervals are short of their goal.

    Raises
    ------
    ValueError
        A size without items or topics.
    """
    if size.n_items < 1 or size.n_topics < 1:
        raise ValueError(f"n_items and n_topics must be at least 1, got {size.n_items} and {size.n_topics}")
    missing = missing_labels(size.n_labels, size.n_items, size.n_topics)
    instead = instead_of_one_step(missing)
    if not measure.kind.has_one_step:
        return Refusal(f"{measure.name} has no interval from few gold labels; {instead}", missing)
    if measure.last_rank > LARGEST_CUTOFF:
        return Refusal(f"{measure.name} in one step ends at rank {LARGEST_CUTOFF}; {instead}", missing)
    if size.n_stairs > MOST_STAIRS:
        words = f"{measure.name} in one step takes one gain above 0, and this scale has {size.n_stairs}"
        return Refusal(f"{words}; {instead}", missing)
    if size.n_topics < FEWEST_TOPICS:
        words = f"{measure.name} in one step needs {FEWEST_TOPICS} topics, got {size.n_topics}"
        return Refusal(f"{words}; {instead}", missing)
    predicted = size.n_relevant / size.n_topics
    if predicted < FEWEST_RELEVANT:
        words = f"{measure.name} in one step needs {FEWEST_RELEVANT} relevant documents predicted a topic"
        return Refusal(f"{words}, got {predicted:.1f}; {instead}", missing)
    if size.n_labels < FEWEST_LABELS - ROUNDING:
        few = math.ceil(FEWEST_LABELS - size.n_labels)
        return Refusal(f"{measure.name} needs {FEWEST_LABELS} gold labels: {lacking_labels(few)}", few)
    most = MOST_LABELS if size.is_whole else MOST_OF_A_DRAW
    if size.n_labels > most + ROUNDING:
        words = f"{measure.name} in one step holds from {FEWEST_LABELS} to {MOST_LABELS} gold labels of a whole pool"
        words += f", and to {MOST_OF_A_DRAW} where a part of the pool was drawn"
        return Refusal(f"{words}; {instead}", missing)
    return None
