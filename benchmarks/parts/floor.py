"""The floor: as little Django as can hand out a row and store a judgment. No session, no user, no framework on top.

    gunicorn floor

A minimal project in one file: its settings (the database is that of FLOOR_DATABASE_URL), two small tables, two
views. A judgment takes both: one claims a row with SKIP LOCKED, one inserts. Nothing of what the product promises
is kept here; the floor says what Django, gunicorn and PostgreSQL cost on this machine at this minute.
"""

import os
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import path

TABLES = """
CREATE TABLE floor_slot (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, taken boolean NOT NULL DEFAULT false);
CREATE INDEX floor_slot_open ON floor_slot (id) WHERE NOT taken;
CREATE TABLE floor_judgment (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, slot_id bigint NOT NULL UNIQUE REFERENCES floor_slot,
    grade smallint NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp());
"""
CLAIM = """
UPDATE floor_slot SET taken = true WHERE id = (
    SELECT id FROM floor_slot WHERE NOT taken ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id
"""
SUBMIT = "INSERT INTO floor_judgment (slot_id, grade) VALUES (%s, %s)"


def database(url: str) -> dict[str, object]:
    parts = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.removeprefix("/"),
        "USER": parts.username,
        "PASSWORD": parts.password,
        "HOST": parts.hostname,
        "PORT": parts.port,
        "CONN_MAX_AGE": 60,
    }


def claim(request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute(CLAIM)
        row = cursor.fetchone()
    return answer(str(row[0]) if row else "")


def submit(request: HttpRequest) -> HttpResponse:
    slot, grade = request.body.split()
    with connection.cursor() as cursor:
        cursor.execute(SUBMIT, [int(slot), int(grade)])
    return answer("saved")


def alive(request: HttpRequest) -> HttpResponse:
    return answer("ok")


def answer(text: str) -> HttpResponse:
    # No middleware is there to count the bytes.
    return HttpResponse(text, content_type="text/plain", headers={"Content-Length": str(len(text))})


urlpatterns = [path("claim", claim), path("submit", submit), path("alive", alive)]

if "FLOOR_DATABASE_URL" in os.environ:
    settings.configure(
        ALLOWED_HOSTS=["127.0.0.1"],
        DATABASES={"default": database(os.environ["FLOOR_DATABASE_URL"])},
        MIDDLEWARE=[],
        ROOT_URLCONF=__name__,
        SECRET_KEY="of-the-floor",
    )
    django.setup()
    application = get_wsgi_application()
