"""What the stored numbers say of pairs of runs: both claims of every difference, adjusted in a declared family."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from django.db.models import Exists

from analytics.estimation.audited_topics import noun_of
from analytics.estimation.claims import LIKE_THESE, THESE, Claim, Family, other_claim
from analytics.estimation.comparison import holm
from analytics.estimation.estimate import Floats, Refusal, few_positive_warning
from analytics.estimation.outside import wider_in
from analytics.estimation.sign_flips import randomisation_p, step_down_p
from analytics.estimation.topics import LARGER_P, between_topics, effect_size, skewness, t_warning
from analytics.estimation.wording import LEVEL, ClaimTest, PairComparison
from analytics.methods import REPORTED
from analytics.models import Computation, Estimate
from analytics.services.claim_intervals import claim_test, topic_values
from judging.services.errors import Refused
from sampling.gold_samples import assumption_in

HOLM, MAX_T = "holm", "max-t"


class AdjustmentRefused(Refused):
    title = "This adjustment does not fit the claim"


def is_older(computation: Computation) -> bool:
    """Return whether the computation is from before topics like these were tested."""
    rows = Estimate.objects.filter(computation=computation, topics_low__isnull=False)
    tested = rows.filter(topics_degrees_of_freedom__isnull=False)
    return Computation.objects.filter(Exists(rows), ~Exists(tested), pk=computation.pk).exists()


@dataclass(frozen=True)
class _TestedPairs:
    """The tested pairs of a family, in the order of their keys: names of the runs, and p by claim."""

    keys: list[int]
    pairs: list[tuple[int, int]]
    p_values: dict[str, list[float | None]]


class Comparisons:
    """The reported differences of a measure in one computation, under a claim, adjusted in a family.

    `adjustment` is Holm's, or the step-down max-t test by random signs of topics, which is for topics like these alone.
    """

    def __init__(
        self,
        computation: Computation | None,
        measure: str,
        family: Family,
        claim: Claim = LIKE_THESE,
        adjustment: str = HOLM,
    ) -> None:
        if adjustment == MAX_T and claim is THESE:
            raise AdjustmentRefused("max-t by random signs is for topics like these: adjust by Holm")
        self.computation, self.measure = computation, measure
        self.family, self.claim, self.adjustment = family, claim, adjustment
        self._adjusted: dict[str, dict[int, float]] = {}

    @property
    def n_family(self) -> int:
        """Return how many comparisons of the family were tested under the claim."""
        return len(self.adjusted_p(self.claim))

    @property
    def n_significant(self) -> int:
        return sum(p < LEVEL for p in self.adjusted_p(self.claim).values())

    def adjusted_p(self, claim: Claim) -> dict[int, float]:
        """Return the adjusted p of every tested pair of the family, by the key of its estimate."""
        if claim.key not in self._adjusted:
            p_values = self._tested_pairs.p_values[claim.key]
            known = [place for place, p in enumerate(p_values) if p is not None]
            raw = np.array([p_values[place] for place in known], dtype=np.float64)
            p = holm(raw) if raw.size else raw
            if raw.size and self.adjustment == MAX_T and claim is LIKE_THESE:
                p = np.maximum(raw, self._max_t([self._tested_pairs.pairs[place] for place in known], p))
            keys = (self._tested_pairs.keys[place] for place in known)
            self._adjusted[claim.key] = dict(zip(keys, p.tolist(), strict=True))
        return self._adjusted[claim.key]

    def tests(self, estimate: Estimate) -> tuple[ClaimTest, ClaimTest]:
        """Return what the claim and the other one say of any number: interval and p, without tests of its own."""
        claims = self.claim, other_claim(self.claim)
        main, beside = (claim_test(estimate, claim, self._adjusted_p_of(estimate, claim)) for claim in claims)
        return main, beside

    def of(self, estimate: Estimate) -> PairComparison:
        """Return what is known of a difference, stored or not, by the reported method."""
        run, run_b = estimate.run.run_id, estimate.run_b.run_id if estimate.run_b else ""
        apart = self._apart(estimate)
        main, beside = (self._test(estimate, claim, apart) for claim in (self.claim, other_claim(self.claim)))
        is_beside = estimate.pk is None and main.p_adjusted is not None
        has_number = estimate.value is not None and estimate.low is not None
        return PairComparison(
            run=run,
            run_b=run_b,
            measure=estimate.measure,
            value=estimate.value if has_number else None,
            test=main,
            other=beside,
            family=self.family.name,
            n_family=self.n_family + is_beside,
            is_in_family=(run, run_b) in self.family,
            adjustment=self.adjustment,
            n_topics=None if apart is None else apart.size,
            n_items=estimate.n,
            noun=noun_of(estimate.sources),
            refusal=estimate.refusal or estimate.warning,
            same=estimate.warning if has_number and estimate.n == 0 else "",
            notes=_notes(estimate, main),
        )

    def _adjusted_p_of(self, estimate: Estimate, claim: Claim) -> float | None:
        """Return the adjusted p of a difference; None outside the family, and before all of the family is computed.

        A difference that is not stored yet is adjusted among the stored ones where no other of its run is needed.
        """
        if estimate.run_b is None or estimate.method != REPORTED.key:
            return None
        if estimate.pk is not None:
            return self.adjusted_p(claim).get(estimate.pk)
        run, run_b = estimate.run.run_id, estimate.run_b.run_id
        p = estimate.topics_p_value if claim is LIKE_THESE else estimate.p_value
        others = self.family.pairs - {frozenset((run, run_b))}
        if p is None or (run, run_b) not in self.family or any(run in pair for pair in others):
            return None
        if not others:
            return p
        if self.adjustment != HOLM or not self._has_runs({name for pair in others for name in pair}):
            return None
        stored = [known for known in self._tested_pairs.p_values[claim.key] if known is not None]
        return float(holm([*stored, p])[-1])

    def _has_runs(self, names: set[str]) -> bool:
        """Return whether the computation has all of these runs."""
        if self.computation is None:
            return False
        own = self.computation.estimates.filter(measure=self.measure, method=REPORTED.key, run_b=None)
        return own.filter(run__run_id__in=names).count() == len(names)

    # -- what is stored ---------------------------------------------------------------------------------------

    @cached_property
    def _tested_pairs(self) -> _TestedPairs:
        nothing: dict[str, list[float | None]] = {LIKE_THESE.key: [], THESE.key: []}
        if self.computation is None or not self.family.pairs:
            return _TestedPairs([], [], nothing)
        named = {name for pair in self.family.pairs for name in pair}
        rows: Iterable[tuple[Any, ...]] = (
            self.computation.estimates.filter(
                measure=self.measure,
                method=REPORTED.key,
                run__run_id__in=named,
                run_b__run_id__in=named,
                p_value__isnull=False,
            )
            .order_by("pk")
            .values_list("pk", "run", "run_b", "run__run_id", "run_b__run_id", "p_value", "topics_p_value")
        )
        kept = [row for row in rows if (row[3], row[4]) in self.family]
        p_values = {THESE.key: [row[5] for row in kept], LIKE_THESE.key: [row[6] for row in kept]}
        return _TestedPairs([row[0] for row in kept], [(row[1], row[2]) for row in kept], p_values)

    @cached_property
    def _values(self) -> dict[int, Floats]:
        """Return the values of topics of every run that has them, by its key."""
        return {} if self.computation is None else topic_values(self.computation, self.measure)

    def _apart(self, estimate: Estimate) -> Floats | None:
        """Return the differences of topics, or None where they are not known, or are of a run that was settled."""
        a, b = self._values.get(estimate.run_id), self._values.get(estimate.run_b_id or 0)
        return None if a is None or b is None or estimate.n == 0 else a - b

    def _max_t(self, pairs: list[tuple[int, int]], otherwise: Floats) -> Floats:
        """Return the adjusted p by random signs; as it is otherwise where a pair's topics are not known."""
        known = [
            place
            for place, pair in enumerate(pairs)
            if all(run in self._values and self._values[run].size > 1 for run in pair)
        ]
        found = otherwise.copy()
        if known:
            found[known] = step_down_p([self._values[pairs[k][0]] - self._values[pairs[k][1]] for k in known])
        return found

    # -- one claim of one pair --------------------------------------------------------------------------------

    def _test(self, estimate: Estimate, claim: Claim, apart: Floats | None) -> ClaimTest:
        adjusted = self._adjusted_p_of(estimate, claim)
        value, error = estimate.whole("value"), estimate.standard_error
        tested = None if value is None else _nearest_zero(estimate, value)  # as p is
        test = claim_test(estimate, claim, adjusted)
        if claim is THESE:
            t = tested / error if tested is not None and error else None
            return replace(test, t=t, degrees_of_freedom=estimate.degrees_of_freedom)
        if test.low is None or estimate.topics_low is None:
            return test
        df, wide = estimate.topics_degrees_of_freedom, estimate.topics_standard_error
        by_judging = wide == error and df == estimate.degrees_of_freedom
        t = None if by_judging or tested is None or not wide else tested / wide
        size: float | Refusal | None = None
        part = None
        if apart is not None and value is not None and error is not None:
            spread = float(apart.var(ddof=1)), apart.size, error**2
            size, part = effect_size(value, *spread), between_topics(*spread)
        return replace(
            test,
            t=t,
            degrees_of_freedom=df,
            effect_size=None if isinstance(size, Refusal) else size,
            effect_size_refusal=size.reason if isinstance(size, Refusal) else "",
            p_randomisation=None if apart is None or tested != value else float(randomisation_p(apart)[0]),
            between_topics=part,
            warning=_test_warning(estimate, t, apart),
        )


