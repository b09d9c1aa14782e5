"""Answers on gold checks stay in force when an assessor's judgments are made again by others."""

import numpy as np
import pytest
from small_campaign import give, judge_all, make_assessor, make_campaign, slots, truth_of

from analytics.frames import campaign_arrays
from judging.models import Slot
from judging.services.leases import requeue
from sampling.questions import Design
from sampling.services.auditable import check_counts
from sampling.services.drawing import draw

pytestmark = pytest.mark.django_db


def answers(campaign, user):
    """Return what the assessor answered on checks: true and given grades."""
    arrays = campaign_arrays(campaign)
    who = [person.user.username for person in arrays.assessors].index(user)
    own = arrays.check_assessor == who
    return sorted(zip(arrays.check_true[own].tolist(), arrays.check_given[own].tolist(), strict=True))


@pytest.fixture
def campaign(tmp_path):
    made = make_campaign(tmp_path, budget=20, kind="pair", gold_check_rate=0.5)
    people = [make_assessor(made, name) for name in ("ann", "ben", "col")]
    judge_all(made, people)
    for check in slots(made, "check", state="open")[::2]:
        give(people[0], check, (truth_of(check) + 1) % 4)
    return made


def test_a_requeued_assessor_keeps_the_answers_on_checks_and_loses_the_labels(campaign):
    before, counts = answers(campaign, "ann"), check_counts(campaign)
    assert len(before) >= 5
    labels = campaign_arrays(campaign).label_grade.size
    n_done = Slot.objects.filter(campaign=campaign, state="done").count()
    assert requeue(assessor=campaign.assessors.get(user__username="ann"), actor=None) > len(before)
    assert answers(campaign, "ann") == before
    assert np.array_equal(check_counts(campaign), counts)
    assert campaign_arrays(campaign).label_grade.size < labels
    opened = Slot.objects.filter(campaign=campaign, purpose="check", state="open")
    assert set(Slot.objects.filter(was="check").values_list("item", "number")) <= set(
        opened.values_list("item", "number")
    )
    assert Slot.objects.filter(campaign=campaign, state="done").count() == n_done


def test_the_answer_on_a_former_check_is_no_label_of_an_item_that_is_drawn_later(campaign):
    requeue(assessor=campaign.assessors.get(user__username="ann"), actor=None)
    former = set(Slot.objects.filter(was="check").values_list("item", flat=True))
    before = answers(campaign, "ann")
    draw(campaign=campaign, design=Design("pool", (), measure="DCG@10", depth=10, budget=42), seed=20)
    drawn = set(Slot.objects.filter(campaign=campaign, purpose="judge").values_list("item", flat=True))
    assert former & drawn, "the batch draws an item that was a check"
    arrays = campaign_arrays(campaign)
    assert answers(campaign, "ann") == before
    who = [person.user.username for person in arrays.assessors].index("ann")
    assert not (arrays.label_assessor == who).any()
