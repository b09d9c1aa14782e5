"""The training round: chosen apart from all that counts, told at once, passed or asked for, and then fixed."""

import threading
from collections import Counter

import pytest
from django.db import connection
from quick_flush import unguarded
from small_campaign import make_assessor, make_campaign, true_grade
from trainees import choose, go_through, off_by_one, refused

from judging.models import (
    Assessor,
    Campaign,
    Document,
    GoldAnswer,
    Item,
    Judgment,
    Topic,
    TrainingAnswer,
    TrainingItem,
)
from judging.models.entry import TrainingGrant
from judging.services import entry, training
from judging.services.errors import (
    AssessorSuspended,
    CampaignNotOpen,
    GradeOffScale,
    TrainingFixed,
    TrainingNotPossible,
    TrainingOver,
)
from touchstone.models import Event

pytestmark = pytest.mark.django_db


# -- choosing -------------------------------------------------------------------------------------------------


def test_training_items_are_gold_answers_that_are_neither_drawn_nor_checks(campaign):
    made = choose(campaign, n=10)
    items = set(Item.objects.filter(campaign=campaign).values_list("topic_id", "document_id"))
    assert campaign.slots.filter(purpose="check").exists()
    assert campaign.slots.filter(purpose="judge").exists()
    assert not items & {(item.topic_id, item.document_id) for item in made}
    for item in campaign.training_items.select_related("topic", "document"):
        assert item.grade == true_grade(item.topic.topic_id, item.document.doc_id)
    assert sorted(item.position for item in made) == list(range(1, 11))


def test_they_are_spread_over_the_grades_and_over_the_topics(campaign):
    made = choose(campaign, n=8)
    assert Counter(item.grade for item in made) == {0: 2, 1: 2, 2: 2, 3: 2}
    assert max(Counter(item.topic_id for item in made).values()) <= 4  # 8 over 3 topics


def test_the_same_seed_chooses_the_same_and_another_seed_others(campaign):
    def pairs(seed):
        return [(item.topic_id, item.document_id) for item in choose(campaign, seed=seed)]

    assert pairs(1) == pairs(1)
    assert len({tuple(pairs(seed)) for seed in range(5)}) > 1


def test_choosing_again_takes_the_place_of_what_was_chosen_and_none_ends_the_training(campaign):
    choose(campaign, n=6)
    choose(campaign, n=3)
    assert campaign.training_items.count() == 3
    bob = make_assessor(campaign, "bob")
    assert entry.next_gate(bob) == "judging:training"
    choose(campaign, n=0)
    assert entry.next_gate(bob) is None


def test_more_than_there_are_and_more_than_twenty_are_refused_and_nothing_changes(campaign, tmp_path):
    choose(campaign, n=3)
    with unguarded(["judging_goldanswer"]):
        GoldAnswer.objects.filter(grade=0).delete()
    free = len(training._free_gold_answers(campaign))
    assert 0 < free < 20
    with pytest.raises(TrainingNotPossible, match=f"only {free} gold answers"):
        choose(campaign, n=20)
    for wrong in (-1, 21):
        with pytest.raises(TrainingNotPossible, match="0 to 20"):
            choose(campaign, n=wrong)
    assert campaign.training_items.count() == 3


def test_before_the_draw_nothing_is_chosen(campaign):
    bare = Campaign.objects.create(
        collection=campaign.collection, scale=campaign.scale, name="not drawn", gold_check_rate=0
    )
    with pytest.raises(TrainingNotPossible, match="draw the campaign's items first"):
        choose(bare)


def test_a_gold_answer_off_the_scale_of_this_campaign_is_not_chosen(campaign):
    with unguarded(["judging_grade"]):
        campaign.scale.grades.filter(value=3).delete()
    assert {item.grade for item in choose(campaign, n=9)} == {0, 1, 2}


def test_from_the_first_answer_on_nothing_about_the_training_changes(bob, alice):
    campaign = bob.campaign
    item = campaign.training_items.get(position=1)
    training.answer(assessor=bob, position=1, attempt=1, grade=item.grade)
    with pytest.raises(TrainingFixed):
        choose(campaign)
    with pytest.raises(TrainingFixed):
        training.set_explanations(campaign=campaign, texts={2: "because"}, user=alice)


