"""The rows there are, looked at while others write."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("analytics", "0022_releases_are_published")]
    operations = [ValidateConstraint("release", "analytics_release_public")]
