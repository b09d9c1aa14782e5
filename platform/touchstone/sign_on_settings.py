"""The settings of single sign-on, from the environment: one OpenID provider, and whom it may bring."""

import os
from ipaddress import ip_address
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

NEW_USERS = ("nobody", "assessor", "researcher")


def is_secure(url: str) -> bool:
    """Return whether what goes to this address stays between us and its host: over TLS, or on this machine.

    >>> [is_secure(url) for url in ("https://id.example.org", "http://127.0.0.1:9400/a", "http://id.example.org", "x")]
    [True, True, False, False]
    """
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or "\\" in url or " " in url:
        return False
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    if not parts.hostname or "@" in parts.netloc or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_here(parts.hostname))


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def issuer(given: str) -> str:
    """Return the address of the provider, exactly as given: what it calls itself is compared with it."""
    if given and (not is_secure(given) or urlsplit(given).query):
        raise ImproperlyConfigured(f"OIDC_ISSUER is like https://id.example.org, not {given}")
    return given


OIDC_ISSUER = issuer(os.environ.get("OIDC_ISSUER", ""))
OIDC_CLIENT_ID = os.environ.get("OIDC_CLIENT_ID", "")
OIDC_CLIENT_SECRET = os.environ.get("OIDC_CLIENT_SECRET", "")
# Who gets an account without an invitation: nobody, or everybody whom the provider knows, in this role.
OIDC_NEW_USERS = os.environ.get("OIDC_NEW_USERS") or "nobody"
# 0: nobody enters by a password.
PASSWORD_LOGIN = (os.environ.get("PASSWORD_LOGIN") or "1") == "1"
if OIDC_ISSUER and not (OIDC_CLIENT_ID and OIDC_CLIENT_SECRET):
    raise ImproperlyConfigured("OIDC_ISSUER also needs OIDC_CLIENT_ID and OIDC_CLIENT_SECRET")
if OIDC_NEW_USERS not in NEW_USERS:
    raise ImproperlyConfigured(f"OIDC_NEW_USERS is {', '.join(NEW_USERS)}, not {OIDC_NEW_USERS}")
if os.environ.get("PASSWORD_LOGIN", "") not in ("", "0", "1"):
    raise ImproperlyConfigured("PASSWORD_LOGIN is 1 or 0")
if not PASSWORD_LOGIN and not OIDC_ISSUER:
    raise ImproperlyConfigured("PASSWORD_LOGIN=0 needs OIDC_ISSUER: else nobody could log in")
