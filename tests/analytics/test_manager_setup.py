"""The steps from nothing to an open campaign: what each says, where it leads, and what it refuses."""

import pytest
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from small_campaign import make_assessor, make_collection, make_undrawn

import judging.tasks  # noqa: F401 (registers the job)
from judging.models import Campaign, Collection, Document, Topic
from judging.services.keeping import keep
from judging.services.looking import look, queue_look
from sampling.questions import Design
from sampling.services.drawing import draw
from touchstone.models import Event, Job, User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture
def alice() -> Client:
    client = Client()
    client.force_login(User.objects.create(username="alice", role="manager"))
    return client


def states(answer) -> dict[str, str]:
    """Return of each step whether it is done, open or later."""
    return {
        step.key: "done" if step.is_done else "open" if step.url else "later"
        for step in answer.context["steps"]
    }


def test_a_new_collection_opens_the_steps_one_after_the_other(alice):
    answer = alice.get(reverse("console:setup-new"))
    assert states(answer)["collection"] == "open"
    assert set(states(answer).values()) == {"open", "later"}
    answer = alice.post(reverse("console:setup-new"), {"name": "News", "description": "of 2020"})
    made = Collection.objects.get(name="News")
    assert answer.url == reverse("console:setup-collection", args=[made.pk, "documents"])
    assert Event.objects.filter(verb="created", subject=f"collection:{made.pk}").exists()
    answer = alice.get(answer.url)
    assert states(answer) | {"scale": "later"} == {
        "collection": "done", "documents": "open", "runs": "open", "scale": "later", "design": "later",
        "people": "later", "gold": "later", "open": "later",
    }  # fmt: skip
    assert "Missing: topics, documents." in answer.content.decode()
    scale = reverse("console:setup-collection", args=[made.pk, "scale"])
    assert alice.get(scale).url == reverse("console:setup-collection", args=[made.pk, "documents"])
    Topic.objects.create(collection=made, topic_id="1", title="A need")
    Document.objects.create(collection=made, doc_id="d", text="text")
    assert alice.get(scale).status_code == 200
    assert alice.post(reverse("console:setup-new"), {"name": "News"}).status_code == 400  # the name is taken


def test_the_campaign_is_made_of_this_collection_whatever_is_sent(alice, tmp_path):
    collection, other = make_collection(tmp_path), Collection.objects.create(name="other")
    address = reverse("console:setup-collection", args=[collection.pk, "scale"])
    form = alice.get(address).context["form"]
    sent = {name: form[name].value() or "" for name in form.fields} | {"collection": str(other.pk)}
    assert alice.post(address, sent | {"grades": "1 | Yes | 1"}).status_code == 400
    assert not Campaign.objects.exists()
    answer = alice.post(address, sent)
    made = Campaign.objects.get()
    assert (made.collection, made.name) == (collection, collection.name)
    assert answer.url == reverse("console:design", args=[made.pk])
    answer = alice.get(answer.url)
    assert states(answer)["scale"] == "done"
    assert states(answer)["design"] == "open"


def test_the_last_step_says_what_is_missing_and_opens_when_nothing_is(alice, tmp_path):
    campaign = make_undrawn(tmp_path)
    address = reverse("console:setup", args=[campaign.pk])
    assert "Nothing is drawn yet." in alice.get(address).content.decode()
    assert alice.get(address).context["missing"].key == "design"
    draw(campaign=campaign, design=Design("pool", (), measure="DCG@10", depth=10, budget=42), seed=1)
    assert alice.get(address).context["missing"].key == "people"
    text = alice.get(address).content.decode()
    assert "Open for judging</button>" in text  # without people it can be opened, with advice
    assert "Nobody can judge yet: add or invite an assessor." in text
    people = reverse("console:setup-step", args=[campaign.pk, "people"])
    assert alice.post(people, {"username": "", "tier": "bronze"}).status_code == 400
    assert alice.post(people, {"username": "bob", "tier": "bronze"}).url == people
    assert "its password, shown only now:" in alice.get(people).content.decode()
    answer = alice.get(address)
    assert answer.context["missing"].key == "gold"  # a wish: it opens without
    assert "Open for judging</button>" in answer.content.decode()
    gold = reverse("console:setup-step", args=[campaign.pk, "gold"])
    plan = {
        "every_seconds": 2,
        "every_unit": 3600,
        "items_each_time": 10,
        "items_in_total": 30,
        "is_active": "on",
    }
    assert alice.post(gold, plan | {"items_each_time": ""}).status_code == 400
    assert alice.post(gold, plan).url == address
    campaign.refresh_from_db()
    assert (campaign.audit_schedule.every_seconds, campaign.audit_schedule.items_in_total) == (7200, 30)
    assert states(alice.get(address))["gold"] == "done"
    assert (
        reverse("console:setup", args=[campaign.pk]) in alice.get(reverse("console:manage")).content.decode()
    )
    alice.post(reverse("console:manage-campaign-state", args=[campaign.pk]), {"state": "open"})
    assert set(states(alice.get(address)).values()) == {"done"}


@pytest.mark.parametrize("step", ["documents", "runs"])
def test_an_upload_of_a_step_is_looked_at_and_leads_to_its_page(alice, tmp_path, step):
    collection = make_collection(tmp_path)
    address = reverse("console:setup-collection", args=[collection.pk, step])
    assert alice.post(address, {}).status_code == 400
    assert not Job.objects.exists()
    file = SimpleUploadedFile("more.run", b"t0 Q0 t0d00 1 1 more\n")
    answer = alice.post(address, {"files": file})
    made = collection.imports.get(state="looked-at")
    assert answer.url == reverse("console:manage-import", args=[collection.pk, made.pk])
    assert Job.objects.get().kind == "look"
    assert "more.run" in alice.get(address).content.decode()


@pytest.mark.parametrize("is_manual", [True, False])
def test_a_run_of_an_upload_is_marked_as_manual_where_the_manager_says_so(alice, tmp_path, is_manual):
    collection = make_collection(tmp_path)
    text = b"t0 Q0 t0d00 1 1 one\n"
    made = queue_look(collection=collection, files=[ContentFile(text, name="one.run")], user=None)
    look(made)
    choices = {"one.run": {"kind": "runs", "is_manual": is_manual}}
    keep(made, files=[{"name": name, **chosen} for name, chosen in choices.items()], actor=None)
    assert collection.runs.get(run_id="one").is_manual == is_manual
    shown = alice.get(reverse("console:manage-collection", args=[collection.pk])).content.decode()
    assert shown.count('<span class="tag">manual</span>') == int(is_manual)


def test_unknown_steps_and_steps_of_others_are_absent(alice, tmp_path):
    campaign = make_undrawn(tmp_path)
    make_assessor(campaign, "bob")
    for name, key, step in (
        ("console:setup-step", campaign.pk, "nothing"),
        ("console:setup-collection", campaign.collection_id, "people"),
        ("console:setup-step", campaign.collection_id, "people"),
        ("console:setup-collection", campaign.pk, "runs"),
    ):
        assert alice.get(reverse(name, args=[key, step])).status_code == 404, (name, step)
    answer = alice.get(reverse("console:setup-step", args=[campaign.pk, "design"]))
    assert answer.url == reverse("console:design", args=[campaign.pk])
