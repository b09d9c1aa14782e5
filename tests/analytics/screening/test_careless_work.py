"""Careless work with one peer or none: the rules' fixtures, simulated judges, and two people at 0.4 seconds."""

import math
import sys
import uuid
from pathlib import Path

import numpy as np
import pytest
from screened_campaign import give_in
from small_campaign import DEPTH, N_FRAME, make_assessor, make_undrawn, slots, truth_of

from analytics.frames.pace import first_answers
from analytics.models import Flag
from analytics.screening.carelessness import chance_agreement, is_too_fast, lowest_share
from analytics.services.recomputation import recompute
from analytics.services.screening import current_flags, screen_campaign
from judging.services.assign import revise
from judging.services.campaigns import open_campaign
from sampling.questions import Design
from sampling.services.drawing import draw

# For these lines alone: benchmarks/coverage.py is not the tool that some library looks for.
sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks"))
from careless_rules import LEAST_GUESSERS, MOST_GOOD, share_flagged

sys.path.pop()

OWN = [0, 1, 0, 1, 0, 1, 2, 2, 0, 1, 0, 0]
PEER = [0, 0, 1, 1, 0, 1, 2, 1, 0, 0, 2, 0]


# -- the rules ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_fast", "bound"), [(19, 0.466914), (20, 0.500561)])
def test_the_bound_is_the_share_at_which_so_many_fast_answers_have_probability_a_twentieth(n_fast, bound):
    found = lowest_share(n_fast, 30)
    assert found == pytest.approx(bound, abs=5e-7)
    tail = sum(math.comb(30, k) * found**k * (1 - found) ** (30 - k) for k in range(n_fast, 31))
    assert tail == pytest.approx(0.05, abs=1e-9)
    assert is_too_fast(n_fast, 30) == (bound > 0.5)


def test_fewer_than_thirty_answers_are_no_evidence_and_impossible_counts_are_refused():
    assert not is_too_fast(29, 29)
    assert is_too_fast(30, 30)
    with pytest.raises(ValueError, match="between 0 and 3, got 4"):
        lowest_share(4, 3)


def test_kappa_and_its_jackknife_on_twelve_items():
    found = chance_agreement(OWN, np.eye(3)[PEER])
    # By hand: 7 of 12 alike; shares 6, 4, 2 against 6, 4, 2 of 12: (36 + 16 + 4) / 144.
    assert (found.n, found.observed, found.expected) == (12, pytest.approx(7 / 12), pytest.approx(56 / 144))
    assert found.kappa == pytest.approx(0.318182, abs=5e-7)
    assert found.se == pytest.approx(0.260094, abs=5e-7)
    assert (
        not found.is_no_better_than_chance
    )  # twelve items are too few, and 0.318 + 1.645 * 0.260 is above .2


def test_the_jackknife_is_that_of_a_loop_over_items_with_several_peers():
    rng = np.random.default_rng(4)
    own, others = rng.integers(4, size=40), rng.multinomial(3, np.full(4, 0.25), size=40) / 3

    def kappa(rows):
        observed = np.mean([others[row][own[row]] for row in rows])
        mine = [np.mean([own[row] == grade for row in rows]) for grade in range(4)]
        theirs = [np.mean([others[row][grade] for row in rows]) for grade in range(4)]
        expected = sum(a * b for a, b in zip(mine, theirs, strict=True))
        return (observed - expected) / (1 - expected)

    left_out = [kappa([row for row in range(40) if row != one]) for one in range(40)]
    found = chance_agreement(own, others)
    assert found.kappa == pytest.approx(kappa(range(40)), abs=1e-12)
    assert found.se == pytest.approx(np.sqrt(39 * np.mean((left_out - np.mean(left_out)) ** 2)), abs=1e-12)


def test_grades_that_do_not_differ_tell_nothing_and_one_grade_beside_a_peer_who_differs_is_chance():
    alike = chance_agreement([0] * 40, np.eye(2)[[0] * 40])
    assert math.isnan(alike.kappa)
    assert not alike.is_no_better_than_chance
    constant = chance_agreement([0] * 40, np.eye(2)[[0, 1] * 20])
    assert (constant.kappa, constant.se) == (0, 0)
    assert constant.is_no_better_than_chance
    assert not chance_agreement([0] * 29, np.eye(2)[[0, 1] * 14 + [0]]).is_no_better_than_chance
    assert math.isnan(chance_agreement([0], [[1.0, 0.0]]).kappa)
    with pytest.raises(ValueError, match="a row of shares for each of 2 items"):
        chance_agreement([0, 1], [[1.0, 0.0]])


