"""The language that a person chose for the assessors' pages; empty for everybody who was there before."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("touchstone", "0002_append_only")]
    operations = [
        migrations.AddField(
            model_name="user",
            name="language",
            field=models.CharField(blank=True, db_default="", default="", max_length=20),
        )
    ]
