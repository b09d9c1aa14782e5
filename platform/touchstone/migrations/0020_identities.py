"""Who people are at an OpenID provider."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('touchstone', '0019_last_manager'),
    ]

    operations = [
        migrations.CreateModel(
            name='Identity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('issuer', models.CharField(max_length=255)),
                ('subject', models.CharField(max_length=255)),
                ('label', models.CharField(blank=True, db_default='', default='', max_length=254)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='identities', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='touchstone_identity_person'), models.UniqueConstraint(fields=('user', 'issuer'), name='touchstone_identity_account'), models.CheckConstraint(condition=models.Q(models.Q(('issuer', ''), _negated=True), models.Q(('subject', ''), _negated=True)), name='touchstone_identity_named')],
            },
        ),
    ]
