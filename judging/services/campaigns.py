"""Setting a campaign up and running it: scale, assessors, gold checks, opening, closing."""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction

from judging.models import Assessor, Campaign, Collection, GoldAnswer, Grade, Item, Scale, Slot
from judging.services.errors import Refused
from touchstone.models import User, record

GOLD_ITEMS_PER_TOPIC = 4
DEFAULT_GRADES = [
    (0, "Not relevant", 0.0),
    (1, "Marginal", 1.0),
    (2, "Relevant", 2.0),
    (3, "Highly relevant", 3.0),
]


class CampaignNotReady(Refused):
    status = 409
    title = "The campaign cannot be opened yet"


def create_campaign(
    *,
    collection: Collection,
    name: str,
    user: User | None,
    grades: Sequence[tuple[int, str, float]],
    **fields: Any,
) -> Campaign:
    """Create a campaign with a scale of its own."""
    relevant_grade = fields.pop("relevant_grade", 1)
    with transaction.atomic():
        scale = Scale.objects.create(name=f"Scale of {name}", relevant_grade=relevant_grade)
        Grade.objects.bulk_create(
            Grade(scale=scale, value=value, label=label, gain=gain) for value, label, gain in grades
        )
        campaign = Campaign.objects.create(
            collection=collection, name=name, scale=scale, created_by=user, **fields
        )
        record("created", campaign, actor=user, name=name)
    return campaign


def add_assessor(
    *, campaign: Campaign, user: User, tier: str, kind: str = Assessor.Kind.HUMAN, actor: User | None = None
) -> Assessor:
    with transaction.atomic():
        assessor = Assessor.objects.create(campaign=campaign, user=user, tier=tier, kind=kind)
        record("added assessor", campaign, actor=actor, assessor=user.get_username(), tier=tier)
    return assessor


def set_status(*, assessor: Assessor, status: str, actor: User | None) -> None:
    """Pause or resume an assessor; his judgments stay."""
    with transaction.atomic():
        Assessor.objects.filter(pk=assessor.pk).update(status=status)
        record(f"set {status}", assessor.campaign, actor=actor, assessor=assessor.user.get_username())


def open_campaign(*, campaign: Campaign, actor: User | None) -> None:
    if not campaign.slots.exists():
        raise CampaignNotReady("draw its items first")
    with transaction.atomic():
        Campaign.objects.filter(pk=campaign.pk).update(state=Campaign.State.OPEN)
        record("opened", campaign, actor=actor)


def close_campaign(*, campaign: Campaign, actor: User | None) -> None:
    with transaction.atomic():
        Campaign.objects.filter(pk=campaign.pk).update(state=Campaign.State.CLOSED)
        record("closed", campaign, actor=actor)


def open_slots(*, items: Sequence[Item], positions: Iterable[int], purpose: str, n_each: int) -> None:
    """Open `n_each` slots of the purpose for every item, at its position in the order of its topic.

    A slot that is there already stays as it is: an item that two audits select is judged once.
    """
    Slot.objects.bulk_create(
        (
            Slot(
                item=item,
                purpose=purpose,
                number=number,
                campaign_id=item.campaign_id,
                topic_id=item.topic_id,
                position=int(position),
            )
            for item, position in zip(items, positions, strict=True)
            for number in range(1, n_each + 1)
        ),
        batch_size=2000,
        ignore_conflicts=purpose == Slot.Purpose.AUDIT,
    )


def add_check_slots(*, campaign: Campaign, seed: int) -> int:
    """Make unannounced gold checks: per topic a few items with a gold answer, spread over the grades.

    They are never drawn items: whoever met one as a check could not fill a wanted judgment of it. Each may be shown
    `gold_check_exposures` times in all, never twice to one assessor. Returns how many items.
    """
    if campaign.gold_check_rate == 0:
        return 0
    answers = _pick_gold_answers(campaign, random.Random(seed))
    with transaction.atomic():
        items = Item.objects.bulk_create(
            Item(campaign=campaign, topic_id=a.topic_id, document_id=a.document_id) for a in answers
        )
        order = random.Random(seed + 1)
        open_slots(
            items=items,
            positions=[order.randrange(1_000_000) for _ in items],
            purpose=Slot.Purpose.CHECK,
            n_each=campaign.gold_check_exposures,
        )
    return len(items)


def _pick_gold_answers(campaign: Campaign, rng: random.Random) -> list[GoldAnswer]:
    """Pick per topic up to GOLD_ITEMS_PER_TOPIC answers, taking the grades in turn so that no row stays empty."""
    grades = set(campaign.scale.values())
    by_topic: dict[int, dict[int, list[GoldAnswer]]] = defaultdict(lambda: defaultdict(list))
    known = GoldAnswer.objects.filter(topic__collection=campaign.collection).order_by(
        "topic_id", "document_id"
    )
    drawn = set(Item.objects.filter(campaign=campaign).values_list("topic_id", "document_id"))
    for answer in known:
        if answer.grade in grades and (answer.topic_id, answer.document_id) not in drawn:
            by_topic[answer.topic_id][answer.grade].append(answer)
    picked = []
    for by_grade in by_topic.values():
        for answers in by_grade.values():
            rng.shuffle(answers)
        turns = [
            answers[turn]
            for turn in range(GOLD_ITEMS_PER_TOPIC)
            for answers in by_grade.values()
            if turn < len(answers)
        ]
        picked.extend(turns[:GOLD_ITEMS_PER_TOPIC])
    return picked
