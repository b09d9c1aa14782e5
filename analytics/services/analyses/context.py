"""What the papers' formulas take, read off a campaign: shares of labels by run, and the audit's confusion counts.

A share of labels is self-normalised: ``sum w s / pi`` over ``sum w / pi``, s the share of an item's votes. It lies in
[0, 1] as the formulas want it, and equals the papers' mean where everything is judged. The topics are a sample, as in
the papers: a variance is that of the topics' parts, which holds drawing and label noise as well.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analytics.estimation.confusion import audit_counts
from analytics.estimation.estimate import Floats
from analytics.frames import CampaignArrays, Ints
from analytics.services.analyses.request import AnalysisRefused, AnalysisSubject
from judging.models import Campaign
from sampling.measures.families import grade_gains, run_weights, weights_of_runs
from sampling.measures.registry import parse_linear, parse_measure
from sampling.selections import POOL_UNKNOWN

FEWEST_TOPICS = 2


@dataclass(frozen=True)
class Side:
    """One run: the sum of its weights over the frame, its label shares, and the topics' parts of these.

    `parts[topic, grade]` sum to 0 over topics; ``n_topics Var(parts)`` is the variance of a share.
    """

    name: str
    weights: Floats  # [judged]
    over_frame: Floats  # [frame], the weights of all pooled documents
    total: float
    shares: Floats  # [grade]
    parts: Floats  # [topic, grade]
    effective: float  # Kish's number of items behind the shares


@dataclass(frozen=True)
class Case:
    """A pair of runs and the audit. Two grades where the measure is binary: 0 not relevant, 1 relevant."""

    measure: str
    gains: Floats
    sides: tuple[Side, Side]
    counts: Floats  # [true, given], effective: audits weighted by 1/probability, plus gold checks
    unweighted: Floats  # [true, given]: the same labels counted as they are
    votes: Floats  # [judged, grade], shares of the item's labels
    draw_probability: Floats  # [judged]
    audited: np.ndarray
    gold: Ints  # [judged], read where audited
    audit_probability: Floats  # [judged]
    topic: Ints  # [judged]
    n_topics: int
    n_returning: Ints  # [judged], runs that return the document
    label_item: Ints  # [label], places in judged
    label_grade: Ints  # [label]

    @property
    def has_audit(self) -> bool:
        """Return whether any gold label has a recorded probability: without one there is no interval."""
        return bool(self.audited.any())

    @property
    def is_binary(self) -> bool:
        return self.gains.size == 2

    @cached_property
    def confusion(self) -> Floats:
        """Return J: rows sum to 1, a row without gold is 0."""
        totals = self.counts.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(self.counts, totals, out=np.zeros_like(self.counts), where=totals > 0))

    def variance(self, parts: Floats) -> float:
        """Return the variance of a sum over topics, given the topics' parts."""
        return float(self.n_topics * parts.var(ddof=1))

    def values(self, of: str) -> Floats:
        """Return [topic, grade] of "difference", "run" or "against": by topic, the label weights it would have alone.

        Their mean over topics is total * shares; their spread is that of the self-normalised shares (linearised).
        """
        a, b = (side.total * (self.n_topics * side.parts + side.shares) for side in self.sides)
        return {"difference": a - b, "run": a, "against": b}[of]


def case(campaign: Campaign, arrays: CampaignArrays, wanted: AnalysisSubject) -> Case:
    """Return the pair of runs as the formulas take it, or raise `AnalysisRefused`."""
    measure = parse_measure(wanted.measure)
    if not measure.kind.is_sum:
        raise AnalysisRefused(
            f"{wanted.measure} is {measure.kind.noun}: the papers correct P@k and DCG@k; choose one of these"
        )
    if arrays.is_foreign:
        raise AnalysisRefused(POOL_UNKNOWN)
    everything = np.ones(arrays.judged.size, dtype=bool)
    uncovered = arrays.not_covered(everything, "judgment")
    if uncovered is not None:
        raise AnalysisRefused(uncovered[0])
    if arrays.n_topics < FEWEST_TOPICS:
        raise AnalysisRefused(
            f"{arrays.n_topics} topic does not represent others; at least {FEWEST_TOPICS} are needed"
        )
    parsed = parse_linear(wanted.measure)
    relevant = parsed.relevant_grade or campaign.scale.relevant_grade
    gains = grade_gains(parsed, campaign.scale.gains(), relevant)
    joined = np.arange(arrays.n_grades) >= relevant if parsed.binary else np.arange(arrays.n_grades)
    joined = joined.astype(np.int64)
    probability = arrays.draw_probability(everything)
    votes = _votes(arrays, joined)
    topic = arrays.topic_index[arrays.judged]
    return Case(
        measure=parsed.name,
        gains=np.array([0.0, 1.0]) if parsed.binary else np.asarray(gains, dtype=np.float64),
        sides=(
            _side(arrays, parsed.name, wanted.run, votes, probability, topic),
            _side(arrays, parsed.name, wanted.against, votes, probability, topic),
        ),
        counts=_counts(arrays, joined, votes),
        unweighted=_unweighted_counts(arrays, joined),
        votes=votes,
        draw_probability=probability,
        audited=arrays.audited,
        gold=joined[arrays.audit_grade],
        audit_probability=arrays.audit_probability,
        topic=topic,
        n_topics=arrays.n_topics,
        n_returning=arrays.returned.counts()[arrays.judged],
        label_item=arrays.label_item,
        label_grade=joined[arrays.label_grade],
    )


