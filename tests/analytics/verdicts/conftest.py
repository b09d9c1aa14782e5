"""Pages as the manager of a verdict's campaign sees them."""

import pytest
from django.urls import reverse

from touchstone.models import User


@pytest.fixture
def page(client, db):
    client.force_login(User.objects.create(username="rita", role="researcher"))

    def get(name, campaign, **query):
        answer = client.get(reverse(f"console:{name}", args=[campaign.pk]), query)
        assert answer.status_code == 200
        return answer

    return get
