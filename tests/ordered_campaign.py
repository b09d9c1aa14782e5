"""A small campaign that judges by what it tells: three topics of 14 pooled documents, all of them drawn."""

import uuid

from small_campaign import DEPTH, N_FRAME, make_undrawn, truth_of

from judging.models import Campaign, Slot
from judging.services.assign import claim, submit
from judging.services.campaigns import open_campaign
from sampling.questions import Design
from sampling.services.drawing import draw

DESIGN = Design("pool", (), measure="DCG@10", depth=DEPTH, budget=N_FRAME)


def make_undrawn_order(folder, **fields):
    return make_undrawn(folder, judgments_per_item=1, judging_order="informative", **fields)


def make_ordered(folder, **fields):
    """Return it drawn and open."""
    made = make_undrawn_order(folder, **fields)
    draw(campaign=made, design=DESIGN, seed=20)
    open_campaign(campaign=made, actor=None)
    return Campaign.objects.get(pk=made.pk)


def judge_next(assessor):
    """Claim and judge truly; return topic and document."""
    item = claim(assessor=assessor).item
    slot = Slot.objects.select_related("item__topic", "item__document").get(pk=item.slot_id)
    submit(assessor=assessor, token=slot.token, client_token=uuid.uuid4(), grade=truth_of(slot))
    return slot.item.topic.topic_id, slot.item.document.doc_id
