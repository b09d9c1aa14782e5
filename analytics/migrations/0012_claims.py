import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


FORWARD = """
CREATE TRIGGER analytics_comparisonfamily_append_only BEFORE UPDATE OR DELETE ON analytics_comparisonfamily
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
"""
BACK = "DROP TRIGGER analytics_comparisonfamily_append_only ON analytics_comparisonfamily;"


class Migration(migrations.Migration):
    """Tests of topics like these, and the families of comparisons that people declare; NULL in older rows."""

    dependencies = [
        ('analytics', '0011_documents_outside'),
        ('judging', '0012_topic_weight'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ComparisonFamily',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.TextField()),
                ('runs', models.JSONField()),
                ('baseline', models.CharField(blank=True, max_length=200)),
                ('declared_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.AddField(
            model_name='estimate',
            name='topic_values',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), null=True, size=None),
        ),
        migrations.AddField(
            model_name='estimate',
            name='topics_degrees_of_freedom',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='estimate',
            name='topics_p_value',
            field=models.FloatField(null=True),
        ),
        migrations.AddConstraint(
            model_name='estimate',
            constraint=models.CheckConstraint(condition=models.Q(('topics_p_value', None), models.Q(('p_value__isnull', False), ('run_b__isnull', False), ('topics_p_value__gte', models.F('p_value')), ('topics_p_value__lte', 1)), _connector='OR'), name='analytics_estimate_topics_p'),
        ),
        migrations.AddConstraint(
            model_name='estimate',
            constraint=models.CheckConstraint(condition=models.Q(('topics_degrees_of_freedom', None), models.Q(('topics_degrees_of_freedom__gt', 0), ('topics_degrees_of_freedom__lt', 1e+300), ('topics_low__isnull', False)), _connector='OR'), name='analytics_estimate_topics_freedom'),
        ),
        migrations.AddConstraint(
            model_name='estimate',
            constraint=models.CheckConstraint(condition=models.Q(('topic_values', None), ('run_b', None), _connector='OR'), name='analytics_estimate_topic_values'),
        ),
        migrations.AddField(
            model_name='comparisonfamily',
            name='campaign',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='comparison_families', to='judging.campaign'),
        ),
        migrations.AddField(
            model_name='comparisonfamily',
            name='declared_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddConstraint(
            model_name='comparisonfamily',
            constraint=models.CheckConstraint(condition=models.Q(('name__in', ['question', 'all']), models.Q(('baseline', ''), ('name__startswith', 'runs:')), models.Q(('name__startswith', 'baseline:'), models.Q(('baseline', ''), _negated=True)), _connector='OR'), name='analytics_comparisonfamily_name'),
        ),
        migrations.RunSQL(FORWARD, BACK),
    ]
