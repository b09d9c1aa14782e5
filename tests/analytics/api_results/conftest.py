"""One campaign, audited and computed, and who asks about it."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from small_campaign import (
    judge_all,
    judge_audit,
    make_assessor,
    make_campaign,
    true_grade,
)

from analytics.services.recomputation import recompute
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.models import User


@pytest.fixture(autouse=True)
def no_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of these tests are in a transaction that the heartbeat's own connection cannot see."""
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 600.0)


@pytest.fixture(scope="module")
def made_once(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """In one transaction that is taken back at the end; two computations, the newer with 35 audited items."""
    with django_db_blocker.unblock(), transaction.atomic():
        made = make_campaign(tmp_path_factory.mktemp("api"), gold_check_rate=0.2)
        people = [make_assessor(made, "ann"), make_assessor(made, "ben")]
        judge_all(made, people, grade=lambda slot, place: _given(slot, place))
        recompute(campaign=made)
        audit(campaign=made, items_each_time=35, items_in_total=35, seed=5)
        judge_audit(made, make_assessor(made, "greta", tier="gold"))
        recompute(campaign=made)
        for name, role in (("mia", "manager"), ("rhea", "researcher")):
            User.objects.create(username=name, role=role)
        yield made
        transaction.set_rollback(True)


def _given(slot: Any, place: int) -> int:
    """Ann is right; Ben takes every third document for not relevant."""
    document = slot.item.document.doc_id
    return 0 if place and int(document[-2:]) % 3 == 0 else true_grade(slot.item.topic.topic_id, document)


@pytest.fixture
def campaign(made_once: Any, django_db_blocker: Any) -> Iterator[Any]:
    """The campaign for one test; what it does is taken back."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield made_once
        transaction.set_rollback(True)


@pytest.fixture
def ask(campaign: Any) -> Any:
    def asked(path: str, status: int = 200, user: str = "rhea", **query: Any) -> Any:
        client = Client()
        client.force_login(User.objects.get(username=user))
        answer = client.get(f"/api/v1/campaigns/{campaign.pk}/{path}", query)
        assert answer.status_code == status, answer.content[:500]
        return answer

    return asked
