from django.db import migrations, models

# What was declared stays as it is once an audit by the gold tier was drawn, whoever writes the row.
FORWARD = """
CREATE FUNCTION sampling_auditschedule_looks_stay() RETURNS trigger AS $$
BEGIN
  IF (TG_OP = 'INSERT' AND NEW.n_looks IS NOT NULL OR TG_OP = 'UPDATE' AND NEW.n_looks IS DISTINCT FROM OLD.n_looks)
     AND EXISTS (SELECT FROM sampling_audit WHERE campaign_id = NEW.campaign_id AND tier = 'gold') THEN
    RAISE EXCEPTION 'looks are declared before the first audit of the gold tier' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$ LANGUAGE plpgsql;
CREATE TRIGGER sampling_auditschedule_looks_stay BEFORE INSERT OR UPDATE ON sampling_auditschedule
  FOR EACH ROW EXECUTE FUNCTION sampling_auditschedule_looks_stay();
"""
BACK = """
DROP TRIGGER sampling_auditschedule_looks_stay ON sampling_auditschedule;
DROP FUNCTION sampling_auditschedule_looks_stay();
"""


class Migration(migrations.Migration):
    """Complete audits declared as looks, and what an audit that is one records."""

    dependencies = [("sampling", "0009_foreign_draws")]
    operations = [
        migrations.AddField(
            model_name="auditschedule",
            name="n_looks",
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
        migrations.AddField(model_name="audit", name="look", field=models.PositiveSmallIntegerField(null=True)),
        migrations.AddField(model_name="audit", name="n_looks", field=models.PositiveSmallIntegerField(null=True)),
        migrations.AddField(
            model_name="audit", name="n_planned", field=models.PositiveIntegerField(null=True)
        ),
        migrations.AddField(model_name="audit", name="n_drawn", field=models.PositiveIntegerField(null=True)),
        migrations.AddConstraint(
            model_name="auditschedule",
            constraint=models.CheckConstraint(
                name="sampling_auditschedule_looks",
                condition=models.Q(n_looks__isnull=True)
                | models.Q(n_looks__gte=2, n_looks__lte=50, tier="gold"),
                violation_error_message="Declared looks are 2 to 50 audits of the gold tier.",
            ),
        ),
        migrations.AddConstraint(
            model_name="audit",
            constraint=models.UniqueConstraint(name="sampling_audit_one_look", fields=("campaign", "look")),
        ),
        migrations.AddConstraint(
            model_name="audit",
            constraint=models.CheckConstraint(
                name="sampling_audit_look",
                condition=models.Q(look=None, n_looks=None, n_planned=None, n_drawn=None)
                | models.Q(
                    look__gte=1,
                    look__lte=models.F("n_looks"),
                    n_looks__gte=2,
                    n_looks__lte=50,
                    n_planned__gte=1,
                    n_drawn__gte=1,
                    tier="gold",
                ),
            ),
        ),
        migrations.RunSQL(FORWARD, BACK),
    ]
