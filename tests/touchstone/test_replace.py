"""A kept import is replaced by another one as a whole, or everything stays as it was."""

from datetime import timedelta

import pytest
from api_tools import api_client
from django.core.files.storage import default_storage
from django.urls import reverse
from django.utils import timezone
from journey_files import TOPICS
from manager_requests import page, post
from uploaded import kept, looked, looked_again, run_job

import touchstone.tasks  # noqa: F401 (registers the kinds of job)
from judging.models import Collection, Document, Import, Topic
from judging.services import keeping
from judging.services.errors import ImportRefused
from judging.services.files import clear_uploads
from judging.services.looking import discard, job_of
from touchstone import files
from touchstone.ledger.replacing import queue_replace, read_again, replace_import
from touchstone.models import Event, User
from touchstone.retention import UPLOADS

pytestmark = pytest.mark.django_db(transaction=True)
BOTH = "id,title,text\nd1,One,Words\nd2,Two,More words\n"


@pytest.fixture
def mara():
    return User.objects.create_user("mara", role=User.Role.MANAGER)


@pytest.fixture
def collection():
    return Collection.objects.create(name="new")


@pytest.fixture
def wrong(collection):
    """An import of documents that were taken for topics."""
    made = looked_again(looked(collection, {"both.csv": BOTH}), {"both.csv": {"kind": "topics"}})
    kept(made)
    assert Topic.objects.count() == 2
    return Import.objects.get(pk=made.pk)


def there():
    return (
        list(Topic.objects.order_by("pk").values()),
        list(Document.objects.order_by("pk").values()),
        list(Import.objects.filter(state__in=["kept", "taken-back"]).values()),
        Event.objects.count(),
    )


def test_the_stored_files_are_read_as_something_else_in_one_go(wrong, mara):
    by = queue_replace(
        made=wrong, files=[{"name": "both.csv", "kind": "documents"}], why="no topics", actor=mara
    )
    job = run_job(by)
    assert (job.kind, job.state) == ("replace", "done"), job.error
    assert (Topic.objects.count(), Document.objects.count()) == (0, 2)
    wrong.refresh_from_db()
    by.refresh_from_db()
    assert (wrong.state, by.state) == ("taken-back", "kept")
    event = Event.objects.get(verb="replaced an import")
    assert event.detail == {"import": str(wrong.pk), "by": str(by.pk), "why": "no topics"}
    assert event.actor == mara


def test_a_fault_of_the_new_reading_leaves_everything_as_it_was(wrong, mara, monkeypatch):
    by = read_again(made=wrong, actor=mara, looks=False)
    before = there()

    def fails(*_):
        raise ImportRefused("both.csv:2:1: a fault")

    with monkeypatch.context() as patched:
        patched.setattr(keeping, "_import_all", fails)
        with pytest.raises(ImportRefused, match="a fault"):
            replace_import(made=wrong, by=by, why="x", actor=mara)
    assert there() == before
    replace_import(made=wrong, by=by, why="x", actor=mara)  # the control
    assert there() != before
    assert Topic.objects.count() == 2


def test_an_import_that_was_looked_at_replaces_another_over_the_api(collection, wrong):
    api, rhea = api_client("mary"), api_client("rhea", "researcher")
    other = looked(collection, {"topics.tsv": TOPICS})
    sent = {"with": str(other.pk), "why": "the wrong file"}
    rhea.post(f"/imports/{wrong.pk}/replace", 404, **sent)
    api.post(f"/imports/{wrong.pk}/replace", 400, **{"with": "no id"})
    answer = api.post(f"/imports/{wrong.pk}/replace", 202, **sent)
    assert (answer["id"], answer["job"]["kind"]) == (str(other.pk), "replace")
    run_job(other)
    assert not Topic.objects.filter(topic_id="d1").exists()
    assert Topic.objects.exists()
    api.post(f"/imports/{wrong.pk}/replace", 409, **sent)
    away = looked(Collection.objects.create(name="another"), {"topics.tsv": TOPICS})
    api.post(f"/imports/{other.pk}/replace", 404, **{"with": str(away.pk)})


def test_an_upload_of_what_is_there_replaces_it(collection, mara):
    """The look leaves out what the collection has; where it replaces the import that brought it, it is taken in."""
    made = looked(collection, {"topics.tsv": TOPICS})
    kept(made)
    other = looked(collection, {"better.tsv": TOPICS.replace("Need", "Better need")})
    assert other.report["obstacles"] == ["Nothing is new: all files are left out."]
    queue_replace(made=made, other=other, actor=mara)
    assert run_job(other).state == "done"
    assert set(Topic.objects.values_list("title", flat=True)) == {
        f"Better need {number}" for number in range(3)
    }


def test_uploads_of_kept_imports_stay_for_30_days_and_the_replace_says_when_they_are_gone(
    wrong, mara, monkeypatch
):
    monkeypatch.setattr(files, "ORPHAN_AGE", timedelta(seconds=-60))
    [path] = {entry["path"] for entry in wrong.files}
    Import.objects.filter(pk=wrong.pk).update(kept_at=timezone.now() - timedelta(days=29))
    clear_uploads(UPLOADS)
    assert default_storage.exists(path)
    discard(made=read_again(made=wrong, actor=mara), actor=mara)  # which names the same file
    assert default_storage.exists(path)
    Import.objects.filter(pk=wrong.pk).update(kept_at=timezone.now() - timedelta(days=31))
    clear_uploads(UPLOADS)
    assert not default_storage.exists(path)
    with pytest.raises(ImportRefused, match="no longer stored: upload them again"):
        queue_replace(made=wrong, actor=mara)


def as_it_stands(client, made):
    """Return what the form of the page sends if nothing is changed in it."""
    cards = client.get(reverse("console:manage-import", args=[made.collection_id, made.pk])).context["cards"]
    fields = [field for card in cards for field in card["form"]]
    return {one.html_name: one.value() for one in fields if one.value() not in (None, False, "")}


def test_a_manager_replaces_on_pages_with_four_clicks_and_one_field(wrong, client, mara):
    client.force_login(mara)
    place = "console:manage-import", wrong.collection_id
    assert "Read the files again" in page(client, *place, wrong.pk)
    answer = post(client, "console:manage-import-replace", wrong.collection_id, wrong.pk)  # 1
    again = Import.objects.get(state="looked-at")
    assert str(again.pk) in answer.url
    run_job(again)
    assert ">Replace</button>" in page(client, *place, again.pk)
    post(client, *place, again.pk, **{"file0-kind": "documents"}, look="1")  # 2
    run_job(again)
    post(client, *place, again.pk, **as_it_stands(client, again), keep="1")  # 3
    assert job_of(again).kind == "replace"
    run_job(again)
    assert "Imported" in page(client, *place, again.pk)
    assert (Topic.objects.count(), Document.objects.count()) == (0, 2)
