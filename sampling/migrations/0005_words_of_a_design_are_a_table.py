from django.db import migrations, models

import sampling.design_options


class Migration(migrations.Migration):
    """The words of questions and methods stand in `sampling.design_options`."""

    dependencies = [("sampling", "0004_selections_are_a_table")]

    operations = [
        migrations.AlterField(
            model_name="draw",
            name="question",
            field=models.CharField(choices=sampling.design_options.question_choices, max_length=20),
        ),
        migrations.AlterField(
            model_name="draw",
            name="method",
            field=models.CharField(choices=sampling.design_options.method_choices, max_length=20),
        ),
    ]
