from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("analytics", "0002_append_only")]

    operations = [
        migrations.AlterField(
            model_name="auditforecast", name="strategy", field=models.CharField(max_length=40)
        ),
    ]
