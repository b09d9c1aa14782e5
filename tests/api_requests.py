"""Requests of an API client."""

from django.test import Client

from touchstone.authentication import make_token

WEBHOOKS, HOST = "/api/v1/webhooks", "https://hooks.example"


def client_of(user, *scopes, name="key", **headers):
    _, key = make_token(user=user, name=name, days=1, scopes=scopes or None)
    return Client(headers={"Authorization": f"Bearer {key}", **headers}, enforce_csrf_checks=True)


def post(client, key=None, path=WEBHOOKS, body=None):
    headers = {"Idempotency-Key": key} if key is not None else {}
    return client.post(
        path, {"url": f"{HOST}/a"} if body is None else body, "application/json", headers=headers
    )
