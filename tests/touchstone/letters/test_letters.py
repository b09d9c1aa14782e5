"""Letters: who gets one, how often, what it says, where it goes when the mail server will not have it."""

import time
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils import timezone
from mail_server import silent_server
from small_campaign import make_assessor, make_campaign

import touchstone.tasks  # noqa: F401 (the kind of job is registered)
from judging.models import Participant
from touchstone import jobs, lanes
from touchstone.letters.queueing import one_line, one_time_secret, queue_letter
from touchstone.letters.sending import WAITS, prune_letters
from touchstone.letters.smtp import letter_file, message_of
from touchstone.letters.unsubscribing import unsubscribe_path, unsubscribe_token
from touchstone.models import Job, Letter, LetterRefusal, User

pytestmark = pytest.mark.django_db(transaction=True)


def letter(to, kind="question", subject="campaign:1", **fields):
    said = {"title": "A question", "lines": ["Somebody asks.", "See:"], "link": "/manage/"}
    return queue_letter(kind=kind, to=to, subject=subject, **{**said, **fields})


def work():
    if not Job.objects.filter(state__in=Job.ACTIVE).exists():
        jobs.enqueue(kind="letters", payload={}, active_key="letters")
    jobs.work(lanes.MAIL)


def test_of_a_kind_person_and_subject_there_is_one_letter_a_day(nora):
    assert letter(nora) is not None
    assert letter(nora) is None
    assert letter(nora, subject="campaign:2") is not None
    assert letter("nora@example.org", kind="invitation") is not None  # a stranger
    assert letter("nora@example.org", kind="invitation") is None
    assert Letter.objects.count() == 3
    row = Letter.objects.filter(user=nora).first()
    with pytest.raises(IntegrityError, match="once_a_day"), transaction.atomic():
        Letter.objects.create(
            **{name: getattr(row, name) for name in ("kind", "user", "address", "subject", "day")},
            title="again",
            next_attempt_at=timezone.now(),
        )
    Letter.objects.update(day=timezone.now().date() - timedelta(days=1))
    assert letter(nora) is not None
    assert letter(nora, kind="stuck") is not None
    stuck = Letter.objects.filter(kind="stuck")
    stuck.update(day=timezone.now().date() - timedelta(days=6))
    assert letter(nora, kind="stuck") is None
    stuck.update(day=timezone.now().date() - timedelta(days=7))
    assert letter(nora, kind="stuck") is not None  # once a week


def test_nobody_is_written_to_who_cannot_or_will_not_be(nora, tmp_path):
    for address in (
        "",
        "nora",
        "nora@example.org\nBcc: all@example.org",
        "a b@example.org",
        "<x>@example.org",
    ):
        assert letter(address, kind="invitation") is None
    LetterRefusal.objects.create(user=nora, kind="question")
    assert letter(nora) is None
    assert letter(nora, kind="stuck") is not None
    LetterRefusal.objects.create(user=nora, kind="password")  # this kind nobody can switch off
    assert letter(nora, kind="password") is not None
    closed = User.objects.create(username="carl", email="carl@example.org", is_active=False)
    assert letter(closed) is None
    campaign = make_campaign(tmp_path)
    worker = make_assessor(campaign, "worker")
    User.objects.filter(pk=worker.user_id).update(email="worker@example.org")
    worker.user.refresh_from_db()
    assert letter(worker.user, kind="gold") is not None
    Participant.objects.create(campaign=campaign, assessor=worker, participant="market-1")
    assert letter(worker.user, kind="gold", subject="campaign:9") is None


def test_it_says_what_was_said_in_plain_text_and_cannot_be_made_to_say_more(nora, box):
    letter(
        nora,
        title="A\r\nBcc: all@example.org\r\n\r\nHello",
        lines=["Grüße\r\n.\r\nMAIL FROM:<x@example.org>\n.", "Zweite."],
    )
    work()
    (to, message), row = box.letters[0], Letter.objects.get()
    assert (to, message["To"], message["Bcc"]) == ("nora@example.org", "nora@example.org", None)
    assert message["From"] == "Touchstone <touchstone@judge.example.org>"
    assert message["Subject"] == "A Bcc: all@example.org Hello"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message.get_content_type() == "text/plain"
    off = f"https://judge.example.org{unsubscribe_path(row)}"
    assert (message["List-Unsubscribe"], message["List-Unsubscribe-Post"]) == (
        f"<{off}>",
        "List-Unsubscribe=One-Click",
    )
    assert box.texts()[0] == (
        "Grüße\n.\nMAIL FROM:<x@example.org>\n.\n\nZweite.\n\nhttps://judge.example.org/manage/\n\n"
        f"-- \nTouchstone, https://judge.example.org/\nTo get no more letters of this kind: {off}\n"
    )
    assert len(box.letters) == 1
    assert (row.state, row.text, row.link, row.attempts) == ("sent", "", "", 1)


def test_the_control_a_title_as_it_comes_would_be_another_header(nora):
    row = Letter(user=nora, kind="question", address="a@example.org", title="A\r\nBcc: all@example.org")
    row.created_at = timezone.now()
    with pytest.raises(ValueError, match="linefeed or carriage return"):
        message_of(row)
    assert one_line(row.title) == "A Bcc: all@example.org"


