"""What all measures of a campaign are estimated from, computed once."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.estimate import Refusal
from analytics.estimation.evidence import (
    Evidence,
    SingleDraws,
)
from analytics.estimation.gold_prediction import GoldFits, GoldPrediction
from analytics.estimation.graded_labels import stair_gains
from analytics.estimation.group_sequential import bound_at_look
from analytics.estimation.judged_share import judged_share
from analytics.estimation.one_step_limits import audit_size, refusal_by_size
from analytics.estimation.ratios import is_too_few
from analytics.estimation.samples import AuditSample, Frame
from analytics.numbers.arrays import Arrays, Floats, Ints
from analytics.numbers.predictions import Predictions
from analytics.numbers.sampled_topics import sampled_topics
from sampling.measures.families import Measure, grade_gains
from sampling.measures.kinds import Kind, Ratio
from sampling.selections import NOT_AUDITED, NOT_BY_DOCUMENT

AUDITS_PLANNED = 200  # where no schedule says how many items are to be audited in all


class Basis:
    """What all measures are estimated from. What does not depend on the measure is computed once.

    Parameters
    ----------
    arrays : Arrays
    predictions : Predictions
        Of these arrays.
    scale_gains : array [grade]
        The gain of every grade of the scale.
    relevant_grade : int
        The lowest that counts as relevant.
    confusion_counts : array [assessor, true grade, given grade]
    classes : callable, no arguments
        Returns [judged] the class of every item, ordered, by what its labels say together; asked where there is an
        audit.
    """

    def __init__(
        self,
        arrays: Arrays,
        predictions: Predictions,
        *,
        scale_gains: ArrayLike,
        relevant_grade: int,
        confusion_counts: Floats,
        classes: Callable[[], Ints],
    ) -> None:
        self.arrays, self.predictions = arrays, predictions
        self._scale_gains, self._relevant_grade = scale_gains, relevant_grade
        self._confusion_counts, self._classes = confusion_counts, classes
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
            confusion_counts=self._confusion_counts,
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

    def stairs_of(self, measure: Measure[Ratio]) -> tuple[GoldPrediction, ...]:
        """Return what the audits predict of every stair of a ratio's gains; nothing where no number needs it."""
        audit, frame = self.evidence.audit, self.evidence.frame
        if isinstance(audit, Refusal) or audit.labels is not None or not measure.kind.has_prediction:
            return ()
        n_known = int(audit.audited.sum())
        if self.no_step(measure) and is_too_few(n_known, frame.n_topics, frame.topic_index.size):
            return ()
        gains, relevant = self.gains(measure)
        reached = stair_gains(gains) if gains.any() else gains[:0]
        return tuple(filter(None, (self.gold_prediction(row, relevant) for row in reached)))

    def no_step(self, measure: Measure[Ratio]) -> Refusal | None:
        """Return why one step from few gold labels does not serve a ratio, or None."""
        audit = self.evidence.audit
        if isinstance(audit, Refusal):
            return audit
        if audit.labels is not None:
            return Refusal(
                f"{measure.name} in one step is for audits; here gold judges graded every document"
            )
        prior, (gains, _) = self.predictions.foreknowledge.prior, self.gains(measure)
        size = audit_size(self.evidence.frame, audit, prior, np.unique(gains[gains > 0]).size)
        refusal = refusal_by_size(measure, size)
        if refusal is None and self.arrays.draw.selection_kind.with_replacement:
            refusal = Refusal(f"{measure.name} in one step needs items that were drawn without replacement")
        return refusal

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
        relevant = measure.relevant_grade or self._relevant_grade
        return grade_gains(measure, self._scale_gains, relevant), relevant

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
            bronze_class=self._classes()[is_open],
            audited=arrays.audited[is_open],
            gold_grade=arrays.audit_grade[is_open],
            audit_probability=arrays.audit_probability[is_open],
            n_grades=arrays.n_grades,
            n_judged=arrays.judged.size,
            assumption=arrays.audit_assumption,
        )
