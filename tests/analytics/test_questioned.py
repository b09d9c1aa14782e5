"""The five rules of what is in question, against a second computation of them, item by item in plain Python."""

import random
import uuid

import numpy as np
import pytest
from small_campaign import N_FRAME, give, lease, make_assessor, make_campaign, slots, truth_of

from analytics.estimation.questioned import REASONS, in_question, reason
from analytics.estimation.samples import Labels
from analytics.frames import current_arrays
from analytics.models import DisputedItem
from analytics.services.confusions import assessor_confusion_counts
from analytics.services.dispute_queue import dispute_queue, newest_with_disputes
from analytics.services.disputed import doubtful_labels
from analytics.services.recomputation import recompute
from judging.models import Judgment, Message
from judging.services.adjudication import adjudicate
from judging.services.assign import submit
from judging.services.places_left import compute_places_left
from sampling.rejudging import shortest_queue
from touchstone.models import User


def by_grades(grades, relevant_grade):
    """Return the rules that grades of one item alone meet."""
    above = sum(grade >= relevant_grade for grade in grades)
    found = set()
    if above and above < len(grades) and max(above, len(grades) - above) / len(grades) < 2 / 3 - 1e-12:
        found.add("relevance")
    if any(abs(a - b) >= 2 for a in grades for b in grades):
        found.add("apart")
    return found


def listed(priority, wrong):
    """Return the first half of the sum of what is wrong with probability .25 or more."""
    may = sorted((i for i in range(len(wrong)) if wrong[i] >= 0.25), key=lambda i: (-priority[i], i))
    total, before, found = sum(priority[i] for i in may), 0.0, set()
    for i in may:
        if priority[i] > 0 and before < total / 2:
            found.add(i)
        before += priority[i]
    return found


def test_on_random_grades_the_rules_are_those_of_a_loop():
    rng = random.Random(5)
    for _ in range(400):
        n_items, n_grades = rng.randint(1, 12), rng.randint(2, 5)
        relevant = rng.randint(1, n_grades - 1)
        grades = [[rng.randrange(n_grades) for _ in range(rng.randint(1, 6))] for _ in range(n_items)]
        rows = [(item, who, grade) for item, given in enumerate(grades) for who, grade in enumerate(given)]
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        labels = Labels(*columns, n_items, 6, n_grades, relevant)
        priority, wrong = (np.array([rng.random() for _ in range(n_items)]) for _ in range(2))
        may = np.array([rng.random() < 0.8 for _ in range(n_items)])
        doubtful = np.zeros(n_items, dtype=bool)
        doubtful[shortest_queue(priority, wrong)] = True
        found = in_question(labels, doubtful, may)
        expected = listed(priority.tolist(), wrong.tolist())
        for item, given in enumerate(grades):
            wanted = by_grades(given, relevant) | ({"doubtful"} if item in expected else set())
            keys = {key for key, mask in found.items() if mask[item]}
            assert keys == (wanted if may[item] else set())


def test_two_of_three_on_one_side_are_two_thirds_and_no_dispute():
    def keys(*grades):
        labels = Labels([0] * len(grades), list(range(len(grades))), list(grades), 1, 6, 4, 1)
        return {key for key, mask in in_question(labels, [False], [True]).items() if mask[0]}

    assert keys(0, 1, 1) == set()
    assert keys(0, 1) == {"relevance"}
    assert keys(0, 1, 0, 1, 1) == {"relevance"}  # three of five
    assert keys(1, 3) == {"apart"}
    assert keys(2) == set()


def test_each_reason_says_in_words_why():
    assert [one.key for one in REASONS] == ["relevance", "apart", "doubtful", "stuck", "asked"]
    assert all(one.label and one.help.endswith(".") for one in REASONS)
    assert reason("stuck").label == "Stuck"


# -- campaigns ------------------------------------------------------------------------------------------------


def judge_randomly(campaign, seed, most_steps):
    """Have two people judge, the second with random steps from the truth; one item is given back by both."""
    rng = random.Random(seed)
    people = [make_assessor(campaign, name) for name in ("ann", "ben")]
    stuck = slots(campaign, number=1)[rng.randrange(N_FRAME)].item_id
    for slot in slots(campaign):
        person, grade = people[slot.number - 1], truth_of(slot)
        if most_steps and slot.item_id == stuck:
            sent = {"grade": None, "obstacle": "topic", "client_token": uuid.uuid4()}
            submit(assessor=person, token=lease(person, slot), **sent)
            continue
        if slot.number == 2:
            grade = min(3, max(0, grade + rng.randint(-most_steps, most_steps)))
        give(person, slot, grade)
    return stuck


@pytest.mark.django_db
@pytest.mark.parametrize("seed", [1, 2])
def test_the_queue_of_a_random_campaign_is_that_of_the_five_rules(tmp_path, seed):
    campaign = make_campaign(tmp_path)
    stuck = judge_randomly(campaign, seed, most_steps=3)
    compute_places_left(campaign=campaign)
    ann = campaign.assessors.get(user__username="ann")
    Message.objects.create(
        assessor=ann, sender=ann.user, text="Which year?", is_from_assessor=True, item_id=stuck
    )
    recompute(campaign=campaign)
    arrays = current_arrays(campaign)
    everything = np.ones(arrays.judged.size, dtype=bool)
    doubtful = doubtful_labels(arrays, campaign, assessor_confusion_counts(arrays), everything)
    keys = list(arrays.frame[arrays.judged].select("topic_id", "doc_id").iter_rows())
    given = {}
    for row in Judgment.objects.filter(item__campaign=campaign, grade__isnull=False).select_related(
        "item__topic", "item__document"
    ):
        given.setdefault((row.item.topic.topic_id, row.item.document.doc_id), []).append(row.grade)
    # No error is measured: grades that agree are not doubtful.
    priority = [
        value if len(set(given[key])) > 1 else 0.0 for key, value in zip(keys, doubtful.priority, strict=True)
    ]
    chosen = listed(priority, doubtful.error_probability.tolist())
    wanted = {
        key: by_grades(given[key], campaign.scale.relevant_grade)
        | ({"doubtful"} if place in chosen else set())
        for place, key in enumerate(keys)
    }
    items = {
        (item.topic.topic_id, item.document.doc_id): item.pk
        for item in campaign.items.select_related("topic", "document")
    }
    expected = {items[key]: why for key, why in wanted.items() if why}
    expected[stuck] = expected.get(stuck, set()) | {"stuck", "asked"}
    queue = dispute_queue(newest_with_disputes(campaign))
    assert {one.item: {why.key for why in one.reasons} for one in queue} == expected
    assert [one.position for one in queue] == list(range(1, len(queue) + 1))
    boss = User.objects.create(username="boss", role="manager")
    adjudicate(item=campaign.items.get(pk=stuck), grade=None, reason="", actor=boss, verdict="stands")
    assert stuck not in {one.item for one in dispute_queue(newest_with_disputes(campaign))}


@pytest.mark.django_db
def test_none_is_in_question_where_all_agree(tmp_path):
    campaign = make_campaign(tmp_path)
    judge_randomly(campaign, 1, most_steps=0)
    compute_places_left(campaign=campaign)
    recompute(campaign=campaign)
    assert not DisputedItem.objects.exists()
    assert dispute_queue(newest_with_disputes(campaign)) == []
