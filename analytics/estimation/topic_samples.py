"""What a sample of whole topics says of a measure's targets."""

from dataclasses import dataclass

import numpy as np

from analytics.estimation.audited_topics import TopicAudit, audited_topics, topic_prediction
from analytics.estimation.estimate import Estimates, Floats, Ints, Refusal
from analytics.estimation.targets import TargetWeights
from analytics.estimation.whole_topics import TakenTopics, predicted_values, whole_topics
from sampling.measures.families import Measure
from sampling.measures.kinds import Kind
from sampling.measures.sparse import SparseRuns
from sampling.topic_runs import TopicRuns, topic_outlook


@dataclass(frozen=True, eq=False)
class SampledTopics:
    """A draw of whole topics. Its topics are those of the frame: in any other every value is 0.

    Attributes
    ----------
    present : int array [topic]
        Their places among all topics.
    topics : TakenTopics
    fold : int array [topic]
    runs : TopicRuns
        All runs over the frame.
    prior : array [frame]
        Probability of relevance, known before the draw.
    incomplete : Refusal or None
        Why nothing can be said yet: not all that was drawn is judged.
    audit : TopicAudit or Refusal
        The topics that have gold, or why no number is corrected.
    """

    present: Ints
    topics: TakenTopics
    fold: Ints
    runs: TopicRuns
    prior: Floats
    incomplete: Refusal | None
    audit: TopicAudit | Refusal

    def refusal(self, measure: Measure[Kind]) -> Refusal | None:
        """Return why whole topics say nothing of the measure; None where they do."""
        if measure.averaging == "micro":
            return Refusal(f"{measure.name} is a ratio of sums: whole topics tell the mean over topics")
        if not getattr(measure.kind, "has_prediction", True):
            return Refusal(f"{measure.name} is made for samples of documents, not for whole topics")
        return None

    def plug_in(self, measure: Measure[Kind], gains: Floats) -> Floats:
        """Return [run, topic] the measure as it is expected before anything is judged; `gains` are by grade."""
        relevant = float(gains[gains > 0].mean()) if (gains > 0).any() else 0.0
        return topic_outlook(self.runs, measure, self.prior, relevant).expected

    def predictions(self, measure: Measure[Kind], gains: Floats, value: Floats) -> Floats:
        """Return f [run, topic], from the judged topics of the other folds."""
        return predicted_values(
            self.plug_in(measure, gains), self.runs.agreement(), value, self.topics.taken, self.fold
        )

    def estimates(self, value: Floats, predicted: Floats) -> Estimates:
        """Return every run, then every pair of runs, from values and predictions [run, topic]."""
        return whole_topics(self.topics, value, predicted, targets=every_target(value.shape[0]))

    def corrected_estimates(
        self, audit: TopicAudit, plug_in: Floats, labelled: Floats, value: Floats
    ) -> Estimates:
        """Return every run, then every pair, corrected by the audited topics' values; all are [run, topic]."""
        predicted = topic_prediction(
            plug_in, self.runs.agreement(), labelled, value, self.topics, audit.audited, self.fold
        )
        return audited_topics(self.topics, audit, value, predicted, targets=every_target(value.shape[0]))

    def truth(self, value: Floats) -> Estimates:
        """Return the same where the value of every topic is known: nothing is left to estimate."""
        n = self.topics.taken.size
        known = TakenTopics(self.topics.share, np.ones(n), np.ones(n, dtype=bool))
        return whole_topics(known, value, value, targets=every_target(value.shape[0]))


def every_target(n_runs: int) -> TargetWeights:
    """Return the targets of so many runs and all their pairs, for numbers that are given by run."""
    nothing = np.zeros(0, dtype=np.int32)
    return TargetWeights(SparseRuns(n_runs, 0, nothing, nothing, np.zeros(0)))
