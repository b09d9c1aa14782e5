"""The settings of letters, from the environment: Django's own names, and the address that links begin with."""

import os
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured


def site_url(given: str, host: str) -> str:
    """Return how the addresses of this site begin: as given, or of the site's name, over TLS.

    >>> site_url("", "judge.example.org"), site_url("", "http://localhost"), site_url("https://a.example/", "")
    ('https://judge.example.org', 'http://localhost', 'https://a.example')
    """
    named = host if "://" in host else f"https://{host}"
    url = (given or (named if host else "http://127.0.0.1:8000")).rstrip("/")
    parts = urlsplit(url)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.query
        or parts.fragment
        or parts.path
    ):
        raise ImproperlyConfigured(f"SITE_URL is like https://judge.example.org, not {url}")
    return url


def number(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ImproperlyConfigured(f"{name} is a whole number above 0, not {text}")
    return int(text)


SITE_URL = site_url(os.environ.get("SITE_URL", ""), os.environ.get("SITE_HOST", ""))
# Without a host letters are files in var/mail.
EMAIL_HOST = os.environ.get("EMAIL_HOST", "")
EMAIL_PORT = number("EMAIL_PORT", os.environ.get("EMAIL_PORT") or "25")
EMAIL_HOST_USER = os.environ.get("EMAIL_HOST_USER", "")
EMAIL_HOST_PASSWORD = os.environ.get("EMAIL_HOST_PASSWORD", "")
EMAIL_USE_TLS = os.environ.get("EMAIL_USE_TLS") == "1"  # STARTTLS, mostly on port 587
EMAIL_USE_SSL = os.environ.get("EMAIL_USE_SSL") == "1"  # TLS from the first byte on, mostly on port 465
EMAIL_TIMEOUT = number(
    "EMAIL_TIMEOUT", os.environ.get("EMAIL_TIMEOUT") or "10"
)  # seconds, for each answer of the mail server
DEFAULT_FROM_EMAIL = os.environ.get("DEFAULT_FROM_EMAIL") or f"touchstone@{urlsplit(SITE_URL).hostname}"
if EMAIL_USE_TLS and EMAIL_USE_SSL:
    raise ImproperlyConfigured("EMAIL_USE_TLS and EMAIL_USE_SSL exclude each other: set one")
