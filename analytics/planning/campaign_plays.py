"""The expected interval of the corrected number, by playing the campaign to come with the reported estimator.

A play draws the documents, gives each a true grade that its prediction makes likely and labels with the expected
errors, audits them by the planned strategy, and computes the interval as a recomputation will (`predicted_gold` and
`two_phase`). So what the fits learn, the degrees of freedom of a small audit and which documents chance selects are in
it, which the closed form of `sampling.outlook` leaves out. What is not: grades and errors that depend on each other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from analytics.estimation.estimate import Estimate, Estimates, Ints, Refusal
from analytics.estimation.gold_prediction import Foreknowledge, predicted_gold
from analytics.estimation.samples import AuditSample, Frame, Labels
from analytics.estimation.targets import TargetWeights
from analytics.estimation.two_phase import two_phase
from sampling.campaign_plan import CampaignPlan, PlayedWidths
from sampling.measures.sparse import SparseRuns
from sampling.prediction import N_FOLDS, item_evidence
from sampling.strategies import strategy_probabilities

MOST_PLAYS, FEWEST_PLAYS = 20, 8
ITEMS_PLAYED = 40_000  # in all plays together, about
STEPS = 12  # classes a grade, of the labels
STRANGERS = 20  # assessors a label where nobody is named yet: then nobody labels nearly all documents
SHARE_WITH_INTERVAL = 0.5


def played_widths(plan: CampaignPlan, seed: int, plays: int | None = None) -> PlayedWidths | Refusal:
    """Return the half-widths that the reported estimator has in plays of the campaign.

    Parameters
    ----------
    plan : CampaignPlan
    seed : int
        The same plays at every look.
    plays : int, optional
        By default 20, and down to 8 where many documents are drawn.

    Returns
    -------
    PlayedWidths, or a Refusal: in more than half of the plays there is no interval.
    """
    rng = np.random.default_rng(seed)
    expected = plan.judging.draw_probability.sum() if plan.drawn is None else plan.drawn.sum()
    n_plays = plays or int(np.clip(ITEMS_PLAYED / max(1.0, float(expected)), FEWEST_PLAYS, MOST_PLAYS))
    found, variances, shares = [], [], []
    refusal = Refusal("no document is drawn")
    for play in _plays(plan, n_plays, rng):
        result = play.squares(rng)
        if isinstance(result, Refusal):
            refusal = result
        else:
            found.append(float(np.sqrt(result.square)))
            variances.append(result.variance)
            shares.append(result.drawing_share)
    if len(found) < max(2.0, SHARE_WITH_INTERVAL * n_plays):
        return refusal
    return PlayedWidths(tuple(found), tuple(variances), float(np.mean(shares)), len(found))


def _plays(plan: CampaignPlan, n_plays: int, rng: np.random.Generator) -> Iterator["_Play"]:
    """Yield the plays, each over the documents that it draws: nothing else of a large pool is looked at again."""
    pi = plan.judging.draw_probability
    if plan.drawn is None:
        drawn = [np.flatnonzero(rng.random(pi.size) < pi) for _ in range(n_plays)]
    else:
        drawn = [np.flatnonzero(plan.drawn)] * n_plays
    ever = np.unique(np.concatenate(drawn))
    weights, ranks = (TargetWeights(table).over(plan.places[ever]) for table in (plan.runs, plan.ranks))
    place = {target: number for number, target in enumerate(weights.targets)}
    weights = weights.subset([place[target] for target in plan.comparisons])
    for here in drawn:
        if here.size:
            inside = np.searchsorted(ever, here)
            yield _Play(plan, here, weights.over(inside), ranks.over(inside).runs)


@dataclass(frozen=True, eq=False)
class _Play:
    """One play: the documents it draws, with the weights and ranks there."""

    plan: CampaignPlan
    here: Ints
    weights: TargetWeights
    ranks: SparseRuns

    def squares(self, rng: np.random.Generator) -> "_Means | Refusal":
        """Return what the play came to, over the comparisons."""
        plan, judging, here = self.plan, self.plan.judging, self.here
        judged = judging.judge(here, rng)
        pi, n = judging.draw_probability[here], here.size
        chance = np.ones(n)
        if plan.n_items is not None:
            size = min(plan.n_items, float(n))
            chance = strategy_probabilities(
                plan.strategy, judging.judged_items(here, judged), expected_count=size
            )
        labels = self._labels(judged.gold[:, None] if plan.n_items is None else judged.labels, rng)
        topic = judging.topic_index[here]
        audit = AuditSample(
            draw_probability=pi,
            bronze_class=labels.classes(steps=STEPS),
            audited=rng.random(n) < chance,
            gold_grade=judged.gold,
            audit_probability=chance,
            n_grades=plan.gains.size,
        )
        score = None if plan.score is None else plan.score[here]
        evidence = item_evidence(self.ranks, plan.depth, score)
        known = Foreknowledge(*evidence, rng.integers(0, N_FOLDS, n), plan.prior[here])
        frame = Frame(int(topic.max()) + 1, topic, np.arange(n), pi)
        predicted = predicted_gold(frame, audit, plan.gains, labels=labels, known=known)
        rows = two_phase(
            self.weights,
            draw_probability=pi,
            audited=audit.audited,
            gold=plan.gains[judged.gold],
            audit_probability=chance,
            before=predicted.before,
            after=predicted.after,
            spread=predicted.spread,
            before_total=np.zeros(len(self.weights)),  # known, it moves the interval and leaves its width
        ).estimates
        return _means(rows)

    def _labels(self, grades: Ints, rng: np.random.Generator) -> Labels:
        """Return the labels [document, label], each of another assessor of its document."""
        n, k = grades.shape
        assessors = max(k, self.plan.n_assessors or STRANGERS * k)
        given_by = (rng.integers(0, assessors, n)[:, None] + np.arange(k)) % assessors
        return Labels(
            np.repeat(np.arange(n), k),
            given_by.ravel(),
            grades.ravel(),
            n_items=n,
            n_assessors=assessors,
            n_grades=self.plan.gains.size,
        )


class _Means(NamedTuple):
    """Over the comparisons: the mean square of the half-widths, the mean variance, the drawing's mean share of it."""

    square: float
    variance: float
    drawing_share: float


def _means(rows: Estimates) -> _Means | Refusal:
    """Return the means over the comparisons, of which half may be refused."""
    known = [row for row in rows if isinstance(row, Estimate)]
    if 2 * len(known) < len(rows):
        return next(row for row in rows if isinstance(row, Refusal))
    squares = [((row.high - row.low) / 2) ** 2 for row in known]
    variances = [row.standard_error**2 for row in known]
    drawing = [dict(row.components)["drawing"] for row in known]
    shares = [part / whole if part else 0.0 for part, whole in zip(drawing, variances, strict=True)]
    return _Means(*(float(np.mean(values)) for values in (squares, variances, shares)))
