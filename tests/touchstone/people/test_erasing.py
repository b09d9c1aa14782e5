"""An erasure that stops, waits or is refused, and names by which no text is searched."""

import threading

import pytest
from database_roles import logged_in, session
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.utils import timezone
from small_campaign import make_assessor, make_campaign, make_collection

from judging.models import Participant
from judging.services.judgment_files import import_judgments
from touchstone.ledger.sealing import SEALING_LOCK, seal_new_rows
from touchstone.management.commands.person import Command
from touchstone.models import Job, User, record
from touchstone.people import erasing
from touchstone.people.erasing import erase
from touchstone.people.texts import places
from touchstone.people.words import Words
from touchstone.rights import WORKER

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("made_roles")]
LOGIN, MARKET_NAME = "ada.l+x@example.org", "5a9d64f5f6dfdd0001eaa73d"


def left_of(word):
    """Return every table and column in which the word stands."""
    return list(places(Words([word], "erased-0")))


def test_a_file_of_gold_that_names_the_person_stays_and_is_named(tmp_path, settings, servers, capsys):
    settings.VAR = tmp_path
    User.objects.create(username=LOGIN)
    collection = make_collection(tmp_path, gold=False)
    source, name = tmp_path / "one.qrels", f"{LOGIN}.qrels"
    source.write_text("t0 0 t0d00 0\n")
    import_judgments(collection=collection, source=source, name=name, as_gold=True)
    assert left_of(LOGIN) == [
        ("judging_goldanswer", "source", 1), ("judging_import", "files", 1),
        ("touchstone_event", "detail", 1), ("touchstone_user", "username", 1),
    ]  # fmt: skip
    while seal_new_rows()[0]:
        pass
    with logged_in(servers, WORKER):
        call_command("person", LOGIN, "--erase")
    said = capsys.readouterr().out
    assert "Not touched: 1 rows of judging_goldanswer have one of the words in source." in said
    assert left_of(LOGIN) == [("judging_goldanswer", "source", 1)]


def make_participant(folder, name):
    """Return somebody whom a market called so, while two jobs say that name."""
    person = make_assessor(make_campaign(folder), "crowd-1")
    Participant.objects.create(campaign=person.campaign, assessor=person, participant=name, session="s-1")
    for note in (f"paid {name}", f"asked {name}"):
        Job.objects.create(kind="k", state="done", finished_at=timezone.now(), note=note)
    return person


def test_a_market_name_that_is_a_word_changes_no_text(tmp_path, settings, capsys):
    settings.VAR = tmp_path
    person = make_participant(tmp_path, "abacus")
    call_command("person", "crowd-1", "--erase")
    assert "Not looked for in texts: the market's names abacus, which" in capsys.readouterr().out
    assert left_of("abacus") == [("touchstone_job", "note", 2)]
    assert not Participant.objects.exclude(participant="", session="").exists()
    call_command("person", str(person.user_id), "--erase", "--also", "abacus")  # the control
    assert left_of("abacus") == []


def test_an_erasure_that_stopped_finds_the_market_name_again(tmp_path, monkeypatch):
    person = make_participant(tmp_path, MARKET_NAME)
    of_jobs = ("touchstone_job", "note", 2)
    assert left_of(MARKET_NAME) == [("judging_participant", "participant", 1), of_jobs]

    def stop(*_):
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(erasing, "_replace", stop)
        with pytest.raises(ConnectionError):
            erase(person.user)
    assert not User.objects.get(pk=person.user_id).is_active
    assert of_jobs in left_of(MARKET_NAME)
    report = erase(User.objects.get(pk=person.user_id))
    assert (report.texts["touchstone_job"], report.left, left_of(MARKET_NAME)) == (2, [], [])


def test_an_erasure_waits_for_whoever_seals_longer_than_a_request_would(servers):
    """The control: an ordinary statement of the same session ends after its `lock_timeout`."""
    user = User.objects.create(username=LOGIN)
    record("met", user, note=LOGIN)
    while seal_new_rows()[0]:
        pass
    with logged_in(servers, WORKER), connection.cursor() as cursor, session(servers, WORKER) as sealer:
        cursor.execute("SET lock_timeout = '100ms'")
        sealer.execute("SELECT pg_advisory_lock(%s)", [SEALING_LOCK])
        with pytest.raises(OperationalError, match="lock timeout"):
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SEALING_LOCK])
        free = threading.Timer(1, lambda: sealer.execute("SELECT pg_advisory_unlock(%s)", [SEALING_LOCK]))
        free.start()
        assert erase(user).texts["touchstone_event"] == 1
        free.join()
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("100ms",)
    assert left_of(LOGIN) == []


def test_who_cannot_be_noted_is_not_erased_and_who_is_refused_is_not_noted(tmp_path, settings, capsys):
    settings.VAR = tmp_path / "none"
    user = User.objects.create(username="ada", email=LOGIN)
    with pytest.raises(CommandError, match=r"Nothing was erased: .*none/erased.txt cannot be written"):
        call_command("person", "ada", "--erase")
    settings.VAR = tmp_path
    other = User.objects.create(username=f"ERASED-{user.pk}")
    with pytest.raises(CommandError, match="give it another name first"):
        call_command("person", "ada", "--erase")
    user.refresh_from_db()
    assert (user.is_active, user.email, (tmp_path / "erased.txt").exists()) == (True, LOGIN, False)
    other.delete()
    call_command("person", "ada", "--erase")  # the control
    assert left_of(LOGIN) == []


@pytest.mark.parametrize("lines", [["17 comments", "17"], ["17", "17 comments"], ["17"]])
def test_comments_go_again_where_any_line_says_so(lines, tmp_path, settings, monkeypatch):
    settings.VAR = tmp_path
    User.objects.create(pk=17, username="ada")
    asked = []
    monkeypatch.setattr(Command, "_erase", lambda _, user, comments, also: asked.append((user.pk, comments)))
    notes = tmp_path / "erased.txt"
    notes.write_text("".join(f"{line}\n" for line in lines))
    call_command("person", again=notes)
    assert asked == [(17, "17 comments" in lines)]
