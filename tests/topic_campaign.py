"""A small collection of 40 topics for draws of whole topics, and its judging through the product's own services.

Three runs return 4 of 6 documents of every topic: run r documents r, r + 1, r + 2, r + 3, in an order of its own a
topic. The true grade of document d in topic t is (3 d + t) mod 4. Topic t weighs 1 + t mod 5.
"""

import uuid

import numpy as np
import polars as pl
from small_campaign import give, make_assessor, slots

from analytics.models import Estimate
from judging.models import Assessor, Collection
from judging.services.campaigns import DEFAULT_GRADES, create_campaign, open_campaign
from judging.services.files import import_documents, import_runs, import_topics
from judging.services.judgment_files import import_judgments
from sampling.frames import load_frame
from sampling.questions import Design
from sampling.services.auditing import audit
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


def judge(campaign, leave=0, *, tier="bronze", grade=grade_of):
    """Judge what is open, with its true grade unless told, but the last `leave` items in frame order."""
    _judge(campaign, "anna", tier, slots(campaign, state="open"), leave, grade)


def judge_audit(campaign, leave=0):
    """Judge what audits of the gold tier wait for."""
    _judge(campaign, "gold", "gold", slots(campaign, "audit", state="open"), leave, grade_of)


def too_low(topic_id, document_id):
    """Return the grade of an assessor who overlooks a grade in most documents, more in some topics."""
    grade = grade_of(topic_id, document_id)
    return max(0, grade - (int(document_id[-1]) + int(topic_id[1:])) % 3)


def _judge(campaign, name, tier, waiting, leave, grade):
    known = Assessor.objects.select_related("campaign__scale").filter(campaign=campaign, user__username=name)
    assessor = known.first() or make_assessor(campaign, name, tier)
    for slot in waiting[: len(waiting) - leave]:
        give(assessor, slot, grade(slot.item.topic.topic_id, slot.item.document.doc_id))


EVERYTHING = 240  # documents: all topics are certain


def make_audited(folder, *, budget=EVERYTHING, items=110, leave=0, **fields):
    """Return a campaign with labels that are too low, and an audit of whole topics judged but for some."""
    campaign = make_drawn(folder, gold=True, budget=budget, **fields)
    judge(campaign, grade=too_low)
    audit(campaign=campaign, items_each_time=items, items_in_total=400, strategy="whole-topics", seed=12)
    judge_audit(campaign, leave)
    return campaign


# -- what comes out of it -----------------------------------------------------------------------------------

SHARE = np.array([weight_of(topic) for topic in range(N_TOPICS)], dtype=float)
SHARE /= SHARE.sum()
DISCOUNT = 1 / np.log2(np.arange(DEPTH) + 2)


def gains(run, topic, grade=grade_of):
    return np.array([grade(TOPICS[topic], one) for one in returned(run, topic)], dtype=float)


def all_gains(topic, grade=grade_of):
    return sorted((grade(TOPICS[topic], f"{TOPICS[topic]}-{d}") for d in range(6)), reverse=True)


def ndcg(run, topic, grade=grade_of):
    ideal = DISCOUNT @ np.array(all_gains(topic, grade)[:DEPTH])
    return DISCOUNT @ gains(run, topic, grade) / ideal if ideal else 0.0


def precision(run, topic, grade=grade_of):
    return (gains(run, topic, grade) >= 1).mean()


def err(run, topic, grade=grade_of):
    value, goes_on = 0.0, 1.0
    for rank, gain in enumerate(gains(run, topic, grade), 1):
        stop = (2**gain - 1) / 8
        value, goes_on = value + goes_on * stop / rank, goes_on * (1 - stop)
    return value


def average_precision(run, topic, grade=grade_of):
    relevant = gains(run, topic, grade) >= 1
    hits = np.cumsum(relevant) / np.arange(1, DEPTH + 1)
    n = sum(gain >= 1 for gain in all_gains(topic, grade))
    return (hits * relevant).sum() / n if n else 0.0


OF_TOPIC = {"nDCG@4": ndcg, "P@4": precision, "ERR@4": err, "AP@4": average_precision}


def values(name, grade=grade_of):
    """Return [run, topic] the measure by its definition."""
    return np.array(
        [[OF_TOPIC[name](run, topic, grade) for topic in range(N_TOPICS)] for run in range(len(RUNS))]
    )


def chances(campaign):
    """Return rho and which topics were taken, from the frame file."""
    frame = load_frame(campaign.draws.order_by("-batch").first())
    columns = pl.col("topic_probability").first(), pl.col("drawn_in").max()
    rows = frame.group_by("topic_id").agg(*columns).sort("topic_id")
    return rows["topic_probability"].to_numpy(), rows["drawn_in"].to_numpy() > 0


def stored(computation, measure, method="naive"):
    rows = Estimate.objects.filter(computation=computation, measure=measure, method=method)
    return {
        (row.run.run_id, row.run_b and row.run_b.run_id): row for row in rows.select_related("run", "run_b")
    }
