"""What the papers' methods say of a pair of runs, each by its name, beside the reported number."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from analytics.estimation.estimate import Refusal
from analytics.frames import CampaignArrays
from analytics.methods import reported_first
from analytics.models import Estimate, JudgingConditions
from analytics.papers.assumption import AuditedLabels, assumption_result, assumption_sentences
from analytics.services.analyses.binary import binary_lines, drift_words
from analytics.services.analyses.context import Case, case
from analytics.services.analyses.graded import SEED, graded_lines
from analytics.services.analyses.request import AnalysisSubject, Line, refuse_line, sentences
from analytics.services.analyses.unaudited import range_lines
from analytics.services.assumptions import what_forbids
from analytics.services.recomputation import Progress, latest_computation
from judging.models import Campaign

NO_AUDIT = (
    "no audit with recorded probabilities is complete, and gold checks alone give no interval: see the range"
)


def papers(
    campaign: Campaign, arrays: CampaignArrays, wanted: AnalysisSubject, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """Return the lines of the difference and of both runs, and what they rest on."""
    found = case(campaign, arrays, wanted)
    progress(2, 3, "the papers' methods")
    methods = [*binary_lines(found), *graded_lines(found)]
    if not found.has_audit:
        methods = [*range_lines(found), *(refuse_line(line, NO_AUDIT) for line in methods)]
    lines = [*stored_lines(campaign, wanted), *methods]
    return {
        "lines": [asdict(line) for line in lines],
        "confusion": found.confusion,
        "gold_per_grade": found.counts.sum(axis=1),
        "n_topics": found.n_topics,
        "n_items": int(arrays.judged.size),
        "n_audited": int(found.audited.sum()),
        "n_gold_checks": int(arrays.check_true.size),
        "is_binary": found.is_binary,
        "drift": drift_words(found) if found.has_audit else "",
        "assumption": _assumption(found),
    }


def _assumption(case: Case) -> dict[str, Any]:
    """Return the test of the papers' assumption, with what their correction would move this difference by."""
    of_audited = case.audited[case.label_item]
    item = case.label_item[of_audited]
    a, b = (side.weights / case.draw_probability for side in case.sides)
    found = assumption_result(
        AuditedLabels(
            gold_grade=case.gold[item],
            given_grade=case.label_grade[of_audited],
            audit_probability=case.audit_probability[item],
            gains=case.gains,
            item_index=item,
        ),
        log_runs=np.log(np.maximum(case.n_returning[item], 1)),
        rng=np.random.default_rng(SEED),
        topic_index=case.topic[item],
        target_weights=(a - b)[item],
    )
    if isinstance(found, Refusal):
        return {"refusal": found.reason, "sentences": assumption_sentences(found)}
    return found.as_json()


def under_conditions(result: dict[str, Any], answers: JudgingConditions | None) -> dict[str, Any]:
    """Return the result as the answers allow it to be read: one audit for two runs, or a named refusal."""
    forbidden = what_forbids(answers)
    if not forbidden or "lines" not in result:
        return result
    nothing = {"value": None, "low": None, "high": None, "p_value": None}
    lines = [
        {**line, **nothing, "refusal": forbidden} if line["one_audit"] else line for line in result["lines"]
    ]
    return {**result, "lines": lines}


def stored_lines(campaign: Campaign, wanted: AnalysisSubject) -> Iterator[Line]:
    """Yield what the newest computation stored of the pair and of its runs."""
    computation = latest_computation(campaign=campaign)
    if computation is None:
        return
    runs = (wanted.run, wanted.against)
    rows = computation.estimates.filter(measure=wanted.measure, run__run_id__in=runs)
    by_runs = {
        (e.run.run_id, e.run_b.run_id if e.run_b else "", e.method): e
        for e in rows.select_related("run", "run_b")
    }
    for of, pair in (("difference", runs), ("run", (wanted.run, "")), ("against", (wanted.against, ""))):
        for method in reported_first():
            kind = "exact" if method.is_exact else "interval"
            line = Line(of, method.label, method.credit, kind=kind, note=method.help)
            if (*pair, method.key) in by_runs:
                yield _stored_line(line, by_runs[(*pair, method.key)], 1)
            elif (*pair[::-1], method.key) in by_runs:
                yield _stored_line(line, by_runs[(*pair[::-1], method.key)], -1)


def _stored_line(line: Line, estimate: Estimate, sign: int) -> Line:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return replace(line, refusal=estimate.refusal)
    ends = (estimate.low, estimate.high) if sign > 0 else (-estimate.high, -estimate.low)
    note = sentences(line.note, _over_topics(estimate, sign), estimate.warning)
    return replace(
        line, value=sign * estimate.value, low=ends[0], high=ends[1], p_value=estimate.p_value, note=note
    )


def _over_topics(estimate: Estimate, sign: int) -> str:
    """Return the interval with the topics as a sample: the papers' intervals have them so too."""
    if (
        not estimate.registered_method.is_reported
        or estimate.topics_low is None
        or estimate.topics_high is None
    ):
        return ""
    low, high = sorted((sign * estimate.topics_low, sign * estimate.topics_high))
    return f"With the topics as a sample, as in the papers: {low:.3f} to {high:.3f}"
