from django.db import migrations, models

import sampling.selections


class Migration(migrations.Migration):
    """How items are drawn stands in `sampling.selections`: a new selection needs no migration."""

    dependencies = [("sampling", "0003_strategies_are_a_table")]

    operations = [
        migrations.RemoveConstraint(model_name="draw", name="sampling_draw_selection"),
        migrations.AlterField(
            model_name="draw",
            name="selection",
            field=models.CharField(choices=sampling.selections.selection_choices, max_length=20),
        ),
    ]
