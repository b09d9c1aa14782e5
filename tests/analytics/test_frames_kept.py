"""What a process keeps of a campaign and completes is what reading everything gives, whatever happens in between.

Judgments, revisions, judgments taken back, requeues, audits, imports and transactions that commit late come in any
order; after each of them the completed arrays are compared with freshly read ones.
"""

import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Event

import numpy as np
import pytest
from array_differences import differences
from django.db import connection, transaction
from small_campaign import (
    DEPTH,
    TOPICS,
    doc_id,
    give,
    judge_audit,
    lease,
    make_assessor,
    make_campaign,
    slots,
)

from analytics.frames import campaign_arrays, current_arrays, forget, kept, log
from analytics.services.confusions import assessor_confusion_counts
from judging.models import Judgment
from judging.services.assign import revise, submit
from judging.services.errors import ImportRefused, Refused
from judging.services.judgment_files import import_judgments
from judging.services.leases import requeue
from sampling.questions import Design
from sampling.services.auditing import audit
from sampling.services.drawing import draw
from touchstone import watermark as watermarks

SECONDS = 20.0  # for a thread to get to its point


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(kept, "SETTLED_SECONDS", 0.0)
    forget()
    yield
    forget()


class Late:
    """A judgment whose transaction stays open until it is told to commit."""

    def __init__(self, pool, assessor, slot, grade):
        self.token = lease(assessor, slot)
        self.is_written, self.may_commit = Event(), Event()
        self.done: Future = pool.submit(self._judge, assessor, grade)
        assert self.is_written.wait(SECONDS)

    def _judge(self, assessor, grade):
        try:
            with transaction.atomic():
                submit(assessor=assessor, token=self.token, client_token=uuid.uuid4(), grade=grade)
                self.is_written.set()
                assert self.may_commit.wait(SECONDS)
        finally:
            connection.close()

    def commit(self):
        self.may_commit.set()
        self.done.result(SECONDS)


class Happenings:
    """A campaign in which things happen at random, by the product's own services."""

    def __init__(self, folder, seed, pool):
        self.folder, self.pool = folder, pool
        self.rng = np.random.default_rng(seed)
        self.campaign = make_campaign(folder, budget=24, gold_check_rate=0.2)
        self.people = [
            make_assessor(self.campaign, f"{name}-{uuid.uuid4()}") for name in ("ann", "ben", "cay")
        ]
        self.gold = make_assessor(self.campaign, f"greta-{uuid.uuid4()}", tier="gold")
        self.lena = make_assessor(self.campaign, f"lena-{uuid.uuid4()}")  # nobody else judges while she does
        self.late: list[Late] = []
        self.n_imports = 0

    def judge(self):
        for _ in range(int(self.rng.integers(1, 6))):
            assessor = self._anybody()
            self._give(partial(give, assessor), assessor)

    def commit_late(self):
        """Write a judgment that others overtake: it is committed some steps later."""
        self._commit()
        lena = self.lena
        self._give(lambda slot, grade: self.late.append(Late(self.pool, lena, slot, grade)), lena)

    def _commit(self):
        for late in self.late:
            late.commit()
        self.late = []

    def _anybody(self):
        return self.people[self.rng.integers(len(self.people))]

    def _give(self, how, assessor):
        waiting = slots(self.campaign, state="open") + slots(self.campaign, "check", state="open")
        known = set(Judgment.objects.filter(assessor=assessor).values_list("item_id", flat=True))
        held = set(assessor.slots.values_list("item_id", flat=True))
        free = [slot for slot in waiting if slot.item_id not in known | held]
        if free:
            how(free[self.rng.integers(len(free))], int(self.rng.integers(4)))

    def _revise(self, **said):
        rows = list(
            Judgment.objects.filter(assessor__in=[*self.people, self.gold]).select_related("assessor")
        )
        if rows:
            row = rows[self.rng.integers(len(rows))]
            with suppress(Refused):
                revise(assessor=row.assessor, token=row.lease_token, client_token=uuid.uuid4(), **said)

    def change_a_mind(self):
        self._revise(grade=int(self.rng.integers(4)))

    def take_back(self):
        self._revise(obstacle="unreadable")

    def requeue(self):
        requeue(assessor=self._anybody(), actor=None)

    def audit(self):
        audit(campaign=self.campaign, items_each_time=6, items_in_total=40, seed=None)

    def judge_audit(self):
        judge_audit(self.campaign, self.gold, leave=int(self.rng.integers(2)))

    def come(self):
        self.people.append(make_assessor(self.campaign, f"new-{uuid.uuid4()}"))

    def import_some(self):
        self._commit()  # an import waits for slots that are being filled
        self.n_imports += 1
        path = self.folder / f"some{self.n_imports}.qrels"
        topic = int(self.rng.integers(len(TOPICS)))
        path.write_text(
            f"{TOPICS[topic]} nina{self.n_imports} {doc_id(topic, int(self.rng.integers(14)))} 2\n"
        )
        with suppress(ValueError, ImportRefused):  # an item may have all its judgments
            import_judgments(source=path, name=path.name, campaign=self.campaign, file_format="qrels_jg")

    def draw_more(self):
        drawn = self.campaign.draws.count()
        if drawn < 3:
            draw(campaign=self.campaign, design=Design("pool", (), "DCG@10", DEPTH, 24 + 6 * drawn))

    def step(self):
        common = [self.judge] * 8 + [self.commit_late] * 4 + [self.change_a_mind] * 3 + [self.take_back] * 2
        rare = [self.requeue, self.audit, self.judge_audit, self.come, self.import_some, self.draw_more]
        choices = common + rare
        choices[self.rng.integers(len(choices))]()


