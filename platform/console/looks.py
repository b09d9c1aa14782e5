"""What the model says where judging goes by what it tells, as the pages show it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from judging.models import Campaign
from sampling.models import JudgingLook
from sampling.services.ordering import RULE, newest_look
from touchstone.models import Job


def look_context(campaign: Campaign) -> dict[str, Any]:
    """Return the newest look with its runs in order, how often one looked, when the rule was first fulfilled,
    and why the order could not be written.

    Empty where judging is in random order.
    """
    if campaign.has_random_order:
        return {}
    newest = newest_look(campaign)
    looks = JudgingLook.objects.filter(campaign=campaign)
    stops = looks.filter(may_stop=True).order_by("id").values_list("n_judged", flat=True)
    job = Job.objects.filter(kind="order", payload__campaign=str(campaign.pk)).order_by("-created_at").first()
    return {
        "judging_look": newest,
        "order_error": job.error if job is not None and job.state == Job.State.FAILED else "",
        "look_rule": RULE,
        "look_rows": look_rows(newest.scores, newest.pairs) if newest else [],
        "n_looks": looks.filter(n_judged__gte=RULE.n_first).count(),
        "first_stop": stops.first(),
        "all_judged": newest is not None and newest.n_judged == newest.n_pooled,
    }


def look_rows(scores: dict[str, float], pairs: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the runs by expected MAP, each with the probability that it is better than the next one.

    None for the last, and for all of them before the first look.

    >>> look_rows({"a": 0.1, "b": 0.3}, [["b", "a", 0.9]])
    [{'run': 'b', 'expected': 0.3, 'better': 0.9}, {'run': 'a', 'expected': 0.1, 'better': None}]
    """
    better = {(first, second): probability for first, second, probability in pairs}
    order = [first for first, _, _ in pairs] + [second for _, second, _ in pairs[-1:]]
    names = order or sorted(scores, key=lambda run: (-scores[run], run))
    known = {first: better.get((first, second)) for first, second in pairwise(names)}
    return [{"run": run, "expected": scores[run], "better": known.get(run)} for run in names]
