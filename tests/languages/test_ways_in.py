"""The pages around the judging screen, in each language on a phone in the dark and on a wide screen in the light."""

from urllib.parse import urlencode

import browser
import pytest
from bracketed import CODE, letterless_campaign, letterless_training
from browser import page_of
from django.conf import settings
from django.urls import reverse
from entry_campaign import hit_parameters, set_entry
from screen_faults import faults

from judging.models import Campaign, Participant
from judging.services import entry, messages, training
from touchstone.models import User

pytestmark = browser.MARKS
SIZES = {"dark": {"width": 360, "height": 740}, "light": {"width": 1280, "height": 800}}
STUDY = {"PROLIFIC_PID": "1", "STUDY_ID": "2", "SESSION_ID": "3"}


def looked_at(page, address: str, name: str) -> list[str]:
    found = []
    page.goto(address)
    for scheme, size in SIZES.items():
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(size)
        found += faults(page, f"{name} {scheme}")
    return found


@pytest.mark.parametrize("code", [*(code for code, _ in settings.LANGUAGES), CODE])
def test_the_doors_in_each_language(chromium, web, code, transactional_db):
    campaign = letterless_campaign(3)
    maker = User.objects.create(username="77")
    invitation = entry.create_invitation(campaign=campaign, user=maker)
    key = [campaign.entry_key]
    with page_of(chromium, web, maker, bypass_csp=True, locale=code) as page:
        assert page.goto(f"{web}/judge/").status == 200
        assert page.get_attribute("html", "lang") == code
        join = f"{web}{reverse('judging:join', args=[invitation.token])}"
        found = looked_at(page, join, f"{code} join as oneself")
        page.context.clear_cookies()
        pages = {"start": f"{web}/", "login": f"{web}/login/", "join": join}
        pages["gone"] = f"{web}{reverse('judging:join', args=[campaign.pk])}"
        for name, address in pages.items():
            found += looked_at(page, address, f"{code} {name}")
        set_entry(campaign, Campaign.Entry.STUDY, completion_code="12")
        study = f"{web}{reverse('judging:study', args=key)}"
        found += looked_at(page, f"{study}?{urlencode(STUDY)}", f"{code} study")
        found += looked_at(page, study, f"{code} study refused")
        set_entry(campaign, Campaign.Entry.HIT)
        hit = f"{web}{reverse('judging:hit', args=key)}?{urlencode(hit_parameters())}"
        found += looked_at(page, hit, f"{code} hit")
    assert found == []


@pytest.mark.parametrize("code", [*(code for code, _ in settings.LANGUAGES), CODE])
def test_the_way_to_the_first_document_and_its_end_in_each_language(chromium, web, code, transactional_db):
    campaign = letterless_campaign(3, consent="1 2 3")
    letterless_training(campaign)
    bob = browser.make_assessor(campaign, "4242", quota=1)
    User.objects.filter(pk=bob.user_id).update(language=code)
    messages.send(
        assessor=bob, text="1 2 3", sender=User.objects.create(username="99", role=User.Role.MANAGER)
    )
    address = {
        name: f"{web}{reverse(f'judging:{name}', args=[campaign.pk])}"
        for name in ("consent", "training", "complete")
    }
    with page_of(chromium, web, bob.user, bypass_csp=True) as page:
        found = looked_at(page, f"{web}/judge/", f"{code} home with a message")
        found += looked_at(page, address["consent"], f"{code} consent")
        entry.agree(assessor=bob)
        found += looked_at(page, address["training"], f"{code} training")
        training.answer(assessor=bob, position=1, attempt=1, grade=2)
        found += looked_at(page, f"{address['training']}?item=1", f"{code} training answer")
        training.answer(assessor=bob, position=2, attempt=1, grade=1)
        found += looked_at(page, address["training"], f"{code} training result")
        found += looked_at(page, address["complete"], f"{code} not done")
        Participant.objects.create(campaign=campaign, assessor=bob, participant="6")
        type(bob).objects.filter(pk=bob.pk).update(n_judged=1)
        set_entry(campaign, Campaign.Entry.HIT)
        found += looked_at(page, address["complete"], f"{code} done")
        found += looked_at(page, f"{web}/judge/nowhere/", f"{code} error")
    assert found == []
