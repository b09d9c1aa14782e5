"""The estimates of one measure: every run and every pair of runs, by every method, or the reason for none."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from analytics import methods
from analytics.estimation.complete import first_documents
from analytics.estimation.estimate import Estimate, Ints, Refusal
from analytics.estimation.evidence import (
    CompleteTargets,
    Evidence,
    LinearTargets,
    RatioTargets,
    Settled,
    SingleDraws,
    Targets,
)
from analytics.estimation.gold_prediction import GoldFits, GoldPrediction
from analytics.estimation.graded_labels import stair_gains
from analytics.estimation.group_sequential import bound_at_look
from analytics.estimation.judged_share import judged_share
from analytics.estimation.one_step_limits import AuditSize, refusal_by_size
from analytics.estimation.samples import AuditSample, Frame
from analytics.estimation.targets import TargetWeights
from analytics.frames import CampaignArrays, Floats
from analytics.methods import Method
from analytics.services.confusions import ConfusionCounts
from analytics.services.estimate_rows import AUDITS_PLANNED, EstimateColumns, columns
from analytics.services.label_classes import bronze_classes
from analytics.services.predictions import Predictions
from analytics.services.sampled_topics import sampled_topics
from judging.models import Campaign
from sampling.measures.families import Measure, grade_gains, largest_value, run_weights, weights_of_runs
from sampling.measures.kinds import Complete, Kind, Linear, Ratio
from sampling.measures.registry import parse_measure
from sampling.selections import NOT_AUDITED, NOT_BY_DOCUMENT

ASK = "“May I score my run?” on the page of results says "


class Basis:
    """What all measures of a campaign are estimated from. What does not depend on the measure is computed once."""

    def __init__(
        self, campaign: Campaign, arrays: CampaignArrays, predictions: Predictions, counts: ConfusionCounts
    ) -> None:
        self.campaign, self.arrays, self.predictions, self.counts = campaign, arrays, predictions, counts
        self._gold: dict[tuple[float, ...], GoldPrediction] = {}
        self._fits: GoldFits | None = None
        self._shares: dict[int, tuple[Floats, Floats]] = {}

    @cached_property
    def n_planned(self) -> int:
        """Return how many items the audits will take in all; of gold judges, how many were drawn for them."""
        arrays = self.arrays
        return (
            int(arrays.n_drawn.sum())
            if arrays.is_by_gold_judges
            else arrays.n_audits_planned or AUDITS_PLANNED
        )

    @cached_property
    def declared_bound(self) -> float | None:
        """Return the bound at the declared look that this is, of a normal number; None where it is none."""
        if not self.arrays.looks:
            return None
        bound = bound_at_look(self.arrays.looks)
        return bound if np.isfinite(bound) else None

    @property
    def look(self) -> dict[str, int]:
        """Return which declared look this is and of how many; nothing where the confidence sequence stands."""
        if self.declared_bound is None:
            return {}
        newest = self.arrays.looks[-1]
        return {"look": newest.number, "n_looks": newest.declared}

    @cached_property
    def evidence(self) -> Evidence:
        """Return the campaign as the methods take it."""
        arrays = self.arrays
        everything = np.ones(arrays.judged.size, dtype=bool)
        return Evidence(
            frame=Frame(
                arrays.n_topics, arrays.topic_index, arrays.judged, arrays.draw_probability(everything)
            ),
            gold_grade=arrays.gold_grade,
            inclusion_probability=arrays.inclusion_probability,
            n_waiting=int(arrays.n_drawn.sum()) - arrays.judged.size,
            has_fixed_sizes=arrays.draw.selection_kind.has_exact_counts,
            single_draws=self._single_draws(),
            labels=arrays.labels,
            confusion_counts=self.counts.total,
            not_judged=self._missing(everything, "judgment"),
            audit=self._audit(),
            seed=arrays.last_judgment_id,
            is_foreign=arrays.is_foreign,
            whole_topics=sampled_topics(arrays),
        )

    def gold_prediction(self, gains: Floats, relevant_grade: int) -> GoldPrediction | None:
        """Return what the audits predict of every pair, made once for all measures of these gains; None without one.

        A draw with replacement keeps the prior of before anything was judged, as `Predictions.of_gains` does.
        """
        arrays, audit = self.arrays, self.evidence.audit
        if isinstance(audit, Refusal):
            return None
        key = tuple(gains.tolist())
        if audit.labels is not None:  # what was judged is known: only what was not is left to predict
            known = audit.gains(gains)[1]
            return GoldPrediction(
                self.predictions.of_gains(gains, relevant_grade), known, np.zeros(known.size)
            )
        if key not in self._gold:
            found = self._gold_fits(audit).predict(gains)
            if arrays.draw.selection_kind.with_replacement:
                found = replace(found, before=self.predictions.of_gains(gains, relevant_grade))
            self._gold[key] = found
        return self._gold[key]

    def _gold_fits(self, audit: AuditSample) -> GoldFits:
        if self._fits is None:
            arrays = self.arrays
            self._fits = GoldFits(
                self.evidence.frame,
                audit,
                labels=arrays.labels,
                known=self.predictions.foreknowledge,
                learnable=arrays.batch < arrays.n_learned,
                fitted_gold=arrays.fitted_gold[arrays.audit_probability > 0],
            )
        return self._fits

    def stairs_of(self, measure: Measure[Ratio]) -> tuple[GoldPrediction, ...] | Refusal:
        """Return what the audits predict of every stair of a ratio's gains, or why one step does not serve."""
        audit = self.evidence.audit
        if isinstance(audit, Refusal):
            return audit
        if audit.labels is not None:
            return Refusal(
                f"{measure.name} in one step is for audits; here gold judges graded every document"
            )
        prior, (gains, relevant) = self.predictions.foreknowledge.prior, self.gains(measure)
        reached = stair_gains(gains) if gains.any() else gains[None]
        size = AuditSize(
            n_labels=float(audit.audit_probability.sum()),
            n_items=prior.size,
            n_topics=self.arrays.n_topics,
            n_relevant=float(prior.sum()),
            n_stairs=len(reached),
        )
        refusal = refusal_by_size(measure, size)
        if refusal is None and self.arrays.draw.selection_kind.with_replacement:
            refusal = Refusal(f"{measure.name} in one step needs items that were drawn without replacement")
        if refusal is not None:
            return refusal
        return tuple(filter(None, (self.gold_prediction(row, relevant) for row in reached)))

    def shares(self, last_rank: int) -> tuple[Floats, Floats]:
        """Return by run the shares of its first documents that were judged, and audited; made once for every cutoff.

        Unknown (NaN) of a run that returns, among these, what could not be drawn: in which topics was not kept.
        """
        if last_rank not in self._shares:
            arrays = self.arrays
            unknown = np.array(
                [bool((ranks <= last_rank).any()) for ranks in arrays.ranks_outside], dtype=bool
            )
            is_judged, is_audited = np.zeros((2, arrays.frame.height), dtype=bool)
            has_gold = arrays.audited | arrays.is_by_gold_judges
            is_judged[arrays.judged], is_audited[arrays.judged[has_gold]] = True, True
            judged, audited = (
                np.where(
                    unknown,
                    np.nan,
                    judged_share(arrays.returned, last_rank, arrays.topic_index, arrays.n_topics, some),
                )
                for some in (is_judged, is_audited)
            )
            self._shares[last_rank] = judged, audited
        return self._shares[last_rank]

    def gains(self, measure: Measure[Kind]) -> tuple[Floats, int]:
        """Return the gain of every grade in the measure, and the lowest relevant one."""
        relevant = measure.relevant_grade or self.campaign.scale.relevant_grade
        return grade_gains(measure, self.campaign.scale.gains(), relevant), relevant

    def _missing(self, members: np.ndarray, what: str) -> Refusal | None:
        refused = self.arrays.not_covered(members, what)
        return Refusal(*refused) if refused else None

    def _single_draws(self) -> SingleDraws | None:
        arrays = self.arrays
        if not arrays.draw.selection_kind.with_replacement:
            return None
        batches = range(1, arrays.draw.batch + 1)
        q = arrays.frame.select(f"single_{batch}" for batch in batches).to_numpy().T
        times = arrays.frame.select(f"times_{batch}" for batch in batches).to_numpy().T
        return SingleDraws(q[:, arrays.judged], times.astype(np.int64)[:, arrays.judged])

    def _audit(self) -> AuditSample | Refusal:
        arrays, is_open = self.arrays, self.arrays.audit_probability > 0
        if arrays.is_foreign:
            return Refusal(NOT_AUDITED)
        if arrays.has_whole_topics:
            return Refusal(NOT_BY_DOCUMENT)
        if arrays.is_by_gold_judges:
            everything = np.ones(arrays.judged.size, dtype=bool)
            missing = self._missing(everything, "judgment")
            return missing or AuditSample.of_gold_judges(arrays.labels, arrays.draw_probability(everything))
        if not is_open.any():
            return Refusal(arrays.no_audit())
        missing = self._missing(is_open, "item that an audit could select")
        if missing is not None:
            return missing
        return AuditSample(
            member=np.flatnonzero(is_open),
            draw_probability=arrays.draw_probability(is_open)[is_open],
            bronze_class=bronze_classes(arrays, self.campaign)[is_open],
            audited=arrays.audited[is_open],
            gold_grade=arrays.audit_grade[is_open],
            audit_probability=arrays.audit_probability[is_open],
            n_grades=arrays.n_grades,
            n_judged=arrays.judged.size,
            assumption=arrays.audit_assumption,
        )


