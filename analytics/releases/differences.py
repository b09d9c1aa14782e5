"""What a release says of the difference of two runs: both claims, adjusted in a family, on its files alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from analytics.estimation.claims import LIKE_THESE, THESE, Claim, Family, other_claim
from analytics.estimation.comparison import compare, holm
from analytics.estimation.estimate import Estimate, Refusal, in_columns
from analytics.estimation.outside import OutsideGain, hold_against, reason_outside, wider_in
from analytics.estimation.sign_flips import randomisation_p
from analytics.estimation.topics import (
    LARGER_P,
    between_topics,
    effect_size,
    never_narrower,
    over_topics,
    p_like_these,
    skewness,
    t_warning,
)
from analytics.estimation.wording import ClaimTest, PairComparison
from analytics.releases.audit import audit_corrected, without_rounding
from analytics.releases.evaluating import ratio_audited
from analytics.releases.predictions import predictions
from analytics.releases.sampled import PlacedRun, SampledRelease
from analytics.releases.verify_facts import Floats
from sampling.measures.families import largest_value, rank_weights
from sampling.measures.kinds import Linear, Ratio
from sampling.measures.registry import parse_linear, parse_ratio
from sampling.measures.scoring import ScaledMeasure


@dataclass(frozen=True, eq=False)
class Difference:
    """The corrected difference of two runs for these topics, and its values by topic; None where there are none.

    `outside` is what documents that could not be judged may be worth to it; the interval of `these` has no room for it.
    """

    these: Estimate
    values: Floats | None
    outside: OutsideGain | None = None

    @property
    def room(self) -> tuple[float, float]:
        """Return how far both claims' intervals reach further down, and up."""
        return (0.0, 0.0) if self.outside is None else (self.outside.down.item(), self.outside.up.item())

    def nearest_zero(self, value: float) -> float:
        """Return the difference nearest to 0 that the documents outside allow."""
        return value if self.outside is None else self.outside.nearest_zero([value]).item()


@dataclass(frozen=True, eq=False)
class NamedRun:
    """A run of the release or of a file, placed in the frame."""

    name: str
    placed: PlacedRun


def difference_tests(
    sampled: SampledRelease,
    about: Mapping[str, Any],
    measure: ScaledMeasure,
    pairs: Sequence[tuple[NamedRun, NamedRun]],
    family: Family,
    claim: Claim = LIKE_THESE,
) -> list[PairComparison]:
    """Return what is known of every pair, p adjusted by Holm in the family; `pairs` hold all comparisons of it.

    The numbers are the reported ones: corrected by the audit. A pair outside the family is not adjusted.
    """
    found = [_pair(sampled, about, measure, *pair, family, claim) for pair in pairs]
    inside = [place for place, one in enumerate(found) if (one.run, one.run_b) in family]
    for side in ("test", "other"):
        known = [place for place in inside if getattr(found[place], side).p is not None]
        if side == "test":
            found = [replace(one, n_family=len(known)) for one in found]
        if not known:
            continue
        adjusted = holm([getattr(found[place], side).p for place in known]).tolist()
        for place, p in zip(known, adjusted, strict=True):
            found[place] = replace(found[place], **{side: replace(getattr(found[place], side), p_adjusted=p)})
    return found


def pairs_of(runs: Sequence[NamedRun], family: Family) -> list[tuple[NamedRun, NamedRun]]:
    """Return the pairs of these runs that a family compares."""
    return [pair for pair in combinations(runs, 2) if (pair[0].name, pair[1].name) in family]


def difference(
    sampled: SampledRelease, about: Mapping[str, Any], measure: ScaledMeasure, a: NamedRun, b: NamedRun
) -> Difference | Refusal:
    """Return the difference of two runs as the release's audits correct it, or why there is none."""
    kind = measure.measure.kind if measure.measure is not None else None
    if not isinstance(kind, Linear | Ratio):
        return Refusal(f"{measure.name} has no corrected difference")
    if sampled.not_audited is not None:
        return sampled.not_audited
    return (_of_sum if isinstance(kind, Linear) else _of_ratio)(sampled, about, measure, a, b)


def _of_sum(
    sampled: SampledRelease, about: Mapping[str, Any], measure: ScaledMeasure, a: NamedRun, b: NamedRun
) -> Difference | Refusal:
    facts, parsed = sampled.facts, parse_linear(measure.name)
    table = rank_weights(parsed, parsed.last_rank) / len(facts.topics)
    never = (facts.first_probability == 0).all(axis=0)
    each, unknown = np.zeros((2, facts.topic.size)), np.zeros(2)
    for one, run in enumerate((a.placed, b.placed)):
        near = run.rank <= parsed.last_rank
        each[one, run.place[near]] = table[run.rank[near] - 1]
        if not sampled.is_foreign:
            unknown[one] = table[run.outside[run.outside <= parsed.last_rank] - 1].sum()
    weights = each[0] - each[1]
    # What both return at one rank cancels, whatever it is worth.
    beyond = unknown + (each - each.min(axis=0))[:, never].sum(axis=1)
    if not weights.any() and not unknown.any():
        same = "the two runs are the same inside the cutoff"
        return Difference(Estimate(0.0, 0.0, 0.0, 0.0, None, 0, (), (), same), None)
    weights[never] = 0.0
    known = predictions(facts, about, measure)
    found, parts = audit_corrected(sampled, measure, weights, known.gain, known.gold)
    outside = None
    if beyond.any():
        up, down = (beyond * measure.gains.max()).tolist()
        why = reason_outside(a.name if up else b.name, measure.name)
        outside = OutsideGain(np.array([down]), np.array([up]), (why,), np.zeros(1, dtype=np.int64))
        [found] = hold_against(in_columns([found]), outside)
    return found if isinstance(found, Refusal) else Difference(found, parts * len(facts.topics), outside)