def test_simulated_guessers_are_found_and_judges_as_good_as_the_peer_are_not():
    assert share_flagged("good", 1500, seed=11) <= MOST_GOOD
    assert share_flagged("guesser", 1500, seed=12) >= LEAST_GUESSERS


# -- a campaign -----------------------------------------------------------------------------------------------


def make_judged(folder, seconds, grade, n_characters=200):
    """Return a campaign that two people have judged, each document in so many seconds."""
    campaign = make_undrawn(folder, n_characters=n_characters)
    draw(campaign=campaign, design=Design("pool", (), measure="DCG@10", depth=DEPTH, budget=N_FRAME), seed=20)
    open_campaign(campaign=campaign, actor=None)
    people = [make_assessor(campaign, name) for name in ("ann", "ben")]
    for place, slot in enumerate(slots(campaign)):
        give_in(people[slot.number - 1], slot, grade(slot, place), seconds)
    recompute(campaign=campaign)
    assert screen_campaign(campaign=campaign) is not None
    return campaign


def flags_of(campaign):
    return {(flag.assessor.user.username, flag.kind) for flag in current_flags(campaign)}


@pytest.mark.django_db
def test_two_people_at_four_tenths_of_a_second_are_flagged(tmp_path):
    campaign = make_judged(tmp_path, 0.4, lambda slot, place: truth_of(slot))
    assert flags_of(campaign) == {("ann", "pace"), ("ben", "pace")}
    flag = current_flags(campaign).first()
    assert (flag.effect, flag.p_adjusted) == (1.0, None)
    assert flag.evidence.startswith(
        f"{N_FRAME} of {N_FRAME} first answers on documents of 200 characters or more"
    )


@pytest.mark.django_db
@pytest.mark.parametrize(("seconds", "n_characters"), [(1.0, 200), (0.4, 199)])
def test_a_whole_second_or_a_short_document_is_no_evidence(tmp_path, seconds, n_characters):
    campaign = make_judged(tmp_path, seconds, lambda slot, place: truth_of(slot), n_characters)
    assert flags_of(campaign) == set()


@pytest.mark.django_db
def test_second_thoughts_and_gold_checks_are_no_first_answers(tmp_path):
    campaign = make_undrawn(tmp_path, n_characters=200, gold_check_rate=0.2)
    draw(campaign=campaign, design=Design("pool", (), measure="DCG@10", depth=DEPTH, budget=30), seed=20)
    open_campaign(campaign=campaign, actor=None)
    cleo = make_assessor(campaign, "cleo")
    checks = {slot.item_id: slot for slot in slots(campaign, "check", state="open")}
    rest = [slot for slot in slots(campaign, number=2) if slot.item_id not in checks]
    assert len(checks) >= 3
    assert len(rest) >= 20
    for slot in checks.values():
        give_in(cleo, slot, 1, 0.4)
    given = [give_in(cleo, slot, 1, 0.4 if place else 9) for place, slot in enumerate(rest)]
    again = {"client_token": uuid.uuid4(), "active_milliseconds": 300}
    revise(assessor=cleo, token=given[0].lease_token, grade=2, **again)  # slow at first, and then fast
    assert first_answers(campaign, [cleo.pk]) == [(cleo.pk, len(rest) - 1, len(rest))]
    assert first_answers(campaign, []) == []


@pytest.mark.django_db
def test_who_guesses_beside_one_peer_is_flagged_and_the_flag_says_that_either_may_be_at_fault(tmp_path):
    campaign = make_judged(
        tmp_path, 20, lambda slot, place: truth_of(slot) if slot.number == 1 else (place * 7 // 3) % 4
    )
    assert flags_of(campaign) == {("ann", "chance"), ("ben", "chance")}
    for flag in Flag.objects.filter(kind="chance"):
        assert flag.evidence.endswith("There is one peer alone: either of the two may be at fault")
        assert f"of {N_FRAME} shared documents" in flag.evidence
