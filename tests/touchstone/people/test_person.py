"""Somebody whose login is an e-mail address does everything, and is erased: nothing that was written names them."""

import io
import json
import subprocess
import threading
import uuid
import zipfile
from pathlib import Path

import pytest
from database_roles import logged_in
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from ledger_world import run
from quick_flush import unguarded
from small_campaign import (
    DEFAULT_GRADES,
    judge_all,
    judge_audit,
    lease,
    make_assessor,
    make_campaign,
    slots,
    truth_of,
)

from analytics.releases.services.releasing import build, make_release
from analytics.services.recomputation import recompute
from judging.models import Collection, ImportedName, Judgment, Participant
from judging.services.adjudication import adjudicate
from judging.services.assign import submit
from judging.services.campaigns import create_campaign
from judging.services.entry import create_invitation, join
from judging.services.files import queue_import
from judging.services.messages import send
from sampling.services.auditing import audit
from touchstone.api.webhooks import make_webhook
from touchstone.authentication import make_token
from touchstone.ledger.sealing import seal_new_rows
from touchstone.letters.queueing import queue_letter
from touchstone.models import Erasure, Event, Job, User, record
from touchstone.openid import Person
from touchstone.people.erasing import erase
from touchstone.rights import WORKER
from touchstone.sign_on import link_account

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("made_roles")]
LOGIN, FULL, COMMENT = "ada.l+x@example.org", "Ada Lovelace", "I doubt the third paragraph"
GRADES = "SELECT id, grade, item_id, assessor_id, slot_id, created_at FROM judging_judgment ORDER BY id"
NUMBERS = ("analytics_computation", "analytics_estimate", "analytics_confusionestimate", "analytics_release")


def dump(servers):
    """Return everything that the database holds, as pg_dump writes it."""
    name = settings.DATABASES["default"]["NAME"]
    url = servers.database_url.rpartition("/")[0] + f"/{name}"
    command = [str(servers.binaries / "pg_dump"), "--inserts", url]
    return subprocess.run(command, check=True, capture_output=True).stdout.decode()


def written(servers):
    """Return the bytes of every file and log, of archives what is packed in them, by name."""
    found = {}
    for folder in (settings.MEDIA_ROOT, servers.root / "log", settings.VAR):
        for path in Path(folder).rglob("*"):
            if path.is_file() and "postgres" not in path.relative_to(folder).parts[:1]:
                found[str(path)] = path.read_bytes()
                if zipfile.is_zipfile(path):
                    with zipfile.ZipFile(path) as archive:
                        found[f"{path}!"] = b"".join(archive.read(name) for name in archive.namelist())
    return found


def names(text):
    """Return which names of the person stand in the text, in any case and as addresses write them."""
    words = (LOGIN, LOGIN.replace("@", "%40"), FULL, FULL.replace(" ", "%20"))
    return [word for word in words if word.lower() in text.lower()]


def numbers():
    return {
        table: run(f"SELECT md5(string_agg(to_jsonb(r)::text, '' ORDER BY r.id)) FROM {table} r")  # noqa: S608
        for table in NUMBERS
    }


