"""Loading the demo: what takes long happens before its transaction, and whoever starts it sees what is being done."""

from functools import partial
from io import StringIO
from itertools import islice
from types import SimpleNamespace

import pytest
from django.core.management.base import OutputWrapper
from django.db import connection

from judging.models import Collection, GoldAnswer
from touchstone import embedded
from touchstone.demo import docstrings, systems
from touchstone.management.commands import load_demo
from touchstone.management.commands.stack import line_writer
from touchstone.processes import Program


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
    servers = SimpleNamespace(programs=[], database_url="", url_of=str, passwords={}, redis_url="")
    with pytest.raises(embedded.Stop):
        embedded.supervise(tmp_path, servers, programs, print, stop)
    assert events == [
        "web started",
        "web answers",
        "worker started",
        "worker answers",
        "all answer",
        "worker stopped",
        "web stopped",
    ]
