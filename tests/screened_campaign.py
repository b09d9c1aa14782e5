"""The small collection, judged by six: five with care and at leisure, the last one without reading."""

import uuid

from small_campaign import DEPTH, N_FRAME, lease, make_assessor, make_undrawn, slots, truth_of

from judging.services.assign import submit
from judging.services.campaigns import open_campaign
from sampling.questions import Design
from sampling.services.drawing import draw

CAREFUL, CARELESS = ["ann", "ben", "cleo", "dan", "eve"], "hasty"


def give_in(assessor, slot, grade, seconds):
    """Judge this very slot, in so many active seconds."""
    return submit(
        assessor=assessor,
        token=lease(assessor, slot),
        client_token=uuid.uuid4(),
        grade=grade,
        active_milliseconds=round(1000 * seconds),
    )


def make_screened(folder, *, gold_check_rate=0.0):
    """Return the campaign and its assessors by name; the careless one takes half a second and grades 0."""
    campaign = make_undrawn(folder, judgments_per_item=6, gold_check_rate=gold_check_rate)
    draw(campaign=campaign, design=Design("pool", (), measure="DCG@10", depth=DEPTH, budget=N_FRAME), seed=20)
    open_campaign(campaign=campaign, actor=None)
    people = [make_assessor(campaign, name) for name in (*CAREFUL, CARELESS)]
    for place, slot in enumerate(slots(campaign, state="open")):
        person = people[slot.number - 1]
        if person is people[-1]:
            give_in(person, slot, 0, 0.4 + 0.01 * (place % 7))
        else:
            give_in(person, slot, truth_of(slot), 10 + slot.number + place % 5)
    return campaign, {person.user.username: person for person in people}