@pytest.fixture
def ada(tmp_path, settings, client):
    """She manages, judges with comments, uploads, invites, joins, has a key and a webhook, and made a release."""
    User.objects.create(username="mara", role="manager")  # the last active manager could not be erased
    user = User(username=LOGIN, email=LOGIN, first_name="Ada", last_name="Lovelace", role="manager")
    user.set_password("a long password 1")
    user.save()
    settings.WEBHOOK_HOSTS = ["https://hooks.example.org"]
    client.force_login(user)
    link_account(user=user, person=Person("https://id.example.org", "subject-0815", LOGIN))
    make_token(user=user, name=f"of {FULL}", days=9)
    make_webhook(user=user, url=f"https://hooks.example.org/{LOGIN.replace('@', '%40')}")
    campaign = make_campaign(tmp_path, budget=30)
    hers = make_assessor(campaign, LOGIN)
    ben, gold = make_assessor(campaign, "ben"), make_assessor(campaign, "gus", "gold")
    first = slots(campaign)[0]
    token = lease(hers, first)
    sent = {"token": token, "client_token": uuid.uuid4(), "grade": 1, "comment": f"{COMMENT}, {FULL}"}
    submit(assessor=hers, **sent)
    hers.late = lease(hers, slots(campaign)[-2])  # a document that is on her screen
    judge_all(campaign, [hers, ben], grade=lambda slot, place: max(0, truth_of(slot) - place))
    audit(campaign=campaign, items_each_time=12, items_in_total=12, seed=3)
    judge_audit(campaign, gold)
    recompute(campaign=campaign)
    adjudicate(item=first.item, grade=2, reason=f"{FULL} is right", actor=user)
    send(assessor=hers, text=f"Dear {FULL}", sender=user)
    send(assessor=ben, text=f"Ask {LOGIN}", sender=user)
    User.objects.filter(pk=ben.user_id).update(email="ben@example.org")
    ben.user.refresh_from_db()
    for to in (user, ben.user, f" {LOGIN}"):
        said = {"title": f"Of {FULL}", "lines": [f"{FULL} asks you."]}
        assert queue_letter(kind="invitation", to=to, subject="invitation:1", **said)
    own = create_campaign(
        collection=campaign.collection,
        name=f"Study of {FULL}",
        user=user,
        grades=DEFAULT_GRADES,
        guidelines=f"Write to {LOGIN}",
    )
    join(
        token=create_invitation(campaign=own, user=user, note="Countess", tier="bronze", days=3).token,
        user=user,
    )
    create_invitation(campaign=own, user=user, note=f"for {LOGIN}", tier="bronze", days=3)
    name = f"{LOGIN}-topics.tsv"
    queue_import(
        kind="topics",
        files=[ContentFile(b"t9\tNeed\n", name=name)],
        collection=campaign.collection,
        user=user,
    )
    record("imported topics", campaign.collection, actor=user, file=name)
    Participant.objects.create(
        campaign=campaign, assessor=hers, participant="market-id-4711", session="session-12"
    )
    ImportedName.objects.create(assessor=hers, source="crowd.csv", name="lady ada")
    build(release=make_release(campaign=campaign, version="1.0", actor=user, by_job=False))
    other = client.__class__()
    other.force_login(ben.user)
    session = other.session
    session["_messages"] = json.dumps([f"Sent: {LOGIN} will see it"])
    session.save()
    Job.objects.filter(kind="import").update(
        state="failed", finished_at="2026-11-01T00:00Z", error=f"bad file {name}"
    )
    Collection.objects.filter(pk=campaign.collection_id).update(description=f"Collected by {FULL.upper()}")
    while seal_new_rows()[0]:
        pass
    return hers


def refused_twice(name, *before):
    """Return why there is no second user of the name."""
    try:
        with transaction.atomic():
            for sql in before:
                run(sql)
            User.objects.get_or_create(username=name)
            User.objects.create(username=name)
    except DatabaseError as error:
        return str(error)
    return ""


def erased(servers, capsys, *options):
    with logged_in(servers, WORKER):
        call_command("person", LOGIN, "--erase", *options)
    return capsys.readouterr().out


def verified(release, capsys):
    call_command("verify_ledger", release)
    return "The ledger verifies" in capsys.readouterr().out


def test_who_did_everything_is_in_no_dump_file_or_log_and_what_was_measured_stays(ada, servers, capsys):
    campaign = ada.campaign
    release = campaign.releases.get()
    # What PostgreSQL refuses it does not quote in its log; the control: a session that has it quoted.
    assert "already exists" in refused_twice(LOGIN)
    assert "already exists" in refused_twice(
        "control@example.org", "SET LOCAL log_min_error_statement = 'error'"
    )
    log = (servers.root / "log" / "postgres.log").read_text()
    assert "control@example.org" in log
    assert "duplicate key value" in log
    before, file, grades = numbers(), Path(release.file.path).read_bytes(), run(GRADES)
    text = dump(servers)
    assert names(text) == [LOGIN, LOGIN.replace("@", "%40"), FULL]
    assert all(word in text for word in (COMMENT, "Countess", "market-id-4711", "subject-0815", "lady ada"))

    said = erased(servers, capsys, "--comments")

    key = ada.user_id
    assert f"The account is erased-{key} now" in said
    assert "Comments erased: 1." in said
    assert "Not touched" not in said
    assert f"{campaign.name}, release 1.0 holds " in said
    text = dump(servers)
    assert names(text) == []
    assert not any(
        word in text for word in (COMMENT, "Countess", "market-id-4711", "subject-0815", "lady ada")
    )
    files = written(servers)
    assert len(files) > 5
    assert [name for name, content in files.items() if names(content.decode("latin-1"))] == []
    assert (numbers(), Path(release.file.path).read_bytes()) == (before, file)
    assert run(GRADES) == grades
    while seal_new_rows()[0]:
        pass
    assert verified(release.file.path, capsys)
    assert Erasure.objects.filter(table="judging_judgment").count() >= 1
    assert Event.objects.get(verb="erased a person").subject == f"user:{key}"
    assert not User.objects.get(pk=key).has_usable_password()


