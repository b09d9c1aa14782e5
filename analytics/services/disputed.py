"""The adjudication queue of a computation: the items whose joint grade may be wrong and matters, stored with it."""

import uuid

from django.db.models import Exists, OuterRef, QuerySet

from analytics.estimation.confusion import shrink
from analytics.estimation.disputes import disputes, grade_shares
from analytics.estimation.estimate import Refusal
from analytics.estimation.targets import TargetWeights
from analytics.frames import CampaignArrays
from analytics.models import Computation, DisputedItem
from analytics.services.confusions import ConfusionCounts
from judging.kinds import ITEM_COLUMNS, ItemKey
from judging.models import Adjudication, Campaign, Item
from sampling.audit_plan import middle_grades
from sampling.measures.families import grade_gains, weights_of_runs
from sampling.measures.registry import parse_linear

MOST = 200


def store_disputed(
    computation: Computation, arrays: CampaignArrays, campaign: Campaign, counts: ConfusionCounts
) -> list[DisputedItem]:
    """Store the items most in question, the worst first; those that gold or a manager has decided are left out."""
    if not arrays.judged.size:
        return []
    parsed = parse_linear(arrays.draw.parameters["measure"])
    relevant = parsed.relevant_grade or campaign.scale.relevant_grade
    shrunk = shrink(counts.total) if counts.total.size else Refusal("nobody has judged yet")
    n_judged = arrays.judged.size
    joint = middle_grades(arrays.label_item, arrays.label_grade, n_judged)  # the grade of the qrels
    shares = grade_shares(arrays.labels, None if isinstance(shrunk, Refusal) else shrunk.matrices)
    runs = weights_of_runs(parsed, arrays.returned, arrays.n_topics)
    weights = TargetWeights(runs, paired=False).over(arrays.judged).runs
    decided = _decided_items(campaign)
    found = disputes(
        weights,
        shares,
        joint,
        grade_gains(parsed, campaign.scale.gains(), relevant),
        ~arrays.audited,
        MOST + len(decided),
    )
    frame = arrays.frame[arrays.judged[found.item]].select(ITEM_COLUMNS)
    keys = [ItemKey(*names) for names in frame.iter_rows()]
    items = _items(campaign, keys)
    rows: list[DisputedItem] = []
    for key, place, influence, chance in zip(
        keys, found.item.tolist(), found.influence.tolist(), found.error_probability.tolist(), strict=True
    ):
        if items[key] in decided or len(rows) == MOST:
            continue
        rows.append(
            DisputedItem(
                computation=computation,
                item_id=items[key],
                position=len(rows) + 1,
                influence=influence,
                error_probability=chance,
                joint_grade=int(joint[place]),
            )
        )
    DisputedItem.objects.bulk_create(rows)
    return rows


def _decided_items(campaign: Campaign) -> set[uuid.UUID]:
    return set(Adjudication.objects.filter(item__campaign=campaign).values_list("item_id", flat=True))


def _items(campaign: Campaign, keys: list[ItemKey]) -> dict[ItemKey, uuid.UUID]:
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
    """Return the places of all queues whose item nobody has decided, the worst first."""
    decided = Adjudication.objects.filter(item=OuterRef("item"))
    return DisputedItem.objects.filter(~Exists(decided)).order_by("position")
