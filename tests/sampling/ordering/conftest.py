"""A small campaign that judges by what it tells: three topics of 14 pooled documents, all of them drawn."""

import pytest
from small_campaign import DEPTH, N_FRAME, make_assessor, make_undrawn

from judging.services.campaigns import open_campaign
from sampling.questions import Design
from sampling.services.drawing import draw
from sampling.services.ordering import forget

DESIGN = Design("pool", (), measure="DCG@10", depth=DEPTH, budget=N_FRAME)


@pytest.fixture(autouse=True)
def nothing_kept():
    forget()
    yield
    forget()


@pytest.fixture
def undrawn(tmp_path):
    return make_undrawn(tmp_path, judgments_per_item=1, judging_order="informative")


@pytest.fixture
def campaign(undrawn):
    draw(campaign=undrawn, design=DESIGN, seed=20)
    open_campaign(campaign=undrawn, actor=None)
    undrawn.refresh_from_db()
    return undrawn


@pytest.fixture
def ann(campaign):
    return make_assessor(campaign, "ann")