def run(folder, seed, n_steps):
    """Return the fields that differed at some step, and how often what was kept could be completed."""
    folder.mkdir(exist_ok=True)
    found: set[str] = set()
    n_completed = 0
    with ThreadPoolExecutor(1) as pool:
        happenings = Happenings(folder, seed, pool)
        try:
            for _ in range(n_steps):
                happenings.step()
                before = kept._kept.get(happenings.campaign.pk)
                now = current_arrays(happenings.campaign)
                after = kept._kept.get(happenings.campaign.pk)
                n_completed += before is not None and after is not None and after.facts is before.facts
                fresh = campaign_arrays(happenings.campaign)
                found |= set(differences(now, fresh))
                sums = [assessor_confusion_counts(arrays) for arrays in (now, fresh)]
                assert np.array_equal(sums[0].total, sums[1].total) or found
        finally:
            happenings._commit()
    return found, n_completed


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_kept_and_completed_is_what_reading_everything_gives(tmp_path, seed):
    found, n_completed = run(tmp_path, seed, 40)
    assert found == set()
    assert n_completed >= 8  # else little was tested


@pytest.mark.django_db(transaction=True)
def test_a_watermark_of_the_highest_id_alone_misses_who_commits_late(tmp_path, monkeypatch):
    monkeypatch.setattr(watermarks, "writers", lambda table: frozenset())
    assert any("label_grade" in run(tmp_path / str(seed), seed, 40)[0] for seed in range(2))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_told", [True, False])
def test_without_the_fingerprint_a_requeue_would_be_missed(tmp_path, monkeypatch, is_told):
    campaign = make_campaign(tmp_path)
    ann = make_assessor(campaign, "ann")
    for slot in slots(campaign, number=1):
        give(ann, slot, 1)
    if not is_told:
        monkeypatch.setattr(kept, "fingerprint", lambda _: (0,))
    assert current_arrays(campaign).label_grade.size == 42
    requeue(assessor=ann, actor=None)
    assert current_arrays(campaign).label_grade.size == (0 if is_told else 42)


@pytest.mark.django_db(transaction=True)
def test_one_judgment_is_completed_from_its_item_alone(tmp_path, monkeypatch):
    campaign = make_campaign(tmp_path)
    ann, ben = make_assessor(campaign, "ann"), make_assessor(campaign, "ben")
    first, *others = slots(campaign, number=1)
    for slot in others:
        give(ann, slot, 1)
    current_arrays(campaign)
    sizes = []

    def watched(*given):
        found = read_log(*given)
        sizes.append(found[0].id.size)
        return found

    read_log = kept.read_log
    monkeypatch.setattr(kept, "read_log", watched)
    give(ben, first, 2)
    arrays = current_arrays(campaign)
    assert sizes == [1]
    assert differences(arrays, campaign_arrays(campaign)) == []


@pytest.mark.django_db(transaction=True)
def test_what_a_transaction_may_still_take_back_is_not_kept(tmp_path):
    campaign = make_campaign(tmp_path)
    ann = make_assessor(campaign, "ann")
    first, second, *_ = slots(campaign, number=1)
    give(ann, first, 1)
    assert current_arrays(campaign).label_grade.tolist() == [1]
    with suppress(ZeroDivisionError), transaction.atomic():
        give(ann, second, 2)
        assert current_arrays(campaign).label_grade.tolist() == [1, 2]
        raise ZeroDivisionError
    assert current_arrays(campaign).label_grade.tolist() == [1]
    assert campaign.pk in kept._kept