# -- PostgreSQL's own promises --------------------------------------------------------------------------------


def test_postgresql_keeps_training_items_as_they_are_once_somebody_has_answered(bob):
    items = TrainingItem.objects.filter(campaign=bob.campaign)
    items.filter(position=2).update(explanation="free to change as yet")
    training.answer(assessor=bob, position=1, attempt=1, grade=0)
    for change in (
        lambda: items.filter(position=2).update(grade=0),
        lambda: items.filter(position=2).update(explanation="later"),
        lambda: items.filter(position=2)._raw_delete("default"),
        lambda: TrainingItem.objects.create(
            campaign=bob.campaign, topic=items[0].topic, document=Document.objects.last(), grade=0, position=9
        ),
    ):
        expected, alone = refused()
        with expected, alone:
            change()


def test_postgresql_keeps_training_apart_from_what_the_campaign_wants_judged(campaign):
    drawn = campaign.items.first()
    other = Topic.objects.create(collection=campaign.collection, topic_id="elsewhere", title="E")
    gold = training._free_gold_answers(campaign)[0]
    fits = {"campaign": campaign, "topic": gold.topic, "document": gold.document, "grade": 1, "position": 1}
    for wrong in (
        {"topic": drawn.topic, "document": drawn.document},
        {"grade": 7},
        {"grade": -1},
        {"position": 0},
        {"position": 21},
    ):
        expected, alone = refused()
        with expected, alone:
            TrainingItem.objects.create(**{**fits, **wrong})
    TrainingItem.objects.create(**{**fits, "topic": other})  # the control: nothing else was wrong


def test_postgresql_refuses_answers_off_the_scale_beyond_the_attempts_and_of_other_campaigns(bob, tmp_path):
    item = bob.campaign.training_items.first()
    (tmp_path / "other").mkdir()
    stranger = make_assessor(make_campaign(tmp_path / "other"), "stranger")
    for wrong in ({"grade": 9}, {"attempt": 3}, {"attempt": 0}, {"assessor": stranger}):
        expected, alone = refused()
        with expected, alone:
            TrainingAnswer.objects.create(
                **{"assessor": bob, "item": item, "attempt": 1, "grade": 1, **wrong}
            )
    TrainingAnswer.objects.create(assessor=bob, item=item, attempt=2, grade=1)
    for change in (TrainingAnswer.objects.update, TrainingGrant.objects.update):
        TrainingGrant.objects.get_or_create(assessor=bob)
        expected, alone = refused()
        with expected, alone:
            change(assessor=bob)


# -- the trainee ----------------------------------------------------------------------------------------------


def test_enough_right_answers_pass_and_open_the_judging(bob):
    assert entry.next_gate(bob) == "judging:training"
    now = go_through(bob, n_right=3)
    assert (now.n_right, now.is_passed, now.attempts_left) == (3, True, 0)
    assert bob.trained_at is not None
    assert entry.next_gate(bob) is None
    assert Judgment.objects.count() == 0
    assert Assessor.objects.get(pk=bob.pk).n_judged == 0
    assert Event.objects.get(verb="passed training").detail == {"attempt": 1, "right": 3, "of": 4}
    with pytest.raises(TrainingOver):
        training.answer(assessor=bob, position=1, attempt=2, grade=0)


@pytest.mark.parametrize("n_right", range(5))
def test_the_threshold_is_the_campaigns(bob, n_right):
    assert go_through(bob, n_right).is_passed == (n_right >= 3)


def test_seven_of_ten_reach_a_share_of_seven_tenths(campaign):
    choose(campaign, n=10)
    Campaign.objects.update(training_pass_share=0.7)
    assert not go_through(make_assessor(campaign, "six"), 6).is_passed
    assert go_through(make_assessor(campaign, "seven"), 7).is_passed


