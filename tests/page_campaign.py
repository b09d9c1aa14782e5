"""A campaign for the pages: collection, runs, assessors, judgments, numbers."""

import io
import uuid

import polars as pl
from django.core.files.base import ContentFile

from analytics.services.recomputation import recompute
from judging.models import Collection, Document, GoldAnswer, Run, Topic
from judging.rankings import write_rankings
from judging.services import campaigns
from judging.services.assign import claim, submit
from sampling.questions import Design
from sampling.services.auditing import audit
from sampling.services.drawing import draw
from touchstone.models import User

N_TOPICS, N_DOCUMENTS = 4, 30

DESIGN = Design(question="pool", runs=(), measure="P@5", depth=10, budget=40)


def make_collection(n_runs=2):
    collection = Collection.objects.create(name=f"collection {uuid.uuid4()}")
    topics = Topic.objects.bulk_create(
        Topic(collection=collection, topic_id=f"t{n}", title=f"Topic {n}") for n in range(N_TOPICS)
    )
    documents = Document.objects.bulk_create(
        Document(collection=collection, doc_id=f"d{n:02}", text="Text") for n in range(N_DOCUMENTS)
    )
    GoldAnswer.objects.bulk_create(
        GoldAnswer(topic=topic, document=document, grade=number % 4, source="the author")
        for topic in topics
        for number, document in enumerate(documents)
    )
    for place, name in enumerate(["alpha", "beta", "gamma"][:n_runs]):
        add_run(collection, name, shift=4 * place)
    return collection


def add_run(collection, name, shift):
    rows = [
        {
            "topic_id": f"t{t}",
            "doc_id": f"d{(rank + shift) % N_DOCUMENTS:02}",
            "score": float(-rank),
            "run_tag": name,
        }
        for t in range(N_TOPICS)
        for rank in range(15)
    ]
    target = io.BytesIO()
    write_rankings(pl.DataFrame(rows), target)
    run = Run(collection=collection, run_id=name, n_topics=N_TOPICS, n_lines=len(rows))
    run.rankings.save(f"{name}.rankings", ContentFile(target.getvalue()))


def make_campaign(collection=None, *, is_simulated=False, drawn=True):
    campaign = campaigns.create_campaign(
        collection=collection or make_collection(),
        name=f"campaign {uuid.uuid4()}",
        user=None,
        grades=campaigns.DEFAULT_GRADES,
        is_simulated=is_simulated,
        gold_check_rate=0.0,
    )
    if drawn:
        draw(campaign=campaign, design=DESIGN, seed=7)
        campaign.refresh_from_db()
    return campaign


def add_assessor(campaign, tier="bronze", kind="human"):
    user = User.objects.create(username=f"{tier}-{uuid.uuid4().hex[:6]}")
    return campaigns.add_assessor(campaign=campaign, user=user, tier=tier, kind=kind)


def judge_all(assessor, grade=1):
    while (held := claim(assessor=assessor).item) is not None:
        submit(assessor=assessor, token=held.token, client_token=uuid.uuid4(), grade=grade)


def make_judged():
    """A simulated campaign that is judged, audited by gold, and computed."""
    campaign = make_campaign(is_simulated=True)
    campaigns.open_campaign(campaign=campaign, actor=None)
    bronze, gold = add_assessor(campaign, kind="simulated"), add_assessor(campaign, "gold")
    judge_all(bronze)
    audit(campaign=campaign, items_each_time=30, items_in_total=30)
    judge_all(gold, grade=2)
    recompute(campaign=campaign)
    return campaign
