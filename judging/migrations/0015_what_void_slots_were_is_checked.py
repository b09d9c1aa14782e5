"""Check the rows that were there before the rule: this reads them without stopping anybody."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("judging", "0014_what_void_slots_were")]
    operations = [ValidateConstraint("slot", "judging_slot_was")]
