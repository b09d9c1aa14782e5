"""What a campaign that judges by what it tells puts first, after every judgment; and when it is put in order anew."""

import uuid
from datetime import timedelta

import numpy as np
import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from ordered_campaign import judge_next
from small_campaign import (
    DOCUMENTS,
    N_FRAME,
    TOPICS,
    doc_id,
    give,
    lease,
    make_assessor,
    returned,
    slots,
    true_grade,
)

import sampling.tasks
from judging.models import Slot
from judging.services.assign import claim, submit
from judging.services.leases import requeue
from judging.services.more_judgments import open_one_more
from judging.services.places import exchange_places
from sampling.experts import Preferences, RankedPool, consensus
from sampling.minimal import ModelTopic, shift_to_prevalence
from sampling.minimal_collection import AVERAGE_PRECISION, collect
from sampling.models import JudgingLook
from sampling.services import ordering
from sampling.services.ordering import RULE, newest_look, order_judging, start_due_orders
from touchstone import jobs
from touchstone.models import Job

pytestmark = pytest.mark.django_db


def model(topic):
    """Return a topic's model from the runs as they were written, without the product's frame."""
    ids = [doc_id(topic, d) for d in range(DOCUMENTS)]
    ranks = np.full((3, DOCUMENTS), np.inf)
    for run in range(3):
        for (topic_id, document), rank in returned(run).items():
            if topic_id == TOPICS[topic]:
                ranks[run, ids.index(document)] = rank
    p = consensus(Preferences.of(RankedPool.of(ranks))).probability
    return ids, ModelTopic.of(ranks, shift_to_prevalence(p, RULE.prevalence))


def test_after_every_judgment_the_next_of_a_topic_is_what_the_model_chooses(campaign, ann):
    order_judging(campaign=campaign)
    models = {topic_id: model(topic) for topic, topic_id in enumerate(TOPICS)}
    n_first = 0
    for _ in range(N_FRAME):
        topic_id, document = judge_next(ann)
        ids, one = models[topic_id]
        spread = np.where(one.is_judged, -np.inf, AVERAGE_PRECISION.spread(one))
        assert document == ids[int(np.argmax(spread))]
        n_first += document == ids[0]
        models[topic_id] = (ids, one.with_judgment(ids.index(document), true_grade(topic_id, document) >= 1))
        order_judging(campaign=campaign)
    assert claim(assessor=ann).item is None
    assert n_first == len(TOPICS)


def test_without_the_order_another_document_comes(campaign, ann):
    """The control of the test above: places as they were laid out."""
    expected = {topic_id: model(t)[0][int(np.argmax(AVERAGE_PRECISION.spread(model(t)[1])))]
                for t, topic_id in enumerate(TOPICS)}  # fmt: skip
    first = [min(slots(campaign, topic__topic_id=t), key=lambda slot: slot.position) for t in TOPICS]
    assert {slot.item.topic.topic_id: slot.item.document.doc_id for slot in first} != expected


def test_an_assessor_who_judges_in_this_order_reaches_the_stop_that_the_pure_rule_reaches(campaign, ann):
    """One topic after another, as claims give them; scores and probabilities are those of `collect`."""
    order_judging(campaign=campaign)
    places, has_stopped = [], False
    while not has_stopped and len(places) < N_FRAME:
        topic_id, document = judge_next(ann)
        places.append((TOPICS.index(topic_id), int(document[-2:])))
        has_stopped = order_judging(campaign=campaign).may_stop
    truth = [[true_grade(t, doc_id(k, d)) >= 1 for d in range(DOCUMENTS)] for k, t in enumerate(TOPICS)]
    pure = collect([model(t)[1] for t in range(3)], truth, RULE, sequence=places)
    look = newest_look(campaign)
    assert RULE.n_first <= look.n_judged == len(places) < N_FRAME
    assert look.may_stop is has_stopped is pure.has_signs is True
    assert list(look.scores.values()) == pytest.approx(pure.scores.tolist(), abs=1e-12)
    chances = [1 - difference.worse_probability for difference in pure.differences]
    assert [pair[2] for pair in look.pairs] == pytest.approx(chances, abs=1e-12)
    assert [pair[:2] for pair in look.pairs] == [[f"run{a}", f"run{b}"] for a, b in pure.pairs]


def test_there_is_no_look_before_thirty_judgments(campaign, ann):
    for _ in range(RULE.n_first - 1):
        judge_next(ann)
    before = order_judging(campaign=campaign)
    assert (before.n_judged, before.pairs, before.may_stop) == (29, [], False)
    judge_next(ann)
    assert len(order_judging(campaign=campaign).pairs) == 2


def test_places_are_exchanged_and_none_is_made(campaign):
    before = {t: sorted(slot.position for slot in slots(campaign, topic__topic_id=t)) for t in TOPICS}
    look = order_judging(campaign=campaign)
    assert look.n_moved > 0
    after = {t: sorted(slot.position for slot in slots(campaign, topic__topic_id=t)) for t in TOPICS}
    assert before == after
    assert order_judging(campaign=campaign).n_moved == 0


