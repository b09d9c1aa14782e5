"""A small real collection, drawn, judged and audited through the product's own services, for tests.

3 topics, 3 runs of 10 documents each. Run r returns documents 2r, 2r + 1, ..., 2r + 9 of every topic, in this order:
14 documents a topic are pooled, 42 in all. The true grade of document d in topic t is (d + t) mod 4.
"""

import uuid
from datetime import timedelta

from django.utils import timezone

from judging.models import Assessor, Collection, Lease, Slot
from judging.services.assign import submit
from judging.services.campaigns import DEFAULT_GRADES, add_assessor, create_campaign, open_campaign
from judging.services.files import import_documents, import_runs, import_topics
from judging.services.judgment_files import import_judgments
from sampling.questions import Design
from sampling.services.drawing import draw
from touchstone.models import User

TOPICS, DOCUMENTS, RUNS, DEPTH = ["t0", "t1", "t2"], 14, ["run0", "run1", "run2"], 10
N_FRAME = len(TOPICS) * DOCUMENTS


def doc_id(topic, document):
    return f"{TOPICS[topic]}d{document:02d}"


def true_grade(topic_id, document_id):
    return (int(document_id[-2:]) + TOPICS.index(topic_id)) % 4


def returned(run):
    """Return the (topic, document) ids of a run with their ranks."""
    return {
        (topic_id, doc_id(topic, 2 * run + place)): place + 1
        for topic, topic_id in enumerate(TOPICS)
        for place in range(DEPTH)
    }


def make_collection(folder, *, gold=True, n_characters=0):
    """Return the small collection; with n_characters every text is padded to so many."""
    pairs = [(topic_id, doc_id(topic, d)) for topic, topic_id in enumerate(TOPICS) for d in range(DOCUMENTS)]
    (folder / "topics.tsv").write_text("".join(f"{topic_id}\tNeed {topic_id}\n" for topic_id in TOPICS))
    texts = {document: f"Text of {document}".ljust(n_characters, "é") for _, document in pairs}
    lines = [f'{{"_id": "{document}", "text": "{text}"}}\n' for document, text in texts.items()]
    (folder / "corpus.jsonl").write_text("".join(lines))
    for run, run_id in enumerate(RUNS):
        lines = [f"{t} Q0 {d} {rank} {100 - rank} {run_id}\n" for (t, d), rank in returned(run).items()]
        (folder / f"{run_id}.run").write_text("".join(lines))
    lines = [f"{topic} 0 {document} {true_grade(topic, document)}\n" for topic, document in pairs]
    (folder / "gold.qrels").write_text("".join(lines))
    made = Collection.objects.create(name=f"collection {uuid.uuid4()}")
    import_topics(collection=made, source=folder / "topics.tsv", name="topics.tsv")
    import_documents(collection=made, source=folder / "corpus.jsonl", name="corpus.jsonl")
    import_runs(collection=made, files=[(folder / f"{run}.run", f"{run}.run") for run in RUNS])
    if gold:
        import_judgments(collection=made, source=folder / "gold.qrels", name="gold.qrels", as_gold=True)
    return made


def make_undrawn(folder, *, gold=True, gold_check_rate=0.0, n_characters=0, **fields):
    """Return a campaign of two judgments an item, of which nothing is drawn yet."""
    return create_campaign(
        collection=make_collection(folder, gold=gold, n_characters=n_characters),
        name=f"campaign {uuid.uuid4()}",
        user=None,
        grades=DEFAULT_GRADES,
        gold_check_rate=gold_check_rate,
        **{"judgments_per_item": 2, "gold_check_exposures": 3, **fields},
    )


def make_campaign(
    folder, *, budget=N_FRAME, kind="pool", gold=True, gold_check_rate=0.0, pair=("run0", "run2")
):
    """Return an open campaign of two judgments an item; with the default budget every pair is drawn for certain."""
    campaign = make_undrawn(folder, gold=gold, gold_check_rate=gold_check_rate)
    design = Design(kind, pair if kind == "pair" else (), measure="DCG@10", depth=DEPTH, budget=budget)
    draw(campaign=campaign, design=design, seed=20)
    open_campaign(campaign=campaign, actor=None)
    return campaign


def without(runs):
    """Set these runs aside: a run goes with its import alone."""
    runs.update(set_aside_at=timezone.now(), set_aside_why="for a test")


def make_assessor(campaign, name, tier="bronze"):
    user, _ = User.objects.get_or_create(username=name)
    made = add_assessor(campaign=campaign, user=user, tier=tier)
    return Assessor.objects.select_related("campaign__scale").get(pk=made.pk)


def lease(assessor, slot):
    """Lease this very slot (claim chooses one itself); return the token."""
    now, token = timezone.now(), uuid.uuid4()
    leased = Slot.objects.filter(pk=slot.pk, state="open").update(
        state="leased", assessor=assessor, token=token, leased_at=now, lease_until=now + timedelta(hours=1)
    )
    assert leased == 1
    Lease.objects.create(token=token, slot=slot, assessor=assessor, leased_at=now)
    return token


def give(assessor, slot, grade):
    """Judge this very slot through submit."""
    token = lease(assessor, slot)
    return submit(assessor=assessor, token=token, client_token=uuid.uuid4(), grade=grade)


def slots(campaign, purpose="judge", **conditions):
    """Return the slots in frame order."""
    found = campaign.slots.filter(purpose=purpose, **conditions).select_related(
        "item__topic", "item__document"
    )
    return list(found.order_by("item__topic__topic_id", "item__document__doc_id", "number"))


def truth_of(slot):
    return true_grade(slot.item.topic.topic_id, slot.item.document.doc_id)


def judge_all(campaign, assessors, grade=lambda slot, place: truth_of(slot), **conditions):
    """Fill the open judge slots: the first assessor the first of each item, and so on; grade(slot, place)."""
    for slot in slots(campaign, state="open", **conditions):
        give(assessors[slot.number - 1], slot, grade(slot, slot.number - 1))


def judge_audit(campaign, gold, leave=0):
    """Fill the open audit slots with true grades, except the last `leave`."""
    waiting = slots(campaign, "audit", state="open")
    for slot in waiting[: len(waiting) - leave]:
        give(gold, slot, truth_of(slot))
