"""How many badly judged topics a ranking stands: Kendall's tau falls as more topics get erring doubles."""

from copy import deepcopy

import numpy as np
import pytest
from sampled_topics import N_RUNS, make_topics
from small_campaign import judge_all, judge_audit, make_assessor, make_campaign, truth_of

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.frames import campaign_arrays
from analytics.planning.bad_topics import SHARES, crossing, flips, mixture_labels, tolerance
from analytics.services.simulations import (
    BAD_TOPICS,
    ask_simulation,
    error_rates,
    newest_simulation,
    sampled_topics,
)
from sampling.rejudging import SampledTopic, sampled_average_precision
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.models import Job


def test_no_error_leaves_the_ranking_as_it_is():
    found = tolerance(make_topics(), flips(0.0, 0.0), np.random.default_rng(1), n_trials=2)
    assert found.taus == pytest.approx(np.ones(SHARES.size))
    assert found.limit_share == 1.0


def test_tau_falls_with_the_share_of_bad_topics():
    found = tolerance(make_topics(), mixture_labels, np.random.default_rng(1))
    assert found.taus[0] == pytest.approx(1.0)
    assert found.taus[-1] < found.taus[SHARES.size // 2] < 1.0
    # Close to a line for the mixture of all kinds: Figure 5 of the paper.
    assert np.corrcoef(found.shares, found.taus)[0, 1] ** 2 > 0.9


def test_all_labels_reversed_reverse_what_they_can_and_the_limit_is_where_tau_crosses():
    found = tolerance(make_topics(), flips(1.0, 1.0), np.random.default_rng(1), n_trials=5)
    assert found.taus[-1] < 0
    assert 0 < found.limit_share < 0.5
    assert found.limit_share == crossing(found.shares, found.taus, 0.9)
    mild = tolerance(make_topics(), flips(0.1, 0.1), np.random.default_rng(1), n_trials=5)
    assert mild.limit_share > found.limit_share


def test_the_end_of_the_curve_is_the_ranking_by_the_doubles_alone():
    topics = make_topics(6)
    found = tolerance(topics, flips(1.0, 1.0), np.random.default_rng(1), n_trials=1)
    reversed_ = [SampledTopic.of(t.ranks, ~t.is_relevant, t.inclusion_probability) for t in topics]
    right = np.mean([sampled_average_precision(t) for t in topics], axis=0)
    wrong = np.mean([sampled_average_precision(t) for t in reversed_], axis=0)
    agree = np.sign(np.subtract.outer(right, right)) * np.sign(np.subtract.outer(wrong, wrong))
    assert found.taus[-1] == pytest.approx(agree[np.triu_indices(N_RUNS, 1)].mean())


@pytest.mark.parametrize(
    ("topics", "words"),
    [
        ([], "got 0"),
        ([SampledTopic.of([[1, 2]], [0, 1], [1, 1])], "at least 3, got 1"),
        ([SampledTopic.of([[1, 2]] * 3, [0, 0], [1, 1])], r"must differ in score, got 0\.0"),
    ],
)
def test_without_a_ranking_nothing_is_simulated(topics, words):
    with pytest.raises(ValueError, match=words):
        tolerance(topics, mixture_labels, np.random.default_rng(1))


@pytest.mark.parametrize("rates", [(-0.1, 0.0), (0.0, 1.1), (float("nan"), 0.0)])
def test_rates_out_of_their_bounds_are_refused(rates):
    with pytest.raises(ValueError, match="must be within"):
        flips(*rates)


@pytest.fixture(scope="module")
def made_once(module_world, tmp_path_factory):
    made = make_campaign(tmp_path_factory.mktemp("world"))
    people = [make_assessor(made, "ann"), make_assessor(made, "ben")]
    judge_all(made, people, lambda slot, place: 0 if place and truth_of(slot) == 1 else truth_of(slot))
    return made


@pytest.fixture
def campaign(made_once, db):
    return deepcopy(made_once)


def test_a_campaign_s_topics_have_its_ranks_labels_and_probabilities(campaign):
    topics, places = sampled_topics(campaign_arrays(campaign))
    assert sorted(places.tolist()) == list(range(42))
    assert [topic.ranks.shape for topic in topics] == [(3, 14)] * 3
    assert all((topic.inclusion_probability == 1).all() for topic in topics)
    # Of 1 and 0 the lower median is 0: relevant are the grades 2 and 3.
    assert sorted(int(topic.is_relevant.sum()) for topic in topics) == [6, 7, 8]
    assert {float(rank) for topic in topics for rank in topic.ranks.ravel()} == {
        *map(float, range(1, 11)),
        np.inf,
    }


def test_rates_come_from_audits_where_they_are_many_enough(campaign):
    assert error_rates(campaign_arrays(campaign)) is None
    gold = make_assessor(campaign, "greta", tier="gold")
    audit(campaign=campaign, items_each_time=42, items_in_total=42, seed=5)
    judge_audit(campaign, gold)
    false_alarm, miss = error_rates(campaign_arrays(campaign))
    n_ones = sum(d % 4 == 1 for t in range(3) for d in range(t, 14 + t))
    n_relevant = sum(d % 4 > 0 for t in range(3) for d in range(t, 14 + t))
    assert false_alarm == 0
    assert miss == pytest.approx(n_ones / (2 * n_relevant))


def test_a_job_simulates_and_the_page_starts_from_its_limit(campaign, client, django_user_model):
    job = ask_simulation(campaign=campaign, what=BAD_TOPICS, user=None)
    assert ask_simulation(campaign=campaign, what=BAD_TOPICS, user=None).pk == job.pk
    jobs.run(job.pk)
    made = newest_simulation(campaign=campaign, what=BAD_TOPICS)
    assert made.result["n_topics"] == made.result["n_runs"] == 3
    assert made.result["measured"] is None
    assert 0 < made.result["limit_share"] <= 1
    client.force_login(django_user_model.objects.create(username="mia", role="manager"))
    shown = client.get(f"/manage/campaigns/{campaign.pk}/audits/topics/").content.decode()
    assert f'value="{round(100 * made.result["limit_share"], 1)}"' in shown
    assert "too few to say how often" in shown


def test_the_page_asks_for_the_job(campaign, client, django_user_model):
    client.force_login(django_user_model.objects.create(username="mia", role="manager"))
    answer = client.post(f"/manage/campaigns/{campaign.pk}/audits/topics/simulate/")
    assert answer.status_code == 302
    assert Job.objects.get(kind="simulation").payload == {"campaign": str(campaign.pk), "what": "bad topics"}


def test_a_campaign_without_judgments_is_refused_by_name(tmp_path, db):
    job = ask_simulation(campaign=make_campaign(tmp_path), what=BAD_TOPICS, user=None)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == ("failed", "topics must be at least 1, got 0")
