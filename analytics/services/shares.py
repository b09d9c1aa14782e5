"""The share of relevant items of a campaign whose judgments are all there is: in all, and in every topic."""

from collections.abc import Iterable

import numpy as np

from analytics.estimation.audit_correction import corrected_sums
from analytics.estimation.estimate import Estimates, Refusal, all_refused
from analytics.estimation.evidence import LinearTargets
from analytics.estimation.shares import share_weights
from analytics.methods import CORRECTED, MATRIX_INVERSE, NAIVE, Method
from analytics.models import Computation, ShareEstimate
from analytics.services.basis import Basis
from sampling.measures.families import grade_gains
from sampling.measures.share import share_measure

MOST_TOPICS = 1000  # with more, the share of all documents alone: a page of thousands of rows helps nobody
METHODS = (CORRECTED, NAIVE, MATRIX_INVERSE)
NO_CHOICE = (
    "nothing says how the {n:,} documents with a gold grade were chosen: declare it, or have the gold tier audit a "
    "random sample"
)


def shares(basis: Basis) -> list[ShareEstimate]:
    """Return the share of relevant items by every method, in all and by up to 1,000 topics.

    As rows that have no computation yet.
    """
    targets = share_targets(basis)
    names = ["", *basis.arrays.draw.parameters["topics"]][: len(targets)]
    sizes = targets.weights.n_weighed().tolist()
    rows: list[ShareEstimate] = []
    for method in METHODS:
        found = _answer(basis, method, targets)
        rows += _rows(method, targets.measure.name, names, sizes, found)
    return rows


def store_shares(computation: Computation, rows: Iterable[ShareEstimate]) -> None:
    """Store the rows with their computation."""
    made = list(rows)
    for row in made:
        row.computation = computation
    ShareEstimate.objects.bulk_create(made, batch_size=2000)


def share_targets(basis: Basis) -> LinearTargets:
    """Return all items, then the items of every topic (of up to 1,000): each with weight 1 over their number."""
    arrays = basis.arrays
    measure = share_measure(basis.campaign.scale.relevant_grade)
    gains = grade_gains(measure, basis.campaign.scale.gains(), basis.campaign.scale.relevant_grade)
    topic = arrays.topic_index
    weights = share_weights(topic, arrays.n_topics)
    if arrays.n_topics > MOST_TOPICS:
        weights = weights.subset([0])
    nothing = np.zeros(topic.size)
    return LinearTargets(
        measure=measure,
        gains=gains,
        relevant_grade=basis.campaign.scale.relevant_grade,
        weights=weights,
        judged=weights.over(arrays.judged),
        utility=arrays.labels.means(gains[arrays.label_grade]),
        prediction=nothing,
        predicted=weights.run_totals(nothing, topic, arrays.n_topics),
        gold=basis.gold_prediction(gains, basis.campaign.scale.relevant_grade),
    )


def _answer(basis: Basis, method: Method, targets: LinearTargets) -> Estimates:
    """Return the shares by one method, for these topics."""
    evidence = basis.evidence
    if method is not CORRECTED:
        return method.answer(evidence, targets).these_topics
    audit = evidence.audit
    if isinstance(audit, Refusal):
        n_gold = int((basis.arrays.gold_grade[basis.arrays.judged] >= 0).sum())
        declared = basis.arrays.n_audits > 0
        return all_refused(
            len(targets), audit if declared or not n_gold else Refusal(NO_CHOICE.format(n=n_gold))
        )
    # All items are judged: nothing is left to predict before that, and g cancels.
    total = targets.weights.totals(targets.gold.before) if targets.gold else np.zeros(len(targets))
    found = corrected_sums(targets.judged, total, evidence, audit, targets).estimates
    return found.with_warning(audit.assumption)


def _rows(
    method: Method, measure: str, names: list[str], sizes: list[int], found: Estimates
) -> list[ShareEstimate]:
    rows = []
    for place, (topic, size) in enumerate(zip(names, sizes, strict=True)):
        row = ShareEstimate(topic=topic, measure=measure, method=method.key, n_items=size, n=0)
        if refusal := found.refusals.get(place):
            row.refusal = refusal.reason
            rows.append(row)
            continue
        row.n, row.warning = int(found.n[place]), found.warnings[place]
        row.value = _within(found.value[place])
        # As judged all items are known: what is left are the judges' errors, of which no error bar speaks.
        if method is CORRECTED:
            row.standard_error = float(found.standard_error[place])
            row.low, row.high = _within(found.low[place]), _within(found.high[place])
            df = float(found.degrees_of_freedom[place])
            row.degrees_of_freedom = df if np.isfinite(df) else None
        rows.append(row)
    return rows


def _within(value: float) -> float:
    return min(1.0, max(0.0, float(value)))