def test_no_more_than_a_few_campaigns_are_kept(monkeypatch):
    def reading(n):
        draw = type("Draw", (), {"batch": 1})
        facts = type("Facts", (), {"draw": draw})
        return kept.Reading(
            facts, (1,), None, type("Log", (), {"id": np.zeros(n)}), watermarks.Watermark(), 0.0
        )

    campaigns = [type("Campaign", (), {"pk": number}) for number in range(6)]
    for campaign in campaigns:
        kept._keep(campaign, reading(10))
    assert list(kept._kept) == [3, 4, 5]
    monkeypatch.setattr(kept, "KEPT_JUDGMENTS", 100)
    kept._keep(campaigns[0], reading(95))
    assert list(kept._kept) == [0]
    kept._keep(campaigns[1], reading(1000))  # the newest is kept however large it is
    assert list(kept._kept) == [1]


# -- the log ------------------------------------------------------------------------------------------------


def log_of(*rows):
    """Return a log of rows (id, item, assessor, sequence, grade, purpose)."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 6).T
    return log.Log(*columns, time=columns[0].astype(np.float64))


def rows_of(found):
    names = ("id", "item", "assessor", "sequence", "grade", "purpose")
    return list(zip(*(getattr(found, name).tolist() for name in names), strict=True))


def test_a_completed_log_has_each_judgment_once_in_order_with_its_newest_purpose():
    known = log_of((1, 0, 0, 1, 3, log.JUDGE), (4, 1, 0, 1, 2, log.JUDGE), (9, 0, 1, 1, 0, log.CHECK))
    new = log_of((1, 0, 0, 1, 3, log.VOID), (6, 0, 2, 1, 1, log.JUDGE), (12, 0, 0, 2, 2, log.VOID))
    completed = rows_of(known.merge(new))
    assert completed == [
        (1, 0, 0, 1, 3, log.VOID), (4, 1, 0, 1, 2, log.JUDGE), (6, 0, 2, 1, 1, log.JUDGE),
        (9, 0, 1, 1, 0, log.CHECK), (12, 0, 0, 2, 2, log.VOID),
    ]  # fmt: skip
    assert rows_of(known)[0] == (1, 0, 0, 1, 3, log.JUDGE)  # who holds the old one is not surprised
    assert rows_of(log_of().merge(new)) == rows_of(new)
    assert known.merge(log_of()) is known


def test_of_revised_judgments_the_highest_sequence_counts_whatever_their_ids():
    found = log_of(
        (1, 5, 0, 1, 0, 0), (2, 5, 1, 1, 1, 0), (3, 5, 0, 3, 2, 0), (4, 5, 0, 2, 3, 0), (5, 6, 0, 1, 1, 0)
    )
    assert [row[0] for row in rows_of(found.newest())] == [2, 3, 5]


# -- the watermark ------------------------------------------------------------------------------------------


def test_the_watermark_rises_to_the_newest_mark_whose_writers_have_all_ended():
    ten, twenty, thirty = (
        watermarks.Mark(number, frozenset(writers)) for number, writers in ((10, ""), (20, "a"), (30, "ab"))
    )
    start = watermarks.Watermark().advance(ten)
    assert start == watermarks.Watermark(10)
    waiting = start.advance(twenty).advance(thirty)
    assert waiting == watermarks.Watermark(10, (twenty, thirty))
    assert waiting.advance(watermarks.Mark(40, frozenset({"a"}))).last_id == 10
    assert waiting.advance(watermarks.Mark(40, frozenset({"b"}))).last_id == 20
    assert waiting.advance(watermarks.Mark(40, frozenset({"c"}))).last_id == 30
    assert waiting.advance(watermarks.Mark(40, frozenset())) == watermarks.Watermark(40)


def test_forgetting_marks_never_raises_the_watermark():
    watermark = watermarks.Watermark()
    for number in range(1, 200):
        watermark = watermark.advance(watermarks.Mark(number, frozenset({"a"})))
    assert watermark.last_id == 0
    assert len(watermark.marks) == watermarks.MOST_MARKS
    assert watermark.advance(watermarks.Mark(600, frozenset({"a"}))).last_id == 0
    assert watermark.advance(watermarks.Mark(600, frozenset({"b"}))).last_id == 199