# -- what a measure asks for ----------------------------------------------------------------------------------


def targets_of(basis: Basis, measure: Measure[Kind]) -> Targets:
    """Return every run and every pair of runs in the measure."""
    return TARGETS[type(measure.kind)](basis, measure)


def linear_targets(basis: Basis, measure: Measure[Linear]) -> LinearTargets:
    """Return every run and every pair of runs in a sum over documents."""
    arrays = basis.arrays
    gains, relevant = basis.gains(measure)
    weights = TargetWeights(weights_of_runs(measure, arrays.returned, arrays.n_topics))
    outside = [float(run_weights(measure, ranks, arrays.n_topics).sum()) for ranks in _beyond_reach(arrays)]
    prediction = basis.predictions.of_gains(gains, relevant)
    unsupported = weights.unsupported_share(arrays.frame["inclusion_probability"].to_numpy())
    # Of a foreign sample nobody knows what two runs return beside it: never certain that they are the same.
    is_zero = weights.is_zero() & (not arrays.is_foreign)
    return LinearTargets(
        measure=measure,
        gains=gains,
        relevant_grade=relevant,
        weights=weights,
        judged=weights.over(arrays.judged),
        utility=arrays.labels.means(gains[arrays.label_grade]),
        prediction=prediction,
        predicted=weights.run_totals(prediction, arrays.topic_index, arrays.n_topics),
        gold=basis.gold_prediction(gains, relevant),
        settled=_settled_answers(
            arrays, measure.name, np.array(outside), weights.pairs, is_zero, unsupported
        ),
    )


