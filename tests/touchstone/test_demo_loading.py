"""Loading the demo: what takes long happens before its transaction, and whoever starts it sees what is being done."""

import time
from functools import partial
from io import StringIO
from itertools import islice
from types import SimpleNamespace

import pytest
from django.core.management.base import OutputWrapper
from django.db import connection

from judging.models import Campaign, Collection, GoldAnswer, Judgment
from sampling.models import AuditSchedule
from touchstone import embedded
from touchstone.demo import docstrings, systems
from touchstone.management.commands import load_demo
from touchstone.management.commands.stack import line_writer
from touchstone.models import User
from touchstone.processes import Program, patience


@pytest.mark.django_db(transaction=True)
def test_documents_are_read_and_searched_before_the_transaction(monkeypatch):
    """On a busy machine PostgreSQL ends a transaction that waits meanwhile."""
    within: dict[str, bool] = {}
    some, search, store = (
        list(islice(docstrings.stdlib_documents(), 0, None, 9)),
        systems.rankings,
        load_demo.import_documents,
    )

    def read():
        for document in some:
            within["read"] = connection.in_atomic_block
            yield document

    def rank(*arguments):
        within["search"] = connection.in_atomic_block
        return search(*arguments)

    def keep(**arguments):
        within["import"] = connection.in_atomic_block
        return store(**arguments)

    monkeypatch.setattr(docstrings, "stdlib_documents", read)
    monkeypatch.setattr(systems, "rankings", rank)
    monkeypatch.setattr(load_demo, "import_documents", keep)
    said = StringIO()
    made = load_demo.Command(stdout=said)._standard_library("Some of it")
    assert within == {"read": False, "search": False, "import": True}
    assert made.documents.count() == len(some)
    assert (made.topics.count(), made.runs.count()) == (45, 8)
    assert set(made.runs.values_list("may_publish", flat=True)) == {True}
    assert GoldAnswer.objects.filter(topic__collection=made).exists()
    words = [line.partition("] ")[2] for line in said.getvalue().splitlines()]
    assert words[:2] == [
        "reading the documentation of Python's standard library",
        f"searching {len(some)} documents for 45 topics",
    ]


@pytest.mark.django_db(transaction=True)
def test_a_load_that_fails_leaves_no_collection(monkeypatch):
    some = list(islice(docstrings.stdlib_documents(), 40))
    monkeypatch.setattr(docstrings, "stdlib_documents", lambda: iter(some))

    def fail(**arguments):
        raise ValueError("no topics")

    monkeypatch.setattr(load_demo, "import_topics", fail)
    with pytest.raises(ValueError, match="no topics"):
        load_demo.Command(stdout=StringIO())._standard_library("Half of it")
    assert not Collection.objects.filter(name="Half of it").exists()


def test_whoever_waits_sees_that_something_is_being_done():
    said: list[str] = []
    with patience(said.append, every=0.05):
        until = time.monotonic() + 5
        while len(said) < 2 and time.monotonic() < until:
            time.sleep(0.01)
    n_lines = len(said)
    time.sleep(0.2)
    assert 2 <= n_lines == len(said)  # none after the end
    assert said[0] == "  ... 0 s"


@pytest.mark.django_db(transaction=True)
def test_programs_judge_the_simulated_campaign_after_the_load_and_only_once(monkeypatch):
    some = list(islice(docstrings.stdlib_documents(), 0, None, 9))
    monkeypatch.setattr(docstrings, "stdlib_documents", lambda: iter(some))
    monkeypatch.setattr(load_demo, "SIMULATED_ITEMS", 100)
    command = load_demo.Command(stdout=StringIO())
    made = command._standard_library("Some of it")
    manager = User.objects.create_user("mara", role=User.Role.MANAGER)
    command._open_simulated_campaign(made, manager, ("bm25-description", "fusion"))
    campaign = Campaign.objects.get(is_simulated=True)
    # What whoever starts the demo waits for: drawn, open, and nobody has judged.
    assert (campaign.state, Judgment.objects.count()) == (Campaign.State.OPEN, 0)
    assert campaign.items.count() > 50

    command._judge_simulated_campaign()
    tiers = Judgment.objects.filter(slot__item__campaign=campaign).values_list("assessor__tier", flat=True)
    assert set(tiers) == {"bronze", "silver", "gold"}
    assert not campaign.slots.exclude(state="done").exists()
    assert AuditSchedule.objects.filter(campaign=campaign, items_in_total=150).exists()
    n_judgments = Judgment.objects.count()

    command._judge_simulated_campaign()
    assert Judgment.objects.count() == n_judgments


class Stream(StringIO):
    """A stream that notes how often it was flushed."""

    n_flushed = 0

    def flush(self):
        self.n_flushed += 1


def test_every_line_is_written_at_once():
    stream = Stream()
    write = line_writer(OutputWrapper(stream))
    write("Starting ...")
    assert (stream.getvalue(), stream.n_flushed) == ("Starting ...\n", 1)


def test_the_first_program_answers_before_the_next_is_started(tmp_path, monkeypatch):
    """Pages come first: a worker that starts beside them takes half of a small machine."""
    events: list[str] = []

    class Recorded(Program):
        def start(self, log_folder):
            events.append(f"{self.name} started")

        def stop(self, seconds=20):
            events.append(f"{self.name} stopped")

    def stop():
        events.append("all answer")
        raise embedded.Stop

    monkeypatch.setattr(embedded, "deaf_to_signals", lambda: None)
    programs: list[Program] = [
        Recorded(name, [], ready=partial(events.append, f"{name} answers")) for name in ("web", "worker")
    ]
    programs.append(Recorded("last", [], ready=stop))
    servers = SimpleNamespace(programs=[], database_url="", url_of=str, passwords={}, redis_url="")
    with pytest.raises(embedded.Stop):
        embedded.supervise(tmp_path, servers, programs, print)
    assert events == [
        "web started",
        "web answers",
        "worker started",
        "worker answers",
        "last started",
        "all answer",
        "last stopped",
        "worker stopped",
        "web stopped",
    ]
