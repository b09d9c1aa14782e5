"""In a real browser: how many clicks and fields it takes to get into an account, and a stranger to a first judgment."""

import os
import re
from contextlib import contextmanager

import browser
import openid_provider
import pytest
from browser import page_of, says
from hands import Hands
from mail_server import mail_server

import judging.tasks  # noqa: F401 (registers the kinds of job)
import touchstone.tasks  # noqa: F401
from touchstone import embedded, jobs, lanes
from touchstone.models import Job, User

pytestmark = browser.MARKS
PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def chromium():
    yield from browser.chromium()


@pytest.fixture
def web(child_environment):
    yield from browser.web(child_environment)


@pytest.fixture
def mara(transactional_db):
    return User.objects.create_user("mara", role="manager", email="mara@example.org", password=PASSWORD)


@contextmanager
def stranger(chromium, **options):
    """A page of somebody who is not logged in."""
    context = chromium.new_context(**options)
    context.set_default_timeout(30_000)
    try:
        yield context.new_page()
    finally:
        context.close()


def address_without_server():
    """Return an address for a server that has to know its own name before it starts."""
    return f"127.0.0.1:{embedded.free_port()}"


def test_a_new_manager_comes_by_a_link_with_3_clicks_and_3_fields(chromium, web, mara):
    """One click and one field are the inviting manager's, and a click copies the link."""
    with page_of(chromium, web, mara) as page:
        hands = Hands(page)
        page.goto(f"{web}/manage/users/")
        hands.choose("#invite ~ form #id_role", "manager")
        hands.click("text=Make the link")
        link = page.input_value("#new-link")
        says(page, "main", "The link is shown only now.")
    with stranger(chromium) as page:
        page.goto(link)
        hands.page = page
        hands.fill("#id_password", PASSWORD)
        hands.fill("#id_repeated", PASSWORD)
        hands.click("text=Create the account")
        says(page, "h1", "Manage")
        assert page.url == f"{web}/manage/"
        hands.took(clicks=3, fields=3)
    assert User.objects.filter(role="manager").count() == 2


def test_a_new_manager_comes_by_the_company_s_account_with_2_clicks_and_no_field(
    chromium, child_environment, transactional_db
):
    from touchstone.links import invite

    invite(role="manager", email="ann@example.org", actor=None)
    claims = {"email": "ann@example.org", "email_verified": True, "name": "Ann"}
    with openid_provider.running(("s-ann", claims)) as provider:
        address = address_without_server()
        given = provider.register(f"http://{address}")
        with browser.served({**child_environment, **given}, address) as web, stranger(chromium) as page:
            hands = Hands(page)
            page.goto(f"{web}/login/")
            hands.click("text=Log in with your company’s account")
            hands.click("button:has-text('s-ann')")  # at the company
            says(page, "h1", "Manage")
            assert page.url == f"{web}/manage/"
            hands.took(clicks=2, fields=0)
    assert User.objects.get().role == "manager"


def test_a_forgotten_password_takes_2_clicks_and_1_field(chromium, child_environment, mara, settings):
    with mail_server() as (port, box):
        address = address_without_server()
        mail = {"EMAIL_HOST": "127.0.0.1", "EMAIL_PORT": str(port), "SITE_URL": f"http://{address}"}
        with browser.served({**child_environment, **mail}, address) as web, stranger(chromium) as page:
            hands = Hands(page)
            page.goto(f"{web}/login/")
            hands.fill("#id_username", "mara")
            hands.click("text=I forgot my password")
            says(page, "main", "a letter with a link is on its way")
            settings.EMAIL_HOST, settings.EMAIL_PORT, settings.SITE_URL = (
                "127.0.0.1",
                port,
                f"http://{address}",
            )
            work()
            (text,) = box.texts()
            page.goto(re.search(r"http://\S+", text).group())
            hands.click("text=Save and log in")
            says(page, "h1", "Manage")
            hands.took(clicks=2, fields=1)
    mara.refresh_from_db()
    assert not mara.check_password(PASSWORD)


def work():
    """Be the worker: do what is queued, and send letters."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    for _ in range(3):
        for job in Job.objects.filter(state="queued").order_by("created_at"):
            jobs.run(job.pk)
        jobs.work(lanes.MAIL)
