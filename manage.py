"""Touchstone's command line: `python manage.py help`."""

import os
import secrets
import sys
from pathlib import Path

# Whoever starts the embedded stack may have a real server's settings in the environment: they are not for it.
OF_REAL_SERVERS = (
    "DATABASE_URL",
    "DATABASE_OWNER_URL",
    "DATABASE_WEB_PASSWORD",
    "DATABASE_WORKER_PASSWORD",
    "DATABASE_READ_PASSWORD",
    "DATABASE_BACKUP_PASSWORD",
    "DATABASE_BACKUP_URL",
    "REDIS_URL",
    "SECRET_KEY",
    "HTTPS",
    "ALLOWED_HOSTS",
    "CSRF_TRUSTED_ORIGINS",
    "DEBUG",
    "READ_DATABASE_URL",
    "TOUCHSTONE_ROLE",
    "TOUCHSTONE_DEMO",
    "TOUCHSTONE_STACK",
    "METRICS_SITE",
    "TRUSTED_PROXIES",
    "PROXY_ADDRESSES",
    "WEBHOOK_HOSTS",
    "OIDC_ISSUER",
    "PASSWORD_LOGIN",
    "API_REQUESTS",
    "API_REQUESTS_PER_ADDRESS",
    "API_WRONG_KEYS",
    "JUDGING_REQUESTS",
    "LOGIN_TRIES",
    "LOGIN_TRIES_PER_ADDRESS",
)


def main() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parent / "platform"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "touchstone.settings")
    if sys.argv[1:2] in (["demo"], ["stack"]):
        for name in OF_REAL_SERVERS:  # before the settings are read
            os.environ.pop(name, None)
    if sys.argv[1:2] == ["person"]:  # workers alone may have a text erased
        os.environ.setdefault("TOUCHSTONE_ROLE", "worker")
    if sys.argv[1:2] == ["evaluate"]:  # it reads files: it needs no server, and no settings of one
        os.environ.pop("DATABASE_URL", None)
        os.environ["SECRET_KEY"] = secrets.token_hex()
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
