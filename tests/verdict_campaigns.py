"""Campaigns whose computations are certain, refused or advised upon."""

from small_campaign import (
    N_FRAME,
    judge_all,
    judge_audit,
    make_assessor,
    truth_of,
)

from sampling.services.auditing import audit


def people_of(campaign):
    return [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")]


def audit_and_judge(campaign, wanted=N_FRAME):
    audit(campaign=campaign, items_each_time=wanted, items_in_total=wanted, seed=5)
    judge_audit(campaign, make_assessor(campaign, "greta", tier="gold"))


def finished(campaign, wanted=N_FRAME, grade=lambda slot, place: truth_of(slot)):
    """Judge everything, audit `wanted` items, and return the campaign."""
    judge_all(campaign, people_of(campaign), grade=grade)
    audit_and_judge(campaign, wanted)
    return campaign


def rows_of(computation, **conditions):
    """Return {(method, measure, run, run_b): row}."""
    found = computation.estimates.filter(**conditions).select_related("run", "run_b")
    return {(e.method, e.measure, e.run.run_id, e.run_b and e.run_b.run_id): e for e in found}
