"""The company's log-in of the tests: a real provider in a process of its own (tests/openid_server.py)."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from touchstone.embedded import free_port

SERVER = Path(__file__).with_name("openid_server.py")
BACK = "/login/company/back/"
SITE = "http://testserver"


class Provider:
    """Its address, a client that is registered for a site, and what it says of whom."""

    def __init__(self, *people: tuple[str, dict[str, Any]]) -> None:
        self.issuer = f"http://127.0.0.1:{free_port()}"
        named = [f"{sub}={json.dumps(claims)}" for sub, claims in people]
        command = [sys.executable, "-W", "ignore", str(SERVER), self.issuer.rpartition(":")[2], *named]
        environment = {**os.environ, "AUTHLIB_INSECURE_TRANSPORT": "1"}
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while not self._is_up():
            assert time.monotonic() < deadline, "the provider did not start"
            time.sleep(0.1)

    def _is_up(self) -> bool:
        try:
            return httpx.get(f"{self.issuer}/jwks", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def register(self, site: str = SITE) -> dict[str, str]:
        """Return what the site's environment needs to use the provider."""
        body = {"redirect_uris": [site + BACK]}
        made = httpx.post(f"{self.issuer}/oauth2/clients", json=body, timeout=10).json()
        return {
            "OIDC_ISSUER": self.issuer,
            "OIDC_CLIENT_ID": made["client_id"],
            "OIDC_CLIENT_SECRET": made["client_secret"],
            "SITE_URL": site,
        }

    def know(self, sub: str, **claims: Any) -> None:
        assert httpx.put(f"{self.issuer}/users/{sub}", json=claims, timeout=10).status_code == 204

    def lie(self, **about: Any) -> None:
        assert httpx.put(f"{self.issuer}/lies", json=about, timeout=10).status_code == 200

    def asked(self) -> list[str]:
        """Return the paths that were asked for since the last lie."""
        found: list[str] = httpx.get(f"{self.issuer}/asked", timeout=10).json()
        return found

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def running(*people: tuple[str, dict[str, Any]]) -> Iterator[Provider]:
    provider = Provider(*people)
    try:
        yield provider
    finally:
        provider.stop()


def begin(client: Any, path: str = "/login/company/") -> str:
    """Go to the provider; return the address that it is asked at."""
    answer = client.get(path)
    assert answer.status_code == 302, answer.content.decode()
    return str(answer["Location"])


def answer_of(asked: str, sub: str) -> str:
    """Log in at the provider as this person; return the path to which it sends the browser back."""
    sent = httpx.post(asked, data={"sub": sub}, timeout=10)
    assert sent.status_code == 302, sent.text
    back = urlsplit(sent.headers["Location"])
    return f"{back.path}?{back.query}"


def log_in(client: Any, sub: str, path: str = "/login/company/") -> Any:
    """Do all of it; return the site's answer at the end."""
    return client.get(answer_of(begin(client, path), sub))
