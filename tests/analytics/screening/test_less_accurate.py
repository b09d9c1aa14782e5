"""Who is right less often than the others is flagged, though more often right than wrong, and the overview says so."""

import pytest
from screened_campaign import give_in
from small_campaign import DEPTH, N_FRAME, judge_audit, make_assessor, make_undrawn, slots, truth_of

from analytics.models import ConfusionEstimate, Flag
from analytics.services.recomputation import recompute
from analytics.services.screening import current_flags
from judging.services.campaigns import open_campaign
from sampling.questions import Design
from sampling.services.auditing import audit
from sampling.services.drawing import draw

pytestmark = pytest.mark.django_db
NAMES = ["ann", "ben", "cleo", "dan", "eve", "guy"]


def grade_of(slot, place):
    """Guy is wrong on two of five documents, all others on one of fifteen, each on documents of their own."""
    is_wrong = place % 5 < 2 if slot.number == 6 else place % 15 == slot.number
    return (truth_of(slot) + 1) % 4 if is_wrong else truth_of(slot)


def test_guy_alone_is_flagged_by_the_comparison_with_the_others(tmp_path):
    campaign = make_undrawn(tmp_path, judgments_per_item=6)
    draw(campaign=campaign, design=Design("pool", (), measure="DCG@10", depth=DEPTH, budget=N_FRAME), seed=20)
    open_campaign(campaign=campaign, actor=None)
    people = [make_assessor(campaign, name) for name in NAMES]
    for number, person in enumerate(people, start=1):
        for place, slot in enumerate(slots(campaign, number=number)):
            give_in(person, slot, grade_of(slot, place), 10 + place % 5)
    gold = make_assessor(campaign, "gina", tier="gold")
    audit(campaign=campaign, items_each_time=N_FRAME, items_in_total=N_FRAME, strategy="simple", seed=5)
    judge_audit(campaign, gold)
    computation = recompute(campaign=campaign)
    rows = ConfusionEstimate.objects.filter(computation=computation, assessor__user__username="guy")
    assert rows.get().accuracy_high > 0.5  # one half is no evidence
    flags = {
        (flag.assessor.user.username, flag.kind) for flag in Flag.objects.filter(computation=computation)
    }
    assert flags == {("guy", "less-accurate")}
    flag = current_flags(campaign).get()
    assert flag.p_adjusted < 0.05
    assert flag.effect == pytest.approx(rows.get().accuracy)
    assert flag.evidence.startswith(
        "Gives the exact grade of known answers less often than the other assessors do"
    )
