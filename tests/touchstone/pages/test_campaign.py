"""The pages of a campaign, an assessor, results and jobs."""

import datetime
from copy import deepcopy

import pytest
from django.urls import reverse
from django.utils import timezone
from page_campaign import add_assessor, judge_all, make_campaign, make_judged

import sampling.tasks  # noqa: F401 (registers the kinds of job)
from analytics.models import Computation, ConfusionEstimate, Estimate, Flag
from console.manager.overview import day_chart
from judging.models import Assessor, Slot
from judging.services import campaigns
from judging.services.assign import claim
from sampling.models import AuditSchedule
from touchstone import jobs
from touchstone.models import Event, Job


@pytest.fixture(scope="module")
def made_once(module_world):
    return make_judged()


@pytest.fixture
def judged(made_once, db):
    return deepcopy(made_once)


# -- a campaign ---------------------------------------------------------------------------------------------


def test_a_campaign_names_the_next_step_of_each_state(page, post):
    campaign = make_campaign()
    assert "Nobody can judge yet" in page("console:campaign", campaign.pk)
    add_assessor(campaign)
    assert "open it for judging" in page("console:campaign", campaign.pk)
    text = post("console:manage-campaign-state", campaign.pk, state="open").content.decode()
    assert "its assessors can judge now" in text
    assert "There is no gold assessor." in text
    add_assessor(campaign, "gold")
    text = page("console:campaign", campaign.pk)
    assert "No audit is planned" in text
    assert "Numbers appear about 10 seconds after the first judgments" in text


def test_opening_without_a_draw_is_refused_in_words(post):
    campaign = make_campaign(drawn=False)
    text = post("console:manage-campaign-state", campaign.pk, state="open").content.decode()
    assert "The campaign cannot be opened yet: draw its items first." in text


def test_a_campaign_at_a_glance_shows_tiles_assessors_audits_draw_and_events(page, judged):
    text = page("console:campaign", judged.pk)
    done = judged.slots.filter(purpose="judge").count()
    assert f"{done} of {done} judgments" in text
    assert f"from {judged.computations.last().n_judgments} judgments in all" in text
    assert '<span class="tag ok">complete</span>' in text
    assert "How good is every run?" in text
    assert str(judged.draws.get().seed) in text
    assert "audited" in text
    assert "the standard" in page("console:assessors", judged.pk)  # the gold assessor
    assert f"{judged.draws.get().n_drawn} of {judged.draws.get().n_frame} pooled pairs" in text


def test_accuracy_is_shown_with_its_interval_and_a_flag_with_its_evidence(page, judged):
    person = give_matrix(judged, [[1, 0, 0, 0], None, None, None], [[5, 0, 0, 0]] + [[0, 0, 0, 0]] * 3)
    flag = Flag.objects.create(
        assessor=person, computation=judged.computations.last(), evidence="right in 7 % of 30 gold labels"
    )
    text = page("console:assessors", judged.pk)
    assert "72 % (65–78)" in text
    assert flag.evidence in text
    assert flag.evidence in page("console:assessor", judged.pk, person.pk)


def test_the_pace_is_a_chart_from_the_second_day_on():
    today = timezone.now().date()
    days = {str(today - datetime.timedelta(days=back)): {"bronze": [30, 1000]} for back in (1, 0)}
    assert day_chart({"days": dict([*days.items()][1:])}) is None
    chart = day_chart({"days": days})
    assert [row[1] for row in chart.rows] == [30, 30]
    assert "60 in all" in chart.description


def test_pausing_and_resuming_an_assessor(post, judged):
    person = judged.assessors.get(tier="bronze")
    text = post("console:manage-assessor-status", judged.pk, person.pk, status="suspended").content.decode()
    assert "paused</span>" in text
    assert "No judgment was deleted" in text
    post("console:manage-assessor-status", judged.pk, person.pk, status="active")
    assert Assessor.objects.get(pk=person.pk).status == "active"


def test_adding_an_assessor_shows_the_new_password_once(post, page):
    campaign = make_campaign()
    text = post("console:manage-assessor-add", campaign.pk, username="nina", tier="gold").content.decode()
    assert "its password, shown only now:" in text
    text = page("console:assessors", campaign.pk)
    assert "nina" in text
    assert "password, shown only now" not in text


def run_audit_job() -> Job:
    job = Job.objects.filter(kind="audit", state="queued").get()
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


