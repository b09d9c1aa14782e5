"""Wherever a manager's page names a topic, a document, an item or a person, it links to it: a walk over all pages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client
from lxml import html
from worlds import World, make_user, make_world, routes

from judging.models import Adjudication, Assessor, Item, Judgment
from judging.services.messages import send
from touchstone.models import User

pytestmark = pytest.mark.django_db
# Where a name is no mention: what a form offers or a script reads, the page's own heading, charts with a table below.
SILENT = frozenset(
    ["h1", "script", "style", "option", "button", "textarea", "label", "iframe", "svg", "datalist", "pre"]
)
ROWS, PARTS = {"tr", "li"}, {"section", "form", "main"}


@dataclass(frozen=True)
class Thing:
    """Something that pages name: how they call it, and what is in the address of each page about it."""

    kind: str
    names: tuple[str, ...]
    marks: tuple[str, ...]

    def is_led_to(self, href: str) -> bool:
        return any(re.search(mark, href) for mark in self.marks)


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture(scope="module")
def made_once(module_world, tmp_path_factory) -> World:
    """The world of all addresses, with a message about a document and a decision beside."""
    made = make_world(tmp_path_factory.mktemp("world"), [make_user("mirabel", "manager")], "zebulon")
    mirabel = User.objects.get(username="mirabel")
    judged = Judgment.objects.filter(item__campaign=made.campaign).first()
    send(assessor=judged.assessor, text="Look again.", sender=mirabel, item=judged.item)
    Adjudication.objects.create(item=judged.item, grade=2, decided_by=mirabel)
    return made


@pytest.fixture
def world(made_once, db) -> World:
    return made_once


@pytest.fixture
def client(world) -> Client:
    made = Client()
    made.force_login(User.objects.get(username="mirabel"))
    return made


def things_of(world: World) -> list[Thing]:
    """Return all that the pages of this world may name."""
    collection, campaign = world.campaign.collection, world.campaign
    found = []
    items = list(Item.objects.filter(campaign=campaign))
    for topic in collection.topics.all():
        of_topic = [rf"/items/{item.pk}/" for item in items if item.topic_id == topic.pk]
        marks = (rf"/topics/{topic.pk}/", rf"[?&;](topic_id|q)={topic.topic_id}\b", *of_topic)
        found.append(Thing("topic", (topic.title, topic.topic_id), marks))
    for document in collection.documents.all():
        mine = [rf"/items/{item.pk}/" for item in items if item.document_id == document.pk]
        marks = (rf"/documents/{document.pk}/", rf"[?&;](doc_id|q)={document.doc_id}\b", *mine)
        found.append(Thing("document", (document.title, document.doc_id), marks))
    for user in User.objects.all():
        judging = Assessor.objects.filter(user=user).values_list("pk", flat=True)
        pages = [rf"/assessors/{pk}/" for pk in judging]
        name = re.escape(user.username.replace(" ", "%20"))
        marks = (rf"/users/{user.pk}/", rf"[?&;](assessor|q)={name}", *pages)
        found.append(Thing("person", (user.username,), marks))
    return found


def pages(world: World, client: Client) -> Iterator[tuple[str, str, Any]]:
    """Return the pages that a manager may see: name, address, and the tree of what it shows."""
    for route in routes():
        if not route.name.startswith("console:") or "api-" in route.name:
            continue
        path = world.address(route)
        answer = client.get(path)
        # A file is read to its end, which closes it.
        content = answer.getvalue()
        policy = answer.headers.get("content-security-policy", "")
        is_page = answer.status_code == 200 and "text/html" in answer.headers.get("content-type", "")
        if is_page and "sandbox" not in policy:
            yield route.name, path, html.fromstring(content)


class Walk:
    """Finds the names of things in pages, and which of them lead nowhere."""

    def __init__(self, things: list[Thing]) -> None:
        self.by_name = {name: one for one in things for name in one.names if name}
        longest_first = sorted(self.by_name, key=len, reverse=True)
        self.pattern = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, longest_first))})(?![\w-])")
        self.n_found: dict[str, int] = {"topic": 0, "document": 0, "person": 0}

    def unlinked(self, path: str, tree: Any) -> list[str]:
        """Return the names on a page that lead nowhere; a page is its own thing's place."""
        (main,) = tree.xpath("//main")
        faults = []
        for element, text in _texts(main):
            for name in self.pattern.findall(text):
                thing = self.by_name[name]
                if thing.is_led_to(path):
                    continue
                self.n_found[thing.kind] += 1
                if not _leads(element, thing):
                    faults.append(f"{name} in <{element.tag}> {text.strip()[:80]!r}")
        return faults


def _texts(main: Any) -> Iterator[tuple[Any, str]]:
    for element in main.iter():
        if not isinstance(element.tag, str):
            continue
        if element.text and not _is_silent(element):
            yield element, element.text
        parent = element.getparent()
        if element.tail and element is not main and not _is_silent(parent):
            yield parent, element.tail


def _is_silent(element: Any) -> bool:
    return any(one.tag in SILENT for one in (element, *element.iterancestors()))


def _leads(element: Any, thing: Thing) -> bool:
    """Return whether the text is a link to the thing, or has one beside it, in its row or its part of the page."""
    around = [element, *element.iterancestors()]
    link = next((one for one in around if one.tag == "a"), None)
    if link is not None:
        return thing.is_led_to(link.get("href", ""))
    rows = [one for one in around if one.tag in ROWS] or [one for one in around if one.tag in PARTS]
    return any(thing.is_led_to(one.get("href", "")) for one in rows[0].iter("a"))


def test_every_name_on_a_managers_page_leads_to_what_it_names(world, client):
    walk, faults, n_pages = Walk(things_of(world)), [], 0
    for name, path, tree in pages(world, client):
        n_pages += 1
        faults += [f"{name}: {fault}" for fault in walk.unlinked(path, tree)]
    assert not faults, "\n".join(sorted(set(faults)))
    assert n_pages > 40
    assert min(walk.n_found.values()) > 50, walk.n_found


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("console:items", "topic"),
        ("console:items", "document"),
        ("console:judgments", "person"),
        ("console:events", "person"),
        ("console:messages", "person"),
        ("console:topic", "document"),
        ("console:document", "topic"),
        ("console:adjudication", "topic"),
    ],
)
def test_a_link_taken_away_makes_the_walk_fail(world, client, name, kind):
    things = things_of(world)
    route = next(one for one in routes() if one.name == name)
    path = world.address(route)
    tree = html.fromstring(client.get(path).content)
    assert Walk(things).unlinked(path, tree) == []
    of_kind = [one for one in things if one.kind == kind]
    gone = False
    for link in list(tree.xpath("//main//table//a[@href]")):
        if any(one.is_led_to(link.get("href")) and not one.is_led_to(path) for one in of_kind):
            row = next(one for one in link.iterancestors() if one.tag in ROWS)
            for other in list(row.iter("a")):
                other.tag = "span"  # the words stay
            gone = True
            break
    assert gone, "no link of this kind on the page: the control controls nothing"
    assert Walk(things).unlinked(path, tree) != []