def _votes(arrays: CampaignArrays, joined: Ints) -> Floats:
    n_grades = int(joined.max()) + 1
    cell = arrays.label_item * n_grades + joined[arrays.label_grade]
    table = np.bincount(cell, minlength=arrays.judged.size * n_grades).reshape(-1, n_grades)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def _side(
    arrays: CampaignArrays, measure: str, run_id: str, votes: Floats, probability: Floats, topic: Ints
) -> Side:
    place = next((place for place, run in enumerate(arrays.runs) if run.run_id == run_id), None)
    if place is None:
        raise AnalysisRefused(f"the collection has no run {run_id!r}")
    parsed = parse_linear(measure)
    if run_weights(parsed, arrays.ranks_outside[place], arrays.n_topics).sum() > 0:
        raise AnalysisRefused(
            f"{run_id} returns documents that could not be drawn, inside the cutoff of {measure}"
        )
    over_frame = weights_of_runs(parsed, arrays.returned, arrays.n_topics).row(place)
    if (over_frame[arrays.frame["inclusion_probability"].to_numpy() <= 0] != 0).any():
        raise AnalysisRefused(
            f"a part of the weight of {run_id} lies on documents that this design can never draw"
        )
    weights = over_frame[arrays.judged]
    lever = weights / probability
    if lever.sum() <= 0:
        raise AnalysisRefused(f"nothing that {run_id} returns is judged yet")
    shares = lever @ votes / lever.sum()
    parts = np.stack(
        [
            np.bincount(topic, lever * (vote - share), arrays.n_topics)
            for vote, share in zip(votes.T, shares, strict=True)
        ],
        axis=1,
    )
    return Side(
        run_id,
        weights,
        over_frame,
        float(over_frame.sum()),
        shares,
        parts / lever.sum(),
        float(lever.sum() ** 2 / (lever**2).sum()),
    )


def _counts(arrays: CampaignArrays, joined: Ints, votes: Floats) -> Floats:
    """Return effective counts: an audited item counts once, as the shares of its votes; a gold check counts once."""
    n_grades = votes.shape[1]
    counts = np.zeros((n_grades, n_grades))
    np.add.at(counts, (joined[arrays.check_true], joined[arrays.check_given]), 1.0)
    members = np.flatnonzero(arrays.audited)
    if members.size == 0:
        return counts
    gold, pi = joined[arrays.audit_grade[members]], arrays.audit_probability[members]
    # Kish's effective number of each row, from the items alone; then the row's shares, from their votes.
    size = audit_counts(gold, gold, pi, n_grades).diagonal()
    rows = np.zeros((n_grades, n_grades))
    np.add.at(rows, gold, votes[members] / pi[:, None])
    totals = rows.sum(axis=1, keepdims=True)
    shares = np.divide(rows, totals, out=np.zeros_like(rows), where=totals > 0)
    return np.asarray(counts + size[:, None] * shares)


def _unweighted_counts(arrays: CampaignArrays, joined: Ints) -> Floats:
    n_grades = int(joined.max()) + 1
    counts = np.zeros((n_grades, n_grades))
    np.add.at(counts, (joined[arrays.check_true], joined[arrays.check_given]), 1.0)
    of_audited = arrays.audited[arrays.label_item]
    gold = joined[arrays.audit_grade[arrays.label_item[of_audited]]]
    np.add.at(counts, (gold, joined[arrays.label_grade[of_audited]]), 1.0)
    return counts
