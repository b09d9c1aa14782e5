"""Gold checks and later batches: what a batch draws may have been a check; everything wanted can still be judged."""

import uuid
from collections import Counter

import pytest
from django.db import DatabaseError, transaction
from small_campaign import DEPTH, N_FRAME, give, lease, make_assessor, make_undrawn, slots, truth_of

from analytics.frames import campaign_arrays
from analytics.services.exports import qrels_lines
from judging.models import GoldAnswer, Item, Judgment, Slot
from judging.services.assign import claim, submit
from judging.services.campaigns import open_campaign, open_slots, want_judgments
from judging.services.progress import progress
from sampling.models import DrawEntry
from sampling.questions import Design
from sampling.services.drawing import draw

pytestmark = pytest.mark.django_db


def design(budget):
    return Design("pool", (), measure="DCG@10", depth=DEPTH, budget=budget)


def start(folder, **fields):
    """Return an open campaign of 12 expected items, and its two assessors."""
    campaign = make_undrawn(folder, gold_check_rate=0.4, **fields)
    draw(campaign=campaign, design=design(12), seed=20)
    open_campaign(campaign=campaign, actor=None)
    return campaign, [make_assessor(campaign, name) for name in ("ann", "ben")]


def judge_until_no_work(people):
    """Let the people take turns; return how much each has judged."""
    count, active = Counter(), list(people)
    while active:
        for person in list(active):
            held = claim(assessor=person).item
            if held is None:
                active.remove(person)
                continue
            submit(assessor=person, token=held.token, client_token=uuid.uuid4(), grade=1)
            count[person.pk] += 1
    return count


def checks(campaign, **conditions):
    return slots(campaign, "check", **conditions)


def judgments_of(items):
    """Return by item who judged it."""
    rows = Judgment.objects.filter(item__in=items).values_list("item_id", "assessor_id")
    found = {}
    for item, assessor in rows:
        found.setdefault(item, []).append(assessor)
    return found


def drawn_items(campaign):
    return set(DrawEntry.objects.filter(draw__campaign=campaign).values_list("item_id", flat=True))


@pytest.mark.parametrize("exposures", [1, 2])
def test_k_assessors_reach_k_judgments_of_every_item_and_nobody_judges_one_twice(tmp_path, exposures):
    campaign, people = start(tmp_path, gold_check_exposures=exposures)
    of_checks = {slot.item_id for slot in checks(campaign)}
    assert len(of_checks) > 3
    # One check judged by one of them, one held by one, the others untouched.
    for slot in checks(campaign, number=1)[:1]:
        give(people[0], slot, truth_of(slot))
    held = checks(campaign, number=1, state="open")[0]
    token = lease(people[1], held)
    draw(campaign=campaign, design=design(N_FRAME))
    assert drawn_items(campaign) >= of_checks
    assert campaign.slots.filter(purpose="check").get() == held
    submit(assessor=people[1], token=token, client_token=uuid.uuid4(), grade=truth_of(held))
    judge_until_no_work(people)
    judged = judgments_of(campaign.items.all())
    assert len(judged) == N_FRAME
    assert {tuple(sorted(who)) for who in judged.values()} == {tuple(sorted(p.pk for p in people))}
    assert not campaign.slots.exclude(state="done").exists()
    assert campaign.slots.filter(purpose="judge").count() == 2 * N_FRAME - 1


@pytest.mark.parametrize("become_ordinary", [True, False])
def test_what_one_cannot_judge_another_gets_also_where_it_was_a_check(tmp_path, monkeypatch, become_ordinary):
    """The control: left as they are, slots of a check are work for nobody who is not in their topic anyway."""
    campaign, (ann, ben) = start(tmp_path, judgments_per_item=1)
    were_checks = {slot.item_id for slot in checks(campaign)}
    if not become_ordinary:
        monkeypatch.setattr("judging.services.campaigns._make_judgment_slot", lambda *_: None)
    draw(campaign=campaign, design=design(N_FRAME))
    while held := claim(assessor=ann).item:
        said = {"obstacle": "language"} if held.item_id in were_checks else {"grade": 1}
        submit(assessor=ann, token=held.token, client_token=uuid.uuid4(), **said)
    judge_until_no_work([ben])
    by_ben = set(Judgment.objects.filter(assessor=ben).values_list("item_id", flat=True))
    assert by_ben == (were_checks if become_ordinary else set())


def test_a_batch_in_the_middle_gets_checks_of_its_own_and_they_are_never_drawn_items(tmp_path):
    campaign, people = start(tmp_path)
    for person in people:
        for _ in range(6):
            held = claim(assessor=person).item
            submit(assessor=person, token=held.token, client_token=uuid.uuid4(), grade=1)
    made = draw(campaign=campaign, design=design(24))
    assert made.n_drawn > 5
    drawn = drawn_items(campaign)
    only_checks = {slot.item_id for slot in checks(campaign)} - drawn
    assert only_checks
    answers = set(GoldAnswer.objects.values_list("topic_id", "document_id"))
    for item in Item.objects.filter(pk__in=only_checks):
        assert (item.topic_id, item.document_id) in answers
    # Checks have as many slots as every other item: nothing repeats.
    per_item = Counter(campaign.slots.values_list("item_id", flat=True))
    assert set(per_item.values()) == {2}
    judge_until_no_work(people)
    judged = judgments_of(drawn)
    assert {len(set(who)) for who in judged.values()} == {2}
    assert len(judged) == len(drawn)


