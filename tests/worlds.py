"""Two campaigns with one of everything an address can name: one the people of a test may see, one they may not.

`world.arguments(route)` fills an address of the product; a new kind of thing in an address belongs into `names`, else
the tests that walk every address (permissions, looks, the API) say that it is missing.
"""

import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.core.files.base import ContentFile
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse
from django.urls.converters import IntConverter, UUIDConverter
from django.utils import timezone
from small_campaign import give, judge_all, judge_audit, make_assessor, make_campaign, slots, truth_of

import analytics.tasks  # noqa: F401 (all three: the kinds of job are registered)
import judging.tasks  # noqa: F401
import sampling.tasks  # noqa: F401
from analytics.models import Release
from analytics.releases.services import releasing
from analytics.services.recomputation import recompute
from judging.models import (
    Adjudication,
    Campaign,
    Collection,
    CollectionMember,
    GoldAnswer,
    Import,
    Message,
    Participant,
    TrainingItem,
)
from judging.services.assign import claim
from judging.services.entry import create_invitation
from judging.services.looking import look, queue_look
from sampling.services.auditing import audit
from sampling.services.topic_checks import plan_checks
from touchstone.letters.queueing import one_time_secret, queue_letter
from touchstone.letters.unsubscribing import unsubscribe_token
from touchstone.links import ADDRESS, ADDRESS_LIFE, hash_of, invite, make_password_link
from touchstone.models import AccountLink, ApiToken, Event, Job, Letter, User, Webhook

ABSENT_UUID, ABSENT_NUMBER = uuid.UUID("00000000-0000-4000-8000-000000000000"), 2**31 - 1
# What a page must be asked, to have something to show.
QUERIES: dict[str, dict[str, str]] = {
    "console:pair": {"run": "run0", "against": "run2"},
    "console:papers": {"measure": "DCG@10", "run": "run0", "against": "run2"},
    "console:reuse": {"run": "run0"},
    "console:planner": {"run": "run0", "against": "run2"},
}


@dataclass(frozen=True)
class Route:
    """An address of the product: its name with the namespace, its pattern, what its view is called with."""

    name: str
    pattern: str
    converters: dict[str, Any]
    view: Any

    def __str__(self) -> str:
        return self.name


def routes() -> list[Route]:
    """Return every address that the resolver knows."""
    return list(_walk(get_resolver(), "", "", {}))


def _walk(resolver: URLResolver, prefix: str, namespace: str, converters: dict[str, Any]) -> Any:
    for entry in resolver.url_patterns:
        known = {**converters, **entry.pattern.converters, **_groups(entry)}
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLPattern):
            assert entry.name, f"{path} has no name"
            yield Route(f"{namespace}{entry.name}", path, known, entry.callback)
        else:
            inner = f"{namespace}{entry.namespace}:" if entry.namespace else namespace
            yield from _walk(entry, path, inner, known)


def _groups(entry: Any) -> dict[str, Any]:
    """The named parts of an address that is a regular expression are texts."""
    regex = getattr(entry.pattern, "regex", None)
    return {} if entry.pattern.converters or regex is None else dict.fromkeys(regex.groupindex)


@dataclass
class World:
    """What one address or another can name."""

    campaign: Campaign
    names: dict[str, Any]

    def arguments(self, route: Route) -> dict[str, Any]:
        """Return what the address is called with here."""
        found = {}
        for name in route.converters:
            for key in (f"{route.name} {name}", name):
                if key in self.names:
                    found[name] = self.names[key]
                    break
            else:
                raise LookupError(f"tests/worlds.py has no {name} for {route.name} ({route.pattern})")
        return found

    def address(self, route: Route) -> str:
        """Return the address, asked for what the page can show."""
        arguments = self.arguments(route)
        try:
            path = reverse(route.name, kwargs=arguments)
        except NoReverseMatch:  # a run's number in an address of pages, its name in one for programs
            path = reverse(route.name, kwargs=arguments | {"run_id": self.names["run"]})
        query = QUERIES.get(route.name)
        return path + (f"?{urlencode(query)}" if query else "")


