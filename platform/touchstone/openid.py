"""What is asked of the OpenID provider, and whom it vouches for; its tokens are checked in id_tokens.

The requests are ours, like those of webhooks: no redirects, no proxy, few bytes, and an end to the whole. At most two
of a web process's four threads wait for the provider, and once it did not answer, for some seconds nobody asks it: what
is slow there delays nobody who judges. Authlib is loaded by the functions that use it, when somebody logs in: with
cryptography it would slow down the start of every command.
"""

import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx
from django.conf import settings

from judging.services.errors import Refused
from touchstone.sign_on_settings import is_secure

logger = logging.getLogger(__name__)

WELL_KNOWN = "/.well-known/openid-configuration"
SCOPE = "openid email profile"
CONNECT_SECONDS, READ_SECONDS, WHOLE_SECONDS = 2.0, 4.0, 6.0
PAUSE_SECONDS = 15.0  # for which a provider that did not answer is not asked
MOST_BYTES = 1_000_000
FRESH_SECONDS = 3600.0  # how long metadata and keys are kept
RELOAD_SECONDS = 30.0  # at least between two looks for a key that is not among those kept


class ProviderAway(Refused):
    """It did not answer, or not in time, or others wait for it already."""

    status = 503
    title = "The company's log-in does not answer"


class NotBelieved(Refused):
    """An answer of the provider that is not what the specification demands; the detail says what, for the log."""

    status = 403
    title = "The answer of the company's log-in is not valid"


class CodeRefused(Refused):
    """The provider does not take the code: it was used before, has expired, or was never of this log-in."""

    status = 403
    title = "This log-in was used before or has expired"


@dataclass(frozen=True)
class Person:
    """Whom the provider vouches for. The address is empty where it does not vouch for that."""

    issuer: str
    subject: str
    email: str = ""
    unconfirmed_email: str = ""
    name: str = ""
    username: str = ""

    @property
    def label(self) -> str:
        """Return what a reader recognises the account by."""
        return (self.email or self.unconfirmed_email or self.username or self.subject)[:254]


@dataclass
class _Memory:
    """What a process remembers of the provider."""

    metadata: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)
    metadata_at: float = float("-inf")
    keys_at: float = float("-inf")
    away_until: float = float("-inf")
    issuer: str = ""


_seats = threading.BoundedSemaphore(2)  # as for the replica: half of the threads go on with other requests
_known = _Memory()


def redirect_uri(path: str) -> str:
    """Return the address to which the provider sends people back; it must know this very address."""
    return f"{settings.SITE_URL}{path}"


# -- the two steps --------------------------------------------------------------------------------------------


def authorization_url(*, back: str, state: str, nonce: str, verifier: str) -> str:
    """Return where to send somebody who wants to log in."""
    from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
    from authlib.oauth2.rfc7636 import create_s256_code_challenge

    with _asking():
        url: str = prepare_grant_uri(
            _metadata()["authorization_endpoint"],
            settings.OIDC_CLIENT_ID,
            "code",
            redirect_uri=redirect_uri(back),
            scope=SCOPE,
            state=state,
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
        )
    return url


def person_of(*, code: str, back: str, nonce: str, verifier: str) -> Person:
    """Return whom the provider vouches for with this code, or refuse it."""
    with _asking():
        token = _token(code, redirect_uri(back), verifier)
        claims = _claims(token, nonce)
        about = {**_userinfo(token, claims), **claims} if "email" not in claims else claims
    return _person(about)


def _person(about: Mapping[str, Any]) -> Person:
    email = _text(about.get("email"), 254)
    is_confirmed = has_confirmed_address(about)
    return Person(
        issuer=about["iss"],
        subject=about["sub"],
        email=email if is_confirmed else "",
        unconfirmed_email="" if is_confirmed else email,
        name=_text(about.get("name"), 150),
        username=_text(about.get("preferred_username"), 150),
    )


def has_confirmed_address(about: Mapping[str, Any]) -> bool:
    """Return whether the provider says that the address is the person's; some providers say so in a string."""
    said = about.get("email_verified")
    return said is True or said == "true"


def is_issuer(name: object) -> bool:
    """Return whether somebody who calls themselves so is our provider."""
    return name == settings.OIDC_ISSUER


def is_same_person(about: Mapping[str, Any], claims: Mapping[str, Any]) -> bool:
    """Return whether both are about one subject: else somebody else's address would be taken for theirs."""
    return bool(about.get("sub") == claims["sub"])


def _text(value: Any, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest:
        return ""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in value).split())


# -- what is believed -----------------------------------------------------------------------------------------


def _claims(token: Mapping[str, Any], nonce: str) -> dict[str, Any]:
    """Return the claims of the ID token: signed by the provider, for us, now, and for this very log-in."""
    from touchstone import id_tokens

    id_token = token.get("id_token")
    if not isinstance(id_token, str):
        raise NotBelieved("no ID token")
    offered = _metadata().get("id_token_signing_alg_values_supported") or ["RS256"]
    try:
        try:
            found = id_tokens.decode(id_token, _keys(), offered)
        except id_tokens.UnknownKey:  # the provider signs with a new one
            found = id_tokens.decode(id_token, _keys(is_missing=True), offered)
        return id_tokens.valid_claims(found, nonce=nonce, access_token=token.get("access_token"))
    except id_tokens.FAULTS as error:
        raise NotBelieved(f"ID token: {error}") from error


