"""Letters about accounts: invitations, forgotten passwords, new addresses; and the command that invites."""

import re

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from touchstone import jobs, tasks  # noqa: F401 (the kinds of job are registered)
from touchstone.letters.queueing import link_of
from touchstone.models import AccountLink, Job, Letter, RateCounter, User

pytestmark = pytest.mark.django_db
ASKED = "If there is an account with this name or address, a letter with a link is on its way"


@pytest.fixture(autouse=True)
def mail_server(settings):
    settings.EMAIL_HOST, settings.SITE_URL = "mail.example.org", "https://judge.example.org"
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # it is not what is tested


def user(name, role="assessor", **fields):
    return User.objects.create_user(name, role=role, **fields)


def client_of(person):
    client = Client()
    client.force_login(person)
    return client


def forget(name, client=None):
    return (client or Client()).post("/login/forgotten/", {"username": name})


def plain(answer):
    return re.sub(r'(csrfmiddlewaretoken" value|nonce)="[^"]*"', "", answer.content.decode())


def do_jobs():
    for job in Job.objects.filter(kind="forgotten", state="queued"):
        jobs.run(job.pk)


def local(letter):
    """Return the path of the letter's link."""
    link = link_of(letter)
    assert link.startswith("https://judge.example.org/login/")
    return link.removeprefix("https://judge.example.org")


def test_a_forgotten_password_is_answered_alike_and_costs_the_same_whoever_asks():
    user("bob", email="bob@example.org")
    user("without address")
    user("closed", email="closed@example.org", is_active=False)
    answers, costs = set(), set()
    for name in ("bob", "BOB@example.org", "without address", "closed", "nobody"):
        with CaptureQueriesContext(connection) as asked:
            answer = forget(name)
        answers.add(plain(answer))
        costs.add((answer.status_code, len(asked)))
    assert len(answers) == 1
    assert ASKED in answers.pop()
    assert len(costs) == 1
    assert Job.objects.filter(kind="forgotten").count() == 5
    do_jobs()
    assert list(Letter.objects.values_list("address", flat=True)) == ["bob@example.org"] * 2


def test_the_letter_of_a_forgotten_password_leads_to_a_new_one_and_to_what_waits():
    bob = user("bob", "manager", email="bob@example.org", password="forgotten 1 2 3")
    forget("bob")
    do_jobs()
    letter = Letter.objects.get()
    assert (letter.kind, letter.user) == ("password", bob)
    secret = local(letter).split("/")[-2]
    assert secret not in " ".join(map(str, Letter.objects.values_list().get()))
    answer = Client().post(local(letter), {"password": "quiet rivers bend slowly"}, follow=True)
    assert answer.redirect_chain[-1][0] == "/manage/"
    bob.refresh_from_db()
    assert bob.check_password("quiet rivers bend slowly")
    assert Client().get(local(letter)).status_code == 404


def test_how_often_a_name_is_asked_for_is_limited_whether_somebody_has_it_or_not(settings):
    settings.LOGIN_TRIES = 2
    user("bob", email="bob@example.org")
    for name in ("bob", "nobody"):
        assert [forget(name).status_code for _ in range(3)] == [200, 200, 429]
    assert Job.objects.count() == 4
    assert not RateCounter.objects.filter(key__contains="bob").exists()


def test_without_a_mail_server_the_page_names_the_manager_and_asks_nothing(settings):
    settings.EMAIL_HOST = ""
    for answer in (Client().get("/login/forgotten/"), forget("bob")):
        assert "Ask a manager: on the page “Users” they make a link" in answer.content.decode()
    assert not Job.objects.exists()


def test_an_empty_name_is_told(settings):
    answer = forget(" ")
    assert (answer.status_code, "Enter your user name or your address." in answer.content.decode()) == (
        400,
        True,
    )
    assert not Job.objects.exists()


def test_an_invitation_with_an_address_is_written_and_its_link_is_the_pages():
    mara = user("mara", "manager")
    answer = client_of(mara).post("/manage/users/", {"role": "researcher", "email": "nora@example.org"})
    assert "A letter with it is on its way to nora@example.org." in answer.content.decode()
    letter = Letter.objects.get()
    assert (letter.kind, letter.address, letter.user) == ("invitation", "nora@example.org", None)
    assert answer.context["link"].endswith(local(letter))
    assert Client().get(local(letter)).status_code == 200


def test_a_new_address_is_used_once_its_link_was_opened():
    bob = user("bob", email="old@example.org")
    page = client_of(bob)
    page.post("/account/", {"part": "address", "address-email": "new@example.org"})
    bob.refresh_from_db()
    assert bob.email == "old@example.org"
    letter = Letter.objects.get()
    assert (letter.kind, letter.address) == ("address", "new@example.org")
    assert "new@example.org" in page.get(local(letter)).content.decode()
    bob.refresh_from_db()
    assert bob.email == "old@example.org"  # looking is not opening
    assert page.post(local(letter), follow=True).redirect_chain[-1][0] == "/account/"
    bob.refresh_from_db()
    assert bob.email == "new@example.org"
    assert page.post(local(letter)).status_code == 404


def test_the_newest_letter_about_an_address_counts():
    bob = user("bob")
    for address in ("first@example.org", "second@example.org"):
        client_of(bob).post("/account/", {"part": "address", "address-email": address})
    first, second = (Letter.objects.get(address=f"{name}@example.org") for name in ("first", "second"))
    assert Client().post(local(first)).status_code == 404
    assert Client().post(local(second)).status_code == 302
    bob.refresh_from_db()
    assert bob.email == "second@example.org"


# -- the command ----------------------------------------------------------------------------------------------


def test_the_command_prints_a_link_that_makes_a_manager(capsys):
    call_command("invite", role="manager", email="mara@example.org")
    link = capsys.readouterr().out.strip()
    assert link.startswith("https://judge.example.org/login/invited/")
    new = {"username": "mara", "password": "correct horse battery", "repeated": "correct horse battery"}
    answer = Client().post(link.removeprefix("https://judge.example.org"), new, follow=True)
    assert answer.redirect_chain[-1][0] == "/manage/"
    assert (User.objects.get().role, User.objects.get().email) == ("manager", "mara@example.org")
    assert Letter.objects.get().address == "mara@example.org"
    with pytest.raises(CommandError, match="already"):
        call_command("invite", role="manager", email="mara@example.org")
    with pytest.raises(CommandError, match="no e-mail address"):
        call_command("invite", role="manager", email="mara")


def test_a_start_without_a_manager_prints_a_link_and_ends_the_one_before(capsys):
    user("closed", "manager", is_active=False)
    for _ in range(2):
        call_command("invite", role="manager", if_none=True, site="http://127.0.0.1:8000/")
    said = capsys.readouterr().out
    links = re.findall(r"http://127\.0\.0\.1:8000(/login/invited/\S+)", said)
    assert said.count("There is no manager yet.") == len(links) == 2
    assert [Client().get(link).status_code for link in links] == [404, 200]
    user("mara", "manager")
    call_command("invite", role="manager", if_none=True)
    assert capsys.readouterr().out == ""
    assert AccountLink.objects.count() == 2
