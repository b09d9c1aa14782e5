"""Which grades are in question: the pure ranking against sums written out, and the queue stored with a computation."""

import itertools
import math
import uuid

import numpy as np
import pytest
from small_campaign import give, judge_all, judge_audit, make_assessor, make_campaign, slots, true_grade

from analytics.estimation.disputes import disputes, grade_shares, spreads
from analytics.estimation.samples import Labels
from analytics.models import DisputedItem
from analytics.services.disputed import MOST, open_disputes
from analytics.services.recomputation import recompute
from judging.models import Item
from judging.services.adjudication import adjudicate
from sampling.measures.sparse import from_dense
from sampling.services.auditing import audit
from touchstone.models import User


def by_bayes(labels, confusion, n_grades):
    """Return P(true grade | labels) of one item with the frequency of grades as prior, by multiplication."""
    every = [grade for found in labels for _, grade in found]
    prior = [every.count(grade) / len(every) for grade in range(n_grades)]
    shares = []
    for found in labels:
        weights = [prior[t] * math.prod(confusion[a][t][g] for a, g in found) for t in range(n_grades)]
        shares.append([weight / sum(weights) for weight in weights])
    return shares


def flat(labels):
    rows = [(item, who, grade) for item, found in enumerate(labels) for who, grade in found]
    return [np.array(column) for column in zip(*rows, strict=True)]


def test_shares_follow_bayes_rule_with_each_judges_measured_errors():
    labels = [[(0, 1), (1, 0)], [(0, 2)], [(1, 2), (0, 2)], [(1, 1)]]
    confusion = np.array(
        [
            [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.05, 0.15, 0.8]],
            [[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]],
        ]
    )
    found = grade_shares(Labels(*flat(labels), n_items=4, n_assessors=2, n_grades=3), confusion=confusion)
    assert found == pytest.approx(np.array(by_bayes(labels, confusion, 3)))


def test_without_measured_errors_more_agreeing_judges_make_a_grade_surer():
    labels = [[(0, 1)], [(0, 1), (1, 1)], [(0, 1), (1, 0)], [(0, 0)]]
    found = grade_shares(Labels(*flat(labels), n_items=4, n_assessors=2, n_grades=2))
    assert found.sum(axis=1) == pytest.approx(np.ones(4))
    assert found[1, 1] > found[0, 1] > found[2, 1] > found[3, 1] > 0


def test_spread_is_the_root_mean_square_difference_over_pairs_of_runs():
    rng = np.random.default_rng(3)
    table = rng.random((5, 30)) * (rng.random((5, 30)) < 0.5)
    table[:, 7] = 0.3  # all runs alike
    pairs = list(itertools.combinations(range(5), 2))
    wanted = [
        math.sqrt(sum((table[a, i] - table[b, i]) ** 2 for a, b in pairs) / len(pairs)) for i in range(30)
    ]
    found = spreads(from_dense(table))
    assert found == pytest.approx(wanted, abs=1e-12)
    assert found[7] == 0.0
    assert spreads(from_dense(table[:1])) == pytest.approx(table[0])


def test_the_worst_come_first_and_no_more_than_asked():
    rng = np.random.default_rng(4)
    weights, gains = rng.random((3, 40)), np.array([0.0, 1.0, 3.0])
    shares = rng.dirichlet(np.ones(3), 40)
    joint = rng.integers(0, 3, 40)
    may = rng.random(40) < 0.8
    spread = spreads(from_dense(weights))
    priority = [
        spread[i] * sum(shares[i, t] * abs(gains[t] - gains[joint[i]]) for t in range(3)) if may[i] else 0.0
        for i in range(40)
    ]
    found = disputes(from_dense(weights), shares, joint, gains, may, 10)
    assert found.item.tolist() == sorted(range(40), key=lambda i: -priority[i])[:10]
    assert found.influence * found.error_probability == pytest.approx([priority[i] for i in found.item])
    assert found.error_probability == pytest.approx([1 - shares[i, joint[i]] for i in found.item])


