"""The corrected difference of a gate's two runs, from labels of all items and gold of those asked for: arrays alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.estimate import Estimate, Floats, Ints, Refusal
from analytics.estimation.evidence import Evidence, LinearTargets
from analytics.estimation.gold_prediction import Foreknowledge, GoldFits
from analytics.estimation.samples import AuditSample, Frame, Labels
from analytics.estimation.targets import TargetWeights
from analytics.methods import REPORTED
from sampling.measures.families import Measure, grade_gains
from sampling.measures.kinds import Linear
from sampling.measures.sparse import from_dense
from sampling.prediction import item_evidence
from sampling.questions import prior_of_runs

RELEVANT_GRADE = 1  # the lowest, where the measure does not say its own
OF_PAIR = 2  # the place of the pair among the targets, behind both runs


@dataclass(frozen=True, eq=False)
class GateItems:
    """The items of a gate, and all that is known of them before any is judged; arrays are [item].

    Attributes
    ----------
    measure : Measure of a sum over documents
    n_topics : int
        Also those in which the runs do not differ.
    topic_index : int array
    ranks : int array [2, item]
        In run A, then in run B; 0 where the run does not return the document.
    weights : array [2, item]
        What the measure gives a gain of 1 there.
    label : int array
        The grade that the judge gave, from 0.
    fold : int array
        `sampling.prediction.folds`.
    """

    measure: Measure[Linear]
    n_topics: int
    topic_index: Ints
    ranks: Ints
    weights: Floats
    label: Ints
    fold: Ints

    @property
    def weight(self) -> Floats:
        """Return w_b - w_a."""
        return np.asarray(self.weights[1] - self.weights[0])

    def known(self) -> Foreknowledge:
        """Return what the ranks say of every item."""
        depth = self.measure.last_rank
        features, ridge = item_evidence(self.ranks, depth)
        return Foreknowledge(features, ridge, self.fold, prior_of_runs(self.ranks, depth))


def corrected_difference(
    items: GateItems, known: Foreknowledge, gold: Ints, is_asked: NDArray[np.bool_], probability: Floats
) -> Estimate | Refusal:
    """Return B less A as the reported method corrects it, for these topics.

    Parameters
    ----------
    known : Foreknowledge
        `items.known()`, made once.
    gold : int array
        The grade of every item asked for; read there alone.
    is_asked : bool array
    probability : array
        The chance of being asked for so far, of every item.
    """
    n_items = items.label.size
    everything, ones = np.arange(n_items), np.ones(n_items)
    gold_grade = np.where(is_asked, gold, -1)
    n_grades = max(2, int(items.label.max()) + 1, int(gold_grade.max()) + 1)
    gains = grade_gains(items.measure, np.arange(n_grades), RELEVANT_GRADE)
    nobody = np.zeros(n_items, dtype=np.int64)  # one judge labelled all
    labels = Labels(everything, nobody, items.label, n_items=n_items, n_assessors=1, n_grades=n_grades)
    audit = AuditSample(ones, labels.classes(), is_asked, gold_grade, probability, n_grades)
    frame = Frame(items.n_topics, items.topic_index, everything, ones)
    evidence = Evidence(
        frame=frame,
        gold_grade=gold_grade,
        inclusion_probability=ones,
        n_waiting=0,
        has_fixed_sizes=False,
        single_draws=None,
        labels=labels,
        confusion_counts=np.zeros((1, n_grades, n_grades)),
        not_judged=None,
        audit=audit,
        seed=0,
    )
    weights = TargetWeights(from_dense(items.weights[::-1]))  # B first, so that the pair is B less A
    targets = LinearTargets(
        measure=items.measure,
        gains=gains,
        relevant_grade=items.measure.relevant_grade or RELEVANT_GRADE,
        weights=weights,
        judged=weights,
        utility=labels.means(gains[labels.grade]),
        prediction=np.zeros(n_items),
        predicted=np.zeros((2, items.n_topics)),
        gold=GoldFits(frame, audit, labels=labels, known=known).predict(gains),
    )
    return REPORTED.answer(evidence, targets).these_topics[OF_PAIR]
