"""What would be said, were the evidence another: other tiers, other rules, halves of the time, one assessor less."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.aggregation import rules
from analytics.estimation.claims import CLAIMS, Claim, Family, other_claim
from analytics.estimation.estimate import Floats, Refusal
from analytics.estimation.ranking import Bools
from analytics.frames import CampaignArrays, Ints
from analytics.methods import NAIVE, REPORTED, Method, ranked_methods
from analytics.numbers.predictions import Predictions
from analytics.releases.pseudonyms import pseudonym
from analytics.services.analyses.agreement import tiers_of
from analytics.services.analyses.request import AnalysisRefused, AnalysisSubject
from analytics.services.analyses.variants import (
    NOT_ESTIMABLE,
    Numbers,
    halves,
    numbers,
    of_tier,
    with_labels,
    with_one_grade,
    without_assessor,
)
from analytics.services.basis import Basis
from analytics.services.confusions import assessor_confusion_counts
from analytics.services.exports import pseudonym_key
from analytics.services.families import asked_family
from analytics.services.recomputation import Progress
from judging import label_aggregation
from judging.models import Campaign
from sampling.measures.kinds import Ratio
from sampling.measures.registry import parse_measure

MOST_ASSESSORS = 50  # left out one by one: those with most labels
SHOWN_CHANGES = 20
SHOWN_RUNS = 20


@dataclass(frozen=True)
class Variant:
    """One way of looking: its group, its name, how its numbers are made, and by which method."""

    group: str
    label: str
    method: Method
    make: Callable[[], Numbers]
    note: str = ""


def sensitivity(
    campaign: Campaign, arrays: CampaignArrays, wanted: AnalysisSubject, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """Return the reported numbers and those of every variant, and which verdicts of the family change, by claim."""
    if len(arrays.runs) < 2:
        raise AnalysisRefused("there is only one run, so no verdict could change")
    kind = parse_measure(wanted.measure).kind
    if isinstance(kind, Ratio) and not kind.has_prediction:
        raise AnalysisRefused(f"{wanted.measure} has no interval, so there is no verdict that could change")
    basis = Basis(campaign, arrays, Predictions(arrays), assessor_confusion_counts(arrays))
    base, method = reported_numbers(basis, wanted.measure)
    names = [run.run_id for run in arrays.runs]
    family = asked_family(campaign, wanted.family)
    told = {claim.key: _ClaimReport(claim, _mask(family, names), base, names) for claim in CLAIMS}
    variants = list(_variants(basis, wanted.measure, method))
    rows: dict[str, list[dict[str, Any]]] = {key: [] for key in told}
    for step, variant in enumerate(variants, start=1):
        progress(step, len(variants) + 1, variant.label)
        found = variant.make()
        for key, one in told.items():
            rows[key].append(one.variant(variant, found))
    shown = _best_runs(base)[:SHOWN_RUNS]
    return {
        "method": method.key,
        "family": family.name,
        "runs": [names[run] for run in shown],
        "n_runs": len(names),
        "pair": [names[run] for run in _ends(_pair(base), base.n_runs)],
        "n_assessors": len(np.unique(arrays.label_assessor)),
        "n_left_out": sum(variant.group == "assessor" for variant in variants),
        "claims": {key: {**one.counts(method), "variants": rows[key]} for key, one in told.items()},
    }


def under_claim(result: dict[str, Any], claim: Claim) -> dict[str, Any]:
    """Return a result as one claim has it, with how many pairs the other one tells apart in `other`."""
    if "claims" not in result:
        return result
    shared = {name: part for name, part in result.items() if name != "claims"}
    beside = other_claim(claim).key
    counted = {name: result["claims"][beside][name] for name in ("n_pairs", "n_apart")}
    return {
        **shared,
        **result["claims"][claim.key],
        "claim": claim.key,
        "other": {"claim": beside, **counted},
    }


def _mask(family: Family, names: list[str]) -> Bools:
    """Return which pairs (a, b), a < b, are of the family."""
    first, second = np.triu_indices(len(names), 1)
    return np.array([(names[a], names[b]) in family for a, b in zip(first, second, strict=True)], dtype=bool)


def reported_numbers(basis: Basis, measure: str) -> tuple[Numbers, Method]:
    """Return the numbers to report, or those of the next ranked method while there are none."""
    for method in ranked_methods():
        found = numbers(basis, measure, method)
        if not found.reason:
            return found, method
    raise AnalysisRefused(found.reason)


def _variants(basis: Basis, measure: str, method: Method) -> Iterator[Variant]:
    yield from _tiers(basis, measure)
    yield from _rules(basis, measure, method)
    yield from _times(basis, measure, method)
    yield from _leaving_out(basis, measure, method)


# -- who is believed ----------------------------------------------------------------------------------------


def _tiers(basis: Basis, measure: str) -> Iterator[Variant]:
    naive = Variant("tier", "all grades as given", NAIVE, lambda: numbers(basis, measure, NAIVE))
    if not parse_measure(measure).kind.is_sum:
        yield naive
        return
    for tier in tiers_of(basis.arrays)[:2]:
        yield Variant(
            "tier",
            f"{tier.name} tier alone",
            NAIVE,
            lambda tier=tier: of_tier(basis, measure, tier.grade, tier.probability),  # type: ignore[misc]
            "its audits only, weighted by one over the probability",
        )
    yield naive


# -- how several grades become one --------------------------------------------------------------------------


def _rules(basis: Basis, measure: str, method: Method) -> Iterator[Variant]:
    arrays = basis.arrays
    for name, joined in _grades_by_rule(arrays).items():
        if isinstance(joined, Refusal):
            yield Variant("rule", f"{name}, naive", NAIVE, _refusing(basis, joined))
            continue
        other = Basis(basis.campaign, with_one_grade(arrays, joined), basis.predictions, basis.counts)
        yield Variant(
            "rule",
            f"{name}, naive",
            NAIVE,
            lambda other=other: numbers(other, measure, NAIVE),  # type: ignore[misc]
        )
    if not method.is_reported:
        return
    for score in label_aggregation.LABEL_SCORES:
        if not score.is_compared or score.key == basis.campaign.bronze_score:
            continue
        campaign = copy.copy(basis.campaign)
        campaign.bronze_score = score.key
        other = Basis(campaign, arrays, basis.predictions, basis.counts)
        yield Variant(
            "rule",
            score.label,
            REPORTED,
            lambda other=other: numbers(other, measure, REPORTED),  # type: ignore[misc]
            "corrected, with other label classes",
        )


def _grades_by_rule(arrays: CampaignArrays) -> dict[str, Ints | Refusal]:
    """Return by rule the joined grade of every judged item."""
    return {rule.label: rule.grades(arrays.labels) for rule in rules.AGGREGATION_RULES}


def _refusing(basis: Basis, refusal: Refusal) -> Callable[[], Numbers]:
    n = len(basis.arrays.runs)
    size = n * (n + 1) // 2
    nothing = np.full(size, np.nan)
    ends = {claim.key: (nothing, nothing) for claim in CLAIMS}
    p_values = {claim.key: nothing[n:] for claim in CLAIMS}
    return lambda: Numbers(nothing, nothing, ends, p_values, [refusal.reason] * size, n)


# -- when, and who ------------------------------------------------------------------------------------------


def _times(basis: Basis, measure: str, method: Method) -> Iterator[Variant]:
    for name, kept in zip(("first", "second"), halves(basis.arrays), strict=True):
        yield Variant(
            "drift",
            f"{name} half of judgments",
            method,
            lambda kept=kept: _recompute(basis, with_labels(basis.arrays, kept), measure, method),  # type: ignore[misc]
            "of each topic, by time of judging",
        )


def _leaving_out(basis: Basis, measure: str, method: Method) -> Iterator[Variant]:
    arrays, key = basis.arrays, pseudonym_key(basis.campaign.pk)
    count = np.bincount(arrays.label_assessor, minlength=len(arrays.assessors))
    most = np.argsort(-count, kind="stable")[:MOST_ASSESSORS]
    for place in most[count[most] > 0].tolist():
        assessor = arrays.assessors[place]
        yield Variant(
            "assessor",
            f"without {pseudonym(key, assessor.pk)}",
            method,
            lambda place=place: _recompute(basis, without_assessor(arrays, place), measure, method),  # type: ignore[misc]
            f"{int(count[place]):,} labels, {assessor.tier} tier",
        )


def _recompute(basis: Basis, arrays: CampaignArrays, measure: str, method: Method) -> Numbers:
    """Return the numbers that would be there, had only these labels been given: predictions too are made anew."""
    if arrays.judged.size == 0:
        return _refusing(basis, Refusal("no other assessor has judged"))()
    return numbers(Basis(basis.campaign, arrays, Predictions(arrays), basis.counts), measure, method)


# -- what changes -------------------------------------------------------------------------------------------


class _ClaimReport:
    """What one claim says of the pairs of a family as they are reported, and what of that a variant changes."""

    def __init__(self, claim: Claim, family: Bools, base: Numbers, names: list[str]) -> None:
        self.claim, self.family, self.base, self.names = claim, family, base, names
        self.before = base.verdicts(claim, family)
        self.pair, self.shown = _pair(base), _best_runs(base)[:SHOWN_RUNS]

    def counts(self, method: Method) -> dict[str, Any]:
        return {
            "n_pairs": int((self.before != NOT_ESTIMABLE).sum()),
            "n_apart": int(np.isin(self.before, (1, -1)).sum()),
            "base": {"method": method.key, "refusal": self.base.reason, **self._values(self.base)},
        }

    def variant(self, variant: Variant, found: Numbers) -> dict[str, Any]:
        before, after, base = self.before, found.verdicts(self.claim, self.family), self.base
        known = (before != NOT_ESTIMABLE) & (after != NOT_ESTIMABLE)
        changed = np.flatnonzero(known & (before != after))
        reversed_ones = int((before[changed] * after[changed] == -1).sum())
        lost = int(((before[changed] != 0) & (after[changed] == 0)).sum())
        changes = changed[:SHOWN_CHANGES].tolist()
        return {
            "group": variant.group,
            "label": variant.label,
            "method": variant.method.key,
            "note": variant.note,
            "refusal": found.reason,
            "tau": _tau(base.unbounded_value[: base.n_runs], found.unbounded_value[: base.n_runs]),
            "n_compared": int(known.sum()),
            "n_changed": changed.size,
            "n_reversed": reversed_ones,
            "n_lost": lost,
            "n_gained": changed.size - reversed_ones - lost,
            "changes": [_change(place, before, after, self.names) for place in changes],
            **self._values(found),
        }

    def _values(self, found: Numbers) -> dict[str, Any]:
        """Return the numbers of the pair that is looked at, and the values of the best runs."""
        difference: dict[str, Any] = {"value": None, "low": None, "high": None, "refusal": ""}
        if self.pair is not None:
            target = found.n_runs + self.pair
            low, high = found.ends[self.claim.key]
            difference = {
                "value": _number(found.value, target),
                "low": _number(low, target),
                "high": _number(high, target),
                "refusal": found.refusal[target],
            }
        return {"difference": difference, "values": [_number(found.value, run) for run in self.shown]}


def _change(place: int, before: Ints, after: Ints, names: list[str]) -> dict[str, str]:
    first, second = (names[run] for run in _ends(place, len(names)))
    said = {1: f"{first} is higher", -1: f"{second} is higher", 0: "not significant"}
    return {"a": first, "b": second, "before": said[int(before[place])], "after": said[int(after[place])]}


def _number(column: Floats, place: int) -> float | None:
    number = float(column[place])
    return None if np.isnan(number) else number


def _best_runs(base: Numbers) -> list[int]:
    """Return the runs that have a value, the best first."""
    value = base.unbounded_value[: base.n_runs]
    order = np.argsort(-np.nan_to_num(value, nan=-np.inf), kind="stable")
    return [run for run in order.tolist() if not np.isnan(value[run])]


def _pair(base: Numbers) -> int | None:
    """Return the pair of the two best runs, by its place among the pairs."""
    best = _best_runs(base)[:2]
    if len(best) < 2:
        return None
    a, b = sorted(best)
    return a * base.n_runs - a * (a + 1) // 2 + b - a - 1


def _ends(pair: int | None, n_runs: int) -> tuple[int, ...]:
    """Return the two runs of a pair, by its place among the pairs (a, b), a < b.

    >>> [_ends(place, 3) for place in (0, 1, 2, None)]
    [(0, 1), (0, 2), (1, 2), ()]
    """
    if pair is None:
        return ()
    first, second = np.triu_indices(n_runs, 1)
    return int(first[pair]), int(second[pair])


def _tau(one: Floats, other: Floats) -> float | None:
    """Return Kendall's tau of the runs that both have; equal values count neither way."""
    both = ~np.isnan(one) & ~np.isnan(other)
    if both.sum() < 2:
        return None
    a, b = one[both], other[both]
    signs = np.sign(a[:, None] - a[None]) * np.sign(b[:, None] - b[None])
    return float(signs[np.triu_indices(a.size, 1)].mean())