def test_without_comments_they_stay_and_a_change_without_erasure_is_named(ada, servers, capsys):
    erased(servers, capsys)
    text = dump(servers)
    assert names(text) == []  # a name in a comment goes all the same
    assert f"{COMMENT}, erased-{ada.user_id}" in text
    while seal_new_rows()[0]:
        pass
    release = ada.campaign.releases.get()
    assert verified(release.file.path, capsys)
    judgment = Judgment.objects.get(comment__startswith=COMMENT)
    with transaction.atomic(), unguarded(["judging_judgment"]):
        Judgment.objects.filter(pk=judgment.pk).update(comment="")
    with pytest.raises(CommandError, match="does not verify"):
        call_command("verify_ledger")
    assert f"row {judgment.pk} is not what its erasure left" in capsys.readouterr().err


def test_who_submits_meanwhile_keeps_the_judgment_without_its_comment(ada):
    """A request that was let in before waits for the lock that the erasure holds."""
    sent = []
    started = threading.Event()

    def late():
        started.set()
        try:
            sent.append(
                submit(assessor=ada, token=ada.late, client_token=uuid.uuid4(), grade=1, comment=COMMENT)
            )
        finally:
            connection.close()

    request = threading.Thread(target=late)
    with transaction.atomic():
        erase(ada.user, comments=True)
        request.start()
        started.wait()
        request.join(0.5)
        assert sent == []  # it waits
    request.join()
    assert (sent[0].grade, Judgment.objects.get(pk=sent[0].pk).comment) == (1, "")
    assert Judgment.objects.filter(assessor__user=ada.user).exclude(comment="").count() == 0


def test_the_export_holds_what_is_theirs_and_nobody_else(ada, tmp_path, servers, capsys):
    path = tmp_path / "ada.zip"
    with logged_in(servers, WORKER):
        call_command("person", LOGIN, "--export", path)
    assert path.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    assert list(files) == [
        "README.txt",
        "account.json",
        "judging.json",
        "judgments.csv",
        "events.jsonl",
        "work.json",
    ]
    everything = "\n".join(files.values())
    for word in (
        LOGIN,
        COMMENT,
        "market-id-4711",
        "lady ada",
        f"Dear {FULL}",
        f"{LOGIN}-topics.tsv",
        f"of {FULL}",
    ):
        assert word in everything, word
    assert not any(word in everything for word in ("ben", "gus", ada.user.password, "key_sha256"))
    n = Judgment.objects.filter(assessor=ada).count()
    assert files["judgments.csv"].count("\n") == n + 1
    assert json.loads(files["account.json"])["email"] == LOGIN
    with pytest.raises(CommandError, match="is there already"):
        call_command("person", LOGIN, "--export", path)
    with pytest.raises(CommandError, match="there is no user 'nobody'"):
        call_command("person", "nobody", "--erase")


def test_after_a_restore_the_file_erases_again_who_is_there_again(tmp_path, settings, capsys):
    settings.VAR = tmp_path
    users = [
        User.objects.create(username=name, email=f"{name}@example.org") for name in ("ada", "bea", "cleo")
    ]
    call_command("person", "ada", "--erase")
    call_command("person", str(users[1].pk), "--erase", "--comments")
    call_command("person", f"erased-{users[0].pk}", "--erase")
    notes = tmp_path / "erased.txt"
    assert notes.read_text() == f"{users[0].pk}\n{users[1].pk} comments\n"
    for user in users:  # as a backup from before has them
        User.objects.filter(pk=user.pk).update(username=user.username, email=user.email, is_active=True)
    call_command("person", again=notes)
    found = User.objects.order_by("pk").values_list("username", "email", "is_active")
    assert list(found) == [
        (f"erased-{users[0].pk}", "", False),
        (f"erased-{users[1].pk}", "", False),
        ("cleo", "cleo@example.org", True),
    ]
    for wrong in ({"again": tmp_path}, {"user": "cleo", "again": notes}, {"erase": True}):
        with pytest.raises(CommandError):
            call_command("person", **wrong)
    User.objects.create(username=f"ERASED-{users[2].pk}")
    with pytest.raises(CommandError, match="give it another name first"):
        call_command("person", "cleo", "--erase")
    assert User.objects.get(pk=users[2].pk).is_active
