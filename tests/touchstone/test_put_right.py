"""A collection that is put right: what was looked at, kept and taken back is gone; corrections change later numbers."""

import hashlib
from pathlib import Path

import pytest
from all_tables import differences, tables
from journey_files import CORPUS, PNG, QRELS, RUNS, TOPICS
from made_releases import released
from small_campaign import give, judge_all, make_assessor, make_campaign, slots
from uploaded import kept, looked, looked_again, zip_of

from analytics.models import Estimate
from analytics.services.recomputation import recompute
from judging.models import (
    Campaign,
    Collection,
    Document,
    DocumentImage,
    GoldAnswer,
    Import,
    Run,
    ScoreList,
    Topic,
)
from judging.services.campaigns import DEFAULT_GRADES, create_campaign
from judging.services.collections import set_run_aside
from judging.services.corrections import correct_gold, correct_topic
from judging.services.old_words import requeue_old_words
from sampling.questions import Design
from sampling.services.drawing import draw
from touchstone.ledger.removal import ImportInUse
from touchstone.ledger.take_back import take_back
from touchstone.models import User

pytestmark = pytest.mark.django_db(transaction=True)
FILES = {
    "topics.tsv": TOPICS,
    "corpus.jsonl": CORPUS,
    **{f"{tag}.run": text for tag, text in RUNS.items()},
    "gold.qrels": QRELS,
    "llm.scores": "t0 t0d0 0.5\nt1 t1d0 0.25\n",
    "site.zip": zip_of({"page.html": "<html><body><img src='a.png'>Words</body></html>", "a.png": PNG}),
}


@pytest.fixture
def mara(transactional_db):
    return User.objects.create_user("mara", role=User.Role.MANAGER)


def looked_and_kept(collection):
    made = looked_again(looked(collection, FILES), {"llm.scores": {"kind": "scores"}})
    assert made.report["obstacles"] == []
    kept(made)
    return Import.objects.get(pk=made.pk)


def test_looked_at_kept_and_taken_back_all_tables_but_the_log_are_as_before(mara):
    collection = Collection.objects.create(name="News")
    before = tables()
    made = looked_and_kept(collection)
    counts = [model.objects.count() for model in (Topic, Document, Run, ScoreList, GoldAnswer, DocumentImage)]
    assert counts == [3, 37, 4, 1, 9, 1]
    assert differences(before, tables())
    rows = take_back(made=made, why="the wrong files", actor=mara)
    assert sorted(rows.values()) == [1, 1, 3, 4, 9, 37]
    after = tables()
    assert {name: len(rows) for name, rows in after.items()} == {
        name: len(rows) for name, rows in before.items()
    }
    assert differences(before, after) == []
    Topic.objects.create(collection=collection, topic_id="t0", title="Left over")  # the control
    assert differences(before, tables()) == ["judging_topic"]


def test_after_a_draw_it_is_refused_with_the_draw_named_and_nothing_is_changed(mara):
    collection = Collection.objects.create(name="News")
    made = looked_and_kept(collection)
    campaign = create_campaign(
        collection=collection, name="c", user=mara, grades=DEFAULT_GRADES, judgments_per_item=1
    )
    draw(campaign=campaign, design=Design("pool", (), measure="DCG@10", depth=10, budget=20), seed=1)
    before = tables()
    with pytest.raises(ImportInUse, match=r"^on this import rest: .*draws \(1\)"):
        take_back(made=made, why="the wrong files", actor=mara)
    assert differences(before, tables()) == []
    made.refresh_from_db()
    assert made.state == "kept"


def numbers(campaign):
    """Return the estimates of a new computation, by what they are of, and what it counted."""
    computation = recompute(campaign=Campaign.objects.get(pk=campaign.pk))
    rows = Estimate.objects.filter(computation=computation).order_by("measure", "method", "run", "run_b")
    of = rows.values_list("measure", "method", "run", "run_b", "value", "standard_error")
    return [*of, computation.n_gold_checks, computation.n_judgments]


def checked_campaign(folder):
    """Return a campaign that two people judged, with a third one's answers on some checks."""
    campaign = make_campaign(folder, gold_check_rate=0.2, budget=20)
    judge_all(campaign, [make_assessor(campaign, name) for name in ("ann", "ben")])
    carl = make_assessor(campaign, "carl")
    for slot in {slot.item_id: slot for slot in slots(campaign, "check", state="open")}.values():
        give(carl, slot, 1)
    return campaign


def test_corrections_change_the_next_numbers_and_no_release(tmp_path, mara):
    campaign = checked_campaign(tmp_path)
    release = released(campaign)
    stored = Path(release.file.path)
    digest = hashlib.sha256(stored.read_bytes()).hexdigest()
    assert digest == release.sha256
    before = numbers(campaign)
    assert numbers(campaign) == before  # the control: without a correction they stay
    check = campaign.items.filter(slots__purpose="check", topic__topic_id="t1").first()
    topic = campaign.collection.topics.get(topic_id="t0")

    def withdraw():
        answer = GoldAnswer.objects.get(topic=check.topic_id, document=check.document_id)
        correct_gold(answer=answer, user=mara, why="misread", grade=None)

    def reword():
        correct_topic(topic=topic, user=mara, why="unclear", title="Another need")
        topic.refresh_from_db()
        assert requeue_old_words(row=topic, campaigns=[campaign.pk], actor=mara)

    def set_aside():
        set_run_aside(run=Run.objects.get(run_id="run1"), why="a faulty index", actor=mara)

    for correct in (withdraw, reword, set_aside):
        correct()
        after = numbers(campaign)
        assert after != before, correct
        before = after
    release.refresh_from_db()
    assert hashlib.sha256(stored.read_bytes()).hexdigest() == digest == release.sha256
