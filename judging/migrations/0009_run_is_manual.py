from django.db import migrations, models


class Migration(migrations.Migration):
    """Whether a person took part in making a run: such runs return what no other does, and can weigh more."""

    dependencies = [("judging", "0008_one_more_judgment")]

    operations = [
        migrations.AddField(
            model_name="run", name="is_manual", field=models.BooleanField(db_default=False, default=False)
        ),
    ]