def test_the_secret_of_a_link_is_in_the_letter_and_in_no_row(nora, box):
    seed = "6f1b6c1e"
    secret = one_time_secret("invitation", seed)
    made = letter("ann@example.org", kind="invitation", link="/invited/{secret}/", seed=seed)
    assert len(secret) == 43
    assert secret != one_time_secret("password", seed)
    row = Letter.objects.filter(pk=made.pk).values().get()
    assert not any(secret in str(value) for value in [*row.values(), *Job.objects.values_list("payload")])
    work()
    assert f"https://judge.example.org/invited/{secret}/\n" in box.texts()[0]
    assert "List-Unsubscribe" not in box.letters[0][1]
    made.refresh_from_db()
    assert (made.state, made.link, made.seed) == ("sent", "", "")


def test_without_a_mail_server_it_is_a_file_that_its_owner_alone_reads(nora, settings, tmp_path):
    settings.EMAIL_HOST, settings.VAR = "", tmp_path
    made = letter(nora)
    work()
    path = letter_file(made.pk)
    made.refresh_from_db()
    assert (made.state, made.answer) == ("sent", f"written into var/mail/{made.pk}.eml")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert b"To: nora@example.org\r\n" in path.read_bytes()
    Letter.objects.update(created_at=timezone.now() - timedelta(days=91))
    assert prune_letters() == 1
    assert not path.exists()


def test_what_the_server_puts_off_comes_later_and_what_it_refuses_is_given_up(nora, box):
    made = letter(nora)
    box.answers["RCPT"] = ["451 come again"]
    work()
    made.refresh_from_db()
    assert (made.state, made.answer, made.attempts) == ("waiting", "451 come again", 1)
    assert made.next_attempt_at - timezone.now() > WAITS[0] - timedelta(seconds=30)
    work()
    assert box.letters == []  # not before its time
    Letter.objects.update(next_attempt_at=timezone.now())
    work()
    assert len(box.letters) == 1
    for step in ("RCPT", "DATA"):
        refused = letter(nora, subject=step)
        box.answers[step] = ["550 nobody here"]
        work()
        refused.refresh_from_db()
        assert (refused.state, refused.answer) == ("given up", "550 nobody here")
    Letter.objects.filter(pk=letter(nora, subject="x").pk).update(attempts=len(WAITS))
    box.answers["DATA"] = ["450 no"]
    work()
    assert Letter.objects.get(subject="x").state == "given up"
    assert len(box.letters) == 1


def test_a_fault_of_the_whole_server_ends_the_round_and_gives_nothing_up(nora, box):
    first, second = letter(nora), letter(nora, subject="campaign:2")
    box.answers["MAIL"] = ["550 you may not send"]
    work()
    first.refresh_from_db(), second.refresh_from_db()
    assert (first.state, second.state, second.attempts) == ("waiting", "waiting", 0)
    assert "takes none now: 550 you may not send" in Job.objects.latest("created_at").note
    work()
    second.refresh_from_db()
    assert second.state == "sent"


def test_a_server_that_hangs_delays_no_request_and_no_other_lane(nora, settings, client):
    with silent_server() as port:
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", port, 6
        began = time.monotonic()
        made = letter(nora)
        client.force_login(nora)
        assert client.get("/account/letters/").status_code == 200
        assert time.monotonic() - began < 6  # who waited for the mail server would wait longer
        assert Job.objects.get().lane == lanes.MAIL
        assert lanes.MAIL not in lanes.QUEUES  # no worker's child waits for it
        work()
        assert 6 <= time.monotonic() - began < 30
    made.refresh_from_db()
    assert (made.state, made.attempts) == ("waiting", 1)
    assert "timed out" in made.answer


def test_a_person_switches_kinds_off_on_the_page_and_by_the_link_without_a_login(nora, client):
    client.force_login(nora)
    page = client.get("/account/letters/")
    assert page.content.decode().count('type="checkbox"') == 4
    assert client.post("/account/letters/", {"kinds": ["gold", "stuck", "invitation"]}).status_code == 302
    assert set(nora.letter_refusals.values_list("kind", flat=True)) == {"question", "unjudged"}
    assert client.post("/account/letters/", {"kinds": ["question", "unjudged"]}).status_code == 302
    waiting = letter(nora)
    client.logout()
    address = reverse("letters-off", args=[unsubscribe_token(nora.pk, "question")])
    assert "Write me no more" in client.get(address).content.decode()
    assert Letter.objects.filter(pk=waiting.pk).exists()  # looking changes nothing
    strict = client.__class__(enforce_csrf_checks=True)
    answer = strict.post(address, {"List-Unsubscribe": "One-Click"})
    assert (answer.status_code, "no more letters" in answer.content.decode()) == (200, True)
    assert set(nora.letter_refusals.values_list("kind", flat=True)) == {"gold", "question", "stuck"}
    assert not Letter.objects.filter(pk=waiting.pk).exists()
    assert client.get(address + "x").status_code == 404
    other = reverse("letters-off", args=[unsubscribe_token(nora.pk + 10**6, "question")])
    assert client.post(other).status_code == 404


def test_whose_account_is_closed_meanwhile_gets_nothing(nora, box):
    made = letter(nora)
    User.objects.create(username="mara", role="manager")  # the last active one stays
    User.objects.filter(pk=nora.pk).update(is_active=False)
    work()
    made.refresh_from_db()
    assert (box.letters, made.state, made.answer) == ([], "given up", "the account is closed")