def test_the_audit_form_saves_a_schedule_and_audits_at_once(post):
    campaign = make_campaign()
    fields = {"every_seconds": 60, "items_each_time": 5, "items_in_total": 20, "is_active": "on"}
    post("console:audits", campaign.pk, **fields, now="now")
    assert "nothing to audit" in run_audit_job().note
    assert AuditSchedule.objects.get(campaign=campaign).items_in_total == 20
    campaigns.open_campaign(campaign=campaign, actor=None)
    judge_all(add_assessor(campaign))
    post("console:audits", campaign.pk, **fields | {"items_each_time": 20}, now="now")
    assert "with the gold tier" in run_audit_job().note
    assert Event.objects.filter(verb="audited", subject=f"campaign:{campaign.pk}").count() == 1


def test_computing_anew_is_a_job(post, judged):
    text = post("console:recompute", judged.pk).content.decode()
    assert "The numbers are being recomputed." in text
    assert Job.objects.filter(kind="estimate", state="queued").exists()


# -- an assessor --------------------------------------------------------------------------------------------


def give_matrix(judged, matrix, counts):
    low = [None if row is None else [max(0, share - 0.1) for share in row] for row in matrix]
    high = [None if row is None else [min(1, share + 0.1) for share in row] for row in matrix]
    person = judged.assessors.get(tier="bronze")
    ConfusionEstimate.objects.create(
        key="1",
        computation=new_computation(judged),
        assessor=person,
        matrix=matrix,
        low=low,
        high=high,
        counts=counts,
        n_gold_checks=5,
        n_audited=0,
        accuracy=0.72,
        accuracy_low=0.651,
        accuracy_high=0.779,
    )
    return person


def new_computation(campaign):
    return Computation.objects.create(
        campaign=campaign,
        last_judgment_id=1,
        n_judgments=9,
        n_items=9,
        n_audited=4,
        n_gold_checks=0,
        seconds=1,
    )


def test_a_known_matrix_is_a_heat_map_with_the_numbers_behind(page, judged):
    rows = [[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.1, 0.1, 0.7, 0.1], [0.1, 0.1, 0.1, 0.7]]
    person = give_matrix(judged, rows, [[7, 1, 1, 1]] * 4)
    text = page("console:assessor", judged.pk, person.pk)
    assert "<figcaption>" in text
    assert '<td class="number tenths-7 right">70 %<span class="interval">60 to 80</span></td>' in text


def test_a_grade_without_gold_says_so_instead_of_a_row(page, judged):
    person = give_matrix(judged, [[1, 0, 0, 0], None, None, None], [[5, 0, 0, 0]] + [[0, 0, 0, 0]] * 3)
    text = page("console:assessor", judged.pk, person.pk)
    assert text.count('<td colspan="4">no known documents of this grade yet</td>') == 3
    assert "<figcaption>" in text  # what is known is drawn


def test_the_gold_tier_is_the_standard(page, judged):
    person = judged.assessors.get(tier="gold")
    assert "The gold tier is the standard" in page("console:assessor", judged.pk, person.pk)


# -- results ------------------------------------------------------------------------------------------------


def computed(campaign, **by_method):
    """Store a computation with the given columns of each method for both runs and their difference."""
    runs = list(campaign.collection.runs.all())
    made = new_computation(campaign)
    for method, columns in by_method.items():
        for run, run_b in ((runs[0], None), (runs[1], None), (runs[0], runs[1])):
            stored = columns if run_b else {**columns, "topics_p_value": None}
            Estimate.objects.create(
                computation=made, run=run, run_b=run_b, measure="P@5", method=method, **stored
            )
    return made


def value(number, width, p=0.01):
    ends = {"value": number, "low": number - width, "high": number + width, "p_value": p, "n": 60}
    if p is None:
        return ends
    wide = {"topics_low": number - width, "topics_high": number + width, "topics_p_value": p}
    return {**ends, **wide, "standard_error": width / 2, "topics_standard_error": width / 2}


def test_results_show_every_method_with_its_interval_and_why_one_is_missing(page, client):
    campaign = make_campaign()
    refused = {"n": 0, "refusal": "the labels hardly separate the grades"}
    computed(campaign, naive=value(0.5, 0.01), corrected=value(0.4, 0.1), **{"matrix-inverse": refused})
    text = page("console:campaign-results", campaign.pk)
    assert '0.400 <span class="interval">0.300 to 0.500</span>' in text
    assert "not estimable: the labels hardly separate the grades" in text
    assert "it assumes equal error rates on all documents of a grade, unlike real assessors" in text
    assert "True value" not in text
    assert "alpha is higher" in page("console:pairs", campaign.pk)
    assert client.get(reverse("console:plot", args=[campaign.pk, "csv"])).status_code == 200
    assert client.get(reverse("console:plot", args=[campaign.pk, "png"])).content[:4] == b"\x89PNG"
    page("console:campaign-results", campaign.pk, status=404, measure="P@999")