def _of_ratio(
    sampled: SampledRelease, about: Mapping[str, Any], measure: ScaledMeasure, a: NamedRun, b: NamedRun
) -> Difference | Refusal:
    facts, parsed = sampled.facts, parse_ratio(measure.name)
    for run in (a, b):
        if not sampled.is_foreign and (run.placed.outside <= measure.last_rank).any():
            return Refusal(reason_outside(run.name, measure.name))
    if (facts.first_probability == 0).all(axis=0).any():
        return Refusal("some pooled documents could not be judged, and a ratio counts the whole pool")
    if not parsed.kind.has_prediction or not measure.gains.any():
        return Refusal(f"{measure.name} has no corrected difference")
    ranks = np.stack([run.placed.ranks(facts.topic.size) for run in (a, b)])
    known = predictions(facts, about, measure)
    answer = ratio_audited(sampled, measure, parsed, ranks, known)
    found, values = without_rounding(answer.results[2]), answer.topic_values
    if isinstance(found, Refusal):
        return found
    return Difference(found, None if values is None else values[0] - values[1])


# -- both claims -------------------------------------------------------------------------------------------------


def _pair(
    sampled: SampledRelease,
    about: Mapping[str, Any],
    measure: ScaledMeasure,
    a: NamedRun,
    b: NamedRun,
    family: Family,
    claim: Claim,
) -> PairComparison:
    found = difference(sampled, about, measure, a, b)
    named: dict[str, Any] = {"run": a.name, "run_b": b.name, "measure": measure.name, "family": family.name}
    named["n_topics"] = len(sampled.facts.topics)
    if isinstance(found, Refusal):
        return PairComparison(
            value=None,
            test=ClaimTest(claim),
            other=ClaimTest(other_claim(claim)),
            refusal=found.reason,
            **named,
        )
    tests = {LIKE_THESE.key: like_test(found), THESE.key: these_test(found)}
    most = None if measure.measure is None else largest_value(measure.measure, measure.gains)
    main, other = (_within(tests[one.key], most) for one in (claim, other_claim(claim)))
    value = found.these.value if most is None else min(max(found.these.value, -most), most)
    return PairComparison(
        value=value,
        test=main,
        other=other,
        n_items=found.these.n,
        same=found.these.warning if found.these.n == 0 else "",
        notes=tuple(filter(None, (wider_in(found.these.warning), main.warning))),
        **named,
    )


def these_test(found: Difference) -> ClaimTest:
    """Return the claim for these topics; a difference without an error is certain.

    Documents that could not be judged widen the interval, and p is the largest that they allow.
    """
    these, (down, up) = found.these, found.room
    nearest = found.nearest_zero(these.value)
    tested = compare(replace(these, value=nearest))
    p = float(nearest == 0) if isinstance(tested, Refusal) else tested.p_value
    t = None if isinstance(tested, Refusal) else nearest / these.standard_error
    return ClaimTest(
        THESE, these.low - down, these.high + up, p, t=t, degrees_of_freedom=these.degrees_of_freedom
    )


def like_test(found: Difference) -> ClaimTest:
    """Return the claim for topics like these: the wider of two intervals, the larger of two p."""
    these, values, (down, up) = found.these, found.values, found.room
    p_these = these_test(found).p
    if values is None:
        words = these.warning if these.n == 0 else "the values of topics are not known"
        return ClaimTest(LIKE_THESE, p=p_these if these.n == 0 else None, refusal=words)
    over = over_topics(values / values.size)
    if isinstance(over, Refusal):
        return ClaimTest(LIKE_THESE, refusal=over.reason)
    tested = replace(over, value=found.nearest_zero(over.value))
    here = in_columns([these])
    wide = never_narrower(
        in_columns([over]), here.standard_error, here.low, here.high, here.degrees_of_freedom
    )
    is_of_topics, df = bool(wide.is_of_topics[0]), float(wide.degrees_of_freedom[0])
    spread = float(values.var(ddof=1)), values.size, these.standard_error**2
    size = effect_size(these.value, *spread)
    p = float(p_like_these(in_columns([tested]), np.array([p_these]))[0])
    warnings = (t_warning(values.size, skewness(values)), LARGER_P if p and p == p_these else "")
    return ClaimTest(
        LIKE_THESE,
        low=float(wide.low[0]) - down,
        high=float(wide.high[0]) + up,
        p=p,
        t=tested.value / over.standard_error if is_of_topics else None,
        degrees_of_freedom=df if np.isfinite(df) else None,
        effect_size=None if isinstance(size, Refusal) else size,
        effect_size_refusal=size.reason if isinstance(size, Refusal) else "",
        p_randomisation=float(randomisation_p(values)[0]) if tested.value == over.value else None,
        between_topics=between_topics(*spread),
        warning="; ".join(filter(None, warnings)) if is_of_topics else "",
    )


def _within(test: ClaimTest, most: float | None) -> ClaimTest:
    """Return the test with an interval that ends at the range of a difference."""
    if most is None or test.low is None or test.high is None:
        return test
    return replace(test, low=max(test.low, -most), high=min(test.high, most))
