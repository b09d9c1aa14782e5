"""The managers' page of letters: what became of each, and the button that sends one again."""

import pytest
from django.test import Client
from django.utils import timezone

import touchstone.tasks  # noqa: F401 (registers the kinds of job)
from touchstone import jobs, lanes
from touchstone.letters.queueing import one_time_secret, queue_letter
from touchstone.models import Event, Job, Letter, User

pytestmark = pytest.mark.django_db
PAGE = "/manage/users/letters/"


@pytest.fixture
def client(nora):
    client = Client()
    client.force_login(nora)
    return client


def letter_in(state, n=0, **fields):
    letter = queue_letter(
        kind="password",
        to=f"ann{n}@example.org",
        subject="link:1",
        title="A private title",
        lines=["Private words."],
        link="/login/password/{secret}/",
        seed=f"seed{n}",
    )
    ended = None if state in ("waiting", "handed over") else timezone.now()
    empty = {"text": "", "link": "", "seed": ""} if state == "sent" else {}
    Letter.objects.filter(pk=letter.pk).update(state=state, ended_at=ended, **empty, **fields)
    letter.refresh_from_db()
    return letter


def test_every_state_is_shown_and_what_a_person_may_decide_has_a_button(client):
    made = {state: letter_in(state, n) for n, state in enumerate(Letter.State.values)}
    page = client.get(PAGE).content.decode()
    for state, letter in made.items():
        assert letter.address in page
        may = state in ("unclear", "given up")
        assert (f"{PAGE}{letter.pk}/again/" in page) is may, state
    only = client.get(PAGE, {"state": "unclear"}).content.decode()
    assert [letter.address in only for letter in made.values()] == [state == "unclear" for state in made]


def test_what_a_letter_says_is_on_no_page(client):
    letter = letter_in("given up", answer="550 no such mailbox")
    page = client.get(PAGE).content.decode()
    assert "550 no such mailbox" in page
    secret = one_time_secret("password", letter.seed)
    assert not any(words in page for words in (secret, letter.seed, "A private title", "Private words"))


@pytest.mark.parametrize("state", ["unclear", "given up"])
def test_a_letter_is_sent_again_once(state, client, box):
    letter = letter_in(state, attempts=8)
    Job.objects.all().delete()
    answer = client.post(f"{PAGE}{letter.pk}/again/", follow=True)
    assert "The letter is sent again." in answer.content.decode()
    assert Event.objects.get(verb="sent a letter again").subject == f"letter:{letter.pk}"
    answer = client.post(f"{PAGE}{letter.pk}/again/", follow=True)
    assert "Nothing was changed" in answer.content.decode()
    assert Event.objects.filter(verb="sent a letter again").count() == 1
    letter.refresh_from_db()
    assert (letter.state, letter.attempts) == ("waiting", 0)


@pytest.mark.django_db(transaction=True)
def test_what_is_sent_again_arrives_once(client, box):
    letter = letter_in("unclear")
    Job.objects.all().delete()
    client.post(f"{PAGE}{letter.pk}/again/")
    jobs.work(lanes.MAIL)
    letter.refresh_from_db()
    assert (len(box.letters), letter.state) == (1, "sent")
    client.post(f"{PAGE}{letter.pk}/again/")
    jobs.work(lanes.MAIL)
    assert len(box.letters) == 1


def test_without_letters_and_with_a_filter_that_finds_none_the_page_says_so(client):
    assert "No letter has been written yet." in client.get(PAGE).content.decode()
    letter_in("sent")
    assert "No letter is in this state." in client.get(PAGE, {"state": "unclear"}).content.decode()


@pytest.mark.parametrize("role", ["assessor", "researcher"])
def test_only_managers_see_letters(role, nora):
    letter = letter_in("unclear")
    client = Client()
    client.force_login(User.objects.create_user("sam", role=role))
    assert client.get(PAGE).status_code == 404
    assert client.post(f"{PAGE}{letter.pk}/again/").status_code == 404
    assert Letter.objects.get().state == "unclear"
