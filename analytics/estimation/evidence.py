"""What a method of estimation takes, and what it returns: arrays alone.

`Evidence` is all that a campaign's judgments, draws and audits say, whatever the measure. Targets are what one measure
asks of it: every run, then every pair of runs. There is a class of targets for each kind of measure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.complete import complete_estimates
from analytics.estimation.estimate import (
    Estimate,
    Estimates,
    Floats,
    Ints,
    Refusal,
    all_refused,
    in_columns,
    values_alone,
)
from analytics.estimation.gold_prediction import GoldPrediction
from analytics.estimation.outside import OutsideGain
from analytics.estimation.pseudolabels import PseudoLabels
from analytics.estimation.ratio_words import empty_topics, no_interval
from analytics.estimation.ratios import (
    ratio_answer,
    ratio_values,
    ratio_values_of_topics,
)
from analytics.estimation.samples import AuditSample, Frame, Labels
from analytics.estimation.targets import TargetWeights, not_zero
from analytics.estimation.topic_samples import SampledTopics
from analytics.estimation.topics import over_topics_of
from sampling.measures.families import Measure
from sampling.measures.kinds import Complete, Linear, Ratio
from sampling.measures.sparse import SparseRuns

Settled: TypeAlias = Mapping[int, Estimate | Refusal]


@dataclass(frozen=True, eq=False)
class SingleDraws:
    """Draws with replacement: by batch the probability of every judged item in one draw, and how often it was drawn."""

    probability: Floats  # [batch, judged]
    times: Ints  # [batch, judged]


@dataclass(frozen=True, eq=False)
class Evidence:
    """A campaign as arrays. Frame-indexed: every pooled pair. Judged: drawn items with at least one judgment.

    `not_judged` says why the judged items do not stand for the frame; `audit` is a refusal where no audit serves. Where
    every judgment is of a gold judge it is a sample with probability 1: `AuditSample.of_gold_judges`.
    `n_waiting` items are drawn and have no judgment yet. `has_fixed_sizes`: every topic's draw had a fixed size.
    `is_foreign`: the sample was imported; the frame is not the pool of the runs, and all predictions are 0.
    `whole_topics`: topics were drawn, each with all that was to be judged in it; documents were not drawn one by one.
    """

    frame: Frame  # with the chance of every judged item of being drawn and judged
    gold_grade: Ints  # [frame], -1 where no gold answer is known
    inclusion_probability: Floats  # [judged], the chance of being drawn
    n_waiting: int
    has_fixed_sizes: bool
    single_draws: SingleDraws | None
    labels: Labels  # of the judged items
    confusion_counts: Floats  # [assessor, true grade, given grade]
    not_judged: Refusal | None
    audit: AuditSample | Refusal
    seed: int
    is_foreign: bool = False
    whole_topics: SampledTopics | None = None


@dataclass(frozen=True, eq=False)
class LinearTargets:
    """The targets of a sum over documents. `settled`: what no judgment can change, by target."""

    measure: Measure[Linear]
    gains: Floats  # [grade]
    relevant_grade: int
    weights: TargetWeights  # [target, frame]
    judged: TargetWeights  # [target, judged]
    utility: Floats  # [judged], mean gain of the grades given
    prediction: Floats  # [frame], the gain that is predicted before an item is judged
    predicted: Floats  # [run, topic], sum of weight * prediction
    gold: GoldPrediction | None = None  # as the audits predict it; None where there is no audit
    settled: Settled = field(default_factory=dict)
    outside: OutsideGain | None = None  # where runs return what could not be judged

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """Return the first and the second run of every pair."""
        return self.weights.pairs

    def refusal_of_run(self, run: int) -> Refusal | None:
        """Return why nothing but bounds can be said of a run whatever is judged, or None."""
        settled = self.settled.get(run)
        if isinstance(settled, Refusal):
            return settled
        if self.outside is not None and self.outside.most[run] > 0:
            return Refusal(self.outside.reason(run))
        return None

    def n_weighed(self, members: Ints) -> Ints:
        """Return by target how many of some judged items have weight."""
        chosen = np.zeros(self.utility.size)
        chosen[members] = 1.0
        (count,) = self.judged.sums((not_zero, chosen))
        return np.rint(count).astype(np.int64)

    @cached_property
    def prior_total(self) -> Floats:
        """Return the measure of every target as it is predicted."""
        return self.weights.of_targets(self.predicted.sum(axis=1))

    def topic_parts(
        self, evidence: Evidence, members: Ints, added: Floats, predicted: Floats | None = None
    ) -> Floats:
        """Return the topics' parts of every run's value [run, topic], given what some judged items add: w * added.

        `predicted` [run, topic] is what is known before, unless it is the targets' own.
        """
        frame = evidence.frame
        values = np.zeros(frame.judged.size)
        values[members] = added
        known = self.predicted if predicted is None else predicted
        return self.judged.run_totals(values, frame.judged_topic, frame.n_topics) + known


@dataclass(frozen=True, eq=False)
class RatioTargets:
    """The targets of a ratio: what a run gains, divided by what can be gained."""

    measure: Measure[Ratio]
    gains: Floats  # [grade]
    returned: SparseRuns  # ranks [run, frame]
    prediction: Floats  # [frame]
    stairs: tuple[
        GoldPrediction, ...
    ] = ()  # of every stair, as the audits predict it; none where none is needed
    no_step: Refusal | None = None  # why one step from few gold labels does not serve
    settled: Settled = field(default_factory=dict)

    def __len__(self) -> int:
        return self.returned.n_runs * (self.returned.n_runs + 1) // 2

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """Return the first and the second run of every pair."""
        first, second = np.triu_indices(self.returned.n_runs, 1)
        return first, second

    @cached_property
    def ranks(self) -> Ints:
        """Return the ranks as a table [run, frame], 0 where a run does not return the item."""
        return self.returned.dense().astype(np.int64)

    @property
    def no_gain(self) -> Refusal | None:
        """Return why there is no such ratio on this scale, or None."""
        if self.gains.any():
            return None
        name = self.measure.name
        return Refusal(f"no grade of this scale has a gain above 0 in {name}: nothing to divide by")

    def estimates(
        self,
        labels: PseudoLabels,
        seed: int,
        few_labels: Sequence[Estimate | Refusal] = (),
        few_values: Floats | None = None,
    ) -> "MethodEstimates":
        """Return the ratio of every target, from labels of every pair of the frame.

        `few_labels`, by target: what is said where too little is known for that; `few_values` [run, topic]: of topics.
        """
        found = ratio_answer(self.measure, labels, self.ranks, seed=seed, few_labels=few_labels)
        values = few_values if found.topic_values is None else found.topic_values
        these = in_columns(found.results)
        if values is None:
            nothing = Refusal(f"{self.measure.name} has no value of every topic here")
            return MethodEstimates(these, all_refused(len(self), nothing))
        topics = over_topics_of(TargetWeights(self.returned), values / values.shape[1], ("topics",))
        return MethodEstimates(these, topics, topic_values=values)

    def values_of_topics(self, labels: PseudoLabels, present: Ints) -> Floats:
        """Return [run, topic] the ratio of every run in these topics."""
        return ratio_values_of_topics(self.measure, labels, self.ranks)[:, present]

    def values(self, labels: PseudoLabels, *, is_foreign: bool) -> "MethodEstimates":
        """Return the ratio of every target without an interval, from labels without predictions; or a refusal."""
        n_empty = int(np.count_nonzero(labels.stair_total[0] == 0))
        if n_empty == labels.n_topics:
            return none_of(
                self, Refusal(f"no judged document is relevant in any topic: no {self.measure.name}")
            )
        ranks, (first, second) = self.ranks, self.pairs
        value = ratio_values(self.measure, labels, ranks)
        near = ranks[:, labels.judged]
        listed = ((near > 0) & (near <= self.measure.last_rank)).astype(np.float64)
        together = np.rint(listed @ listed.T).astype(np.int64)
        n = np.diag(together)
        return MethodEstimates(
            values_alone(
                np.concatenate([value, value[first] - value[second]]),
                np.concatenate([n, n[first] + n[second] - together[first, second]]),
                no_interval(self.measure, is_foreign=is_foreign) + empty_topics(n_empty),
            )
        )


@dataclass(frozen=True, eq=False)
class CompleteTargets:
    """The targets of a measure of completely judged ranks. `documents`: 1/rank of those that it looks at."""

    measure: Measure[Complete]
    gains: Floats  # [grade]
    documents: TargetWeights  # [target, frame]
    utility: Floats  # [judged], mean gain of the grades given
    settled: Settled = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """Return the first and the second run of every pair."""
        return self.documents.pairs

    def estimates(self, evidence: Evidence, gain: Floats, is_known: NDArray[np.bool_]) -> "MethodEstimates":
        """Return the measure of every target from the gain of every pair of the frame, read where it is known."""
        given = (
            self.measure,
            self.documents,
            gain,
            is_known,
            evidence.frame.topic_index,
            evidence.frame.n_topics,
        )
        return MethodEstimates(*complete_estimates(*given))


Targets: TypeAlias = LinearTargets | RatioTargets | CompleteTargets


@dataclass(frozen=True, eq=False)
class MethodEstimates:
    """What a method says of all targets: for these topics and, where it can, with the topics as a sample.

    `n_items`: by target the items with weight that an audit (or gold judges) could take: the confidence sequence needs
    them.
    `n_positive`: of a sum, by target the items with weight whose gain, as the method takes it, is above 0.
    `topic_values` [run, topic]: the values of topics, whose means are those of the runs.
    """

    these_topics: Estimates
    over_topics: Estimates | None = None
    n_items: Ints | None = None
    n_positive: Ints | None = None
    topic_values: Floats | None = None


def none_of(targets: Targets, refusal: Refusal) -> MethodEstimates:
    """Return the same refusal for every target."""
    nothing = all_refused(len(targets), refusal)
    return MethodEstimates(nothing, nothing)
