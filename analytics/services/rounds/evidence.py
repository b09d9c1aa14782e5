"""One round as the formulas take it: a run's number, its topics' values, its labels and its audited items."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.audit_correction import corrected_sums
from analytics.estimation.estimate import Estimate, Floats, Ints, Refusal
from analytics.estimation.rounds import AuditedItems
from analytics.estimation.targets import TargetWeights
from analytics.estimation.two_phase import variance_terms
from analytics.frames import CampaignArrays
from analytics.frames.periods import part_of_topics, topics_of_period
from analytics.numbers.predictions import Predictions
from analytics.numbers.targets import linear_targets
from analytics.services.analyses.context import Case, case
from analytics.services.analyses.request import AnalysisRefused, AnalysisSubject
from analytics.services.basis import Basis
from analytics.services.confusions import assessor_confusion_counts
from analytics.services.rounds.question import RoundChoice, RoundsRefused, moment
from judging.models import Campaign
from sampling.measures.registry import parse_linear
from sampling.selections import NOT_BY_DOCUMENT

SEEDS_OF_GOLD = {"tier": "gold", "declaration": ""}


@dataclass(frozen=True, eq=False)
class RoundNumber:
    """The run's number by the reported method, the topics' values that it is the mean of, and the audited items."""

    estimate: Estimate
    topic_values: Floats
    items: AuditedItems
    keys: list[tuple[str, str]]  # topic and document of each item


@dataclass(frozen=True, eq=False)
class Round:
    """A run in a campaign, or in the topics of a period."""

    campaign: Campaign
    choice: RoundChoice
    arrays: CampaignArrays
    case: Case
    n_left_out: int  # judged topics outside the period

    @cached_property
    def topic_ids(self) -> list[str]:
        """Return the topics' ids by place; empty where a topic has no pooled document."""
        names = [""] * self.arrays.n_topics
        ids = self.arrays.frame["topic_id"].to_list()
        for place, topic_id in zip(self.arrays.topic_index.tolist(), ids, strict=True):
            names[place] = topic_id
        return names

    @cached_property
    def naive_values(self) -> Floats:
        """Return the topics' values with the grades as given."""
        return np.asarray(self.case.values("run") @ self.case.gains)

    @property
    def joined_grades(self) -> Ints:
        """Return by grade of the scale its place among the grades of the case: relevant or not, if it is binary."""
        grades = np.arange(self.arrays.n_grades)
        if not self.case.is_binary:
            return grades
        relevant = parse_linear(self.case.measure).relevant_grade or self.arrays.relevant_grade
        return np.asarray(grades >= relevant, dtype=np.int64)

    @property
    def n_gold(self) -> int:
        """Return how many documents have gold: audited, checked, or judged by gold assessors alone."""
        if self.arrays.is_by_gold_judges:
            return int(self.arrays.judged.size)
        return int(self.case.audited.sum()) + int(self.arrays.check_true.size)

    @cached_property
    def number(self) -> RoundNumber | Refusal:
        """Return the number to report, or why this round has none."""
        if not self.case.has_audit and not self.arrays.is_by_gold_judges:
            return Refusal(
                f"{self.campaign.name} has gold without recorded probabilities alone: the corrected number needs an "
                "audit"
            )
        return corrected_number(self.campaign, self.arrays, self.case.measure, self.case.sides[0].name)


def read_round(campaign: Campaign, arrays: CampaignArrays, choice: RoundChoice, measure: str) -> Round:
    """Return the round. Raise `RoundsRefused` where the campaign, the dates or the run leave nothing to compare."""
    if arrays.has_whole_topics:
        raise RoundsRefused(f"{campaign.name}: {NOT_BY_DOCUMENT}")
    if arrays.judged.size == 0:
        raise RoundsRefused(f"{campaign.name}: nobody has judged yet")
    n_topics = arrays.n_topics
    since, until = moment(choice.since), moment(choice.until)
    if since is not None or until is not None:
        kept = topics_of_period(arrays, since, until)
        if not kept.any():
            dates = " and ".join(
                f"{word} {text}" for word, text in (("from", choice.since), ("before", choice.until)) if text
            )
            raise RoundsRefused(
                f"{campaign.name}: the dates leave no topic that was judged {dates} as a whole"
            )
        arrays = part_of_topics(arrays, kept, since, until)
    try:
        found = case(campaign, arrays, AnalysisSubject("papers", measure, choice.run, choice.run))
    except AnalysisRefused as refusal:
        raise RoundsRefused(f"{campaign.name}: {refusal}") from refusal
    return Round(campaign, choice, arrays, found, n_topics - arrays.n_topics)