def _userinfo(token: Mapping[str, Any], claims: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the provider says at its other endpoint about the same person, where it has one."""
    url, access_token = _metadata().get("userinfo_endpoint"), token.get("access_token")
    if not url or not isinstance(access_token, str):
        return {}
    status, about = _ask("GET", url, headers={"Authorization": f"Bearer {access_token}"})
    if status != httpx.codes.OK:
        raise NotBelieved(f"userinfo: {status}")
    if not is_same_person(about, claims):
        raise NotBelieved("userinfo: sub")
    return about


# -- what is asked --------------------------------------------------------------------------------------------


def _token(code: str, back: str, verifier: str) -> dict[str, Any]:
    from authlib.oauth2.rfc6749.parameters import prepare_token_request

    url = _metadata()["token_endpoint"]
    body = prepare_token_request("authorization_code", "", back, code=code, code_verifier=verifier)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    url, headers, body = _client_auth().prepare("POST", url, headers, body)
    status, token = _ask("POST", url, content=body, headers=headers)
    if status == httpx.codes.BAD_REQUEST and token.get("error") == "invalid_grant":
        raise CodeRefused
    if status != httpx.codes.OK:
        raise NotBelieved(f"token: {status}")
    return token


def _client_auth() -> Any:
    """Return the client's proof of who it is, in the header unless the provider wants it in the body."""
    from authlib.oauth2.auth import ClientAuth

    methods = _metadata().get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    if "client_secret_basic" in methods or "client_secret_post" not in methods:
        # RFC 6749, 2.3.1: both parts are encoded as in a form before they are joined.
        name, secret = quote(settings.OIDC_CLIENT_ID, safe=""), quote(settings.OIDC_CLIENT_SECRET, safe="")
        return ClientAuth(name, secret, "client_secret_basic")
    return ClientAuth(settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET, "client_secret_post")


def _metadata() -> dict[str, Any]:
    """Return the provider's description of itself, kept for an hour."""
    now = time.monotonic()
    if _known.issuer == settings.OIDC_ISSUER and now - _known.metadata_at < FRESH_SECONDS:
        return _known.metadata
    status, found = _ask("GET", settings.OIDC_ISSUER.rstrip("/") + WELL_KNOWN)
    if status != httpx.codes.OK:
        raise NotBelieved(f"discovery: {status}")
    if not is_issuer(found.get("issuer")):
        raise NotBelieved("discovery: issuer")
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        if not is_secure(found.get(name, "")):
            raise NotBelieved(f"discovery: {name}")
    _known.metadata, _known.metadata_at, _known.issuer = found, now, settings.OIDC_ISSUER
    _known.keys = {}
    return found


def _keys(*, is_missing: bool = False) -> dict[str, Any]:
    """Return the provider's public keys, kept for an hour, and read anew if one is missing, but not all the time."""
    age = time.monotonic() - _known.keys_at
    if _known.keys and age < (RELOAD_SECONDS if is_missing else FRESH_SECONDS):
        return _known.keys
    status, found = _ask("GET", _metadata()["jwks_uri"])
    if status != httpx.codes.OK:
        raise NotBelieved(f"keys: {status}")
    _known.keys, _known.keys_at = found, time.monotonic()
    return _known.keys


@contextmanager
def _asking() -> Iterator[None]:
    """Take one of the seats, or refuse at once; remember a provider that does not answer."""
    if time.monotonic() < _known.away_until or not _seats.acquire(blocking=False):
        raise ProviderAway
    try:
        yield
    except ProviderAway:
        _known.away_until = time.monotonic() + PAUSE_SECONDS
        raise
    finally:
        _seats.release()


def _ask(
    method: str, url: str, *, content: str = "", headers: Mapping[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    """Return status and JSON object of the answer, an empty one where it is none."""
    if not is_secure(url):
        raise NotBelieved(f"address: {url[:200]}")
    limits = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    sent = {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "Touchstone",
        **(headers or {}),
    }
    try:
        with httpx.Client(timeout=limits, follow_redirects=False, trust_env=False) as client:
            # A server that sends a byte now and then would never run into the time-outs of single reads.
            watch = threading.Timer(WHOLE_SECONDS, client.close)
            watch.daemon = True
            watch.start()
            try:
                with client.stream(method, url, content=content.encode(), headers=sent) as answer:
                    status, body = answer.status_code, _body(answer)
            finally:
                watch.cancel()
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, RuntimeError, OSError) as fault:
        logger.warning("the OpenID provider did not answer: %s", type(fault).__name__)
        raise ProviderAway from fault
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        logger.warning("the OpenID provider answered %s", status)
        raise ProviderAway
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    return status, found if isinstance(found, dict) else {}


def _body(answer: httpx.Response) -> bytes:
    parts, size = [], 0
    for part in answer.iter_raw():
        size += len(part)
        if size > MOST_BYTES:
            raise NotBelieved("an answer that is too long")
        parts.append(part)
    return b"".join(parts)
