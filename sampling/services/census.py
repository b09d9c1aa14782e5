"""A census: an audit of everything judged that counts for one run or one pair. What it may be asked."""

from typing import Any

from judging.models import Campaign
from sampling.audit_plan import Auditable
from sampling.measures.families import FloatArray, Measure
from sampling.services.auditable import AuditRefused
from sampling.strategies import strategy_of


def refuse_question(campaign: Campaign, strategy: str, *, run: str, against: str, has_size: bool) -> None:
    """Raise AuditRefused where a census has a size or no run, or where any other audit has a run or no size."""
    if not strategy_of(strategy).takes_all:
        if run or against:
            raise AuditRefused("only a census is of a run or a pair: leave the runs out")
        if not has_size:
            raise AuditRefused("say how many items to audit")
        return
    label = strategy_of(strategy).label
    if has_size:
        raise AuditRefused(f"“{label}” takes every judged document that counts: leave its size out")
    if not run:
        raise AuditRefused(f"“{label}” is of a run or a pair: name it")
    if run == against:
        raise AuditRefused("a run differs from itself by nothing: name two runs")
    known = set(campaign.collection.runs.values_list("run_id", flat=True))
    for name in filter(None, (run, against)):
        if name not in known:
            raise AuditRefused(f"the collection has no run {name!r}")


def census_measure(measure: Measure[Any]) -> Measure[Any]:
    """Return the measure of a census; AuditRefused where gold on a run's documents would not make it exact."""
    if not measure.kind.is_sum:
        raise AuditRefused(
            f"{measure.name} is {measure.kind.noun}: it depends on documents that a run does not return. "
            "A census is for P or DCG with a cutoff"
        )
    return measure


def census_probabilities(open_items: Auditable, run: str, against: str) -> FloatArray:
    """Return each item's probability after the census; AuditRefused where nothing that is judged counts."""
    if not open_items.judged.influence.any():
        of = f"the difference between {run} and {against}" if against else run
        raise AuditRefused(f"no judged document counts for {of}: there is nothing to take")
    return open_items.census()
