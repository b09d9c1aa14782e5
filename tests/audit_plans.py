"""Plans of audits, and campaigns that were audited and computed."""

from django.test import Client
from django.urls import reverse
from small_campaign import judge_all, judge_audit, make_assessor, make_campaign, truth_of

from analytics.services.recomputation import recompute
from sampling.services.auditing import audit
from touchstone.models import User

PLAN = {
    "when": "interval",
    "every_seconds": "2",
    "every_unit": "3600",
    "crontab": "",
    "strategy": "topic",
    "tier": "gold",
    "size_in": "items",
    "items_each_time": "12",
    "items_in_total": "40",
    "is_active": "on",
}


def client_of(role):
    person, _ = User.objects.get_or_create(username=role, defaults={"role": role})
    client = Client()
    client.force_login(person)
    return client


def address(campaign, name="audits", *arguments):
    return reverse(f"console:{name}", args=[campaign.pk, *arguments])


def text_of(response):
    return " ".join(response.content.decode().split())


def a_bit_wrong(slot, place):
    return (truth_of(slot) + (place and int(slot.item.document.doc_id[-2:]) % 3 == 0)) % 4


def judged(campaign):
    judge_all(campaign, [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")], a_bit_wrong)


def audited(campaign, n=24):
    audit(campaign=campaign, items_each_time=n, items_in_total=42, seed=5)
    judge_audit(campaign, make_assessor(campaign, "greta", tier="gold"))


def audited_campaign(folder, **given):
    """Return a campaign that is judged with errors, audited in part and computed."""
    made = make_campaign(folder, **given)
    people = [make_assessor(made, f"bronze{n}") for n in range(2)]
    judge_all(made, people, lambda slot, place: (int(slot.item.document.doc_id[-2:]) * 7 + place) % 4)
    gold = make_assessor(made, "gold", "gold")
    audit(campaign=made, items_each_time=18, items_in_total=18, strategy="simple", seed=5)
    judge_audit(made, gold)
    recompute(campaign=made)
    return made
