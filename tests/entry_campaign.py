"""A campaign that people enter by a link or from a market."""

from urllib.parse import parse_qs, urlsplit

from django.test import Client
from django.urls import reverse

from judging.models import Campaign

MARKET = "https://www.market.example"

WORKER = "A1WORKER77NAME"


def set_entry(campaign, kind, **fields):
    fields = {"market_origin": MARKET, "judgments_per_participant": 3, **fields}
    Campaign.objects.filter(pk=campaign.pk).update(entry=kind, **fields)
    campaign.refresh_from_db()
    return campaign


def text_of(response):
    return " ".join(response.content.decode().split())


def hit_parameters(**changed):
    return {"assignmentId": "3ASSIGN", "hitId": "3HIT", "workerId": WORKER, "turkSubmitTo": MARKET, **changed}


def hit_page(campaign, client=None, **changed):
    return (client or Client()).get(
        reverse("judging:hit", args=[campaign.entry_key]), hit_parameters(**changed)
    )


def start_of(campaign, **changed):
    return hit_page(campaign, **changed).context["start_url"]


def come_in(campaign, **changed):
    """Press the buttons a worker presses; return the browser and the answer."""
    client, start = Client(), start_of(campaign, **changed)
    assert client.get(start).status_code == 200
    return client, client.post(
        urlsplit(start).path, {"visitor": parse_qs(urlsplit(start).query)["visitor"][0]}
    )


def directives(response):
    pairs = (part.strip().split(" ", 1) for part in response["Content-Security-Policy"].split(";"))
    return dict(pairs)


BOTH_SPELLINGS = [
    {"PROLIFIC_PID": WORKER, "STUDY_ID": "5study", "SESSION_ID": "6session"},
    {"participant": WORKER, "study": "5study", "session": "6session"},
]


def study_path(campaign):
    return reverse("judging:study", args=[campaign.entry_key])
