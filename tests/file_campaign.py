"""A collection and a campaign for imports and exports, and a count of all their rows."""

import io
import uuid
from pathlib import Path

import pytest
from django.core.files.storage import default_storage

from judging.models import (
    Assessor,
    Campaign,
    Collection,
    Document,
    GoldAnswer,
    Grade,
    Item,
    Judgment,
    Lease,
    Run,
    Scale,
    Slot,
    Topic,
)
from judging.services.errors import ImportRefused
from touchstone.models import Event, User

RUN = b"1 Q0 d1 1 3.5 first\n1 Q0 d2 2 2.5 first\n2 Q0 d1 1 1e0 first\n"


def make_collection(topics=("1", "2"), documents=("d1", "d2", "d3")):
    collection = Collection.objects.create(name=f"collection {uuid.uuid4()}")
    Topic.objects.bulk_create(Topic(collection=collection, topic_id=t, title=t) for t in topics)
    Document.objects.bulk_create(Document(collection=collection, doc_id=d, text=d) for d in documents)
    return collection


def make_campaign(collection=None, *, k=2, grades=3):
    scale = Scale.objects.create(name=f"scale {uuid.uuid4()}")
    Grade.objects.bulk_create(Grade(scale=scale, value=g, label=str(g), gain=g) for g in range(grades))
    return Campaign.objects.create(
        collection=collection or make_collection(),
        scale=scale,
        name=f"campaign {uuid.uuid4()}",
        judgments_per_item=k,
    )


def make_item(campaign, topic_id, doc_id):
    topic = campaign.collection.topics.get(topic_id=topic_id)
    document = campaign.collection.documents.get(doc_id=doc_id)
    return Item.objects.create(campaign=campaign, topic=topic, document=document)


def make_judgment(item, name, grade, *, purpose="judge", number=1, tier="bronze", revised=None):
    user, _ = User.objects.get_or_create(username=f"{name} {item.campaign_id}")
    assessor, _ = Assessor.objects.get_or_create(campaign=item.campaign, user=user, defaults={"tier": tier})
    token = uuid.uuid4()
    slot = Slot.objects.create(
        item=item,
        purpose=purpose,
        number=number,
        campaign=item.campaign,
        topic=item.topic,
        position=0,
        state="done",
        assessor=assessor,
        token=token,
    )
    for sequence, value in enumerate([grade] if revised is None else [grade, revised], start=1):
        Judgment.objects.create(
            item=item,
            assessor=assessor,
            sequence=sequence,
            grade=value,
            slot=slot,
            lease_token=token,
            client_token=uuid.uuid4(),
        )
    return assessor


def stored_files():
    root = Path(default_storage.path(""))
    return {str(path) for folder in ("rankings", "uploads") for path in (root / folder).glob("*")}


def everything():
    """How many rows of each kind there are, and which files."""
    kinds = (Topic, Document, Run, GoldAnswer, Item, Slot, Lease, Judgment, Assessor, User, Event)
    return [kind.objects.count() for kind in kinds], stored_files()


def refusal(service, **arguments):
    """The message of an import that must change nothing."""
    before = everything()
    with pytest.raises(ImportRefused) as caught:
        service(**arguments)
    assert everything() == before
    return str(caught.value)


def file(text):
    return io.BytesIO(text if isinstance(text, bytes) else text.encode())


def judged_campaign():
    """Topic 10 before 9 (as strings); grades chosen so that median, latest grade and gold differ."""
    campaign = make_campaign(make_collection(topics=("9", "10")), k=4)
    nine, ten = make_item(campaign, "9", "d1"), make_item(campaign, "10", "d2")
    first = make_item(campaign, "10", "d1")
    for number, (name, grade) in enumerate([("a", 0), ("b", 1), ("c", 2), ("d", 2)], start=1):
        make_judgment(nine, name, grade, number=number)
    make_judgment(ten, "a", 0, number=1, revised=2)
    make_judgment(first, "a", 2, number=1)
    make_judgment(first, "gold", 1, purpose="audit", tier="gold")
    make_judgment(make_item(campaign, "9", "d3"), "b", 2, purpose="check")
    return campaign
