from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Samples that were drawn elsewhere are draws, each the only batch of its campaign."""

    dependencies = [
        ('judging', '0009_run_is_manual'),
        ('sampling', '0008_judging_looks'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='draw',
            name='sampling_draw_question',
        ),
        migrations.RemoveConstraint(
            model_name='draw',
            name='sampling_draw_method',
        ),
        migrations.AddConstraint(
            model_name='draw',
            constraint=models.CheckConstraint(condition=models.Q(('question__in', ['pair', 'system', 'baseline', 'ranking', 'pool', 'foreign'])), name='sampling_draw_question'),
        ),
        migrations.AddConstraint(
            model_name='draw',
            constraint=models.CheckConstraint(condition=models.Q(('method__in', ['default', 'paper', 'naive', 'foreign'])), name='sampling_draw_method'),
        ),
        migrations.AddConstraint(
            model_name='draw',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('batch', 1), ('method', 'foreign'), ('question', 'foreign'), ('selection', 'foreign')), models.Q(('question', 'foreign'), ('method', 'foreign'), ('selection', 'foreign'), _connector='OR', _negated=True), _connector='OR'), name='sampling_draw_foreign'),
        ),
    ]
