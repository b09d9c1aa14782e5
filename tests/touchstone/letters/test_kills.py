"""Workers that are killed before and after a letter is sent: a real SMTP server gets each letter once."""

import os
import random
import signal
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from django.db.models.functions import Now

import touchstone.tasks  # noqa: F401 (the kind of job is registered)
from touchstone import jobs, lanes
from touchstone.letters.queueing import queue_letter
from touchstone.letters.sending import send_again
from touchstone.models import Job, Letter

pytestmark = pytest.mark.django_db(transaction=True)
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
# A worker of one job. What its second argument names is done to it before.
WORKER = """
import os, signal, sys
import django
django.setup()
import touchstone.tasks
from touchstone import jobs, lanes
from touchstone.letters import sending, smtp

def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)

honest = sending._hand_over
def hand_over_and_die(letter):
    honest(letter)
    die()
def hand_over_first(self, letter, hand_over):
    hand_over()
    return sent(self, letter, lambda: None)

sent = smtp.Server.send
match sys.argv[1]:
    case "dies before it hands over":
        sending._hand_over = die
    case "dies between handing over and the last line":
        sending._hand_over = hand_over_and_die
    case "dies before it notes the answer":
        sending._end = die
    case "naive: sends, then notes":
        sending._hand_over = lambda letter: None
    case "naive: notes, then sends":
        smtp.Server.send = hand_over_first
jobs.work(lanes.MAIL)
"""


def kill(process_id):
    def act():
        os.kill(process_id(), signal.SIGKILL)

    return act


def work_and_die(box, environment, how="", step=None):
    """Run a worker that is killed by itself, or by the server at a step of the conversation."""
    mail = {"EMAIL_HOST": "127.0.0.1", "EMAIL_PORT": str(box.port), "SITE_URL": "https://judge.example.org"}
    command = [sys.executable, "-c", WORKER, how]
    with subprocess.Popen(command, env={**environment, **mail}, stderr=subprocess.PIPE) as worker:
        box.steps = {step: kill(lambda: worker.pid)} if step else {}
        _, said = worker.communicate(timeout=60)
    box.steps = {}
    assert worker.returncode == -signal.SIGKILL, said.decode()


def work_later():
    """As it would be minutes later: leases and claims are over, and another worker comes."""
    Letter.objects.filter(ended_at=None).update(next_attempt_at=LONG_AGO)
    Job.objects.filter(state="running").update(lease_until=LONG_AGO)
    if not Job.objects.filter(state__in=Job.ACTIVE).exists():
        jobs.enqueue(kind="letters", payload={}, active_key="letters")
    jobs.work(lanes.MAIL)


def letter_to(user, n=0):
    return queue_letter(
        kind="password", to=user, subject=f"link:{n}", title="A link", lines=["Hello."], link="/x/"
    )


@pytest.mark.parametrize(
    ("how", "step", "is_with_server"),
    [
        ("", "EHLO", False),
        ("", "MAIL", False),
        ("", "RCPT", False),
        ("dies before it hands over", None, False),  # all of it was written but the last line
        ("", "DATA", True),  # the server has it and has not answered
        ("dies before it notes the answer", None, True),
    ],
)
def test_a_letter_comes_once_whenever_its_worker_is_killed(
    how, step, is_with_server, box, nora, child_environment
):
    letter = letter_to(nora)
    work_and_die(box, child_environment, how, step)
    assert len(box.letters) == is_with_server
    for _ in range(3):
        work_later()
    letter.refresh_from_db()
    assert box.ids() == [f"<{letter.pk}@judge.example.org>"]
    assert letter.state == ("unclear" if is_with_server else "sent")


@pytest.mark.parametrize(
    ("how", "step", "n_letters"),
    [("naive: sends, then notes", "DATA", 2), ("naive: notes, then sends", "MAIL", 0)],
)
def test_naive_senders_send_twice_or_never(how, step, n_letters, box, nora, child_environment):
    """The control: what the test above sees does not come about by itself."""
    letter_to(nora)
    work_and_die(box, child_environment, how, step)
    for _ in range(3):
        work_later()
    assert len(box.letters) == n_letters


def test_in_the_gap_it_is_not_sent_and_this_is_said_until_somebody_decides(box, nora, child_environment):
    letter = letter_to(nora)
    work_and_die(box, child_environment, "dies between handing over and the last line")
    for _ in range(3):
        work_later()
    letter.refresh_from_db()
    assert (box.letters, letter.state, letter.answer) == ([], "unclear", "its worker ended in between")
    assert send_again(letter)
    work_later()
    letter.refresh_from_db()
    assert (len(box.letters), letter.state, letter.text) == (1, "sent", "")
    assert not send_again(letter)  # what was sent is over


@pytest.mark.slow
def test_twelve_letters_come_once_each_while_worker_after_worker_is_killed(box, nora, child_environment):
    chance, letters = random.Random(8), [letter_to(nora, n) for n in range(12)]
    for _ in range(8):
        Letter.objects.filter(ended_at=None).update(next_attempt_at=Now())
        Job.objects.filter(state="running").update(lease_until=LONG_AGO)
        Job.objects.filter(state="failed").delete()
        jobs.enqueue(kind="letters", payload={}, active_key="letters")
        work_and_die(box, child_environment, step=chance.choice(["MAIL", "RCPT", "DATA"]))
        Job.objects.update(attempts=0)
    for _ in range(3):
        work_later()
    assert sorted(box.ids()) == sorted(f"<{letter.pk}@judge.example.org>" for letter in letters)
