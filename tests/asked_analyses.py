"""Analyses of the small campaign, and the numbers they rest on."""

from django.test import Client
from django.urls import reverse
from small_campaign import (
    TOPICS,
    true_grade,
)

from analytics.services.analyses import AnalysisSubject, analyse
from touchstone import jobs
from touchstone.models import User

PAIR = AnalysisSubject("papers", "P@10", "run0", "run2")


def given_grade(topic_id, document_id):
    """Return what the only judge says: every fifth document is taken for its opposite."""
    true, number = true_grade(topic_id, document_id), int(document_id[-2:]) + 2 * TOPICS.index(topic_id)
    return 3 - true if number % 5 == 0 else true


def made(campaign, wanted=PAIR):
    return analyse(campaign=campaign, wanted=wanted, progress=lambda *_: None)


def lines(result, of="difference"):
    return {line["name"]: line for line in result["lines"] if line["of"] == of}


def client_of(role):
    client = Client()
    client.force_login(User.objects.get_or_create(username=role, defaults={"role": role})[0])
    return client


def page_of(campaign, name="papers", role="researcher", status=200, **asked):
    query = asked or {"measure": "P@10", "run": "run0", "against": "run2"}
    answered = client_of(role).get(reverse(f"console:{name}", args=[campaign.pk]), query)
    assert answered.status_code == status, answered.content.decode()[:2000]
    return " ".join(answered.content.decode().split())


def run_job(job):
    jobs.run(job.pk)
    job.refresh_from_db()
    return job
