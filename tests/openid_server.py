"""A real OpenID provider that lies on request: oidc-provider-mock, as a program of its own on loopback.

`PUT /lies` says about what, in JSON:

    claims    claims of the ID token that are put in place of the true ones; null leaves one out
    signed    "another key", "none", or "new key": one that it publishes and names
    metadata  the same as claims for what it says of itself, userinfo for what it says of a person
    wait      seconds before an answer, by path; drip: seconds between single bytes
    status    statuses in place of answers, by path

It knows PKCE, which the mock does not: a code is for whoever has the verifier of its challenge.
"""

import base64
import hashlib
import io
import json
import sys
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import oidc_provider_mock
import werkzeug.serving
from joserfc import jwt
from joserfc.jwk import RSAKey
from oidc_provider_mock import _app as mock

LIES: dict[str, Any] = {}
ANOTHER, NEW = RSAKey.generate_key(2048), RSAKey.generate_key(2048, {"kid": "new"})
_encode = mock.OpenIDCode.encode_id_token


def encode_id_token(self: Any, token: Any, request: Any) -> str:
    """Sign the claims as the provider does, with the lies in them."""
    claims = json.loads(_decoded(_encode(self, token, request).split(".")[1]))
    claims = _with(claims, LIES.get("claims", {}))
    signed = LIES.get("signed", "")
    if signed == "none":
        return f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."
    if signed == "new key":
        return jwt.encode({"alg": "RS256", "kid": "new"}, claims, NEW)
    key = ANOTHER if signed else RSAKey.import_key(self.resolve_client_private_key(request.client))
    return jwt.encode({"alg": "RS256"}, claims, key)


def _with(true: dict[str, Any], lies: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**true, **lies}.items() if value is not None}


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _encoded(part: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


class Liar:
    """The provider's pages, with the lies before them."""

    def __init__(self, provider: Any) -> None:
        self.provider = provider
        self.challenges: dict[str, str] = {}
        self.asked: list[str] = []

    def __call__(self, environ: Any, start: Any) -> Any:
        path = environ["PATH_INFO"]
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        if path == "/lies":
            LIES.clear()
            LIES.update(json.loads(body))
            self.asked.clear()
            return _answer(start, {})
        if path == "/asked":
            return _answer(start, self.asked)
        self.asked.append(path)
        time.sleep(LIES.get("wait", {}).get(path, 0))
        if path in LIES.get("drip", {}):
            start("200 OK", [("Content-Type", "application/json")])
            return _dripping(LIES["drip"][path])
        if path in LIES.get("status", {}):
            start(f"{LIES['status'][path]} No", [("Content-Type", "text/html"), ("Location", "/jwks")])
            return [b"<html>no</html>"]
        if path == "/oauth2/token" and not self.is_verified(parse_qs(body.decode())):
            return _answer(start, {"error": "invalid_grant"}, "400 Bad Request")
        return self._true(environ, start, path)

    def _true(self, environ: Any, start: Any, path: str) -> Any:
        kept: dict[str, Any] = {}

        def keep(status: str, headers: Any, exc_info: Any = None) -> Any:
            kept.update(status=status, headers=headers)

        body = b"".join(self.provider(environ, keep))
        self.note_challenge(environ, dict(kept["headers"]).get("Location", ""))
        lies = {"/.well-known/openid-configuration": "metadata", "/userinfo": "userinfo"}.get(path)
        if lies in LIES:
            return _answer(start, _with(json.loads(body), LIES[lies]))
        if path == "/jwks" and LIES.get("signed") == "new key":
            return _answer(start, {"keys": [NEW.as_dict(private=False)]})
        start(kept["status"], kept["headers"])
        return [body]

    def note_challenge(self, environ: Any, location: str) -> None:
        code = parse_qs(urlsplit(location).query).get("code")
        if code:
            asked = parse_qs(environ["QUERY_STRING"])
            assert asked["code_challenge_method"] == ["S256"]
            self.challenges[code[0]] = asked["code_challenge"][0]

    def is_verified(self, sent: dict[str, list[str]]) -> bool:
        digest = hashlib.sha256(sent["code_verifier"][0].encode()).digest()
        made = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return self.challenges.get(sent["code"][0]) == made


def _answer(start: Any, content: Any, status: str = "200 OK") -> list[bytes]:
    start(status, [("Content-Type", "application/json")])
    return [json.dumps(content).encode()]


def _dripping(pause: float) -> Any:
    while True:
        yield b" "
        time.sleep(pause)


if __name__ == "__main__":
    mock.OpenIDCode.encode_id_token = encode_id_token
    people = [
        oidc_provider_mock.User(sub=sub, claims=json.loads(claims))
        for sub, claims in [one.split("=", 1) for one in sys.argv[2:]]
    ]
    app = oidc_provider_mock.app(require_client_registration=True, user_claims=people)
    app.debug = False
    werkzeug.serving.make_server(
        "127.0.0.1", int(sys.argv[1]), Liar(app.wsgi_app), threaded=True
    ).serve_forever()
