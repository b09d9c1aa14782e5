"""Seals of the tables whose rows stay, and what of sealed rows was erased. By now no row holds a name."""

from django.db import migrations, models
from django.db.models import Q

KEY = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")
HASH = "^[0-9a-f]{64}$"


class Migration(migrations.Migration):
    dependencies = [
        ("touchstone", "0004_kept_by_every_session"),
        ("judging", "0023_old_events_hold_no_names"),
        ("analytics", "0017_old_matrices_hold_no_names"),
    ]
    operations = [
        migrations.CreateModel(
            name="Seal",
            fields=[
                ("id", KEY),
                ("table", models.CharField(max_length=63)),
                ("columns", models.JSONField()),
                ("up_to_id", models.BigIntegerField()),
                ("n_rows", models.BigIntegerField()),
                ("head", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("table", "up_to_id"), name="touchstone_seal_unique"),
                    models.CheckConstraint(condition=Q(n_rows__gte=1), name="touchstone_seal_rows"),
                    models.CheckConstraint(condition=Q(head__regex=HASH), name="touchstone_seal_head"),
                ]
            },
        ),
        migrations.CreateModel(
            name="Erasure",
            fields=[
                ("id", KEY),
                ("table", models.CharField(max_length=63)),
                ("row", models.BigIntegerField()),
                ("old", models.CharField(max_length=64)),
                ("new", models.CharField(max_length=64)),
            ],
            options={
                "indexes": [models.Index(fields=["table", "row"], name="touchstone_erasure_row")],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(new__regex=HASH, old__regex=HASH), name="touchstone_erasure_hashes"
                    )
                ],
            },
        ),
    ]
