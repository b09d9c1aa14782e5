"""Letters are rows, and the lane in which they are sent."""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("touchstone", "0015_erasing")]
    operations = [
        migrations.CreateModel(
            "Letter",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("kind", models.CharField(max_length=20)),
                ("address", models.CharField(max_length=254)),
                ("subject", models.CharField(max_length=200)),
                ("day", models.DateField()),
                ("title", models.CharField(max_length=200)),
                ("text", models.TextField(blank=True)),
                ("link", models.CharField(blank=True, max_length=500)),
                ("seed", models.CharField(blank=True, max_length=64)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("handed over", "Handed Over"),
                            ("sent", "Sent"),
                            ("unclear", "Unclear"),
                            ("given up", "Given Up"),
                        ],
                        default="waiting",
                        max_length=12,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField()),
                ("claim", models.UUIDField(null=True)),
                ("answer", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="letters",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(user__isnull=False),
                        fields=("kind", "user", "subject", "day"),
                        name="touchstone_letter_once_a_day",
                    ),
                    models.UniqueConstraint(
                        condition=Q(user__isnull=True),
                        fields=("kind", "address", "subject", "day"),
                        name="touchstone_letter_once_a_day_to_strangers",
                    ),
                    models.CheckConstraint(
                        condition=Q(state__in=["waiting", "handed over"], ended_at__isnull=True)
                        | Q(state__in=["sent", "unclear", "given up"], ended_at__isnull=False),
                        name="touchstone_letter_state",
                    ),
                    models.CheckConstraint(
                        condition=~Q(state="sent") | Q(text="", link="", seed=""),
                        name="touchstone_letter_sent_is_empty",
                    ),
                ],
                "indexes": [
                    models.Index(
                        condition=Q(state__in=["waiting", "handed over"]),
                        fields=["next_attempt_at"],
                        name="touchstone_letter_due",
                    ),
                    models.Index(fields=["-created_at", "id"], name="touchstone_letter_newest"),
                ],
            },
        ),
        migrations.CreateModel(
            "LetterRefusal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=20)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="letter_refusals",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user", "kind"), name="touchstone_letterrefusal_unique")
                ],
            },
        ),
        migrations.RemoveConstraint("job", "touchstone_job_lane"),
        AddConstraintNotValid(
            "job",
            models.CheckConstraint(
                condition=Q(lane__in=["quick", "numbers", "heavy", "mail"], turn__gte=0),
                name="touchstone_job_lane",
            ),
        ),
    ]
