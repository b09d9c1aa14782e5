"""The manager's and researcher's pages: the right words, for the right people, in every state."""

import datetime
import io
import uuid

import polars as pl
import pytest
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

import sampling.tasks  # noqa: F401 (registers the kinds of job)
from analytics.models import Computation, ConfusionEstimate, Estimate, Flag, Method
from analytics.services.recomputation import recompute
from analytics.views.manage import day_chart
from judging.models import Assessor, Campaign, Collection, Document, GoldAnswer, Run, Slot, Topic
from judging.rankings import write_rankings
from judging.services import campaigns
from judging.services.assign import claim, submit
from sampling.models import AuditSchedule
from sampling.questions import Design
from sampling.services.auditing import audit
from sampling.services.drawing import draw
from touchstone import jobs
from touchstone.models import Event, Job, User, WorkerHeartbeat

N_TOPICS, N_DOCUMENTS = 4, 30
DESIGN = Design(question="pool", runs=(), measure="P@5", depth=10, budget=40)
SIMULATED = "these assessors are programs of the demo"


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    """Pages name static files by their hash, which collectstatic alone knows; not so here."""
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture
def manager(db):
    return User.objects.create(username="mia", role="manager")


@pytest.fixture
def page(client, manager):
    """Return a function: the text of a page as the manager sees it, and its status."""
    client.force_login(manager)

    def get(name, *args, status=200, **query):
        answer = client.get(reverse(name, args=args), query)
        assert answer.status_code == status, answer.content.decode()[:2000]
        return " ".join(answer.content.decode().split())

    return get


@pytest.fixture
def post(client, manager):
    client.force_login(manager)

    def send(view, /, *args, **fields):
        return client.post(reverse(view, args=args), fields, follow=True)

    return send


def make_collection(n_runs=2):
    collection = Collection.objects.create(name=f"collection {uuid.uuid4()}")
    topics = Topic.objects.bulk_create(
        Topic(collection=collection, topic_id=f"t{n}", title=f"Topic {n}") for n in range(N_TOPICS)
    )
    documents = Document.objects.bulk_create(
        Document(collection=collection, doc_id=f"d{n:02}", text="Text") for n in range(N_DOCUMENTS)
    )
    GoldAnswer.objects.bulk_create(
        GoldAnswer(topic=topic, document=document, grade=number % 4, source="the author")
        for topic in topics
        for number, document in enumerate(documents)
    )
    for place, name in enumerate(["alpha", "beta", "gamma"][:n_runs]):
        add_run(collection, name, shift=4 * place)
    return collection


def add_run(collection, name, shift):
    rows = [
        {
            "topic_id": f"t{t}",
            "doc_id": f"d{(rank + shift) % N_DOCUMENTS:02}",
            "score": float(-rank),
            "run_tag": name,
        }
        for t in range(N_TOPICS)
        for rank in range(15)
    ]
    target = io.BytesIO()
    write_rankings(pl.DataFrame(rows), target)
    run = Run(collection=collection, run_id=name, n_topics=N_TOPICS, n_lines=len(rows))
    run.rankings.save(f"{name}.rankings", ContentFile(target.getvalue()))


def make_campaign(collection=None, *, is_simulated=False, drawn=True):
    campaign = campaigns.create_campaign(
        collection=collection or make_collection(),
        name=f"campaign {uuid.uuid4()}",
        user=None,
        grades=campaigns.DEFAULT_GRADES,
        is_simulated=is_simulated,
        gold_check_rate=0.0,
    )
    if drawn:
        draw(campaign=campaign, design=DESIGN, seed=7)
        campaign.refresh_from_db()
    return campaign


def add_assessor(campaign, tier="bronze", kind="human"):
    user = User.objects.create(username=f"{tier}-{uuid.uuid4().hex[:6]}")
    return campaigns.add_assessor(campaign=campaign, user=user, tier=tier, kind=kind)


def judge_all(assessor, grade=1):
    while (held := claim(assessor=assessor).item) is not None:
        submit(assessor=assessor, token=held.token, client_token=uuid.uuid4(), grade=grade)


