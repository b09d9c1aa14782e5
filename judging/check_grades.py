"""Which grades gold checks have, so that little is told to somebody who knows the right grades.

Whoever recognises the right grade of every document can guess that a document is a check by how much oftener its grade
occurs among checks than among ordinary items. With shares p of grades among ordinary items and q among checks, the area
under the ROC curve of that guess is

    AUC = sum over g of q_g (p_g/2 + sum of p_h for h before g),    grades in ascending order of q/p

which is linear in q along q = (1 - w) p + w u.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST_TOLD = 0.05  # above the .5 of chance


@dataclass(frozen=True)
class CheckGrades:
    """A way to choose the grades of checks: its key as stored, its name on the screen, and what it does."""

    key: str
    label: str
    help: str


IN_TURN = CheckGrades(
    "in-turn", "In turn", "all grades are measured alike; a rare grade is more often a check than another"
)
AS_DRAWN = CheckGrades(
    "as-drawn",
    "As drawn",
    "checks have the grades of ordinary documents, so a grade tells nothing; rare grades are hardly measured",
)
AT_MOST = CheckGrades(
    "at-most", "At most .55", "as much in turn as leaves an AUC of .55 to somebody who knows all right grades"
)
CHECK_GRADES = (IN_TURN, AS_DRAWN, AT_MOST)


def check_grades_choices() -> list[tuple[str, str]]:
    """Return keys and labels, for the model's field and its forms."""
    return [(one.key, one.label) for one in CHECK_GRADES]


def told_by_grade(ordinary: Sequence[float], checks: Sequence[float]) -> float:
    """Return the AUC of guessing checks by their right grade.

    Parameters
    ----------
    ordinary, checks : shares by grade, of sum 1

    Examples
    --------
    >>> round(told_by_grade([0.8, 0.2], [0.5, 0.5]), 6)
    0.65
    >>> round(told_by_grade([0.8, 0.2], [0.8, 0.2]), 6)
    0.5
    """
    _check(ordinary)
    _check(checks)
    if len(ordinary) != len(checks):
        raise ValueError(f"shares must be of as many grades, got {len(ordinary)} and {len(checks)}")
    pairs = [(p, q) for p, q in zip(ordinary, checks, strict=True) if p or q]
    pairs.sort(key=lambda pair: pair[1] / pair[0] if pair[0] else float("inf"))
    before, area = 0.0, 0.0
    for p, q in pairs:
        area += q * (p / 2 + before)
        before += p
    return area


def shares_of_checks(ordinary: Sequence[float], key: str, known: Sequence[bool] | None = None) -> list[float]:
    """Return the shares q of grades among checks.

    Parameters
    ----------
    ordinary : shares p of grades among ordinary items
    key : one of `CHECK_GRADES`
    known : which grades have any gold answer; by default all

    Examples
    --------
    >>> [round(q, 6) for q in shares_of_checks([0.9, 0.07, 0.03], "at-most")]
    [0.802299, 0.115402, 0.082299]
    >>> shares_of_checks([0.8, 0.2], "in-turn")
    [0.5, 0.5]
    """
    _check(ordinary)
    has = [True] * len(ordinary) if known is None else list(known)
    if len(has) != len(ordinary) or not any(has):
        raise ValueError(
            "known must say of every grade whether there is gold, and of one at least that there is"
        )
    even = [1 / sum(has) if here else 0.0 for here in has]
    weight = _weights(ordinary, even)[key]
    return [(1 - weight) * p + weight * u for p, u in zip(ordinary, even, strict=True)]


@dataclass(frozen=True)
class TopicGold:
    """The gold of a topic from which its checks are taken.

    Attributes
    ----------
    n_checks : how many checks the topic needs
    pooled, unpooled : documents by grade that some run returned, and that none did; the latter come last
    """

    n_checks: int
    pooled: Sequence[int]
    unpooled: Sequence[int]


def allot_checks(
    topics: Sequence[TopicGold], shares: Sequence[float], before: Sequence[int]
) -> list[list[int]]:
    """Return, for each topic, of how many checks the grade is 0, 1, ...: all checks together follow the shares.

    With gold enough of every grade, the numbers of all checks, those before included, differ from the shares by less
    than 1, unless those before exceed them already. Where a topic lacks a grade, later topics make up for it.

    Parameters
    ----------
    topics : in the order in which they are served
    shares : q by grade, of sum 1
    before : checks by grade that there are already

    Examples
    --------
    >>> gold = TopicGold(2, [9, 9], [0, 0])
    >>> allot_checks([gold, gold, gold], [0.8, 0.2], [0, 0])
    [[2, 0], [1, 1], [2, 0]]
    >>> allot_checks([TopicGold(2, [0, 9], [9, 0])], [0.8, 0.2], [0, 0])
    [[0, 2]]
    """
    _check(shares)
    goal = _goal(shares, before, sum(topic.n_checks for topic in topics))
    so_far = list(before)
    allotted = []
    for topic in topics:
        stocks = (list(topic.pooled), list(topic.unpooled))
        own = [0] * len(shares)
        for _ in range(topic.n_checks):
            stock = stocks[0] if any(stocks[0]) else stocks[1]
            there = [grade for grade, n in enumerate(stock) if n]
            if not there:
                break
            total = sum(so_far) + 1
            missing = [shares[grade] * total - so_far[grade] for grade in range(len(shares))]
            grade = max(there, key=lambda one: (so_far[one] < goal[one], missing[one], shares[one], one))
            stock[grade] -= 1
            so_far[grade] += 1
            own[grade] += 1
        allotted.append(own)
    return allotted


def _goal(shares: Sequence[float], before: Sequence[int], n_more: int) -> list[int]:
    """Return by grade how many checks there should be in the end: the largest remainders are rounded up."""
    total = sum(before) + n_more
    lacks = [max(0.0, share * total - n) for share, n in zip(shares, before, strict=True)]
    exact = [n_more * lack / (sum(lacks) or 1.0) for lack in lacks]
    more = [int(value + 1e-9) for value in exact]
    by_remainder = sorted(range(len(shares)), key=lambda grade: (more[grade] - exact[grade], -grade))
    for grade in by_remainder[: n_more - sum(more)]:
        more[grade] += 1
    return [n + extra for n, extra in zip(before, more, strict=True)]


def _weights(ordinary: Sequence[float], even: Sequence[float]) -> Mapping[str, float]:
    """Return w by way: how much of q is even."""
    told = told_by_grade(ordinary, even) - 0.5
    at_most = 1.0 if told <= MOST_TOLD else MOST_TOLD / told
    return {IN_TURN.key: 1.0, AS_DRAWN.key: 0.0, AT_MOST.key: at_most}


def _check(shares: Sequence[float]) -> None:
    if not shares or min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
        raise ValueError(f"shares must be at least 0 and sum to 1, got {list(shares)}")
