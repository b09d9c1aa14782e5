"""The adjudication queue of a computation: the items whose joint grade may be wrong and matters, stored with it."""

import uuid
from dataclasses import dataclass

import numpy as np
import polars as pl
from django.db.models import Exists, OuterRef, QuerySet

from analytics.estimation.confusion import shrink
from analytics.estimation.disputes import disputes, grade_shares
from analytics.estimation.estimate import Floats, Refusal
from analytics.estimation.questioned import in_question, is_unanimous
from analytics.estimation.relevance_errors import label_error_probability, relevance_errors
from analytics.estimation.targets import TargetWeights
from analytics.frames import CampaignArrays, Ints
from analytics.models import Computation, DisputedItem
from analytics.services.confusions import ConfusionCounts
from judging.kinds import ITEM_COLUMNS, ItemKey
from judging.models import Adjudication, Campaign, Item
from sampling.audit_plan import middle_grades
from sampling.measures.families import grade_gains, weights_of_runs
from sampling.measures.registry import nearest_sum
from sampling.rejudging import shortest_queue

MOST = 200


@dataclass(frozen=True)
class DoubtfulLabels:
    """The judged items with what a wrong label of each would move, and how likely it is wrong; entries an item.

    Of items that are no candidates the influence is 0.
    """

    joint_grade: Ints
    influence: Floats
    error_probability: Floats
    is_measured: bool  # from everybody's measured errors, and not by disagreement alone

    @property
    def priority(self) -> Floats:
        return np.asarray(self.influence * self.error_probability)


def doubtful_labels(
    arrays: CampaignArrays, campaign: Campaign, counts: ConfusionCounts, candidates: np.ndarray
) -> DoubtfulLabels:
    """Return influence and error probability of the grade that each item's judgments say together.

    With gold the probability is that of the wrong side of relevance, by Bayes' rule from everybody's errors and the
    item's prior. Without it the probability that the grade is not the true one, as the assessors disagree.
    """
    parsed = nearest_sum(arrays.draw.parameters["measure"])
    relevant = parsed.relevant_grade or campaign.scale.relevant_grade
    shrunk = shrink(counts.total)
    n_judged = arrays.judged.size
    joint = middle_grades(arrays.label_item, arrays.label_grade, n_judged)  # the grade of the qrels
    shares = grade_shares(arrays.labels, None if isinstance(shrunk, Refusal) else shrunk.matrices)
    runs = weights_of_runs(parsed, arrays.returned, arrays.n_topics)
    found = disputes(
        TargetWeights(runs, paired=False).over(arrays.judged).runs,
        shares,
        joint,
        grade_gains(parsed, campaign.scale.gains(), relevant),
        candidates,
        n_judged,
    )
    influence, wrong = np.zeros(n_judged), np.zeros(n_judged)
    influence[found.item], wrong[found.item] = found.influence, found.error_probability
    errors = relevance_errors(counts.total, arrays.relevant_grade)
    if not isinstance(errors, Refusal):
        prior = arrays.frame["prior"].to_numpy()[arrays.judged]
        wrong = label_error_probability(arrays.labels, joint, prior, errors)
    return DoubtfulLabels(joint, influence, wrong, is_measured=not isinstance(errors, Refusal))


def _is_decided(arrays: CampaignArrays, campaign: Campaign) -> np.ndarray:
    """Return by judged item whether a manager has decided its grade, or lets it stand."""
    rows = Adjudication.objects.in_force().filter(item__campaign=campaign)
    names = rows.values_list("item__topic__topic_id", "item__document__doc_id")
    decided = pl.DataFrame(list(names), schema=dict.fromkeys(ITEM_COLUMNS, pl.String), orient="row")
    keys = arrays.frame[arrays.judged].select(pl.col(ITEM_COLUMNS).cast(pl.String)).with_row_index("place")
    mask = np.zeros(arrays.judged.size, dtype=bool)
    mask[keys.join(decided, on=ITEM_COLUMNS, how="semi")["place"].to_numpy()] = True
    return mask


def store_disputed(
    computation: Computation, arrays: CampaignArrays, campaign: Campaign, counts: ConfusionCounts
) -> list[DisputedItem]:
    """Store what is in question by the grades, the worst first; what gold or a manager has decided is left out.

    That is by the rules of analytics/estimation/questioned.py. Doubtful is what is wrong with a probability of a
    quarter or more, and of that by influence times probability the first half of the sum; as long as nobody's errors
    are measured, grades that all agree are not doubtful.
    """
    if not arrays.judged.size or arrays.is_by_gold_judges:
        return []
    candidates = ~(arrays.audited | _is_decided(arrays, campaign))
    doubtful = doubtful_labels(arrays, campaign, counts, candidates)
    may = np.ones(arrays.judged.size, dtype=bool) if doubtful.is_measured else ~is_unanimous(arrays.labels)
    listed = np.zeros(arrays.judged.size, dtype=bool)
    listed[shortest_queue(np.where(may, doubtful.priority, 0.0), doubtful.error_probability)] = True
    found = in_question(arrays.labels, listed, candidates)
    chosen = np.flatnonzero(np.logical_or.reduce(list(found.values())))
    worst = np.lexsort((chosen, -doubtful.error_probability[chosen], -doubtful.priority[chosen]))
    queue = chosen[worst][:MOST]
    keys = [ItemKey(*names) for names in arrays.frame[arrays.judged[queue]].select(ITEM_COLUMNS).iter_rows()]
    items = items_by_key(campaign, keys)
    rows = [
        DisputedItem(
            computation=computation,
            item_id=items[key],
            position=position,
            influence=float(doubtful.influence[place]),
            error_probability=float(doubtful.error_probability[place]),
            joint_grade=int(doubtful.joint_grade[place]),
            reasons=[key for key, mask in found.items() if mask[place]],
        )
        for position, (key, place) in enumerate(zip(keys, queue, strict=True), start=1)
    ]
    DisputedItem.objects.bulk_create(rows)
    return rows


def items_by_key(campaign: Campaign, keys: list[ItemKey]) -> dict[ItemKey, uuid.UUID]:
    """Return the rows of items by their names."""
    known = Item.objects.filter(
        campaign=campaign,
        topic__topic_id__in={key.topic for key in keys},
        document__doc_id__in={key.document for key in keys},
    )
    rows = known.values_list("topic__topic_id", "document__doc_id", "pk")
    return {ItemKey(topic_id, doc_id): pk for topic_id, doc_id, pk in rows}


# -- the queue ------------------------------------------------------------------------------------------------


def open_disputes() -> QuerySet[DisputedItem]:
    """Return the places of all queues on whose item no manager's word is in force, the worst first."""
    decided = Adjudication.objects.in_force().filter(item=OuterRef("item"))
    return DisputedItem.objects.filter(~Exists(decided)).order_by("position")


def why_unmeasured(pooled: list[list[float]] | None, relevant_grade: int) -> str:
    """Return why these counts of everybody's answers with known grades give no error rates; empty where they do."""
    found = relevance_errors([] if pooled is None else [pooled], relevant_grade)
    return found.reason if isinstance(found, Refusal) else ""
