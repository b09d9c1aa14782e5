"""A campaign judged by a model on loopback that knows every right grade."""

import io
import json
import re
import uuid

from django.core.management import CommandError, call_command
from model_server import graded

from judging.models import (
    Campaign,
    Collection,
    Document,
    Grade,
    Item,
    Judgment,
    Scale,
    Slot,
    Topic,
)

N_ITEMS = 8


def make_campaign(n_items=N_ITEMS, k=1, **fields):
    """Return an open campaign; document n says its number, and its right grade is n mod 3."""
    scale = Scale.objects.create(name="three")
    labels = ["Not relevant", "Relevant", "Highly relevant"]
    Grade.objects.bulk_create(Grade(scale=scale, value=v, label=labels[v], gain=v) for v in range(3))
    collection = Collection.objects.create(name=f"collection {uuid.uuid4()}")
    fields = {"state": "open", "gold_check_rate": 0, "judgments_per_item": k} | fields
    campaign = Campaign.objects.create(
        collection=collection, scale=scale, name=f"campaign {uuid.uuid4()}", **fields
    )
    topic = Topic.objects.create(collection=collection, topic_id="t1", title="A need", narrative="Not cats.")
    for n in range(n_items):
        document = Document.objects.create(
            collection=collection, doc_id=f"d{n}", title=f"Title {n}", text=f"This is document {n}."
        )
        item = Item.objects.create(campaign=campaign, topic=topic, document=document)
        for number in range(1, k + 1):
            Slot.objects.create(
                item=item, purpose="judge", number=number, campaign=campaign, topic=topic, position=n
            )
    return campaign


def number_in(prompt):
    return int(re.search(r"This is document (\d+)\.", prompt)[1])


def right(prompt, n=0):
    return graded(number_in(prompt) % 3)


def judge(campaign, server, *options, endpoint=None, **more):
    """Run the command to its end; return its summary, and the error if it ended with one."""
    out, err = io.StringIO(), io.StringIO()
    arguments = {"--as": "robot", "--endpoint": endpoint or server.endpoint, "--model": "tiny", **more}
    words = [str(word) for pair in arguments.items() if pair[1] is not None for word in pair]
    error = ""
    try:
        call_command(
            "machine_assessor", str(campaign.pk), *words, "--output", "json", *options, stdout=out, stderr=err
        )
    except CommandError as raised:
        error = str(raised)
    summary = json.loads(out.getvalue()) if out.getvalue() else {}
    return summary | {"error": error, "progress": err.getvalue()}


def grades_of(campaign):
    """Return document number -> grade or obstacle, of the judgments that are there."""
    rows = Judgment.objects.filter(item__campaign=campaign).values_list(
        "item__document__doc_id", "grade", "obstacle"
    )
    assert len({row[0] for row in rows}) == len(rows)
    return {int(doc_id[1:]): obstacle or grade for doc_id, grade, obstacle in rows}


def right_grades(numbers=range(N_ITEMS)):
    return {n: n % 3 for n in numbers}


def n_leased():
    return Slot.objects.filter(state="leased").count()


def spoil(*numbers, by):
    """Behave well but for the documents of these numbers."""

    def behave(prompt, n):
        return by if number_in(prompt) in numbers else right(prompt)

    return behave


def call_for(body, **changes):
    return {"token": body["token"], "status": "answered", "model": "tiny", "cost": "0.5", **changes}
