"""A small collection of 40 topics for draws of whole topics, and its judging through the product's own services.

Three runs return 4 of 6 documents of every topic: run r documents r, r + 1, r + 2, r + 3, in an order of its own a
topic. The true grade of document d in topic t is (3 d + t) mod 4. Topic t weighs 1 + t mod 5.
"""

import uuid

from small_campaign import give, make_assessor, slots

from judging.models import Collection
from judging.services.campaigns import DEFAULT_GRADES, create_campaign, open_campaign
from judging.services.files import import_documents, import_runs, import_topics
from judging.services.judgment_files import import_judgments
from sampling.questions import Design
from sampling.services.drawing import draw

N_TOPICS, DOCUMENTS, RUNS, DEPTH = 40, 6, ("run0", "run1", "run2"), 4
TOPICS = [f"q{topic:02d}" for topic in range(N_TOPICS)]


def doc_id(topic, document):
    return f"{TOPICS[topic]}-{document}"


def grade_of(topic_id, document_id):
    return (3 * int(document_id[-1]) + int(topic_id[1:])) % 4


def weight_of(topic):
    return 1 + topic % 5


def returned(run, topic):
    """Return the documents of a run in a topic, in the order of their ranks."""
    turn = (topic * (run + 1)) % 4
    return [doc_id(topic, run + (place + turn) % 4) for place in range(4)]


def make_undrawn(folder, *, weighted=True, gold=False, **fields):
    lines = [
        f"{topic_id}\tNeed {topic_id}" + (f"\t{weight_of(topic)}\n" if weighted else "\n")
        for topic, topic_id in enumerate(TOPICS)
    ]
    (folder / "topics.tsv").write_text("".join(lines))
    documents = [
        (topic_id, doc_id(topic, d)) for topic, topic_id in enumerate(TOPICS) for d in range(DOCUMENTS)
    ]
    (folder / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "{one}", "text": "Text of {one}"}}\n' for _, one in documents)
    )
    for run, run_id in enumerate(RUNS):
        (folder / f"{run_id}.run").write_text(
            "".join(
                f"{topic_id} Q0 {one} {rank} {100 - rank} {run_id}\n"
                for topic, topic_id in enumerate(TOPICS)
                for rank, one in enumerate(returned(run, topic), 1)
            )
        )
    made = Collection.objects.create(name=f"collection {uuid.uuid4()}")
    import_topics(collection=made, source=folder / "topics.tsv", name="topics.tsv")
    import_documents(collection=made, source=folder / "corpus.jsonl", name="corpus.jsonl")
    import_runs(collection=made, files=[(folder / f"{run}.run", f"{run}.run") for run in RUNS])
    if gold:
        lines = [f"{topic_id} 0 {one} {grade_of(topic_id, one)}\n" for topic_id, one in documents]
        (folder / "gold.qrels").write_text("".join(lines))
        import_judgments(collection=made, source=folder / "gold.qrels", name="gold.qrels", as_gold=True)
    return create_campaign(
        collection=made,
        name=f"campaign {uuid.uuid4()}",
        user=None,
        grades=DEFAULT_GRADES,
        gold_check_rate=0.0,
        **{"judgments_per_item": 1, **fields},
    )


def design(**fields):
    given = {
        "question": "ranking",
        "runs": (),
        "measure": "nDCG@4",
        "depth": DEPTH,
        "budget": 120,
        "topic_selection": "sample",
    }
    return Design(**{**given, **fields})


def make_drawn(folder, *, seed=7, weighted=True, gold=False, **fields):
    campaign = make_undrawn(folder, weighted=weighted, gold=gold)
    draw(campaign=campaign, design=design(**fields), seed=seed)
    open_campaign(campaign=campaign, actor=None)
    return campaign


def judge(campaign, leave=0):
    """Judge what is open with its true grade, but the last `leave` items in frame order."""
    assessor = make_assessor(campaign, "anna")
    waiting = slots(campaign, state="open")
    for slot in waiting[: len(waiting) - leave]:
        give(assessor, slot, grade_of(slot.item.topic.topic_id, slot.item.document.doc_id))
