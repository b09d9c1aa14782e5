"""The manager's pages: the right words, for the right people, in every state."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone
from page_campaign import N_DOCUMENTS, add_assessor, make_campaign, make_collection

import sampling.tasks  # noqa: F401 (registers the kinds of job)
from judging.models import Campaign
from touchstone.models import Job, User, WorkerHeartbeat

SIMULATED = "simulated assessors, who err in known ways"


# -- who may see what ---------------------------------------------------------------------------------------


def addresses(campaign):
    return {
        "manager": [
            reverse("console:manage"),
            reverse("console:manage-collection", args=[campaign.collection_id]),
            reverse("console:manage-campaign-new"),
            reverse("console:manage-campaign-edit", args=[campaign.pk]),
            reverse("console:manage-leases", args=[campaign.pk]),
            reverse("console:manage-topics", args=[campaign.pk]),
            reverse("console:campaign", args=[campaign.pk]),
            reverse("console:assessor", args=[campaign.pk, campaign.assessors.first().pk]),
        ],
        "researcher": [
            reverse("console:results"),
            reverse("console:campaign-results", args=[campaign.pk]),
            reverse("console:pair", args=[campaign.pk]) + "?a=alpha&b=beta",
            reverse("console:plot", args=[campaign.pk, "svg"]),
            reverse("console:export", args=[campaign.pk, "qrels"]),
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
            page("console:campaign", campaign.pk),
            page("console:assessor", campaign.pk, person.pk),
            page("console:campaign-results", campaign.pk),
            page("console:pair", campaign.pk, a="alpha", b="beta"),
        ]
        assert [SIMULATED in text for text in texts] == [said] * 4
    undrawn = make_campaign(is_simulated=True, drawn=False)
    assert SIMULATED in page("console:design", undrawn.pk)


def test_a_silent_worker_is_named_on_every_page_and_a_heard_one_is_not(page, judged):
    names = [("console:manage",), ("console:campaign", judged.pk), ("console:results",)]
    names += [("console:manage-collection", judged.collection_id), ("console:campaign-results", judged.pk)]
    assert all("No worker is running" in page(*name) for name in names)
    WorkerHeartbeat.objects.create(name="one", seen_at=timezone.now())
    assert not any("No worker is running" in page(*name) for name in names)


# -- manage, collection, new campaign -----------------------------------------------------------------------


def test_the_overview_without_anything_says_where_to_begin(page):
    text = page("console:manage")
    assert "No collection yet" in text
    assert "New campaign</a>" not in text


def test_the_overview_lists_campaigns_and_collections_with_counts(page, judged):
    text = page("console:manage")
    done = judged.slots.filter(purpose="judge").count()
    assert f"{done} of {done}" in text
    assert reverse("console:campaign", args=[judged.pk]) in text
    assert '<span class="tag warn">simulated</span>' in text
    assert f'<td class="number">{N_DOCUMENTS}</td>' in text


def test_the_newest_campaign_comes_first_and_assessors_by_name(page, judged):
    newer = make_campaign(judged.collection, drawn=False)
    text = page("console:manage")
    assert text.index(newer.name) < text.index(judged.name)
    text = page("console:assessors", judged.pk)
    first, second = judged.assessors.order_by("user__username")
    assert text.index(first.user.username) < text.index(second.user.username)


def test_a_collection_is_made_and_a_second_of_the_same_name_is_refused_beside_the_field(post):
    answer = post("console:manage-collection-new", name="News", description="")
    assert "No runs yet" in answer.content.decode()
    answer = post("console:manage-collection-new", name="News", description="")
    assert answer.status_code == 400
    assert "already taken" in answer.content.decode()


def test_a_collection_without_runs_links_to_the_upload(page):
    text = page("console:manage-collection", make_collection(n_runs=0).pk)
    assert "No runs yet" in text
    assert '<a class="button" href="#upload">Upload runs</a>' in text
    assert 'enctype="multipart/form-data"' in text


def test_an_upload_queues_a_look_and_shows_its_progress(post, page):
    collection = make_collection()
    file = SimpleUploadedFile("more.tsv", b"t9\tAnother topic\n")
    answer = post("console:manage-collection", collection.pk, files=file)
    assert "<h1>Reading files</h1>" in answer.content.decode()
    assert "more.tsv" in answer.content.decode()
    assert "more.tsv" in page("console:manage-collection", collection.pk)


def test_an_upload_without_a_file_says_so_beside_the_field(post):
    answer = post("console:manage-collection", make_collection().pk, kind="topics")
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
    assert "bad.run:3:1: expected 6 columns" in page("console:manage-collection", collection.pk)


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
    assert "selected" in page("console:manage-campaign-new", collection=str(collection.pk))
    text = post("console:manage-campaign-new", **campaign_fields(collection)).content.decode()
    assert "Choose what is judged" in text
    assert Campaign.objects.get().scale.values() == [0, 1]


def test_wrong_grades_are_explained_beside_the_field(post):
    answer = post("console:manage-campaign-new", **campaign_fields(make_collection(), grades="1 | Yes | 1"))
    assert answer.status_code == 400
    assert "enter two to ten grades: 0, 1, 2" in answer.content.decode()
    assert not Campaign.objects.exists()


def test_results_without_a_draw_and_without_a_computation_say_so(page):
    assert "No results yet" in page("console:results")
    campaign = make_campaign()
    assert "no judgment yet" in page("console:results")
    waiting = "Numbers appear about 10 seconds after the first judgments"
    assert waiting in page("console:campaign-results", campaign.pk)
    assert waiting in page("console:pair", campaign.pk, a="alpha", b="beta")
