"""Requests of API clients, for tests of the API: with a session, JSON in and JSON out."""

import json
from typing import Any

from django.test import Client

from touchstone.models import User

API = "/api/v1"


class ApiClient:
    """The API client of one account; each call names the status that it expects."""

    def __init__(self, user: User) -> None:
        self.user, self.client = user, Client()
        self.client.force_login(user)

    def get(self, path: str, status: int = 200, **query: Any) -> Any:
        return self._read(self.client.get(f"{API}{path}", query), status)

    def send(self, method: str, path: str, status: int, body: Any) -> Any:
        answer = self.client.generic(
            method, f"{API}{path}", json.dumps(body).encode(), content_type="application/json"
        )
        return self._read(answer, status)

    def post(self, path: str, status: int = 200, /, **body: Any) -> Any:
        return self.send("POST", path, status, body)

    def put(self, path: str, status: int = 200, /, **body: Any) -> Any:
        return self.send("PUT", path, status, body)

    def patch(self, path: str, status: int = 200, /, **body: Any) -> Any:
        return self.send("PATCH", path, status, body)

    def rows(self, path: str, **query: Any) -> list[Any]:
        """Return all rows of a list, page by page."""
        page, rows = self.get(path, **query), []
        while True:
            rows += page["results"]
            if page["next"] is None:
                return rows
            page = self._read(self.client.get(page["next"]), 200)

    @staticmethod
    def _read(answer: Any, status: int) -> Any:
        assert answer.status_code == status, (answer.status_code, answer.content[:500])
        return json.loads(answer.content)


def api_client(name: str, role: str = "manager") -> ApiClient:
    return ApiClient(User.objects.get_or_create(username=name, defaults={"role": role})[0])