def test_what_was_said_of_a_check_counts_once_it_is_drawn(tmp_path):
    campaign, people = start(tmp_path)
    before = campaign_arrays(campaign)
    assert before.judged.size == 0
    done = checks(campaign, number=1)[0]
    give(people[0], done, 3)
    assert list(qrels_lines(campaign, True)) == []
    draw(campaign=campaign, design=design(N_FRAME))
    done.refresh_from_db()
    assert (done.purpose, done.state, done.number) == ("judge", "done", 1)
    document, topic = done.item.document.doc_id, done.item.topic.topic_id
    assert [line.split() for line in qrels_lines(campaign, True)] == [[topic, "0", document, "3"]]
    judge_until_no_work(people)  # everybody else says 1
    after = campaign_arrays(campaign)
    assert Counter(after.label_grade.tolist()) == {3: 1, 1: 2 * N_FRAME - 1}


def test_progress_counts_what_is_wanted_of_all_batches(tmp_path):
    campaign, people = start(tmp_path)
    give(people[0], checks(campaign, number=1)[0], 1)
    draw(campaign=campaign, design=design(N_FRAME))
    counts = progress(campaign=campaign)
    assert (counts.left, counts.is_exact) == (2 * N_FRAME - 1, True)
    judge_until_no_work(people)
    assert progress(campaign=campaign).left == 0


# -- slot by slot -----------------------------------------------------------------------------------------------


@pytest.fixture
def repeated(tmp_path):
    """Return a campaign, people, and an item that was a check with five slots, as where gold is scarce."""
    campaign, _ = start(tmp_path)
    people = [make_assessor(campaign, f"bob{n}") for n in range(5)]
    taken = campaign.items.values_list("document_id", flat=True)
    topic = campaign.collection.topics.get(topic_id="t0")
    document = campaign.collection.documents.filter(doc_id__startswith="t0").exclude(pk__in=taken).first()
    item = Item.objects.create(campaign=campaign, topic=topic, document=document)
    open_slots(items=[item], purpose="check", n_each=5, seed=1)
    return campaign, people, item


def state(item):
    rows = item.slots.order_by("purpose", "number").values_list("purpose", "number", "state")
    return [f"{purpose} {number} {state}" for purpose, number, state in rows]


def test_a_check_that_was_shown_often_keeps_its_surplus_and_counts_the_first_k(repeated):
    _, people, item = repeated
    for person, number in zip(people, (3, 5, 2), strict=False):
        give(person, item.slots.get(purpose="check", number=number), 1)
    want_judgments(items=[item], k=2, seed=1)
    assert state(item) == ["check 1 open", "check 4 open", "check 5 done", "judge 1 done", "judge 2 done"]
    want_judgments(items=[item], k=2, seed=1)  # again: nothing more is wanted
    assert len(state(item)) == 5


def test_a_check_that_somebody_holds_counts_and_the_rest_is_opened(repeated):
    _, people, item = repeated
    lease(people[0], item.slots.get(purpose="check", number=4))
    want_judgments(items=[item], k=2, seed=1)
    assert state(item) == ["check 2 open", "check 3 open", "check 4 leased", "check 5 open", "judge 1 open"]


def test_new_items_get_k_slots_at_places_of_their_own(repeated):
    campaign, _, _ = repeated
    taken = campaign.items.values_list("document_id", flat=True)
    documents = campaign.collection.documents.filter(doc_id__startswith="t1").exclude(pk__in=taken)[:3]
    topic = campaign.collection.topics.get(topic_id="t1")
    items = [Item.objects.create(campaign=campaign, topic=topic, document=document) for document in documents]
    want_judgments(items=items, k=2, seed=7)
    assert [state(item) for item in items] == [["judge 1 open", "judge 2 open"]] * 3
    assert Slot.objects.filter(item__in=items).values("position").distinct().count() == 6


@pytest.mark.parametrize(
    "change",
    [{"purpose": "check"}, {"purpose": "judge", "number": 3}, {"number": 1}, {"purpose": "audit"}],
)
def test_nothing_else_of_what_is_done_can_change(repeated, change):
    _, people, item = repeated
    slot = item.slots.get(purpose="check", number=2)
    give(people[0], slot, 1)
    if change.get("purpose") == "check":
        Slot.objects.filter(pk=slot.pk).update(purpose="judge")
    with pytest.raises(DatabaseError, match=r"done is done|more than k"), transaction.atomic():
        Slot.objects.filter(pk=slot.pk).update(**change)