def test_true_values_are_a_column_only_where_all_gold_is_known(page):
    campaign = make_campaign()
    exact = {"value": 0.45, "low": 0.45, "high": 0.45, "n": 9, "p_value": None}
    computed(campaign, naive=value(0.5, 0.01), corrected=value(0.4, 0.1), true=exact)
    text = page("console:campaign-results", campaign.pk)
    assert "True value" in text
    assert "Known only because the demo&#x27;s author graded everything" in text


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (value(0.2, 0.1, 0.0004), "alpha has a higher P@5 than beta: mean difference +0.200"),
        (value(-0.2, 0.1), "beta has a higher P@5 than alpha: mean difference +0.200"),
        (value(0.05, 0.1, 0.4), "The difference in P@5 between alpha and beta, +0.050"),
        ({"n": 0, "refusal": "no audit is complete yet"}, "No corrected number: no audit is complete yet."),
    ],
)
def test_a_pair_has_a_verdict_to_quote(page, columns, words):
    campaign = make_campaign()
    computed(campaign, corrected=columns)
    text = page("console:pair", campaign.pk, a="alpha", b="beta")
    assert f'<blockquote class="verdict"><p>{words}' in text


def test_a_pair_turned_round_turns_the_numbers_and_a_run_against_itself_is_refused(page):
    campaign = make_campaign()
    computed(campaign, corrected=value(0.2, 0.1))
    text = page("console:pair", campaign.pk, a="beta", b="alpha")
    assert "alpha has a higher P@5 than beta" in text
    assert "-0.300 to -0.100" in text
    assert "A comparison needs two runs." in page("console:pair", campaign.pk, a="alpha", b="alpha")
    page("console:pair", campaign.pk, a="alpha", b="nobody", status=404)


def test_a_difference_without_measured_error_claims_no_p(page):
    campaign = make_campaign()
    computed(campaign, corrected={"value": 0.2, "low": 0.2, "high": 0.2, "n": 9, "p_value": None})
    text = page("console:pair", campaign.pk, a="alpha", b="beta")
    assert "For these topics alone: exactly 0.200." in text


def test_real_computations_fill_every_results_page(page, judged):
    text = page("console:campaign-results", judged.pk)
    assert text.count("<tr>") >= 4
    assert "True value" in text  # every pooled pair has a gold answer here
    assert "<blockquote" in page("console:pair", judged.pk, a="alpha", b="beta")


# -- jobs ---------------------------------------------------------------------------------------------------


def test_a_job_shows_its_state_and_its_part_for_the_script(page, post, manager):
    job = Job.objects.create(kind="import", total=4, done=1, note="reading topics", requested_by=manager)
    text = page("job", job.pk, back="/manage/")
    assert '<meta http-equiv="refresh" content="2">' in text
    part = page("job", job.pk, part=1, back="/manage/")
    assert "<html" not in part
    assert 'data-active="true"' in part
    assert "reading topics" in part
    assert "25 %" in part
    text = post("cancel-job", job.pk, back="/manage/").content.decode()
    assert "Cancelled." in text
    assert '<a class="button" href="/manage/">Go back</a>' in text


@pytest.mark.parametrize(
    ("state", "error", "words"),
    [
        ("done", "", '<a class="button primary" href="/manage/">Continue</a>'),
        ("failed", "line 3: no such topic", "line 3: no such topic"),
    ],
)
def test_an_ended_job_says_how_it_ended(page, manager, state, error, words):
    job = Job.objects.create(
        kind="draw", state=state, error=error, finished_at=timezone.now(), requested_by=manager
    )
    text = page("job", job.pk, back="/manage/")
    assert words in text
    assert "refresh" not in text


@pytest.mark.parametrize(
    "back", ["https://elsewhere.example/", "//elsewhere.example", "/\t/elsewhere.example"]
)
def test_a_job_never_leads_to_another_site(page, manager, back):
    job = Job.objects.create(kind="draw", state="done", finished_at=timezone.now(), requested_by=manager)
    assert "elsewhere" not in page("job", job.pk, part=1, back=back)


def test_leased_items_are_counted_with_the_oldest(page):
    campaign = make_campaign()
    campaigns.open_campaign(campaign=campaign, actor=None)
    claim(assessor=add_assessor(campaign))
    assert Slot.objects.filter(state="leased").count() == 1
    assert "oldest since" in page("console:campaign", campaign.pk)