def absent(route: Route, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with things that do not exist in the place of all that is numbered."""
    gone: dict[type, Any] = {UUIDConverter: ABSENT_UUID, IntConverter: ABSENT_NUMBER}
    return {
        name: gone.get(type(converter), ABSENT_UUID if name.endswith("_id") else arguments[name])
        for name, converter in route.converters.items()
    }


def make_user(username: str, role: str) -> User:
    return User.objects.create(username=username, role=role)


def make_world(folder: Path, people: list[User], assessor: str) -> World:
    """Return a campaign that only these managers and researchers may see, in which `assessor` judges.

    Judged, audited and computed; with a check, a lease, an invitation, a training item, a job, a message, a release.
    """
    campaign = make_campaign(folder, gold_check_rate=0.2)
    collection = campaign.collection
    collection.is_restricted, collection.may_publish_documents = True, True
    collection.save()
    collection.runs.update(may_publish=True)
    for person in people:
        CollectionMember.objects.create(collection=collection, user=person)
    bob, ben = make_assessor(campaign, assessor), make_assessor(campaign, f"{assessor} too")
    # The last topic stays open: there is something left to claim.
    judge_all(campaign, [bob, ben], topic__topic_id__in=["t0", "t1"])
    for check in slots(campaign, "check", state="open")[:4]:
        give(make_or_get(campaign, f"{assessor} three"), check, truth_of(check))
    gold = make_assessor(campaign, f"{assessor} golden", tier="gold")
    audit(campaign=campaign, items_each_time=14, items_in_total=14, seed=5)
    judge_audit(campaign, gold)
    recompute(campaign=campaign)
    return World(campaign, names_of(campaign, people[0], bob))


def make_or_get(campaign: Campaign, name: str) -> Any:
    found = campaign.assessors.filter(user__username=name).first()
    return found or make_assessor(campaign, name)


def names_of(campaign: Campaign, manager: User, bob: Any) -> dict[str, Any]:
    collection, topic = campaign.collection, campaign.collection.topics.first()
    document = collection.documents.last()
    other = make_or_get(campaign, f"{bob.user.username} too")
    campaign.assessors.update(trained_at=timezone.now())
    TrainingItem.objects.create(campaign=campaign, topic=topic, document=document, grade=1, position=1)
    invitation = create_invitation(campaign=campaign, user=manager)
    held = claim(assessor=bob, n=1).items[0]
    lent = claim(assessor=other, n=1).items[0]
    participant = Participant.objects.create(campaign=campaign, assessor=other, participant="worker 1")
    job = Job.objects.create(
        kind="estimate",
        payload={"campaign": str(campaign.pk), "collection": str(collection.pk)},
        requested_by=manager,
    )
    side = {"campaign": str(campaign.pk), "run": "run0", "since": "", "until": ""}
    rounds = Job.objects.create(
        kind="rounds",
        payload={
            "campaign": str(campaign.pk),
            "second_campaign": str(campaign.pk),
            "asked": {"first": side, "second": side, "measure": "P@10", "claim": "", "audit": ""},
        },
        requested_by=manager,
    )
    drawing = Job.objects.create(kind="draw", payload={"campaign": str(campaign.pk)}, requested_by=manager)
    message = Message.objects.create(assessor=bob, sender=manager, text="Please read the narrative again.")
    question = Message.objects.create(
        assessor=bob, sender=bob.user, text="Which year?", is_from_assessor=True
    )
    item = campaign.items.order_by("id").first()
    decided = Adjudication.objects.create(item=item, grade=1, decided_by=manager)
    webhook = Webhook.objects.create(user=manager, url="https://hooks.example/", secret="not a secret")
    token = ApiToken.objects.create(user=manager, name="key", key_sha256=uuid.uuid4().hex * 2)
    run = collection.runs.first()
    checks = plan_checks(campaign=campaign, n_bad_good=0, n_bad_limit=2, seed=3, user=manager).checks
    return {
        "campaign_id": campaign.pk,
        "collection_id": collection.pk,
        "assessor_id": bob.pk,
        "topic_id": topic.topic_id,
        "topic_pk": topic.pk,
        "answer_pk": GoldAnswer.objects.filter(topic__collection=collection).first().pk,
        "import_id": look_at_topics(collection, manager).pk,
        "console:api-import-remove import_id": Event.objects.get(
            verb="imported topics", subject=f"collection:{collection.pk}"
        ).pk,
        "file": 0,
        "document": 0,
        "doc_id": document.doc_id,
        "document_pk": document.pk,
        "run_id": run.pk,
        "run_pk": run.pk,
        "item_id": item.pk,
        "invitation_id": invitation.pk,
        "participant_id": participant.pk,
        "message_id": message.pk,
        **dict.fromkeys(
            [
                "console:message-thread message_id",
                "console:message-close message_id",
                "console:api-question-answer message_id",
                "console:api-question-close message_id",
            ],
            question.pk,
        ),
        "adjudication_id": decided.pk,
        "webhook_id": webhook.pk,
        "token_id": token.pk,
        "job_id": job.pk,
        "event_id": Event.objects.filter(subject=f"campaign:{campaign.pk}").first().pk,
        "release_id": make_release(campaign, manager).pk,
        **dict.fromkeys(["console:public-release version", "console:public-release-download version"], "1.0"),
        "computation_id": campaign.computations.first().pk,
        "batch": 1,
        "sequence": 1,
        "position": 1,
        "entry_key": campaign.entry_key,
        "file_format": "csv",
        "kind": "qrels",
        "what": "agreement",
        "step": "documents",
        "plot": "forest",
        "table": "runs",
        "check_id": checks.get(sequence=1).pk,
        "next_topic": checks.get(sequence=1).topic.topic_id,
        "console:api-campaign-job job_id": drawing.pk,
        "console:api-rounds-result job_id": rounds.pk,
        "judging:frame token": held.token,
        "console:manage-import-take-back import_id": Import.objects.get(
            kind="topics", collection=collection
        ).pk,
        "console:api-import-rests import_id": Import.objects.get(kind="topics", collection=collection).pk,
        "console:api-import-take-back import_id": Import.objects.get(kind="topics", collection=collection).pk,
        "console:manage-import-replace import_id": Import.objects.get(
            kind="topics", collection=collection
        ).pk,
        "console:api-import-replace import_id": Import.objects.get(kind="topics", collection=collection).pk,
        "judging:join token": invitation.token,
        "letters-off token": unsubscribe_token(bob.user_id, "gold"),
        "console:manage-lease-release token": lent.token,
        "console:manage-invitation-revoke link_id": invite(role="researcher", actor=manager)[0].pk,
        "person_id": bob.user_id,
        "letter_id": write_letter(manager).pk,
        "link-invitation token": invite(role="researcher", actor=manager)[1],
        "company-invitation token": "x" * 43,
        "company-password token": "x" * 43,
        "company-join token": invitation.token,
        "link-address token": address_token(bob.user),
        "link-password token": make_password_link(user=bob.user, actor=manager)[1],
        "console:api-lease-release token": lent.token,
    }


def write_letter(manager: User) -> Letter:
    """Return a letter that waits to be sent."""
    letter = queue_letter(
        kind="invitation",
        to=f"m{manager.pk}@example.org",
        subject="accountlink:1",
        title="Come",
        lines=["Come."],
    )
    assert letter is not None
    return letter


def address_token(user: User) -> str:
    """Return the token of a link that proves a user's address."""
    token = one_time_secret(ADDRESS, uuid.uuid4().hex)
    AccountLink.objects.create(
        kind=ADDRESS,
        token_sha256=hash_of(token),
        user=user,
        email="new@example.org",
        created_by=user,
        expires_at=timezone.now() + ADDRESS_LIFE,
    )
    return token


def look_at_topics(collection: Collection, manager: User) -> Import:
    """Return an upload that was looked at and could be kept."""
    line = {"_id": "d9", "text": "Another document, as long as no topic is. " * 20}
    files = [ContentFile(f"{json.dumps(line)}\n".encode(), name="documents.jsonl")]
    made = queue_look(collection=collection, files=files, user=manager)
    Job.objects.filter(payload__import=str(made.pk)).delete()  # it is done here
    look(made)
    return Import.objects.get(pk=made.pk)


def make_release(campaign: Campaign, manager: User) -> Release:
    """Return a release of the campaign, built."""
    made = releasing.make_release(
        campaign=campaign, version="1.0", includes_documents=True, actor=manager, by_job=False
    )
    releasing.build(release=made)
    Release.objects.filter(pk=made.pk).update(public_since=timezone.now())
    return made
