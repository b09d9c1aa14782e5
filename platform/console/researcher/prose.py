"""Sentences about numbers: the confidence sequence, the sources of variance, whether assessors err alike."""

from typing import Any

from analytics.models import Computation, Estimate
from analytics.services.assumptions import QUESTIONS, newest_answers, what_forbids
from judging.models import Campaign
from sampling.models import Audit

CAUSES = {
    "drawing": ("the draw of documents", "more judged documents narrow it"),
    "gold": ("the gold audit", "more gold labels narrow it"),
    "topics": ("the choice of topics", "more topics narrow it"),
    "second order": ("the ratio's bend", "a sum over documents, as DCG@k, has none"),
}


def always_words(
    corrected: Estimate | None, computation: Computation | None, *, is_open: bool, significant: bool
) -> str:
    """Return the interval for repeated looks, and its meaning; empty if there is none.

    At a declared look it is that of the declared looks; else the confidence sequence, while judging goes on. Both are
    for these topics and one comparison, so `significant` (for the claim, adjusted) decides what may be reported.
    """
    look = computation.look_words if computation else ""
    if not (is_open or look) or corrected is None or corrected.low is None or corrected.high is None:
        return ""
    low, high = corrected.always_low, corrected.always_high
    if low is None or high is None:
        return ""
    name = "Confidence sequence for these topics, valid at every look while judging goes on"
    if look:
        name = f"{look.capitalize()}, interval for these topics valid at all declared looks together"
    sequence = f"{name}: {low:+.3f} to {high:+.3f}."
    if corrected.run_b_id is None:
        return sequence
    once, always = excludes_zero(corrected.low, corrected.high), excludes_zero(low, high)
    if once and not always:
        advice = "Continue judging before you claim a difference."
        if look:
            advice = "Do not claim a difference at this look."
        return (
            f"{sequence} It contains 0. The 95 % confidence interval above is valid for one look only: repeated looks "
            f"find a difference by chance sooner or later. {advice}"
        )
    if always and not significant:
        alone = "It does not contain 0, but it is for these topics and this comparison alone"
        return f"{sequence} {alone}: the difference is not significant by the claim and the family above."
    if always:
        return f"{sequence} It does not contain 0 either: you may stop here and report the difference."
    return sequence


def excludes_zero(low: float, high: float) -> bool:
    return low > 0 or high < 0


def variance_words(estimate: Estimate | None) -> str:
    """Return where the variance of a corrected number comes from, and what would make it smaller.

    >>> variance_words(Estimate(components={"drawing": 3.0}))
    'All of this variance comes from the draw of documents: more judged documents narrow it.'
    """
    parts = {name: part for name, part in (estimate.components if estimate else {}).items() if part > 0}
    total = sum(parts.values())
    if not parts or not all(name in CAUSES for name in parts):
        return ""
    if len(parts) == 1:
        only = next(iter(parts))
        return f"All of this variance comes from {CAUSES[only][0]}: {CAUSES[only][1]}."
    (most, part), *others = sorted(parts.items(), key=lambda item: -item[1])
    rest = " ".join(
        f"{CAUSES[name][0].capitalize()} contributes {_percent(other / total)}." for name, other in others
    )
    return f"About {_percent(part / total)} of this variance comes from {CAUSES[most][0]}: {CAUSES[most][1]}. {rest}"


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
    declared: Audit | None = None,
) -> str:
    """Return the sentences that a methods section can quote: what was measured, how, as of when, and the verdict.

    The verdict names measure, difference, interval and n; here stands what else a reader needs to judge it. `declared`
    is the imported gold on which the number rests, of which nothing was drawn or recorded here.
    """
    when = f"as of judgment {computation.last_judgment_id:,}, {computation.created_at:%Y-%m-%d}"
    topics = f"{n_topics:,} topic{'' if n_topics == 1 else 's'}"
    audited = f"{computation.n_audited:,} of them judged again in a gold audit with recorded probabilities"
    corrected_by = ", corrected by the audit"
    if declared is not None:
        part = "all" if declared.n_selected == declared.n_eligible else f"{declared.n_selected:,}"
        audited = f"{part} of them with an imported gold grade"
        if part != "all":
            audited += f", declared to have been chosen {declared.get_declaration_display()}"
        corrected_by = ", corrected by the imported gold grades"
    if computation.is_by_gold_judges:
        audited, corrected_by = "every one of them graded by a gold judge", ""
    basis = (
        f"{computation.n_judgments:,} judgments of {computation.n_items:,} documents of {topics}, {audited}"
    )
    method = (
        f"Values are design-based (model-assisted difference estimator{corrected_by}; "
        f"errors included: {', '.join(corrected.sources) or 'none'})"
    )
    return f"{verdict} {method}, from {basis} ({when})."