@pytest.fixture
def judged(db):
    """A simulated campaign that is judged, audited by gold, and computed."""
    campaign = make_campaign(is_simulated=True)
    campaigns.open_campaign(campaign=campaign, actor=None)
    bronze, gold = add_assessor(campaign, kind="simulated"), add_assessor(campaign, "gold")
    judge_all(bronze)
    audit(campaign=campaign, items_each_time=30, items_in_total=30)
    judge_all(gold, grade=2)
    recompute(campaign=campaign)
    return campaign


# -- who may see what ---------------------------------------------------------------------------------------


def addresses(campaign):
    return {
        "manager": [
            reverse("judging:manage"),
            reverse("judging:manage-collection", args=[campaign.collection_id]),
            reverse("judging:manage-campaign-new"),
            reverse("judging:manage-campaign-edit", args=[campaign.pk]),
            reverse("judging:manage-leases", args=[campaign.pk]),
            reverse("judging:manage-topics", args=[campaign.pk]),
            reverse("analytics:campaign", args=[campaign.pk]),
            reverse("analytics:assessor", args=[campaign.pk, campaign.assessors.first().pk]),
        ],
        "researcher": [
            reverse("analytics:results"),
            reverse("analytics:campaign-results", args=[campaign.pk]),
            reverse("analytics:pair", args=[campaign.pk]) + "?a=alpha&b=beta",
            reverse("analytics:plot", args=[campaign.pk, "svg"]),
            reverse("analytics:export", args=[campaign.pk, "qrels"]),
        ],
    }


@pytest.mark.parametrize(
    ("role", "manages", "researches"),
    [("manager", 200, 200), ("researcher", 404, 200), ("assessor", 404, 404), (None, 302, 302)],
)
def test_pages_open_for_their_readers_and_do_not_exist_for_others(client, judged, role, manages, researches):
    if role:
        client.force_login(User.objects.create(username="somebody", role=role))
    pages = addresses(judged)
    for expected, paths in ((manages, pages["manager"]), (researches, pages["researcher"])):
        for path in paths:
            answer = client.get(path)
            assert answer.status_code == expected, path
            if expected == 302:
                assert answer.url.startswith("/login/?next=")


def test_no_page_has_inline_style_or_script(client, manager, judged):
    client.force_login(manager)
    for path in [
        path for paths in addresses(judged).values() for path in paths if not path.endswith(("svg", "qrels"))
    ]:
        text = client.get(path).content.decode()
        assert " style=" not in text, path
        assert "<style" not in text, path
        assert text.count("<script") == text.count("<script src="), path
        assert " onclick=" not in text, path


def test_every_page_of_a_simulated_campaign_says_so_and_no_other(page, judged):
    for campaign, said in ((judged, True), (make_campaign(), False)):
        person = campaign.assessors.first() or add_assessor(campaign)
        texts = [
            page("analytics:campaign", campaign.pk),
            page("analytics:assessor", campaign.pk, person.pk),
            page("analytics:campaign-results", campaign.pk),
            page("analytics:pair", campaign.pk, a="alpha", b="beta"),
        ]
        assert [SIMULATED in text for text in texts] == [said] * 4
    undrawn = make_campaign(is_simulated=True, drawn=False)
    assert SIMULATED in page("analytics:design", undrawn.pk)


def test_a_silent_worker_is_named_on_every_page_and_a_heard_one_is_not(page, judged):
    names = [("judging:manage",), ("analytics:campaign", judged.pk), ("analytics:results",)]
    names += [("judging:manage-collection", judged.collection_id), ("analytics:campaign-results", judged.pk)]
    assert all("No worker is running" in page(*name) for name in names)
    WorkerHeartbeat.objects.create(name="one", seen_at=timezone.now())
    assert not any("No worker is running" in page(*name) for name in names)


# -- manage, collection, new campaign -----------------------------------------------------------------------


def test_the_overview_without_anything_says_where_to_begin(page):
    text = page("judging:manage")
    assert "No collection yet" in text
    assert "New campaign</a>" not in text


def test_the_overview_lists_campaigns_and_collections_with_counts(page, judged):
    text = page("judging:manage")
    done = judged.slots.filter(purpose="judge").count()
    assert f"{done} of {done}" in text
    assert reverse("analytics:campaign", args=[judged.pk]) in text
    assert '<span class="tag warn">simulated</span>' in text
    assert f'<td class="number">{N_DOCUMENTS}</td>' in text


