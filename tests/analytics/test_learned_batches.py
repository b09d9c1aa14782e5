"""What the estimates are predicted from after a batch whose sizes were learned: with `refit` from that batch as well,
once it is judged; with `exact`, and after draws that do not say, from the batches before it only."""

import json
import uuid

import numpy as np
import pytest
from small_campaign import DEPTH, give, judge_all, lease, make_assessor, make_undrawn, slots, truth_of

from analytics.frames import campaign_arrays, current_arrays
from analytics.numbers.predictions import Predictions
from analytics.releases.verify_facts import batches_to_learn_from
from judging.services.assign import submit
from judging.services.campaigns import open_campaign
from sampling.models import Draw
from sampling.questions import Design
from sampling.services.drawing import draw

GAINS = np.array([0.0, 0.0, 1.0, 1.0])


def design(budget, **fields):
    return Design("pair", ("run0", "run2"), "DCG@10", DEPTH, budget, **fields)


def learned(folder, **fields):
    """Return a campaign whose second batch learned from the first, which is judged, and its assessors."""
    campaign = make_undrawn(folder)
    draw(campaign=campaign, design=design(18), seed=20)
    open_campaign(campaign=campaign, actor=None)
    people = [make_assessor(campaign, name) for name in ("ann", "ben")]
    judge_all(campaign, people)
    draw(campaign=campaign, design=design(30, prior="judgments", **fields))
    return campaign, people


def judge_but_one(campaign, people):
    """Judge all open slots but those of the last item; return one of these."""
    waiting = [slot for slot in slots(campaign) if slot.state == "open"]
    kept_back = waiting[-1].item_id
    for slot in waiting:
        if slot.item_id != kept_back:
            give(people[slot.number - 1], slot, truth_of(slot))
    return next(slot for slot in waiting if slot.item_id == kept_back)


@pytest.mark.django_db
def test_a_batch_that_learned_is_learned_from_as_soon_as_all_of_it_is_judged(tmp_path):
    campaign, people = learned(tmp_path)
    assert campaign_arrays(campaign).n_learned == 1
    judge_but_one(campaign, people)
    before = current_arrays(campaign)
    assert before.n_learned == 1
    judge_all(campaign, people)
    after = current_arrays(campaign)
    assert after.n_learned == campaign_arrays(campaign).n_learned == 2
    draw(campaign=campaign, design=design(36))
    assert campaign_arrays(campaign).n_learned == 2
    judge_all(campaign, people)
    assert campaign_arrays(campaign).n_learned == 3


@pytest.mark.django_db
def test_an_item_that_nobody_could_judge_keeps_no_batch_waiting(tmp_path):
    campaign, people = learned(tmp_path)
    last = judge_but_one(campaign, people)
    token = lease(people[0], last)
    submit(assessor=people[0], token=token, client_token=uuid.uuid4(), obstacle="language")
    assert campaign_arrays(campaign).n_learned == 2


@pytest.mark.django_db
def test_exact_draws_and_those_that_do_not_say_are_predicted_and_not_learned_from(tmp_path, monkeypatch):
    campaign, people = learned(tmp_path, learning="exact")
    judge_all(campaign, people)
    assert campaign.draws.get(batch=2).parameters["learning"] == "exact"
    exact = campaign_arrays(campaign)
    assert exact.n_learned == 1
    monkeypatch.setattr(Draw, "is_refitted", True)
    refitted = campaign_arrays(campaign)
    assert refitted.n_learned == 2
    one, two = (Predictions(arrays).of_gains(GAINS, 2) for arrays in (exact, refitted))
    assert (one != two).any()
    moved = exact.judged[exact.batch == 1]
    flipped = np.isin(exact.judged[exact.label_item], moved)
    other = np.where(flipped, 3 - exact.label_grade, exact.label_grade)
    for arrays, is_moved in ((exact, False), (refitted, True)):
        again = Predictions(type(arrays)(**{**vars_of(arrays), "label_grade": other})).of_gains(GAINS, 2)
        assert (again != Predictions(arrays).of_gains(GAINS, 2)).any() == is_moved


def vars_of(arrays):
    return {name: getattr(arrays, name) for name in arrays.__dataclass_fields__}


@pytest.mark.parametrize(
    ("learned_from", "parameters", "is_refitted"),
    [
        (1, {"learning": "refit"}, True),
        (1, {"learning": "exact"}, False),
        (1, {}, False),  # drawn before there was a choice
        (None, {"learning": "refit"}, False),
    ],
)
def test_only_a_batch_that_learned_and_says_so_is_refitted(learned_from, parameters, is_refitted):
    assert Draw(learned_from=learned_from, parameters=parameters).is_refitted == is_refitted


# -- as a verifier sees it ----------------------------------------------------------------------------------

JUDGED = {"drawn_in": [1, 1, 2, 2, 3, 0], "judged": [1, 1, 1, 1, 1, 0]}


@pytest.mark.parametrize(
    ("draws", "frame", "allowed"),
    [
        ([{}, {}, {}], JUDGED, (3, 3)),
        ([{}, {"learned_from": 1, "learning": "exact"}, {}], JUDGED, (1, 1)),
        ([{}, {"learned_from": 1}, {}], JUDGED, (1, 1)),
        ([{}, {"learned_from": 1, "learning": "refit"}, {}], JUDGED, (3, 3)),
        ([{}, {"learned_from": 1, "learning": "refit"}, {"learned_from": 1}], JUDGED, (1, 1)),
        ([{}, {"learned_from": 1, "learning": "refit"}, {}], JUDGED | {"judged": [1, 1, 1, 0, 1, 0]}, (1, 3)),
        ([{}, {"learned_from": 1, "learning": "refit"}, {}], JUDGED | {"judged": [1, 1, 1, 1, 0, 0]}, (2, 3)),
        ([], JUDGED, (2, 2)),  # a release that is read without its draws says it itself
    ],
)
def test_the_record_of_the_draws_says_what_predictions_may_learn_from(tmp_path, draws, frame, allowed):
    (tmp_path / "draws").mkdir()
    for batch, about in enumerate(draws, 1):
        parameters = {name: value for name, value in about.items() if name == "learning"}
        row = {"batch": batch, "learned_from": about.get("learned_from"), "parameters": parameters}
        (tmp_path / "draws" / f"draw-{batch}.json").write_text(json.dumps(row))
    assert batches_to_learn_from(tmp_path, frame, told=2) == allowed
