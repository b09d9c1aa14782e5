"""What the open places of a campaign can still get, a row a campaign."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('judging', '0031_late_comments_of_the_erased'),
    ]

    operations = [
        migrations.CreateModel(
            name='PlacesLeft',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('basis', models.CharField(max_length=32)),
                ('wanted', models.PositiveIntegerField()),
                ('possible', models.PositiveIntegerField()),
                ('n_stuck', models.PositiveIntegerField()),
                ('newcomers', models.PositiveIntegerField()),
                ('is_exact', models.BooleanField()),
                ('stuck', models.JSONField(default=list)),
                ('helps', models.JSONField(default=dict)),
                ('computed_at', models.DateTimeField()),
                ('campaign', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='places_left', to='judging.campaign')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('possible__lte', models.F('wanted'))), name='judging_placesleft_possible')],
            },
        ),
    ]