def _nearest_zero(estimate: Estimate, value: float) -> float:
    """Return the difference that is nearest to 0 of those that the documents outside allow."""
    return min(max(0.0, value - (estimate.outside_low or 0.0)), value + (estimate.outside_high or 0.0))


def _test_warning(estimate: Estimate, t: float | None, apart: Floats | None) -> str:
    """Return where t over topics is approximate, and where its p is not the larger one."""
    if t is None or apart is None:
        return ""
    p = estimate.topics_p_value
    larger = LARGER_P if p and p == estimate.p_value else ""
    return "; ".join(filter(None, (t_warning(apart.size, skewness(apart)), larger)))


def _notes(estimate: Estimate, test: ClaimTest) -> tuple[str, ...]:
    """Return what else is said: what is assumed, few documents that carry the number, and where t is approximate."""
    if estimate.value is None or estimate.n == 0:
        return ()
    few = ""
    if estimate.n_positive is not None and estimate.standard_error:
        few = few_positive_warning(estimate.n_positive)
    # How many more gold labels would do is told where they decide: of these topics, or where judging is the limit.
    is_about_gold = test.claim is THESE or test.t is None
    is_whole = is_about_gold and not test.significant
    told = [estimate.warning] if is_whole else [read(estimate.warning) for read in (assumption_in, wider_in)]
    return tuple(filter(None, (*told, few if few not in told[0] else "", test.warning)))