def corrected_number(
    campaign: Campaign, arrays: CampaignArrays, measure: str, run_id: str
) -> RoundNumber | Refusal:
    """Return a run's number as `analytics.estimation.audit_correction` has it, with what makes it up."""
    basis = Basis(campaign, arrays, Predictions(arrays), assessor_confusion_counts(arrays))
    evidence = basis.evidence
    audit = evidence.audit
    if isinstance(audit, Refusal):
        return audit
    targets = linear_targets(basis, parse_linear(measure))
    if targets.gold is None:
        return Refusal("no audit is complete yet")
    place = next(place for place, run in enumerate(arrays.runs) if run.run_id == run_id)
    refusal = targets.refusal_of_run(place)
    if refusal is not None:
        return refusal
    weights = TargetWeights(targets.weights.runs.rows([place]), paired=False)
    judged, frame = weights.over(arrays.judged), evidence.frame
    predicted = weights.run_totals(targets.gold.before, frame.topic_index, frame.n_topics)
    found = corrected_sums(judged, predicted.sum(axis=1), evidence, audit, targets)
    number = found.estimates[0]
    if isinstance(number, Refusal):
        return number
    added = np.zeros(arrays.judged.size)
    added[audit.member] = found.item_corrections
    parts = judged.run_totals(added, frame.judged_topic, frame.n_topics) + predicted
    gold = audit.gains(targets.gains)[1]
    before = targets.gold.before[frame.judged[audit.member]]
    items = _audited_items(
        judged.runs.row(0)[audit.member],
        audit.draw_probability,
        audit.divisor,
        audit.audited,
        (before, targets.gold.after, gold, targets.gold.spread),
    )
    there = frame.judged[audit.member][audit.audited]
    pairs = arrays.frame[there]
    keys = list(zip(pairs["topic_id"].to_list(), pairs["doc_id"].to_list(), strict=True))
    number = replace(number, warning=audit.assumption or number.warning)
    return RoundNumber(number, frame.n_topics * parts[0], items, keys)


def _audited_items(
    weight: Floats,
    draw_probability: Floats,
    audit_probability: Floats,
    audited: NDArray[np.bool_],
    gains: tuple[Floats, Floats, Floats, Floats],
) -> AuditedItems:
    """Return the audited items; where an audit was certain nothing was left to predict."""
    before, after, gold, spread = gains
    certain = audited & (audit_probability == 1)
    after, spread = np.where(certain, gold, after), np.where(certain, 0.0, spread)
    _, drawing, audit, *_ = variance_terms(
        draw_probability, audit_probability, audited, before, after, gold, spread
    )
    return AuditedItems(
        (weight / draw_probability)[audited],
        (gold - after)[audited],
        audit_probability[audited],
        (weight**2 * (drawing + audit))[audited],
    )


def shared_topics(first: Round, second: Round) -> tuple[list[int], list[int]]:
    """Return the places of the topics of both rounds: the same id and, in two collections, the same words."""
    place = {topic_id: at for at, topic_id in enumerate(second.topic_ids) if topic_id}
    pairs = [(at, place[name]) for at, name in enumerate(first.topic_ids) if name in place]
    if first.campaign.collection_id != second.campaign.collection_id and pairs:
        ids = [first.topic_ids[at] for at, _ in pairs]
        words = [_topic_words(one.campaign, ids) for one in (first, second)]
        pairs = [pair for pair, name in zip(pairs, ids, strict=True) if words[0][name] == words[1][name]]
    return [a for a, _ in pairs], [b for _, b in pairs]


def _topic_words(campaign: Campaign, ids: list[str]) -> dict[str, tuple[str, ...]]:
    rows = campaign.collection.topics.filter(topic_id__in=ids)
    return {row[0]: row[1:] for row in rows.values_list("topic_id", "title", "description", "narrative")}


def is_one_audit(first: Round, second: Round) -> bool:
    """Return whether both campaigns' audits went by the same random numbers: `audit --with`."""
    seeds = [
        set(one.campaign.audits.filter(**SEEDS_OF_GOLD).values_list("seed", flat=True))
        for one in (first, second)
    ]
    declared = first.arrays.audit_assumption or second.arrays.audit_assumption
    return bool(seeds[0] & seeds[1]) and not declared


def have_one_draw(first: Round, second: Round) -> bool:
    """Return whether two campaigns were drawn with the same random numbers: their draws are then not independent."""
    if first.campaign.pk == second.campaign.pk:
        return False
    seeds = [
        set(one.campaign.draws.values_list("seed", flat=True))
        for one in (first, second)
        if not one.arrays.is_complete
    ]
    return len(seeds) == 2 and bool(seeds[0] & seeds[1])


def audited_in_both(first: RoundNumber, second: RoundNumber) -> tuple[AuditedItems, AuditedItems]:
    """Return the items with gold of both rounds, as either has them, in the same order."""
    place = {key: at for at, key in enumerate(second.keys)}
    pairs = [(at, place[key]) for at, key in enumerate(first.keys) if key in place]
    of_first = np.array([a for a, _ in pairs], dtype=np.int64)
    of_second = np.array([b for _, b in pairs], dtype=np.int64)
    return first.items.at(of_first), second.items.at(of_second)
