"""Links into accounts; in which time zone somebody reads, and when they were seen last."""


import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('touchstone', '0017_lanes_are_checked'),
    ]

    operations = [
        migrations.AddField(
            model_name='user',
            name='seen_at',
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name='user',
            name='time_zone',
            field=models.CharField(blank=True, db_default='', default='', max_length=50),
        ),
        migrations.CreateModel(
            name='AccountLink',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('invitation', 'Invitation'), ('password', 'Password'), ('address', 'Address')], max_length=10)),
                ('token_sha256', models.CharField(max_length=64, unique=True)),
                ('role', models.CharField(blank=True, default='', max_length=10)),
                ('email', models.EmailField(blank=True, default='', max_length=254)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(null=True)),
                ('revoked_at', models.DateTimeField(null=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='account_links', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('kind', 'invitation'), ('role__in', ['assessor', 'researcher', 'manager']), models.Q(models.Q(('used_at', None), ('user', None)), models.Q(('used_at__isnull', False), ('user__isnull', False)), _connector='OR')), models.Q(('email', ''), ('kind', 'password'), ('role', ''), ('user__isnull', False)), models.Q(('kind', 'address'), ('role', ''), ('user__isnull', False), models.Q(('email', ''), _negated=True)), _connector='OR'), name='touchstone_accountlink_kind'), models.CheckConstraint(condition=models.Q(('token_sha256__regex', '^[0-9a-f]{64}$')), name='touchstone_accountlink_token'), models.CheckConstraint(condition=models.Q(('expires_at__gt', models.F('created_at')), models.Q(('used_at', None), ('revoked_at', None), _connector='OR')), name='touchstone_accountlink_end')],
            },
        ),
    ]
