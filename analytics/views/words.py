"""Numbers in words: what looking often does to an interval, what would make it narrower, whether judges err alike."""

from typing import Any

from analytics.models import Computation, Estimate
from analytics.services.conditions import QUESTIONS, newest_answers, what_forbids
from judging.models import Campaign

CAUSES = {
    "drawing": ("the draw of documents", "more judged documents narrow it"),
    "gold": ("the gold audit", "more gold narrows it"),
    "topics": ("the choice of topics", "more topics narrow it"),
}


def always_words(corrected: Estimate | None, *, is_open: bool) -> str:
    """Return the interval for whoever looks while judging goes on, and what to make of it; empty if there is none."""
    if not is_open or corrected is None or corrected.value is None or corrected.always_low is None:
        return ""
    low, high = corrected.always_low, corrected.always_high
    said = f"However often you look while judging goes on, this one holds: {low:+.3f} to {high:+.3f}."
    if corrected.run_b_id is None:
        return said
    once, always = excludes_zero(corrected.low, corrected.high), excludes_zero(low, high)
    if once and not always:
        return (
            f"{said} It contains 0: the interval above is for one look at the end, and whoever looks often and stops "
            "when a difference shows will find one. Judge on before you say that they differ."
        )
    if always:
        return f"{said} It does not contain 0 either: you may stop here and say so."
    return said


def excludes_zero(low: float, high: float) -> bool:
    return low > 0 or high < 0


def variance_words(estimate: Estimate | None) -> str:
    """Return where the variance of a corrected number comes from, and what would make it smaller.

    >>> variance_words(Estimate(components={"drawing": 1.0, "gold": 3.0}))
    'About 75 % of this variance is the gold audit: more gold narrows it. The draw of documents makes 25 %.'
    """
    parts = {name: part for name, part in (estimate.components if estimate else {}).items() if part > 0}
    total = sum(parts.values())
    if not parts or not all(name in CAUSES for name in parts):
        return ""
    if len(parts) == 1:
        only = next(iter(parts))
        return f"All of this variance is {CAUSES[only][0]}: {CAUSES[only][1]}."
    (most, part), *others = sorted(parts.items(), key=lambda item: -item[1])
    rest = " ".join(
        f"{CAUSES[name][0].capitalize()} makes {_percent(other / total)}." for name, other in others
    )
    return f"About {_percent(part / total)} of this variance is {CAUSES[most][0]}: {CAUSES[most][1]}. {rest}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def assumption_words(computation: Computation | None) -> dict[str, Any]:
    """Return the newest computation's test of the papers' assumption: all its `words`, the `verdict`, and `fails`."""
    stored = (computation.assumption if computation else None) or {}
    words = stored.get("words", "")
    sentences = stored.get("sentences") or [words]
    return (
        {"words": words, "verdict": sentences[0], "fails": bool(stored.get("contradicted"))} if words else {}
    )


def conditions_context(campaign: Campaign) -> dict[str, Any]:
    """Return what a page shows of the three questions: as they were answered last, and what that forbids."""
    answers = newest_answers(campaign)
    questions = [
        {"name": q.name, "words": q.words, "answer": getattr(answers, q.name) if answers else None}
        for q in QUESTIONS
    ]
    return {"answers": answers, "questions": questions, "forbidden": what_forbids(answers)}