def test_the_newest_campaign_comes_first_and_assessors_by_name(page, judged):
    newer = make_campaign(judged.collection, drawn=False)
    text = page("judging:manage")
    assert text.index(newer.name) < text.index(judged.name)
    text = page("analytics:assessors", judged.pk)
    first, second = judged.assessors.order_by("user__username")
    assert text.index(first.user.username) < text.index(second.user.username)


def test_a_collection_is_made_and_a_second_of_the_same_name_is_refused_beside_the_field(post):
    answer = post("judging:manage-collection-new", name="News", description="")
    assert "No runs yet" in answer.content.decode()
    answer = post("judging:manage-collection-new", name="News", description="")
    assert answer.status_code == 400
    assert "already exists" in answer.content.decode()


def test_a_collection_without_runs_links_to_the_upload(page):
    text = page("judging:manage-collection", make_collection(n_runs=0).pk)
    assert "No runs yet" in text
    assert '<a class="button" href="#upload">Upload runs</a>' in text
    assert 'enctype="multipart/form-data"' in text


def test_an_upload_queues_an_import_and_shows_its_progress(post, page):
    collection = make_collection()
    file = SimpleUploadedFile("more.tsv", b"t9\tAnother topic\n")
    answer = post("judging:manage-collection", collection.pk, kind="topics", files=file)
    assert "Importing files" in answer.content.decode()
    assert "more.tsv" in answer.content.decode()
    assert "more.tsv" in page("judging:manage-collection", collection.pk)


def test_an_upload_without_a_file_says_so_beside_the_field(post):
    answer = post("judging:manage-collection", make_collection().pk, kind="topics")
    assert answer.status_code == 400
    assert "Nothing was uploaded" in answer.content.decode()
    assert 'id="id_files_error"' in answer.content.decode()


def test_a_failed_import_shows_its_reason_on_the_collection(page):
    collection = make_collection()
    Job.objects.create(
        kind="import",
        payload={"kind": "runs", "collection": str(collection.pk), "uploads": [{"name": "bad.run"}]},
        state="failed",
        error="bad.run:3:1: expected 6 columns",
        finished_at=timezone.now(),
    )
    assert "bad.run:3:1: expected 6 columns" in page("judging:manage-collection", collection.pk)


def campaign_fields(collection, **changes):
    return {
        "collection": collection.pk,
        "name": "A campaign",
        "guidelines": "",
        "judgments_per_item": 2,
        "lease_seconds": 600,
        "gold_check_rate": 0.1,
        "gold_check_exposures": 5,
        "decoys_per_check": 1,
        "highlights_terms": "on",
        "break_minutes": 30,
        "machine_prompt": "",
        "grades": "0 | No | 0\n1 | Yes | 1",
        "relevant_grade": 1,
    } | changes


def test_a_new_campaign_leads_to_its_design(post, page):
    collection = make_collection()
    assert "selected" in page("judging:manage-campaign-new", collection=str(collection.pk))
    text = post("judging:manage-campaign-new", **campaign_fields(collection)).content.decode()
    assert "Choose what is judged" in text
    assert Campaign.objects.get().scale.values() == [0, 1]


def test_wrong_grades_are_explained_beside_the_field(post):
    answer = post("judging:manage-campaign-new", **campaign_fields(make_collection(), grades="1 | Yes | 1"))
    assert answer.status_code == 400
    assert "grades must be 0, 1, 2" in answer.content.decode()
    assert not Campaign.objects.exists()


# -- a campaign ---------------------------------------------------------------------------------------------


def test_a_campaign_names_the_next_step_of_each_state(page, post):
    campaign = make_campaign()
    assert "Nobody can judge yet" in page("analytics:campaign", campaign.pk)
    add_assessor(campaign)
    assert "open the campaign for judging" in page("analytics:campaign", campaign.pk)
    text = post("judging:manage-campaign-state", campaign.pk, state="open").content.decode()
    assert "its assessors can judge now" in text
    assert "No gold assessor." in text
    add_assessor(campaign, "gold")
    text = page("analytics:campaign", campaign.pk)
    assert "No audit is planned" in text
    assert "Numbers appear about 10 seconds after the first judgments" in text


def test_opening_without_a_draw_is_refused_in_words(post):
    campaign = make_campaign(drawn=False)
    text = post("judging:manage-campaign-state", campaign.pk, state="open").content.decode()
    assert "The campaign cannot be opened yet: draw its items first." in text