def test_slots_that_are_held_done_or_no_judgments_keep_their_places(campaign, ann):
    chosen = slots(campaign, topic__topic_id="t0")
    lease(ann, chosen[3])
    give(ann, chosen[5], 1)
    Slot.objects.filter(pk=chosen[7].pk).update(purpose="check")
    before = dict(Slot.objects.values_list("pk", "position"))
    order_judging(campaign=campaign)
    after = dict(Slot.objects.values_list("pk", "position"))
    assert all(before[chosen[n].pk] == after[chosen[n].pk] for n in (3, 5, 7))
    assert before != after
    exchange_places([slot.pk for slot in chosen])
    kept = dict(Slot.objects.values_list("pk", "position"))
    assert all(before[chosen[n].pk] == kept[chosen[n].pk] for n in (3, 5, 7))


def test_a_second_judgment_keeps_its_place(campaign, ann):
    make_assessor(campaign, "ben")
    done = slots(campaign)[0]
    give(ann, done, 1)
    assert open_one_more(campaign=campaign, items=[done.item_id], seed=1, about={}, actor=None) == 1
    second = Slot.objects.get(item=done.item_id, number=2)
    assert order_judging(campaign=campaign).n_moved > 0
    assert Slot.objects.get(pk=second.pk).position == second.position


def test_what_somebody_could_not_judge_goes_behind_what_nobody_has_seen(campaign, ann):
    order_judging(campaign=campaign)
    item = claim(assessor=ann).item
    slot = Slot.objects.get(pk=item.slot_id)
    submit(assessor=ann, token=slot.token, client_token=uuid.uuid4(), obstacle="language")
    order_judging(campaign=campaign)
    others = Slot.objects.filter(topic=slot.topic, purpose="judge").exclude(pk=slot.pk)
    slot.refresh_from_db()
    assert slot.state == "open"
    assert slot.position > max(others.values_list("position", flat=True))


def test_a_judgment_set_aside_is_open_to_the_model_again(campaign, ann):
    judge_next(ann)
    assert order_judging(campaign=campaign).n_judged == 1
    requeue(assessor=ann, actor=None)
    assert order_judging(campaign=campaign).n_judged == 0


# -- when -----------------------------------------------------------------------------------------------------


def queued():
    return Job.objects.filter(kind="order", state="queued").count()


def end_jobs():
    Job.objects.filter(kind="order").update(state="done", finished_at=timezone.now())


def look_again(campaign):
    """Do the queued job without its pause."""
    end_jobs()
    order_judging(campaign=campaign)


def test_it_is_queued_with_the_layout_and_after_five_judgments_by_the_tick_alone(campaign, ann, monkeypatch):
    monkeypatch.setattr(ordering, "PAUSE_FACTOR", 0)
    assert queued() == 1  # by the layout
    look_again(campaign)
    start_due_orders()
    assert queued() == 0
    for n in range(5):
        start_due_orders()
        assert queued() == 0, n
        judge_next(ann)
    for _ in range(2):
        start_due_orders()
        assert queued() == 1
    look_again(campaign)
    start_due_orders()
    assert queued() == 0


def test_fewer_judgments_wait_for_a_lull(campaign, ann, monkeypatch):
    monkeypatch.setattr(ordering, "PAUSE_FACTOR", 0)
    look_again(campaign)
    judge_next(ann)
    start_due_orders()
    assert queued() == 0
    monkeypatch.setattr(ordering, "LULL", timedelta(0))
    start_due_orders()
    assert queued() == 1


def test_a_long_order_is_written_rarely(campaign, ann, monkeypatch):
    look_again(campaign)
    for _ in range(6):
        judge_next(ann)
    monkeypatch.setattr(ordering, "PAUSE_FACTOR", 10**6)
    start_due_orders()
    assert queued() == 0


def test_a_lost_wake_up_loses_nothing(campaign, ann, monkeypatch):
    """Redis is away: the row is there, and the sweeper's job is the same one."""

    def refuse(*_, **__):
        raise ConnectionError("no Redis")

    monkeypatch.setattr("touchstone.celery.app.send_task", refuse)
    assert sampling.tasks.order_slots  # as a worker has it
    job = Job.objects.get(kind="order")
    assert jobs.poke(job.lane) is False
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == "done", job.error
    assert JudgingLook.objects.count() == 1


def test_the_tick_costs_one_statement_more_with_each_such_campaign(campaign, django_assert_max_num_queries):
    with django_assert_max_num_queries(7):  # one of them counts for the job's turn
        start_due_orders()


def test_a_failed_order_is_not_tried_every_tick(campaign):
    Job.objects.filter(kind="order").update(state="failed", finished_at=timezone.now())
    start_due_orders()
    assert queued() == 0
    Job.objects.filter(kind="order").update(finished_at=timezone.now() - timedelta(minutes=2))
    start_due_orders()
    assert queued() == 1


def test_a_look_is_kept_as_it_was(campaign):
    made = order_judging(campaign=campaign)
    for statement in ("UPDATE sampling_judginglook SET may_stop = true", "DELETE FROM sampling_judginglook"):
        with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    assert JudgingLook.objects.get().pk == made.pk


def test_two_assessors_hold_the_first_two(campaign, ann):
    order_judging(campaign=campaign)
    ben = make_assessor(campaign, "ben")
    topic = campaign.collection.topics.get(topic_id="t1")
    ann.first_topics.set([topic])
    ben.first_topics.set([topic])
    held = [claim(assessor=one).item.slot_id for one in (ann, ben)]
    assert len(set(held)) == 2
