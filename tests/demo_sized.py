"""A campaign about as large as the demo's: 10 runs, 24 topics, 15 assessors of whom some are flagged, an audit."""

import uuid
from pathlib import Path

from small_campaign import give, make_assessor, slots

from analytics.services.recomputation import recompute
from analytics.services.screening import screen_campaign
from judging.models import Campaign, Collection, Document, GoldAnswer, Topic
from judging.services.campaigns import DEFAULT_GRADES, create_campaign, open_campaign
from judging.services.files import import_runs
from sampling.questions import Design
from sampling.services.audit_schedules import save_schedule
from sampling.services.auditing import audit
from sampling.services.drawing import draw
from touchstone.demo.filling import fill
from touchstone.demo.mixes import parse_mix
from touchstone.models import User

N_TOPICS, N_DOCUMENTS, DEPTH, BUDGET = 24, 120, 12, 240
RUNS = ["bm25-description", "fusion", "bm25-title", "bm25", "dirichlet", "names-only", "tf-idf", "overlap"]
LATE_RUNS = ["late-bm25", "late-tf-idf"]
MIX = "honest=10,pattern:0=1,pattern:01=1,sticky:.5=1,disgruntled=1,optimist=1"
TITLES = [
    "logging.handlers.TimedRotatingFileHandler(filename, when='h', interval=1, backupCount=0)",
    "optparse.OptionParser(usage=None, option_list=None)",
    "shutil.rmtree(path)",
    "configparser",
]


def make_demo_sized(folder: Path) -> Campaign:
    """Return the campaign: judged by simulated assessors, audited, computed and screened."""
    collection = Collection.objects.create(name=f"Python's standard library {uuid.uuid4()}")
    topics = Topic.objects.bulk_create(
        Topic(collection=collection, topic_id=f"py{n:02}", title=f"Keep file {n} from growing without end")
        for n in range(N_TOPICS)
    )
    documents = Document.objects.bulk_create(
        Document(
            collection=collection, doc_id=f"d{n:02}", title=f"{n}.{TITLES[n % len(TITLES)]}", text="Text"
        )
        for n in range(N_DOCUMENTS)
    )
    GoldAnswer.objects.bulk_create(
        GoldAnswer(
            topic=topic, document=document, grade=max(0, (place + number) % 6 - 2), source="the author"
        )
        for place, topic in enumerate(topics)
        for number, document in enumerate(documents)
    )
    _add_runs(collection, folder, RUNS, shift=0)
    campaign = create_campaign(
        collection=collection,
        name="Judged by assessors who err: Python's standard library",
        user=None,
        grades=DEFAULT_GRADES,
        judgments_per_item=3,
        gold_check_rate=0.1,
        is_simulated=True,
    )
    draw(
        campaign=campaign,
        design=Design("pair", ("bm25-description", "fusion"), "DCG@10", DEPTH, BUDGET),
        seed=7,
    )
    open_campaign(campaign=campaign, actor=None)
    campaign.refresh_from_db()
    _add_runs(collection, folder, LATE_RUNS, shift=24)
    fill(campaign, parse_mix(MIX), seed=1)
    audit(campaign=campaign, items_each_time=60, items_in_total=60, seed=5)
    mara = User.objects.create(username="mara", role="manager")
    save_schedule(campaign=campaign, actor=mara, every_seconds=86400, items_each_time=60, items_in_total=120)
    gold = make_assessor(campaign, "sim-gold", tier="gold")
    truth = {
        (answer.topic_id, answer.document_id): answer.grade
        for answer in GoldAnswer.objects.filter(topic__collection=collection)
    }
    for slot in slots(campaign, "audit", state="open"):
        give(gold, slot, truth[slot.item.topic_id, slot.item.document_id])
    recompute(campaign=campaign)
    screen_campaign(campaign=campaign)
    return campaign


def _add_runs(collection: Collection, folder: Path, names: list[str], shift: int) -> None:
    """Import runs of the first documents from `shift` on, each a little later than the one before."""
    for place, name in enumerate(names):
        first, step = shift + 2 * place, 1 + place % 2
        lines = [
            f"py{topic:02} Q0 d{(first + topic + step * rank) % N_DOCUMENTS:02} {rank} {99 - rank} {name}\n"
            for topic in range(N_TOPICS)
            for rank in range(DEPTH)
        ]
        (folder / f"{name}.run").write_text("".join(lines))
    import_runs(collection=collection, files=[(folder / f"{name}.run", f"{name}.run") for name in names])