def test_a_grade_that_moves_nothing_is_in_no_queue():
    alike, sure = from_dense(np.array([[0.5], [0.5]])), from_dense(np.array([[0.5], [0.0]]))
    assert disputes(alike, [[0.5, 0.5]], [0], [0.0, 1.0], [True], 5).item.size == 0
    assert disputes(sure, [[1.0, 0.0]], [0], [0.0, 1.0], [True], 5).item.size == 0
    assert disputes(sure, [[0.5, 0.5]], [0], [1.0, 1.0], [True], 5).item.size == 0
    assert disputes(sure, [[0.5, 0.5]], [0], [0.0, 1.0], [False], 5).item.size == 0
    assert disputes(sure, [[0.5, 0.5]], [0], [0.0, 1.0], [True], 5).item.tolist() == [0]  # the control


# -- stored ---------------------------------------------------------------------------------------------------


@pytest.fixture
def judged(db, tmp_path):
    """A campaign judged by two who are right but for one document, on which they differ by three grades."""
    campaign = make_campaign(tmp_path)
    people = [make_assessor(campaign, name) for name in ("bob", "dora")]
    wrong = next(
        s for s in slots(campaign, number=1) if true_grade(s.item.topic.topic_id, s.item.document.doc_id) == 3
    )
    give(people[0], wrong, 0)
    judge_all(campaign, people)
    campaign.wrong = wrong.item
    return campaign


def test_the_document_on_which_judges_differ_is_in_the_queue_with_its_lower_median(judged):
    made = recompute(campaign=judged)
    queue = list(DisputedItem.objects.filter(computation=made))
    assert [one.position for one in queue] == list(range(1, len(queue) + 1))
    assert len(queue) <= MOST
    place = next(one for one in queue if one.item_id == judged.wrong.pk)
    assert place.joint_grade == 0  # the lower of 0 and 3
    assert place.reasons == ["relevance", "apart", "doubtful"]  # 0 and 3: half on each side, three apart
    assert len(queue) == 1  # on all others both agree, and nobody's errors are measured
    products = [one.influence * one.error_probability for one in queue]
    assert products == sorted(products, reverse=True)


def test_what_gold_or_a_manager_has_decided_is_left_out_from_then_on(judged):
    manager = User.objects.create(username="mara", role="manager", is_superuser=True)
    first = recompute(campaign=judged)
    assert open_disputes().filter(computation=first, item=judged.wrong).exists()
    adjudicate(item=judged.wrong, grade=3, reason="read it", actor=manager)
    assert not open_disputes().filter(computation=first, item=judged.wrong).exists()  # at once
    second = recompute(campaign=judged)
    assert not second.disputed_items.filter(item=judged.wrong).exists()
    audited = audit(campaign=judged, items_each_time=20, items_in_total=20, seed=1)
    judge_audit(judged, make_assessor(judged, "greta", "gold"))
    third = recompute(campaign=judged)
    chosen = set(audited.entries.filter(selected=True).values_list("item_id", flat=True))
    assert chosen
    queued = set(third.disputed_items.values_list("item_id", flat=True))
    assert not queued & chosen
    assert queued <= set(Item.objects.filter(campaign=judged).values_list("pk", flat=True))
    assert uuid.UUID(int=0) not in queued


def test_an_adjudication_changes_no_estimate(judged):
    manager = User.objects.create(username="mara", role="manager", is_superuser=True)
    before = recompute(campaign=judged)
    adjudicate(item=judged.wrong, grade=3, reason="", actor=manager)
    after = recompute(campaign=judged)
    names = ("run_id", "run_b_id", "measure", "method", "value", "low", "high")
    old, new = (sorted(c.estimates.values_list(*names), key=str) for c in (before, after))
    assert old == new
    assert old