def test_a_campaign_at_a_glance_shows_tiles_assessors_audits_draw_and_events(page, judged):
    text = page("analytics:campaign", judged.pk)
    done = judged.slots.filter(purpose="judge").count()
    assert f"{done} of {done} judgments" in text
    assert f"from {judged.computations.last().n_judgments} judgments in all" in text
    assert '<span class="tag ok">complete</span>' in text
    assert "How good is every run?" in text
    assert str(judged.draws.get().seed) in text
    assert "audited" in text
    assert "the standard" in page("analytics:assessors", judged.pk)  # the gold assessor
    assert f"{judged.draws.get().n_drawn} of {judged.draws.get().n_frame} pooled pairs" in text


def test_accuracy_is_shown_with_its_interval_and_a_flag_with_its_evidence(page, judged):
    person = give_matrix(judged, [[1, 0, 0, 0], None, None, None], [[5, 0, 0, 0]] + [[0, 0, 0, 0]] * 3)
    flag = Flag.objects.create(
        assessor=person, computation=judged.computations.last(), evidence="right in 7 % of 30 gold labels"
    )
    text = page("analytics:assessors", judged.pk)
    assert "72 % (65–78)" in text
    assert flag.evidence in text
    assert flag.evidence in page("analytics:assessor", judged.pk, person.pk)


def test_the_pace_is_a_chart_from_the_second_day_on():
    today = timezone.now().date()
    days = {str(today - datetime.timedelta(days=back)): {"bronze": [30, 1000]} for back in (1, 0)}
    assert day_chart({"days": dict([*days.items()][1:])}) is None
    chart = day_chart({"days": days})
    assert [row[1] for row in chart.rows] == [30, 30]
    assert "60 in all" in chart.description


def test_pausing_and_resuming_an_assessor(post, judged):
    person = judged.assessors.get(tier="bronze")
    text = post("judging:manage-assessor-status", judged.pk, person.pk, status="suspended").content.decode()
    assert "paused</span>" in text
    assert "No judgment was deleted" in text
    post("judging:manage-assessor-status", judged.pk, person.pk, status="active")
    assert Assessor.objects.get(pk=person.pk).status == "active"


def test_adding_an_assessor_shows_the_new_password_once(post, page):
    campaign = make_campaign()
    text = post("judging:manage-assessor-add", campaign.pk, username="nina", tier="gold").content.decode()
    assert "its password, shown only now:" in text
    text = page("analytics:assessors", campaign.pk)
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
    post("analytics:audits", campaign.pk, **fields, now="now")
    assert "nothing to audit" in run_audit_job().note
    assert AuditSchedule.objects.get().items_in_total == 20
    campaigns.open_campaign(campaign=campaign, actor=None)
    judge_all(add_assessor(campaign))
    post("analytics:audits", campaign.pk, **fields | {"items_each_time": 20}, now="now")
    assert "with the gold tier" in run_audit_job().note
    assert Event.objects.filter(verb="audited").count() == 1


def test_computing_anew_is_a_job(post, judged):
    text = post("analytics:recompute", judged.pk).content.decode()
    assert "The numbers are being computed anew." in text
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
    text = page("analytics:assessor", judged.pk, person.pk)
    assert "<figcaption>" in text
    assert '<td class="number tenths-7 right">70 %<span class="interval">60 to 80</span></td>' in text


def test_a_grade_without_gold_says_so_instead_of_a_row(page, judged):
    person = give_matrix(judged, [[1, 0, 0, 0], None, None, None], [[5, 0, 0, 0]] + [[0, 0, 0, 0]] * 3)
    text = page("analytics:assessor", judged.pk, person.pk)
    assert text.count('<td colspan="4">no gold of this grade yet</td>') == 3
    assert "<figcaption>" in text  # what is known is drawn


def test_the_gold_tier_is_the_standard(page, judged):
    person = judged.assessors.get(tier="gold")
    assert "The gold tier is the standard" in page("analytics:assessor", judged.pk, person.pk)


# -- results ------------------------------------------------------------------------------------------------


