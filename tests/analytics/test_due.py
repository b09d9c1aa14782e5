"""When a campaign is computed again: what is new since the newest computation, and how often."""

from datetime import timedelta

import pytest
from django.utils import timezone
from small_campaign import give, make_assessor, make_campaign, slots

from analytics.services import recomputation as services
from analytics.services.recomputation import recompute, start_due_recomputations
from judging.services.campaigns import set_status
from judging.services.judgment_files import import_judgments
from judging.services.leases import requeue
from touchstone.models import Job

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(tmp_path):
    return make_campaign(tmp_path)


@pytest.fixture
def people(campaign):
    return [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")]


def queued(campaign):
    return Job.objects.filter(kind="estimate", state="queued", payload={"campaign": str(campaign.pk)}).count()


def finish(campaign):
    """Do the queued job as a worker would, without one."""
    recompute(campaign=campaign)
    end_job()


def end_job():
    Job.objects.filter(kind="estimate").update(state="done", finished_at=timezone.now())


def test_a_recomputation_is_queued_once_and_only_when_there_is_a_judgment(campaign, people):
    start_due_recomputations()
    assert queued(campaign) == 0
    give(people[0], slots(campaign)[0], 1)
    for _ in range(3):
        start_due_recomputations()
        assert queued(campaign) == 1
    end_job()
    start_due_recomputations()  # done, but nothing was computed: it is due again
    assert queued(campaign) == 1


def test_after_a_computation_only_a_new_judgment_makes_another_due(campaign, people, monkeypatch):
    monkeypatch.setattr(services, "COMMIT_MAY_TAKE", timedelta(0))
    no_pause(monkeypatch)
    first, second = slots(campaign)[:2]
    give(people[0], first, 1)
    finish(campaign)
    start_due_recomputations()
    assert queued(campaign) == 0
    give(people[1], second, 1)
    start_due_recomputations()
    assert queued(campaign) == 1
    finish(campaign)
    start_due_recomputations()
    assert queued(campaign) == 0


def no_pause(monkeypatch):
    monkeypatch.setattr(services, "SHORTEST_PAUSE", timedelta(0))
    monkeypatch.setattr(services, "PAUSE_FACTOR", 0)


def test_a_campaign_is_not_computed_again_within_the_pause(campaign, people):
    give(people[0], slots(campaign)[0], 1)
    finish(campaign)
    give(people[1], slots(campaign)[1], 1)
    start_due_recomputations()
    assert queued(campaign) == 0


def test_what_was_judged_seconds_before_a_computation_is_looked_at_once_more(campaign, people, monkeypatch):
    no_pause(monkeypatch)
    give(people[0], slots(campaign)[0], 1)
    finish(campaign)
    start_due_recomputations()  # another judgment with a smaller id may have been committed since
    assert queued(campaign) == 1


def test_judgments_that_are_to_be_made_again_make_a_computation_due(campaign, people, monkeypatch):
    monkeypatch.setattr(services, "COMMIT_MAY_TAKE", timedelta(0))
    no_pause(monkeypatch)
    give(people[0], slots(campaign)[0], 1)
    finish(campaign)
    start_due_recomputations()
    assert queued(campaign) == 0
    set_status(assessor=people[1], status="suspended", actor=None)  # of no consequence
    start_due_recomputations()
    assert queued(campaign) == 0
    assert requeue(assessor=people[0], actor=None) == 1
    start_due_recomputations()
    assert queued(campaign) == 1


def test_gold_answers_that_are_imported_make_a_computation_due(tmp_path, monkeypatch):
    monkeypatch.setattr(services, "COMMIT_MAY_TAKE", timedelta(0))
    no_pause(monkeypatch)
    campaign = make_campaign(tmp_path, gold=False)
    give(make_assessor(campaign, "ann"), slots(campaign)[0], 1)
    finish(campaign)
    start_due_recomputations()
    assert queued(campaign) == 0
    source = tmp_path / "gold.qrels"
    import_judgments(collection=campaign.collection, source=source, name=source.name, as_gold=True)
    start_due_recomputations()
    assert queued(campaign) == 1


def test_the_pause_is_sixty_times_as_long_as_the_newest_computation_took(campaign, monkeypatch):
    monkeypatch.setattr(services, "SHORTEST_PAUSE", timedelta(0))
    for seconds, took, is_early in ((50.0, 1.0, True), (70.0, 1.0, False), (70.0, 2.0, True)):
        campaign.computed_at, campaign.computed_in = timezone.now() - timedelta(seconds=seconds), took
        assert services._computed_just_now(campaign) == is_early


def test_a_campaign_that_is_not_drawn_or_another_ones_judgment_is_not_due(tmp_path, campaign, people):
    folder = tmp_path / "other"
    folder.mkdir()
    other = make_campaign(folder)
    give(people[0], slots(campaign)[0], 1)
    start_due_recomputations()
    assert (queued(campaign), queued(other)) == (1, 0)
