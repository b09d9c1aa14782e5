"""What of an ID token is believed: the signature, and by Authlib each claim."""

from collections.abc import Iterable, Mapping
from typing import Any

from authlib.oidc.core import CodeIDToken
from django.conf import settings
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

LEEWAY = 60  # seconds that clocks may differ
LONGEST = 255  # of issuer and subject; the specification of OpenID Connect gives a subject no more
# What only the provider can sign; with HS256 whoever knows the client's secret could, and with none anybody.
ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
UnknownKey = InvalidKeyIdError
# What a token or a set of keys can raise that is none.
FAULTS = (JoseError, ValueError, TypeError, KeyError, AttributeError)


def decode(text: str, keys: Mapping[str, Any], offered: Iterable[str]) -> jwt.Token:
    """Return the token if one of the keys has signed it, by an algorithm that the provider offers and we allow."""
    allowed = sorted(ALGORITHMS.intersection(offered))
    if not allowed:  # to joserfc an empty list would be its own
        raise ValueError("no algorithm that is allowed")
    registry = JWSRegistry(algorithms=allowed, strict_check_header=False)
    known = KeySet.import_key_set(keys)  # type: ignore[arg-type]  # whatever the provider sent
    return jwt.decode(text, known, registry=registry)


def valid_claims(token: jwt.Token, *, nonce: str, access_token: Any) -> dict[str, Any]:
    """Return the claims if each is as it must be."""
    params = {"nonce": nonce, "client_id": settings.OIDC_CLIENT_ID, "access_token": access_token}
    claims = CodeIDToken(token.claims, token.header, claims_options(), params)
    claims.validate(leeway=LEEWAY)
    for name in ("iss", "sub"):
        if not isinstance(claims[name], str) or not 0 < len(claims[name]) <= LONGEST:
            raise ValueError(f"{name} is no text of at most {LONGEST} characters")
    return dict(claims)


def claims_options() -> dict[str, Any]:
    """Return what claims must be; the nonce is Authlib's own matter.

    Without `aud` a token for another client would do, if only its `azp` were ours.
    """
    return {
        "iss": {"essential": True, "value": settings.OIDC_ISSUER},
        "aud": {"essential": True, "value": settings.OIDC_CLIENT_ID},
        "sub": {"essential": True},
        "exp": {"essential": True},
        "iat": {"essential": True},
    }
