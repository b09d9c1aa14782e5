"""What careless assessors would cost: guesses in place of grades, and the interval that they leave."""

from copy import deepcopy

import numpy as np
import pytest
from small_campaign import judge_all, judge_audit, make_assessor, make_campaign, truth_of

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.estimation.estimate import Refusal
from analytics.frames import campaign_arrays
from analytics.services.careless import careless_outcome, with_guesses
from analytics.services.recomputation import recompute
from analytics.services.simulations import CARELESS_ASSESSORS, ask_simulation, newest_simulation
from sampling.services.auditing import audit
from touchstone import jobs

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def made_once(module_world, tmp_path_factory):
    made = make_campaign(tmp_path_factory.mktemp("world"))
    people = [make_assessor(made, "ann"), make_assessor(made, "ben")]
    judge_all(made, people, lambda slot, place: 0 if place and truth_of(slot) == 1 else truth_of(slot))
    gold = make_assessor(made, "greta", tier="gold")
    audit(campaign=made, items_each_time=20, items_in_total=20, seed=5)
    judge_audit(made, gold)
    return made


@pytest.fixture
def campaign(made_once, db):
    return deepcopy(made_once)


def pair_of(arrays):
    return tuple(run.run_id for run in arrays.runs[:2])


def test_only_the_grades_of_the_careless_change_and_audits_stay(campaign):
    arrays = campaign_arrays(campaign)
    guessed = with_guesses(arrays, np.array([0]), np.random.default_rng(1))
    own = arrays.label_assessor == 0
    assert (guessed.label_grade[~own] == arrays.label_grade[~own]).all()
    assert (guessed.label_grade[own] != arrays.label_grade[own]).any()
    assert (guessed.audit_grade == arrays.audit_grade).all()
    assert (
        with_guesses(arrays, np.array([]), np.random.default_rng(1)).label_grade == arrays.label_grade
    ).all()


def test_guesses_are_as_often_relevant_as_the_random_assessor_is(campaign):
    arrays = campaign_arrays(campaign)
    rng = np.random.default_rng(2)
    own = arrays.label_assessor == 0
    share = np.mean(
        [
            (with_guesses(arrays, np.array([0]), rng).label_grade[own] >= arrays.relevant_grade).mean()
            for _ in range(400)
        ]
    )
    topic = arrays.topic_index[arrays.judged[arrays.label_item]][own]
    relevant = arrays.label_grade[own] >= arrays.relevant_grade
    expected = np.mean([(1 + relevant[topic == t].sum()) / (9 + (topic == t).sum()) for t in topic])
    assert share == pytest.approx(expected, abs=0.02)


def test_careless_assessors_widen_the_interval(campaign):
    arrays = campaign_arrays(campaign)
    rng = np.random.default_rng(3)
    found = careless_outcome(campaign, arrays, "DCG@10", pair_of(arrays), rng, n_trials=4)
    assert (found.n_assessors, found.n_careless) == (2, 1)
    assert found.careless_half_width > found.half_width > 0


def test_one_assessor_alone_is_not_simulated(tmp_path):
    made = make_campaign(tmp_path)
    judge_all(
        made, [make_assessor(made, "ann"), make_assessor(made, "ben")], lambda slot, place: truth_of(slot)
    )
    arrays = campaign_arrays(made)
    found = careless_outcome(made, arrays, "DCG@10", pair_of(arrays), np.random.default_rng(1))
    assert isinstance(found, Refusal)  # no audit: there is no corrected number
    assert "no audit is complete yet" in found.reason


def test_the_job_s_numbers_stand_on_the_planner(campaign, client, django_user_model):
    job = ask_simulation(campaign=campaign, what=CARELESS_ASSESSORS, user=None)
    jobs.run(job.pk)
    made = newest_simulation(campaign=campaign, what=CARELESS_ASSESSORS).result
    assert made["careless_half_width"] > 0
    recompute(campaign=campaign)
    client.force_login(django_user_model.objects.create(username="rea", role="researcher"))
    here = f"/results/{campaign.pk}/planner/"
    run, against = made["runs"]
    page = client.get(here, {"measure": made["measure"], "run": run, "against": against})
    assert "If 20 % of the assessors are careless" in page.content.decode()
    assert "1 of the 2 assessors" in page.content.decode()
    assert client.post(f"{here}simulate/").status_code == 302
