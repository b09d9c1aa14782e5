"""Attacks on recomputation: long ones, restored backups, gold off the scale, audits among the checks."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from quick_flush import unguarded
from small_campaign import give, judge_all, make_assessor, make_campaign, slots

from analytics.frames import campaign_arrays, current_arrays, forget, kept
from analytics.services import recomputation
from analytics.services.recomputation import recompute, start_due_recomputations
from judging.models import GoldAnswer, Item, Judgment, Slot
from sampling.services.auditing import audit
from touchstone.models import Job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def short_times(monkeypatch):
    monkeypatch.setattr(kept, "SETTLED_SECONDS", 0.0)
    monkeypatch.setattr(recomputation, "SHORTEST_PAUSE", timedelta(0))
    monkeypatch.setattr(recomputation, "PAUSE_FACTOR", 0)
    monkeypatch.setattr(recomputation, "COMMIT_MAY_TAKE", timedelta(seconds=0.1))
    forget()
    yield
    forget()


@pytest.fixture
def campaign(tmp_path):
    return make_campaign(tmp_path)


def recomputed_while(campaign, happens):
    """Recompute; when the rows are read, let something happen, and then take longer than commits may take."""
    steps = []

    def progress(done, total, note):
        steps.append(note)
        if len(steps) == 2:
            happens()
            time.sleep(0.3)

    return recompute(campaign=campaign, progress=progress, measures=["P@10"])


def queued():
    Job.objects.all().delete()
    start_due_recomputations()
    return Job.objects.filter(kind="estimate").count()


def test_an_audit_made_while_a_long_recomputation_runs_is_not_forgotten(campaign):
    judge_all(campaign, [make_assessor(campaign, name) for name in ("ann", "ben")])
    made = recomputed_while(campaign, lambda: audit(campaign=campaign, items_each_time=20, items_in_total=20))
    assert (made.n_audits, campaign.audits.count()) == (0, 1)
    assert queued() == 1


def test_nothing_is_queued_where_nothing_happened(campaign):
    judge_all(campaign, [make_assessor(campaign, name) for name in ("ann", "ben")])
    time.sleep(0.3)
    recomputed_while(campaign, lambda: None)
    assert queued() == 0


def test_a_judgment_that_commits_late_while_a_long_recomputation_runs_is_not_forgotten(campaign):
    ann, ben = (make_assessor(campaign, name) for name in ("ann", "ben"))
    first, second = slots(campaign, number=1), slots(campaign, number=2)
    for slot in first[5:]:
        give(ann, slot, 1)
    written, may_commit = threading.Event(), threading.Event()

    def late():
        try:
            with transaction.atomic():
                give(ann, first[0], 3)
                written.set()
                may_commit.wait(30)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(late)
        assert written.wait(20)
        give(ben, second[10], 2)

        def commit():
            may_commit.set()
            writer.result(20)

        made = recomputed_while(campaign, commit)
    assert made.n_judgments == Judgment.objects.filter(item__campaign=campaign).count() - 1
    assert queued() == 1


def test_a_backup_restored_under_a_living_worker_is_noticed(campaign):
    """Ids are given out again: what the worker keeps must not outlive the judgments it came from."""
    ann = make_assessor(campaign, "ann")
    mine = slots(campaign, number=1)
    for slot in mine[:20]:
        give(ann, slot, 1)
    saved = Judgment.objects.order_by("-id").values_list("id", flat=True)[0]
    for slot in mine[20:30]:
        give(ann, slot, 0)
    assert current_arrays(campaign).label_grade.size == 30
    guarded = ["judging_slot", "judging_judgment"]
    with unguarded(guarded), connection.cursor() as cursor:  # what a restore does
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(
            "UPDATE judging_slot SET state = 'open', assessor_id = NULL, token = NULL, leased_at = NULL, "
            "lease_until = NULL WHERE id IN (SELECT slot_id FROM judging_judgment WHERE id > %s)",
            [saved],
        )
        cursor.execute("DELETE FROM judging_judgment WHERE id > %s", [saved])
        cursor.execute("SET session_replication_role = DEFAULT")
        cursor.execute("SELECT setval('judging_judgment_id_seq', %s)", [saved])
    for slot in mine[32:36]:
        give(ann, slot, 3)
    assert current_arrays(campaign).label_grade.tolist() == [1] * 20 + [3] * 4


def test_a_gold_answer_off_the_scale_for_a_decoy_stops_nothing(campaign):
    ann = make_assessor(campaign, "ann")
    judged = slots(campaign, number=1)
    for slot in judged:
        give(ann, slot, 1)
    decoy = judged[0].item
    Slot.objects.create(
        item=decoy, purpose="check", number=3, campaign=campaign, topic=decoy.topic, position=1
    )
    with unguarded(["judging_goldanswer"]):
        GoldAnswer.objects.filter(topic=decoy.topic, document=decoy.document).delete()
    assert recompute(campaign=campaign, measures=["P@10"]).n_gold_checks == 0
    GoldAnswer.objects.create(topic=decoy.topic, document=decoy.document, grade=7, source="another scale")
    assert recompute(campaign=campaign, measures=["P@10"]).n_gold_checks == 0


@pytest.mark.parametrize("tier", ["gold", "silver"])
def test_what_an_audit_brought_is_no_gold_check(campaign, tier):
    """Else the bronze score would know the audit that corrects it."""
    ann, ben = (make_assessor(campaign, name) for name in ("ann", "ben"))
    mia = make_assessor(campaign, "mia", tier=tier)
    wanted = slots(campaign)
    give(mia, wanted[0], 1)  # she has judged as others do, once: she counts among the judges
    for slot in wanted[1:]:
        give([ann, ben][slot.number - 1], slot, 1)
    checked = Item.objects.filter(pk__in=[slot.item_id for slot in wanted[10:30:2]])
    for item in checked:
        Slot.objects.create(
            item=item, purpose="check", number=3, campaign=campaign, topic=item.topic, position=1
        )
    before = campaign_arrays(campaign).check_true.size
    audit(campaign=campaign, items_each_time=42, items_in_total=42, tier=tier, strategy="simple")
    for slot in slots(campaign, "audit" if tier == "gold" else "silver", state="open"):
        if slot.item_id != wanted[0].item_id:
            give(mia, slot, 0)
    assert campaign_arrays(campaign).check_true.size == before == 20
