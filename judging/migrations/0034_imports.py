"""Imports are rows, and what they brought names them: so an import can be taken back."""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("judging", "0033_judgments_by_time_and_seconds"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Import",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("looked-at", "Looked at"),
                            ("kept", "Kept"),
                            ("taken-back", "Taken back"),
                            ("discarded", "Discarded"),
                        ],
                        default="looked-at",
                        max_length=10,
                    ),
                ),
                ("kind", models.CharField(blank=True, db_default="", default="", max_length=20)),
                ("files", models.JSONField(default=list)),
                ("options", models.JSONField(default=dict)),
                ("report", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("kept_at", models.DateTimeField(null=True)),
                ("taken_back_at", models.DateTimeField(null=True)),
                (
                    "campaign",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="imports",
                        to="judging.campaign",
                    ),
                ),
                (
                    "collection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="imports",
                        to="judging.collection",
                    ),
                ),
                (
                    "taken_back_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "id"],
            },
        ),
        migrations.AddField(
            model_name="document",
            name="imported_by",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="judging.import",
            ),
        ),
        migrations.AddField(
            model_name="goldanswer",
            name="imported_by",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="judging.import",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="imported_by",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="judging.import",
            ),
        ),
        migrations.AddField(
            model_name="scorelist",
            name="imported_by",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="judging.import",
            ),
        ),
        migrations.AddField(
            model_name="topic",
            name="imported_by",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="judging.import",
            ),
        ),
        migrations.AddConstraint(
            model_name="import",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("kept_at__isnull", True),
                        ("state__in", ["looked-at", "discarded"]),
                        ("taken_back_at__isnull", True),
                    ),
                    models.Q(("kept_at__isnull", False), ("state", "kept"), ("taken_back_at__isnull", True)),
                    models.Q(
                        ("kept_at__isnull", False), ("state", "taken-back"), ("taken_back_at__isnull", False)
                    ),
                    _connector="OR",
                ),
                name="judging_import_state",
            ),
        ),
    ]
