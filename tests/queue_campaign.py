"""A campaign of bare slots, and how its assessors claim and judge."""

import uuid

from judging.models import (
    Assessor,
    Campaign,
    Collection,
    Document,
    Grade,
    Item,
    Scale,
    Slot,
    Topic,
)
from judging.services.assign import claim, submit
from touchstone.models import User


def make_campaign(*, items=3, k=1, topics=1, lease_seconds=600, gold_check_rate=0.0):
    scale = Scale.objects.create(name=f"scale {uuid.uuid4()}")
    Grade.objects.bulk_create(
        Grade(scale=scale, value=value, label=label, gain=value)
        for value, label in enumerate(["no", "some", "yes"])
    )
    collection = Collection.objects.create(name=f"collection {uuid.uuid4()}")
    campaign = Campaign.objects.create(
        collection=collection,
        scale=scale,
        name=f"campaign {uuid.uuid4()}",
        state=Campaign.State.OPEN,
        judgments_per_item=k,
        lease_seconds=lease_seconds,
        gold_check_rate=gold_check_rate,
    )
    for topic_number in range(topics):
        topic = Topic.objects.create(collection=collection, topic_id=f"t{topic_number}", title="A topic")
        for item_number in range(items):
            document = Document.objects.create(
                collection=collection, doc_id=f"d{topic_number}-{item_number}", text="Text"
            )
            item = Item.objects.create(campaign=campaign, topic=topic, document=document)
            Slot.objects.bulk_create(
                Slot(
                    item=item, purpose="judge", number=n, campaign=campaign, topic=topic, position=item_number
                )
                for n in range(1, k + 1)
            )
    return campaign


def make_assessor(campaign, name="bob", tier="bronze"):
    user = User.objects.create(username=f"{name}-{uuid.uuid4().hex[:8]}")
    return Assessor.objects.create(campaign=campaign, user=user, tier=tier)


def expire(slot):
    Slot.objects.filter(pk=slot.pk).extra(where=["true"]).update(lease_until="2000-01-01T00:00Z")


def claimed(assessor):
    """Claim one item and return its slot as it stands in the database, or None."""
    item = claim(assessor=assessor).item
    return item and Slot.objects.get(pk=item.slot_id)


def judge(assessor, grade=1):
    slot = claimed(assessor)
    return submit(assessor=assessor, token=slot.token, client_token=uuid.uuid4(), grade=grade)
