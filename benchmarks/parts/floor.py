"""The floor: as little Django as can hand out a row and store a judgment. No session, no user, no framework on top.

    gunicorn floor

A minimal project in one file: its settings (the database is that of FLOOR_DATABASE_URL), two small tables, two views.
A judgment takes both: one claims a row with SKIP LOCKED, one inserts. Nothing of what the product promises is kept
here; the floor says what Django, gunicorn and PostgreSQL cost on this machine at this minute.

There is a second pair of views that does the same without Django's models, each in one statement of SQL: a floor
below the floor, to show the cost of the models.
"""

import os
from urllib.parse import urlsplit

import django
from django.conf import settings
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


if "FLOOR_DATABASE_URL" in os.environ:
    settings.configure(
        ALLOWED_HOSTS=["127.0.0.1"],
        DATABASES={"default": database(os.environ["FLOOR_DATABASE_URL"])},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        MIDDLEWARE=[],
        ROOT_URLCONF=__name__,
        SECRET_KEY="of-the-floor",
    )
    django.setup()

    from django.core.wsgi import get_wsgi_application
    from django.db import connection, models, transaction

    class Slot(models.Model):  # noqa: DJ008 (nobody prints it)
        taken = models.BooleanField(default=False)

        class Meta:
            app_label, db_table = "floor", "floor_slot"

    class Judgment(models.Model):  # noqa: DJ008
        slot = models.OneToOneField(Slot, on_delete=models.PROTECT)
        grade = models.SmallIntegerField()
        created_at = models.DateTimeField(auto_now_add=True)

        class Meta:
            app_label, db_table = "floor", "floor_judgment"

    def answer(text: str) -> HttpResponse:
        # No middleware is there to count the bytes.
        return HttpResponse(text, content_type="text/plain", headers={"Content-Length": str(len(text))})

    def claim(request: HttpRequest) -> HttpResponse:
        with transaction.atomic():
            slots = Slot.objects.select_for_update(skip_locked=True).filter(taken=False)
            slot = slots.order_by("id").first()
            if slot is None:
                return answer("")
            slot.taken = True
            slot.save(update_fields=["taken"])
        return answer(str(slot.pk))

    def submit(request: HttpRequest) -> HttpResponse:
        slot, grade = request.body.split()
        judgment = Judgment.objects.create(slot_id=int(slot), grade=int(grade))
        return answer(str(judgment.pk))

    def claim_in_sql(request: HttpRequest) -> HttpResponse:
        with connection.cursor() as cursor:
            cursor.execute(CLAIM)
            row = cursor.fetchone()
        return answer(str(row[0]) if row else "")

    def submit_in_sql(request: HttpRequest) -> HttpResponse:
        slot, grade = request.body.split()
        with connection.cursor() as cursor:
            cursor.execute(SUBMIT, [int(slot), int(grade)])
        return answer("saved")

    urlpatterns = [
        path("alive", lambda request: answer("ok")),
        path("claim", claim),
        path("submit", submit),
        path("sql/claim", claim_in_sql),
        path("sql/submit", submit_in_sql),
    ]
    application = get_wsgi_application()
