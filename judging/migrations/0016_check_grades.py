"""Which grades gold checks have: in turn in all campaigns so far; in new ones little of it tells a check."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q

import judging.check_grades


class Migration(migrations.Migration):
    dependencies = [("judging", "0015_what_void_slots_were_is_checked")]
    operations = [
        migrations.AddField(
            "campaign",
            "check_grades",
            models.CharField(
                choices=judging.check_grades.check_grades_choices,
                db_default="in-turn",
                default="at-most",
                max_length=10,
            ),
        ),
        AddConstraintNotValid(
            "campaign",
            models.CheckConstraint(
                condition=Q(check_grades__in=["in-turn", "as-drawn", "at-most"]),
                name="judging_campaign_check_grades",
            ),
        ),
    ]
