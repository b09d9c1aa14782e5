import sampling.gold_samples
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Files of judgments that are all there is are draws; imported gold is an audit, with what is declared of it."""

    dependencies = [
        ('judging', '0010_judging_order'),
        ('sampling', '0011_learned_audits'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='draw',
            name='sampling_draw_foreign',
        ),
        migrations.AddField(
            model_name='audit',
            name='choice_p_value',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='audit',
            name='declaration',
            field=models.CharField(blank=True, choices=sampling.gold_samples.declaration_choices, default='', max_length=16),
        ),
        migrations.AddConstraint(
            model_name='audit',
            constraint=models.UniqueConstraint(condition=models.Q(('declaration', ''), _negated=True), fields=('campaign',), name='sampling_audit_one_declaration'),
        ),
        migrations.AddConstraint(
            model_name='audit',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('choice_p_value', None), ('declaration', '')), models.Q(('choice_p_value', None), ('declaration', 'probabilities'), ('look', None), ('tier', 'gold')), models.Q(('declaration__in', ['uniform', 'by-topic']), ('look', None), ('tier', 'gold'), models.Q(('choice_p_value', None), models.Q(('choice_p_value__gte', 0), ('choice_p_value__lte', 1)), _connector='OR')), _connector='OR'), name='sampling_audit_declaration'),
        ),
        migrations.AddConstraint(
            model_name='draw',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('batch', 1), ('method', 'foreign'), ('question', 'foreign'), ('selection__in', ['foreign', 'complete'])), models.Q(('question', 'foreign'), ('method', 'foreign'), ('selection__in', ['foreign', 'complete']), _connector='OR', _negated=True), _connector='OR'), name='sampling_draw_foreign'),
        ),
    ]