def _ratio_targets(basis: Basis, measure: Measure[Ratio]) -> RatioTargets:
    arrays = basis.arrays
    gains, relevant = basis.gains(measure)
    cutoff = measure.last_rank
    outside = np.array([float(np.count_nonzero(ranks <= cutoff)) for ranks in _beyond_reach(arrays)])
    pairs = np.triu_indices(len(arrays.runs), 1)
    n_targets = outside.size + pairs[0].size
    # What a ratio divides by counts the whole pool.
    never = np.full(n_targets, float((arrays.frame["inclusion_probability"].to_numpy() == 0).mean()))
    is_zero = np.zeros(n_targets, dtype=bool)
    if arrays.has_whole_topics:
        near = np.where(arrays.returned.value <= cutoff, arrays.returned.value, 0)
        is_zero = TargetWeights(arrays.returned.with_values(near)).is_zero()
    return RatioTargets(
        measure=measure,
        gains=gains,
        returned=arrays.returned,
        prediction=basis.predictions.of_gains(gains, relevant),
        stairs=basis.stairs_of(measure),
        settled=_settled_answers(arrays, measure.name, outside, pairs, is_zero, never),
    )


def _complete_targets(basis: Basis, measure: Measure[Complete]) -> CompleteTargets:
    arrays = basis.arrays
    gains, _ = basis.gains(measure)
    documents = first_documents(measure, arrays.returned)
    outside = [float(np.count_nonzero(ranks <= measure.last_rank)) for ranks in arrays.ranks_outside]
    is_zero, never = documents.is_zero(), np.zeros(len(documents))
    if arrays.has_whole_topics:
        never = documents.unsupported_share(arrays.frame["inclusion_probability"].to_numpy())
    return CompleteTargets(
        measure=measure,
        gains=gains,
        documents=documents,
        utility=arrays.labels.means(gains[arrays.label_grade]),
        settled=_settled_answers(arrays, measure.name, np.array(outside), documents.pairs, is_zero, never),
    )


