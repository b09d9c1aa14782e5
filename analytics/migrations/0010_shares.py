import analytics.models.results
import django.db.models.deletion
from django.db import migrations, models


FORWARD = """
CREATE TRIGGER analytics_shareestimate_append_only BEFORE UPDATE OR DELETE ON analytics_shareestimate
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
"""
BACK = "DROP TRIGGER analytics_shareestimate_append_only ON analytics_shareestimate;"


class Migration(migrations.Migration):
    """Shares of relevant items are computed where a campaign's judgments are all there is."""

    dependencies = [
        ('analytics', '0009_numbers_within_their_range'),
    ]

    operations = [
        migrations.CreateModel(
            name='ShareEstimate',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('topic', models.CharField(blank=True, default='', max_length=255)),
                ('measure', models.CharField(max_length=40)),
                ('method', models.CharField(choices=analytics.models.results.method_choices, max_length=20)),
                ('n_items', models.PositiveIntegerField()),
                ('n', models.PositiveIntegerField()),
                ('value', models.FloatField(null=True)),
                ('standard_error', models.FloatField(null=True)),
                ('low', models.FloatField(null=True)),
                ('high', models.FloatField(null=True)),
                ('degrees_of_freedom', models.FloatField(null=True)),
                ('refusal', models.TextField(blank=True)),
                ('warning', models.TextField(blank=True)),
                ('computation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='shares', to='analytics.computation')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('computation', 'topic', 'method'), name='analytics_share_unique'), models.CheckConstraint(condition=models.Q(models.Q(('refusal', ''), ('value__isnull', False)), models.Q(('value__isnull', True), models.Q(('refusal', ''), _negated=True)), _connector='OR'), name='analytics_share_value_or_reason'), models.CheckConstraint(condition=models.Q(('value__isnull', True), models.Q(('value__gte', 0), ('value__lte', 1), models.Q(('low__isnull', True), models.Q(('high__lte', 1), ('low__gte', 0)), _connector='OR')), _connector='OR'), name='analytics_share_range'), models.CheckConstraint(condition=models.Q(models.Q(('standard_error__isnull', True), models.Q(('standard_error__gt', -1e+300), ('standard_error__lt', 1e+300)), _connector='OR'), models.Q(('degrees_of_freedom__isnull', True), models.Q(('degrees_of_freedom__gt', -1e+300), ('degrees_of_freedom__lt', 1e+300)), _connector='OR')), name='analytics_share_finite')],
            },
        ),
        migrations.RunSQL(FORWARD, BACK),
    ]
