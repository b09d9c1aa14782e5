from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    """Forecasts of audits say their parts, how far simulations differ, and what topics add; NULL in older rows."""

    dependencies = [
        ('analytics', '0012_claims'),
        ('judging', '0013_run_group'),
    ]

    operations = [
        migrations.AddField(
            model_name='auditforecast',
            name='drawing_share',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='auditforecast',
            name='middle_high',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='auditforecast',
            name='middle_low',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='auditforecast',
            name='topics_half_width_after',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='auditforecast',
            name='topics_share',
            field=models.FloatField(null=True),
        ),
        AddConstraintNotValid(
            model_name='auditforecast',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('drawing_share', None), ('middle_high', None), ('middle_low', None)), models.Q(('drawing_share__gte', 0), ('drawing_share__lte', 1), ('half_width_after__isnull', False), ('middle_high__lt', 1e+300), ('middle_low__gte', 0), ('middle_low__lte', models.F('middle_high'))), _connector='OR'), name='analytics_auditforecast_middle'),
        ),
        AddConstraintNotValid(
            model_name='auditforecast',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('topics_half_width_after', None), ('topics_share', None)), models.Q(('middle_low__isnull', False), ('topics_half_width_after__gte', 0), ('topics_half_width_after__lt', 1e+300), ('topics_share__gte', 0), ('topics_share__lte', 1)), _connector='OR'), name='analytics_auditforecast_topics'),
        ),
    ]