TARGETS: dict[type[Kind], Callable[[Basis, Measure[Any]], Targets]] = {
    Linear: linear_targets,
    Ratio: _ratio_targets,
    Complete: _complete_targets,
}


def _beyond_reach(arrays: CampaignArrays) -> list[Ints]:
    """Return [run] the ranks at which a run returns what could not be drawn.

    What a foreign sample does not hold was not drawn, or not pooled: with predictions of 0 both count alike.
    """
    return [ranks[:0] for ranks in arrays.ranks_outside] if arrays.is_foreign else arrays.ranks_outside


def _settled_answers(
    arrays: CampaignArrays,
    measure: str,
    outside: Floats,
    pairs: tuple[Ints, Ints],
    is_zero: np.ndarray,
    unsupported: Floats,
) -> Settled:
    """Return the answers that do not depend on judgments, by target.

    A run that came after the draw may return documents that could never be drawn: its number would be too low, with a
    small interval. So would be that of a run which a design without a floor leaves out in part. Two runs that rank
    alike inside the cutoff differ by exactly 0.
    """
    first = np.concatenate([np.arange(outside.size), pairs[0]])
    second = np.concatenate([np.arange(outside.size), pairs[1]])
    settled: dict[int, Estimate | Refusal] = {}
    for target in np.flatnonzero(unsupported > 0).tolist():
        settled[target] = Refusal(
            f"{unsupported[target]:.1%} of the weight in {measure} lies on documents that this design can never draw: "
            f"judgments drawn for one question do not answer every other. {ASK}how many more items are needed"
        )
    same = Estimate(0.0, 0.0, 0.0, 0.0, None, 0, (), (), "the two runs are the same inside the cutoff")
    settled |= dict.fromkeys(np.flatnonzero(is_zero & (first != second)).tolist(), same)
    for target in np.flatnonzero((outside[first] > 0) | (outside[second] > 0)).tolist():
        run = first[target] if outside[first[target]] > 0 else second[target]
        words = f"(it was imported after the draw). {ASK}which judgments are missing"
        if arrays.is_foreign:
            words = "as far as the imported sample says"
        elif arrays.is_complete:
            words = "(the imported file has no judgment of them)"
        settled[target] = Refusal(
            f"{arrays.runs[run].run_id} returns documents that could not be drawn, inside the cutoff of {measure} "
            f"{words}"
        )
    return settled


# -- the numbers ----------------------------------------------------------------------------------------------


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
        settled={} if method.refusal(targets.measure) else targets.settled,
        over_topics=answer.over_topics if method.has_topic_interval else None,
        topic_values=answer.topic_values if method.is_tested else None,
        tested=method.is_tested,
        planned=basis.n_planned if method.is_tested else None,
        declared_bound=basis.declared_bound,
        n_items=answer.n_items,
        n_positive=answer.n_positive,
        largest=largest_value(targets.measure, targets.gains),
        shares=basis.shares(targets.measure.last_rank),
    )
