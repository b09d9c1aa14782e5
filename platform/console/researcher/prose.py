"""Numbers in words: what looking often does to an interval, what would make it narrower, whether judges err alike."""

from typing import Any

from analytics.models import Computation, Estimate
from analytics.services.assumptions import QUESTIONS, newest_answers, what_forbids
from judging.models import Campaign

CAUSES = {
    "drawing": ("the draw of documents", "more judged documents narrow it"),
    "gold": ("the gold audit", "more gold narrows it"),
    "topics": ("the choice of topics", "more topics narrow it"),
}


def always_words(corrected: Estimate | None, *, is_open: bool) -> str:
    """Return the interval for whoever looks while judging goes on, and what to make of it; empty if there is none."""
    if not is_open or corrected is None or corrected.low is None or corrected.high is None:
        return ""
    low, high = corrected.always_low, corrected.always_high
    if low is None or high is None:
        return ""
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


def methods_words(
    computation: Computation,
    corrected: Estimate,
    verdict: str,
    *,
    n_topics: int,
    holm: float | None,
    n_tested: int,
) -> str:
    """Return the sentences that a methods section can quote: what was measured, how, as of when, and the verdict.

    The verdict names measure, difference, interval and n; here stands what else a reader needs to judge it.
    """
    when = f"as of judgment {computation.last_judgment_id:,}, {computation.created_at:%Y-%m-%d}"
    topics = f"{n_topics:,} topic{'' if n_topics == 1 else 's'}"
    basis = (
        f"{computation.n_judgments:,} judgments of {computation.n_items:,} documents of {topics}, "
        f"{computation.n_audited:,} of them graded again by a gold audit of recorded probabilities"
    )
    method = (
        "Values are design-based (difference estimator over classes of judgments, corrected by the audit; "
        f"its errors: {', '.join(corrected.sources) or 'none'})"
    )
    adjusted = ""
    if holm is not None and n_tested > 1 and "Holm" not in verdict:
        p = f"p = {holm:.3f}" if holm >= 0.001 else "p < 0.001"
        adjusted = f" Adjusted for all {n_tested:,} pairs (Holm), {p}."
    return f"{verdict}{adjusted} {method}, from {basis} ({when})."
