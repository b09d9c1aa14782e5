import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('judging', '0006_campaigns_have_a_kind'),
        ('sampling', '0005_words_of_a_design_are_a_table'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='TopicCheckPlan',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('sequence', models.PositiveIntegerField()),
                ('n_topics', models.PositiveIntegerField()),
                ('n_bad_good', models.PositiveIntegerField()),
                ('n_bad_limit', models.PositiveIntegerField()),
                ('alpha', models.FloatField()),
                ('beta', models.FloatField()),
                ('n_checks', models.PositiveIntegerField()),
                ('most_bad', models.PositiveIntegerField()),
                ('producer_risk', models.FloatField()),
                ('consumer_risk', models.FloatField()),
                ('seed', models.BigIntegerField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='topic_check_plans', to='judging.campaign')),
                ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['sequence'],
            },
        ),
        migrations.CreateModel(
            name='TopicCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sequence', models.PositiveIntegerField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('topic', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='judging.topic')),
                ('plan', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='checks', to='sampling.topiccheckplan')),
            ],
            options={
                'ordering': ['sequence'],
            },
        ),
        migrations.CreateModel(
            name='TopicFinding',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('is_bad', models.BooleanField()),
                ('reason', models.CharField(blank=True, max_length=2000)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL)),
                ('topic_check', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='finding', to='sampling.topiccheck')),
            ],
        ),
        migrations.AddConstraint(
            model_name='topiccheckplan',
            constraint=models.UniqueConstraint(fields=('campaign', 'sequence'), name='sampling_topiccheckplan_unique'),
        ),
        migrations.AddConstraint(
            model_name='topiccheckplan',
            constraint=models.CheckConstraint(condition=models.Q(('n_bad_good__lt', models.F('n_bad_limit')), ('n_bad_limit__lte', models.F('n_topics'))), name='sampling_topiccheckplan_limits'),
        ),
        migrations.AddConstraint(
            model_name='topiccheckplan',
            constraint=models.CheckConstraint(condition=models.Q(('most_bad__lt', models.F('n_checks')), ('n_checks__gte', 1), ('n_checks__lte', models.F('n_topics'))), name='sampling_topiccheckplan_checks'),
        ),
        migrations.AddConstraint(
            model_name='topiccheckplan',
            constraint=models.CheckConstraint(condition=models.Q(('alpha__gt', 0), ('alpha__lt', 1), ('beta__gt', 0), ('beta__lt', 1)), name='sampling_topiccheckplan_risks'),
        ),
        migrations.AddConstraint(
            model_name='topiccheck',
            constraint=models.UniqueConstraint(fields=('plan', 'topic'), name='sampling_topiccheck_topic'),
        ),
        migrations.AddConstraint(
            model_name='topiccheck',
            constraint=models.UniqueConstraint(fields=('plan', 'sequence'), name='sampling_topiccheck_sequence'),
        ),
        migrations.AddConstraint(
            model_name='topiccheck',
            constraint=models.CheckConstraint(condition=models.Q(('sequence__gte', 1)), name='sampling_topiccheck_first'),
        ),
    ]
