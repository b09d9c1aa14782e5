"""The estimates of one measure: every run and every pair of runs, by every method, or the reason for none."""

from analytics import methods
from analytics.estimation.evidence import (
    LinearTargets,
    Targets,
)
from analytics.methods import Method
from analytics.numbers.basis import Basis
from analytics.numbers.columns import EstimateColumns, columns
from analytics.numbers.targets import targets_of
from sampling.measures.families import largest_value
from sampling.measures.registry import parse_measure


def estimate_columns(basis: Basis, measure: str) -> list[EstimateColumns]:
    """Return the estimates of the measure by every method that has anything to say of this evidence."""
    targets = targets_of(basis, parse_measure(measure))
    return [
        method_columns(basis, method, targets) for method in methods.METHODS if method.applies(basis.evidence)
    ]


def method_columns(basis: Basis, method: Method, targets: Targets) -> EstimateColumns:
    """Return the estimates of the targets by one method.

    The reported method alone is tested: grades as given say nothing of how judges err, and the inverse of confusion
    matrices has no valid p on real judges. A kind of measure that the method does not serve has its refusal and no
    answer that was settled before.
    """
    answer = method.answer(basis.evidence, targets)
    return columns(
        targets.measure.name,
        method.key,
        targets.pairs,
        answer.these_topics,
        settled={}
        if method.refusal(targets.measure, has_whole_topics=basis.arrays.has_whole_topics)
        else targets.settled,
        outside=targets.outside if isinstance(targets, LinearTargets) else None,
        over_topics=answer.over_topics if method.has_topic_interval else None,
        topic_values=answer.topic_values if method.is_tested else None,
        tested=method.is_tested,
        planned=basis.n_planned if method.is_tested else None,
        declared_bound=basis.declared_bound,
        is_watchable=not basis.arrays.has_whole_topics,
        n_items=answer.n_items,
        n_positive=answer.n_positive,
        largest=largest_value(targets.measure, targets.gains),
        shares=basis.shares(targets.measure.last_rank),
    )