def test_after_the_last_attempt_only_the_manager_helps(bob, alice):
    first = go_through(bob, n_right=2)
    assert (first.attempt, first.is_complete, first.attempts_left) == (1, True, 1)
    second = go_through(bob, n_right=0)
    assert (second.attempt, second.attempts_left) == (2, 0)
    with pytest.raises(TrainingOver):
        training.answer(assessor=bob, position=1, attempt=3, grade=0)
    assert [row.is_stuck for row in training.trainees(campaign=bob.campaign)] == [True]
    training.grant_attempt(assessor=bob, user=alice)
    training.grant_attempt(assessor=bob, user=alice)  # pressed twice
    assert TrainingGrant.objects.count() == 1
    assert [row.is_stuck for row in training.trainees(campaign=bob.campaign)] == [False]
    assert go_through(bob, n_right=4).is_passed
    assert Event.objects.filter(verb="granted a training attempt", actor=alice).count() == 1


def test_the_second_attempt_has_the_same_items_in_another_order(campaign):
    choose(campaign, n=12)
    bob = make_assessor(campaign, "bob")
    first = go_through(bob, n_right=0).items
    second = training.training_of(assessor=bob, again=True)
    assert second.attempt == 2
    assert second.answers == {}
    assert {item.pk for item in second.items} == {item.pk for item in first}
    assert second.items != first
    assert training.training_of(assessor=bob, again=True).items == second.items  # and stays so


def test_the_first_answer_stands_however_often_one_answers(bob):
    item = bob.campaign.training_items.get(position=1)
    training.answer(assessor=bob, position=1, attempt=1, grade=off_by_one(item.grade))
    again = training.answer(assessor=bob, position=1, attempt=1, grade=item.grade)
    assert again.grade == off_by_one(item.grade)
    assert TrainingAnswer.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_eight_answers_at_once_are_one_and_decide_once(bob):
    items = list(bob.campaign.training_items.all())
    for item in items[:-1]:
        training.answer(assessor=bob, position=item.position, attempt=1, grade=item.grade)
    start, given = threading.Barrier(8), []

    def one(grade):
        start.wait()
        try:
            made = training.answer(assessor=bob, position=items[-1].position, attempt=1, grade=grade % 4)
            given.append((made.pk, made.grade))
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=[grade]) for grade in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == 8
    assert len(set(given)) == 1
    assert TrainingAnswer.objects.count() == 4
    assert Event.objects.filter(verb__in=["passed training", "failed training"]).count() == 1


def test_what_is_not_to_be_answered_is_refused(bob):
    with pytest.raises(GradeOffScale):
        training.answer(assessor=bob, position=1, attempt=1, grade=4)
    for wrong in ({"position": 5}, {"attempt": 2}, {"attempt": 0}):
        with pytest.raises(TrainingOver):
            training.answer(assessor=bob, **{"position": 1, "attempt": 1, "grade": 0, **wrong})
    Assessor.objects.update(status="suspended")
    with pytest.raises(AssessorSuspended):
        training.answer(assessor=bob, position=1, attempt=1, grade=0)
    Assessor.objects.update(status="active")
    Campaign.objects.update(state="closed")
    with pytest.raises(CampaignNotOpen):
        training.answer(assessor=bob, position=1, attempt=1, grade=0)
    assert TrainingAnswer.objects.count() == 0


def test_gold_tier_and_machines_need_no_training(campaign):
    choose(campaign)
    gold, machine = make_assessor(campaign, "gold", "gold"), make_assessor(campaign, "machine")
    Assessor.objects.filter(pk=machine.pk).update(kind="machine")
    machine.refresh_from_db()
    assert [entry.next_gate(one) for one in (gold, machine)] == [None, None]
    assert entry.next_gate(make_assessor(campaign, "silver", "silver")) == "judging:training"
    assert [row.assessor.user.username for row in training.trainees(campaign=campaign)] == ["silver"]


def test_the_list_of_trainees_costs_the_same_whether_one_trains_or_many(campaign, django_assert_num_queries):
    choose(campaign)
    for number in range(6):
        go_through(make_assessor(campaign, f"bob{number}"), n_right=number % 5)
    with django_assert_num_queries(3):
        rows = training.trainees(campaign=campaign)
    right = {row.assessor.user.username: row.training.n_right for row in rows}
    assert right == {f"bob{number}": number % 5 for number in range(6)}