def test_results_without_a_draw_and_without_a_computation_say_so(page):
    assert "No results yet" in page("analytics:results")
    campaign = make_campaign()
    assert "no judgment yet" in page("analytics:results")
    waiting = "Numbers appear about 10 seconds after the first judgments"
    assert waiting in page("analytics:campaign-results", campaign.pk)
    assert waiting in page("analytics:pair", campaign.pk, a="alpha", b="beta")


def computed(campaign, **by_method):
    """Store a computation with the given columns of each method for both runs and their difference."""
    runs = list(campaign.collection.runs.all())
    made = new_computation(campaign)
    for method, columns in by_method.items():
        for run, run_b in ((runs[0], None), (runs[1], None), (runs[0], runs[1])):
            Estimate.objects.create(
                computation=made, run=run, run_b=run_b, measure="P@5", method=Method[method], **columns
            )
    return made


def value(number, width, p=0.01):
    return {"value": number, "low": number - width, "high": number + width, "p_value": p, "n": 60}


def test_results_show_every_method_with_its_interval_and_why_one_is_missing(page, client):
    campaign = make_campaign()
    refused = {"n": 0, "refusal": "the labels hardly separate the grades"}
    computed(campaign, NAIVE=value(0.5, 0.01), CORRECTED=value(0.4, 0.1), MATRIX_INVERSE=refused)
    text = page("analytics:campaign-results", campaign.pk)
    assert '0.400 <span class="interval">0.300 to 0.500</span>' in text
    assert "not estimable: the labels hardly separate the grades" in text
    assert "it assumes a judge errs alike on all documents of a grade, which real judges do not" in text
    assert "True value" not in text
    assert "alpha is better" in page("analytics:pairs", campaign.pk)
    assert client.get(reverse("analytics:plot", args=[campaign.pk, "csv"])).status_code == 200
    assert client.get(reverse("analytics:plot", args=[campaign.pk, "png"])).content[:4] == b"\x89PNG"
    page("analytics:campaign-results", campaign.pk, status=404, measure="P@999")


def test_true_values_are_a_column_only_where_all_gold_is_known(page):
    campaign = make_campaign()
    exact = {"value": 0.45, "low": 0.45, "high": 0.45, "n": 9, "p_value": None}
    computed(campaign, NAIVE=value(0.5, 0.01), CORRECTED=value(0.4, 0.1), TRUE=exact)
    text = page("analytics:campaign-results", campaign.pk)
    assert "True value" in text
    assert "known only because the demo's author graded everything" in text


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (value(0.2, 0.1, 0.0004), "alpha is better than beta in P@5: difference +0.200"),
        (value(-0.2, 0.1), "beta is better than alpha in P@5: difference +0.200"),
        (value(0.05, 0.1, 0.4), "alpha and beta are not told apart in P@5"),
        ({"n": 0, "refusal": "no audit is complete yet"}, "No corrected number: no audit is complete yet."),
    ],
)
def test_a_pair_has_a_verdict_to_quote(page, columns, words):
    campaign = make_campaign()
    computed(campaign, CORRECTED=columns)
    text = page("analytics:pair", campaign.pk, a="alpha", b="beta")
    assert f'<blockquote class="verdict"><p>{words}' in text


def test_a_pair_turned_round_turns_the_numbers_and_a_run_against_itself_is_refused(page):
    campaign = make_campaign()
    computed(campaign, CORRECTED=value(0.2, 0.1))
    text = page("analytics:pair", campaign.pk, a="beta", b="alpha")
    assert "alpha is better than beta" in text
    assert "-0.300 to -0.100" in text
    assert "This is one run." in page("analytics:pair", campaign.pk, a="alpha", b="alpha")
    page("analytics:pair", campaign.pk, a="alpha", b="nobody", status=404)


def test_a_difference_without_measured_error_claims_no_p(page):
    campaign = make_campaign()
    computed(campaign, CORRECTED={"value": 0.2, "low": 0.2, "high": 0.2, "n": 9, "p_value": None})
    text = page("analytics:pair", campaign.pk, a="alpha", b="beta")
    assert "n = 9 audited items)." in text


def test_real_computations_fill_every_results_page(page, judged):
    text = page("analytics:campaign-results", judged.pk)
    assert text.count("<tr>") >= 4
    assert "True value" in text  # every pooled pair has a gold answer here
    assert "<blockquote" in page("analytics:pair", judged.pk, a="alpha", b="beta")


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
    assert "oldest since" in page("analytics:campaign", campaign.pk)
